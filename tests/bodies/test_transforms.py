"""Linear images, scaled and shifted bodies, difference bodies and symmetric hulls."""

from __future__ import annotations

import numpy as np
import pytest

from geomdp import bounds, gaussian_width, sample_uniform, volume
from geomdp.bodies import (
    Ball,
    Body,
    Box,
    CrossPolytope,
    Difference,
    Ellipsoid,
    LinearImage,
    MissingOracle,
    NuclearBall,
    Product,
    Scaled,
    Simplex,
    SimplexDifference,
    Spectraplex,
    SpectraplexDifference,
    SymmetrisedBox,
    VPolytope,
    difference_body,
    symmetric_hull,
)
from geomdp.bodies.sensitivity import WorkloadPolytope, check_contains_neighbours
from geomdp.bodies.symmetrised import Shifted, SymmetricHull
from geomdp.privacy import Adjacency
from geomdp.workloads import Parities, Prefixes
from tests.catalogue import AROUND_0, BODIES, TALL, TURN, cube, gaussian


def test_an_image_of_a_ball_is_an_ellipsoid():
    image, ellipsoid = LinearImage(TALL, Ball(3, 2)), Ellipsoid(2 * TALL)
    points = gaussian(6, 3) @ TALL.T
    np.testing.assert_allclose(image.gauge(points), ellipsoid.gauge(points), rtol=1e-12)
    np.testing.assert_allclose(image.second_moment(), ellipsoid.second_moment(), rtol=1e-12)
    assert image.volume() == pytest.approx(ellipsoid.volume(), rel=1e-12)


def test_images_of_polytopes_agree_with_mapped_vertices():
    vertices = gaussian(12, 3)
    vertices -= vertices.mean(axis=0)
    image, mapped = LinearImage(TALL, VPolytope(vertices)), VPolytope(vertices @ TALL.T)
    points, ways = gaussian(5, 3) @ TALL.T, gaussian(5, 3, seed=1) @ TALL.T
    np.testing.assert_allclose(image.gauge(points), mapped.gauge(points), rtol=1e-8)
    np.testing.assert_allclose(
        image.facets(points).normals, mapped.facets(points).normals, atol=1e-8
    )
    inner = 0.2 * points / mapped.gauge(points)[:, None]
    np.testing.assert_allclose(image.chord(inner, ways), mapped.chord(inner, ways), rtol=1e-7)
    np.testing.assert_array_equal(image.vertex_list(), mapped.vertices)


def test_a_map_that_is_not_one_to_one_serves_only_what_it_can():
    image = LinearImage(gaussian(2, 3), Box.centred(np.ones(3)))
    corners = (2 * cube(3) - 1) @ image.matrix.T
    directions = gaussian(4, 2)
    expected = VPolytope(corners).support(directions)
    np.testing.assert_allclose(image.support(directions), expected, rtol=1e-14)
    assert not image.one_to_one
    for verb in (image.gauge, image.facets, image.contains, image.project):
        with pytest.raises(MissingOracle):
            verb(np.ones((1, 2)))
    for verb in (image.volume, image.second_moment, image.centroid):
        with pytest.raises(MissingOracle):
            verb()
    with pytest.raises(MissingOracle):
        image.sample_uniform(3, np.random.default_rng(0))
    with pytest.raises(MissingOracle):
        image.chord(np.zeros((1, 2)), np.ones((1, 2)))


def test_projection_through_an_isometry():
    frame = np.linalg.qr(TALL)[0]
    image = LinearImage(3 * frame, CrossPolytope(3))
    target = gaussian(4, 5)
    expected = CrossPolytope(3, 3).project(target @ frame) @ frame.T
    np.testing.assert_allclose(image.project(target), expected, atol=1e-13)
    assert not LinearImage(TALL, CrossPolytope(3)).implements(Body.project)


def test_radius_of_an_image_is_a_bound():
    body = LinearImage(TALL, Shifted(Ball(3, 0.1), [5, 5, 5]))
    corners = body.extreme_point(gaussian(50, 5))
    assert np.linalg.norm(corners, axis=1).max() <= body.radius()


def test_shifted_gauges_come_from_chords():
    body = Shifted(Box.centred([1, 1]), [0.5, 0])
    assert not body.implements(Body.gauge)
    np.testing.assert_allclose(
        body.gauge(np.array([[1.5, 0], [-1, 0], [0, 0]])), [1, 2, 0], rtol=1e-9
    )
    with pytest.raises(ValueError, match="does not contain 0"):
        Shifted(Ball(2), [3, 0]).gauge(np.ones((1, 2)))


CLOSED_DIFFERENCES = [
    (Box([0.0, -1], [1.0, 3]), Box),
    (Ball(3, 2), Ball),
    (CrossPolytope(3, 2), CrossPolytope),
    (Ellipsoid(TALL), Ellipsoid),
    (Simplex(AROUND_0 + 1), SimplexDifference),
    (Spectraplex(3), SpectraplexDifference),
    (Product([Box([0.0], [1.0]), Simplex(np.eye(3))]), Product),
    (Scaled(Simplex(np.eye(3)), 3), Scaled),
    (Shifted(Spectraplex(2), [1, 2, 3]), SpectraplexDifference),
    (LinearImage(TALL, Simplex(AROUND_0)), LinearImage),
    (VPolytope(2 * cube(3) - 1), Scaled),
    (VPolytope(cube(3)), Difference),
    (WorkloadPolytope(Parities(3, 2)), Difference),
]


