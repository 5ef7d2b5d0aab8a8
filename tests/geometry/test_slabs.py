"""Outer slab bodies contain the given body, shrink with more slabs, and reach the target error."""

import math

import numpy as np
import pytest

from geomdp.bodies import (
    Ball,
    Body,
    Box,
    Difference,
    LinearImage,
    VPolytope,
    difference_body,
    neighbour_body,
)
from geomdp.bodies.relaxations import moment_relaxation
from geomdp.bodies.sensitivity import check_contains_neighbours
from geomdp.bodies.symmetrised import SymmetricHull
from geomdp.geometry.outer_slabs import (
    INFLATION,
    CutPool,
    refine_slabs,
    separating_directions,
)
from geomdp.mechanisms import KNorm
from geomdp.privacy import Adjacency, Heuristic, PureDP
from geomdp.workloads import MarginalTables, Parities, explicit_answers
from geomdp.workloads.structure import random_symmetry

TABLES = MarginalTables([2, 2, 2, 3], 2)
#: Two-sided normal quantile at the level 1e-6 of `tests.stats`, for estimates with standard errors.
QUANTILE = 4.9


class Known(Body):
    """A symmetric body that implements only the given verbs, which are methods of `Body`."""

    def __init__(self, inner: Body, *verbs) -> None:
        self._inner, self._verbs = inner, verbs

    @property
    def dimension(self) -> int:
        return self._inner.dimension

    @property
    def symmetric(self) -> bool:
        return True

    def implements(self, verb) -> bool:
        return verb in self._verbs

    def support(self, directions):
        return self._inner.support(directions)

    def extreme_point(self, directions):
        return self._inner.extreme_point(directions)

    def affine_hull(self):
        return self._inner.affine_hull()


def vertex_differences(workload) -> np.ndarray:
    answers = np.unique(explicit_answers(workload), axis=0)
    return (answers[:, None] - answers[None]).reshape(-1, workload.n_queries)


@pytest.fixture(scope="module")
def refined():
    body = neighbour_body(TABLES, Adjacency.REPLACE_ONE)
    return refine_slabs(body, slabs=200, rng=1)


def test_slabs_hold_every_difference_of_neighbours(refined):
    differences = vertex_differences(TABLES)
    gauges = refined.body.gauge(differences)
    assert gauges.max() <= 1
    # Each slab would touch the body if `INFLATION` did not widen it by a relative 1e-9.
    reached = (differences @ refined.basis @ refined.slabs.directions.T).max(axis=0)
    np.testing.assert_allclose(reached * INFLATION, refined.slabs.widths, rtol=1e-12)


def test_slabs_live_in_the_span_of_a_flat_body(refined):
    hull = TABLES.affine_hull()
    assert refined.slabs.dimension == hull.dimension < TABLES.n_queries
    assert refined.body.dimension == TABLES.n_queries
    points = refined.sampler.draw(np.random.default_rng(0), 20)
    np.testing.assert_allclose(points @ hull.basis @ hull.basis.T, points, atol=1e-12)
    assert refined.body.contains(points).all()
    assert isinstance(refined.sampler.status, Heuristic)
    shape = f"{len(refined.slabs.widths)} slabs in dimension {hull.dimension}"
    assert repr(refined).startswith(f"SlabRefinement({shape}; E||U||^2: Estimate(")


def test_noise_of_refined_slabs_is_heuristic(refined):
    mechanism = KNorm(TABLES, n=100, privacy=PureDP(1.0), body=refined.body)
    assert isinstance(mechanism.guarantee.sampler, Heuristic)


def test_slabs_from_a_semidefinite_relaxation_hold_the_true_body():
    """The support values of the relaxation are upper bounds, so slabs contain the true body."""
    workload = Parities(4, 2)
    relaxed = difference_body(moment_relaxation(workload))
    refined = refine_slabs(Known(relaxed, Body.support), slabs=20, rng=2)
    assert refined.body.gauge(vertex_differences(workload)).max() <= 1
    assert check_contains_neighbours(refined.body, workload, Adjacency.REPLACE_ONE) == 1


def test_more_slabs_cut_a_smaller_body_out_of_the_same():
    """With one seed, a larger budget only adds slabs, so the second body lies in the first."""
    body = neighbour_body(TABLES, Adjacency.REPLACE_ONE)
    start = TABLES.affine_hull().dimension
    given = TABLES.affine_hull().basis[:, :3].T
    few, many = (refine_slabs(body, slabs=k * start, rng=2, directions=given) for k in (3, 6))
    kept = many.slabs.directions[:3] @ many.basis.T  # given directions are the first
    np.testing.assert_allclose(kept / np.linalg.norm(kept, axis=1)[:, None], given, atol=1e-12)
    np.testing.assert_array_equal(
        few.slabs.directions, many.slabs.directions[: len(few.slabs.widths)]
    )
    low, high = few.second_moment, many.second_moment
    assert low.value - high.value > QUANTILE * math.hypot(low.stderr, high.stderr)


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_body_with_few_facets_is_found_exactly(scale):
    """The cross-polytope of R^4 has 8 pairs of facets; the search finds all of them.

    For U uniform on the cross-polytope of R^m, E ||U||^2 = 2 m / ((m + 1)(m + 2)).
    """
    result = refine_slabs(SymmetricHull(VPolytope(scale * np.eye(4))), slabs=200, rng=4)
    assert len(result.slabs.widths) <= 4 + 8
    points = np.random.default_rng(0).standard_normal((50, 4))
    np.testing.assert_allclose(
        result.body.gauge(points), np.abs(points).sum(axis=1) / scale, rtol=2 * (INFLATION - 1)
    )
    moment = result.second_moment
    assert abs(moment.value - scale**2 * 8 / 30) <= QUANTILE * moment.stderr


