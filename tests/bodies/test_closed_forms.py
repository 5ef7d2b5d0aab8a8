"""Balls, boxes, ellipsoids, simplices and Gaussian norms: values of the sheet and identities."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.sparse as sp

import geomdp.bodies as gb
from geomdp.bodies.balls import (
    ball_chord,
    mean_gaussian_maximum,
    mean_gaussian_modulus,
    mean_gaussian_norm,
    mean_norm,
    unit_ball_volume,
)
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.noise import KNormNoise
from tests.stats import ks_uniform, mean_agrees


@pytest.mark.parametrize("m", [1, 2, 3, 7, 40])
def test_second_moments_of_the_formula_sheet(m):
    """JL-L14: E ||U||^2 for a uniform point U of the unit ball of l1, l2 and l_inf."""
    moments = {
        gb.CrossPolytope(m): 2 * m / ((m + 1) * (m + 2)),
        gb.Ball(m): m / (m + 2),
        gb.Box.centred(np.ones(m)): m / 3,
    }
    for body, expected in moments.items():
        assert np.trace(body.second_moment()) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("m", [1, 4])
def test_balls_of_l_p_meet_the_known_ones(m):
    """p = 1 and 2 give `CrossPolytope` and `Ball`, and p = 1e6 gives nearly the cube.

    The reason is that |x|_p lies between |x|_inf and m^(1/p) |x|_inf.
    """
    u = np.random.default_rng(m).standard_normal((5, m))
    for body, known in (
        (gb.LpBall(1, m, 2), gb.CrossPolytope(m, 2)),
        (gb.LpBall(2, m, 2), gb.Ball(m, 2)),
    ):
        for verb in ("support", "gauge", "extreme_point"):
            np.testing.assert_allclose(getattr(body, verb)(u), getattr(known, verb)(u), rtol=1e-13)
        assert body.radius() == known.radius()
        assert body.volume() == pytest.approx(known.volume(), rel=1e-13)
        np.testing.assert_allclose(body.second_moment(), known.second_moment(), rtol=1e-13)
    steep, cube = gb.LpBall(1e6, m), gb.Box.centred(np.ones(m))
    np.testing.assert_allclose(steep.gauge(u), cube.gauge(u), rtol=1e-5)
    np.testing.assert_allclose(steep.support(u), cube.support(u), rtol=1e-5)
    np.testing.assert_allclose(steep.second_moment(), cube.second_moment(), atol=1e-5)


@pytest.mark.statistical
@pytest.mark.parametrize("p", [1, 1.2, 4, 1e9])
def test_uniform_points_of_balls_of_l_p(p):
    """P(||U||_p <= s) = s^m, and the entries of U have mean 0 and the stated second moments."""
    points = gb.LpBall(p, 6).sample_uniform(4000, np.random.default_rng(6))
    ks_uniform(np.minimum(gb.LpBall(p, 6).gauge(points), 1) ** 6)
    mean_agrees(points**2, np.diag(gb.LpBall(p, 6).second_moment()))
    mean_agrees(points, np.zeros(6))


@pytest.mark.parametrize("way", [[1.0, 2.0], [-1.0, 2.0], [3.0, -1.0]])
def test_chord_of_the_ball_does_not_cancel(way):
    """The point is 2^-26 inside the sphere; the textbook formula of the near end loses 8 digits."""
    x = 1 - 2.0**-26
    low, high = ball_chord(np.array([[x, 0.0]]), np.array([way]))
    with localcontext() as context:
        context.prec = 60
        square, slope = Decimal(way[0] ** 2 + way[1] ** 2), Decimal(x) * Decimal(way[0])
        root = (slope**2 - square * (Decimal(x) ** 2 - 1)).sqrt()
        ends = float((-slope - root) / square), float((-slope + root) / square)
    assert (low[0], high[0]) == pytest.approx(ends, rel=1e-14, abs=0)


def test_extreme_points_of_tiny_and_huge_directions():
    for size in (1e-300, 1e300):
        ways = size * np.array([[3.0, 4.0]])
        np.testing.assert_allclose(gb.Ball(2, 5).extreme_point(ways), [[3, 4]], rtol=1e-15)


def test_a_box_that_is_flat_or_not_symmetric():
    flat = gb.Box([0.0, -1.0], [0.0, 2.0])
    assert flat.gauge(np.array([[0.0, 1.0], [0.0, -1.0], [1e-3, 0.0]])).tolist() == [0.5, 1, np.inf]
    # On each axis, a symmetric set has its largest gauge on the side of the nearer bound.
    box, radius = gb.Box([-0.5, -3.0, 0.0], [2.0, 1.0, 0.0]), 0.25
    points = radius * np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0]])
    found = box.largest_gauge(lambda u: radius * np.linalg.norm(u[:, :2], axis=1))
    assert found == box.gauge(points).max() == 0.5
    assert gb.Box([0.0, -1.0], [1.0, 1.0]).largest_gauge(lambda u: np.ones(len(u))) is None


def test_ellipsoids_of_any_root_agree():
    """The body depends on root root^T alone."""
    rng = np.random.default_rng(0)
    root = rng.standard_normal((4, 2))
    wide = root @ np.linalg.qr(rng.standard_normal((5, 2)))[0].T
    first, second = gb.Ellipsoid(root), gb.Ellipsoid(wide)
    points = rng.standard_normal((6, 2)) @ root.T
    np.testing.assert_allclose(first.gauge(points), second.gauge(points), rtol=1e-12)
    np.testing.assert_allclose(first.second_moment(), second.second_moment(), atol=1e-13)
    assert first.volume() == pytest.approx(second.volume(), rel=1e-12)
    assert first.volume() == pytest.approx(math.pi * math.sqrt(np.linalg.det(root.T @ root)))


@pytest.mark.parametrize(("rank", "dimension"), [(1, 1), (2, 2), (2, 4), (3, 3), (4, 5), (5, 5)])
def test_difference_agrees_with_a_triangulation_of_all_pairs(rank, dimension):
    """K - K has volume C(2r, r) vol(K) for an r-simplex K.

    Volume, second moment, gauge and support agree with a triangulation of the hull of all
    differences of two vertices.
    """
    vertices = np.random.default_rng(rank).standard_normal((rank + 1, dimension)) + 1
    body = gb.SimplexDifference(vertices)
    cut = gb.TriangulatedPolytope([a - b for a, b in itertools.permutations(vertices, 2)])
    assert body.volume() == pytest.approx(cut.volume(), rel=1e-10)
    assert body.volume() == pytest.approx(math.comb(2 * rank, rank) * gb.Simplex(vertices).volume())
    np.testing.assert_allclose(body.second_moment(), cut.second_moment(), rtol=0, atol=1e-11)
    points = np.random.default_rng(1).standard_normal((5, rank)) @ (vertices[1:] - vertices[0])
    np.testing.assert_allclose(body.gauge(points), cut.gauge(points), rtol=1e-10)
    directions = np.random.default_rng(2).standard_normal((5, dimension))
    np.testing.assert_allclose(body.support(directions), cut.support(directions), rtol=1e-12)


def test_barycentric_accuracy_far_from_the_origin():
    vertices = 1e6 + np.random.default_rng(0).standard_normal((4, 3))
    body = gb.Simplex(vertices)
    inside = vertices.mean(axis=0)[None]
    assert body.contains(inside)[0]
    np.testing.assert_allclose(body.chord(inside, vertices[:1] - inside)[1], 1, rtol=1e-8)


@pytest.mark.parametrize("at_units", [True, False])
def test_moments_of_an_image_need_no_second_moment(at_units):
    rng = np.random.default_rng(0)
    body = gb.SimplexDifference(np.eye(6) if at_units else rng.normal(size=(6, 7)))
    matrix = rng.normal(size=(4, body.dimension))
    matrix[matrix < 0] = 0
    wanted = np.diag(matrix @ body.second_moment() @ matrix.T)
    np.testing.assert_allclose(body.image_moments(matrix), wanted, rtol=1e-12)
    np.testing.assert_allclose(body.image_moments(sp.csr_array(matrix)), wanted, rtol=1e-12)
    assert body.effective_dimension == body.affine_hull().dimension == 5


def test_counts_of_many_cells_need_no_decomposition(monkeypatch):
    monkeypatch.setattr(np.linalg, "svd", None)
    noise = KNormNoise(body := gb.SimplexDifference(np.eye(1024)), 1.0, ExactSampler(body))
    r = noise.effective_dimension
    assert r == 1023
    # For U uniform on the body, the noise has the energy (r + 1)(r + 2) E ||U||^2.
    assert noise.second_moment().value == pytest.approx(4 * r * (2 * r + 1) / (r + 2), rel=1e-12)
    assert np.abs(noise.sample(np.random.default_rng(0), 2).sum(axis=1)).max() < 1e-6


def test_the_body_of_unit_vectors_is_that_of_the_identity_without_its_matrix():
    given, units = gb.SimplexDifference(np.eye(5)), gb.SimplexDifference.at_units(5)
    np.testing.assert_array_equal(units.vertices, np.eye(5))
    assert not units.vertices.flags.writeable
    points = np.random.default_rng(0).normal(size=(7, 5))
    for verb in ("support", "extreme_point", "gauge"):
        np.testing.assert_array_equal(getattr(units, verb)(points), getattr(given, verb)(points))
    draws = [body.sample_uniform(9, np.random.default_rng(0)) for body in (given, units)]
    np.testing.assert_array_equal(*draws)
    np.testing.assert_array_equal(units.second_moment(), given.second_moment())
    assert units.volume() == given.volume()


def test_noise_on_a_million_counts_takes_the_memory_of_a_vector():
    # A matrix of 10^6 unit vectors would take 8 TB.
    noise = KNormNoise(body := gb.SimplexDifference.at_units(10**6), 1.0, ExactSampler(body))
    assert noise.variances().shape == (10**6,)


@pytest.mark.parametrize("m", [1, 2, 3, 50, 198, 199, 200, 201, 10_000, 10**6, 10**9])
def test_mean_norms_of_neighbouring_dimensions_multiply_to_m(m: int) -> None:
    # Let mu_m be the mean norm in R^m. Then mu_m mu_(m+1) = 2 Gamma((m+2)/2) / Gamma(m/2) = m. From
    # m = 200 on, a series gives mu_m.
    assert math.isclose(mean_gaussian_norm(m) * mean_gaussian_norm(m + 1), m, rel_tol=4e-15)


def test_unit_ball_volumes() -> None:
    for m, expected in [(1, 2.0), (2, math.pi), (3, 4 * math.pi / 3)]:
        assert math.isclose(unit_ball_volume(m), expected, rel_tol=1e-14)
    for m in (1, 2, 3, 20, 300):
        ratio = unit_ball_volume(m + 2) / unit_ball_volume(m)
        assert math.isclose(ratio, 2 * math.pi / (m + 2), rel_tol=1e-12)


@pytest.mark.parametrize("m", [1, 2, 5, 60, 3000])
def test_quadrature_for_equal_scales_is_the_closed_form(m: int) -> None:
    assert math.isclose(mean_norm(np.full(m, 3.0)), 3 * mean_gaussian_norm(m), rel_tol=2e-15)


def test_quadrature_for_two_scales_is_an_elliptic_integral() -> None:
    # For independent standard normal g and h, and a >= b, the mean norm of (a g, b h) is
    # sqrt(2 / pi) a E(1 - b^2 / a^2), where E is the complete elliptic integral of the second kind.
    from scipy.special import ellipe

    for a, b in [(4.0, 3.0), (1.0, 1e-6), (1.0, 0.0)]:
        expected = math.sqrt(2 / math.pi) * a * ellipe(1 - (b / a) ** 2)
        assert math.isclose(mean_norm(np.array([b, a])), expected, rel_tol=4e-15)
    assert mean_norm(np.zeros(3)) == 0.0


def test_small_maxima_in_closed_form() -> None:
    root = math.sqrt(math.pi)
    for value, expected in [
        (mean_gaussian_maximum(1), 0.0),
        (mean_gaussian_maximum(2), 1 / root),
        (mean_gaussian_maximum(3), 1.5 / root),
        (mean_gaussian_modulus(1), math.sqrt(2 / math.pi)),
        (mean_gaussian_modulus(2), 2 / root),
    ]:
        assert math.isclose(value, expected, rel_tol=1e-12, abs_tol=1e-13)


@pytest.mark.statistical
def test_maxima_of_many_by_simulation() -> None:
    draws = np.random.default_rng(0).standard_normal((20_000, 40))
    mean_agrees(draws.max(axis=1), mean_gaussian_maximum(40), level=5e-7)
    mean_agrees(np.abs(draws).max(axis=1), mean_gaussian_modulus(40), level=5e-7)


@pytest.mark.parametrize("count", [10, 10**4, 10**9, 10**15])
def test_maxima_stay_below_the_union_bound(count: int) -> None:
    assert 0 < mean_gaussian_maximum(count) < math.sqrt(2 * math.log(count))
    assert mean_gaussian_maximum(count) < mean_gaussian_modulus(count)


def test_bad_dimension_raises() -> None:
    for function in (mean_gaussian_norm, unit_ball_volume, mean_gaussian_maximum):
        with pytest.raises(ValueError, match="at least 1"):
            function(0)
