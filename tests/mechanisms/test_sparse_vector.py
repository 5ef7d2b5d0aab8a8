"""Sparse vector: scales, closed forms, accuracy theorems, halting and bad input."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import geomdp.bounds.upper.theorems as accuracy
import geomdp.mechanisms.interactive.sparse_vector as scales
from geomdp.mechanisms import AboveThreshold, Answer, NumericSparse, PrintedNumericSparse, Sparse
from geomdp.privacy import Adjacency, ApproxDP, BudgetExhausted, Ledger, PureDP
from tests.stats import binomial_above, binomial_agrees

PURE, APPROX = PureDP(1.0), ApproxDP(0.5, 1e-6)
#: Threshold noise of AboveThreshold at 0.5 / sqrt(8 * 5 * ln(10^6)) in each of 5 steps.
SIGMA = math.sqrt(32 * 5 * math.log(1e6)) / 0.5


def top_probability(gap: float, epsilon: float) -> float:
    """Pr[T + Lap(2/eps) <= f + Lap(4/eps)] for threshold T and true answer f = T - gap (SV-AT)."""
    if gap < 0:
        return 1 - top_probability(-gap, epsilon)
    return (4 * math.exp(-epsilon * gap / 4) - math.exp(-epsilon * gap / 2)) / 6


@pytest.mark.parametrize(
    ("gap", "value"), [(0.0, 0.5), (1.0, 0.418112), (5.0, 0.177322), (-3.0, 0.722277)]
)
@pytest.mark.statistical
def test_above_threshold_single_query_probability(gap, value):
    assert top_probability(gap, 1.0) == pytest.approx(value, abs=5e-7)
    trials, rng = 20_000, np.random.default_rng(11)
    tops = sum(AboveThreshold(gap, privacy=PURE, rng=rng).ask(0.0).above for _ in range(trials))
    binomial_agrees(tops, trials, top_probability(gap, 1.0))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (scales.above_threshold(0.5, monotone=False), (4, 8, None)),
        (scales.above_threshold(0.5, monotone=True), (4, 4, None)),
        (scales.redrawn(PureDP(0.5), 5, monotone=False), (20, 40, None)),
        (scales.redrawn(APPROX, 5, monotone=False), (SIGMA, 2 * SIGMA, None)),
        (scales.numeric(PURE, 5, monotone=False), (11.25, 22.5, 45)),
        (scales.numeric(APPROX, 5, monotone=False), (108.40674, 216.81348, 433.62696)),
    ],
    ids=["above", "monotone", "sparse", "sparse, approximate", "numeric", "numeric, approximate"],
)
def test_scales_are_those_of_the_theorems(found, expected):
    *comparisons, answer = expected
    assert (found.threshold, found.query) == pytest.approx(comparisons, rel=1e-6)
    assert found.answer == (None if answer is None else pytest.approx(answer, rel=1e-6))
    assert found.redraw


@pytest.mark.parametrize("monotone", [False, True])
def test_kept_threshold_split_is_optimal_and_spends_epsilon(monotone):
    cutoff, epsilon = 7, 0.8
    found = scales.kept(PureDP(epsilon), cutoff, monotone=monotone)
    reach = cutoff if monotone else 2 * cutoff
    first, second = 1 / found.threshold, reach / found.query
    assert first + second == pytest.approx(epsilon, rel=1e-14)

    def variance(share: float) -> float:
        return 2 / share**2 + 2 * (reach / (epsilon - share)) ** 2

    assert variance(first) <= min(variance(first * 0.999), variance(first * 1.001))
    assert not found.redraw


def test_accuracy_functions():
    assert accuracy.above_threshold(0.5, queries=100, beta=0.1) == pytest.approx(
        16 * (math.log(100) + math.log(20)), rel=1e-14
    )
    privacy = ApproxDP(1.0, 1e-6)
    printed = accuracy.numeric_sparse_printed(privacy, cutoff=10, queries=10, beta=0.05)
    assert printed == pytest.approx(2557.7, abs=0.05)
    fixed = accuracy.numeric_sparse(privacy, cutoff=10, queries=10, beta=0.05)
    logs = math.sqrt(10 * math.log(2e6)) * (math.log(10) + math.log(800))
    assert fixed / logs == pytest.approx(25.456, abs=5e-4)


def test_printed_numeric_theorem_fails_and_the_corrected_one_holds():
    """For c = k = 10, noise on the answers exceeds the printed bound too often (DISC-11)."""
    privacy, cutoff, beta = ApproxDP(1.0, 1e-6), 10, 0.05

    def failure(bound: float, found: scales.Scales) -> float:
        return 1 - (1 - math.exp(-bound / found.answer)) ** cutoff

    given = {"cutoff": cutoff, "queries": cutoff, "beta": beta}
    printed = accuracy.numeric_sparse_printed(privacy, **given)
    assert failure(printed, scales.numeric_printed(privacy, cutoff)) == pytest.approx(
        0.347, abs=5e-4
    )
    corrected = accuracy.numeric_sparse(privacy, **given)
    assert failure(corrected, scales.numeric(privacy, cutoff, monotone=False)) < beta


def alpha_of(kind, stream, queries, beta):
    """The accuracy alpha of the theorem; for a kept threshold, that of a union bound."""
    if kind is NumericSparse:
        return accuracy.numeric_sparse(stream.privacy, cutoff=4, queries=queries, beta=beta)
    if stream.scales.redraw:
        return accuracy.sparse(stream.privacy, cutoff=4, queries=queries, beta=beta)
    found = {"threshold": stream.scales.threshold, "query": stream.scales.query}
    return accuracy.sparse_kept(**found, queries=queries, beta=beta)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (NumericSparse, {"privacy": PURE}),
        (NumericSparse, {"privacy": ApproxDP(1.0, 1e-6)}),
        (Sparse, {"privacy": PURE, "redraw": True}),
        (Sparse, {"privacy": PURE}),
    ],
)
def test_accuracy_theorems(kind, options):
    queries, beta, trials = 60, 0.2, 400
    alpha = alpha_of(kind, kind(0.0, cutoff=4, **options), queries, beta)
    truths = np.full(queries, -1.001 * alpha)  # below T - alpha, so they must not be found above
    truths[[5, 20, 41, 59]] = 1.001 * alpha
    good = 0
    for rng in np.random.default_rng(6).spawn(trials):
        answers = kind(0.0, cutoff=4, rng=rng, **options).ask_many(truths)
        good += len(answers) == queries and all(
            a.above == (t > 0) and (a.value is None or abs(a.value - t) <= alpha)
            for a, t in zip(answers, truths, strict=True)
        )
    binomial_above(good, trials, 1 - beta)


def test_halts_after_cutoff_and_says_so():
    stream = Sparse(0.0, cutoff=2, privacy=PURE, rng=3)
    answers = stream.ask_many(np.array([-1e6, 1e6, -1e6, 1e6, 1e6]))
    assert [a.above for a in answers] == [False, True, False, True]
    assert stream.halted
    assert stream.found == 2
    for ask in (lambda: stream.ask(0.0), lambda: stream.ask_many(np.zeros(1))):
        with pytest.raises(BudgetExhausted, match="found 2 queries above its threshold and halted"):
            ask()
    assert stream.transcript == tuple(answers)
    assert stream.transcript[1] == Answer(above=True, value=None)


def test_an_array_is_searched_on_from_where_the_last_find_was():
    """No answer is skipped or found twice, close to each other or far apart."""
    quiet = slice(1000, 2280)
    truths = np.where(np.arange(quiet.stop + 1000) % 7 == 3, 1e9, -1e9)
    truths[quiet] = -1e9
    stream = Sparse(0.0, cutoff=10_000, privacy=PURE, redraw=True, rng=0)
    assert [a.above for a in stream.ask_many(truths)] == list(truths > 0)
    assert stream.found == np.count_nonzero(truths > 0)


def test_functions_of_the_records_are_asked_like_their_values():
    truths, records = [-3.0, 2.0, 0.5, 4.0], [1.0, 2.0]
    queries = [lambda held, truth=truth: truth / 3 * sum(held) for truth in truths]
    built = partial(NumericSparse, 0.0, cutoff=2, privacy=PURE, rng=0)
    answers = built(records=records).ask_many(queries)
    assert answers == built().ask_many(truths) == built().ask_many(np.array(truths))
    assert any(answer.above for answer in answers)


#: 1 plus one unit in the last place of a long double, which float64 would round to 1.
LONG = np.longdouble(1) + np.finfo(np.longdouble).eps


@pytest.mark.parametrize(
    ("records", "query", "message"),
    [
        (None, math.nan, "finite number"),
        (None, math.inf, "finite number"),
        (None, -math.inf, "finite number"),
        # A rounded answer could change by more than the sensitivity between neighbours.
        (None, LONG, "exact in float64"),
        (None, "1.0", "must be a finite number"),
        (None, None, "must be a finite number"),
        (None, 1j, "must be a finite number"),
        (None, lambda records: 1.0, "function only where the mechanism holds records"),
        ([1], 1.0, "function of the records"),
    ],
)
def test_bad_queries_are_refused_before_any_draw(records, query, message):
    stream = Sparse(0.0, cutoff=1, privacy=PURE, records=records, rng=0)
    state = stream._noise._rng.bit_generator.state
    good = 0.0 if records is None else (lambda records: 0.0)
    for ask in (lambda: stream.ask(query), lambda: stream.ask_many([good, query])):
        with pytest.raises(ValueError, match=message):
            ask()
    assert stream._noise._rng.bit_generator.state == state
    assert stream.transcript == ()
    stream.ask(np.longdouble(0.5) if records is None else good)
    assert len(stream.transcript) == 1


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (AboveThreshold, {"threshold": math.nan}, "threshold must be a finite number"),
        (AboveThreshold, {"sensitivity": 0.0}, "sensitivity"),
        # The scale 4 D / epsilon could be rounded to 0, and no noise added, or to infinity.
        *(
            (AboveThreshold, {"privacy": PureDP(10.0), "sensitivity": D}, "must be from 1e-100 to ")
            for D in (5e-324, 1e-101, 1e101, 1e300)
        ),
        # A text that is not empty counts as true, and would halve the noise on queries.
        (
            AboveThreshold,
            {"monotone": "no", "adjacency": Adjacency.ADD_REMOVE},
            "monotone must be a bool, got str",
        ),
        (AboveThreshold, {"privacy": APPROX}, "PureDP for AboveThreshold"),
        (Sparse, {"cutoff": 0}, "cutoff"),
        (Sparse, {"cutoff": 2, "privacy": ApproxDP(1.5, 1e-6)}, "at most 1"),
        (PrintedNumericSparse, {"cutoff": 1}, "must be ApproxDP"),
        (PrintedNumericSparse, {"cutoff": 1, "privacy": ApproxDP(1.5, 1e-6)}, "at most 1"),
    ],
)
def test_bad_parameters(kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(**({"threshold": 0.0, "privacy": PURE} | options))


@pytest.mark.parametrize(
    ("kind", "options"),
    [(AboveThreshold, {}), (Sparse, {"cutoff": 9}), (NumericSparse, {"cutoff": 9})],
)
def test_monotone_is_refused_under_replace_one(kind, options):
    """A replaced record can raise one count and lower another, which costs more than epsilon."""
    ledger = Ledger(PURE)
    with pytest.raises(ValueError, match=r"monotone must be False under replace-one.*ADD_REMOVE"):
        kind(0.0, privacy=PURE, monotone=True, ledger=ledger, **options)
    assert ledger.spends() == []
    general, monotone = (
        kind(0.0, privacy=PURE, monotone=m, adjacency=Adjacency.ADD_REMOVE, **options).scales.query
        for m in (False, True)
    )
    assert monotone < general


def test_texts_say_what_was_asked_and_found_and_nothing_private():
    stream = NumericSparse(0.0, cutoff=2, privacy=PURE, records=[12345.0], rng=0)
    stream.ask(lambda records: -1e9 * records[0])
    assert repr(stream) == (
        "NumericSparse(threshold=0, 1-DP, replace-one: 1 asked, 0 of at most 2 found above)"
    )
    assert str(stream.guarantee) == "seeded: no privacy claim"
