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
    MultiplicativeWeights,
    OnlineConstruction,
)
from geomdp.mechanisms.interactive.sparse_vector import (
    ROUNDED_UP,
    AboveThreshold,
    NumericSparse,
    Sparse,
)
from geomdp.noise import scalar
from geomdp.noise.rounding import Undecided
from geomdp.noise.scalar import ExactNoise, exact_argmax
from geomdp.privacy import ApproxDP, Ledger, PureDP
from geomdp.privacy.guarantees import DECIDED_ARITHMETIC
from geomdp.workloads import DenseQuery, SparseQuery
from geomdp.workloads.base import MAX_RECORDS, exact_product
from tests.noise.exact.reference import seeded
from tests.stats import binomial_agrees

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


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_objects_that_hold_noise_or_a_budget_cannot_be_copied(name, copied):
    if (name, copied) != ("ledger", copy.copy):  # which shares the budget
        with pytest.raises(TypeError, match=None if name == "ledger" else "cannot be copied"):
            copied(MAKE[name]())


def in_child(action, queue):
    try:
        queue.put(action())
    except RuntimeError as error:
        queue.put(str(error))


@pytest.mark.parametrize("name", MAKE)
def test_a_forked_child_gets_no_noise(name):
    made = MAKE[name]()
    actions = {
        "online": lambda: made.ask_truth(None, 0.5),
        "noise": lambda: made.laplace(0, 1.0),
        "ledger": lambda: made.spends(),
    }
    context = multiprocessing.get_context("fork")
    queue, action = context.Queue(), actions.get(name, lambda: made.ask(0))
    child = context.Process(target=in_child, args=(action, queue), daemon=True)
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


def test_answers_at_2_to_the_60_lie_on_one_grid(monkeypatch):
    """As floats, 2^60 + 128 would be rounded down to 2^60, and 2^60 + 129 up to 2^60 + 256."""
    seen = {truth: set() for truth in (2**60 + 128, 2**60 + 129)}
    for truth, values in seen.items():
        for seed in range(300):
            monkeypatch.setattr(os, "urandom", seeded(seed))
            values.add(NumericSparse(2.0**60, cutoff=1, privacy=PureDP(0.01)).ask(truth).value)
    first, second = (values - {None} for values in seen.values())
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
    for bad in (np.zeros(2, dtype=np.longdouble), np.array([0.0, math.nan]), np.array([["1"]])):
        with pytest.raises(ValueError, match="one-dimensional array of finite numbers"):
            stream.ask_many(bad)
    assert stream.transcript == ()
    assert stream.guarantee.arithmetic == DECIDED_ARITHMETIC


# Constructions: true answers are exact fractions, and choices are exact


APPROX = ApproxDP(1.0, 1e-6)


def fractions_of(values, counts):
    pairs = zip(values.tolist(), counts.tolist(), strict=True)
    return sum((Fraction(value) * count for value, count in pairs), start=Fraction(0))


def test_sums_of_float_values_are_exact():
    rng = np.random.default_rng(0)
    for size in (1, 5, 200):
        counts = rng.integers(0, 10**8, size)
        for values in (rng.random(size), np.ldexp(rng.random(size), -rng.integers(0, 900, size))):
            assert exact_product(values, counts) == fractions_of(values, counts)
    values, counts = np.array([5e-324, 1.0, 0.0]), np.array([3, 2**35, 7])
    assert exact_product(values, counts) == fractions_of(values, counts)
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


@pytest.mark.statistical
def test_choices_see_exact_scores():
    """The score 2^60 + 129 is chosen e times as often as 2^60 + 128; as floats they are equal."""
    scores, near, entropy = [2**60 + 128, 2**60 + 129], np.full(2, 2.0**60), seeded(3)
    given = (near, np.full(2, 256.0), scores.__getitem__, 1.0, entropy)
    picks = sum(exact_argmax(*given) for _ in range(1000))
    binomial_agrees(picks, 1000, math.e / (1 + math.e))


def undecided(*arguments):
    del arguments
    raise Undecided


def test_the_filter_changes_no_choice():
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
