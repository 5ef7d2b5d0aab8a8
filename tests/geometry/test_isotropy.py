"""Covariances and isotropic constants against closed forms and affine invariance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from geomdp.bodies import (
    Ball,
    Box,
    CrossPolytope,
    Ellipsoid,
    HPolytope,
    LinearImage,
    Shifted,
    Simplex,
    VPolytope,
)
from geomdp.geometry import covariance, isotropic_constant
from geomdp.privacy import Exact, Heuristic
from tests.stats import LEVEL, mean_agrees

TALL = np.random.default_rng(6).standard_normal((5, 3))


def simplex_constant(m: int) -> float:
    """(m!)^(1/m) / ((m + 1)^((m + 1) / (2 m)) sqrt(m + 2))."""
    return math.factorial(m) ** (1 / m) / ((m + 1) ** ((m + 1) / (2 * m)) * math.sqrt(m + 2))


EXACT = {
    "box": (Box(np.array([1.0, -2]), np.array([3.0, 7])), 1 / math.sqrt(12)),
    "ball": (Ball(7, 3.0), Ball(7).volume() ** (-1 / 7) / 3),
    "ellipsoid": (Ellipsoid(np.diag([1.0, 5, 0.1])), Ball(3).volume() ** (-1 / 3) / math.sqrt(5)),
    "simplex": (Simplex(np.vstack([np.zeros(4), np.eye(4)])), simplex_constant(4)),
    "flat simplex": (Simplex(np.eye(4)), simplex_constant(3)),
    "box in a subspace": (LinearImage(TALL, Box.centred(np.ones(3))), 1 / math.sqrt(12)),
    "cube by vertices": (
        VPolytope(2.0 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]]) + 5),
        1 / math.sqrt(12),
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_closed_forms(name):
    body, expected = EXACT[name]
    found = isotropic_constant(body)
    assert found.samples == 0
    assert math.isclose(found.value, expected, rel_tol=1e-9)


def test_ellipsoids_are_least():
    ball = isotropic_constant(Ball(4)).value
    for body in (
        CrossPolytope(4),
        Box.centred(np.ones(4)),
        Simplex(np.vstack([np.zeros(4), np.eye(4)])),
    ):
        assert isotropic_constant(body).value > ball


@pytest.mark.statistical
def test_simulated_constant():
    sides = np.array([1.0, 10.0, 0.1, 1.0])
    body = HPolytope(np.vstack([np.eye(4), -np.eye(4)]), np.concatenate([sides, np.zeros(4)]))
    found = isotropic_constant(body, rng=0, samples=4000)
    assert abs(found.value - 1 / math.sqrt(12)) <= 6 * found.stderr
    assert found.stderr < 0.02


def test_covariance_in_closed_form():
    found = covariance(Shifted(Box.centred(np.array([1.0, 2])), np.array([3.0, -1])))
    assert found.samples == 0
    assert found.sampler == Exact()
    np.testing.assert_allclose(found.mean, [3, -1])
    np.testing.assert_allclose(found.covariance, np.diag([1, 4]) / 3, atol=1e-14)


@pytest.mark.statistical
def test_simulated_covariance():
    body = HPolytope(np.vstack([np.eye(2), -np.eye(2)]), np.array([1.0, 2, 1, 2]))
    found = covariance(body, rng=1, samples=4000)
    assert isinstance(found.sampler, Heuristic)
    assert found.samples == 4000
    # Variances of squares of uniform numbers are 4/45 of the fourth power of the half-width; points
    # of one chain are nearly independent, which doubles the errors at most.
    for axis, half in enumerate((1.0, 2.0)):
        error = math.sqrt(2 * 4 / 45 / 4000) * half**2
        assert abs(found.covariance[axis, axis] - half**2 / 3) < 5.2 * error


@pytest.mark.statistical
def test_points_have_the_covariance_stated():
    body = Simplex(np.vstack([np.zeros(3), np.diag([1.0, 2, 3])]))
    known = covariance(body)
    points = body.sample_uniform(20_000, np.random.default_rng(2)) - known.mean
    for direction in np.eye(3):
        mean_agrees((points @ direction) ** 2, direction @ known.covariance @ direction, LEVEL / 3)


def test_bad_input():
    with pytest.raises(ValueError, match="more than one point"):
        isotropic_constant(Simplex(np.ones((1, 2))))
    with pytest.raises(ValueError, match="samples"):
        covariance(Ball(2), samples=1)
    with pytest.raises(ValueError, match="samples"):
        isotropic_constant(HPolytope(np.vstack([np.eye(2), -np.eye(2)]), np.ones(4)), samples=20)
