"""Coverage of the intervals (X-INT) of all additive mechanisms, and variances of their noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from geomdp.bodies import TableMoments
from geomdp.mechanisms import TightCone
from geomdp.noise import GaussianNoise, LaplaceNoise, Part
from geomdp.noise.few_queries import GeometricNoise
from geomdp.noise.mapped import MappedNoise
from geomdp.noise.tails import (
    EXCEEDANCES,
    LEAST_DRAWS,
    MOST_DRAWS,
    REPLAYED,
    _blocks,
    half_widths,
    order_statistic,
    simultaneous_half_widths,
)
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import MarginalTables
from tests.mechanisms.catalogue import ADDITIVE, WORKLOADS
from tests.stats import LEVEL

FRESH = 20_000
#: Noise with half-widths in closed form. Other noise has half-widths from public draws.
CLOSED = (LaplaceNoise, GaussianNoise, GeometricNoise)


@pytest.fixture(scope="module", params=sorted(ADDITIVE))
def noise(request):
    entry = ADDITIVE[request.param]
    workload = WORKLOADS[entry.home]
    return entry.build(workload, 10, entry.privacy, Adjacency.REPLACE_ONE).noise


def misses_agree(
    misses: int, beta: float, behind: tuple[int, int], *, closed: bool, tests: int
) -> bool:
    """Whether the number of misses in `FRESH` releases fits its law, at LEVEL for all `tests`.

    `behind` is the number B of public draws and the rank k of the quantile. The chance of a miss
    depends on the draws and has the distribution Beta(B + 1 - k, k), so the number of misses is
    beta-binomial. If `closed`, the chance of a miss is `beta`.
    """
    draws, rank = behind
    law = (
        scipy.stats.binom(FRESH, beta)
        if closed
        else scipy.stats.betabinom(FRESH, draws + 1 - rank, rank)
    )
    tail = min(law.cdf(misses), law.sf(misses - 1))
    return bool(tail > LEVEL / (2 * tests))


def chances_of_a_miss(noise, widths, beta: float) -> np.ndarray:
    """P(|Z_j| > c_j) for half-widths c_j in closed form, which should be at most `beta`.

    For Laplace and Gaussian noise it is `beta`. Geometric noise is on a lattice, so it can be less:
    P(|Z_j| > k u) = 2 q^(k + 1) / (1 + q) for unit u, rate q = exp(-u / b) and whole k.
    """
    if not isinstance(noise, GeometricNoise):
        return np.full(len(widths), beta)
    rates = noise.units / noise.scale
    steps = np.rint(widths / noise.units)
    np.testing.assert_array_equal(widths, steps * noise.units)
    return 2 * np.exp(-rates * (steps + 1)) / (1 + np.exp(-rates))


def test_variances_are_the_diagonal_of_the_covariance(noise):
    expected = np.diag(noise.covariance())
    np.testing.assert_allclose(noise.variances(), expected, rtol=1e-9, atol=1e-12 * expected.max())


@pytest.mark.statistical
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_half_widths_cover_each_answer(noise, confidence):
    widths = half_widths(noise, confidence)
    draws = np.abs(noise.sample(np.random.default_rng(11), FRESH))
    # An answer without noise has half-width 0 up to rounding, so its coverage is not tested.
    moving = np.sqrt(noise.variances()) > 1e-9 * widths.max()
    closed = isinstance(noise, CLOSED)
    chances = chances_of_a_miss(noise, widths, 1 - confidence)
    assert (chances <= 1 - confidence).all()
    for column in np.flatnonzero(moving):
        misses = int((draws[:, column] > widths[column]).sum())
        behind = order_statistic(noise, 1 - confidence)
        assert misses_agree(misses, chances[column], behind, closed=closed, tests=moving.sum())


@pytest.mark.statistical
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_simultaneous_half_widths_cover_all_answers(noise, confidence):
    widths = simultaneous_half_widths(noise, confidence)
    draws = np.abs(noise.sample(np.random.default_rng(12), FRESH))
    # Allow for rounding: the last bits of an answer without noise may differ from draw to draw.
    misses = int((draws > widths * (1 + 1e-9) + 1e-9 * widths.max()).any(axis=1).sum())
    closed = isinstance(noise, LaplaceNoise)
    draws = max(LEAST_DRAWS, math.ceil(EXCEEDANCES / (1 - confidence)))
    behind = draws, math.ceil((draws + 1) * confidence)
    assert misses_agree(misses, 1 - confidence, behind, closed=closed, tests=1)
    assert (widths >= half_widths(noise, confidence) * (1 - 0.1)).all()


@pytest.mark.statistical
def test_the_coverage_test_sees_intervals_that_are_too_short(noise):
    closed = isinstance(noise, CLOSED)
    behind = order_statistic(noise, 0.05)
    # 20,000 releases can show that half-widths are too short by these factors: 0.9 in closed form,
    # 0.8 for quantiles from 1999 draws, and 0.7 from 512 draws.
    drawn = 0.7 if behind[0] == REPLAYED else 0.8
    right = half_widths(noise, 0.95)
    widths = right * (0.9 if closed else drawn)
    draws = np.abs(noise.sample(np.random.default_rng(13), FRESH))
    column = int(np.argmax(widths))
    misses = int((draws[:, column] > widths[column]).sum())
    chance = chances_of_a_miss(noise, right, 0.05)[column]
    assert not misses_agree(misses, chance, behind, closed=closed, tests=1)


def test_laplace_quantiles_in_closed_form():
    noise = LaplaceNoise(3, 2.0)
    np.testing.assert_allclose(half_widths(noise, 0.95), 2 * math.log(20), rtol=1e-12)
    widths = simultaneous_half_widths(noise, 0.95)
    np.testing.assert_allclose((1 - np.exp(-widths / 2)) ** 3, 0.95, rtol=1e-12)


def test_gaussian_quantile_in_closed_form():
    basis = np.array([[0.6], [0.8]])
    widths = half_widths(GaussianNoise(basis, 2.0), 0.95)
    np.testing.assert_allclose(widths, 2 * 1.959963984540054 * basis[:, 0], rtol=1e-12)


@pytest.mark.parametrize("confidence", [0, 1, -0.1, 1.5, math.nan, math.inf, "0.9", True, None])
def test_confidence_out_of_range(confidence):
    noise = LaplaceNoise(2, 1.0)
    for widths in (half_widths, simultaneous_half_widths):
        with pytest.raises(ValueError, match=r"confidence must be above 0 and below 1, got"):
            widths(noise, confidence)


def test_confidence_that_would_need_too_many_draws_is_refused():
    """1 - 1e-9 needs 2e10 draws. Closed forms need none and have no such limit."""
    confidence = 1 - 1e-9
    drawn = MappedNoise([Part(LaplaceNoise(dimension=2, scale=1.0), np.eye(2))])
    for widths in (half_widths, simultaneous_half_widths):
        with pytest.raises(ValueError, match=r"at most 0\.999999 .* got 0\.999999999$"):
            widths(drawn, confidence)
    assert order_statistic(drawn, 1 - 0.999999)[0] <= MOST_DRAWS
    np.testing.assert_allclose(
        half_widths(LaplaceNoise(2, 1.0), confidence), math.log(1e9), rtol=1e-7
    )


def test_public_draws_are_the_same_each_time(noise):
    np.testing.assert_array_equal(half_widths(noise, 0.95), half_widths(noise, 0.95))


@pytest.mark.parametrize("adjacency", Adjacency)
def test_points_of_a_cut_body_are_drawn_once(adjacency, monkeypatch):
    noise = TightCone(
        MarginalTables([2, 3, 2], 2), n=10, privacy=PureDP(1.0), adjacency=adjacency
    ).noise
    assert noise.body.cut
    noise.variances()  # draws the points

    def refused(*arguments):
        raise AssertionError("drew again")

    monkeypatch.setattr(TableMoments, "sample_uniform", refused)
    widths = half_widths(noise, 0.95)
    assert order_statistic(noise, 0.05) == (REPLAYED, 488)
    # The noise of a release has each of 513 ranks among the 512 draws with equal probability.
    assert 488 / (REPLAYED + 1) >= 0.95
    # The tolerance is above 4.76 standard errors of a 95% quantile of normal noise from 512 draws.
    np.testing.assert_allclose(widths / np.sqrt(noise.variances()), 1.96, rtol=0.25)
    # If fewer than 20 of the 512 draws would be above the quantile, new points are drawn.
    assert order_statistic(noise, 0.01) == (2000, 1981)
    with pytest.raises(AssertionError, match="drew again"):
        half_widths(noise, 0.99)


def test_half_widths_scale_with_epsilon():
    tables = MarginalTables([2, 3, 2], 2)
    first, second = (
        TightCone(tables, n=10, privacy=PureDP(epsilon)).noise for epsilon in (1.0, 0.1)
    )
    np.testing.assert_allclose(half_widths(second), 10 * half_widths(first), rtol=1e-12)


def test_the_smallest_of_all_draws_is_the_quantile_at_tiny_confidence():
    noise = MappedNoise([Part(LaplaceNoise(dimension=2, scale=1.0), np.eye(2))])
    draws, rank = order_statistic(noise, 1 - 1e-4)
    assert rank == 1
    smallest = np.abs(np.concatenate(list(_blocks(noise, draws)))).min(axis=0)
    np.testing.assert_array_equal(half_widths(noise, 1e-4), smallest)


def test_noise_that_is_always_zero_has_intervals_of_length_zero():
    noise = GeometricNoise(units=[1.0, 2.0], scale=1e-3)
    assert not noise.variances().any()
    for widths in (half_widths(noise, 0.9), simultaneous_half_widths(noise, 0.9)):
        np.testing.assert_array_equal(widths, 0)
