"""Gaussian noise on products of queries: oracles, dense matrices, and all pairs of neighbours."""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

import geomdp as gd
from geomdp._numerics.linalg import zero_sum_basis
from geomdp.mechanisms.strategies import residual_scales
from geomdp.mechanisms.strategies.residual_scales import (
    ProfileCost,
    TableCost,
    best_precision,
    capped_cost,
    least_energy,
    replace_one_classes,
    strategy_columns,
)
from geomdp.noise.gaussian import proved_gaussian_scale
from geomdp.privacy import ZCDP, Adjacency, ApproxDP
from geomdp.workloads import (
    Explicit,
    Prefixes,
    ProductQueries,
    Ranges,
    explicit_answers,
)
from geomdp.workloads.structure import Residuals
from tests.mechanisms.test_residual_gaussian import WORKLOADS as TABLES
from tests.mechanisms.test_residual_gaussian import N, audited, built, exact_answers
from tests.stats import LEVEL, mean_agrees
from tests.workloads.test_residuals import difference, sets_of

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE


def pairs_of(levels, queries):
    """All 2-way products of three columns."""
    columns = dict(zip("abc", levels, strict=True))
    return ProductQueries(columns, [list(pair) for pair in ("ab", "ac", "bc")], queries)


#: The oracles of the formula sheet: the total squared error, the least of all strategies by a dense
#: convex program, and the SVD bound, under add/remove at squared sensitivity 1.
ORACLES = [
    (pairs_of((3, 2, 2), {}), 28.5418, 28.5418, 28.5418),
    (pairs_of((8, 3, 2), {"a": Prefixes(8)}), 175.780, 165.025, 155.151),
    (pairs_of((6, 3, 2), {"a": Ranges(6)}), 367.256, 355.899, 351.885),
    (pairs_of((5, 4, 2), {"a": Prefixes(5), "b": Prefixes(4)}), 168.140, 154.618, 140.966),
]
ROWS = Explicit([[1.0, 1, 1, 1], [0, 0.5, 1, 4]])
WORKLOADS = [
    pairs_of((4, 3, 2), {"a": Prefixes(4), "b": Ranges(3)}),
    pairs_of((4, 1, 2), {"a": ROWS, "c": Prefixes(2)}),
    ProductQueries(
        {"a": 4, "b": 3, "c": 3},
        [["a", "b"], ["c"], ["a", "b", "c"]],
        {"a": Ranges(4), "c": Prefixes(3)},
        [1.0, 2.5, 0.5],
    ),
]


@pytest.fixture(params=WORKLOADS, ids=["prefixes and ranges", "rows", "chosen"])
def workload(request):
    return request.param


@pytest.fixture(params=Adjacency)
def adjacency(request):
    return request.param


def informations(residuals):
    """B_A^T B_A (elements, elements) for each set A; B_A is the strategy for the residual of A."""
    found = []
    for A in sets_of(residuals):
        parts = []
        for i, kind in enumerate(residuals.columns):
            own = difference(kind.levels)
            root = own @ own.T if kind.root is None else kind.root @ kind.root.T
            inside = own.T @ np.linalg.solve(root, own) if kind.levels > 1 else np.zeros((1, 1))
            parts.append(inside if i in A else np.ones((kind.levels, kind.levels)))
        found.append(functools.reduce(np.kron, parts))
    return found


def information_of(mechanism):
    """The sum over A of B_A^T B_A / s_A, for the variances s_A of the noise of a mechanism."""
    residuals = mechanism.noise.residuals
    variances = mechanism.noise._set_variances
    terms = zip(informations(residuals), variances, strict=True)
    return sum(inside / s for inside, s in terms if s > 0)


def farthest(information, adjacency):
    """The largest squared length of a change of the measurements between neighbours."""
    own = np.diag(information)
    if adjacency is ADD:
        return own.max()
    return (own[:, None] + own - 2 * information).max()


@pytest.mark.parametrize(("workload", "energy", "optimum", "_"), ORACLES, ids=range(4))
def test_oracles_of_the_formula_sheet(workload, energy, optimum, _):
    found = built(workload, ADD, n=1).noise.second_moment().value
    assert found == pytest.approx(energy, rel=5e-6)
    assert (1 - 1e-5) * optimum <= found <= 1.05**2 * optimum