@pytest.mark.parametrize(("body", "kind"), CLOSED_DIFFERENCES, ids=lambda value: repr(value)[:40])
def test_difference_bodies(body, kind):
    """For every kind of body K, the support function of K - K is h_K(u) + h_K(-u)."""
    difference = difference_body(body)
    assert type(difference) is kind
    assert difference.symmetric
    directions = gaussian(6, body.dimension)
    expected = body.support(directions) + body.support(-directions)
    np.testing.assert_allclose(difference.support(directions), expected, rtol=1e-12, atol=1e-12)
    basis, own = body.affine_hull().basis, difference.affine_hull().basis
    np.testing.assert_allclose(own @ own.T, basis @ basis.T, atol=1e-12)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (Box(np.zeros(3), [1.0, 2, 3]), SymmetrisedBox),
        (Box([-1.0, 0], [1.0, 2]), SymmetricHull),
        (Box.centred([1.0, 2]), Box),
        (Ball(2), Ball),
        (Simplex(np.eye(3)), LinearImage),
        (Simplex(AROUND_0), SymmetricHull),
        (Spectraplex(3), NuclearBall),
        (LinearImage(TALL, Spectraplex(2)), LinearImage),
        (Scaled(Spectraplex(2), 2), Scaled),
        (VPolytope(cube(3) + 1), SymmetricHull),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_symmetric_hulls(body, kind):
    """The hull of K and -K has the support function max(h_K(u), h_K(-u)) and the span of K."""
    hull = symmetric_hull(body)
    assert type(hull) is kind
    assert hull.symmetric
    directions = gaussian(6, body.dimension)
    expected = np.maximum(body.support(directions), body.support(-directions))
    np.testing.assert_allclose(hull.support(directions), expected, rtol=1e-12)
    corners = hull.extreme_point(directions)
    np.testing.assert_allclose((corners * directions).sum(axis=1), expected, rtol=1e-12)
    points = body.extreme_point(gaussian(30, body.dimension))
    span = np.linalg.matrix_rank(points, tol=1e-9)
    assert hull.affine_hull().dimension == span


def test_difference_and_hull_gauges_of_the_same_polytope():
    """K - K and the hull of K and -K agree with polytopes that are built from lists of points."""
    V = gaussian(9, 3) + 1
    K = VPolytope(V)
    points = gaussian(6, 3, seed=1)
    pairs = VPolytope((V[:, None] - V).reshape(-1, 3))
    np.testing.assert_allclose(Difference(K).gauge(points), pairs.gauge(points), rtol=1e-8)
    both = VPolytope(np.vstack([V, -V]))
    np.testing.assert_allclose(SymmetricHull(K).gauge(points), both.gauge(points), rtol=1e-8)
    np.testing.assert_allclose(SymmetricHull(K).vertex_list(), both.vertices)


def test_a_turned_body_is_the_same_body():
    turnable = [case for case in BODIES if case.has("support") and case.build(1.0).dimension == 3]
    assert turnable
    for case in turnable:
        body = case.build(1.0)
        turned = LinearImage(TURN, body)
        directions = gaussian(3, 3)
        np.testing.assert_allclose(
            turned.support(directions @ TURN.T), body.support(directions), rtol=0, atol=1e-5
        )
        assert turned.affine_hull().dimension == case.rank


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: LinearImage(np.eye(2), Ball(3)), "matrix must have shape"),
        (lambda: LinearImage(np.zeros((0, 3)), Ball(3)), "matrix must have shape"),
        (lambda: LinearImage([[np.nan, 0, 0]], Ball(3)), "finite"),
        (lambda: Scaled(Ball(3), 0), "factor"),
        (lambda: Scaled(Ball(3), -1), "factor"),
        (lambda: Shifted(Ball(3), [1, 2]), "offset must have shape"),
        (lambda: Shifted(Ball(3), [1, 2, np.inf]), "finite"),
        (lambda: difference_body(np.eye(2)), "must be a Body"),
        (lambda: symmetric_hull("cube"), "must be a Body"),
        (lambda: SymmetrisedBox([1.0, 0.0]), "above 0"),
        (lambda: SymmetrisedBox([]), "above 0"),
    ],
)
def test_bad_parameters_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


#: Operations and algorithms that take a body. Without a check, other operands would fail later.
TAKERS = [
    lambda body: Scaled(body, 2.0),
    lambda body: Shifted(body, np.ones(3)),
    lambda body: LinearImage(np.eye(3), body),
    Difference,
    SymmetricHull,
    difference_body,
    symmetric_hull,
    gaussian_width,
    volume,
    bounds.volume_radii,
    lambda body: sample_uniform(body, 3, rng=0),
    lambda body: check_contains_neighbours(body, Prefixes(3), Adjacency.REPLACE_ONE),
]


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("operand", [None, 1.0, "ball", np.eye(3), [Ball(3)], Ball])
def test_operands_must_be_bodies(taker, operand):
    with pytest.raises(ValueError, match=r"body must be a Body, got "):
        taker(operand)


@pytest.mark.parametrize("workload", [None, 3, "marginals", np.eye(2)])
def test_a_polytope_of_a_workload_needs_one(workload):
    with pytest.raises(ValueError, match="workload must be a Workload"):
        WorkloadPolytope(workload)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Box([0.0], [10**400]),
        lambda: Shifted(Ball(1), [10**400]),
        lambda: Ellipsoid([[10**400]]),
        lambda: VPolytope([[10**400], [0]]),
    ],
)
def test_whole_numbers_beyond_float64_are_refused(build):
    with pytest.raises(ValueError, match="must be finite, got a number beyond float64"):
        build()
