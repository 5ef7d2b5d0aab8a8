"""Float64 errors, found by ball arithmetic, are within the stated bounds for extreme numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb, ctx

from geomdp.noise import tables
from geomdp.noise.rounding import (
    FUNCTION_ERROR,
    WORD_BITS,
    Draw,
    UniformBits,
    logarithm,
    sine_cosine,
)
from geomdp.noise.scalar import EXPONENTIAL, GUMBEL, LAPLACE, RADIUS, _Block
from geomdp.noise.tables import TryShape
from tests.noise.exact.test_near import Words
from tests.noise.exact.test_table_tries import exact_violation

TOP = 1 << WORD_BITS
#: First words (62 bits) of uniform numbers near 0, 1, 1/2 and midpoints between floats near 1.
WORDS = [
    *(2**k + j for k in (1, 20, 52, 53, 54, 60, 61) for j in (-1, 0, 1)),
    *(TOP - j * 2**9 for j in range(1, 9)),
    *(TOP - j * 2**8 + i for j in (1, 3, 5, 7) for i in (-1, 0, 1)),
    *(TOP - 2**k for k in (12, 20, 31, 32, 33, 45, 60)),
]
EXACT_WORDS = 6


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
