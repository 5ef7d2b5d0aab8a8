"""Sparse vector: scales, closed forms, accuracy theorems, halting and bad input."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import geomdp.bounds.upper.interactive as accuracy
import geomdp.mechanisms.interactive.sparse_vector as scales
from geomdp.mechanisms.interactive.sparse_vector import (
    AboveThreshold,
    Answer,
    NumericSparse,
    PrintedNumericSparse,
    Sparse,
)
from geomdp.noise.scalar import FIRST_WINDOW
from geomdp.privacy import Adjacency, ApproxDP, PureDP
from geomdp.privacy.ledger import BudgetExhausted, Ledger
from tests.stats import binomial_above, binomial_agrees, mean_agrees

APPROX = ApproxDP(0.5, 1e-6)


def top_probability(gap: float, epsilon: float) -> float:
    """Pr[T + Lap(2/eps) <= f + Lap(4/eps)] for threshold T and true answer f = T - gap (SV-AT)."""
    if gap < 0:
        return 1 - top_probability(-gap, epsilon)
    return (4 * math.exp(-epsilon * gap / 4) - math.exp(-epsilon * gap / 2)) / 6


@pytest.mark.parametrize(
    ("gap", "value"), [(0.0, 0.5), (1.0, 0.418112), (5.0, 0.177322), (-3.0, 0.722277)]
)
@pytest.mark.statistical
def test_above_threshold_single_query_probability(gap: float, value: float) -> None:
    assert top_probability(gap, 1.0) == pytest.approx(value, abs=5e-7)
    trials = 20_000
    rng = np.random.default_rng(11)
    tops = sum(
        AboveThreshold(gap, privacy=PureDP(1.0), rng=rng).ask(0.0).above for _ in range(trials)
    )
    binomial_agrees(tops, trials, top_probability(gap, 1.0))


def test_above_threshold_scales() -> None:
    assert scales.above_threshold(0.5, monotone=False) == scales.Scales(4, 8, None, True)
    assert scales.above_threshold(0.5, monotone=True) == scales.Scales(4, 4, None, True)


def test_sparse_scales() -> None:
    pure = scales.redrawn(PureDP(0.5), 5, monotone=False)
    assert (pure.threshold, pure.query) == pytest.approx((20, 40), rel=1e-14)  # 2c/eps, 4c/eps
    approx = scales.redrawn(APPROX, 5, monotone=False)
    sigma = math.sqrt(32 * 5 * math.log(1e6)) / 0.5
    assert (approx.threshold, approx.query) == pytest.approx((sigma, 2 * sigma), rel=1e-14)


@pytest.mark.parametrize("monotone", [False, True])
def test_kept_threshold_split_is_optimal_and_spends_epsilon(monotone: bool) -> None:
    cutoff, epsilon = 7, 0.8
    found = scales.kept(PureDP(epsilon), cutoff, monotone=monotone)
    reach = cutoff if monotone else 2 * cutoff
    first, second = 1 / found.threshold, reach / found.query
    assert first + second == pytest.approx(epsilon, rel=1e-14)

    def variance(share: float) -> float:
        return 2 / share**2 + 2 * (reach / (epsilon - share)) ** 2

    assert variance(first) <= min(variance(first * 0.999), variance(first * 1.001))
    assert not found.redraw


def test_numeric_sparse_scales() -> None:
    pure = scales.numeric(PureDP(1.0), 5, monotone=False)
    assert (pure.threshold, pure.query, pure.answer) == pytest.approx((11.25, 22.5, 45), rel=1e-13)
    approx = scales.numeric(APPROX, 5, monotone=False)
    assert 2 / approx.threshold == pytest.approx(0.0184490, abs=5e-8)
    assert (approx.threshold, approx.query, approx.answer) == pytest.approx(
        (108.4067, 216.8134, 433.6268), abs=5e-5
    )


def test_printed_numeric_scales_spend_the_budget() -> None:
    cutoff = 5
    printed = scales.numeric_printed(APPROX, cutoff)
    assert printed.answer is not None
    spread = math.sqrt(32 * cutoff * math.log(2e6))
    first, second = spread / printed.threshold, spread / printed.answer
    assert first + second / 2 == pytest.approx(APPROX.epsilon, rel=1e-14)


def test_accuracy_functions() -> None:
    assert accuracy.above_threshold(0.5, queries=100, beta=0.1) == pytest.approx(
        16 * (math.log(100) + math.log(20)), rel=1e-14
    )
    printed = accuracy.numeric_sparse_printed(ApproxDP(1.0, 1e-6), cutoff=10, queries=10, beta=0.05)
    assert printed == pytest.approx(2557.7, abs=0.05)
    fixed = accuracy.numeric_sparse(ApproxDP(1.0, 1e-6), cutoff=10, queries=10, beta=0.05)
    assert fixed / math.sqrt(10 * math.log(2e6)) / (math.log(10) + math.log(800)) == pytest.approx(
        25.456, abs=5e-4
    )


def test_printed_numeric_theorem_fails_and_the_corrected_one_holds() -> None:
    """For c = k = 10, noise on the answers exceeds the printed bound too often (DISC-11)."""
    privacy, cutoff, beta = ApproxDP(1.0, 1e-6), 10, 0.05
    bound = accuracy.numeric_sparse_printed(privacy, cutoff=cutoff, queries=cutoff, beta=beta)
    answer = scales.numeric_printed(privacy, cutoff).answer
    assert answer is not None
    assert 1 - (1 - math.exp(-bound / answer)) ** cutoff == pytest.approx(0.347, abs=5e-4)
    bound = accuracy.numeric_sparse(privacy, cutoff=cutoff, queries=cutoff, beta=beta)
    answer = scales.numeric(privacy, cutoff, monotone=False).answer
    assert answer is not None
    assert 1 - (1 - math.exp(-bound / answer)) ** cutoff < beta


@pytest.mark.statistical
@pytest.mark.parametrize("privacy", [PureDP(1.0), ApproxDP(1.0, 1e-6)])
def test_numeric_sparse_accuracy_theorem(privacy: PureDP | ApproxDP) -> None:
    cutoff, queries, beta, trials = 3, 50, 0.2, 400
    alpha = accuracy.numeric_sparse(privacy, cutoff=cutoff, queries=queries, beta=beta)
    truths = np.full(queries, -1.01 * alpha)  # below T - alpha, so they must not be found above
    truths[[4, 20, 49]] = 1.01 * alpha
    good = 0
    for rng in np.random.default_rng(5).spawn(trials):
        answers = NumericSparse(0.0, cutoff=cutoff, privacy=privacy, rng=rng).ask_many(truths)
        right = len(answers) == queries and all(
            a.above == (t > 0) and (a.value is None or abs(a.value - t) <= alpha)
            for a, t in zip(answers, truths, strict=True)
        )
        good += right
    binomial_above(good, trials, 1 - beta)


@pytest.mark.statistical
def test_array_and_single_queries_have_the_same_law() -> None:
    """The number of queries asked has the same two moments for an array and for single queries."""
    trials, truths = 3000, np.linspace(-3, 3, 12)

    def asked(at_once: bool, seed: int) -> list[int]:
        counts = []
        for rng in np.random.default_rng(seed).spawn(trials):
            stream = Sparse(0.0, cutoff=2, privacy=PureDP(4.0), redraw=True, rng=rng)
            if at_once:
                stream.ask_many(truths)
            else:
                for truth in truths:
                    stream.ask(truth)
                    if stream.halted:
                        break
            counts.append(len(stream.transcript))
        return counts

    one, many = asked(False, 1), asked(True, 2)
    mean_agrees(np.array(one) - np.array(many), 0.0)
    mean_agrees(np.array(one) ** 2 - np.array(many) ** 2, 0.0)


def test_halts_after_cutoff_and_says_so() -> None:
    stream = Sparse(0.0, cutoff=2, privacy=PureDP(1.0), rng=3)
    answers = stream.ask_many(np.array([-1e6, 1e6, -1e6, 1e6, 1e6]))
    assert [a.above for a in answers] == [False, True, False, True]
    assert stream.halted
    assert stream.found == 2
    for ask in (lambda: stream.ask(0.0), lambda: stream.ask_many(np.zeros(1))):
        with pytest.raises(BudgetExhausted, match="found 2 queries above"):
            ask()
    assert len(stream.transcript) == 4
    assert stream.transcript[1] == Answer(above=True, value=None)


@pytest.mark.statistical
def test_numeric_value_uses_fresh_noise() -> None:
    """A value has fresh noise; reused noise of the comparison would break privacy (SV-LSL)."""
    rng = np.random.default_rng(8)
    values = []
    for _ in range(4000):
        stream = NumericSparse(1e4, cutoff=1, privacy=PureDP(1.0), rng=rng)
        answer = stream.ask(1e4)
        if answer.value is not None:
            values.append(answer.value - 1e4)
    mean_agrees(np.array(values), 0.0)  # the noise of the comparison would have a mean above 0


def test_records_are_asked_with_functions() -> None:
    stream = AboveThreshold(0.0, privacy=PureDP(1.0), records=[1, 2, 3], rng=0)
    assert stream.ask(lambda records: 1e6 * sum(records)) == Answer(True)
    with pytest.raises(ValueError, match="function of the records"):
        AboveThreshold(0.0, privacy=PureDP(1.0), records=[1]).ask(1.0)
    with pytest.raises(ValueError, match="function only where the mechanism holds records"):
        AboveThreshold(0.0, privacy=PureDP(1.0)).ask(lambda records: 1.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_bad_answers_raise_before_spending(bad: float) -> None:
    stream = Sparse(0.0, cutoff=1, privacy=PureDP(1.0), rng=0)
    state = stream._noise._rng.bit_generator.state  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="finite"):
        stream.ask(bad)
    with pytest.raises(ValueError, match="finite"):
        stream.ask_many(np.array([0.0, bad]))
    assert stream._noise._rng.bit_generator.state == state  # type: ignore[attr-defined]
    assert len(stream.transcript) == 0


@pytest.mark.parametrize("sensitivity", [5e-324, 1e-101, 1e101, 1e300])
def test_sensitivities_whose_noise_float64_would_round_to_0_or_infinity(
    sensitivity: float,
) -> None:
    # For epsilon = 10 and D = 5e-324, the scale 4 D / epsilon would be rounded to 0, and no noise
    # would be added.
    with pytest.raises(ValueError, match=r"sensitivity must be from 1e-100 to 1e\+100, got"):
        AboveThreshold(0.0, privacy=PureDP(10.0), sensitivity=sensitivity)


@pytest.mark.parametrize("epsilon", [1e-12, 1e12])
@pytest.mark.parametrize("sensitivity", [1e-100, 1e100])
def test_noise_is_large_enough_at_the_ends_of_the_ranges(
    sensitivity: float, epsilon: float
) -> None:
    stream = AboveThreshold(0.0, privacy=PureDP(epsilon), sensitivity=sensitivity)
    scale = stream._scaled(stream.scales.query)
    assert Fraction(scale) * Fraction(epsilon) >= 4 * Fraction(sensitivity)
    assert isinstance(stream.ask(0.0).above, bool)


def test_true_answers_that_float64_would_round_raise() -> None:
    # A rounded answer could change by more than the sensitivity between neighbours.
    answer = np.longdouble(1) + np.finfo(np.longdouble).eps
    stream = AboveThreshold(0.0, privacy=PureDP(1.0))
    with pytest.raises(ValueError, match="exact in float64"):
        stream.ask(answer)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="exact in float64"):
        stream.ask_many([0.0, answer])  # type: ignore[list-item]
    assert len(stream.transcript) == 0
    stream.ask(np.longdouble(0.5))  # type: ignore[arg-type]
    assert len(stream.transcript) == 1


def test_bad_parameters() -> None:
    with pytest.raises(ValueError, match="threshold must be a finite number"):
        AboveThreshold(math.nan, privacy=PureDP(1.0))
    with pytest.raises(ValueError, match="sensitivity"):
        AboveThreshold(0.0, privacy=PureDP(1.0), sensitivity=0.0)
    # A text that is not empty counts as true in Python, and would halve the noise on queries.
    with pytest.raises(ValueError, match="monotone must be a bool, got str"):
        AboveThreshold(
            0.0,
            privacy=PureDP(1.0),
            monotone="no",  # type: ignore[arg-type]
            adjacency=Adjacency.ADD_REMOVE,
        )
    with pytest.raises(ValueError, match="PureDP for AboveThreshold"):
        AboveThreshold(0.0, privacy=APPROX)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cutoff"):
        Sparse(0.0, cutoff=0, privacy=PureDP(1.0))
    with pytest.raises(ValueError, match="at most 1"):
        Sparse(0.0, cutoff=2, privacy=ApproxDP(1.5, 1e-6))


@pytest.mark.parametrize(
    "make",
    [
        partial(AboveThreshold, 0.0, privacy=PureDP(1.0)),
        partial(Sparse, 0.0, cutoff=10, privacy=PureDP(1.0)),
        partial(NumericSparse, 0.0, cutoff=10, privacy=PureDP(1.0)),
    ],
)
def test_monotone_is_refused_under_replace_one(
    make: Callable[..., AboveThreshold | Sparse | NumericSparse],
) -> None:
    """A replaced record can raise one count and lower another, which costs more than epsilon."""
    ledger = Ledger(PureDP(1.0))
    with pytest.raises(ValueError, match=r"monotone must be False under replace-one.*ADD_REMOVE"):
        make(monotone=True, ledger=ledger)
    assert ledger.spends() == []
    general, monotone = (
        make(monotone=monotone, adjacency=Adjacency.ADD_REMOVE).scales.query
        for monotone in (False, True)
    )
    assert monotone < general


def test_repr_says_what_was_asked_and_found_and_nothing_private() -> None:
    stream = NumericSparse(0.0, cutoff=2, privacy=PureDP(1.0), records=[12345.0], rng=0)
    stream.ask(lambda records: -1e9 * records[0])
    assert repr(stream) == (
        "NumericSparse(threshold=0, 1-DP, replace-one: 1 asked, 0 of at most 2 found above)"
    )


def test_guarantee_and_seed() -> None:
    private = NumericSparse(
        0.0, cutoff=2, privacy=PureDP(0.5), adjacency=Adjacency.ADD_REMOVE
    ).guarantee
    assert str(private).startswith("0.5-DP, add/remove")
    assert str(AboveThreshold(0.0, privacy=PureDP(1.0), rng=1).guarantee) == (
        "seeded: no privacy claim"
    )


def test_printed_variant_is_a_class_of_its_own() -> None:
    stream = PrintedNumericSparse(0.0, cutoff=1, privacy=APPROX, rng=0)
    assert stream.scales == scales.numeric_printed(APPROX, 1)
    assert stream.ask(1e9).value is not None
    with pytest.raises(ValueError, match="must be ApproxDP"):
        PrintedNumericSparse(0.0, cutoff=1, privacy=PureDP(1.0))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at most 1"):
        PrintedNumericSparse(0.0, cutoff=1, privacy=ApproxDP(1.5, 1e-6))


@pytest.mark.parametrize("bad", ["1.0", None, 1j])
def test_answers_that_are_no_numbers_raise(bad: object) -> None:
    with pytest.raises(ValueError, match="must be a number"):
        Sparse(0.0, cutoff=1, privacy=PureDP(1.0)).ask(bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="queries must be a one-dimensional array of numbers"):
        Sparse(0.0, cutoff=1, privacy=PureDP(1.0)).ask_many(np.array([["1"]]))


@pytest.mark.statistical
@pytest.mark.parametrize("redraw", [False, True])
def test_sparse_accuracy_theorems(redraw: bool) -> None:
    """Theorem 3.26 holds for a redrawn threshold, and a union bound holds for a kept threshold."""
    privacy, cutoff, queries, beta, trials = PureDP(1.0), 4, 60, 0.2, 400
    stream = Sparse(0.0, cutoff=cutoff, privacy=privacy, redraw=redraw)
    if redraw:
        alpha = accuracy.sparse(privacy, cutoff=cutoff, queries=queries, beta=beta)
    else:
        alpha = accuracy.sparse_kept(
            threshold=stream.scales.threshold,
            query=stream.scales.query,
            queries=queries,
            beta=beta,
        )
    truths = np.full(queries, -1.001 * alpha)
    truths[[5, 20, 41, 59]] = 1.001 * alpha
    good = 0
    for rng in np.random.default_rng(6).spawn(trials):
        answers = Sparse(
            0.0, cutoff=cutoff, privacy=privacy, redraw=redraw, rng=rng
        ).ask_many(truths)  # fmt: skip
        good += [a.above for a in answers] == list(truths > 0)
    binomial_above(good, trials, 1 - beta)


def test_long_arrays_are_searched_from_where_the_last_find_was() -> None:
    """The array is searched in windows of growing length; no answer is skipped or found twice."""
    # The answers between two finds fill windows of 1, 2, 4 and 8 times the first length, and a
    # part of the next window.
    quiet = slice(1000, 1000 + 20 * FIRST_WINDOW)
    truths = np.where(np.arange(quiet.stop + 1000) % 7 == 3, 1e9, -1e9)
    truths[quiet] = -1e9
    stream = Sparse(0.0, cutoff=10_000, privacy=PureDP(1.0), redraw=True, rng=0)
    assert [a.above for a in stream.ask_many(truths)] == list(truths > 0)
    assert stream.found == np.count_nonzero(truths > 0)
