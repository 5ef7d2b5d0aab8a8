"""Sparse vector without a seed: exact true answers, proved scales, and refused copies."""

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
from geomdp.mechanisms import MultiplicativeWeights
from geomdp.mechanisms.interactive.online import OnlineConstruction
from geomdp.mechanisms.interactive.sparse_vector import (
    ROUNDED_UP,
    AboveThreshold,
    NumericSparse,
    Sparse,
)
from geomdp.noise.scalar import ExactNoise
from geomdp.privacy import Adjacency, ApproxDP, Ledger, PureDP
from geomdp.privacy.guarantees import DECIDED_ARITHMETIC
from tests.noise.exact.reference import seeded
from tests.stats import binomial_agrees, mean_agrees

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
    trials, gap = 1500, 2.0
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
