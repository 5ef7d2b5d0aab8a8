"""Volumes computed from intersections with growing balls agree with closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from geomdp.bodies import Ball, CrossPolytope, HPolytope, LinearImage, Simplex
from geomdp.geometry.volumes import annealed_volume

CUBE = HPolytope(np.vstack([np.eye(6), -np.eye(6)]), np.concatenate([np.ones(6), np.zeros(6)]))
CORNER = HPolytope(np.vstack([-np.eye(8), np.ones((1, 8))]), np.append(np.zeros(8), 1.0))
TALL = np.random.default_rng(5).standard_normal((6, 4))

BODIES = {
    "unit cube": (CUBE, 1.0),
    "corner of a cube": (CORNER, 1 / math.factorial(8)),
    "ball": (Ball(5, 2.0), Ball(5, 2.0).volume()),
    "long cross-polytope in a subspace": (
        LinearImage(TALL @ np.diag([1.0, 10.0, 0.1, 1.0]), CrossPolytope(4)),
        math.sqrt(np.linalg.det(TALL.T @ TALL)) * 2**4 / math.factorial(4),
    ),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", BODIES)
def test_against_closed_forms(name):
    body, exact = BODIES[name]
    found = annealed_volume(body, rng=0, draws=16)
    # A mean over 128 chains has nearly Student's distribution. At level 1e-6 / 4 for each of the
    # four bodies, the limit is 5.5 standard errors.
    assert abs(found.value - exact) <= 5.5 * found.stderr
    assert found.stderr < 0.15 * exact
    low, high = found.interval
    assert low < found.value < high


@pytest.mark.statistical
@pytest.mark.slow
def test_dimension_twenty():
    body = HPolytope(np.vstack([np.eye(20), -np.eye(20)]), np.full(40, 0.5))
    found = annealed_volume(body, rng=1, draws=256)
    assert abs(found.value - 1) <= 5.5 * found.stderr
    assert found.stderr < 0.1


def test_bad_input():
    with pytest.raises(ValueError, match="more than one point"):
        annealed_volume(Simplex(np.ones((1, 3))), rng=0)
    with pytest.raises(ValueError, match="draws"):
        annealed_volume(Ball(2), rng=0, draws=0)
    with pytest.raises(ValueError, match="level must be"):
        annealed_volume(Ball(2), rng=0, level=1.0)
    with pytest.raises(ValueError, match="bounded"):
        annealed_volume(HPolytope(np.array([[-1.0, 0], [0, -1]]), np.ones(2)), rng=0)