def test_no_neighbours_are_farther_apart_than_the_guarantee_allows(workload, adjacency):
    """By brute force over all pairs of records, and not far below what is allowed."""
    for privacy in (ZCDP(0.5), ApproxDP(1.0, 1e-6)):
        mechanism = built(workload, adjacency, privacy)
        allowed = 1 / proved_gaussian_scale(1, privacy) ** 2
        spent = farthest(information_of(mechanism), adjacency)
        assert 0.75 * allowed <= spent <= allowed * (1 + 1e-12)


@pytest.mark.parametrize("workload", [*TABLES, *WORKLOADS], ids=repr)
def test_covariance_is_that_of_least_squares_on_the_measurements(workload, adjacency):
    mechanism = built(workload, adjacency)
    answers = explicit_answers(workload)
    inverse = np.linalg.pinv(information_of(mechanism), rcond=1e-10, hermitian=True)
    expected = answers.T @ inverse @ answers
    size = np.abs(expected).max()
    covariance = mechanism.noise.covariance()
    np.testing.assert_allclose(covariance, expected, rtol=1e-6, atol=1e-6 * size)
    np.testing.assert_allclose(mechanism.noise.variances(), np.diag(covariance), atol=1e-9 * size)
    total = mechanism.noise.second_moment().value
    assert total == pytest.approx(np.trace(covariance), rel=1e-9)
    assert mechanism.predicted_rmse.value == pytest.approx((total / len(covariance)) ** 0.5 / N)
    # The densities are those of the covariance.
    moves = answers - answers[:1] if adjacency is REPLACE else answers
    losses = 2 * mechanism.noise.log_density_ratio(np.zeros_like(moves), moves)
    metric = np.linalg.pinv(covariance, rcond=1e-10, hermitian=True)
    np.testing.assert_allclose(losses, ((moves @ metric) * moves).sum(axis=1), rtol=1e-5, atol=1e-8)


@pytest.mark.statistical
def test_releases_have_the_stated_law(workload, adjacency):
    mechanism = built(workload, adjacency)
    records = workload.universe.sample(N, 3)
    # Under replace-one, queries that count all records are public.
    noisy = mechanism.noise.variances() > 1e-9
    some = np.random.default_rng(0).permutation(np.flatnonzero(noisy))[:12]
    covariance = mechanism.noise.covariance()[some][:, some] / N**2
    truth = workload.answers(records)
    laws = [mechanism.noise.sample(np.random.default_rng(1), 5000) / N]
    if workload is WORKLOADS[1]:  # an exact draw takes milliseconds
        laws.append(exact_answers(mechanism, records, 1000) - truth)
    for draws in laws:
        np.testing.assert_allclose(draws[:, ~noisy], 0, atol=1e-12)
        own = draws[:, some]
        mean_agrees(own, 0.0, level=LEVEL / 2)
        mean_agrees(own[:, :, None] * own[:, None, :], covariance, level=LEVEL / 2)


@pytest.mark.statistical
def test_audit_does_not_refute_the_claim_and_refutes_half_the_noise(adjacency):
    mechanism, weaker = built(WORKLOADS[0], adjacency), built(WORKLOADS[0], adjacency, ZCDP(2.0))
    assert not audited(mechanism, mechanism)
    assert audited(mechanism, weaker)


def test_bounds_on_the_cost_hold_and_merged_classes_cost_more(workload, monkeypatch):
    residuals = Residuals(workload, strategy_columns(workload))
    precisions = np.random.default_rng(0).uniform(0.1, 1, residuals.count)
    precisions[0] = 0.0  # the number of records is public
    inside = informations(residuals)
    total = sum(s * part for s, part in zip(precisions, inside, strict=True))
    truth = farthest(total, REPLACE)
    for classes in replace_one_classes(residuals):
        bound = ProfileCost(residuals, classes).at_most(precisions)
        assert truth * (1 - 1e-12) <= bound <= 1.5 * truth
    assert capped_cost(residuals).at_most(precisions) >= truth * (1 - 1e-12)
    assert TableCost(residuals).at_most(precisions) >= truth * (1 - 1e-12)
    columns = sum(levels > 1 for levels in workload.workload.levels)
    monkeypatch.setattr(residual_scales, "MAX_PROFILES", columns + 1)
    (classes,) = replace_one_classes(residuals)
    assert len(classes) == 1
    assert ProfileCost(residuals, classes).at_most(precisions) >= truth * (1 - 1e-12)


