"""Polytopes by vertices, inequalities and oracles agree with linear programs and known facets."""

import numpy as np
import pytest
from scipy.optimize import linprog

from geomdp._numerics.linalg import AffineHull
from geomdp.bodies import (
    Body,
    HPolytope,
    SlabBody,
    SolverError,
    VPolytope,
)
from geomdp.bodies.linear_programs import ConicProgram
from geomdp.bodies.ray_shooting import independent_points
from geomdp.bodies.sensitivity import WorkloadPolytope
from geomdp.workloads import Histogram
from tests.catalogue import cube, gaussian

SQUARE = np.vstack([np.eye(2), -np.eye(2)])


@pytest.mark.parametrize("entries", [40 * 7, 40 * 3])
def test_support_in_blocks_equals_one_product_and_ties_go_to_the_first(monkeypatch, entries):
    vertices = np.vstack([gaussian(300, 5), gaussian(100, 5)])
    body, directions = VPolytope(vertices), np.vstack([gaussian(39, 5, seed=1), np.zeros((1, 5))])
    whole, winners = body.support(directions), body.extreme_point(directions)
    monkeypatch.setattr("geomdp._numerics.linalg.BLOCK_ENTRIES", entries)
    np.testing.assert_array_equal(body.support(directions), whole)
    np.testing.assert_array_equal(body.extreme_point(directions), winners)
    best = (directions @ vertices.T).argmax(axis=1)
    np.testing.assert_array_equal(winners, vertices[best])


def test_gauge_near_0_is_not_confused_by_rounding():
    """Vectors outside the span of the body have infinite gauges, but rounding errors do not."""
    flat = VPolytope((2 * cube(3) - 1) @ gaussian(3, 5, seed=3))
    noise = 1e-15 * gaussian(4, 5)
    assert (flat.gauge(noise) <= 1e-14).all()
    assert np.isinf(flat.gauge(1e-9 * gaussian(4, 5))).all()


def test_known_facets_and_gauges_of_cubes():
    found = VPolytope(2 * (2 * cube(3) - 1)).facets(np.array([[1.0, 0.2, -0.3], [0, -5, 1.0]]))
    np.testing.assert_allclose(found.gauges, [0.5, 2.5], rtol=1e-12)
    np.testing.assert_allclose(found.normals, [[0.5, 0, 0], [0, -0.5, 0]], atol=1e-12)
    assert VPolytope(cube(2) - 0.001).implements(Body.gauge)
    flat = np.hstack([cube(2) - 0.5, np.ones((4, 1))])
    assert not VPolytope(flat).implements(Body.gauge)
    assert VPolytope(flat - [0, 0, 1]).implements(Body.gauge)


def test_symmetry_is_recognised_from_the_list():
    points = gaussian(6, 3)
    assert VPolytope(np.vstack([points, -points, points])).symmetric
    assert not VPolytope(points).symmetric
    assert VPolytope(np.zeros((1, 3))).symmetric
    assert HPolytope(SQUARE, [1, 2, 1, 2]).symmetric
    assert not HPolytope(SQUARE, [1, 2, 1, 3]).symmetric


def test_a_far_redundant_row_does_not_blur_membership():
    square = HPolytope(np.vstack([SQUARE, [[1.0, 0.0]]]), [1, 1, 1, 1, 1e9])
    assert square.contains(np.array([[1.0, 1.0], [1 + 1e-6, 0]])).tolist() == [True, False]
    assert square.implements(Body.gauge)


def test_a_point_given_by_inequalities():
    point = HPolytope(SQUARE, [0.3, 0.4, -0.3, -0.4])
    assert point.affine_hull().dimension == 0
    np.testing.assert_allclose(point.extreme_point(np.array([[1.0, 2], [0, 0]])), [[0.3, 0.4]] * 2)
    assert point.contains(np.array([[0.3, 0.4], [0.3, 0.4001]])).tolist() == [True, False]
    assert [end[0] for end in point.chord(np.array([[0.3, 0.4]]), np.ones((1, 2)))] == [0, 0]


#: Relative tolerance: five times the tolerance of HiGHS in the library, on data scaled to size 1.
ACCURACY = 5e-9


