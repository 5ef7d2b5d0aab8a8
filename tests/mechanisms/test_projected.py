"""Projections on relaxations of sensitivity polytopes, and upper bounds on projection errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from geomdp.bodies import Ball, Box, VPolytope
from geomdp.bodies.relaxations import MappedElliptope
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.mechanisms import JL, Cone, Geometric, Laplace, Projected, Shrunk
from geomdp.mechanisms.projected import (
    LEVEL,
    MAX_DRAWS,
    ExpectedSupport,
    _upper_limit,
    expected_support_bound,
    is_relaxed,
)
from geomdp.noise import GaussianNoise, KNormNoise, LaplaceNoise
from geomdp.noise.few_queries import GeometricNoise
from geomdp.privacy import PureDP
from geomdp.workloads import Histogram, MarginalTables, Prefixes
from tests.projection_gaps import recorded_gaps


def cube(m: int) -> Box:
    """The box [-1, 1]^m, whose support function is the l1 norm."""
    return Box(-np.ones(m), np.ones(m))


def test_many_columns_are_projected_on_the_relaxation() -> None:
    """Tables of 25 columns use the relaxation, tables of 4 do not; projecting lowers the error."""
    few = Projected(Cone(MarginalTables([2] * 4, 2), n=10, privacy=PureDP(1.0)))
    assert not isinstance(few.body, MappedElliptope)
    workload = MarginalTables([2] * 25, 2)
    inner = Cone(workload, n=50, privacy=PureDP(1.0))
    mechanism = Projected(inner)
    assert isinstance(mechanism.body, MappedElliptope)
    assert mechanism.predicted_rmse.value < inner.predicted_rmse.value
    records = workload.universe.sample(50, np.random.default_rng(0))
    truth = workload.answers(records)
    for seed in range(3):
        before = np.linalg.norm(inner.release(records, rng=seed).answers - truth)
        assert np.linalg.norm(mechanism.release(records, rng=seed).answers - truth) < before


@pytest.mark.parametrize(
    ("columns", "relaxed"), [(3, False), (25, True), (128, True), (129, False)]
)
def test_tables_of_25_to_128_columns_are_relaxed(columns: int, relaxed: bool) -> None:
    assert is_relaxed(MarginalTables([2] * columns, 2)) is relaxed
    assert not is_relaxed(MarginalTables([2] * columns, 1))


def test_diameter_of_a_relaxation_holds_all_records_and_is_less_than_twice_their_norm() -> None:
    workload = MarginalTables([2] * 25, 2)
    mechanism = Projected(Cone(workload, n=50, privacy=PureDP(1.0)))
    answers = workload.evaluate(workload.universe.sample(20, np.random.default_rng(0)))
    apart = np.linalg.norm(answers[:, None] - answers[None], axis=2).max()
    # The answers of two records are at most sqrt(2 C(25, 2)) apart. The bound for the relaxation is
    # sqrt(3 C(25, 2)).
    assert apart <= workload.l2_diameter() <= mechanism.diameter
    np.testing.assert_allclose(mechanism.diameter, 2 * np.sqrt(300 * 3 / 4), rtol=1e-12)


@pytest.mark.parametrize(
    "post_process", [Projected, Shrunk, lambda inner: JL(inner, 4, rng=0)], ids=["P", "S", "JL"]
)
def test_stated_bounds_hold_the_gap_at_which_the_search_stops(post_process, monkeypatch):
    """A search that stops at a duality gap eta allows a squared error of ||Z||^2 + 2 eta.

    The stated bound must be at least this error. The noise Z is so small that the bound from
    ||Z||^2 is below the bound from E h_K(Z), where h_K is the support function of the polytope K.
    """
    mechanism = post_process(Laplace(Prefixes(16), n=16, privacy=PureDP(1e6)))
    gaps = recorded_gaps(monkeypatch)
    mechanism.release(np.arange(16), rng=0)
    (gap,) = gaps
    shrinking = getattr(mechanism, "factor", 1.0)
    stated = mechanism.predicted_rmse.value * 4 - getattr(mechanism, "mean_distortion", 0.0)
    noise = mechanism.inner.predicted_rmse.value**2 * mechanism.inner.workload.n_queries
    assert stated**2 >= (shrinking * noise + 2 * gap) * (1 - 1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("draws", "level"), [(32, 6e-4), (105, 1.3e-4), (512, 1.7e-5), (2048, 4.7e-6)]
)
def test_the_levels_of_limits_for_skew_draws_are_those_stated(draws: int, level: float) -> None:
    """How often the limit for exponential variables of mean 1 is below 1, by importance sampling.

    The variables are drawn with the rate 1 + tilt. Their mean is below 1, so many of the limits are
    below 1.
    """
    tilt, sets = 4.6 / np.sqrt(draws), 4000
    values = np.random.default_rng(7).exponential(1 / (1 + tilt), (sets, draws))
    weights = np.exp(tilt * values.sum(axis=1) - draws * np.log1p(tilt))
    below = np.array([_upper_limit(row) < 1 for row in values])
    found = weights * below
    assert abs(found.mean() - level) < 0.1 * level + 6 * found.std() / np.sqrt(sets)
    assert found.mean() > 2e-6


def test_support_bounds_are_the_closed_forms_where_these_are_known() -> None:
    """The support function h_K of K = [-1, 1]^m is the l1 norm, so E h_K(Z) = sum of E |Z_i|."""
    box, scale = cube(3), 2.0
    gaussian = expected_support_bound(GaussianNoise(np.eye(3), scale), box)
    assert gaussian.value == pytest.approx(3 * scale * math.sqrt(2 / math.pi), rel=1e-12)
    assert "closed form" in gaussian.source
    q = math.exp(-1 / scale)
    geometric = expected_support_bound(GeometricNoise(np.ones(3), scale), box)
    assert geometric.value == pytest.approx(3 * 2 * q / (1 - q**2), rel=1e-12)
    assert "closed form" in geometric.source


def test_support_bounds_of_lattice_noise_are_infinite_for_many_coordinates() -> None:
    """The prediction for a projection of so many answers then uses its other bounds."""
    noise = GeometricNoise(np.ones(MAX_DRAWS + 1), 1.0)
    found = expected_support_bound(noise, cube(MAX_DRAWS + 1))
    assert found.value == math.inf
    assert str(MAX_DRAWS) in found.source
    few = GeometricNoise(np.ones(MAX_DRAWS), 1.0)
    assert expected_support_bound(few, cube(MAX_DRAWS)).value < math.inf
    inner = Geometric(Histogram(MAX_DRAWS + 1), n=10, privacy=PureDP(1.0))
    assert 0 < Projected(inner).predicted_rmse.value <= inner.predicted_rmse.value * (1 + 1e-5)


@pytest.mark.statistical
@pytest.mark.parametrize("draws", [20, MAX_DRAWS])
def test_support_bounds_by_draws_exceed_the_mean_by_a_few_standard_errors(draws) -> None:
    """Bounds for K-norm noise of a ball K and for Laplace noise, against E h_K(Z) in closed form.

    The mean of the draws is within `quantile` standard errors of E h_K(Z), and the bound adds
    `quantile` standard errors. So the bound exceeds E h_K(Z) by at most twice this.
    """
    m, epsilon = 6, 0.5
    quantile = -scipy.stats.t.ppf(LEVEL, draws - 1)
    # K-norm noise is Z = R U with U uniform on the ball. The norm ||U||_2 has the density
    # m r^(m - 1), and E R = (m + 1) / epsilon.
    factor, mean = (m + 1) / epsilon, m / (m + 1)
    deviation = math.sqrt(m / ((m + 1) ** 2 * (m + 2)))
    ball = Ball(m, 1.0)
    knorm = expected_support_bound(KNormNoise(ball, epsilon, ExactSampler(ball)), ball, draws)
    assert f"{draws} public draws" in knorm.source
    above = knorm.value / factor - mean
    assert 0 <= above <= 2 * quantile * deviation / math.sqrt(draws)
    # K is the segment [-1, 1], so h_K(Z) = |Z|. For Laplace noise of scale 3, |Z| has mean 3 and
    # standard deviation 3.
    laplace = expected_support_bound(LaplaceNoise(1, 3.0), cube(1), draws)
    assert 0 <= laplace.value - 3 <= 2 * quantile * 3 / math.sqrt(draws)


@pytest.mark.parametrize(("m", "draws"), [(2, 512), (2**13, 256), (2**17, 32)])
def test_support_bounds_in_high_dimension_use_fewer_draws(m: int, draws: int) -> None:
    found = expected_support_bound(LaplaceNoise(m, 1.0), cube(m))
    assert f"{draws} public draws" in found.source
    assert found.value >= m


def test_widths_without_a_closed_form_are_upper_limits() -> None:
    """For a segment K from 0 to v and Gaussian noise, E h_K(Z) = sigma ||v|| / sqrt(2 pi).

    A thin triangle stands for the segment, because the width of a triangle has no closed form.
    """
    flat = VPolytope([[0.0, 0.0], [1.0, 0.0], [0.5, 1e-9]])
    found = expected_support_bound(GaussianNoise(np.eye(2), 5.0), flat)
    width = 5 / math.sqrt(2 * math.pi)
    assert width <= found.value <= 1.2 * width
    assert "upper limit" in found.source


def test_upper_limits_are_those_of_students_t() -> None:
    values = np.random.default_rng(0).exponential(size=7)
    test = scipy.stats.ttest_1samp(values, 0.0, alternative="less")
    expected = test.confidence_interval(1 - LEVEL).high
    assert _upper_limit(values) == pytest.approx(expected, rel=1e-6)


def test_eight_draws_show_that_a_mean_is_far_above_a_limit() -> None:
    """E h_K(Z) is m = 400, and the mean of 8 draws has a standard error of sqrt(m / 8) = 7."""
    m = 400
    support = ExpectedSupport(LaplaceNoise(m, 1.0), cube(m), 64)
    error = math.sqrt(m / 8)
    # `exceeds` compares the limit with the mean of 8 draws minus 6 standard errors.
    assert support.exceeds(m - 20 * error)
    assert not support.exceeds(m - 0.5 * error)
    assert support.bound == expected_support_bound(support.noise, support.body, 64)
