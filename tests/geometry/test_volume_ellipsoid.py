"""Ellipsoids of least volume: known ones, optimality, and rounding by them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from geomdp.bodies import Ball, Difference, HPolytope, MissingOracle, SlabBody, VPolytope
from geomdp.geometry.ellipsoids.least_volume import least_volume_ellipsoid
from geomdp.geometry.sampling import ChainSampler, round_by_ellipsoid
from geomdp.geometry.sampling.rounding import plain_walk
from tests.stats import LEVEL, ks_uniform

CUBE = np.array(list(itertools.product([-1.0, 1.0], repeat=4)))
AXES = np.vstack([np.eye(4), -np.eye(4)])
#: A map with axes from 10^-3 to 10^3.
STRETCH = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0] @ np.diag(
    10.0 ** np.array([-3, -1, 1, 3])
)


def inside(ellipsoid, points):
    """Squared norms in the coordinates of the ellipsoid."""
    return (np.linalg.solve(ellipsoid.root, (points - ellipsoid.centre).T) ** 2).sum(axis=0)


@pytest.mark.parametrize(("points", "radius"), [(CUBE, 2.0), (AXES, 1.0)], ids=["cube", "cross"])
def test_bodies_with_many_symmetries_have_balls(points, radius):
    found = least_volume_ellipsoid(points + 3, tolerance=1e-9)
    np.testing.assert_allclose(found.centre, 3, rtol=1e-6)
    np.testing.assert_allclose(found.root, radius * np.eye(4), rtol=0, atol=1e-6)


def test_a_triangle_by_hand():
    """Steiner's circumscribed ellipse: centre at the centroid, area 4 pi / (3 sqrt 3) of it."""
    corners = np.array([[0.0, 0], [4, 0], [0, 3]])
    found = least_volume_ellipsoid(corners, tolerance=1e-10)
    np.testing.assert_allclose(found.centre, corners.mean(axis=0), rtol=1e-8)
    area = math.pi * np.linalg.det(found.root)
    assert area == pytest.approx(6 * 4 * math.pi / (3 * math.sqrt(3)), rel=1e-8)
    np.testing.assert_allclose(inside(found, corners), 1, rtol=1e-8)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_all_points_are_inside_and_the_gap_is_met(scale):
    points = scale * np.random.default_rng(2).standard_normal((300, 4)) @ STRETCH.T + 7
    coarse = least_volume_ellipsoid(points)
    fine = least_volume_ellipsoid(points, tolerance=1e-7)
    assert coarse.converged
    assert coarse.gap <= 1e-2
    for found in (coarse, fine):
        assert inside(found, points).max() == pytest.approx(1, rel=1e-9)
        np.testing.assert_allclose(found.root, found.root.T, rtol=0, atol=1e-9 * scale * 1e3)
    excess = np.linalg.slogdet(coarse.root)[1] - np.linalg.slogdet(fine.root)[1]
    assert 0 <= excess + 1e-6 <= 5 / 2 * math.log1p(1e-2) + 1e-6
    assert not least_volume_ellipsoid(points, tolerance=1e-7, max_steps=3).converged


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.zeros((0, 2)), "points must have shape"),
        (np.ones((5, 2)), "must not lie in one hyperplane"),
        (CUBE[:3], "must not lie in one hyperplane"),
        (np.array([[0.0, np.nan]]), "points must be finite"),
    ],
)
def test_bad_points(points, message):
    with pytest.raises(ValueError, match=message):
        least_volume_ellipsoid(points)


# The body, and the sqrt of the ratio of the spheres between which it is proved to lie.
ROUNDED = {
    "slabs": (SlabBody(np.linalg.inv(STRETCH), np.ones(4)), 2),
    "halfspaces": (HPolytope(AXES @ np.linalg.inv(STRETCH), np.ones(8)), 2),
    "vertices": (VPolytope(np.vstack([CUBE, 2 * AXES]) @ STRETCH.T + 5), 4),
    "flat": (VPolytope(CUBE[:, :3] @ STRETCH[:, 1:].T - 2), 3),
    "difference": (Difference(VPolytope(np.vstack([CUBE, np.full(4, 3.0)]) @ STRETCH.T)), 4),
}


@pytest.mark.parametrize(("body", "ratio"), ROUNDED.values(), ids=ROUNDED.keys())
def test_rounded_bodies_lie_between_two_balls(body, ratio):
    walk = round_by_ellipsoid(plain_walk(body), np.random.default_rng(0))
    ways = np.random.default_rng(3).standard_normal((200, walk.body.dimension))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    back, reach = walk.body.chord(np.zeros_like(ways), ways)
    if isinstance(body, HPolytope):  # proved for K n -K only, about a point inside
        reach = np.minimum(-back, reach)
        assert reach.min() >= 0.99
    assert reach.max() / reach.min() <= ratio * 1.02  # 1e-2 in squares, twice


@pytest.mark.statistical
def test_draws_after_rounding_by_an_ellipsoid_are_uniform():
    body = SlabBody(np.linalg.inv(STRETCH), np.ones(4))
    sampler = ChainSampler(body, rounding=round_by_ellipsoid)
    assert sampler.mixing.correlation_time < 3
    points = sampler.draw(np.random.default_rng(4), 2000)
    for column in np.linalg.solve(STRETCH, points.T):
        ks_uniform(np.clip((column + 1) / 2, 0, 1), LEVEL / 4)


def test_bodies_without_a_list_are_refused():
    with pytest.raises(MissingOracle, match="listed vertices or facets"):
        round_by_ellipsoid(plain_walk(Ball(3)), np.random.default_rng(0))
