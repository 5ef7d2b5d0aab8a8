"""Interactive runs without a seed: exact true answers, proved scales, and refused copies."""

from __future__ import annotations

import copy
import math
import multiprocessing
import os
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import geomdp.mechanisms.interactive.sparse_vector as scales
from geomdp.mechanisms import (
    AllParities,
    IterativeConstruction,
    MultiplicativeWeights,
    OnlineConstruction,
)
from geomdp.mechanisms.interactive.iterative import EnumeratedQueries
from geomdp.mechanisms.interactive.sparse_vector import (
    ROUNDED_UP,
    AboveThreshold,
    NumericSparse,
    Sparse,
)
from geomdp.noise import scalar
from geomdp.noise.rounding import Undecided
from geomdp.noise.scalar import ExactNoise, exact_argmax, noisy_argmax
from geomdp.privacy import Adjacency, ApproxDP, Ledger, PureDP
from geomdp.privacy.guarantees import DECIDED_ARITHMETIC
from geomdp.workloads import DenseQuery, SparseQuery
from geomdp.workloads.base import MAX_RECORDS, exact_product
from tests.noise.exact.reference import seeded
from tests.stats import LEVEL, MINIMUM_SAMPLES, binomial_agrees, mean_agrees

ONE = PureDP(1.0)


def online(**rest):
    rule = MultiplicativeWeights(4)
    return OnlineConstruction(rule, n=10**6, queries=3, privacy=ONE, **rest)


MAKE = {
    "above threshold": lambda: AboveThreshold(0.0, privacy=ONE),
    "sparse": lambda: Sparse(0.0, cutoff=2, privacy=ONE),
    "numeric": lambda: NumericSparse(0.0, cutoff=2, privacy=ONE),
    "seeded": lambda: NumericSparse(0.0, cutoff=2, privacy=ONE, rng=1),
    "online": online,
    "noise": ExactNoise,
    "ledger": lambda: Ledger(ONE),
}


def test_records_say_how_noise_is_computed():
    assert AboveThreshold(0.0, privacy=ONE).guarantee.arithmetic == DECIDED_ARITHMETIC
    assert online().guarantee.arithmetic == DECIDED_ARITHMETIC
    assert str(AboveThreshold(0.0, privacy=ONE, rng=1).guarantee) == "seeded: no privacy claim"


@pytest.mark.parametrize("name", sorted(set(MAKE) - {"ledger"}))
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_objects_that_hold_noise_cannot_be_copied(name, copied):
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        copied(MAKE[name]())


@pytest.mark.parametrize("copied", [copy.deepcopy, pickle.dumps])
def test_ledgers_cannot_be_copied(copied):
    with pytest.raises(TypeError):
        copied(MAKE["ledger"]())


def in_child(action, queue):
    try:
        action()
        queue.put("answered")
    except RuntimeError as error:
        queue.put(str(error))


@pytest.mark.parametrize(
    "name", ["above threshold", "sparse", "numeric", "seeded", "online", "noise", "ledger"]
)
def test_a_forked_child_gets_no_noise(name):
    made = MAKE[name]()
    actions = {
        "online": lambda: made.ask_truth(None, 0.5),
        "noise": lambda: made.laplace(0, 1.0),
        "ledger": lambda: made.spends(),
    }
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(
        target=in_child, args=(actions.get(name, lambda: made.ask(0)), queue), daemon=True
    )
    child.start()
    said = queue.get(timeout=60)
    child.join()
    assert "process" in said


def exactly_spent(found, cutoff, monotone):
    """The exact privacy loss of a run with queries of sensitivity 1 and the given float scales."""
    up = Fraction(ROUNDED_UP)
    threshold, query = (1 / Fraction(float(s * up)) for s in (found.threshold, found.query))
    runs, reach = (cutoff, 1) if found.redraw else (1, cutoff)
    total = runs * (threshold + (1 if monotone else 2) * reach * query)
    return total if found.answer is None else total + cutoff / Fraction(float(found.answer * up))


