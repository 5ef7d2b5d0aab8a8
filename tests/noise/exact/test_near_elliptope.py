"""The float64 filter of cone noise over elliptopes keeps its error bounds and changes no draw."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from flint import arb, ctx

from geomdp.bodies import Ball, Elliptope
from geomdp.mechanisms import Cone
from geomdp.noise import ConeNoise, differences, tables
from geomdp.noise.differences import near_cone
from geomdp.noise.rounding import (
    WORD_BITS,
    Draw,
    Numbers,
    Rounded,
    Undecided,
    UniformBits,
    exact_numbers,
)
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import MarginalTables, Parities
from tests.noise.exact.reference import seeded
from tests.noise.exact.test_near import Words
from tests.stats import LEVEL, ks_same, mean_agrees

WORDS = 6


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
#: Words (first bits of uniform numbers). Some are so small or so large that errors grow.
EXTREME = [1, 2, 2**20, 2**40 + 1, (1 << WORD_BITS) - 1, (1 << WORD_BITS) - 2**20]


@pytest.fixture(params=NOISES)
def noise(request):
    return NOISES[request.param]


def check_values_are_within_their_errors(noise):
    """Compare with ball arithmetic at 372 bits; return the largest error bound for random words."""
    near, vector = near_cone(noise), exact_numbers(noise).balls
    rng, largest = np.random.default_rng(0), 0.0
    for seed in range(4):
        given = rng.integers(0, 1 << WORD_BITS, near.count, dtype=np.uint64).tolist()
        if seed > 1:
            for place in rng.choice(near.count, max(1, near.count // 9), replace=False).tolist():
                given[place] = int(rng.choice(EXTREME))
        bits = UniformBits(Words(given))
        with np.errstate(all="ignore"):
            values, errors = near.evaluate(bits.first_words(near.count))
        with ctx.workprec(WORDS * WORD_BITS):
            draw = Draw(bits, WORDS)
            exact = vector(draw)
            assert draw._next == near.count
            for x, error, y in zip(values.tolist(), errors.tolist(), exact, strict=True):
                certain = math.isfinite(x) and math.isfinite(error)
                assert not certain or abs(arb(x) - y) <= error
        if seed < 2:
            largest = max(largest, float(errors.max()))
    return largest


def test_values_are_within_their_errors(noise):
    deviation = float(np.sqrt(noise.variances().max()))
    assert check_values_are_within_their_errors(noise) < 1e-9 * deviation


def bent(rows, error):
    changed = rows.copy()
    changed[:, -1, 0] += 1e-7
    return changed, error


def too_long(total, off):
    return total + 1e-6, off


#: Two defects: one entry of the factor is too large by 1e-7, and a radius is too large by 1e-6.
DEFECTS = {
    "rows": (tables.Variables, lambda right: lambda *given: bent(*right(*given))),
    "_sum": (differences, lambda right: lambda *given: too_long(*right(*given))),
}


@pytest.mark.parametrize("function", DEFECTS)
def test_a_defect_is_caught(monkeypatch, function):
    place, defect = DEFECTS[function]
    monkeypatch.setattr(place, function, defect(getattr(place, function)))
    with pytest.raises(AssertionError):
        check_values_are_within_their_errors(NOISES["order 7"])


class Refusing:
    """A filter that reads the same words as the real filter, but decides no draw."""

    def __init__(self, near):
        self._count = near.count

    def rounded(self, bits, grid):
        del grid
        bits.first_words(self._count)
        raise Undecided


@pytest.mark.parametrize("grid", [0, 9, 30, 45, 90])
def test_the_filter_never_changes_a_draw(noise, grid):
    filtered = Rounded.of(noise, grid)
    plain = Rounded([Numbers(exact_numbers(noise).balls, Refusing(near_cone(noise)))], grid)
    for seed in range(3):
        assert filtered.draw(seeded(seed)) == plain.draw(seeded(seed))


def test_it_decides_nearly_all_draws():
    noise = Rounded.of(NOISES["tables"], 7)
    noise.parts[:] = [Numbers(None, part.near) for part in noise.parts]
    assert all(len(noise.draw(seeded(seed))) == 144 for seed in range(100))


@pytest.mark.statistical
def test_draws_have_the_law_of_the_float64_sampler():
    noise = NOISES["tables, add/remove"]
    rounded, entropy = Rounded.of(noise, 9), seeded(4)
    draws = np.array([rounded.draw(entropy) for _ in range(3000)]) / 2**9
    others = noise.sample(np.random.default_rng(5), 20_000)
    for j in range(noise.dimension):
        ks_same(draws[:, j], others[:, j], level=LEVEL / noise.dimension)
    mean_agrees(draws[:, :, None] * draws[:, None, :], noise.covariance())


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
