"""The float64 filter: its bounds hold, it never changes a draw, and a defect in it is caught."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from geomdp.noise import LaplaceNoise
from geomdp.noise import rounding as near
from geomdp.noise.gaussian import isotropic
from geomdp.noise.rounding import (
    LOG_ERROR,
    TURN_ERROR,
    WORD_BITS,
    Numbers,
    Rounded,
    Undecided,
    UniformBits,
    exact_numbers,
    near_gaussians,
    near_laplaces,
    nearest_by_floats,
)
from tests.noise.exact.reference import REFERENCE_BITS, Reference, seeded

TOP = 1 << WORD_BITS


def words():
    """Random words, and words near powers of two, near 0 and near multiples of an eighth turn."""
    random = np.random.default_rng(0).integers(0, TOP, 4000, dtype=np.uint64).tolist()
    powers = [2**k + j for k in range(WORD_BITS) for j in (-1, 0, 1)]
    eighths = [k * TOP // 8 + j for k in range(9) for j in range(-3, 4)]
    return np.array(
        sorted({w for w in (*random, *powers, *eighths) if 0 <= w < TOP}), dtype=np.uint64
    )


def test_logarithms_are_within_their_bound():
    numbers = words()[1:]
    with mpmath.workprec(REFERENCE_BITS):
        exact = [mpmath.log(int(w)) for w in numbers]
        found = near.near_log(numbers.astype(np.float64))
        worst = max(abs(mpf(x) - y) for x, y in zip(found.tolist(), exact, strict=True))
    assert worst < LOG_ERROR / 2


def test_logarithms_of_uniform_numbers_are_within_their_bound():
    values, errors = near.minus_log(words()[1:])
    with mpmath.workprec(REFERENCE_BITS):
        given = zip(words()[1:].tolist(), values.tolist(), errors.tolist(), strict=True)
        for w, value, error in given:
            for place in (w, w + 1):
                exact = mpmath.log(mpf(TOP)) - mpmath.log(place)
                cut = near.CUT / w
                assert abs(value - exact) <= (error - cut) / 2 + cut


def test_the_word_0_has_an_infinite_logarithm():
    with np.errstate(all="ignore"):
        assert near.minus_log(np.zeros(1, dtype=np.uint64))[0].tolist() == [math.inf]
        assert near.near_log(np.zeros(1)).tolist() == [-math.inf]


def test_turns_are_within_their_bound():
    sine, cosine = near.near_turn(words())
    with mpmath.workprec(REFERENCE_BITS):
        for w, s, c in zip(words().tolist(), sine.tolist(), cosine.tolist(), strict=True):
            for place in (w, w + 1):
                angle = 2 * mpmath.pi * place / mpf(TOP)
                assert abs(s - mpmath.sin(angle)) < TURN_ERROR / 2
                assert abs(c - mpmath.cos(angle)) < TURN_ERROR / 2


class Words:
    """A source of bytes: the first words are the given values, and later words are random."""

    def __init__(self, values):
        self._values, self._rest = list(values), seeded(9)

    def __call__(self, count):
        own, self._values = self._values[: count // 8], self._values[count // 8 :]
        data = b"".join((int(w) << (64 - WORD_BITS)).to_bytes(8, "little") for w in own)
        return data + self._rest(count - len(data))


KINDS = {"laplaces": near_laplaces, "gaussians": near_gaussians}


def check_values_are_within_their_errors(kind, build):
    """Compare with mpmath, for random words and for extreme words such as 0 and the largest."""
    extreme = [0, 1, 2, 1000, 2**31, 2**45 + 1, TOP - 1, TOP - 2, TOP - 2**20, TOP // 2, TOP // 8]
    rng = np.random.default_rng(1)
    chosen = [int(w) for w in rng.choice(extreme, 200)]
    for scale in (1.0, 3.7e5):
        for given in ([], chosen):
            vector = build(200, scale)
            bits = UniformBits(Words(given))
            with np.errstate(all="ignore"):
                values, errors = vector.evaluate(bits.first_words(vector.count))
            with mpmath.workprec(REFERENCE_BITS):
                exact = getattr(Reference(Words(given)), kind)(200)
                for x, error, y in zip(values.tolist(), errors.tolist(), exact, strict=True):
                    certain = math.isfinite(x) and math.isfinite(error)
                    assert not certain or abs(x - mpf(scale) * y) <= error
            assert np.isfinite(errors).mean() > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_within_their_errors(kind, monkeypatch):
    check_values_are_within_their_errors(kind, KINDS[kind])
    # The planted defect: the error bounds leave out the later words of the uniform numbers.
    monkeypatch.setattr(near, "CUT", 0.0)
    with pytest.raises(AssertionError):
        check_values_are_within_their_errors(kind, KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_a_bound_without_its_rounding_is_caught(kind, monkeypatch):
    for name in ("SHARE_ERROR", "WORD_ERROR", "TURN_ERROR"):
        monkeypatch.setattr(near, name, 0.0)
    monkeypatch.setattr(near, "rounding_error", np.zeros_like)
    with pytest.raises(AssertionError):
        check_values_are_within_their_errors(kind, KINDS[kind])


def test_a_sine_off_by_a_part_in_a_trillion_is_caught(monkeypatch):
    right = near.near_turn
    monkeypatch.setattr(near, "near_turn", lambda given: tuple(x + 2.0**-40 for x in right(given)))
    with pytest.raises(AssertionError):
        check_values_are_within_their_errors("gaussians", near_gaussians)


@pytest.mark.parametrize("grid", [-3, 0, 7, 30, 45, 60, 200, 1100])
def test_the_filter_never_changes_a_draw(grid):
    noises = [
        (Rounded.of(LaplaceNoise(301, 5.0), grid), exact_numbers(LaplaceNoise(301, 5.0)).balls),
        (Rounded([isotropic(301, 5.0)], grid), isotropic(301, 5.0).balls),
    ]
    for noise, vector in noises:
        for seed in range(5):
            plain = Rounded([Numbers(vector)], grid).draw(seeded(seed))
            assert noise.draw(seeded(seed)) == plain


def test_it_decides_nearly_all_draws():
    noise = Rounded([isotropic(1000, 5.0)], 8)
    noise.parts[:] = [Numbers(None, part.near) for part in noise.parts]
    assert all(len(noise.draw(seeded(seed))) == 1000 for seed in range(100))


def roundings(nearest):
    """Check that `nearest` rounds clear numbers, and refuses midpoints, huge numbers and NaN."""
    undecided = [
        ([0.5], [0.0]),
        ([-0.5], [1e-30]),
        ([0.5 - 1e-9], [1e-8]),
        ([math.nextafter(0.5, 0)], [1e-16]),
        ([3.0], [math.nan]),
        ([3.0], [math.inf]),
        ([math.nan], [0.0]),
        ([math.inf], [0.0]),
        ([2.0**52], [0.0]),
        ([1.0, 2.5], [0.0, 0.0]),
    ]
    with np.errstate(all="ignore"):
        for values, errors in undecided:
            with pytest.raises(Undecided):
                nearest(np.array(values), np.array(errors), 0)
        assert nearest(np.array([0.25, -0.25, 0.75, 2.0**50]), np.full(4, 0.1), 0) == [
            0,
            0,
            1,
            2**50,
        ]
        assert nearest(np.array([0.3, -0.3]), np.zeros(2), 1) == [1, -1]


def test_only_certain_roundings_are_decided():
    roundings(nearest_by_floats)
    with pytest.raises(BaseException, match="DID NOT RAISE"):
        roundings(lambda values, _, grid: [round(x * 2**grid) for x in values])


def test_first_words_are_those_of_balls():
    bits, other = UniformBits(seeded(3)), UniformBits(seeded(3))
    first = bits.first_words(500)
    assert [first.tolist()] == other.words(0, 500, 1)
    assert bits.words(0, 500, 3) == other.words(0, 500, 3)
    with pytest.raises(
        RuntimeError, match=r"^first_words must be called before any other word is read$"
    ):
        bits.first_words(1)
    with pytest.raises(OSError, match="gave 3 bytes"):
        UniformBits(lambda _: b"abc").first_words(2)
