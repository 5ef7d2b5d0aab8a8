"""Lower and upper bounds on volume radii, and the lower bound on error that they prove."""

import math

import numpy as np
import pytest

from geomdp import bodies
from geomdp.bounds.widths import count_error, urysohn, volume_radii
from geomdp.geometry import gaussian_width
from geomdp.mechanisms import Cone, KNorm, Laplace
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import Histogram, Marginals, Means, Prefixes, RandomSigns, SecondMoment


def hull(points: np.ndarray) -> bodies.VPolytope:
    return bodies.VPolytope(np.vstack([points, -points]))


RNG = np.random.default_rng(5)
BODIES = [
    bodies.Box.centred(np.ones(5)),
    bodies.Box.centred(2.0 ** -np.arange(6)),
    bodies.Ball(4, 1.7),
    bodies.CrossPolytope(6, 2.0),
    bodies.Ellipsoid(RNG.normal(size=(5, 3))),
    bodies.NuclearBall(3),
    hull(RNG.normal(size=(9, 4))),
    hull(RNG.normal(size=(40, 8))),
    hull(RNG.normal(size=(6, 2)) @ RNG.normal(size=(2, 5))),
]


def test_urysohn_oracle():
    """The cube [-1, 1]^5 has the volume radius 1.43473, and Urysohn's bound is 1.875."""
    width = gaussian_width(bodies.Box.centred(np.ones(5))).value
    np.testing.assert_allclose(urysohn(width, 5), 1.875, rtol=1e-12)
    last = volume_radii(bodies.Box.centred(np.ones(5)))[-1]
    np.testing.assert_allclose(last.lower, 1.43473, rtol=1e-5)
    np.testing.assert_allclose(last.upper, 1.875, rtol=1e-12)


def test_urysohn_is_tight_for_balls():
    radii = volume_radii(bodies.Ball(6, 3.0), rng=0)
    np.testing.assert_allclose([r.lower for r in radii], 3.0, rtol=1e-8)
    np.testing.assert_allclose(radii[-1].upper, 3.0, rtol=1e-12)


@pytest.mark.parametrize("body", BODIES, ids=repr)
def test_radii_are_ordered_and_enclosed(body):
    """Volume radii vr_i fall with i (Lemma 17), and i vr_i <= sqrt(i + 1) width (Lemma 20)."""
    radii = volume_radii(body, rng=1)
    lower, upper = [r.lower for r in radii], [r.upper for r in radii]
    dimensions = np.array([r.dimension for r in radii])
    assert dimensions.tolist() == list(range(1, body.affine_hull().dimension + 1))
    assert (np.diff(lower) <= 0).all()
    assert (np.diff(upper) < 0).all()
    assert (np.array(lower) <= np.array(upper)).all()
    width = gaussian_width(body, rng=1, level=1e-6).interval[1]
    assert (dimensions * lower <= np.sqrt(dimensions + 1) * width * (1 + 1e-9)).all()


def test_points_of_a_nuclear_ball_stay_inside():
    """The ball is a cylinder of volume pi / sqrt 2 over a disc of traceless matrices (JL-COV)."""
    radii = volume_radii(bodies.NuclearBall(2), rng=3)
    exact = (math.pi / math.sqrt(2) / (4 * math.pi / 3)) ** (1 / 3)
    assert 0.7 * exact < radii[-1].lower <= exact * (1 + 1e-8)


def test_projections_of_a_box_by_hand():
    """Bounds for the box [-4, 4] x [-1, 1] x [-1, 1] and its projections, computed by hand."""
    radii = volume_radii(hull(np.array([[4.0, s, t] for s in (1, -1) for t in (1, -1)])))
    np.testing.assert_allclose(radii[2].lower, (32 / (4 * math.pi / 3)) ** (1 / 3), rtol=1e-8)
    # The projection on the first two axes has area 8 x 2 = 16. The projection on the span of
    # (1,0,0) and (0,1,1)/sqrt 2 has area 8 sqrt 8.
    assert math.sqrt(16 / math.pi) * (1 - 1e-8) <= radii[1].lower
    assert radii[1].lower <= math.sqrt(8 * math.sqrt(8) / math.pi) * (1 + 1e-8)
    assert 4 * (1 - 1e-8) <= radii[0].lower <= math.sqrt(18) * (1 + 1e-8)


WORKLOADS = [
    Histogram(12),
    Prefixes(9),
    Marginals(5, 1),
    Marginals(5, 2),
    RandomSigns(4, 12, 0),
    SecondMoment(3),
    Means(4),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=repr)
def test_no_mechanism_is_below_the_bound(workload):
    """The error of additive noise is the same for all real counts, so the bound applies to it."""
    radii = volume_radii(bodies.neighbour_body(workload, Adjacency.ADD_REMOVE), 0)
    for radius in radii:
        # 8 e^2 = 59.11244879...
        expected = radius.dimension * radius.lower / (59.11244879 * 0.5)
        assert count_error(radius, epsilon=0.5) == pytest.approx(expected, rel=1e-9)
    least = max(count_error(radius, epsilon=0.5) for radius in radii)
    assert least > 0
    for build in (Laplace, KNorm, Cone):
        options = {"exact": True} if build is KNorm else {}
        try:
            mechanism = build(
                workload, n=1, privacy=PureDP(0.5), adjacency=Adjacency.ADD_REMOVE, **options
            )
        except ValueError:
            assert build is Cone  # `Cone` knows no body with an exact sampler here
            continue
        assert mechanism.predicted_rmse.value * math.sqrt(workload.n_queries) > least


@pytest.mark.parametrize(("body", "message"), [
    (bodies.Box(np.zeros(2), np.ones(2)), "body must be symmetric"),
    (bodies.Box.centred(np.zeros(2)), "body must have more than one point"),
])  # fmt: skip
def test_bad_bodies_are_refused(body, message):
    with pytest.raises(ValueError, match=message):
        volume_radii(body)
