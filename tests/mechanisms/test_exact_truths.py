"""Interactive runs without a seed compute true answers as exact fractions and choose exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from geomdp.mechanisms import (
    AllParities,
    IterativeConstruction,
    MultiplicativeWeights,
    OnlineConstruction,
)
from geomdp.mechanisms.interactive.iterative import EnumeratedQueries
from geomdp.noise import scalar
from geomdp.noise.rounding import Undecided
from geomdp.noise.scalar import ExactNoise, exact_argmax, noisy_argmax
from geomdp.privacy import ApproxDP
from geomdp.privacy.guarantees import DECIDED_ARITHMETIC
from geomdp.workloads import DenseQuery, SparseQuery
from geomdp.workloads.base import MAX_RECORDS, exact_product
from tests.noise.exact.reference import seeded
from tests.stats import LEVEL, binomial_agrees, ks_same

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
    for _ in range(3000):
        picks += choose(scores, entropy)
    binomial_agrees(picks, 3000, math.e / (1 + math.e))


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


@pytest.mark.statistical
def test_unseeded_runs_have_the_law_of_seeded_ones():
    run = construction()
    records = np.repeat(np.array([0, 0, 0, 1, 3], dtype=np.int8), run.n // 5)
    rng = np.random.default_rng(0)
    exact = [run.release(records).exchanges[0] for _ in range(150)]
    others = [run.release(records, rng=rng).exchanges[0] for _ in range(600)]
    ks_same([answer.value for _, answer in exact], [answer.value for _, answer in others])
    assert run.release(records).guarantee.arithmetic == DECIDED_ARITHMETIC


def test_answers_lie_on_a_public_grid():
    run = construction()
    records = np.repeat(np.array([0, 0, 0, 1, 3], dtype=np.int8), run.n // 5)
    unit = 2.0 ** math.ceil(math.log2(1024 / run.answer_scale))
    for _, answer in run.release(records).exchanges:
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
