"""Moment relaxations contain the sensitivity polytopes, and optima agree with conic solvers."""

from __future__ import annotations

import itertools
import math

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from geomdp.bodies import Box, Elliptope, moment_relaxation, sensitivity_polytope
from geomdp.bodies.conic import elliptope
from geomdp.bodies.conic.compiled import GAP, highest_correlation
from geomdp.bodies.conic.elliptope import MappedElliptope, nearest_with_diagonal
from geomdp.bodies.relaxations import MomentMatrix, MomentRelaxation
from geomdp.geometry import project
from geomdp.workloads import Marginals, MarginalTables, Parities, Prefixes
from tests.catalogue import CONIC_PROGRAM, gaussian

WORKLOADS = [
    Marginals(4, 2),
    Marginals(6, 2),
    Marginals(5, 3),
    Marginals(5, 4),
    Parities(5, 2),
    Parities(5, 3),
    Parities(6, 4),
]


def symmetric(order: int, seed: int) -> np.ndarray:
    matrix = gaussian(order, order, seed=seed)
    matrix = matrix + matrix.T
    np.fill_diagonal(matrix, 0.0)
    return matrix


@pytest.mark.parametrize("order", [2, 3, 6, 15])
def test_highest_correlation_against_a_conic_solver(order):
    weights = np.stack([symmetric(order, seed) for seed in range(3)])
    weights[2] = np.sign(weights[2])  # weights of equal size
    best = highest_correlation(weights)
    attained = (weights * best.matrices).sum(axis=(1, 2)) / 2
    assert (attained <= best.bounds * (1 + 1e-14)).all()
    np.testing.assert_allclose(attained, best.bounds, rtol=2 * GAP)
    assert np.linalg.eigvalsh(best.matrices).min() > -1e-12
    R = cp.Variable((order, order), PSD=True)
    for each, bound in zip(weights, best.bounds, strict=True):
        problem = cp.Problem(cp.Maximize(cp.trace(each @ R) / 2), [cp.diag(R) == 1])
        problem.solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(bound, problem.value, rtol=1e-6)


def test_highest_correlation_known_values():
    # Over the edges of a pentagon, the sum of -R_ij is at most 5 (sqrt 5 + 1) / 4. Over the edges
    # of a triangle, the sum is at most 3/2.
    for order, value in ((5, 5 * (math.sqrt(5) + 1) / 4), (3, 1.5)):
        weights = np.zeros((order, order))
        for i in range(order):
            weights[i, (i + 1) % order] = weights[(i + 1) % order, i] = -1.0
        np.testing.assert_allclose(highest_correlation(weights[None]).bounds, value, rtol=1e-8)
    assert highest_correlation(np.zeros((1, 4, 4))).bounds[0] == 0


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("order", [2, 5, 40])
def test_nearest_correlation_satisfies_the_variational_inequality(order, scale):
    for seed, rounded in itertools.product(range(4), (False, True)):
        target = scale * symmetric(order, seed)
        target = scale * np.round(target / scale) if rounded else target
        nearest = nearest_with_diagonal(target, np.ones(order))
        assert (np.diag(nearest) == 1).all()
        assert np.linalg.eigvalsh(nearest)[0] > -1e-13 * order
        away = target - nearest
        np.fill_diagonal(away, 0.0)
        bound = 2 * highest_correlation(away[None]).bounds[0]
        assert bound - (away * nearest).sum() <= 2e-9 * bound + 1e-12 * order


@pytest.mark.parametrize("power", [-60, -30, 30, 60])
@pytest.mark.parametrize("order", [6, 40])
def test_nearest_with_a_diagonal_of_any_size(order, power, monkeypatch):
    """Scaling a problem by 2^power scales the solution exactly; the number of steps stays."""
    calls = []
    dual = elliptope._dual
    monkeypatch.setattr(elliptope, "_dual", lambda *given: calls.append(1) or dual(*given))
    target, diagonal = 3 * symmetric(order, 1), np.resize([4.0, 1, 1, 2, 0.5, 3], order)
    expected, steps = nearest_with_diagonal(target, diagonal), len(calls)
    found = nearest_with_diagonal(2.0**power * target, 2.0**power * diagonal)
    assert len(calls) == 2 * steps
    np.testing.assert_array_equal(found, 2.0**power * expected)