def test_pure_scales_spend_at_most_epsilon_in_exact_arithmetic():
    rng = np.random.default_rng(0)
    exceeded = 0
    for _ in range(400):
        epsilon, cutoff = float(10 ** rng.uniform(-3, 2)), int(rng.integers(1, 40))
        for monotone in (False, True):
            for find in (scales.redrawn, scales.kept, scales.numeric):
                found = find(PureDP(epsilon), cutoff, monotone=monotone)
                spent = exactly_spent(found, cutoff, monotone)
                assert Fraction(epsilon) * (1 - Fraction(1, 2**40)) <= spent <= Fraction(epsilon)
                exceeded += spent * Fraction(ROUNDED_UP) > Fraction(epsilon)
    assert exceeded > 0  # without rounding up, some runs would spend more than epsilon


def test_approximate_scales_exceed_the_formula_at_400_bits():
    rng = np.random.default_rng(1)
    with mpmath.workprec(400):
        for _ in range(200):
            epsilon, delta = float(rng.uniform(0.01, 1)), float(10 ** rng.uniform(-12, -1))
            cutoff = int(rng.integers(1, 40))
            found = scales.numeric(ApproxDP(epsilon, delta), cutoff, monotone=False)
            spread = mpmath.sqrt(-8 * cutoff * mpmath.log(mpf(delta) / 2))
            step = mpf(8) / 9 * mpf(epsilon) / spread
            for scale, least in (
                (found.threshold, 2 / step),
                (found.query, 4 / step),
                (found.answer, spread * 9 / mpf(epsilon)),
            ):
                assert least <= mpf(scale * ROUNDED_UP) <= least * (1 + mpf(2) ** -44)


def answers_at(truth, monkeypatch, seed):
    monkeypatch.setattr(os, "urandom", seeded(seed))
    return NumericSparse(2.0**60, cutoff=1, privacy=PureDP(0.01)).ask(truth)


def test_answers_at_2_to_the_60_lie_on_one_grid(monkeypatch):
    """As floats, 2^60 + 128 would be rounded down to 2^60, and 2^60 + 129 up to 2^60 + 256."""
    seen = {truth: set() for truth in (2**60 + 128, 2**60 + 129)}
    for truth, values in seen.items():
        for seed in range(300):
            answer = answers_at(truth, monkeypatch, seed)
            if answer.value is not None:
                values.add(answer.value)
    first, second = seen.values()
    assert len(first) > 20
    # Near 2^60, floats are multiples of 128 or 256, and both answers lead to the same floats.
    assert all(value % 128 == 0 for value in first | second)
    assert len(first & second) > len(first) / 2


def test_whole_numbers_and_fractions_keep_their_value():
    big = 2**60
    stream = Sparse(float(big), cutoff=1, privacy=ONE)
    assert stream._truth(big + 1) == big + 1
    assert stream._truth(np.int64(big + 1)) == big + 1
    assert stream._truth(Fraction(1, 3)) == Fraction(1, 3)
    assert stream._truths(np.array([big + 1])).tolist() == [big + 1]
    with pytest.raises(ValueError, match="finite number"):
        stream.ask(10**400)
    with pytest.raises(ValueError, match="queries must be a one-dimensional array of numbers"):
        stream.ask_many(np.zeros(2, dtype=np.longdouble))


@pytest.mark.statistical
def test_unseeded_streams_have_the_closed_law(monkeypatch):
    """The probability of an answer above and the moments of a value agree with closed forms."""
    monkeypatch.setattr(os, "urandom", seeded(3))
    trials, gap = MINIMUM_SAMPLES, 2.0
    probability = (4 * math.exp(-gap / 4) - math.exp(-gap / 2)) / 6
    tops = sum(AboveThreshold(gap, privacy=ONE).ask(0).above for _ in range(trials))
    binomial_agrees(tops, trials, probability)
    many = [AboveThreshold(gap, privacy=ONE).ask_many(np.zeros(1))[0] for _ in range(trials)]
    binomial_agrees(sum(a.above for a in many), trials, probability)
    values = [
        NumericSparse(-1e9, cutoff=1, privacy=PureDP(9.0)).ask(5).value for _ in range(trials)
    ]
    errors = np.array(values) - 5
    mean_agrees(errors, 0.0)
    mean_agrees(errors**2, 2.0)


def test_arrays_and_lists_are_searched_alike():
    truths = [int(x) for x in np.where(np.arange(1000) % 97 == 3, 10**9, -(10**9))]
    for queries in (truths, np.array(truths)):
        stream = Sparse(0.0, cutoff=100, privacy=ONE, adjacency=Adjacency.ADD_REMOVE)
        assert [a.above for a in stream.ask_many(queries)] == [t > 0 for t in truths]


