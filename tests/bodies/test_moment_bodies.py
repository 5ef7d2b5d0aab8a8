"""Bodies of Chebyshev moments: their points, the error of a grid, and wrong arguments."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
import pytest

from geomdp.bodies.conic.moment_bodies import cosine_moment_body, grid_moment_body
from geomdp.geometry import project


def moments(angles, size):
    """The numbers cos(m a) for m = 1, ..., size - 1, with one row for each angle a."""
    return np.cos(np.multiply.outer(angles, np.arange(1, size)))


@pytest.mark.parametrize("size", [2, 3, 6, 7])
def test_semidefinite_body_is_the_hull_of_the_moment_curve(size):
    """The support function is the maximum of a cosine polynomial over all angles."""
    body = cosine_moment_body(np.ones(size - 1))
    directions = np.random.default_rng(0).standard_normal((6, size - 1))
    curve = moments(np.linspace(0, math.pi, 20001), size)
    np.testing.assert_allclose(
        body.support(directions), (directions @ curve.T).max(axis=1), rtol=1e-6
    )
    # Membership is decided by projection. Near the boundary, the error of a projection is about
    # the square root of the solver's tolerance, so the points are first moved inside.
    assert body.contains((1 - 1e-4) * curve[::4000]).all()
    # For size 2, the curve is the interval [-1, 1], and only its ends are on the boundary.
    ends = curve[::4000] if size > 2 else curve[:1]
    assert not body.contains(1.01 * ends).any()
    mixes = np.random.default_rng(1).dirichlet(np.ones(6), 3) @ curve[::4000] * (1 - 1e-4)
    assert body.contains(mixes).all()


def test_scales_stretch_both_bodies():
    scales = np.array([1.0, 0.5, 2.0, 4.0])
    points = 0.99 * moments(np.array([0.3, 2.0]), 4).mean(axis=0, keepdims=True)
    assert cosine_moment_body(scales[1:]).contains(points / scales[1:]).all()
    unit = grid_moment_body(np.ones(4), 9).vertices
    np.testing.assert_allclose(grid_moment_body(scales, 9).vertices, unit / scales[1:], rtol=1e-15)


def test_grid_body_has_the_product_moments_of_its_points():
    body = grid_moment_body(np.ones((3, 3)), 5)
    angles = np.linspace(0, math.pi, 5)
    assert body.vertices.shape == (25, 8)
    row = np.outer(np.cos(np.arange(3) * angles[1]), np.cos(np.arange(3) * angles[4]))
    np.testing.assert_allclose(body.vertices[1 * 5 + 4], row.ravel()[1:], atol=1e-15)


def half_way(scales, per_axis):
    """A distance to the grid body and its bound, for the angle half-way between two grid angles.

    The point has this angle, next to pi / 2, in every variable.
    """
    body = grid_moment_body(scales, per_axis)
    bends = (np.indices(scales.shape) ** 2).sum(axis=0) / scales
    limit = (math.pi / (per_axis - 1)) ** 2 / 8 * np.linalg.norm(bends)
    middle = math.pi * (per_axis // 2 + 0.5) / (per_axis - 1)
    wave = np.cos(np.arange(len(scales)) * middle)
    point = reduce(np.kron, [wave] * scales.ndim)[1:] / scales.ravel()[1:]
    return np.linalg.norm(project(body, point).point - point), limit


@pytest.mark.parametrize(("size", "dimension", "per_axis"), [(8, 1, 17), (8, 1, 65), (4, 2, 13)])
def test_distance_of_true_moments_from_the_grid_body(size, dimension, per_axis):
    """Half-way between grid angles, the distance is below the bound of `grid_moment_body`.

    The moments of one variable are some coordinates of the body, and those of another variable are
    other coordinates. So the squared distance is at least the sum over the variables of the squared
    distances for one variable.
    """
    scales = np.random.default_rng(0).uniform(0.5, 2, (size,) * dimension)
    distance, limit = half_way(scales, per_axis)
    assert distance <= limit
    axes = [np.moveaxis(scales, axis, 0).reshape(size, -1)[:, 0] for axis in range(dimension)]
    least = np.linalg.norm([half_way(axis[:3], per_axis)[0] for axis in axes])
    assert distance >= least * (1 - 1e-6) > 0


def test_distance_of_three_moments_is_nearly_the_bound():
    """For t = 3 and small h, the bound is sqrt(17) / 4 = 1.03 times the distance.

    The moment curve is the parabola (x, 2 x^2 - 1). At x = cos a, the chord between the grid angles
    a - h / 2 and a + h / 2 is higher by 2 sin(a)^2 sin(h / 2)^2, and its slope is
    4 cos(a) cos(h / 2).
    """
    per_axis = 65
    h = math.pi / (per_axis - 1)
    a = math.pi / 2 + h / 2
    height, slope = 2 * (math.sin(a) * math.sin(h / 2)) ** 2, 4 * math.cos(a) * math.cos(h / 2)
    distance, limit = half_way(np.ones(3), per_axis)
    assert distance == pytest.approx(height / math.hypot(1, slope), rel=1e-6)
    assert distance <= limit <= 1.04 * distance


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: cosine_moment_body([]), "scales must hold at least one number"),
        (lambda: cosine_moment_body([1.0, 0.0]), "scales must be above 0, got 0.0 at index 1"),
        (lambda: cosine_moment_body([1.0, math.nan]), "scales must be finite"),
        (lambda: grid_moment_body(np.ones((3, 2)), 5), r"shape \(t,\) \* d, t >= 2, got \(3, 2\)"),
        (lambda: grid_moment_body(np.ones(1), 5), "t >= 2"),
        (lambda: grid_moment_body(np.ones(3), 1), "per_axis must be"),
        (lambda: grid_moment_body(np.ones((8, 8, 8)), 64), "must be at most 33554432, got 64.3"),
    ],
)
def test_errors(build, message):
    with pytest.raises(ValueError, match=message):
        build()
