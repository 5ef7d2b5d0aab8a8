"""On 200 random polytopes, gauge, membership and separation agree with linear programs."""

from __future__ import annotations

import numpy as np
import pytest

from geomdp.bodies import Body, VPolytope
from geomdp.bodies.linear_programs import ConicProgram

BODIES = 200


def random_vertices(seed: int) -> np.ndarray:
    """Gaussian, lattice or 0-1 points, or points of a subspace; some are repeated or shifted."""
    rng = np.random.default_rng(seed)
    dimension, count = int(rng.integers(1, 7)), int(rng.integers(2, 30))
    match seed % 4:
        case 0:
            vertices = rng.standard_normal((count, dimension))
        case 1:
            vertices = rng.integers(-2, 3, (count, dimension)).astype(float)
        case 2:
            vertices = rng.choice([0.0, 1.0], (count, dimension))
        case _:
            plane = rng.standard_normal((max(1, dimension - 1), dimension))
            vertices = rng.standard_normal((count, len(plane))) @ plane
    if seed % 3 == 0:
        vertices = np.vstack([vertices, vertices[: count // 2]])
    if seed % 5 == 0:
        vertices = vertices + rng.standard_normal(dimension)
    return vertices * 10.0 ** rng.integers(-3, 4)


def gauge_about(vertices: np.ndarray, centre: np.ndarray, points: np.ndarray) -> np.ndarray:
    """For each point p, the least t >= 0 such that p is in centre + t (hull - centre), by HiGHS.

    The value is inf if p is outside the affine hull.
    """
    program = ConicProgram((vertices - centre).T.copy(), np.ones(len(vertices)))
    return program.solve(points - centre)[0]


@pytest.mark.parametrize("first", range(0, BODIES, 20))
def test_random_polytopes_agree_with_linear_programs(first: int) -> None:
    for seed in range(first, first + 20):
        vertices = random_vertices(seed)
        rng = np.random.default_rng([seed, 1])
        body, centre = VPolytope(vertices), vertices.mean(axis=0)
        size = body.radius() + float(np.abs(centre).max()) + 1e-300
        directions = rng.standard_normal((4, body.dimension))
        tops = body.extreme_point(directions)
        heights = (directions @ vertices.T).max(axis=1)
        np.testing.assert_allclose(body.support(directions), heights, rtol=1e-13)
        np.testing.assert_allclose(
            np.einsum("bm,bm->b", directions, tops), heights, rtol=1e-12, atol=1e-14 * size
        )
        # Points of the hull moved three times as far from the centre, the same points where they
        # were, and random points around the centre.
        mixes = rng.dirichlet(np.ones(len(vertices)), 4) @ vertices
        points = np.vstack([centre + 3 * (mixes - centre), mixes, centre + size * directions])
        gauges = gauge_about(vertices, centre, points)
        clear = np.abs(gauges - 1) > 1e-6  # far above the tolerance 1e-9 of the linear programs
        held = body.contains(points)
        np.testing.assert_array_equal(held[clear], gauges[clear] < 1)
        for point, inside in zip(points[clear], gauges[clear] < 1, strict=True):
            half = body.separate(point)
            assert (half is None) == inside
            if half is not None:
                slack = 1e-12 * size * float(np.linalg.norm(half.normal))
                assert (vertices @ half.normal <= half.offset + slack).all()
                assert half.normal @ point > half.offset
        if body.implements(Body.gauge):
            expected = gauge_about(vertices, np.zeros(body.dimension), points)
            np.testing.assert_allclose(body.gauge(points), expected, rtol=1e-6, atol=1e-9)
