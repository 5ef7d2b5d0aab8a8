"""Whole-number polytopes cut into simplices: the proof accepts correct cuts, not defective ones."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from flint import fmpz_mat

from geomdp.bodies import TriangulatedPolytope
from geomdp.bodies.polytopes import triangulation as module
from geomdp.bodies.polytopes.triangulation import determinants, whole_cones


def signs(r):
    return np.array(list(itertools.product([-1.0, 1.0], repeat=r)))


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


def test_volumes_are_those_of_the_hull(points):
    cones = whole_cones(points)
    volume = sum(cones.volumes) / math.factorial(points.shape[1])
    assert volume == pytest.approx(TriangulatedPolytope(points).volume(), rel=1e-12)


def test_facets_are_those_of_the_hull(points):
    cones = whole_cones(points)
    heights, offsets = cones.heights(points)
    assert (heights.max(axis=0) == offsets).all()
    rows = TriangulatedPolytope(points).facet_normals()
    exact = np.unique(np.round(cones.normals / cones.offsets[:, None], 9) + 0.0, axis=0)
    np.testing.assert_allclose(exact, np.unique(np.round(rows, 9) + 0.0, axis=0), atol=2e-9)


def test_determinants_are_exact():
    rng = np.random.default_rng(1)
    for order in (1, 2, 3, 6):
        matrices = rng.integers(-3, 4, (200, order, order))
        matrices[::5, 0] = matrices[::5, -1]
        matrices[::7, 0, 0] = 0
        expected = [int(fmpz_mat(matrix.tolist()).det()) for matrix in matrices]
        assert determinants(matrices).tolist() == expected


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


def missing(cones):
    return cones[1:]


def twice(cones):
    return np.vstack([cones, cones[:1]])


def all_twice(cones):
    return np.vstack([cones, cones])


def wrong_corner(cones):
    changed = cones.copy()
    changed[0, -1] = (changed[0, -1] + 1) % 8
    return np.sort(changed, axis=1)


@pytest.mark.parametrize("defect", [missing, twice, all_twice, wrong_corner])
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
