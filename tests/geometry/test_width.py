"""Gaussian width: closed forms, rules for composed bodies, and intervals that hold the width."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from geomdp.bodies import LinearImage
from geomdp.bodies.balls import Ball, CrossPolytope, Ellipsoid, mean_gaussian_maximum
from geomdp.bodies.base import MissingOracle
from geomdp.bodies.boxes import Box
from geomdp.bodies.products import Product
from geomdp.bodies.sensitivity import WorkloadPolytope
from geomdp.bodies.simplices import Simplex, SimplexDifference
from geomdp.bodies.spectral import Spectraplex, SpectraplexDifference
from geomdp.bodies.symmetrised import Difference, Scaled
from geomdp.bodies.vpolytope import VPolytope
from geomdp.geometry.projection import Estimate
from geomdp.geometry.sampling.samplers import Preimage
from geomdp.geometry.volumes import gaussian_width
from geomdp.workloads import Parities, explicit_answers
from tests.geometry.bodies import MembershipOnly, OracleOnly
from tests.stats import LEVEL, mean_agrees

RNG = np.random.default_rng(20)
CLOUD = RNG.standard_normal((12, 4)) + 5.0
TURN = np.linalg.qr(np.random.default_rng(6).standard_normal((8, 8)))[0]

EXACT = {
    "ball": (Ball(3, 2.0), 2 * 1.5957691216057308),
    "unit cube": (Box(np.zeros(7), np.ones(7)), 7 / math.sqrt(2 * math.pi)),
    "sign cube": (Box.centred(np.ones(7)), 7 * math.sqrt(2 / math.pi)),
    "cross-polytope on a line": (CrossPolytope(1, 3.0), 3 * math.sqrt(2 / math.pi)),
    "square as cross-polytope": (CrossPolytope(2), 2 / math.sqrt(math.pi)),
    "disc in R^3": (Ellipsoid(np.eye(3, 2)), math.sqrt(math.pi / 2)),
    "segment": (VPolytope(np.array([[1.0, 2.0], [4.0, 6.0]])), 5 / math.sqrt(2 * math.pi)),
    "segment as simplex": (Simplex(np.array([[1.0, 2], [4, 6]])), 5 / math.sqrt(2 * math.pi)),
    "histogram of 3": (Simplex(np.eye(3)), 1.5 / math.sqrt(math.pi)),
    "difference of histogram": (SimplexDifference(np.eye(3)), 3 / math.sqrt(math.pi)),
    "scaled": (Scaled(Ball(2), 3.0), 3 * math.sqrt(math.pi / 2)),
    "difference": (Difference(Simplex(np.eye(3))), 3 / math.sqrt(math.pi)),
    "difference of spectraplex on a line": (SpectraplexDifference(1), math.sqrt(2 / math.pi)),
    "spectraplex of order 2": (
        Spectraplex(2),
        3 * math.sqrt(math.pi) / 8 + 0.5 / math.sqrt(math.pi),
    ),
    "scaled isometric embedding": (
        LinearImage(2 * np.linalg.qr(RNG.standard_normal((5, 3)))[0], Box(np.zeros(3), np.ones(3))),
        6 / math.sqrt(2 * math.pi),
    ),
    "a point": (Simplex(np.array([[1.0, 2.0]])), 0.0),
    "regular simplex": (Simplex(3.0 * TURN[:6] + 11.0), 3 * mean_gaussian_maximum(6)),
    "product": (
        Product([Ball(2), Box(np.zeros(3), np.ones(3))]),
        math.sqrt(math.pi / 2) + 3 / math.sqrt(2 * math.pi),
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_closed_forms(name: str) -> None:
    body, expected = EXACT[name]
    estimate = gaussian_width(body)
    assert estimate == Estimate.exact(estimate.value)
    assert math.isclose(estimate.value, expected, rel_tol=1e-12, abs_tol=1e-15)


@pytest.mark.statistical
@pytest.mark.parametrize("name", [name for name in EXACT if name != "a point"])
def test_closed_forms_agree_with_the_support_function(name: str) -> None:
    body, expected = EXACT[name]
    directions = np.random.default_rng(21).standard_normal((20_000, body.dimension))
    mean_agrees(body.support(directions), expected, LEVEL / len(EXACT))


@pytest.mark.statistical
@pytest.mark.parametrize("name", EXACT)
def test_certified_interval_holds_the_exact_width(name: str) -> None:
    body, expected = EXACT[name]
    hidden, level = OracleOnly(body), LEVEL / len(EXACT)
    low, high = gaussian_width(hidden, rng=22, samples=500, level=level).interval
    assert low - 1e-12 <= expected <= high + 1e-12
    reach = hidden.half_diameter() * math.sqrt(2 * math.log(2 / level) / 500)
    assert low == 0 or math.isclose((high - low) / 2, reach, rel_tol=1e-9)


@pytest.mark.statistical
def test_control_is_unbiased_and_pays() -> None:
    """For a long box, the control variate from an ellipsoid removes most of the variance."""
    sides = 2.0 ** np.arange(8)
    body, exact = OracleOnly(Box(np.zeros(8), sides)), sides.sum() / math.sqrt(2 * math.pi)
    estimates = [gaussian_width(body, rng=seed, samples=64) for seed in range(1000)]
    values = np.array([estimate.value for estimate in estimates])
    mean_agrees(values, exact, LEVEL)
    # The estimates vary by the stated standard errors. Without the control variate, the standard
    # error is more than twice as large.
    stated = math.sqrt(np.mean([estimate.stderr**2 for estimate in estimates]))
    assert 0.8 < values.std(ddof=1) / stated < 1.25
    directions = np.random.default_rng(9).standard_normal((100_000, 8))
    plain = (np.abs(directions) @ sides / 2).std() / 8
    assert stated < plain / 2


@pytest.mark.statistical
def test_finite_maximum_bound_and_diameter_bound() -> None:
    # For N vertices v with mean c, diam / sqrt(2 pi) <= w <= max ||v - c|| sqrt(2 ln N) (GEN-4).
    low, high = gaussian_width(VPolytope(CLOUD), rng=5, samples=20_000, level=LEVEL).interval
    centred = CLOUD - CLOUD.mean(axis=0)
    assert high >= pdist(CLOUD).max() / math.sqrt(2 * math.pi)
    assert low <= np.linalg.norm(centred, axis=1).max() * math.sqrt(2 * math.log(len(CLOUD)))


def test_half_diameter_is_exact_for_few_listed_vertices_and_bounds_otherwise() -> None:
    exact = pdist(CLOUD).max() / 2
    assert math.isclose(VPolytope(CLOUD).half_diameter(), exact, rel_tol=1e-12)
    assert OracleOnly(VPolytope(CLOUD)).half_diameter() >= exact
    assert Ball(4, 3.0).half_diameter() == 3.0
    points = np.random.default_rng(7).standard_normal((6000, 3))
    centred = np.linalg.norm(points - points.mean(axis=0), axis=1)
    assert math.isclose(VPolytope(points).half_diameter(), centred.max(), rel_tol=1e-12)
    workload = Parities(6, 2)
    largest = pdist(explicit_answers(workload)).max() / 2
    assert math.isclose(WorkloadPolytope(workload).half_diameter(), largest, rel_tol=1e-14)


def test_linear_image_that_bends_lengths_is_simulated() -> None:
    image = LinearImage(np.diag([1.0, 2.0]), Box(np.zeros(2), np.ones(2)))
    estimate = gaussian_width(image, rng=0)
    unequal = Simplex(np.array([[0.0, 0], [1, 0], [0, 1]]))
    assert estimate.samples == gaussian_width(unequal, rng=0).samples == 4096
    assert estimate.interval[0] <= 3 / math.sqrt(2 * math.pi) <= estimate.interval[1]
    # Of a product with one such factor, only this factor is simulated.
    both = gaussian_width(Product([Box(np.zeros(50), np.ones(50)), unequal]), rng=0)
    alone = gaussian_width(unequal, rng=0)
    assert math.isclose(both.value, alone.value + 50 / math.sqrt(2 * math.pi), rel_tol=1e-12)
    assert both.stderr == alone.stderr


def test_a_body_without_support_is_refused() -> None:
    with pytest.raises(MissingOracle, match="support"):
        gaussian_width(MembershipOnly(Preimage(Ball(2), np.zeros(2), np.eye(2))), rng=0)


def _widths(points: np.ndarray, image: np.ndarray) -> tuple[tuple[float, float], ...]:
    """Certified intervals of the widths of two finite sets."""
    sets = (VPolytope(rows) for rows in (points, image))
    return tuple(gaussian_width(body, rng=0, samples=20_000).interval for body in sets)


@pytest.mark.parametrize(
    "contraction",
    [np.abs, np.sin, lambda rows: np.clip(rows, -0.5, 0.5), lambda rows: rows.cumsum(axis=1) / 4],
    ids=["moduli", "sines", "clipping", "sums"],
)
def test_contractions_do_not_widen(contraction) -> None:
    """If a map f increases no distance, then w(f(S)) <= w(S) (JL-L10)."""
    points = CLOUD - 5.0
    image = contraction(points)
    assert (pdist(image) <= pdist(points) + 1e-12).all()
    (_, high), (low, _) = _widths(points, image)
    assert low <= high


def test_isometries_keep_the_width() -> None:
    """JL-L10 with equality: both an isometry and its inverse are contractions."""
    turn = np.linalg.qr(RNG.standard_normal((4, 4)))[0]
    (low, high), (image_low, image_high) = _widths(CLOUD, CLOUD @ turn)
    assert low <= image_high
    assert image_low <= high


@pytest.mark.parametrize("size", [0.01, 1.0])
def test_near_contractions_widen_by_at_most_the_stated_amount(size: float) -> None:
    """A set is mapped onto a circle of diameter delta, and JL-L11 bounds the width of the circle.

    No two points of the circle are more than delta apart, so every map onto the circle increases
    distances by at most delta. The width of the circle is delta / 2 times the mean norm of a
    standard Gaussian vector in R^2. For the small set, the width is at least 0.3 times the bound.
    """
    delta, angles = 1.0, np.linspace(0, 2 * math.pi, 64, endpoint=False)
    circle = delta / 2 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points = size * RNG.standard_normal((64, 2))
    (_, high), (low, image_high) = _widths(points, circle)
    bound = (math.sqrt(high) + math.sqrt(delta * math.sqrt(2))) ** 2
    assert low <= bound <= 2 * high + 2 * delta * math.sqrt(2)
    exact = delta / 2 * math.sqrt(math.pi / 2)
    assert low <= exact
    assert image_high >= math.cos(math.pi / 64) * exact  # circle inscribed in the 64-gon
    if size < 0.1:
        assert low >= 0.3 * bound
