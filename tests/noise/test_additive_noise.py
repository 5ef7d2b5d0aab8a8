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
from geomdp.geometry.sampling.samplers import ChainSampler, ExactSampler
from geomdp.noise import GaussianNoise, KNormNoise, LaplaceNoise, Noise, RecursiveNoise
from geomdp.noise.recursive import Variant, decompose, stopped
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


LEVELS = stopped(decompose(Box.centred([1, 1 / 2, 1 / 4, 1 / 8]), Variant.INTRINSIC, exact=True))[
    -1
]
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
    # The energy of the full recursion on a box of four sides (JL-SPLIT).
    "recursive": (
        RecursiveNoise(LEVELS, EPSILON),
        np.cbrt([0.3125, 0.5, 2]).sum() ** 3 / EPSILON**2,
    ),
}


@pytest.fixture(params=sorted(NOISES))
def case(request):
    return NOISES[request.param]


def test_second_moment_in_closed_form(case):
    noise, expected = case
    assert isinstance(noise, Noise)
    assert noise.sampler == Exact()
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
    # The normal density agrees with SciPy. Off the span, densities are 0.
    law = scipy.stats.norm(scale=narrow.scale)
    wanted = law.logpdf(draws @ basis).sum(axis=1)
    np.testing.assert_allclose(narrow.log_density(draws), wanted, rtol=1e-9)
    off = np.eye(noise.dimension)[:1]
    flat = np.abs(basis @ (basis.T @ off[0]) - off[0]).max() > 0.1
    assert noise.log_density(off)[0] == -np.inf if flat else np.isfinite(noise.log_density(off))


def test_bad_arguments_are_refused():
    simplex, point = Simplex(simplex_vertices(3)), Ellipsoid(np.zeros((2, 0)))
    for message, call in (
        ("orthonormal", lambda: GaussianNoise(np.array([[1.0, 1.0], [0.0, 1.0]]), 1.0)),
        ("column", lambda: GaussianNoise(np.zeros((3, 0)), 1.0)),
        ("axes", lambda: GaussianNoise(np.ones(3), 1.0)),
        ("symmetric", lambda: KNormNoise(simplex, 1.0, ExactSampler(simplex))),
        ("dimension", lambda: KNormNoise(point, 1.0, ExactSampler(point))),
        ("range of float64", lambda: knorm(Ball(2000)).log_density(np.zeros((1, 2000)))),
        ("range of float64", lambda: knorm(Ball(10, 1e40)).log_density(np.zeros((1, 10)))),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    for noise, _ in NOISES.values():
        wide = np.zeros((2, noise.dimension + 1))
        for density in (noise.log_density, lambda z, noise=noise: noise.log_density_ratio(z, z)):
            with pytest.raises(ValueError, match="points"):
                density(wide)


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
    """||Z||_K has the law Gamma(r, 1/epsilon), where r is the dimension of the body K (JL-KN).

    It is independent of Z / ||Z||_K. So directions of draws above the median of the gauge have the
    law of directions below it, and a square of the direction is not correlated with the gauge.
    """
    segment = SimplexDifference(np.array([[1.0], [4.0]]))
    for body in (
        Ball(4, scale),
        Box.centred(scale * np.array([3.0, 1.0])),
        CrossPolytope(6, 1),
        SimplexDifference(scale * simplex_vertices(6)),
        segment,
    ):
        noise = knorm(body)
        draws = noise.sample(np.random.default_rng(4), 4000)
        gauges = body.gauge(draws)
        law = scipy.stats.gamma(noise.effective_dimension, scale=1 / EPSILON)
        ks_uniform(law.cdf(gauges), level=5e-8)  # at most 20 of these assertions: 1e-6 in all
        mean_agrees(gauges, noise.effective_dimension / EPSILON, level=5e-8)
        if body is segment:
            continue  # its directions are -3 and 3
        directions, large = draws / gauges[:, None], gauges > law.median()
        ks_same(directions[large, 0], directions[~large, 0], level=5e-8)
        excess = gauges - noise.effective_dimension / EPSILON
        mean_agrees(excess[:, None] * directions**2, np.zeros(noise.dimension), level=5e-8)


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
