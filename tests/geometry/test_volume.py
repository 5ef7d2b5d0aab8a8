"""Closed forms and certified estimates of volumes, volume radii and second moments."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from geomdp.bodies.balls import Ball, CrossPolytope, unit_ball_volume
from geomdp.bodies.base import MissingOracle
from geomdp.bodies.boxes import Box
from geomdp.bodies.linear_programs import HPolytope
from geomdp.bodies.products import LinearImage
from geomdp.bodies.simplices import Simplex
from geomdp.bodies.symmetrised import Difference, Shifted, SymmetricHull
from geomdp.bodies.vpolytope import VPolytope
from geomdp.geometry.projection import Estimate
from geomdp.geometry.volumes import (
    annealed_volume,
    gaussian_width,
    second_moment,
    volume,
    volume_radius,
)
from tests.geometry.bodies import MembershipOnly, OracleOnly, SamplerOnly
from tests.stats import LEVEL

TRIANGLE = Simplex(np.array([[0.0, 0, 1], [1, 0, 1], [0, 2, 1]]))  # in the plane z = 1
KNOWN = {
    "ball": (Ball(3), 4 * math.pi / 3),
    "cross-polytope": (CrossPolytope(3, 2.0), 64 / 6),
    "box off centre": (Box(np.array([1.0, -2.0]), np.array([4.0, 2.0])), 12.0),
    "triangle in space": (TRIANGLE, 1.0),
}


@pytest.mark.parametrize("name", KNOWN)
def test_closed_forms(name: str) -> None:
    body, expected = KNOWN[name]
    estimate = volume(body)
    assert math.isclose(estimate.value, expected, rel_tol=1e-12)
    assert (estimate.stderr, estimate.samples) == (0.0, 0)


@pytest.mark.statistical
@pytest.mark.parametrize("name", KNOWN)
def test_rejection_interval_holds_the_volume(name: str) -> None:
    body, expected = KNOWN[name]
    estimate = volume(MembershipOnly(body), rng=1, samples=5000, level=LEVEL / len(KNOWN))
    low, high = estimate.interval
    assert low * (1 - 1e-9) <= expected <= high * (1 + 1e-9)
    assert low <= estimate.value <= high
    assert estimate.samples == 5000


@pytest.mark.parametrize("level", [0.2, 1e-4])
def test_rejection_interval_ends_are_the_binomial_quantiles(level: float) -> None:
    estimate = volume(MembershipOnly(Ball(2)), rng=5, samples=50, level=level)
    hits = round(estimate.value / 4 * 50)  # the bounding box of the unit disc has area 4
    low, high = (end / 4 for end in estimate.interval)
    assert math.isclose(binom.sf(hits - 1, 50, low), level / 2, rel_tol=1e-9)
    assert math.isclose(binom.cdf(hits, 50, high), level / 2, rel_tol=1e-9)


def test_rejection_without_hits_still_bounds_from_above() -> None:
    estimate = volume(MembershipOnly(Ball(30)), rng=2, samples=100)
    assert (estimate.value, estimate.interval[0]) == (0.0, 0.0)
    assert estimate.interval[1] >= unit_ball_volume(30)
    assert volume_radius(MembershipOnly(Ball(30)), rng=2, samples=100).value == 0.0


@pytest.mark.statistical
def test_a_polytope_too_large_for_rejection_is_annealed() -> None:
    m = 9  # the body fills 1 / 9! of its bounding box, so 1000 points hardly ever hit it
    corner = HPolytope(np.vstack([-np.eye(m), np.ones((1, m))]), np.append(np.zeros(m), 1.0))
    estimate = volume(corner, rng=3, samples=1000, level=LEVEL)
    assert 0 < estimate.stderr < 0.1 * estimate.value
    # The mean over 128 chains nearly has Student's law. It is then off by more than 5.2 standard
    # errors with probability below 1e-6.
    assert abs(estimate.value - 1 / math.factorial(m)) <= 5.2 * estimate.stderr
    low, high = estimate.interval
    assert low < 1 / math.factorial(m) < high


def test_a_point_has_volume_one_and_no_volume_radius() -> None:
    point = MembershipOnly(Simplex(np.array([[1.0, 2.0]])))
    assert volume(point).value == 1.0
    with pytest.raises(ValueError, match="more than one point"):
        volume_radius(point)


@pytest.mark.parametrize(
    ("k", "expected"), [(1, 1.0), (2, 1.128379), (5, 1.434730), (20, 2.401282)]
)
def test_volume_radius_of_the_sign_cube(k: int, expected: float) -> None:
    value = volume_radius(Box.centred(np.ones(k))).value
    assert abs(value - expected) <= 5e-7  # GEN-4 gives six decimals
    assert math.isclose(value, 2 * unit_ball_volume(k) ** (-1 / k), rel_tol=1e-12)


def test_volume_radius_of_a_flat_body_uses_its_own_dimension() -> None:
    assert math.isclose(volume_radius(TRIANGLE).value, math.sqrt(1 / math.pi), rel_tol=1e-12)


@pytest.mark.statistical
def test_volume_radius_maps_the_interval() -> None:
    body = MembershipOnly(Ball(3))
    direct, radius = (f(body, rng=3, samples=2000) for f in (volume, volume_radius))
    for end, mapped in zip(direct.interval, radius.interval, strict=True):
        assert math.isclose(mapped, (end / unit_ball_volume(3)) ** (1 / 3), rel_tol=1e-12)
    share = direct.stderr / direct.value
    assert math.isclose(radius.stderr, radius.value * share / 3, rel_tol=1e-12)


def test_volume_outside_float64_raises() -> None:
    with pytest.raises(ValueError, match="within the range of float64"):
        volume_radius(CrossPolytope(2000))


def test_missing_oracles_are_named() -> None:
    with pytest.raises(MissingOracle, match="closed form or a membership test"):
        volume(OracleOnly(Ball(2)))
    with pytest.raises(MissingOracle, match="exact uniform sampler"):
        second_moment(OracleOnly(Ball(2)))


@pytest.mark.parametrize("function", [volume, second_moment, gaussian_width])
def test_bad_arguments_raise(function) -> None:
    with pytest.raises(ValueError, match="samples must be"):
        function(Ball(2), samples=1)
    for level in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="level must be"):
            function(Ball(2), level=level)


def test_estimates_say_whether_they_are_exact() -> None:
    assert repr(Estimate.exact(2.0)) == "Estimate(2, exact)"
    simulated = Estimate(1.5, 0.1, (1.0, 2.0), 400)
    assert repr(simulated) == "Estimate(1.5 +- 0.1, in [1, 2]; 400 samples)"


def test_small_polytopes_are_cut_into_simplices() -> None:
    corners = np.array([[x, y, 1.0] for x in (0.0, 2.0) for y in (0.0, 3.0)])
    for body in (VPolytope(corners), Shifted(VPolytope(corners), np.ones(3))):
        assert math.isclose(volume(body).value, 6.0, rel_tol=1e-12)
    # E x^2 = 4/3, E y^2 = 3, z = 1.
    assert math.isclose(second_moment(VPolytope(corners)).value, 4 / 3 + 4, rel_tol=1e-12)
    assert second_moment(VPolytope(corners)).samples == 0


def test_symmetric_hull_and_difference_of_listed_vertices() -> None:
    # conv(+-e_i) is the cross-polytope.
    assert math.isclose(volume(SymmetricHull(VPolytope(np.eye(4)))).value, 16 / 24, rel_tol=1e-12)
    triangle = VPolytope(np.array([[0.0, 0], [1, 0], [0, 1]]))
    # vol(K - K) = C(2 m, m) vol(K) for a simplex K in R^m. The difference body does not list its
    # vertices, so `volume` uses rejection.
    estimate = volume(Difference(triangle), rng=6, samples=2000, level=LEVEL)
    assert estimate.interval[0] <= 3.0 <= estimate.interval[1]


@pytest.mark.statistical
@pytest.mark.parametrize("body", [Ball(4), CrossPolytope(3), Box(np.ones(2), np.full(2, 3.0))])
def test_sampled_second_moment_has_a_certified_interval(body) -> None:
    estimate = second_moment(SamplerOnly(body), rng=4, samples=4000, level=LEVEL / 3)
    low, high = estimate.interval
    assert low <= second_moment(body).value <= high
    assert 0 <= low <= estimate.value <= high <= SamplerOnly(body).radius() ** 2
    assert estimate.samples == 4000


# --- intersections with growing balls ---------------------------------------------------------

CUBE = HPolytope(np.vstack([np.eye(6), -np.eye(6)]), np.concatenate([np.ones(6), np.zeros(6)]))
CORNER = HPolytope(np.vstack([-np.eye(8), np.ones((1, 8))]), np.append(np.zeros(8), 1.0))
TALL = np.random.default_rng(5).standard_normal((6, 4))

ANNEALED = {
    "unit cube": (CUBE, 1.0),
    "corner of a cube": (CORNER, 1 / math.factorial(8)),
    "ball": (Ball(5, 2.0), Ball(5, 2.0).volume()),
    "long cross-polytope in a subspace": (
        LinearImage(TALL @ np.diag([1.0, 10.0, 0.1, 1.0]), CrossPolytope(4)),
        math.sqrt(np.linalg.det(TALL.T @ TALL)) * 2**4 / math.factorial(4),
    ),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", ANNEALED)
def test_growing_balls_against_closed_forms(name):
    body, exact = ANNEALED[name]
    found = annealed_volume(body, np.random.default_rng(0), 0.05, draws=16)
    # A mean over 128 chains has nearly Student's distribution. At level 1e-6 / 4 for each of the
    # four bodies, the limit is 5.5 standard errors.
    assert abs(found.value - exact) <= 5.5 * found.stderr
    assert found.stderr < 0.15 * exact
    low, high = found.interval
    assert low < found.value < high


@pytest.mark.statistical
@pytest.mark.slow
def test_growing_balls_in_dimension_twenty():
    body = HPolytope(np.vstack([np.eye(20), -np.eye(20)]), np.full(40, 0.5))
    found = annealed_volume(body, np.random.default_rng(1), 0.05, draws=256)
    assert abs(found.value - 1) <= 5.5 * found.stderr
    assert found.stderr < 0.1


def test_an_unbounded_body_is_refused():
    quadrant = HPolytope(np.array([[-1.0, 0], [0, -1]]), np.ones(2))
    with pytest.raises(ValueError, match="bounded"):
        annealed_volume(quadrant, np.random.default_rng(0), 0.05)
