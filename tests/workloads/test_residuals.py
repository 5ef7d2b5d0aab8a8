"""Structure of tables: residuals, contrasts and symmetries agree with dense matrices."""

import itertools
import math

import numpy as np
import pytest

from geomdp._numerics.linalg import zero_sum_basis
from geomdp.workloads import (
    ChosenTables,
    Histogram,
    Marginals,
    MarginalTables,
    Parities,
    Prefixes,
    WorkloadSizeError,
    explicit_answers,
)
from geomdp.workloads.structure import Residuals, random_symmetry, sign_products, table_contrasts
from geomdp.workloads.tables import TableQueries

WORKLOADS = [
    MarginalTables([2, 3, 2], 2),
    MarginalTables([2, 3, 1, 4], 3),
    MarginalTables([2] * 5, 3),
    MarginalTables([4, 2, 3], 1),
    ChosenTables(
        {"a": 2, "b": 3, "c": 1, "d": 4}, [list("ab"), list("bcd"), ["d"]], [1.0, 2.5, 0.5]
    ),
]


def tensor(parts):
    """The Kronecker product of the matrices; the product of no matrices is [[1]]."""
    product = np.ones((1, 1))
    for part in parts:
        product = np.kron(product, part)
    return product


def sets_of(residuals):
    """The sets of columns, in the order of their numbers in `residuals`."""
    return [tuple(row) for group in residuals.groups for row in group.columns.tolist()]


def difference(levels):
    return np.hstack([np.ones((levels - 1, 1)), -np.eye(levels - 1)])


def centred(levels):
    return np.eye(levels) - 1 / levels


def residual_matrix(levels, A):
    """The matrix R_A of the formula sheet, which maps histograms to residuals on A."""
    return tensor(centred(n) if i in A else np.ones((1, n)) for i, n in enumerate(levels))


def answers_of_residual(workload, A):
    """The matrix (m, cells of A) that maps a residual on A, as a table of A, to all m answers."""
    rows = []
    for table, weight in zip(workload.tables, workload.table_weights, strict=True):
        if set(A) <= set(table):
            shape = workload.shape(table)
            parts = (
                np.eye(n) if i in A else np.full((n, 1), 1 / n)
                for i, n in zip(table, shape, strict=True)
            )
            rows.append(weight * tensor(parts))
        else:
            cells = math.prod(workload.shape(table))
            rows.append(np.zeros((cells, math.prod(workload.shape(A)))))
    return np.vstack(rows)


