"""Each test plants one defect that would break the guarantee, and a check must fail.

Every check passes on the library as it is and fails on the library with its defect.
"""

from __future__ import annotations

import os
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from flint import arb, ctx

from geomdp.bodies import Ball, Elliptope, LpBall, SimplexDifference, SymmetrisedBox, TableMoments
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.noise import (
    ConeNoise,
    GaussianNoise,
    KNormNoise,
    LaplaceNoise,
    PairedNoise,
    gaussian,
    rounding,
)
from geomdp.noise.points import linear_map
from geomdp.noise.rounding import (
    WORD_BITS,
    Draw,
    Rounded,
    UniformBits,
    exact_numbers,
    nearest_multiples,
    refined,
)
from tests.noise.exact.reference import REFERENCE_BITS, Reference, floats, nearest, seeded
from tests.noise.exact.test_uniforms import Scripted
from tests.stats import ks_uniform


def knorm(body):
    return KNormNoise(body, 0.7, ExactSampler(body))


# Defect: bits are drawn again when the precision grows.


class RedrawnBits(UniformBits):
    def words(self, first, last, count):
        if len(self._words) < count:
            self._words = []
        return super().words(first, last, count)


def check_refinement_keeps_the_bits():
    """On a grid that is too fine for the first precision, the result is the same draw, rounded."""
    noise = LaplaceNoise(3, 2.0)
    with mpmath.workprec(REFERENCE_BITS):
        expected = nearest([2 * x for x in Reference(seeded(1)).laplaces(3)], 300)
    assert Rounded.of(noise, 300).draw(seeded(1)) == expected


def test_redrawn_bits_are_caught(monkeypatch):
    check_refinement_keeps_the_bits()
    monkeypatch.setattr(rounding, "UniformBits", RedrawnBits)
    with pytest.raises(AssertionError):
        check_refinement_keeps_the_bits()


# Defect: the middle of a ball is rounded half to even, also if the ball contains the midpoint of
# two grid points.


def rounded_middles(values, grid):
    middles = [value.mid().fmpq() for value in values]
    return [round(Fraction(int(x.p), int(x.q)) * Fraction(2) ** grid) for x in middles]


def check_midpoints_are_decided_by_later_bits(round_values):
    """U is within 2^-124 of 1/2, so U, U + 1 and U + 2 are near midpoints between whole numbers."""
    ones = (1 << WORD_BITS) - 1
    above = (1 << (WORD_BITS - 1), 0, 1 << (WORD_BITS - 1), 7)
    below = ((1 << (WORD_BITS - 1)) - 1, ones, 1, 7)
    for words, expected in ((above, [1, 2, 3]), (below, [0, 1, 2])):
        found = refined(
            lambda draw: round_values([(u := draw.uniform()), u + 1, u + 2], 0), Scripted(*words)
        )
        assert found == expected


def test_rounding_half_to_even_in_a_box_is_caught():
    check_midpoints_are_decided_by_later_bits(nearest_multiples)
    with pytest.raises(AssertionError):
        check_midpoints_are_decided_by_later_bits(rounded_middles)


# Defect: a linear map is computed in float64 before the rounding.


def float_map(matrix):
    dense = matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)
    return lambda vector: [arb(x) for x in (dense @ [float(v) for v in vector]).tolist()]


def check_maps_keep_every_bit(build):
    """Images of 100-bit numbers contain the exact images and have radii below 2^-200."""
    matrix = np.array([[0.1, 0.3, 0.0], [1e-3, 0.0, 2.0**40]])
    numbers = [Fraction(2**100 + 1, 2**97), Fraction(-(2**99) + 5, 2**98), Fraction(3, 2**90)]
    with ctx.workprec(300):
        vector = [arb(x.numerator) / x.denominator for x in numbers]
        for form in (matrix, sp.csr_array(matrix)):
            images = build(form)(vector)
            for row, image in zip(matrix, images, strict=True):
                exact = sum(Fraction(a) * x for a, x in zip(row.tolist(), numbers, strict=True))
                assert image.contains(arb(exact.numerator) / exact.denominator)
                assert image.rad() < 2.0**-200