def degenerate(kind: int, rng: np.random.Generator) -> np.ndarray:
    """Points whose hull contains 0. For `kind` 1 to 4 they are degenerate in different ways."""
    m, count = int(rng.integers(1, 6)), int(rng.integers(8, 40))
    points = rng.standard_normal((count, m))
    if kind == 1:  # vertices of a cube, so that many points share a facet
        points = np.sign(points)
    elif kind == 2:  # repeated points, and points that are no vertices
        points = np.vstack([points, points[: count // 2], points[:3] / 2, np.zeros((1, m))])
    elif kind == 3:  # a polytope of dimension m in dimension m + 2
        points = points @ rng.standard_normal((m, m + 2))
    elif kind == 4:  # points of a small integer grid
        points = np.round(2 * points)
    points = np.vstack([points, -points[: len(points) // 2]])
    return np.vstack([points, -points.sum(axis=0)]) * 10.0 ** rng.integers(-3, 4)


INSTANCES = [pytest.param(seed, seed % 5, id=f"{seed}-kind{seed % 5}") for seed in range(25)]


def in_span(points: np.ndarray, rng: np.random.Generator, count: int = 4) -> np.ndarray:
    return rng.standard_normal((count, len(points))) @ points / np.sqrt(len(points))


@pytest.mark.parametrize(("seed", "kind"), INSTANCES)
def test_membership_and_separation_agree_with_linprog(seed, kind):
    rng = np.random.default_rng(seed)
    V = degenerate(kind, rng) + rng.standard_normal()  # 0 need not be in the hull
    body = VPolytope(V)
    centre = V.mean(axis=0)
    points = centre + in_span(V - centre, rng, 6)
    size = np.abs(V).max()  # scale the data, because tolerances of `linprog` are absolute
    lifted = np.hstack([V / size, np.ones((len(V), 1))])
    for point in points:
        target = np.append(point / size, 1)
        inside = linprog(np.zeros(len(V)), A_eq=lifted.T, b_eq=target, method="highs").status == 0
        assert body.contains(point[None])[0] == inside
        cut = body.separate(point)
        assert (cut is None) == inside
        if cut is not None:
            rounding = 1e-12 * np.linalg.norm(cut.normal) * np.abs(V).max()
            assert (V @ cut.normal <= cut.offset + rounding).all()
            assert point @ cut.normal > cut.offset


@pytest.mark.parametrize("seed", range(25))
def test_supports_of_inequalities_agree_with_linprog(seed):
    rng = np.random.default_rng(seed)
    m, size = int(rng.integers(1, 6)), 10.0 ** rng.integers(-3, 4)
    A = rng.standard_normal((m + int(rng.integers(0, 20)), m))
    if seed % 3 == 1:
        A = np.vstack([np.sign(A), A[:2], A[:2]])
    slabs = SlabBody(np.vstack([A, np.eye(m)]), size * rng.uniform(0.5, 2, len(A) + m))
    rows, widths = slabs.directions, slabs.widths
    offsets = np.concatenate([widths, widths * rng.uniform(0, 1, len(widths))])
    both = np.vstack([rows, -rows])
    directions = rng.standard_normal((4, m))
    for body, b in ((slabs, np.tile(widths, 2)), (HPolytope(both, offsets), offsets)):
        expected = [
            -linprog(-u, A_ub=both, b_ub=b, bounds=(None, None), method="highs").fun
            for u in directions
        ]
        np.testing.assert_allclose(body.support(directions), expected, rtol=ACCURACY)
        corners = body.extreme_point(directions)
        assert (both @ corners.T <= b[:, None] * (1 + 1e-12) + 1e-9 * size).all()


def test_programs_that_have_no_solution():
    program = ConicProgram(np.array([[1.0, 1.0], [1.0, 2.0]]), np.ones(2))
    values, duals = program.solve(np.array([[1.0, 1.5], [-1.0, 0.0], [1.0, 1.5], [0.0, 0.0]]))
    np.testing.assert_allclose(values, [1, np.inf, 1, 0], rtol=ACCURACY)
    assert not duals[1].any()
    with pytest.raises(SolverError, match="status"):
        ConicProgram(np.array([[1.0, -1.0]]), np.array([1.0, -2.0])).solve(np.ones((1, 1)))


def test_independent_points_span_the_hull_and_flat_bodies_say_so() -> None:
    points = independent_points(WorkloadPolytope(Histogram(4)))
    assert np.linalg.matrix_rank(points[1:] - points[0]) == len(points) - 1

    class Lying(VPolytope):
        def affine_hull(self):
            return AffineHull.whole_space(3)

    with pytest.raises(ValueError, match="body must have dimension 3, like the affine hull"):
        independent_points(Lying(np.eye(2, 3)))