def test_nearest_with_another_diagonal_against_a_conic_solver():
    target, diagonal = 3 * symmetric(5, 1), np.array([4.0, 1, 1, 2, 0.5])
    X = cp.Variable((5, 5), PSD=True)
    off = 1 - np.eye(5)
    distance = cp.sum_squares(cp.multiply(off, X - target))
    cp.Problem(cp.Minimize(distance), [cp.diag(X) == diagonal]).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(nearest_with_diagonal(target, diagonal), X.value, atol=1e-4)


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_relaxation_holds_the_polytope(workload):
    body, K = moment_relaxation(workload), sensitivity_polytope(workload)
    directions = gaussian(6, body.dimension)
    directions[-1] = 1.0
    high, true = body.support(directions), K.support(directions)
    assert (high >= true * (1 - 1e-12) - 1e-12).all()
    points = body.extreme_point(directions)
    slack = CONIC_PROGRAM * np.abs(high).max()
    np.testing.assert_allclose((points * directions).sum(axis=1), high, rtol=0, atol=slack)
    for corner in K.extreme_point(directions):
        np.testing.assert_allclose(project(body, corner).point, corner, rtol=0, atol=1e-5)


def test_first_level_is_strict_and_the_lift_is_closer():
    """Over a pentagon's edges, the sum of -s_i s_j is at most 3; the elliptope allows 4.05."""
    edges = np.zeros((5, 5))
    for i in range(5):
        edges[i, (i + 1) % 5] = edges[(i + 1) % 5, i] = -1.0
    direction = edges[np.triu_indices(5, 1)][None]
    level = Elliptope(5).support(direction)[0]
    np.testing.assert_allclose(level, 5 * (math.sqrt(5) + 1) / 4, rtol=1e-8)
    np.testing.assert_allclose(sensitivity_polytope(Parities(5, 2)).support(direction), 3)
    sets = [each for size in (0, 1, 2) for each in itertools.combinations(range(5), size)]
    pairs = [{pair: 1.0} for pair in itertools.combinations(range(5), 2)]
    second = MomentRelaxation(MomentMatrix(sets), pairs).support(direction)[0]
    assert 3 - 1e-9 <= second <= level - 0.1


def test_small_cases_are_exact_bodies():
    assert isinstance(moment_relaxation(Marginals(4, 1)), Box)
    assert isinstance(moment_relaxation(Parities(4, 1)), Box)
    assert moment_relaxation(Parities(4, 2)) == Elliptope(4)
    segment = moment_relaxation(Parities(3, 3))
    np.testing.assert_allclose(segment.support(np.array([[2.0], [-3.0]])), [2, 3])


def test_pair_marginals_are_the_moment_matrix_with_diagonal_equal_to_the_first_row():
    body, m = moment_relaxation(Marginals(4, 2)), 6
    M = cp.Variable((5, 5), PSD=True)
    y = M[1:, 1:][np.triu_indices(4, 1)]
    for direction in gaussian(4, m, seed=3):
        constraints = [M[0, 0] == 1, cp.diag(M) == M[0]]
        problem = cp.Problem(cp.Maximize(direction @ y), constraints)
        problem.solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(body.support(direction[None]), problem.value, rtol=1e-6)


def test_bad_input():
    with pytest.raises(ValueError, match="Prefixes"):
        moment_relaxation(Prefixes(4))
    with pytest.raises(ValueError, match="200"):
        moment_relaxation(Parities(22, 4))
    with pytest.raises(ValueError, match="distinct"):
        MomentMatrix([(0,), (0,)])
    with pytest.raises(ValueError, match="must use sets that occur"):
        MomentRelaxation(MomentMatrix([(0,), (1,)]), [{(0, 2): 1.0}])
    with pytest.raises(ValueError, match="directions"):
        moment_relaxation(Marginals(4, 2)).support(np.full((1, 6), np.nan))


def test_tables_of_two_levels_are_projected_in_closed_form():
    """Projections agree with a semidefinite program, or satisfy the optimality condition."""
    workload = MarginalTables([2] * 4, 2)
    body = moment_relaxation(workload)
    np.testing.assert_allclose(body.weights / body.weights[1], [3, 1, 1, 1, 1], rtol=1e-14)
    rng = np.random.default_rng(0)
    target = rng.normal(size=body.dimension)
    variable = cp.Variable(body.dimension)
    distance = cp.Minimize(cp.sum_squares(variable - target))
    cp.Problem(distance, body.cvxpy_constraints(variable)).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(body.project(target[None])[0], variable.value, atol=1e-5)
    large = MarginalTables([2] * 30, 2)
    body = moment_relaxation(large)
    answers = large.answers(large.universe.sample(3, rng))
    np.testing.assert_allclose(body.project(answers[None])[0], answers, atol=1e-6)
    residual = 0.2 * rng.normal(size=body.dimension)
    nearest = body.project((answers + residual)[None])[0]
    normal = answers + residual - nearest
    assert body.support(normal[None])[0] - normal @ nearest <= 1e-8 * body.radius() ** 2


def test_tables_without_a_closed_projection_are_refused():
    with pytest.raises(ValueError, match="two-level"):
        moment_relaxation(MarginalTables([2, 3, 2], 2))
    matrix = sp.csr_array(np.eye(3))
    with pytest.raises(ValueError, match="columns of matrix must be orthogonal"):
        MappedElliptope(matrix, np.array([1.0, 1.0, 2.0]), np.zeros(3))