def test_a_map_in_float64_is_caught():
    check_maps_keep_every_bit(linear_map)
    with pytest.raises(AssertionError):
        check_maps_keep_every_bit(float_map)


def check_mapped_noise_is_rounded_once():
    """The noise is 5 g (0.6, 0.8) for Gaussian g, on a grid that is too fine for float64."""
    noise = GaussianNoise(np.array([[0.6], [0.8]]), 5.0)
    with mpmath.workprec(REFERENCE_BITS):
        (value,) = Reference(seeded(3)).gaussians(1)
        entries = [mpmath.mpf(entry) * 5 * value for entry in (0.6, 0.8)]
        expected = nearest(entries, 80)
    assert Rounded.of(noise, 80).draw(seeded(3)) == expected


def test_a_float64_map_inside_a_noise_is_caught(monkeypatch):
    check_mapped_noise_is_rounded_once()
    monkeypatch.setattr(gaussian, "linear_map", float_map)
    with pytest.raises(AssertionError):
        check_mapped_noise_is_rounded_once()


# Defect: the bits come from a generator that is not cryptographic.


class GeneratorBits(UniformBits):
    def __init__(self, entropy=None):
        generator = np.random.Generator(np.random.PCG64())
        super().__init__(generator.bytes if entropy is None else entropy)


def check_noise_comes_from_the_operating_system(patch):
    for seed in (4, 5):
        given = seeded(seed)
        patch.setattr(os, "urandom", given)
        noise = LaplaceNoise(4, 1.0)
        assert Rounded.of(noise, 60).draw() == Rounded.of(noise, 60).draw(seeded(seed))


def test_a_generator_in_place_of_the_operating_system_is_caught(monkeypatch):
    check_noise_comes_from_the_operating_system(monkeypatch)
    monkeypatch.setattr(rounding, "UniformBits", GeneratorBits)
    with pytest.raises(AssertionError):
        check_noise_comes_from_the_operating_system(monkeypatch)


# Defect: one uniform number is used twice.


class RecordedBits(UniformBits):
    """Bits that note which numbers were read."""

    def __init__(self, entropy=None):
        super().__init__(entropy)
        self.reads: list[range] = []

    def words(self, first, last, count):
        self.reads.append(range(first, last))
        return super().words(first, last, count)


class RepeatingDraw(Draw):
    """A draw that does not move on after a single number, so the next read gives it again."""

    def uniform(self):
        value = super().uniform()
        self._next -= 1
        return value


MANY = [
    LaplaceNoise(3, 1.0),
    GaussianNoise(np.eye(3), 1.0),
    knorm(Ball(3, 1.0)),
    knorm(LpBall(3, 3)),
    knorm(SymmetrisedBox(np.ones(3))),
    knorm(SimplexDifference(np.eye(4))),
    ConeNoise(Elliptope(4), 1.0, np.zeros(6)),
    PairedNoise(TableMoments([2, 3]), 1.0, sp.csr_array(np.eye(5))),
]


def check_every_number_is_read_once(draw_class):
    for noise in MANY:
        bits = RecordedBits(seeded(6))
        with ctx.workprec(2 * WORD_BITS):
            exact_numbers(noise).balls(draw_class(bits, 2))
        numbers = [i for read in bits.reads for i in read]
        assert numbers == list(range(len(numbers)))


def test_a_number_read_twice_is_caught():
    check_every_number_is_read_once(Draw)
    with pytest.raises(AssertionError):
        check_every_number_is_read_once(RepeatingDraw)


def gaussians_of_one_number(count, draw):
    """Gaussian numbers whose length and angle come from the same uniform number."""
    numbers = draw.uniforms(2 * count)[:count]
    return [(-2 * u.log()).sqrt() * (2 * u).sin_cos_pi()[0] for u in numbers]


def check_gaussian_law():
    vector = exact_numbers(GaussianNoise(np.eye(2), 1.0)).balls
    ks_uniform(scipy.stats.norm.cdf(floats(vector, 1000, seed=7).ravel()))


@pytest.mark.statistical
def test_one_number_for_two_purposes_is_caught(monkeypatch):
    check_gaussian_law()
    monkeypatch.setattr(gaussian, "gaussians", gaussians_of_one_number)
    with pytest.raises(AssertionError):
        check_gaussian_law()
