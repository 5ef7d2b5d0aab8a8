"""The float64 filter: its bounds hold, and it never changes a draw."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from flint import arb, ctx
from mpmath import mpf

from geomdp.bodies import Ball, Elliptope
from geomdp.mechanisms import Cone
from geomdp.noise import ConeNoise, LaplaceNoise, tables
from geomdp.noise.differences import near_cone
from geomdp.noise.gaussian import isotropic
from geomdp.noise.rounding import (
    FUNCTION_ERROR,
    WORD_BITS,
    Draw,
    NearVector,
    Numbers,
    Rounded,
    Undecided,
    UniformBits,
    exact_numbers,
    logarithm,
    near_gaussians,
    near_laplaces,
    nearest_by_floats,
    sine_cosine,
)
from geomdp.noise.scalar import EXPONENTIAL, GUMBEL, LAPLACE, RADIUS, _Block
from geomdp.noise.tables import TryShape
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import MarginalTables, Parities
from tests.noise.exact.reference import REFERENCE_BITS, Reference, Words, seeded
from tests.noise.exact.test_tables import exact_violation

TOP = 1 << WORD_BITS


KINDS = {"laplaces": near_laplaces, "gaussians": near_gaussians}


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_within_their_errors(kind):
    """Compare with mpmath, for random words and for extreme words such as 0 and the largest."""
    extreme = [0, 1, 2, 1000, 2**31, 2**45 + 1, TOP - 1, TOP - 2, TOP - 2**20, TOP // 2, TOP // 8]
    rng = np.random.default_rng(1)
    chosen = [int(w) for w in rng.choice(extreme, 200)]
    for scale in (1.0, 3.7e5):
        for given in ([], chosen):
            vector = KINDS[kind](200, scale)
            bits = UniformBits(Words(given))
            with np.errstate(all="ignore"):
                values, errors = vector.evaluate(bits.first_words(vector.count))
            with mpmath.workprec(REFERENCE_BITS):
                exact = getattr(Reference(Words(given)), kind)(200)
                for x, error, y in zip(values.tolist(), errors.tolist(), exact, strict=True):
                    certain = math.isfinite(x) and math.isfinite(error)
                    assert not certain or abs(x - mpf(scale) * y) <= error
            assert np.isfinite(errors).mean() > 0.5


@pytest.mark.parametrize("grid", [-3, 0, 7, 30, 45, 60, 200, 1100])
def test_the_filter_never_changes_a_draw(grid):
    for noise in (exact_numbers(LaplaceNoise(301, 5.0)), isotropic(301, 5.0)):
        plain, filtered = (Rounded([numbers], grid) for numbers in (Numbers(noise.balls), noise))
        for seed in range(5):
            assert filtered.draw(seeded(seed)) == plain.draw(seeded(seed))
        if grid == 7:  # float64 alone decides nearly all draws
            alone = Rounded([Numbers(None, noise.near)], grid)
            assert all(len(alone.draw(seeded(seed))) == 301 for seed in range(100))


def test_only_certain_roundings_are_decided():
    undecided = [(0.5, 0), (-0.5, 1e-30), (0.5 - 1e-9, 1e-8), (math.nextafter(0.5, 0), 1e-16)]
    undecided += [(3.0, math.nan), (3.0, math.inf), (math.nan, 0), (math.inf, 0), (2.0**52, 0)]
    with np.errstate(all="ignore"):
        for value, error in undecided:
            with pytest.raises(Undecided):
                nearest_by_floats(np.array([1.0, value]), np.array([0.0, error]), 0)
        clear = nearest_by_floats(np.array([0.25, -0.25, 0.75, 2.0**50]), np.full(4, 0.1), 0)
        assert clear == [0, 0, 1, 2**50]
        assert nearest_by_floats(np.array([0.3, -0.3]), np.zeros(2), 1) == [1, -1]


def test_first_words_are_those_of_balls():
    bits, other = UniformBits(seeded(3)), UniformBits(seeded(3))
    first = bits.first_words(500)
    assert [first.tolist()] == other.words(0, 500, 1)
    assert bits.words(0, 500, 3) == other.words(0, 500, 3)
    with pytest.raises(RuntimeError, match="must be called before any other word is read"):
        bits.first_words(1)
    with pytest.raises(OSError, match="gave 3 bytes"):
        UniformBits(lambda _: b"abc").first_words(2)


# Cone noise over elliptopes


EXACT_WORDS = 6


def cone(workload, adjacency):
    return Cone(workload, n=50, privacy=PureDP(1.0), adjacency=adjacency).noise


NOISES = {
    "order 2": ConeNoise(Elliptope(2), 1.0, np.zeros(1)),
    "order 7": ConeNoise(Elliptope(7), 0.3, np.zeros(21)),
    "mapped": ConeNoise(
        Elliptope(4), 2.0, np.zeros(6), sp.csr_array(np.arange(-6.0, 6).reshape(2, 6)), np.ones(2)
    ),
    "tables": cone(MarginalTables([2] * 9, 2), Adjacency.REPLACE_ONE),
    "tables, add/remove": cone(MarginalTables([2] * 4, 2), Adjacency.ADD_REMOVE),
    "parities": cone(Parities(5, 2), Adjacency.ADD_REMOVE),
}
#: Words (first bits of uniform numbers) that are so small or so large that errors grow.
EXTREME = [1, 2, 2**20, 2**40 + 1, TOP - 1, TOP - 2**20]


@pytest.fixture(params=NOISES)
def cone_noise(request):
    return NOISES[request.param]


def test_cone_values_are_within_their_errors(cone_noise):
    """Compare with ball arithmetic at 372 bits; for random words, error bounds are small."""
    near, vector = near_cone(cone_noise), exact_numbers(cone_noise).balls
    rng, largest = np.random.default_rng(0), 0.0
    for seed in range(4):
        given = rng.integers(0, 1 << WORD_BITS, near.count, dtype=np.uint64).tolist()
        if seed > 1:
            for place in rng.choice(near.count, max(1, near.count // 9), replace=False).tolist():
                given[place] = int(rng.choice(EXTREME))
        bits = UniformBits(Words(given))
        with np.errstate(all="ignore"):
            values, errors = near.evaluate(bits.first_words(near.count))
        with ctx.workprec(EXACT_WORDS * WORD_BITS):
            draw = Draw(bits, EXACT_WORDS)
            exact = vector(draw)
            assert draw._next == near.count
            for x, error, y in zip(values.tolist(), errors.tolist(), exact, strict=True):
                certain = math.isfinite(x) and math.isfinite(error)
                assert not certain or abs(arb(x) - y) <= error
        if seed < 2:
            largest = max(largest, float(errors.max()))
    assert largest < 1e-9 * float(np.sqrt(cone_noise.variances().max()))


@pytest.mark.parametrize("grid", [0, 9, 30, 45, 90])
def test_the_filter_never_changes_cone_noise(cone_noise, grid):
    numbers = exact_numbers(cone_noise)
    count = numbers.near.count
    # This filter reads the same words, but decides no draw.
    refusing = NearVector(count, lambda _: (np.zeros(count), np.full(count, math.inf)))
    plain = Rounded([Numbers(numbers.balls, refusing)], grid)
    for seed in range(3):
        assert Rounded([numbers], grid).draw(seeded(seed)) == plain.draw(seeded(seed))


def test_other_noises_have_no_filter():
    assert near_cone(ConeNoise(Ball(2, 1.0), 1.0, np.zeros(2))) is None
    assert near_cone(ConeNoise(Elliptope(3), 1.0, np.array([0.1, 0.0, 0.0]))) is None


@pytest.mark.parametrize("which", [0, 1])
def test_a_word_0_leaves_every_coordinate_open(which):
    # The word 0 makes the last row of one matrix NaN, and also the error bound of this matrix. The
    # map does not read this row. But it reads row 1, which has a large error because of the word 1.
    # The NaN stands for this error, too, so no error may be finite.
    noise = ConeNoise(
        Elliptope(6), 1.0, np.zeros(15), sp.csr_array(([1.0], ([0], [0])), shape=(1, 15))
    )
    near, start = near_cone(noise), 2 * (noise.effective_dimension + 1)
    places = tables.factor_places(6)
    start += which * places.count
    lengths = [radius for *_, radius, _ in places.pairs]
    words = np.random.default_rng(0).integers(1 << 20, 1 << 62, near.count).astype(np.uint64)
    words[start + lengths[0]], words[start + lengths[-1]] = 1, 0
    with np.errstate(all="ignore"):
        _, errors = near.evaluate(words)
    assert not np.isfinite(errors).any()


# Extreme numbers


#: First words (62 bits) of uniform numbers near 0, 1, 1/2 and midpoints between floats near 1.
WORDS = [
    *(2**k + j for k in (1, 20, 52, 53, 54, 60, 61) for j in (-1, 0, 1)),
    *(TOP - j * 2**9 for j in range(1, 9)),
    *(TOP - j * 2**8 + i for j in (1, 3, 5, 7) for i in (-1, 0, 1)),
    *(TOP - 2**k for k in (12, 20, 31, 32, 33, 45, 60)),
]


def within(values, errors, exact):
    """Assert |value - exact| <= error for all finite values and errors; return their number."""
    certain = 0
    for value, error, ball in zip(values, errors, exact, strict=True):
        if math.isfinite(value) and math.isfinite(error):
            assert abs(arb(value) - ball) <= error
            certain += 1
    return certain


@pytest.mark.parametrize("perturbation", [GUMBEL, EXPONENTIAL, LAPLACE])
def test_noise_of_choices_is_within_its_error(perturbation):
    """For Laplace noise ln(U / V), U and V are often close, so that their logarithms cancel."""
    given = [*WORDS, *WORDS[1:], WORDS[0]]
    count = len(given) if perturbation is not LAPLACE else len(WORDS)
    noise = perturbation.near(count)
    bits = UniformBits(Words(given))
    with np.errstate(all="ignore"):
        values, errors = noise.evaluate(bits.first_words(noise.count))
    with ctx.workprec(EXACT_WORDS * WORD_BITS):
        exact = perturbation.balls(count, Draw(bits, EXACT_WORDS))
        assert within(values.tolist(), errors.tolist(), exact) > count / 2


def test_float64_of_laplace_numbers_is_within_its_error():
    """The first words of U and V are equal, differ by 1, or are neighbours in the list `WORDS`."""
    near = [*WORDS, *WORDS, *(w + 1 for w in WORDS[:-1])]
    given = [*WORDS, *WORDS[1:], WORDS[0], *WORDS[:-1]]
    first = np.resize(near, 128).tolist()
    second = np.resize(given, 128).tolist()
    block = _Block(Words([*first, *second]))
    values = np.array(block.floats)
    with ctx.workprec(EXACT_WORDS * WORD_BITS):
        errors = 2.0**-52 * np.abs(values) + RADIUS
        certain = within(values.tolist(), errors.tolist(), block.balls(EXACT_WORDS))
    assert 64 < certain < 128


def test_leading_numbers_are_within_their_error():
    bits = UniformBits(Words([0, *WORDS]))
    values = Draw(bits, 1).leading(len(WORDS) + 1)
    exact = Draw(bits, EXACT_WORDS)
    with ctx.workprec(EXACT_WORDS * WORD_BITS):
        for value, ball in zip(values.tolist(), exact.uniforms(len(values)), strict=True):
            # The factor 1 + 2^-20 covers the radius of the ball.
            assert abs(arb(value) - ball) <= arb(2.0**-53 * value) + arb(2.0**-62) * (1 + 2.0**-20)


def test_functions_are_twice_as_exact_as_stated_next_to_their_breaks():
    """Many numbers are next to ends of ranges of the series, or to 1, where ln is near 0."""
    around = [1.0, math.sqrt(0.5), 2.0, 0.75, 2.0**-30, 2.0**-1000, 1e300]
    values = [x for y in around for x in (math.nextafter(y, 0), y, math.nextafter(y, math.inf))]
    turns = [x for k in range(1, 16) for y in [k / 16] for x in (math.nextafter(y, 0), y)]
    turns += [math.nextafter(k / 16, 1) for k in range(16)] + [0.0, 1.0, 2.0**-60]
    with ctx.workprec(200):
        for value, found in zip(values, logarithm(np.array(values)).tolist(), strict=True):
            exact = arb(value).log()
            assert abs(arb(found) - exact) <= abs(exact) * FUNCTION_ERROR / 2
        found = (part.tolist() for part in sine_cosine(np.array(turns)))
        for turn, sine, cosine in zip(turns, *found, strict=True):
            exact_sine, exact_cosine = (2 * arb(turn)).sin_cos_pi()
            assert abs(exact_sine - sine) <= FUNCTION_ERROR / 2
            assert abs(exact_cosine - cosine) <= FUNCTION_ERROR / 2


@pytest.mark.parametrize("levels", [(2, 2, 2), (3, 2, 4), (2, 2, 2, 2, 2)])
def test_violations_of_extreme_tries_are_within_their_error(levels):
    shape, rng, count = TryShape(levels), np.random.default_rng(0), 12
    given = rng.integers(2**33, TOP, count * shape.numbers)
    chosen = rng.random(len(given)) < np.repeat(np.arange(count) / count / 4, shape.numbers)
    given[chosen] = rng.choice([2**33, 2**40, TOP - 2**33, TOP - 2**34, TOP // 4], chosen.sum())
    bits = UniformBits(Words(given.tolist()))
    draw = Draw(bits, EXACT_WORDS)
    found = shape.evaluate(draw.leading(len(given)).reshape(count, shape.numbers))
    with ctx.workprec(EXACT_WORDS * WORD_BITS):
        exact = [
            exact_violation(tables._columns(levels, draw.ahead(place * shape.numbers)))
            for place in range(count)
        ]
        assert within(found.violation.tolist(), found.error.tolist(), exact) > count / 3
