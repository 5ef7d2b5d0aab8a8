"""Closed forms and certified estimates of volumes, volume radii and second moments."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from geomdp.bodies.balls import Ball, CrossPolytope, unit_ball_volume
from geomdp.bodies.base import MissingOracle
from geomdp.bodies.boxes import Box
from geomdp.bodies.linear_programs import HPolytope
from geomdp.bodies.products import LinearImage
from geomdp.bodies.simplices import Simplex
from geomdp.bodies.symmetrised import Difference, SymmetricHull
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
CORNERS = np.array([[x, y, 1.0] for x in (0.0, 2.0) for y in (0.0, 3.0)])
KNOWN = {
    "ball": (Ball(3), 4 * math.pi / 3),
    "cross-polytope": (CrossPolytope(3, 2.0), 64 / 6),
    "box off centre": (Box(np.array([1.0, -2.0]), np.array([4.0, 2.0])), 12.0),
    "triangle in space": (TRIANGLE, 1.0),
    "rectangle in space": (VPolytope(CORNERS), 6.0),
    "cross-polytope as a hull": (SymmetricHull(VPolytope(np.eye(4))), 16 / 24),
}


@pytest.mark.parametrize("name", KNOWN)
def test_closed_forms(name: str) -> None:
    body, expected = KNOWN[name]
    estimate = volume(body)
    assert math.isclose(estimate.value, expected, rel_tol=1e-12)
    assert estimate == Estimate.exact(estimate.value)
    rank = body.affine_hull().dimension  # a flat body has a radius in its own dimension
    radius = (expected / unit_ball_volume(rank)) ** (1 / rank)
    assert math.isclose(volume_radius(body).value, radius, rel_tol=1e-12)


QUADRANT = HPolytope(np.array([[-1.0, 0], [0, -1]]), np.ones(2))
#: For each message, a call that raises it.
REFUSED = [
    ("within the range of float64", lambda: volume_radius(CrossPolytope(2000))),
    ("more than one point", lambda: volume_radius(Simplex(np.array([[1.0, 2.0]])))),
    ("closed form or a membership test", lambda: volume(OracleOnly(Ball(2)))),
    ("exact uniform sampler", lambda: second_moment(OracleOnly(Ball(2)))),
    ("bounded", lambda: annealed_volume(QUADRANT, np.random.default_rng(0), 0.05)),
    *[
        (f"{name} must be", partial(function, Ball(2), **{name: value}))
        for function in (volume, second_moment, gaussian_width)
        for name, value in (("samples", 1), ("level", 0.0), ("level", 1.0), ("level", math.nan))
    ],
]


@pytest.mark.parametrize(("message", "call"), REFUSED)
def test_what_has_no_volume_or_moment_is_refused(message, call) -> None:
    with pytest.raises((ValueError, MissingOracle), match=message):
        call()


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


@pytest.mark.parametrize(
    ("k", "expected"), [(1, 1.0), (2, 1.128379), (5, 1.434730), (20, 2.401282)]
)
def test_volume_radius_of_the_sign_cube(k: int, expected: float) -> None:
    value = volume_radius(Box.centred(np.ones(k))).value
    assert abs(value - expected) <= 5e-7  # GEN-4 gives six decimals
    assert math.isclose(value, 2 * unit_ball_volume(k) ** (-1 / k), rel_tol=1e-12)


@pytest.mark.statistical
def test_volume_radius_maps_the_interval() -> None:
    body = MembershipOnly(Ball(3))
    direct, radius = (f(body, rng=3, samples=2000) for f in (volume, volume_radius))
    for end, mapped in zip(direct.interval, radius.interval, strict=True):
        assert math.isclose(mapped, (end / unit_ball_volume(3)) ** (1 / 3), rel_tol=1e-12)
    share = direct.stderr / direct.value
    assert math.isclose(radius.stderr, radius.value * share / 3, rel_tol=1e-12)


def test_moments_of_simplices_and_the_volume_of_a_difference() -> None:
    assert volume(MembershipOnly(Simplex(np.array([[1.0, 2.0]])))).value == 1.0  # of a point
    # E x^2 = 4/3, E y^2 = 3, z = 1.
    assert math.isclose(second_moment(VPolytope(CORNERS)).value, 4 / 3 + 4, rel_tol=1e-12)
    assert second_moment(VPolytope(CORNERS)).samples == 0
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
    if name == "corner of a cube":  # 1000 points of the bounding box hardly ever hit it
        found = volume(body, rng=3, samples=1000, level=0.05)
    # A mean over 128 chains has nearly Student's distribution. At level 1e-6 / 4 for each of the
    # four bodies, the limit is 5.5 standard errors.
    assert abs(found.value - exact) <= 5.5 * found.stderr
    assert found.stderr < 0.15 * exact
    low, high = found.interval
    assert low < found.value < high
