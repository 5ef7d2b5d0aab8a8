"""V-polytopes, H-polytopes and slab bodies: known facets, ties, flat bodies and bad input."""

from __future__ import annotations

import numpy as np
import pytest

from geomdp.bodies import Body, HPolytope, SlabBody, VPolytope
from tests.catalogue import cube, gaussian

SQUARE = np.vstack([np.eye(2), -np.eye(2)])


def test_support_in_blocks_equals_one_product(monkeypatch):
    body, directions = VPolytope(gaussian(300, 5)), gaussian(40, 5, seed=1)
    whole, winners = body.support(directions), body.extreme_point(directions)
    monkeypatch.setattr("geomdp.bodies.polytopes.vpolytope.BLOCK_ENTRIES", 40 * 7)
    np.testing.assert_array_equal(body.support(directions), whole)
    np.testing.assert_array_equal(body.extreme_point(directions), winners)
    best = (directions @ body.vertices.T).argmax(axis=1)
    np.testing.assert_array_equal(winners, body.vertices[best])


def test_ties_go_to_the_first_vertex(monkeypatch):
    body = VPolytope(np.vstack([cube(2), cube(2)]))
    monkeypatch.setattr("geomdp.bodies.polytopes.vpolytope.BLOCK_ENTRIES", 3)
    found = body.extreme_point(np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]]))
    np.testing.assert_array_equal(found, body.vertices[[0, 3, 2]])


def test_interior_of_the_gauge_depends_on_the_relative_interior():
    square = cube(2) - 0.5
    assert VPolytope(square).implements(Body.gauge)
    assert VPolytope(square + 0.499).implements(Body.gauge)
    for shift in (0.5, 0.501, 3.0):
        body = VPolytope(square + shift)
        assert not body.implements(Body.gauge)
        for verb in (body.gauge, body.facets):
            with pytest.raises(ValueError, match="relative interior"):
                verb(np.ones((1, 2)))
    flat = np.hstack([square, np.ones((4, 1))])
    assert not VPolytope(flat).implements(Body.gauge)
    assert VPolytope(flat - [0, 0, 1]).implements(Body.gauge)


def test_gauge_near_0_is_not_confused_by_rounding():
    """Vectors outside the span of the body have infinite gauges, but rounding errors do not."""
    flat = VPolytope((2 * cube(3) - 1) @ gaussian(3, 5, seed=3))
    noise = 1e-15 * gaussian(4, 5)
    assert (flat.gauge(noise) <= 1e-14).all()
    assert np.isinf(flat.gauge(1e-9 * gaussian(4, 5))).all()


def test_known_facets_of_a_cube():
    found = VPolytope(2 * (2 * cube(3) - 1)).facets(np.array([[1.0, 0.2, -0.3], [0, -5, 1.0]]))
    np.testing.assert_allclose(found.gauges, [0.5, 2.5], rtol=1e-12)
    np.testing.assert_allclose(found.normals, [[0.5, 0, 0], [0, -0.5, 0]], atol=1e-12)


def test_symmetry_is_recognised_from_the_list():
    points = gaussian(6, 3)
    assert VPolytope(np.vstack([points, -points, points])).symmetric
    assert not VPolytope(points).symmetric
    assert VPolytope(np.zeros((1, 3))).symmetric
    assert HPolytope(SQUARE, [1, 2, 1, 2]).symmetric
    assert not HPolytope(SQUARE, [1, 2, 1, 3]).symmetric


@pytest.mark.parametrize(
    ("normals", "offsets", "message"),
    [
        (np.eye(2), [1, 1], "empty or unbounded"),
        ([[1.0, 0.0], [-1.0, 0.0]], [1, 1], "empty or unbounded"),
        (np.vstack([SQUARE, [[1.0, 1.0]]]), [1, 1, 1, 1, -2.1], "is empty"),
        (SQUARE, [1, 1, -1.1, 1], "is empty"),
    ],
    ids=["orthant", "strip", "no common point", "contradiction"],
)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_sets_that_are_no_bodies_say_so_at_first_use(normals, offsets, message, scale):
    points = np.zeros((1, 2))
    uses = [
        lambda body: body.support(points),
        lambda body: body.contains(points),
        lambda body: body.chord(points, points + 1),
        lambda body: body.affine_hull(),
        lambda body: body.implements(Body.gauge),
        lambda body: body.radius(),
    ]
    for use in uses:
        with pytest.raises(ValueError, match=message):
            use(HPolytope(normals, scale * np.array(offsets)))


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


def test_slabs_agree_with_the_same_inequalities():
    directions, widths = np.vstack([np.eye(3), gaussian(5, 3)]), np.linspace(1, 2, 8)
    slabs = SlabBody(directions, widths)
    rows = HPolytope(np.vstack([directions, -directions]), np.tile(widths, 2))
    points = gaussian(20, 3, seed=2)
    np.testing.assert_allclose(slabs.gauge(points), rows.gauge(points), rtol=1e-12)
    np.testing.assert_allclose(slabs.support(points), rows.support(points), rtol=1e-9)
    np.testing.assert_allclose(slabs.facets(points).normals, rows.facets(points).normals)
    inside = 0.3 * points / slabs.gauge(points)[:, None]
    for ends in zip(slabs.chord(inside, points), rows.chord(inside, points), strict=True):
        np.testing.assert_allclose(*ends, rtol=1e-12)


def test_slabs_that_do_not_span_are_unbounded():
    body = SlabBody([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [2.0, 0.0, 0.0]], [1, 1, 1])
    for use in (lambda: body.gauge(np.ones((1, 3))), lambda: body.support(np.ones((1, 3)))):
        with pytest.raises(ValueError, match="span only 2"):
            use()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: VPolytope(np.zeros((0, 3))), "shape"),
        (lambda: VPolytope(np.zeros((3, 0))), "shape"),
        (lambda: VPolytope(np.zeros(3)), "axes"),
        (lambda: VPolytope([[np.nan]]), "finite"),
        (lambda: VPolytope([["a"]]), "numeric"),
        (lambda: HPolytope(SQUARE, [1, 1, 1]), "shapes"),
        (
            lambda: HPolytope([[0.0, 0.0], [1.0, 0.0]], [1, 1]),
            "normals must not be 0, got 0 in row 0",
        ),
        (lambda: HPolytope(SQUARE, [1, 1, np.inf, 1]), "finite"),
        (lambda: SlabBody(np.eye(2), [1.0, 0.0]), "widths must be above 0, got 0.0 at index 1"),
        (lambda: SlabBody(np.zeros((1, 2)), [1.0]), "directions must not be 0"),
        (lambda: SlabBody(np.eye(2), [1.0]), "shapes"),
    ],
)
def test_bad_parameters_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_bodies_do_not_share_memory_with_their_arguments():
    vertices = gaussian(5, 2)
    body = VPolytope(vertices)
    before = body.support(np.eye(2))
    vertices *= 2
    np.testing.assert_array_equal(body.support(np.eye(2)), before)
    with pytest.raises(ValueError, match="read-only"):
        body.vertices[0, 0] = 1
