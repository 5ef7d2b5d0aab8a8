"""The nearest tables that agree and have no negative cell are optimal and not less accurate."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest
import scipy.optimize

from geomdp.data.schema import Table
from geomdp.mechanisms.base import answer_hull
from geomdp.privacy import Adjacency
from geomdp.tabulation.consistency import LocalPolytope, fits
from geomdp.workloads import ChosenTables, MarginalTables

REPLACE = Adjacency.REPLACE_ONE
LEVELS = {"a": 2, "b": 3, "c": 4, "d": 2}
CASES = {
    "pairs": (tuple(itertools.combinations("abcd", 2)), None),
    "triples": (tuple(itertools.combinations("abcd", 3)), None),
    "mixed, weighted": (
        (("a", "b", "c"), ("c", "d"), ("b",), ("b", "d")), (1.0, 0.25, 5.0, 2.0)
    ),
}  # fmt: skip


def tables_of(levels, crossed):
    return [
        Table(names, tuple(tuple(map(str, range(levels[n]))) for n in names)) for names in crossed
    ]


class Case:
    def __init__(self, crossed, weights, adjacency):
        self.adjacency = adjacency
        self.crossed = crossed
        self.weights = (1.0,) * len(crossed) if weights is None else weights
        self.tables = tables_of(LEVELS, crossed)
        self.workload = ChosenTables(LEVELS, crossed, self.weights)
        self.polytope = LocalPolytope(self.tables, self.weights, adjacency)
        self.hull = answer_hull(self.workload, adjacency)

    def true(self, rng, n=30):
        """Answers of few records, so that many cells are 0; divided by n under add/remove."""
        codes = np.column_stack([rng.integers(levels, size=n) for levels in LEVELS.values()])
        answers = self.workload.evaluate(codes[: rng.integers(1, n + 1)])
        return answers.mean(axis=0) if self.adjacency is REPLACE else answers.sum(axis=0) / n

    def arrays(self, answers):
        """Tables as arrays of shares."""
        ends = np.cumsum([table.n_cells for table in self.tables])[:-1]
        parts = np.split(answers, ends)
        return [
            (part / weight).reshape([LEVELS[name] for name in names])
            for part, weight, names in zip(parts, self.weights, self.crossed, strict=True)
        ]

    def disagreement(self, answers):
        """The largest difference of totals, or of the shared margins of two tables."""
        arrays = self.arrays(answers)
        total = 1 if self.adjacency is REPLACE else arrays[0].sum()
        found = [abs(array.sum() - total) for array in arrays]
        for i, j in itertools.combinations(range(len(arrays)), 2):
            margins = []
            for k, other in ((i, j), (j, i)):
                own, theirs = self.crossed[k], self.crossed[other]
                gone = tuple(axis for axis, name in enumerate(own) if name not in theirs)
                margins.append(arrays[k].sum(axis=gone))
            found.append(np.abs(margins[0] - margins[1]).max())
        return max(found)


@pytest.fixture(scope="module", params=itertools.product(CASES, Adjacency), ids=str)
def case(request):
    name, adjacency = request.param
    return Case(*CASES[name], adjacency)


def noisy_answers(case, seed, noise):
    rng = np.random.default_rng(seed)
    truth = case.true(rng)
    return truth, truth + noise * rng.standard_normal(len(truth))


NOISES = pytest.mark.parametrize(
    ("seed", "noise"),
    [*((seed, 0.1) for seed in range(5)), (5, 1e-9), (6, 1e-3), (7, 1.0), (8, 50)],
)


def test_the_basis_is_that_of_the_affine_hull(case):
    basis = case.polytope._basis.toarray()
    np.testing.assert_allclose(basis.T @ basis, np.eye(case.polytope.dimension), atol=1e-12)
    hull = case.hull
    np.testing.assert_allclose(basis @ basis.T, hull.basis @ hull.basis.T, atol=1e-12)
    np.testing.assert_allclose(case.polytope.centre, case.workload.affine_hull().offset, atol=1e-15)


@NOISES
def test_the_nearest_tables_are_feasible(case, seed, noise):
    noisy = noisy_answers(case, seed, noise)[1]
    found = case.polytope.nearest(noisy)
    # Cells of the cone can be as large as the noisy ones.
    size = max(1.0, noise) if case.adjacency is REPLACE else max(1.0, np.linalg.norm(noisy))
    assert found.answers.min() >= 0
    assert case.disagreement(found.answers) < 1e-11 * (1.0 if case.adjacency is REPLACE else size)
    assert 0 <= found.gap < 1e-9 * size**2


@NOISES
def test_they_are_optimal(case, seed, noise):
    # Least distance programming (Lawson and Hanson 1974, chapter 23), in the basis of the hull of
    # the workload: the least ||u|| with G u >= h comes from non-negative least squares with the
    # matrix (G^T; h^T).
    _, noisy = noisy_answers(case, seed, noise)
    hull = case.hull
    near = hull.embed(hull.coordinates(noisy[None]))[0]
    stacked = np.vstack([hull.basis.T, -near])
    target = np.eye(len(stacked))[-1]
    solution, _ = scipy.optimize.nnls(stacked, target, maxiter=10_000)
    residual = stacked @ solution - target
    expected = near - hull.basis @ residual[:-1] / residual[-1]
    found = case.polytope.nearest(noisy).answers
    np.testing.assert_allclose(found, expected, atol=1e-9 * max(1.0, noise))


def test_they_are_optimal_for_a_solver_of_quadratic_programs(case):
    _, noisy = noisy_answers(case, 9, 0.1)
    cells = cp.Variable(len(noisy))
    # Tables agree if and only if they are the tables of a joint table that may have negative cells.
    joint = cp.Variable(np.prod(list(LEVELS.values())))
    everyone = np.array(list(itertools.product(*map(range, LEVELS.values()))))
    answers = case.workload.evaluate(everyone)
    constraints = [cells == answers.T @ joint, cells >= 0]
    if case.adjacency is REPLACE:
        constraints.append(cp.sum(joint) == 1)
    cp.Problem(cp.Minimize(cp.sum_squares(cells - noisy)), constraints).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(case.polytope.nearest(noisy).answers, cells.value, atol=1e-5)


@NOISES
def test_they_are_never_further_from_the_truth(case, seed, noise):
    truth, noisy = noisy_answers(case, seed, noise)
    found = case.polytope.nearest(noisy)
    before = ((noisy - truth) ** 2).sum()
    assert ((found.answers - truth) ** 2).sum() <= before + found.gap


def test_answers_inside_stay(case):
    truth = case.true(np.random.default_rng(10))
    found = case.polytope.nearest(truth)
    np.testing.assert_allclose(found.answers, truth, atol=1e-12)


def test_tables_that_agree_although_no_records_have_them():
    # The tables say that any two of three binary columns always differ. No record has this.
    tables = tables_of({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("a", "c"), ("b", "c")])
    differ = np.tile([0, 0.5, 0.5, 0], 3)
    found = LocalPolytope(tables, [1.0] * 3, REPLACE).nearest(differ)
    np.testing.assert_allclose(found.answers, differ, atol=1e-12)


def test_columns_of_one_level():
    tables = tables_of({"a": 1, "b": 2, "c": 1}, [("a", "b"), ("b",), ("a", "c")])
    polytope = LocalPolytope(tables, [1.0, 2.0, 1.0], REPLACE)
    found = polytope.nearest(np.array([-0.2, 0.9, 0.1, 2.2, 7.0]))
    np.testing.assert_allclose(found.answers, [0, 1, 0, 2, 1], atol=1e-12)


def test_all_pairs_of_a_hundred_binary_columns():
    levels = {f"c{i}": 2 for i in range(100)}
    workload = MarginalTables(levels, 2)
    tables = tables_of(levels, list(itertools.combinations(levels, 2)))
    assert fits(tables)
    rng = np.random.default_rng(11)
    truth = workload.evaluate((rng.random((50, 100)) < 0.05).astype(np.int64)).mean(axis=0)
    noisy = truth + 0.2 * rng.standard_normal(len(truth))
    polytope = LocalPolytope(tables, [1.0] * len(tables), REPLACE)
    assert polytope.dimension == 5050
    found = polytope.nearest(noisy)
    assert found.answers.min() >= 0
    assert found.gap < 1e-7
    pairs = found.answers.reshape(-1, 2, 2)
    first = pairs.sum(axis=2)[:99]  # the tables of column 0 and another column
    np.testing.assert_allclose(first, np.broadcast_to(first[0], first.shape), atol=1e-11)
    assert np.linalg.norm(found.answers - truth) < np.linalg.norm(noisy - truth)


def test_the_limit():
    levels = {"a": 10, "b": 10, "c": 10, "d": 300}
    assert fits(tables_of(levels, [("a", "b", "c"), ("a", "d")]))
    assert not fits(tables_of(levels, [("a", "b", "c", "d"), ("a", "d")]))