@pytest.mark.parametrize(("workload", "_", "__", "bound"), ORACLES, ids=range(4))
def test_svd_bounds_of_the_formula_sheet(workload, _, __, bound, adjacency):
    """They are those of a dense singular value decomposition, and the error is never below."""
    residuals = Residuals(workload, strategy_columns(workload))
    least = least_energy(residuals, adjacency)
    answers = explicit_answers(workload)
    if adjacency is ADD:
        assert least == pytest.approx(bound, rel=5e-5)
        share = 1 / len(answers)
    else:
        answers, share = answers - answers.mean(axis=0), 2 / (len(answers) - 1)
    dense = np.linalg.svd(answers, compute_uv=False).sum() ** 2 * share
    assert least == pytest.approx(dense, rel=1e-9)
    assert least <= built(workload, adjacency, n=1).noise.second_moment().value * (1 + 1e-9)


def test_the_advisor_prints_the_ratio_to_the_svd_bound(monkeypatch):
    asked = gd.advise(ORACLES[1][0], n=100, privacy=ZCDP(0.5), effort=0.05)
    (said,) = [reason for reason in asked.reasons if "SVD bound" in reason]
    assert 1 <= float(said.split()[4]) <= 1.15
    monkeypatch.setattr(residual_scales, "MAX_DIMENSION", 5)
    assert least_energy(Residuals(ORACLES[1][0]), ADD) is None


FACTORS = {
    "prefixes": np.tri(5),
    "ranges": explicit_answers(Ranges(6)).T,
    "levels": np.eye(4),
    "two rows": np.array([[1.0, 1, 1, 1], [0, 0.5, 1, 4]]),
    "equal levels": np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]]),
}


@pytest.mark.parametrize("name", FACTORS)
def test_the_strategy_of_a_column_is_best_by_another_solver(name):
    factor = FACTORS[name]
    levels = factor.shape[1]
    basis = zero_sum_basis(levels)
    queries = factor @ basis
    X = cp.Variable((levels - 1, levels - 1), PSD=True)
    error = cp.sum([cp.matrix_frac(row, X) for row in queries if np.abs(row).max() > 1e-12])
    problem = cp.Problem(cp.Minimize(error), [cp.diag(basis @ X @ basis.T) <= 1])
    problem.solve(solver=cp.CLARABEL)
    found = best_precision(factor)
    assert ((basis @ found) * basis).sum(axis=1).max() == pytest.approx(1, rel=1e-12)
    energy = np.trace(queries.T @ queries @ np.linalg.inv(found))
    assert energy == pytest.approx(problem.value, rel=1e-5)
    if name == "levels":  # the closed form: precision 1 / (1 - 1 / l) in every direction
        np.testing.assert_allclose(found, np.eye(3) * 4 / 3, atol=1e-6)


def exact_images(root):
    """L^-1 C over the rational numbers, for lower triangular L."""
    rows = [[Fraction(x) for x in row] for row in root.tolist()]
    images = []
    for column in difference(len(root) + 1).T.tolist():
        solved: list[Fraction] = []
        for row, value in zip(rows, column, strict=True):
            known = sum((a * b for a, b in zip(row, solved, strict=False)), Fraction(0))
            solved.append((Fraction(value) - known) / row[len(solved)])
        images.append(solved)
    return images


@pytest.mark.parametrize("name", FACTORS)
def test_images_of_levels_are_within_the_proved_bounds(name):
    """With rational numbers: |b_j|^2 <= share and <b_j, b_k> >= -against, and both are close."""
    factor = FACTORS[name]
    workload = ProductQueries({"a": factor.shape[1]}, [["a"]], {"a": Explicit(factor)})
    (kind,) = strategy_columns(workload)
    images = exact_images(kind.root)
    lengths = [sum(x * x for x in image) for image in images]
    products = [
        sum(x * y for x, y in zip(one, two, strict=True))
        for one, two in itertools.combinations(images, 2)
    ]
    assert 1 - 1e-9 <= max(lengths) <= kind.share == 1
    assert -kind.against <= min(products) <= -kind.against * (1 - Fraction(1, 10**9))
