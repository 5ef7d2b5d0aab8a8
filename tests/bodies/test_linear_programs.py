"""Warm-started linear programs agree with `scipy.optimize.linprog`, also on degenerate bodies."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from scipy.optimize import linprog

from geomdp.bodies import Difference, HPolytope, SlabBody, SolverError, VPolytope
from geomdp.bodies.linear_programs import ConicProgram, origin_depth, slack_rows
from geomdp.bodies.symmetrised import SymmetricHull

#: Relative tolerance: five times the tolerance of HiGHS in the library, on data scaled to size 1.
ACCURACY = 5e-9


def degenerate(kind: int, rng: np.random.Generator) -> np.ndarray:
    """Points whose hull contains 0. For `kind` 1 to 4 they are degenerate in different ways."""
    m, count = int(rng.integers(1, 6)), int(rng.integers(8, 40))
    points = rng.standard_normal((count, m))
    if kind == 1:  # vertices of a cube, so that many points share a facet
        points = np.sign(points)
    elif kind == 2:  # repeated points, and points that are no vertices
        points = np.vstack([points, points[: count // 2], points[:3] / 2, np.zeros((1, m))])
    elif kind == 3:  # a polytope of dimension m in dimension m + 2
        points = points @ rng.standard_normal((m, m + 2))
    elif kind == 4:  # points of a small integer grid
        points = np.round(2 * points)
    points = np.vstack([points, -points[: len(points) // 2]])
    return np.vstack([points, -points.sum(axis=0)]) * 10.0 ** rng.integers(-3, 4)


INSTANCES = [pytest.param(seed, seed % 5, id=f"{seed}-kind{seed % 5}") for seed in range(50)]


def gauge_by_linprog(generators: np.ndarray, costs: np.ndarray, point: np.ndarray) -> float:
    result = linprog(costs, A_eq=generators.T, b_eq=point, method="highs")
    assert result.status in (0, 2)
    return np.inf if result.status == 2 else result.fun


def in_span(points: np.ndarray, rng: np.random.Generator, count: int = 4) -> np.ndarray:
    return rng.standard_normal((count, len(points))) @ points / np.sqrt(len(points))


@pytest.mark.parametrize(("seed", "kind"), INSTANCES)
def test_gauges_of_polytopes_agree_with_linprog(seed, kind):
    rng = np.random.default_rng(seed)
    V = degenerate(kind, rng)
    V = V - V.mean(axis=0)
    pairs = np.array([a - b for a, b in itertools.permutations(V[:12], 2)])
    points = in_span(V, rng)
    bodies = {
        VPolytope(V): V,
        SymmetricHull(VPolytope(V + V[0] / 3)): np.vstack([V + V[0] / 3, -V - V[0] / 3]),
        Difference(VPolytope(V[:12])): pairs,
    }
    for body, generators in bodies.items():
        at = points if generators is not pairs else in_span(pairs, rng)
        expected = [gauge_by_linprog(generators, np.ones(len(generators)), x) for x in at]
        np.testing.assert_allclose(body.gauge(at), expected, rtol=ACCURACY)
        found = body.facets(at)
        # Check the normals without a solver: <z, v> <= 1 for each normal z and generator v, and
        # <z, x> is the gauge of the point x.
        assert (generators @ found.normals.T <= 1 + 1e-12).all()
        np.testing.assert_allclose(np.einsum("bm,bm->b", found.normals, at), found.gauges)


@pytest.mark.parametrize(("seed", "kind"), INSTANCES)
def test_membership_and_separation_agree_with_linprog(seed, kind):
    rng = np.random.default_rng(seed)
    V = degenerate(kind, rng) + rng.standard_normal()  # 0 need not be in the hull
    body = VPolytope(V)
    centre = V.mean(axis=0)
    points = centre + in_span(V - centre, rng, 6)
    size = np.abs(V).max()  # scale the data, because tolerances of `linprog` are absolute
    lifted = np.hstack([V / size, np.ones((len(V), 1))])
    for point in points:
        target = np.append(point / size, 1)
        inside = linprog(np.zeros(len(V)), A_eq=lifted.T, b_eq=target, method="highs").status == 0
        assert body.contains(point[None])[0] == inside
        cut = body.separate(point)
        assert (cut is None) == inside
        if cut is not None:
            rounding = 1e-12 * np.linalg.norm(cut.normal) * np.abs(V).max()
            assert (V @ cut.normal <= cut.offset + rounding).all()
            assert point @ cut.normal > cut.offset


@pytest.mark.parametrize("seed", range(50))
def test_supports_of_inequalities_agree_with_linprog(seed):
    rng = np.random.default_rng(seed)
    m, size = int(rng.integers(1, 6)), 10.0 ** rng.integers(-3, 4)
    A = rng.standard_normal((m + int(rng.integers(0, 20)), m))
    if seed % 3 == 1:
        A = np.vstack([np.sign(A), A[:2], A[:2]])
    slabs = SlabBody(np.vstack([A, np.eye(m)]), size * rng.uniform(0.5, 2, len(A) + m))
    rows, widths = slabs.directions, slabs.widths
    offsets = np.concatenate([widths, widths * rng.uniform(0, 1, len(widths))])
    both = np.vstack([rows, -rows])
    directions = rng.standard_normal((4, m))
    for body, b in ((slabs, np.tile(widths, 2)), (HPolytope(both, offsets), offsets)):
        expected = [
            -linprog(-u, A_ub=both, b_ub=b, bounds=(None, None), method="highs").fun
            for u in directions
        ]
        np.testing.assert_allclose(body.support(directions), expected, rtol=ACCURACY)
        corners = body.extreme_point(directions)
        assert (both @ corners.T <= b[:, None] * (1 + 1e-12) + 1e-9 * size).all()


@pytest.mark.parametrize("seed", range(20))
def test_chords_agree_with_linprog(seed):
    rng = np.random.default_rng(seed)
    V = degenerate(seed % 5, rng) + 0.5
    centre, size = V.mean(axis=0), np.abs(V).max()
    points = centre + 0.3 * in_span(V - centre, rng) / len(V)
    ways = in_span(V - centre, rng)
    low, high = VPolytope(V).chord(points, ways)
    lifted = np.hstack([V, np.full((len(V), 1), size)])
    for x, u, ends in zip(points, ways, np.column_stack([-low, high]), strict=True):
        for sign, end in zip((-1, 1), ends, strict=True):
            columns = np.vstack([lifted, np.append(-sign * u, 0)]).T
            costs = np.append(np.zeros(len(V)), -1.0)
            result = linprog(costs, A_eq=columns, b_eq=np.append(x, size), method="highs")
            assert end == pytest.approx(-result.fun, rel=1e-7, abs=1e-7)


def test_a_program_is_the_same_after_pickling_and_in_any_order():
    rng = np.random.default_rng(0)
    columns, targets = rng.standard_normal((6, 80)), rng.standard_normal((20, 6))
    program = ConicProgram(columns, np.ones(80))
    values, duals = program.solve(targets)
    copy = pickle.loads(pickle.dumps(program))
    np.testing.assert_allclose(copy.solve(targets[::-1])[0][::-1], values, rtol=ACCURACY)
    np.testing.assert_allclose(np.einsum("br,br->b", duals, targets), values, rtol=ACCURACY)


def test_infeasible_targets_are_infinite_and_do_not_spoil_the_next():
    program = ConicProgram(np.array([[1.0, 1.0], [1.0, 2.0]]), np.ones(2))
    values, duals = program.solve(np.array([[1.0, 1.5], [-1.0, 0.0], [1.0, 1.5], [0.0, 0.0]]))
    np.testing.assert_allclose(values, [1, np.inf, 1, 0], rtol=ACCURACY)
    assert not duals[1].any()


def test_an_unbounded_program_is_an_error():
    with pytest.raises(SolverError, match="status"):
        ConicProgram(np.array([[1.0, -1.0]]), np.array([1.0, -2.0])).solve(np.ones((1, 1)))


def test_origin_depth():
    square = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
    assert origin_depth(square) == pytest.approx(1)
    assert origin_depth(square[:3]) == 0  # 0 is on an edge
    assert origin_depth(square + 2) == 0  # 0 is outside
    shifted = square + np.array([0.5, 0])
    # 0 = 1/8 (1.5, 0) + 5/8 (-0.5, 0) + 1/8 (0.5, 1) + 1/8 (0.5, -1). The least weight 1/8 is half
    # of the equal weight 1/4.
    assert origin_depth(1e-4 * shifted) == pytest.approx(0.5)
    assert origin_depth(np.zeros((3, 0))) == 1


def test_slack_rows_find_flat_and_empty_sets():
    square, offsets = np.vstack([np.eye(2), -np.eye(2)]), np.array([1.0, 0.5, 1, -0.5])
    point, slack = slack_rows(square, offsets)
    np.testing.assert_array_equal(slack, [True, False, True, False])
    assert point[1] == pytest.approx(0.5)
    assert abs(point[0]) < 1
    assert slack_rows(square, np.array([1.0, 0.5, 1, -0.6])) is None
    point, slack = slack_rows(square, np.ones(4))
    assert slack.all()
    # Only the point 0 satisfies x1 + x2 <= 0 and x >= 0, so no row is slack.
    rows = np.vstack([np.full((1, 2), np.sqrt(0.5)), -np.eye(2)])
    assert not slack_rows(rows, np.zeros(3))[1].any()
