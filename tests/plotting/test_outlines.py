"""Outlines of bodies have the known areas, volumes and edges, and their faces point outwards."""

from __future__ import annotations

import math

import numpy as np
import pytest

import geomdp as gd
from geomdp.bodies import Body, MissingOracle
from geomdp.plotting.pictures import (
    Outline,
    hull_of,
    shadow_outline,
    slice_outline,
    unit_directions,
)


def solid_volume(outline: Outline) -> float:
    """Volume by the divergence theorem, which needs triangles that are all turned outwards."""
    a, b, c = (outline.points[outline.triangles[:, i]] for i in range(3))
    return float(np.einsum("tk,tk->t", a, np.cross(b, c)).sum() / 6)


def ring_area(outline: Outline) -> float:
    """Area inside a ring of points, positive if the points run counter-clockwise."""
    x, y = outline.points.T
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


BOX = gd.bodies.Box(np.array([-1.0, -2.0, 0.0]), np.array([1.0, 2.0, 3.0]))


def face_count(outline: Outline) -> int:
    """Number of faces of a polytope: the triangles of one face have the same unit normal."""
    a, b, c = (outline.points[outline.triangles[:, i]] for i in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    # Adding 0 turns -0 into 0, so that equal normals have equal bits after rounding.
    return len(np.unique(normals.round(6) + 0.0, axis=0))


@pytest.mark.parametrize(
    ("body", "volume", "vertices", "edges", "faces"),
    [
        (BOX, 24.0, 8, 12, 6),
        (gd.bodies.CrossPolytope(3), 4 / 3, 6, 12, 8),
        # The last point lies inside the hull of the others, so it is no vertex.
        (gd.bodies.VPolytope(np.vstack([np.zeros(3), np.eye(3), np.full(3, 0.2)])), 1 / 6, 4, 6, 4),
    ],
    ids=["box", "cross-polytope", "simplex"],
)
def test_polytopes_are_drawn_exactly(body, volume, vertices, edges, faces):
    outline = shadow_outline(body, np.eye(3))
    assert solid_volume(outline) == pytest.approx(volume, rel=1e-12)
    found = len(outline.points), len(outline.edges), face_count(outline)
    assert found == (vertices, edges, faces)


@pytest.mark.parametrize(
    ("body", "volume"),
    [
        (gd.bodies.Ball(3, 2.0), 4 / 3 * math.pi * 8),
        # Joe (2006): the volume of 3 x 3 correlation matrices.
        (gd.bodies.Elliptope(3), math.pi**2 / 2),
        (gd.bodies.LpBall(1.5, 3), gd.bodies.LpBall(1.5, 3).volume()),
        (gd.bodies.Spectraplex(2), gd.bodies.Spectraplex(2).volume()),
        (
            gd.difference_body(gd.bodies.Spectraplex(2)),
            gd.difference_body(gd.bodies.Spectraplex(2)).volume(),
        ),
    ],
    ids=["ball", "elliptope", "p = 1.5", "spectraplex", "its difference"],
)
def test_smooth_bodies_are_drawn_from_inside(body, volume):
    drawn = solid_volume(shadow_outline(body, np.eye(3)))
    # The 3000 directions are about 4 degrees apart, so the outline of a unit ball cuts off caps of
    # height 1 - cos(2 degrees).
    assert (1 - 0.01) * volume < drawn <= volume * (1 + 1e-9)


def test_a_ball_has_no_edges():
    assert len(shadow_outline(gd.bodies.Ball(3), np.eye(3)).edges) == 0


def test_a_reflected_hull_is_turned_outwards():
    points = np.random.default_rng(0).normal(size=(40, 3))
    for matrix in (np.eye(3), np.diag([1.0, 1.0, -1.0]), np.eye(3)[[1, 0, 2]]):
        assert solid_volume(hull_of(points @ matrix)) > 0


@pytest.mark.parametrize("body", [gd.bodies.Ball(2), gd.bodies.Elliptope(3)], ids=["disc", "3-D"])
def test_slices_through_the_middle_lie_in_shadows(body):
    rows = np.eye(2, body.dimension)
    inner = slice_outline(body, np.zeros(body.dimension), rows)
    outer = shadow_outline(body, rows)
    assert 0 < ring_area(inner) <= ring_area(outer) * (1 + 1e-3)
    assert body.contains(inner.points @ rows, 1e-9).all()


def test_a_disc_is_drawn_to_its_area():
    # A regular polygon with N corners on the unit circle has the area N sin(2 pi / N) / 2.
    count = len(unit_directions(2))
    expected = count * math.sin(2 * math.pi / count) / 2
    assert ring_area(shadow_outline(gd.bodies.Ball(2), np.eye(2))) == pytest.approx(expected)


class Disc(Body):
    """A disc that implements only its support function."""

    @property
    def dimension(self) -> int:
        return 2

    def support(self, directions):
        return np.linalg.norm(directions, axis=1) + directions @ [3.0, 1.0]


def test_a_support_function_is_enough():
    outline = shadow_outline(Disc(), np.eye(2))
    count = len(unit_directions(2))
    distances = np.linalg.norm(outline.points - [3.0, 1.0], axis=1)
    np.testing.assert_allclose(distances, 1 / math.cos(math.pi / count), rtol=1e-9)
    with pytest.raises(MissingOracle, match="contains"):
        slice_outline(Disc(), np.array([3.0, 1.0]), np.eye(2))


@pytest.mark.parametrize(("k", "count"), [(1, 1), (2, 2), (3, 3)])
def test_flat_hulls(k, count):
    points = np.eye(3)[:k]
    found = hull_of(np.vstack([points, points.mean(axis=0)]))
    assert len(found.points) == count
    assert len(found.triangles) == len(found.edges) == 0


def test_a_centre_outside_is_refused():
    with pytest.raises(ValueError, match="centre must lie in the body"):
        slice_outline(gd.bodies.Ball(2), np.array([2.0, 0.0]), np.eye(2))
