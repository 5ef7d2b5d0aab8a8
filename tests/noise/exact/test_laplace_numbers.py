"""Exact comparisons and values of single Laplace variables."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from geomdp.noise import scalar
from geomdp.noise.rounding import Undecided
from geomdp.noise.scalar import (
    BLOCK,
    GeneratorNoise,
    LaplaceNumbers,
    NoisyThreshold,
    NoisyValues,
    noisy_argmax,
    rounded_value,
)
from tests.noise.exact.reference import REFERENCE_BITS, Reference, nearest, seeded
from tests.stats import binomial_agrees


def reference(seed):
    with mpmath.workprec(REFERENCE_BITS):
        return Reference(seeded(seed)).laplaces(BLOCK)


def exactly(value):
    return mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else mpf(value)


VALUES = [0, 3, -7.25, 2**60 + 129, Fraction(1, 3), Fraction(-(10**20), 7), 1e300, -1e-300, True]


def test_comparisons_are_those_of_the_real_numbers():
    """Comparisons agree with mpmath at 400 bits, for values of different sizes and types."""
    expected = reference(1)
    numbers = LaplaceNumbers(seeded(1)).many(BLOCK)
    with mpmath.workprec(REFERENCE_BITS):
        for scale, own in ((1.0, 2.0), (1e-3, 1e6), (2.0**70, 0.3), (1e-200, 1e-200)):
            for i, value in enumerate(VALUES * 4):
                for shift in (0.0, float(value), float(value) * (1 + 2**-52)):
                    threshold = NoisyThreshold(shift, own, numbers[i + 10])
                    gap = exactly(value) - mpf(shift)
                    gap += mpf(scale) * expected[i] - mpf(own) * expected[i + 10]
                    assert threshold.reached_by(value, scale, numbers[i]) == (gap >= 0)


def test_what_float64_cannot_tell_is_decided_by_balls():
    """T + b Z is compared with x + b Z for the same Z, so the result is the order of T and x."""
    number = LaplaceNumbers(seeded(3)).one()
    big = 2**60
    for scale in (1.0, 1e10):
        threshold = NoisyThreshold(float(big), scale, number)
        assert not threshold.reached_by(big - 1, scale, number)
        assert threshold.reached_by(big + 1, scale, number)
        assert not threshold.reached_by(big - Fraction(1, 10**25), scale, number)


def test_many_values_are_compared_as_one_at_a_time():
    rng = np.random.default_rng(0)
    values = [int(x) for x in rng.integers(-5, 5, 300)]
    near = np.array(values, dtype=float)
    many = NoisyValues(values, near, 2.0, LaplaceNumbers(seeded(4)))
    numbers = LaplaceNumbers(seeded(4)).many(300)
    threshold = NoisyThreshold(4.0, 1.0, LaplaceNumbers(seeded(5)).one())
    single = [threshold.reached_by(v, 2.0, z) for v, z in zip(values, numbers, strict=True)]
    found, begin = [], 0
    while (first := many.first_reaching(begin, threshold)) < 300:
        found.append(first)
        begin = first + 1
    assert found == np.flatnonzero(single).tolist()


def test_a_simulated_search_ends_with_the_list():
    values = GeneratorNoise(0).values([0.0, 2.0, 0.0, 2.0, 0.0, 0.0], 1e-9)
    assert [values.first_reaching(begin, 1.0) for begin in range(7)] == [1, 1, 3, 3, 6, 6, 6]


@pytest.mark.parametrize("scale", [0.01, 1.0, 3.7e9])
def test_values_are_correctly_rounded(scale):
    expected = reference(6)
    numbers = LaplaceNumbers(seeded(6)).many(BLOCK)
    grid = math.ceil(-math.log2(scale / 1024))
    with mpmath.workprec(REFERENCE_BITS):
        for i, value in enumerate(VALUES[:6] * 3):
            (j,) = nearest([exactly(value) + mpf(scale) * expected[i]], grid)
            assert rounded_value(value, scale, numbers[i]) == float(
                Fraction(j) / Fraction(2) ** grid
            )


@pytest.mark.statistical
@pytest.mark.parametrize("by_balls", [False, True], ids=["as it is", "balls alone"])
def test_argmax_has_the_law_of_the_exponential_mechanism(by_balls, monkeypatch):
    if by_balls:
        monkeypatch.setattr(scalar, "_by_floats", undecided)
    entropy, scores = seeded(10), np.array([0.0, 1.0, -2.0])
    picks = np.array([noisy_argmax(scores, 2.0, entropy) for _ in range(6000)])
    weights = np.exp(scores / 2)
    for i, probability in enumerate(weights / weights.sum()):
        binomial_agrees(int((picks == i).sum()), 6000, float(probability), level=1e-6 / 3)


def undecided(*_):
    raise Undecided
