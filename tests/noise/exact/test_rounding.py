"""Rounding: uniform bits, each read once, values at 400 bits, midpoints and precision."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from geomdp.bodies import (
    Ball,
    Box,
    Elliptope,
    LpBall,
    SimplexDifference,
    SymmetrisedBox,
    TableMoments,
)
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.noise import (
    ConeNoise,
    GaussianNoise,
    KNormNoise,
    LaplaceNoise,
    PairedNoise,
)
from geomdp.noise.points import linear_map
from geomdp.noise.rounding import (
    BLOCK,
    LAST_WORDS,
    WORD_BITS,
    Draw,
    PrecisionExhausted,
    Rounded,
    Undecided,
    UniformBits,
    exact_numbers,
    nearest_multiples,
    refined,
)
from tests.noise.exact.reference import REFERENCE_BITS, Reference, Scripted, nearest, seeded
from tests.stats import LEVEL

# Uniform numbers: new bits are appended, known bits never change


def test_more_words_are_appended_to_the_known_ones():
    bits = UniformBits(seeded(1))
    short = bits.words(0, 1000, 2)
    long = bits.words(0, 1000, 6)
    assert long[:2] == short
    assert bits.words(300, 310, 3) == [words[300:310] for words in long[:3]]
    # More numbers are appended, too, after an evaluation that read more words of fewer numbers.
    assert [words[:1000] for words in bits.words(0, 1000 + 2 * BLOCK, 2)] == short
    everything = {word for words in long for word in words}
    assert len(everything) == 6000
    assert 0 <= min(everything) <= max(everything) < 1 << WORD_BITS


def test_intervals_are_the_words_read():
    bits = UniformBits(Scripted(1 << (WORD_BITS - 1), 0, 3, 5))
    with ctx.workprec(400):
        value, step = Draw(bits, 2).uniform(), arb(2) ** -124
        assert value.contains(arb(0.5))
        assert value.contains(0.5 + step)
        # The radius of a ball is rounded up, by a relative 2^-29 at most.
        assert not value.contains(0.5 - step / 1000)
        assert not value.contains(0.5 + 1.001 * step)


@pytest.mark.statistical
def test_order_is_a_uniform_permutation():
    bits = UniformBits(seeded(5))
    draw = Draw(bits, 2)
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(24_000):
        found = tuple(draw.order(4))
        counts[found] = counts.get(found, 0) + 1
    assert len(counts) == 24
    assert scipy.stats.chisquare(list(counts.values())).pvalue > LEVEL


def test_order_of_equal_prefixes_is_undecided():
    data = np.full(BLOCK, 12345 << 2, dtype="<u8").tobytes()
    with pytest.raises(Undecided):
        Draw(UniformBits(lambda count: data[:count]), 2).order(2)


# Rounding to a grid


#: A matrix with dyadic entries, like the matrices of tables of binary columns.
TABLES = sp.csr_array(np.array([[1, -1, 0], [0.25, 0.5, -0.25], [0, 0, 4.0]]))


def laplace(reference):
    return [mpmath.mpf(3.7) * x for x in reference.laplaces(4)]


def gaussian_values(reference):
    return [mpmath.mpf(0.3) * x for x in reference.gaussians(3)]


def mapped(reference):
    (value,) = reference.gaussians(1)
    return [mpmath.mpf(entry) * 5 * value for entry in (0.6, 0.8)]


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


def knorm(body):
    return KNormNoise(body, 0.7, ExactSampler(body))


#: For each name, a noise, and a function that computes its value from a `Reference` by mpmath.
CASES = {
    "laplace": (LaplaceNoise(4, 3.7), laplace),
    "gaussian": (GaussianNoise(np.eye(3), 0.3), gaussian_values),
    "mapped": (GaussianNoise(np.array([[0.6], [0.8]]), 5.0), mapped),
    "ball": (knorm(Ball(3, 2.0)), ball),
    "cone": (ConeNoise(Elliptope(3), 0.45, np.zeros(3), TABLES), cone),
}


@pytest.mark.parametrize("grid", [-2, 0, 10, 100, 120, 300])
@pytest.mark.parametrize("name", sorted(CASES))
def test_rounded_noise_is_the_rounding_of_the_value_at_400_bits(name, grid):
    """On the finest grid, the bits of the first evaluation do not suffice, so bits are appended."""
    noise, evaluate = CASES[name]
    before = ctx.prec
    with mpmath.workprec(REFERENCE_BITS):
        for seed in range(20):
            expected = nearest(evaluate(Reference(seeded(seed))), grid)
            assert Rounded.of(noise, grid).draw(seeded(seed)) == expected
    assert ctx.prec == before


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


def test_a_coordinate_on_a_midpoint_ends_in_an_error():
    """U - U + 1/2 is a midpoint for every U, but ball arithmetic shows this at no precision."""

    def on_midpoint(draw):
        value = draw.uniform()
        return nearest_multiples([value - value + 0.5], 0)

    with pytest.raises(PrecisionExhausted, match=f"{LAST_WORDS * WORD_BITS} bits"):
        refined(on_midpoint, seeded(0))
    with pytest.raises(PrecisionExhausted):  # a grid beyond the largest precision
        Rounded.of(LaplaceNoise(1, 1.0), 2 * LAST_WORDS * WORD_BITS).draw(seeded(0))


def test_flat_axes_stay_exact():
    """The second coordinate is constant on the box, so the noise on it is exactly 0."""
    body = Box([-1.0, 0.5], [1.0, 0.5])
    noise = ConeNoise(body, 1.0, np.array([0.0, 0.5]))
    assert Rounded.of(noise, 3).draw(seeded(1))[1] == 0


def test_midpoints_are_decided_by_later_bits():
    """U is within 2^-124 of 1/2, so U, U + 1 and U + 2 are near midpoints between whole numbers."""
    ones = (1 << WORD_BITS) - 1
    above = (1 << (WORD_BITS - 1), 0, 1 << (WORD_BITS - 1), 7)
    below = ((1 << (WORD_BITS - 1)) - 1, ones, 1, 7)
    for words, expected in ((above, [1, 2, 3]), (below, [0, 1, 2])):
        found = refined(
            lambda draw: nearest_multiples([(u := draw.uniform()), u + 1, u + 2], 0),
            Scripted(*words),
        )
        assert found == expected


def test_linear_maps_keep_every_bit():
    """Images of 100-bit numbers contain the exact images and have radii below 2^-200."""
    matrix = np.array([[0.1, 0.3, 0.0], [1e-3, 0.0, 2.0**40]])
    numbers = [Fraction(2**100 + 1, 2**97), Fraction(-(2**99) + 5, 2**98), Fraction(3, 2**90)]
    with ctx.workprec(300):
        vector = [arb(x.numerator) / x.denominator for x in numbers]
        for form in (matrix, sp.csr_array(matrix)):
            images = linear_map(form)(vector)
            for row, image in zip(matrix, images, strict=True):
                exact = sum(Fraction(a) * x for a, x in zip(row.tolist(), numbers, strict=True))
                assert image.contains(arb(exact.numerator) / exact.denominator)
                assert image.rad() < 2.0**-200


class RecordedBits(UniformBits):
    """Bits that note which numbers were read."""

    def __init__(self, entropy=None):
        super().__init__(entropy)
        self.reads: list[range] = []

    def words(self, first, last, count):
        self.reads.append(range(first, last))
        return super().words(first, last, count)


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


def test_every_number_is_read_once():
    for noise in MANY:
        bits = RecordedBits(seeded(6))
        with ctx.workprec(2 * WORD_BITS):
            exact_numbers(noise).balls(Draw(bits, 2))
        numbers = [i for read in bits.reads for i in read]
        assert numbers == list(range(len(numbers)))