# Constructions: true answers are exact fractions, and choices are exact


APPROX = ApproxDP(1.0, 1e-6)


def fractions_of(values, counts):
    pairs = zip(values.tolist(), counts.tolist(), strict=True)
    return sum((Fraction(value) * count for value, count in pairs), start=Fraction(0))


def check_products_are_exact(product):
    rng = np.random.default_rng(0)
    for size in (1, 5, 200):
        counts = rng.integers(0, 10**8, size)
        for values in (rng.random(size), np.ldexp(rng.random(size), -rng.integers(0, 900, size))):
            assert product(values, counts) == fractions_of(values, counts)
    assert product(np.array([5e-324, 1.0, 0.0]), np.array([3, 2**35, 7])) == (
        3 * Fraction(5e-324) + 2**35
    )


def test_sums_of_float_values_are_exact_and_float64_is_caught():
    check_products_are_exact(exact_product)
    with pytest.raises(AssertionError):
        check_products_are_exact(lambda values, counts: Fraction(float(values @ counts)))
    with pytest.raises(ValueError, match="2\\^36"):
        exact_product(np.ones(1), np.array([MAX_RECORDS]))


def test_queries_sum_exactly():
    dense = DenseQuery(np.array([0.1, 0.7, 1.0]))
    tally = dense.tally(np.array([0] * 10 + [1] * 3 + [2]))
    assert dense.exact_total(tally) == 10 * Fraction(0.1) + 3 * Fraction(0.7) + 1
    assert float(dense.exact_total(tally)) == pytest.approx(dense.total(tally), rel=1e-15)
    sparse = SparseQuery.from_mapping({"a": 0.1, "b": 1.0, "absent": 0.3})
    assert sparse.exact_total(sparse.tally(["a", "a", "b", "c"])) == 2 * Fraction(0.1) + 1
    with pytest.raises(ValueError, match="histogram with one count"):
        dense.exact_total(np.ones(2, dtype=int))
    with pytest.raises(ValueError, match="counts by element"):
        sparse.exact_total([1])


def test_truths_of_a_class_are_exact():
    rng = np.random.default_rng(1)
    records, n, parities = rng.integers(0, 16, 999), 1001, AllParities(4)
    listed = EnumeratedQueries([parities.query(i) for i in range(16)])
    first, second = parities.exact_truths(records, n), listed.exact_truths(records, n)
    for i in range(16):
        signs = np.bitwise_count(records & i) % 2 == 0
        assert first[i] == second[i] == Fraction(int(signs.sum()), n)
    np.testing.assert_allclose(first.near(), parities.truths(records, n), rtol=1e-15)


def check_choices_see_exact_scores(choose):
    """The score 2^60 + 129 is chosen e times as often as 2^60 + 128.

    Neighbouring floats of this size differ by 256.
    """
    scores = [2**60 + 128, 2**60 + 129]
    entropy, picks = seeded(3), 0
    for _ in range(1000):
        picks += choose(scores, entropy)
    binomial_agrees(picks, 1000, math.e / (1 + math.e))


@pytest.mark.statistical
def test_choices_see_exact_scores_and_floats_are_caught():
    near = np.array([2.0**60, 2.0**60])
    check_choices_see_exact_scores(
        lambda scores, entropy: exact_argmax(
            near, np.full(2, 256.0), scores.__getitem__, 1.0, entropy
        )
    )
    with pytest.raises(AssertionError):
        check_choices_see_exact_scores(lambda _, entropy: noisy_argmax(near, 1.0, entropy))


def check_the_filter_changes_no_choice():
    rng = np.random.default_rng(2)
    for size, spread in ((2, 1.0), (50, 30.0), (3000, 1e-3)):
        scores = rng.random(size) * spread
        errors = np.full(size, 1e-7 * spread)
        moved = scores + errors * rng.uniform(-1, 1, size)
        for seed in range(40):
            given = (moved.tolist().__getitem__, 1.0, seeded(seed))
            found = exact_argmax(scores, errors, *given)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(scalar, "_by_floats", undecided)
                plain = exact_argmax(scores, errors, *given[:2], seeded(seed))
            assert found == plain


