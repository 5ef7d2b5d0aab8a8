"""Laplace, Gaussian and K-norm noise: laws, moments and density ratios (JL-KN, JL-L14, X-SIM)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from geomdp.bodies import (
    Ball,
    Box,
    CrossPolytope,
    Ellipsoid,
    Product,
    Simplex,
    SimplexDifference,
    SlabBody,
)
from geomdp.bodies.base import Body, MissingOracle
from geomdp.geometry.sampling.samplers import ChainSampler, ExactSampler
from geomdp.noise import GaussianNoise, KNormNoise, LaplaceNoise, Noise
from geomdp.privacy import Exact, Heuristic
from tests.stats import ks_same, ks_uniform, mean_agrees

EPSILON = 0.7
DRAWS = 20_000


def knorm(body, epsilon=EPSILON):
    return KNormNoise(body, epsilon, ExactSampler(body))


def simplex_vertices(m):
    return np.random.default_rng(m).standard_normal((m + 1, m)) + 5.0


def orthonormal(m, r):
    return np.linalg.qr(np.random.default_rng(m).standard_normal((m, r)))[0]


#: For each name, a noise Z and E||Z||^2 in closed form.
NOISES = {
    "laplace": (LaplaceNoise(4, 1.5), 2 * 4 * 1.5**2),
    "gaussian": (GaussianNoise(orthonormal(5, 3), 0.4), 3 * 0.4**2),
    "cross-polytope": (knorm(CrossPolytope(4, 1.0)), 2 * 4 / EPSILON**2),
    "ball": (knorm(Ball(5, 1.0)), 5 * 6 / EPSILON**2),
    "box": (knorm(Box.centred(np.ones(3))), 3 * 4 * 5 / 3 / EPSILON**2),
    # E||Z||^2 = (r + 1) tr(A A^T) / epsilon^2 if the body is A times the unit ball (JL-ELL). Here,
    # A is a 4 x 2 matrix of rank r = 2.
    "flat ellipsoid": (
        knorm(Ellipsoid(orthonormal(4, 2) * [3.0, 0.5])),
        3 * (9 + 0.25) / EPSILON**2,
    ),
    # The product of a segment in R^2 and a disc has dimension 3.
    "flat product": (
        knorm(Product([Box.centred(np.array([1.0, 0.0])), Ball(2, 1.0)])),
        4 * 5 * (1 / 3 + 1 / 2) / EPSILON**2,
    ),
    "segment": (knorm(Box.centred(np.array([2.0]))), 2 * 4 / EPSILON**2),
}


@pytest.fixture(params=sorted(NOISES))
def case(request):
    return NOISES[request.param]


def test_every_noise_is_in_the_protocol(case):
    assert isinstance(case[0], Noise)
    assert case[0].sampler == Exact()


def test_second_moment_in_closed_form(case):
    noise, expected = case
    moment = noise.second_moment()
    assert (moment.stderr, moment.samples) == (0.0, 0)
    np.testing.assert_allclose(moment.value, expected, rtol=1e-12)
    np.testing.assert_allclose(np.trace(noise.covariance()), expected, rtol=1e-12)


@pytest.mark.statistical
def test_draws_have_mean_zero_and_the_stated_covariance(case):
    noise, _ = case
    draws = noise.sample(np.random.default_rng(1), DRAWS)
    assert draws.shape == (DRAWS, noise.dimension)
    mean_agrees(draws, np.zeros(noise.dimension), level=5e-7)
    mean_agrees(draws[:, :, None] * draws[:, None, :], noise.covariance(), level=5e-7)


@pytest.mark.statistical
def test_density_ratio_integrates_to_one(case):
    """E f(Z - s)/f(Z) = 1 for the density f of the drawn noise Z and a shift s in its span."""
    noise, _ = case
    draws = noise.sample(np.random.default_rng(2), DRAWS)
    shift = 0.3 * noise.sample(np.random.default_rng(3), 1)
    shifts = np.repeat(shift, DRAWS, axis=0)
    mean_agrees(np.exp(-noise.log_density_ratio(draws, shifts)), 1.0)


def test_log_density_differs_by_the_density_ratio(case):
    noise, _ = case
    rng = np.random.default_rng(4)
    points, shifts = noise.sample(rng, 50), noise.sample(rng, 50)
    differences = noise.log_density(points) - noise.log_density(points - shifts)
    np.testing.assert_allclose(differences, noise.log_density_ratio(points, shifts), atol=1e-9)


@pytest.mark.statistical
def test_log_density_has_the_total_mass_one(case):
    """E g(Z) / f(Z) = 1 for the density f of Z and a narrower normal density g on its span."""
    noise, _ = case
    moments, axes = np.linalg.eigh(noise.covariance())
    basis = axes[:, moments > 1e-9 * moments.max()]
    narrow = GaussianNoise(basis, 0.5 * math.sqrt(moments[moments > 1e-9 * moments.max()].min()))
    draws = noise.sample(np.random.default_rng(5), DRAWS)
    mean_agrees(np.exp(narrow.log_density(draws) - noise.log_density(draws)), 1.0)
    # The normal density agrees with SciPy.
    law = scipy.stats.norm(scale=narrow.scale)
    wanted = law.logpdf(draws @ basis).sum(axis=1)
    np.testing.assert_allclose(narrow.log_density(draws), wanted, rtol=1e-9)


def test_log_density_off_the_span_is_minus_infinity():
    for name in ("gaussian", "flat ellipsoid"):
        noise, _ = NOISES[name]
        points = np.vstack([noise.sample(np.random.default_rng(6), 1), np.eye(noise.dimension)[:1]])
        assert np.isfinite(noise.log_density(points)).tolist() == [True, False]
        assert noise.log_density(points)[1] == -np.inf


def test_log_density_needs_a_volume_in_closed_form():
    class NoVolume(Body):
        """A unit ball without the method `volume`."""

        dimension = 2
        symmetric = True

        def support(self, directions):
            return np.linalg.norm(directions, axis=1)

        def gauge(self, points):
            return np.linalg.norm(points, axis=1)

        def affine_hull(self):
            return Ball(2, 1.0).affine_hull()

    body = NoVolume()
    noise = KNormNoise(body, 1.0, ChainSampler(body))
    with pytest.raises(MissingOracle, match="volume"):
        noise.log_density(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="range of float64"):
        knorm(Ball(2000, 1.0)).log_density(np.zeros((1, 2000)))
    with pytest.raises(ValueError, match="range of float64"):
        knorm(Ball(10, 1e40)).log_density(np.zeros((1, 10)))


@given(scale=st.floats(1e-3, 1e3), seed=st.integers(0, 2**32 - 1))
def test_pure_noises_never_exceed_epsilon_on_their_body(scale, seed):
    rng = np.random.default_rng(seed)
    for body in (
        Ball(3, scale),
        CrossPolytope(3, scale),
        Box.centred(scale * np.array([1.0, 2.0, 0.5])),
        Ellipsoid(scale * orthonormal(3, 2)),
        SimplexDifference(scale * simplex_vertices(3)),
    ):
        noise = knorm(body)
        points, shifts = noise.sample(rng, 50), body.sample_uniform(50, rng)
        # If a shift s is on the boundary of the body, the bound is attained at the point -s.
        shifts /= body.gauge(shifts)[:, None]
        ratios = noise.log_density_ratio(points, shifts)
        assert np.abs(ratios).max() <= EPSILON * (1 + 1e-9)
        along = noise.log_density_ratio(-shifts, shifts)
        np.testing.assert_allclose(along, EPSILON, rtol=1e-9)


@given(st.floats(1e-3, 1e3))
def test_laplace_never_exceeds_epsilon_on_l1_sensitivity(scale):
    noise = LaplaceNoise(3, scale / EPSILON)
    rng = np.random.default_rng(0)
    shifts = rng.dirichlet(np.ones(3), 50) * rng.choice([-scale, scale], (50, 3))
    ratios = noise.log_density_ratio(noise.sample(rng, 50), shifts)
    assert np.abs(ratios).max() <= EPSILON * (1 + 1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_gauge_of_knorm_noise_is_gamma(scale):
    """||Z||_K has the law Gamma(r, 1/epsilon), where r is the dimension of the body K (JL-KN)."""
    for body in (Ball(4, scale), Box.centred(scale * np.array([3.0, 1.0])), CrossPolytope(6, 1)):
        noise = knorm(body)
        draws = noise.sample(np.random.default_rng(4), 4000)
        gauges = body.gauge(draws)
        law = scipy.stats.gamma(noise.effective_dimension, scale=1 / EPSILON)
        ks_uniform(law.cdf(gauges), level=1e-7)
        mean_agrees(gauges, noise.effective_dimension / EPSILON, level=1e-7)


@pytest.mark.statistical
def test_direction_of_knorm_noise_is_independent_of_its_gauge():
    """Z / ||Z||_K is independent of ||Z||_K (JL-KN).

    So directions of draws above the median of the gauge have the law of directions below it. For
    the same reason, a square of the direction is not correlated with the gauge.
    """
    for body in (Ball(4, 1.0), Box.centred(np.array([3.0, 1.0])), CrossPolytope(6, 1)):
        noise = knorm(body)
        draws = noise.sample(np.random.default_rng(9), 4000)
        gauges = body.gauge(draws)
        directions = draws / gauges[:, None]
        dimension = noise.effective_dimension
        large = gauges > scipy.stats.gamma(dimension, scale=1 / EPSILON).median()
        ks_same(directions[large, 0], directions[~large, 0], level=1e-7)
        excess = gauges - dimension / EPSILON
        mean_agrees(excess[:, None] * directions**2, np.zeros(dimension), level=1e-7)


@pytest.mark.statistical
def test_cross_polytope_noise_is_independent_laplace():
    noise = knorm(CrossPolytope(3, 2.0))
    draws = noise.sample(np.random.default_rng(5), 10_000)
    law = scipy.stats.laplace(scale=2.0 / EPSILON)
    for column in draws.T:
        ks_uniform(law.cdf(column), level=1e-7)
    mean_agrees(np.abs(draws[:, 0] * draws[:, 1]), (2.0 / EPSILON) ** 2, level=1e-7)


@pytest.mark.statistical
def test_difference_of_a_simplex():
    """X-SIM: the gauge has the law Gamma(m, 1/epsilon); in one dimension the noise is Laplace."""
    noise = knorm(SimplexDifference(simplex_vertices(6)))
    draws = noise.sample(np.random.default_rng(6), 10_000)
    ks_uniform(scipy.stats.gamma(6, scale=1 / EPSILON).cdf(noise.body.gauge(draws)), level=1e-7)
    mean_agrees((draws**2).sum(axis=1), noise.second_moment().value, level=1e-7)
    line = knorm(SimplexDifference(np.array([[1.0], [4.0]])))
    ks_uniform(
        scipy.stats.laplace(scale=3 / EPSILON).cdf(
            line.sample(np.random.default_rng(7), 10_000)[:, 0]
        ),
        level=1e-7,
    )


@pytest.mark.statistical
def test_gaussian_noise_is_chi_squared_in_its_span():
    basis = orthonormal(6, 4)
    noise = GaussianNoise(basis, 2.5)
    draws = noise.sample(np.random.default_rng(8), 5000)
    np.testing.assert_allclose(draws - draws @ basis @ basis.T, 0, atol=1e-13)
    ks_uniform(scipy.stats.chi2(4).cdf((draws**2).sum(axis=1) / 2.5**2))


@pytest.mark.statistical
def test_estimated_moment_brackets_the_truth_and_the_status_is_heuristic():
    """The second moment of a box given as slabs is estimated, and agrees with the closed form."""
    widths = np.array([1.0, 2.0, 0.5, 3.0])
    slabs = SlabBody(np.eye(4), widths)
    noise = KNormNoise(slabs, EPSILON, ChainSampler(slabs))
    assert isinstance(noise.sampler, Heuristic)
    exact = 5 * 6 / EPSILON**2 * (widths**2).sum() / 3
    moment = noise.second_moment()
    assert moment.samples > 0
    assert moment.stderr > 0
    # A normal variable is off by more than six standard errors with probability 2e-9.
    assert abs(moment.value - exact) <= 6 * moment.stderr
    assert moment.stderr <= 0.02 * exact
    assert noise.second_moment() == moment
    np.testing.assert_allclose(np.trace(noise.covariance()), moment.value, rtol=1e-12)


class TestBadInput:
    def test_bases(self):
        with pytest.raises(ValueError, match="orthonormal"):
            GaussianNoise(np.array([[1.0, 1.0], [0.0, 1.0]]), 1.0)
        with pytest.raises(ValueError, match="column"):
            GaussianNoise(np.zeros((3, 0)), 1.0)
        with pytest.raises(ValueError, match="axes"):
            GaussianNoise(np.ones(3), 1.0)

    def test_bodies(self):
        simplex = Simplex(simplex_vertices(3))
        with pytest.raises(ValueError, match="symmetric"):
            KNormNoise(simplex, 1.0, ExactSampler(simplex))
        point = Ellipsoid(np.zeros((2, 0)))
        with pytest.raises(ValueError, match="dimension"):
            KNormNoise(point, 1.0, ExactSampler(point))

    def test_shapes_of_density_ratios(self):
        for noise, _ in NOISES.values():
            with pytest.raises(ValueError, match="points"):
                noise.log_density_ratio(np.zeros((2, noise.dimension + 1)), np.zeros((2, 1)))
            with pytest.raises(ValueError, match="points"):
                noise.log_density(np.zeros((2, noise.dimension + 1)))
