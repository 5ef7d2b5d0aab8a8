"""Rounding of noise: comparison with mpmath at 400 bits, midpoints, and the largest precision."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from geomdp.bodies import Ball, Box, Elliptope
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.noise import ConeNoise, GaussianNoise, KNormNoise, LaplaceNoise
from geomdp.noise.rounding import (
    LAST_WORDS,
    WORD_BITS,
    PrecisionExhausted,
    Rounded,
    Undecided,
    nearest_multiples,
    refined,
)
from tests.noise.exact.reference import REFERENCE_BITS, Reference, nearest, seeded
from tests.noise.exact.test_uniforms import Scripted

#: A matrix with dyadic entries, like the matrices of tables of binary columns.
TABLES = sp.csr_array(np.array([[1, -1, 0], [0.25, 0.5, -0.25], [0, 0, 4.0]]))


def laplace(reference):
    return [mpmath.mpf(3.7) * x for x in reference.laplaces(4)]


def gaussian(reference):
    return [mpmath.mpf(0.3) * x for x in reference.gaussians(3)]


def ball(reference):
    radius = reference.half_gamma(2 * 4) / mpmath.mpf(0.7)
    length = 2 * reference.uniforms(1)[0] ** (mpmath.mpf(1) / 3)
    vector = reference.gaussians(3)
    norm = mpmath.sqrt(mpmath.fsum(x * x for x in vector))
    return [radius * length * x / norm for x in vector]


def cone(reference):
    first, second = (reference.half_gamma(2 * 4) / mpmath.mpf(0.45) for _ in range(2))
    one, two = reference.correlations(3), reference.correlations(3)
    moved = [first * a - second * b for a, b in zip(one, two, strict=True)]
    return [
        mpmath.fsum(mpmath.mpf(entry) * x for entry, x in zip(row, moved, strict=True))
        for row in TABLES.toarray().tolist()
    ]


#: For each name, a noise, and a function that computes its value from a `Reference` by mpmath.
CASES = {
    "laplace": (LaplaceNoise(4, 3.7), laplace),
    "gaussian": (GaussianNoise(np.eye(3), 0.3), gaussian),
    "ball": (KNormNoise(Ball(3, 2.0), 0.7, ExactSampler(Ball(3, 2.0))), ball),
    "cone": (ConeNoise(Elliptope(3), 0.45, np.zeros(3), TABLES), cone),
}


@pytest.mark.parametrize("grid", [-2, 0, 10, 100, 120, 300])
@pytest.mark.parametrize("name", sorted(CASES))
def test_rounded_noise_is_the_rounding_of_the_value_at_400_bits(name, grid):
    """On the finest grid, the bits of the first evaluation do not suffice, so bits are appended."""
    noise, evaluate = CASES[name]
    with mpmath.workprec(REFERENCE_BITS):
        for seed in range(20):
            expected = nearest(evaluate(Reference(seeded(seed))), grid)
            assert Rounded.of(noise, grid).draw(seeded(seed)) == expected


@given(
    whole=st.integers(-(2**70), 2**70),
    grid=st.integers(-40, 40),
    offset=st.integers(-(2**30), 2**30),
    bits=st.integers(31, 200),
)
def test_rounding_near_midpoints_is_exact(whole, grid, offset, bits):
    """Values (whole + 1/2 + offset 2^-bits) 2^-grid are rounded; midpoints (offset 0) go up."""
    with mpmath.workprec(REFERENCE_BITS), ctx.workprec(REFERENCE_BITS):
        value = (whole + arb(0.5) + offset * arb(2) ** -bits) * arb(2) ** -grid
        exact = (mpmath.mpf(whole) + 0.5 + mpmath.mpf(offset) / mpmath.mpf(2) ** bits) / (
            mpmath.mpf(2) ** grid
        )
        assert nearest_multiples([value], grid) == nearest([exact], grid)


def test_a_ball_that_holds_a_midpoint_is_undecided():
    for middle in (-2.5, -0.5, 0.5, 1.5, 2.5):
        with pytest.raises(Undecided):
            nearest_multiples([arb(1), arb(middle, 2.0**-60)], 0)
    assert nearest_multiples([arb(0, 0.25), arb(1, 0.4375)], 0) == [0, 1]
    with pytest.raises(Undecided):
        nearest_multiples([arb("nan")], 0)


@pytest.mark.parametrize(("third", "expected"), [(0, 1), (1 << (WORD_BITS - 1), 1)])
def test_a_value_just_above_a_midpoint_is_rounded_up(third, expected):
    """The first 124 bits are equal to the bits of 1/2, so later bits decide."""
    entropy = Scripted(1 << (WORD_BITS - 1), 0, third, 1)
    assert refined(lambda draw: nearest_multiples([draw.uniform()], 0), entropy) == [expected]


def test_a_value_just_below_a_midpoint_is_rounded_down():
    ones = (1 << WORD_BITS) - 1
    entropy = Scripted((1 << (WORD_BITS - 1)) - 1, ones, ones, ones - 1)
    assert refined(lambda draw: nearest_multiples([draw.uniform()], 0), entropy) == [0]


def test_a_coordinate_on_a_midpoint_ends_in_an_error():
    """U - U + 1/2 is a midpoint for every U, but ball arithmetic shows this at no precision."""

    def on_midpoint(draw):
        value = draw.uniform()
        return nearest_multiples([value - value + 0.5], 0)

    with pytest.raises(PrecisionExhausted, match=f"{LAST_WORDS * WORD_BITS} bits"):
        refined(on_midpoint, seeded(0))


def test_a_grid_beyond_the_largest_precision_is_an_error():
    with pytest.raises(PrecisionExhausted):
        Rounded.of(LaplaceNoise(1, 1.0), 2 * LAST_WORDS * WORD_BITS).draw(seeded(0))


def test_flat_axes_stay_exact():
    """The second coordinate is constant on the box, so the noise on it is exactly 0."""
    body = Box([-1.0, 0.5], [1.0, 0.5])
    noise = ConeNoise(body, 1.0, np.array([0.0, 0.5]))
    assert Rounded.of(noise, 3).draw(seeded(1))[1] == 0


def test_the_working_precision_is_restored():
    before = ctx.prec
    Rounded.of(LaplaceNoise(1, 1.0), 10).draw()
    assert ctx.prec == before