@pytest.mark.parametrize("workload", WORKLOADS, ids=repr)
def test_coordinates_are_whole_differences_and_give_the_answers_back(workload):
    residuals, levels = Residuals(workload), workload.levels
    matrices = [
        tensor(difference(n) if i in A else np.ones((1, n)) for i, n in enumerate(levels))
        for A in sets_of(residuals)
    ]
    expected = np.vstack(matrices)  # a column for each element
    counts = explicit_answers(workload) / workload.weights
    found = residuals.of_counts(counts)
    np.testing.assert_array_equal(found, expected.T)
    assert np.abs(found).max() <= 1
    np.testing.assert_allclose(
        residuals.to_answers(found), explicit_answers(workload), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("workload", WORKLOADS, ids=repr)
def test_lengths_energies_and_variances_are_those_of_dense_matrices(workload):
    residuals = Residuals(workload)
    sets = sets_of(residuals)
    counts = np.random.default_rng(0).standard_normal((3, math.prod(workload.levels)))
    tables = counts @ (explicit_answers(workload) / workload.weights)
    lengths = [((counts @ residual_matrix(workload.levels, A).T) ** 2).sum(axis=1) for A in sets]
    found = residuals.squared_lengths(residuals.of_counts(tables))
    np.testing.assert_allclose(found, np.transpose(lengths), rtol=1e-9)
    variances = np.random.default_rng(1).uniform(0.1, 2, len(sets))
    covariance = np.zeros((workload.n_queries, workload.n_queries))
    energies = []
    for A, variance in zip(sets, variances, strict=True):
        root = answers_of_residual(workload, A) @ tensor(map(centred, workload.shape(A)))
        energies.append(np.trace(root @ root.T))
        covariance += variance * root @ root.T
    np.testing.assert_allclose(residuals.energies(), energies, rtol=1e-12)
    np.testing.assert_allclose(
        residuals.answer_variances(variances), np.diag(covariance), rtol=1e-12
    )


def test_too_many_subsets_of_columns_are_refused():
    with pytest.raises(WorkloadSizeError, match=r"2\^24 subsets"):
        Residuals(MarginalTables([2] * 20, 10))


@pytest.mark.parametrize(
    ("levels", "k"),
    [([2, 3, 4], 2), ([2, 3, 4], 3), ([3, 1, 2, 4, 2], 3), ([2] * 7, 3), ([2, 5, 1, 3], 2)],
)
def test_counts_by_products_of_indicators(levels, k):
    workload = MarginalTables(levels, k)
    records = workload.universe.sample(100, 1)
    counted = workload.cell_counts(records)
    one_by_one = TableQueries._counts(workload, np.asarray(records))
    np.testing.assert_array_equal(counted.sums, one_by_one)
    np.testing.assert_array_equal(counted.sums, workload.evaluate(records).sum(axis=0))
    assert counted.count == 100


# Contrasts: combinations of the indicators of levels with coefficients that add up to 0


@pytest.mark.parametrize(
    ("workload", "levels"),
    [
        (MarginalTables([2, 3, 4], 2), (2, 3, 4)),
        (MarginalTables([5, 1, 3], 2), (5, 3)),
        (MarginalTables([1, 4], 2), (4,)),
        (MarginalTables([3, 2], 1), (3, 2)),
        (Marginals(4, 2), (2,) * 4),
        (Marginals(3, 1), (2,) * 3),
    ],
)
def test_answers_are_the_stated_function_of_contrasts(workload, levels) -> None:
    found = table_contrasts(workload)
    assert found.levels == levels
    elements = workload.universe.elements().astype(int)
    sizes = elements.max(axis=0) + 1
    parts = [zero_sum_basis(n)[elements[:, i]] for i, n in enumerate(sizes) if n > 1]
    pairs = [
        (a[:, :, None] * b[:, None, :]).reshape(len(elements), -1)
        for a, b in itertools.combinations(parts, 2)
    ]
    rebuilt = found.constant + (found.matrix @ np.hstack([*parts, *pairs]).T).T
    np.testing.assert_allclose(rebuilt, explicit_answers(workload), atol=1e-12)


def test_contrasts_of_parities_are_those_of_products_with_the_first_sign() -> None:
    workload = Parities(4, 2)
    found = table_contrasts(workload)
    assert found.levels == (2, 2, 2)
    signs = 1.0 - 2.0 * workload.universe.elements()
    first = signs[:, :1] * signs[:, 1:] / np.sqrt(2)
    i, j = np.triu_indices(3, 1)
    points = np.hstack([first, first[:, i] * first[:, j]])
    rebuilt = found.constant + (found.matrix @ points.T).T
    np.testing.assert_allclose(rebuilt, explicit_answers(workload), atol=1e-12)


@pytest.mark.parametrize(
    "workload",
    [
        Parities(4, 3),
        Prefixes(4),
        Marginals(4, 3),
        MarginalTables([2, 3, 2], 3),
        MarginalTables([1, 1], 2),
    ],
    ids=repr,
)
def test_other_workloads_have_no_contrasts_and_no_signs(workload) -> None:
    assert table_contrasts(workload) is None
    assert sign_products(workload) is None
    assert sign_products(MarginalTables([2, 1, 2], 2)) is None  # contrasts, but no signs


# Symmetries: orthogonal maps that permute the answer vectors


BINARY = MarginalTables([2, 2, 2, 2], 2)


@pytest.mark.parametrize(
    "workload",
    [
        BINARY,
        MarginalTables([2, 3, 2, 3], 2),
        MarginalTables([2, 3, 2, 2], 3),
        Marginals(5, 2),
        Parities(5, 3),
    ],
    ids=repr,
)
def test_symmetries_are_random_and_orthogonal_and_permute_answers(workload):
    answers, identity = explicit_answers(workload), np.eye(workload.n_queries)
    symmetry, rng = random_symmetry(workload), np.random.default_rng(0)
    images = [symmetry(answers, rng) for _ in range(10)]
    for image in images:
        np.testing.assert_array_equal(np.unique(image, axis=0), np.unique(answers, axis=0))
    assert any(not np.array_equal(image, answers) for image in images)
    first, second = (symmetry(identity, rng) for _ in range(2))
    np.testing.assert_array_equal(first @ first.T, identity)
    assert not np.array_equal(first, second)
    assert random_symmetry(Histogram(4)) is None


def test_columns_and_levels_both_move():
    """Random symmetries move the first cell to each of the 24 cells of the tables."""
    symmetry, rng = random_symmetry(BINARY), np.random.default_rng(2)
    cell = np.eye(BINARY.n_queries)[:1]
    # 400 draws miss some of the 24 cells with probability at most 24 (23/24)^400 < 1e-6.
    assert {int(symmetry(cell, rng).argmax()) for _ in range(400)} == set(range(24))
