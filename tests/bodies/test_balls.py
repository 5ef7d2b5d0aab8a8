"""Balls, boxes, ellipsoids and products: values of the formula sheet and refused parameters."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from geomdp.bodies import (
    Ball,
    Body,
    Box,
    CrossPolytope,
    Ellipsoid,
    LpBall,
    Product,
    difference_body,
)
from geomdp.bodies.balls import ball_chord, log_unit_ball_volume
from tests.stats import ks_uniform, mean_agrees


@pytest.mark.parametrize("m", [1, 2, 3, 7, 40])
def test_second_moments_of_the_formula_sheet(m):
    """JL-L14: E ||U||^2 for a uniform point U of the unit ball of l1, l2 and l_inf."""
    moments = {
        CrossPolytope(m): 2 * m / ((m + 1) * (m + 2)),
        Ball(m): m / (m + 2),
        Box.centred(np.ones(m)): m / 3,
    }
    for body, expected in moments.items():
        assert np.trace(body.second_moment()) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(("k", "expected"), [(1, 1), (2, 1.128379), (5, 1.434730), (20, 2.401282)])
def test_volume_radius_of_the_cube(k, expected):
    """GEN-4: the volume radius of [-1, 1]^k is (volume / volume of the unit ball)^(1/k)."""
    ratio = Box.centred(np.ones(k)).volume() / Ball(k).volume()
    assert ratio ** (1 / k) == pytest.approx(expected, abs=5e-7)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("m", "mean_norm"), [(1, 0.797885), (2, 1.253314), (3, 1.595769), (10, 3.084328)]
)
def test_width_of_the_ball_is_the_mean_norm(m, mean_norm):
    """GEN-4: the Gaussian width of the unit ball is the mean norm of a Gaussian vector."""
    normals = np.random.default_rng(m).standard_normal((4000, m))
    mean_agrees(Ball(m).support(normals), mean_norm)


def test_unit_ball_volume():
    for m, kappa in enumerate([1, 2, math.pi, 4 * math.pi / 3, math.pi**2 / 2]):
        assert math.exp(log_unit_ball_volume(m)) == pytest.approx(kappa, rel=1e-14)


@pytest.mark.statistical
@pytest.mark.parametrize("m", [1, 30])
def test_entries_of_uniform_points_of_the_cross_polytope(m):
    """P(|U_1| > t) = (1 - t)^m for a uniform point U of the unit cross-polytope."""
    points = CrossPolytope(m, 2).sample_uniform(4000, np.random.default_rng(m)) / 2
    ks_uniform((1 - np.abs(points[:, 0])) ** m)


@pytest.mark.parametrize("m", [1, 4])
def test_balls_of_l_p_meet_the_known_ones(m):
    """p = 1 and 2 give `CrossPolytope` and `Ball`, and p = 1e6 gives nearly the cube.

    The reason is that |x|_p lies between |x|_inf and m^(1/p) |x|_inf.
    """
    u = np.random.default_rng(m).standard_normal((5, m))
    for body, known in ((LpBall(1, m, 2), CrossPolytope(m, 2)), (LpBall(2, m, 2), Ball(m, 2))):
        for verb in ("support", "gauge", "extreme_point"):
            np.testing.assert_allclose(getattr(body, verb)(u), getattr(known, verb)(u), rtol=1e-13)
        assert body.radius() == known.radius()
        assert body.volume() == pytest.approx(known.volume(), rel=1e-13)
        np.testing.assert_allclose(body.second_moment(), known.second_moment(), rtol=1e-13)
    steep, cube = LpBall(1e6, m), Box.centred(np.ones(m))
    np.testing.assert_allclose(steep.gauge(u), cube.gauge(u), rtol=1e-5)
    np.testing.assert_allclose(steep.support(u), cube.support(u), rtol=1e-5)
    np.testing.assert_allclose(steep.second_moment(), cube.second_moment(), atol=1e-5)


@pytest.mark.statistical
@pytest.mark.parametrize("p", [1, 1.2, 4, 1e9])
def test_uniform_points_of_balls_of_l_p(p):
    """P(||U||_p <= s) = s^m, and the entries of U have mean 0 and the stated second moments."""
    points = LpBall(p, 6).sample_uniform(4000, np.random.default_rng(6))
    ks_uniform(np.minimum(LpBall(p, 6).gauge(points), 1) ** 6)
    mean_agrees(points**2, np.diag(LpBall(p, 6).second_moment()))
    mean_agrees(points, np.zeros(6))


@pytest.mark.parametrize("exponent", [0.5, 0, -1, math.inf, math.nan, "2", True])
def test_bad_exponents_are_refused(exponent):
    with pytest.raises(ValueError, match="exponent must be finite and at least 1"):
        LpBall(exponent, 3)


def test_difference_of_a_ball_of_l_p():
    assert difference_body(LpBall(3, 2, 1.5)) == LpBall(3, 2, 3)


def test_chord_of_the_ball_does_not_cancel():
    # The point is 2^-26 inside the sphere, and float64 computes |x|^2 - 1 exactly. The nearer end
    # is about 1e-8. The textbook formula of a root computes it as the difference of two numbers of
    # about 1, so its relative error is about 1e-8.
    x = 1 - 2.0**-26
    for way in ([1.0, 2.0], [-1.0, 2.0], [3.0, -1.0]):
        low, high = ball_chord(np.array([[x, 0.0]]), np.array([way]))
        with localcontext() as context:
            context.prec = 60
            square, slope = Decimal(way[0] ** 2 + way[1] ** 2), Decimal(x) * Decimal(way[0])
            root = (slope**2 - square * (Decimal(x) ** 2 - 1)).sqrt()
            ends = float((-slope - root) / square), float((-slope + root) / square)
        assert (low[0], high[0]) == pytest.approx(ends, rel=1e-14, abs=0)
    way = np.array([[1.0, 0.0]])
    low, high = ball_chord(np.zeros((1, 2)), 1e-9 * way)
    assert (low[0], high[0]) == pytest.approx((-1e9, 1e9))


def test_extreme_points_of_tiny_and_huge_directions():
    for size in (1e-300, 1e300):
        ways = size * np.array([[3.0, 4.0]])
        np.testing.assert_allclose(Ball(2, 5).extreme_point(ways), [[3, 4]], rtol=1e-15)


def test_a_flat_box_is_flat():
    box = Box([0.0, 1.0, -1.0], [0.0, 2.0, 1.0])
    assert box.affine_hull().dimension == 2
    assert not box.implements(Body.gauge)
    with pytest.raises(ValueError, match="relative interior"):
        box.gauge(np.ones((1, 3)))
    assert box.volume() == 2
    flat = Box([0.0, -1.0], [0.0, 2.0])
    assert flat.gauge(np.array([[0.0, 1.0], [0.0, -1.0], [1e-3, 0.0]])).tolist() == [0.5, 1, np.inf]


def test_largest_gauge_of_a_box_that_is_not_symmetric():
    """On each axis, a symmetric set has its largest gauge on the side of the nearer bound."""
    box, radius = Box([-0.5, -3.0, 0.0], [2.0, 1.0, 0.0]), 0.25
    points = radius * np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0]])
    found = box.largest_gauge(lambda u: radius * np.linalg.norm(u[:, :2], axis=1))
    assert found == box.gauge(points).max() == 0.5
    assert Box([0.0, -1.0], [1.0, 1.0]).largest_gauge(lambda u: np.ones(len(u))) is None


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_the_lengths_of_orthogonal_semi_axes_need_no_decomposition(monkeypatch, size):
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(6, 4)))[0]
    root = size * basis * [1.0, 3.0, 0.0, 2.0]
    lengths = np.linalg.svd(root, compute_uv=False)

    def refuse(*_, **__):
        raise AssertionError("the semi-axes are known")

    monkeypatch.setattr(np.linalg, "svd", refuse)
    body = Ellipsoid(root)
    assert body.effective_dimension == 3
    assert body.radius() == pytest.approx(3 * size)
    np.testing.assert_allclose(body._lengths, lengths[:3])


def test_ellipsoids_of_any_root_agree():
    """The body depends on root root^T alone."""
    rng = np.random.default_rng(0)
    root = rng.standard_normal((4, 2))
    wide = root @ np.linalg.qr(rng.standard_normal((5, 2)))[0].T
    first, second = Ellipsoid(root), Ellipsoid(wide)
    points = rng.standard_normal((6, 2)) @ root.T
    np.testing.assert_allclose(first.gauge(points), second.gauge(points), rtol=1e-12)
    np.testing.assert_allclose(first.second_moment(), second.second_moment(), atol=1e-13)
    assert first.volume() == pytest.approx(second.volume(), rel=1e-12)
    assert first.volume() == pytest.approx(math.pi * math.sqrt(np.linalg.det(root.T @ root)))


def test_product_keeps_its_factors_apart():
    body = Product([Ball(2), Box([1.0], [3.0]), Box([-1.0], [0.0])])
    assert [part.stop - part.start for part in body.slices] == [2, 1, 1]
    np.testing.assert_allclose(body.centroid(), [0, 0, 2, -0.5])
    moment = body.second_moment()
    assert moment[2, 3] == pytest.approx(-1)  # the product of the two means
    assert moment[2, 2] == pytest.approx(4 + 1 / 3)
    assert not moment[:2, 2:].any()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Ball(0), "dimension"),
        (lambda: Ball(3, 0), "radius"),
        (lambda: Ball(3, np.nan), "radius"),
        (lambda: CrossPolytope(2, -1), "radius"),
        (lambda: Box([0.0], [-1.0]), "lower must be at most upper"),
        (lambda: Box([0.0], [1.0, 2.0]), "same shape"),
        (lambda: Box([], []), "same shape"),
        (lambda: Box.centred([1.0, -2.0]), "half_widths must be at least 0, got -2.0 at index 1"),
        (lambda: Box([np.nan], [1.0]), "finite"),
        (lambda: Box.centred([-1.0]), "half_widths must be at least 0, got -1.0 at index 0"),
        (lambda: Ellipsoid(np.ones(3)), "axes"),
        (lambda: Ellipsoid([[np.inf]]), "finite"),
        (lambda: Ellipsoid(np.zeros((0, 2))), "shape"),
        (lambda: Product([]), "at least one"),
        (lambda: Product([1]), "at least one"),
    ],
)
def test_bad_parameters_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
