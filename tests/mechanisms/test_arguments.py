"""Constructors refuse bad parameters, and noise bodies that do not contain all differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull
from geomdp.bodies import Ball as BallBody
from geomdp.bodies import Box, CrossPolytope, HPolytope, LinearImage, SlabBody, Spectraplex
from geomdp.bodies import Ellipsoid as EllipsoidBody
from geomdp.bodies.base import Body
from geomdp.mechanisms import (
    JL,
    Ball,
    Ellipsoid,
    Fitted,
    Gaussian,
    Geometric,
    KNorm,
    Laplace,
    Projected,
    Recursive,
    Shrunk,
    Spectral,
    Staircase,
)
from geomdp.mechanisms.base import _linear_span, answer_hull
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Exact, PureDP
from geomdp.workloads import (
    Explicit,
    Histogram,
    Marginals,
    Parities,
    SecondMoment,
    explicit_answers,
)
from tests.mechanisms.catalogue import WORKLOADS

SQUARE = Marginals(2, 1)
PURE = {"n": 10, "privacy": PureDP(1.0)}


def test_jl_takes_fewer_dimensions_than_the_answers_have():
    for dimension in (0, 0.5, 2):
        with pytest.raises(ValueError, match="dimension"):
            JL(Ball(SQUARE, **PURE), dimension)


@pytest.mark.parametrize(
    ("kinds", "refused", "words"),
    [
        ((KNorm, Recursive, Staircase, Spectral), (ZCDP(1.0), ApproxDP(1.0, 1e-6)), "PureDP"),
        ((Laplace, Geometric), (ApproxDP(1.0, 1e-6),), "PureDP or ZCDP"),
        ((Gaussian,), (PureDP(1.0),), "ZCDP or ApproxDP"),
    ],
)
def test_other_definitions_of_privacy_are_refused(kinds, refused, words):
    for kind in kinds:
        for privacy in refused:
            with pytest.raises(ValueError, match=f"privacy must be {words}"):
                kind(SQUARE, n=10, privacy=privacy)
        with pytest.raises(TypeError):  # n and privacy need their names
            kind(SQUARE, 10, PureDP(1.0))


@pytest.mark.parametrize("wrapper", [Projected, Shrunk, Fitted, lambda inner: JL(inner, 1)])
def test_wrappers_take_additive_mechanisms_only(wrapper):
    for inner in (Projected(Ball(SQUARE, **PURE)), SQUARE):
        with pytest.raises(ValueError, match="inner must be an additive mechanism, got"):
            wrapper(inner)


class TestSensitivity:
    @pytest.mark.parametrize("workload", WORKLOADS)
    def test_hull_holds_answers_and_is_as_small_as_possible(self, workload):
        workload = WORKLOADS[workload]
        answers = explicit_answers(workload)
        replace = answer_hull(workload, Adjacency.REPLACE_ONE)
        assert replace.dimension == AffineHull.of_points(answers).dimension
        np.testing.assert_allclose(replace.residual(answers), 0, atol=1e-12)
        add = answer_hull(workload, Adjacency.ADD_REMOVE)
        assert add.dimension == np.linalg.matrix_rank(answers)
        assert not add.offset.any()
        np.testing.assert_allclose(add.residual(3.7 * answers), 0, atol=1e-11)
        np.testing.assert_allclose(add.basis.T @ add.basis, np.eye(add.dimension), atol=1e-12)

    def test_constant_under_replace_one_is_not_constant_under_add_remove(self):
        ones = Explicit(np.ones((2, 3)))
        with pytest.raises(ValueError, match="constant"):
            answer_hull(ones, Adjacency.REPLACE_ONE)
        assert answer_hull(ones, Adjacency.ADD_REMOVE).dimension == 1
        release = Ball(ones, **PURE, adjacency=Adjacency.ADD_REMOVE).release([0, 1, 1], rng=0)
        np.testing.assert_allclose(release.answers[0], release.answers[1], rtol=1e-12)


#: A workload with the corners of [0, 1]^2 as answers, so few that all pairs can be checked.
CORNERS = Explicit([[0.0, 0, 1, 1], [0, 1, 0, 1]])
OUTSIDE = r"must contain all differences|must span the differences"
#: Bodies that contain the square [-1, 1]^2, which is the neighbour body of `CORNERS`.
GOOD = {
    "the neighbour body": Box.centred([1.0, 1.0]),
    "a larger box": Box.centred([1.0, 3.0]),
    "slabs": SlabBody(np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([1.0, 1, 2])),
    "circumscribed ball": BallBody(2, math.sqrt(2)),
    "ellipse": EllipsoidBody(np.diag([2.0, math.sqrt(4 / 3)])),
    "cross-polytope": CrossPolytope(2, 2.0),
    "halfspaces": HPolytope(np.vstack([np.eye(2), -np.eye(2)]), np.ones(4)),
}
#: Bodies that do not contain all corners of this square.
BAD = {
    "a smaller box": Box.centred([1.0, 0.999]),
    "slabs that cut a corner": SlabBody(
        np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([1.0, 1, 1.99])
    ),
    "inscribed ball": BallBody(2, 1.4),
    "a smaller ellipse": EllipsoidBody(np.diag([2.0, 1.15])),
    "l1 ball": CrossPolytope(2, 1.9),
    "a segment": EllipsoidBody(np.array([[5.0], [5.0]])),
}


def skewed_cross_polytope(dimension):
    """A large body with a gauge that lists no hyperplanes and is no ellipsoid or l_p ball."""
    return LinearImage(np.diag(np.linspace(90.0, 100.0, dimension)), CrossPolytope(dimension, 1.0))


class Faulty(Body):
    """A body with a sampler and a gauge, whose gauge is always NaN."""

    dimension, symmetric = 2, True

    def gauge(self, points):
        return np.full(len(points), np.nan)

    def sample_uniform(self, n, rng):
        raise AssertionError("must not be asked")


#: Bodies that are refused for a workload, and words of the error.
REFUSED = [
    *((CORNERS, body, OUTSIDE) for body in BAD.values()),
    (SQUARE, Box.centred([9.0, 9.0, 9.0]), "dimension 2"),
    (SQUARE, Box(np.array([-9.0, -9]), np.array([9.0, 8])), "symmetric"),
    (SQUARE, "ball", "body must be a Body"),
    (SecondMoment(2), Spectraplex(2), "symmetric"),
    (SecondMoment(2), skewed_cross_polytope(3), "cannot be verified"),
    (Marginals(12, 1), skewed_cross_polytope(12), "cannot be verified"),
    (Histogram(2), Faulty(), "must contain all differences"),
]


class TestContainment:
    """`KNorm(body=...)` accepts only symmetric bodies that contain all differences."""

    @pytest.mark.parametrize("name", GOOD)
    def test_accepts(self, name):
        body = GOOD[name]
        mechanism = KNorm(CORNERS, **PURE, body=body)
        used = mechanism.noise.body
        # If rounding leaves a corner outside, the body is scaled up until it contains the corner.
        assert used is body or (used.body is body and 1 < used.factor <= 1 + 2e-8)
        moves = explicit_answers(CORNERS) - explicit_answers(CORNERS)[0]
        ratios = mechanism.noise.log_density_ratio(-moves, moves)
        assert ratios.max() <= 1 + 1e-9

    @pytest.mark.parametrize(("workload", "body", "words"), REFUSED)
    def test_refuses(self, workload, body, words):
        with pytest.raises(ValueError, match=words):
            KNorm(workload, **PURE, body=body)

    def test_refuses_what_fits_no_sampler_and_no_other_workload(self):
        slabs = SlabBody(np.eye(2), np.ones(2))
        with pytest.raises(ValueError, match=r"exact sampler; .*l2 ball"):
            KNorm(SQUARE, **PURE, body=slabs, exact=True)
        heuristic = KNorm(SQUARE, **PURE, body=slabs)
        assert str(heuristic.guarantee).startswith("heuristic")
        with pytest.raises(ValueError, match="cannot be built for another workload"):
            heuristic.with_workload(Marginals(3, 1))
        # For an infinite universe, the hyperplanes of the body are compared with the differences.
        box = Box.centred([1.0, 1.5, 1.0])
        assert KNorm(SecondMoment(2), **PURE, body=box).guarantee.sampler == Exact()

    def test_add_remove_needs_less_room_on_parities_and_more_on_shifted_answers(self):
        add = {**PURE, "adjacency": Adjacency.ADD_REMOVE}
        cube = Box.centred([1.0, 1.0])
        assert KNorm(Parities(2, 1), **add, body=cube).noise.body is cube
        with pytest.raises(ValueError, match=OUTSIDE):
            KNorm(Parities(2, 1), **PURE, body=cube)
        far = Explicit([[10.0, 11.0], [0.0, 0.5]])
        assert KNorm(far, **PURE, body=cube)
        with pytest.raises(ValueError, match=OUTSIDE):
            KNorm(far, **add, body=cube)

    def test_noise_of_a_body_larger_than_the_span_is_kept_whole(self):
        """Noise with more dimensions than the differences is not cut off; its error is exact."""
        mechanism = KNorm(Histogram(3), **PURE, body=BallBody(3, math.sqrt(2)))
        np.testing.assert_allclose(
            mechanism.predicted_rmse.value, math.sqrt(2 * 4 * 3 / 3) / 10, rtol=1e-12
        )
        sums = np.array([5.0, 3.0, 2.0])
        rng = np.random.default_rng(0)
        released = np.array([mechanism.privatise(sums, rng) for _ in range(50)])
        assert np.ptp(released.sum(axis=1)) > 0.01


# The span of the answers, and the norms of changes


def hull_at(height: float) -> AffineHull:
    """A plane in R^6 at distance `height` from 0, with an offset of length about 1."""
    frame = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    along = frame[:, :2] @ np.array([0.6, -0.8])
    return AffineHull(along + height * frame[:, 2], frame[:, :2])


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize(
    ("height", "dimension"),
    [(0.0, 2), (0.9 * RANK_TOLERANCE, 2), (1.1 * RANK_TOLERANCE, 3), (0.5, 3), (1e6, 3)],
)
def test_the_span_has_one_more_direction_above_the_tolerance(
    height: float, dimension: int, scale: float
) -> None:
    """The cut is relative to the length of the offset, so it does not depend on the unit.

    One pass of Gram-Schmidt would leave an error of 2^-53 / height along the plane.
    """
    hull = hull_at(height)
    span = _linear_span(AffineHull(scale * hull.offset, hull.basis))
    assert span.dimension == dimension
    assert not span.offset.any()
    np.testing.assert_allclose(span.basis.T @ span.basis, np.eye(dimension), atol=20 * 2.0**-53)
    np.testing.assert_array_equal(span.basis[:, :2], hull.basis)


class WithoutL1(Explicit):
    """A user's workload that knows no bound on the l1 norm of changes."""

    def l1_diameter(self) -> float:
        return math.inf


@pytest.mark.parametrize("kind", [Ball, Ellipsoid, KNorm, Gaussian])
def test_noise_of_another_shape_needs_no_bound_on_the_l1_norm(kind: type) -> None:
    workload = WithoutL1(np.eye(3))
    privacy = ZCDP(0.5) if kind is Gaussian else PureDP(1.0)
    assert kind(workload, n=10, privacy=privacy).predicted_rmse.value > 0
    with pytest.raises(ValueError, match="sensitivity"):
        Laplace(workload, n=10, privacy=PureDP(1.0))