def undecided(*arguments):
    del arguments
    raise Undecided


def test_the_filter_changes_no_choice(monkeypatch):
    check_the_filter_changes_no_choice()
    right = scalar.near_log
    # The planted defect is an error of up to 0.3 in the logarithms.
    monkeypatch.setattr(scalar, "near_log", lambda x: right(x) + 0.3 * np.sin(100 * right(x)))
    with pytest.raises(AssertionError):
        check_the_filter_changes_no_choice()


def test_the_filter_decides_nearly_all_choices(monkeypatch):
    monkeypatch.setattr(scalar, "exponentials", None)
    scores = np.random.default_rng(0).random(10_000)
    for seed in range(50):
        noisy_argmax(scores, 0.1, seeded(seed))


def construction():
    return IterativeConstruction(
        MultiplicativeWeights(4), AllParities(2), n=400_000, privacy=APPROX
    )


@pytest.mark.statistical
def test_choices_follow_the_exponential_mechanism():
    run = construction()
    truths = run.distinguisher.exact_truths(np.array([0] * 6 + [1, 2, 3, 3]), 10)
    start = run.rule.start(run.alpha / 2)
    noise = ExactNoise()
    picks = [
        run.distinguisher.choose(truths, start, epsilon=3.0, n=10, noise=noise) for _ in range(4000)
    ]
    estimates = run.distinguisher.estimates(start)
    gaps = np.array([float(abs(truths[i] - Fraction(float(estimates[i])))) for i in range(4)])
    weights = np.exp(3.0 * 10 / 2 * gaps)
    for i, probability in enumerate(weights / weights.sum()):
        binomial_agrees(picks.count(i), 4000, float(probability), level=LEVEL / 4)


def test_answers_lie_on_a_public_grid():
    run = construction()
    records = np.repeat(np.array([0, 0, 0, 1, 3], dtype=np.int8), run.n // 5)
    unit = 2.0 ** math.ceil(math.log2(1024 / run.answer_scale))
    release = run.release(records)
    assert release.guarantee.arithmetic == DECIDED_ARITHMETIC
    for _, answer in release.exchanges:
        assert (answer.value * unit).is_integer()


def test_online_comparisons_are_asked_exact_differences(monkeypatch):
    n = 400_000
    online = OnlineConstruction(
        MultiplicativeWeights(4), n=n, queries=5, privacy=APPROX,
        records=np.repeat(np.array([0, 0, 0, 1, 3], dtype=np.int8), n // 5),
    )  # fmt: skip
    assert online.guarantee.arithmetic == DECIDED_ARITHMETIC
    asked, real = [], online._comparisons.ask

    def ask(truth):
        asked.append(truth)
        return real(truth)

    monkeypatch.setattr(online._comparisons, "ask", ask)
    query = DenseQuery(np.array([0.1, 0.2, 0.3, 0.4]))
    estimate = online.hypothesis.evaluate(query)
    online.ask(query)
    truth = (3 * Fraction(0.1) + Fraction(0.2) + Fraction(0.4)) / 5
    assert asked[0] == truth - Fraction(estimate)
    assert all(isinstance(value, Fraction) for value in asked)
    assert asked[1:] in ([], [-asked[0]])


class OwnTruths:
    """Exact true answers in a class of the user's own."""

    def __init__(self, truths):
        self._truths, self.n = truths, truths.n

    def __getitem__(self, index):
        return self._truths[index]

    def near(self):
        return self._truths.near()


@pytest.mark.parametrize("own", [False, True])
def test_an_unseeded_run_chooses_exactly_whatever_holds_the_true_answers(own, monkeypatch):
    exact_truths, exact_argmax = EnumeratedQueries.exact_truths, ExactNoise.exact_argmax
    chosen = []
    if own:
        monkeypatch.setattr(
            EnumeratedQueries, "exact_truths", lambda *given: OwnTruths(exact_truths(*given))
        )
    monkeypatch.setattr(
        ExactNoise, "exact_argmax", lambda *given: chosen.append(1) or exact_argmax(*given)
    )
    queries = EnumeratedQueries([DenseQuery(row) for row in np.eye(4)])
    run = IterativeConstruction(MultiplicativeWeights(4), queries, n=400_000, privacy=APPROX)
    run.release(np.repeat([0, 1, 2, 3], 100_000))
    assert chosen
