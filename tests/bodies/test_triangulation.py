"""Triangulations: volumes and moments (JL-L14), tilings, limits, and proofs in whole numbers."""

import itertools
import math

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import geomdp as gd
from geomdp.bodies import TriangulatedPolytope
from geomdp.bodies import point_sets as module
from geomdp.bodies.point_sets import (
    can_triangulate,
    determinants,
    hull_vertices,
    most_simplices,
    triangulate,
    whole_cones,
)
from geomdp.bodies.sensitivity import triangulated_neighbours
from tests.catalogue import cube, gaussian


@pytest.mark.parametrize(("count", "r"), [(8, 2), (20, 3), (12, 5), (40, 4)])
def test_simplices_tile_the_hull(count, r):
    """Every generic point of the body lies in exactly one simplex."""
    points = gaussian(count, r, seed=count)
    hull, cells = triangulate(points)
    assert cells.volumes.sum() == pytest.approx(ConvexHull(points).volume, rel=1e-11)
    inner = np.random.default_rng(0).dirichlet(np.ones(count), 60) @ points
    corners = cells.points[cells.simplices]
    edges = np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2)
    weights = np.stack(
        [
            np.linalg.solve(edges, (x - corners[:, 0])[:, :, None])[:, :, 0]
            for x in hull.coordinates(inner)
        ]
    )
    least = np.minimum(weights.min(axis=2), 1 - weights.sum(axis=2))
    assert (np.abs(least) > 1e-12).all()
    assert ((least > 0).sum(axis=1) == 1).all()


def test_upper_bound_theorem():
    """Triangulations never have more simplices than the bound, and a cyclic polytope attains it."""
    for r, count in itertools.product((2, 3, 4), (6, 9, 12)):
        assert len(triangulate(gaussian(count, r))[1].simplices) <= most_simplices(count, r)
    # For r = 3, the bound is the number of facets of a cyclic polytope in dimension 4. With N
    # vertices on the moment curve, this polytope has N (N - 3) / 2 facets.
    times = np.linspace(-1, 1, 11)
    curve = np.column_stack([times**k for k in range(1, 5)])
    assert len(ConvexHull(curve).simplices) == most_simplices(11, 3) == 11 * 8 // 2


def test_too_many_simplices_are_refused_before_any_work():
    """At most 2^20 simplices, and fewer in higher dimensions, where each of them takes longer."""
    assert can_triangulate(1000, 3)
    # Qhull does not end on the 32 answers to all pairs of 5 binary columns.
    workload = gd.workloads.MarginalTables([2] * 5, 2)
    answers = gd.sensitivity_polytope(workload)
    listed = answers.vertex_list()
    for points, refused in (
        (gaussian(3000, 8), "at most 2\\^20 simplices, got 3000 points in dimension 8"),
        (listed, r"at most 2\^33 / 15\^4 = 169677 simplices, got 32 .* use bodies.VPolytope"),
    ):
        for cut in (triangulate, hull_vertices):
            with pytest.raises(ValueError, match=refused):
                cut(points)
    assert triangulated_neighbours(answers, 15, gd.Adjacency.ADD_REMOVE) is None
    # The neighbour body of all pairs of 4 columns, of 32 vertices in dimension 11, is allowed.
    assert can_triangulate(2 * 16, 11)


def signs(r):
    return 2 * cube(r) - 1


def differences(points):
    return (points[:, None] - points[None]).reshape(-1, points.shape[1])


RNG = np.random.default_rng(0)
BODIES = {
    "segment": np.array([[-2.0], [0.0], [3.0]]),
    "square": signs(2),
    "cube": signs(3),
    "cube of dimension 5": signs(5),
    "cross polytope": np.vstack([np.eye(4), -np.eye(4)]),
    "random": RNG.integers(-9, 10, (40, 4)).astype(float),
    "differences": differences(RNG.integers(0, 2, (12, 4)).astype(float)),
    "not symmetric": np.vstack([np.eye(3), [[-1.0, -2, -3]]]),
}


@pytest.fixture(params=BODIES)
def points(request):
    return BODIES[request.param]