#: What a body can do beside facets: extreme points, or support values alone.
NEAREST, POINTS = (Body.support, Body.extreme_point), (Body.support,)


def test_directions_separate_the_points_they_are_for():
    body = Difference(VPolytope(np.random.default_rng(6).standard_normal((30, 4))))
    points = 20 * np.random.default_rng(7).standard_normal((10, 4))
    inside = np.vstack([points, 1e-3 * points])
    for known in (body, Known(body, *NEAREST)):
        directions = separating_directions(known, inside)
        assert directions.shape == (10, 4)
        heights = np.einsum("bm,bm->b", directions, points)
        assert (heights > body.support(directions) * (1 + 1e-9)).all()
    by_support = Known(body, *POINTS)
    assert len(separating_directions(by_support, 1e-3 * points)) == 0
    np.testing.assert_array_equal(separating_directions(by_support, 1e3 * points), 1e3 * points)


@pytest.mark.parametrize("verbs", [NEAREST, POINTS])
def test_oracle_bodies_get_slabs_too(verbs):
    """The regular hexagon is given by its support function alone, or also by extreme points."""
    angles = np.pi / 3 * np.arange(3)
    hexagon = SymmetricHull(VPolytope(np.column_stack([np.cos(angles), np.sin(angles)])))
    result = refine_slabs(Known(hexagon, *verbs), slabs=40, rng=8)
    assert result.body.gauge(hexagon.vertex_list()).max() <= 1
    # For uniform points U, E ||U||^2 is at least 7/12 in any rectangle around the hexagon, and 5/12
    # in the hexagon. The slabs close more than half of this gap.
    assert result.second_moment.value < 1 / 2


def test_symmetry_gives_better_slabs_for_fewer_facets():
    """The search for facets is the slow part. Images of a facet need only a support value each."""

    class Counted(Known):
        found = 0

        def facets(self, points):
            self.found += len(points)
            return self._inner.facets(points)

    workload = MarginalTables([2] * 5, 2)
    body = neighbour_body(workload, Adjacency.REPLACE_ONE)
    once, images = (Counted(body, Body.support, Body.facets) for _ in range(2))
    plain = refine_slabs(once, slabs=120, rng=9)
    orbits = refine_slabs(images, slabs=120, rng=9, symmetry=random_symmetry(workload))
    assert orbits.body.gauge(vertex_differences(workload)).max() <= 1
    assert orbits.second_moment.value < plain.second_moment.value
    assert 0 < images.found < once.found


CUBE, FLAT = Box.centred(np.ones(3)), LinearImage(np.eye(3)[:, :2], Ball(2, 1.0))


@pytest.mark.parametrize(
    ("body", "arguments", "message"),
    [
        (CUBE, {"slabs": 2}, "slabs must be a whole number, at least 3"),
        (CUBE, {"directions": np.ones((1, 2))}, r"directions must have shape \(b, 3\)"),
        (Box(np.zeros(2), np.ones(2)), {}, "body must be symmetric"),
        (Difference(VPolytope(np.ones((1, 2)))), {}, "body must have dimension at least 1"),
        (FLAT, {"directions": np.eye(3)[2:]}, "orthogonal to the span"),
    ],
)
def test_bad_arguments(body, arguments, message):
    with pytest.raises(ValueError, match=message):
        refine_slabs(body, **arguments)


def test_pool_takes_what_cuts_most_and_each_slab_once():
    states = np.array([[2.0, 0], [2, 0.1], [0, 3], [0.1, 0.1]])
    pool = CutPool(2)
    pool.add(np.array([[1.0, 0], [-1, 0], [0.9, 0.1], [0, 1], [0.1, 0]]))
    assert len(pool) == 3  # (-1, 0) and (0.1, 0) define the same slab as (1, 0)
    np.testing.assert_array_equal(pool.take(states, 1), [[1, 0]])
    np.testing.assert_array_equal(pool.take(states[2:], 5), [[0, 1]])
    pool.add(np.array([[1.0, 0]]))
    assert len(pool) == 1
    assert CutPool(2).take(states, 3).shape == (0, 2)
