"""Bodies made from a user's CVXPY constraints agree with closed forms and give clear errors."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from geomdp.bodies import Ball, Body, Box, CrossPolytope, CvxBody, SolverError
from tests.catalogue import CONIC_PROGRAM, gaussian

SOLVERS = [None, cp.CLARABEL, cp.SCS]


def l1(solver=None):
    return CvxBody(4, lambda x: [cp.norm1(x) <= 2], solver=solver)


@pytest.mark.parametrize("solver", SOLVERS)
def test_agrees_with_the_closed_form(solver):
    body, exact, points = l1(solver), CrossPolytope(4, 2), gaussian(3, 4)
    np.testing.assert_allclose(body.support(points), exact.support(points), rtol=CONIC_PROGRAM)
    np.testing.assert_allclose(body.gauge(points), exact.gauge(points), rtol=CONIC_PROGRAM)
    nearest = exact.project(points)
    np.testing.assert_allclose(body.project(points), nearest, rtol=0, atol=2 * CONIC_PROGRAM)
    inner = 0.5 * points / exact.gauge(points)[:, None]
    ways = gaussian(3, 4, seed=1)
    np.testing.assert_allclose(body.chord(inner, ways), exact.chord(inner, ways), rtol=1e-4)


def test_problems_are_compiled_once():
    calls = []

    def build(x):
        calls.append(x)
        return [cp.norm(x, 2) <= 1]

    body = CvxBody(3, build)
    for _ in range(3):
        body.support(gaussian(2, 3))
        body.gauge(gaussian(2, 3))
    # `build` is called at construction and once for each program: support, projection (to check
    # that 0 is in the body) and the farthest point of a ray.
    assert len(calls) == 4
    assert all(isinstance(x, cp.Variable) and x.shape == (3,) for x in calls)


def test_affine_hull_of_a_flat_body():
    plane = gaussian(2, 5)
    body = CvxBody(5, lambda x: [cp.norm(x, 2) <= 1, plane @ x == 0.1])
    hull = body.affine_hull()
    assert hull.dimension == 3
    np.testing.assert_allclose(plane @ hull.basis, 0, atol=1e-5)
    np.testing.assert_allclose(plane @ hull.offset, 0.1, atol=1e-6)
    point = CvxBody(2, lambda x: [x == np.array([1.0, 2.0])])
    assert point.affine_hull().dimension == 0


def test_auxiliary_variables_are_allowed():
    """The body is a zonotope, the image of a cube. Points of the cube are auxiliary variables."""
    generators = gaussian(3, 2)

    def build(x):
        weights = cp.Variable(3)
        return [x == generators.T @ weights, cp.norm_inf(weights) <= 1]

    directions = gaussian(4, 2, seed=1)
    expected = np.abs(directions @ generators.T).sum(axis=1)
    np.testing.assert_allclose(CvxBody(2, build).support(directions), expected, rtol=CONIC_PROGRAM)


@pytest.mark.parametrize(
    ("build", "what"),
    [
        (lambda x: [x >= 0], "unbounded"),
        (lambda x: [x >= 1, cp.sum(x) <= 1], "empty"),
        (lambda x: [], "unbounded"),
    ],
    ids=["orthant", "contradiction", "no constraint"],
)
def test_sets_that_are_no_bodies_say_so(build, what):
    body = CvxBody(2, build)
    with pytest.raises(ValueError, match=what):
        body.support(np.ones((1, 2)))
    with pytest.raises(ValueError, match=r"unbounded|empty"):
        body.contains(np.ones((1, 2)))
    with pytest.raises(ValueError, match=r"unbounded|empty"):
        body.affine_hull()


def test_a_body_without_0_has_no_gauge():
    body = CvxBody(2, lambda x: [cp.norm(x - np.array([3.0, 0]), 2) <= 1])
    assert not body.implements(Body.gauge)
    with pytest.raises(ValueError, match="has no gauge"):
        body.gauge(np.ones((1, 2)))
    exact = Ball(2)
    points = np.array([[3.0, 0.5], [0.0, 0.0]])
    assert body.contains(points).tolist() == exact.contains(points - [3, 0]).tolist()


def test_solver_failures_are_not_swallowed(monkeypatch):
    body = l1(cp.SCS)
    body.support(np.eye(4)[:1])
    monkeypatch.setitem(body._highest._settings, "max_iters", 1)
    with pytest.raises(SolverError, match="SCS"):
        body.support(gaussian(1, 4))


@pytest.mark.parametrize(
    ("build", "solver", "message"),
    [
        (lambda x: 3, None, "must return a list"),
        (lambda x: [True], None, "must return a list"),
        (lambda x: [x <= 1], "CPLEX", "solver must be one of"),
    ],
)
def test_bad_parameters_are_refused(build, solver, message):
    with pytest.raises(ValueError, match=message):
        CvxBody(2, build, solver=solver)
    with pytest.raises(ValueError, match="dimension"):
        CvxBody(0, lambda x: [x <= 1])


def test_constraints_compose():
    """A larger problem with `cvxpy_constraints` of two bodies finds the distance between them."""
    first, second = l1(), Box(np.full(4, 2.0), np.full(4, 3.0))
    x, y = cp.Variable(4), cp.Variable(4)
    constraints = [*first.cvxpy_constraints(x), *second.cvxpy_constraints(y)]
    problem = cp.Problem(cp.Minimize(cp.norm(x - y, 2)), constraints)
    assert problem.solve(solver=cp.CLARABEL) == pytest.approx(3, rel=CONIC_PROGRAM)