def test_volumes_and_facets_are_those_of_the_hull(points):
    cones, body = whole_cones(points), TriangulatedPolytope(points)
    volume = sum(cones.volumes) / math.factorial(points.shape[1])
    assert volume == pytest.approx(body.volume(), rel=1e-12)
    heights, offsets = cones.heights(points)
    assert (heights.max(axis=0) == offsets).all()
    exact = np.unique(np.round(cones.normals / cones.offsets[:, None], 9) + 0.0, axis=0)
    rows = np.unique(np.round(body.facet_normals(), 9) + 0.0, axis=0)
    np.testing.assert_allclose(exact, rows, atol=2e-9)


@pytest.mark.parametrize(
    "points",
    [
        0.5 * signs(3),
        signs(3) + 5,
        signs(3) + 1,
        np.column_stack([signs(2), signs(2)[:, 0]]),
        np.array([[1.0, 1], [np.nextafter(1, 2), -1], [-1, 0]]),
        1e9 * signs(3),
    ],
    ids=["halves", "0 outside", "0 on a facet", "flat", "nearly whole", "too large"],
)
def test_without_whole_points_around_0_there_is_no_proof(points):
    assert whole_cones(points) is None


def wrong_corner(cones):
    changed = cones.copy()
    changed[0, -1] = (changed[0, -1] + 1) % 8
    return np.sort(changed, axis=1)


DEFECTS = {
    "missing": lambda cones: cones[1:],
    "twice": lambda cones: np.vstack([cones, cones[:1]]),
    "all twice": lambda cones: np.vstack([cones, cones]),
    "wrong corner": wrong_corner,
}


@pytest.mark.parametrize("defect", DEFECTS.values(), ids=DEFECTS)
def test_a_defective_cut_is_refused(monkeypatch, defect):
    right = module._pulled(np.unique(signs(3).astype(np.int64), axis=0))
    assert whole_cones(signs(3)) is not None
    monkeypatch.setattr(module, "_pulled", lambda _: defect(right))
    assert whole_cones(signs(3)) is None


def cuts_of_the_cube(points):
    """A coarse and a fine cut of the cube whose corners and middles of edges are `points` (20, 3).

    The coarse cut has 2 triangles in each square, with corners of the cube only. The fine cut has 6
    triangles in each square, with the middles of the edges too.
    """
    coarse, fine = [], []
    for axis, side in itertools.product(range(3), (-1, 1)):
        rows = np.flatnonzero(points[:, axis] == side)
        x, y = np.delete(points[rows], axis, axis=1).T
        ring = rows[np.argsort(np.arctan2(y, x))]  # corners and middles by turns
        (a, b, c, d), (ab, bc, cd, da) = ring[::2], ring[1::2]
        coarse += [(a, b, c), (a, c, d)]
        fine += [(da, a, ab), (ab, b, bc), (bc, c, cd), (cd, d, da), (ab, bc, cd), (ab, cd, da)]
    return np.sort(coarse, axis=1), np.sort(fine, axis=1)


def test_a_cover_that_winds_around_twice_is_refused(monkeypatch):
    """Two cuts of the cube without a common wall meet all demands, except that they cover twice."""
    grid = np.array(list(itertools.product([-1, 0, 1], repeat=3)))
    points = grid[(grid == 0).sum(axis=1) <= 1]
    coarse, fine = cuts_of_the_cube(points)
    both = np.vstack([coarse, fine])
    assert module._closed(both, determinants(points[both]))
    for cut, accepted in ((coarse, True), (fine, True), (both, False)):
        monkeypatch.setattr(module, "_pulled", lambda _, cut=cut: cut)
        assert (whole_cones(points.astype(float)) is not None) == accepted


def test_large_cuts_are_given_up(monkeypatch):
    monkeypatch.setattr(module, "MAX_CONES", 20)
    assert whole_cones(signs(3)) is not None
    assert whole_cones(signs(5)) is None
    monkeypatch.setattr(module, "MAX_FACETS", 5)
    assert whole_cones(signs(3)) is None
