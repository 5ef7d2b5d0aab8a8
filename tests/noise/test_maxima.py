"""Bounds on the expected largest coordinate hold, and are exact for Laplace noise and the cube."""

from __future__ import annotations

import math

import numpy as np
import pytest

from geomdp.bodies import Ball, Box, CrossPolytope, Ellipsoid, VPolytope
from geomdp.geometry.sampling.samplers import ChainSampler, ExactSampler
from geomdp.mechanisms import Cone, Gaussian, Hierarchical, Recursive
from geomdp.noise import KNormNoise, LaplaceNoise
from geomdp.noise.tails import expected_maximum, log_concave_maximum
from geomdp.privacy import ZCDP, PureDP
from geomdp.workloads import LinearMap, Marginals, Prefixes, RandomSigns
from tests.stats import mean_agrees, mean_at_most


def knorm(body):
    return KNormNoise(body, 0.8, ExactSampler(body))


NOISES = {
    "laplace": LaplaceNoise(7, 1.5),
    "one coordinate": LaplaceNoise(1, 2.0),
    "ball": knorm(Ball(9, 2.0)),
    "box": knorm(Box.centred(2.0 ** -np.arange(6))),
    "cross-polytope": knorm(CrossPolytope(5, 1.0)),
    "ellipsoid": knorm(Ellipsoid(np.random.default_rng(0).normal(size=(12, 3)))),
    "cone": Cone(Marginals(6, 2), n=1, privacy=PureDP(0.8)).noise,
    "cone over a simplex": Cone(Prefixes(9), n=1, privacy=PureDP(0.8)).noise,
    "gaussian": Gaussian(RandomSigns(20, 9, 0), n=1, privacy=ZCDP(0.3)).noise,
    "hierarchical": Hierarchical(Prefixes(9), n=1, privacy=PureDP(0.8)).noise,
    "recursive": Recursive(
        LinearMap(Marginals(8, 1), np.diag(0.5 ** np.arange(8))), n=1, privacy=PureDP(0.8)
    ).noise,
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", NOISES)
def test_the_bound_holds_and_is_not_far(name):
    noise = NOISES[name]
    largest = np.abs(noise.sample(np.random.default_rng(4), 4000)).max(axis=1)
    bound = expected_maximum(noise)
    mean_at_most(largest, bound)
    assert bound < 3 * largest.mean()


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["laplace", "one coordinate"])
def test_laplace_noise_is_exact(name):
    noise = NOISES[name]
    largest = np.abs(noise.sample(np.random.default_rng(5), 20_000)).max(axis=1)
    mean_agrees(largest, expected_maximum(noise))


def test_the_cube_is_exact():
    """||Z||_inf is the gauge of the cube. Its law Gamma(r, 1 / epsilon) has mean r / epsilon."""
    np.testing.assert_allclose(expected_maximum(knorm(Box.centred(np.ones(6)))), 6 / 0.8)


def test_log_concave_tails_hold_for_the_laplace_distribution():
    """P(|X| > t sigma) = e^(-sqrt(2) t), the slowest log-concave decay for large t."""
    for count in (1, 10, 1000):
        exact = (1 / np.arange(1, count + 1)).sum() / math.sqrt(2)
        assert exact <= log_concave_maximum(np.ones(count)) <= 2.01 * exact
    assert log_concave_maximum(np.ones(8000)) < 1.06 * (1 / np.arange(1, 8001)).sum() / math.sqrt(2)


def test_log_concave_bound_scales_and_grows():
    deviations = np.array([0.0, 0.2, 1.0, 3.0])
    bound = log_concave_maximum(deviations)
    np.testing.assert_allclose(log_concave_maximum(5 * deviations), 5 * bound, rtol=1e-3)
    assert log_concave_maximum(np.append(deviations, 3.0)) > bound
    assert log_concave_maximum(np.zeros(3)) == 0.0


def test_estimated_moments_prove_nothing():
    """Second moments of a chain are estimates, so only the bound by support values remains."""
    points = np.random.default_rng(6).normal(size=(12, 3))
    body = VPolytope(np.vstack([points, -points]))
    noise = KNormNoise(body, 1.0, ChainSampler(body))
    np.testing.assert_allclose(expected_maximum(noise), 3 * np.abs(points).max(), rtol=1e-12)
