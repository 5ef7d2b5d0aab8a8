"""Bodies that find extreme points on demand agree with the same bodies given by all vertices."""

from __future__ import annotations

import numpy as np
import pytest

from geomdp._numerics.linalg import AffineHull
from geomdp.bodies import Difference, MissingOracle, VPolytope
from geomdp.bodies.ray_shooting import independent_points
from geomdp.bodies.sensitivity import WorkloadPolytope
from geomdp.bodies.symmetrised import SymmetricHull
from geomdp.workloads import (
    BoxSecondMoment,
    Histogram,
    Marginals,
    MarginalTables,
    Parities,
    explicit_answers,
)

WORKLOADS = [
    Marginals(6, 2),
    Parities(5, 3),
    MarginalTables([2, 3, 2, 2], 2),
    Histogram(5),
    MarginalTables([4], 1),
]


def workload_name(workload) -> str:
    return type(workload).__name__


@pytest.fixture(params=WORKLOADS, ids=workload_name)
def listed(request) -> VPolytope:
    return VPolytope(explicit_answers(request.param))


@pytest.fixture
def by_oracle(request) -> WorkloadPolytope:
    return WorkloadPolytope(request.node.callspec.params["listed"])


def rays_in(body, count: int, seed: int):
    basis = body.affine_hull().basis
    return np.random.default_rng(seed).standard_normal((count, basis.shape[1])) @ basis.T


@pytest.mark.parametrize("wrap", [Difference, SymmetricHull])
def test_gauges_facets_and_chords_of_symmetric_bodies(wrap, listed, by_oracle) -> None:
    expected, found = wrap(listed), wrap(by_oracle)
    directions = rays_in(expected, 12, seed=1)
    gauges = expected.gauge(directions)
    np.testing.assert_allclose(found.gauge(directions), gauges, rtol=1e-9)
    facets = found.facets(directions)
    np.testing.assert_allclose(expected.support(facets.normals), 1, rtol=1e-9)
    np.testing.assert_allclose(np.einsum("bm,bm->b", facets.normals, directions), gauges, rtol=1e-9)
    # This body is new and knows few extreme points, so it must first find some around `points`.
    points, ways = 0.95 * directions / gauges[:, None], rays_in(expected, 12, seed=2)
    low, high = wrap(by_oracle).chord(points, ways)
    np.testing.assert_allclose(low, expected.chord(points, ways)[0], rtol=1e-8)
    np.testing.assert_allclose(high, expected.chord(points, ways)[1], rtol=1e-8)


def test_membership_separation_and_chords(listed, by_oracle) -> None:
    rng = np.random.default_rng(3)
    points = rng.dirichlet(np.ones(len(listed.vertices)), 12) @ listed.vertices
    ways = rays_in(listed, 12, seed=4)
    assert by_oracle.contains(points).all()
    assert by_oracle.contains(listed.vertices).all()
    low, high = by_oracle.chord(points, ways)
    expected = listed.chord(points, ways)
    np.testing.assert_allclose(low, expected[0], rtol=1e-8)
    np.testing.assert_allclose(high, expected[1], rtol=1e-8)
    beyond = points + 1.01 * high[:, None] * ways
    assert not by_oracle.contains(beyond).any()
    for point in beyond:
        half = by_oracle.separate(point)
        assert half.normal @ point > half.offset
        assert (listed.vertices @ half.normal <= half.offset * (1 + 1e-12) + 1e-12).all()
    assert all(by_oracle.separate(point) is None for point in points)


def test_points_are_kept_from_call_to_call() -> None:
    calls = 0

    class Counting(WorkloadPolytope):
        def extreme_point(self, directions):
            nonlocal calls
            calls += len(directions)
            return super().extreme_point(directions)

    body = Difference(Counting(Marginals(6, 2)))
    directions = rays_in(body, 8, seed=5)
    first = body.gauge(directions)
    needed, calls = calls, 0
    np.testing.assert_allclose(body.gauge(directions), first, rtol=1e-12)
    assert calls == 2 * len(directions) < needed  # z and -z for the facet normal z of each ray


def test_bodies_with_infinitely_many_extreme_points_have_no_chords() -> None:
    infinite = WorkloadPolytope(BoxSecondMoment(2))
    for body in (infinite, Difference(infinite), SymmetricHull(infinite)):
        with pytest.raises(MissingOracle):
            body.chord(np.zeros((1, 3)), np.ones((1, 3)))


def test_independent_points_span_the_hull_and_flat_bodies_say_so() -> None:
    points = independent_points(WorkloadPolytope(Histogram(4)))
    assert np.linalg.matrix_rank(points[1:] - points[0]) == len(points) - 1

    class Lying(VPolytope):
        def affine_hull(self):
            return AffineHull.whole_space(3)

    with pytest.raises(ValueError, match="body must have dimension 3, like the affine hull"):
        independent_points(Lying(np.eye(2, 3)))
