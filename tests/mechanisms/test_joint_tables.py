"""Strategies that measure tables of several columns: error, split of the budget, and release."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from geomdp.data import BooleanColumn, Schema
from geomdp.data.tallies import CountedRecords, Tallies, count_records, source_of, tables_of
from geomdp.mechanisms import Matrix
from geomdp.mechanisms.strategies.design import (
    LaplaceCells,
    best_split,
    covering_designs,
)
from geomdp.mechanisms.strategies.tables import (
    Interactions,
    TableMap,
    WeightedMarginals,
    soft_levels,
    softened,
)
from geomdp.noise.knorm import sum_of_images
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import Explicit, MarginalTables, ProductQueries

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
TWELVE = MarginalTables([2] * 12, 3)


@pytest.mark.parametrize(
    "factor",
    [
        np.eye(4),
        np.tri(4),
        [[1, 1, 1], [0, 1 / 3, 1]],  # shares of 1/3 have no exact sums
        [[1, 1, 1, 1], [0, 0, 1, 1], [0, 1, 0, 1]],  # a square is no simplex
    ],
)
def test_other_columns_have_no_shares(factor):
    assert soft_levels(np.array(factor, dtype=float)) is None


@pytest.mark.parametrize("sizes", [(3, 5), (5, 3)])
def test_the_column_of_most_levels_gets_shares(sizes):
    ends = [Explicit([np.ones(size), np.linspace(0, 1, size)]) for size in sizes]
    columns = dict(zip("ab", sizes, strict=True))
    small, soft = softened(
        ProductQueries(columns, [["a"], ["b"]], dict(zip("ab", ends, strict=True)))
    )
    assert list(soft) == [sizes.index(5)]
    assert sorted(small.workload.levels) == [2, 3]


def test_maps_without_a_matrix():
    workload = MarginalTables([2, 3, 1, 2], 2)
    shares = {0: 0.5, 1: 1.0, 4: 0.25}
    table = TableMap(Interactions(workload), (0, 1, 3), shares)
    matrix = np.asarray(table)
    assert matrix.shape == table.shape == (workload.n_queries, 12)
    columns = np.random.default_rng(0).standard_normal((12, 5))
    for given in (columns, columns[:, 0], sp.csr_array(columns)):
        np.testing.assert_allclose(table @ given, matrix @ given, atol=1e-12)
    both = sum_of_images([table, matrix, sp.csr_array(matrix), table], [columns] * 4)
    np.testing.assert_allclose(both, 4 * matrix @ columns, atol=1e-12)


@pytest.mark.parametrize(
    ("levels", "strength"),
    [*itertools.product([[2] * 9, [3, 2, 5, 2, 4, 2, 2], [2] * 16], [1, 2, 3]), ([7], 1)],
    ids=repr,
)
def test_designs_cover_all_sets(levels, strength):
    designs = covering_designs(levels, strength, 1 << 10)
    assert designs
    assert covering_designs([40] * 3, 2, 1000) == []  # no room for a block
    wanted = set(itertools.combinations(range(len(levels)), strength))
    for blocks in designs:
        assert all(math.prod(levels[i] for i in block) <= 1 << 10 for block in blocks)
        held = {S for block in blocks for S in itertools.combinations(block, strength)}
        assert held == wanted


#: Workloads for which a test below also computes the errors of simpler strategies.
GRID = [
    *(MarginalTables([2] * d, k) for d in (6, 9) for k in (1, 2, 4)),
    *(MarginalTables([2, 3, 4, 5, 2, 3], k) for k in (1, 2, 3)),
    TWELVE,
    MarginalTables([2, 2, 2, 4, 4, 4, 3, 3, 3, 2, 2, 2], 2),
]


def column_sets(columns, most):
    """All sets of 1 to `most` of the columns 0, 1, ..."""
    sizes = range(1, most + 1)
    return [S for j in sizes for S in itertools.combinations(range(columns), j)]


def split_problem(workload, sets):
    """The arguments of `best_split` for Laplace noise on tables of `sets`, under replace-one."""
    interactions = Interactions(workload)
    overlap = np.zeros((len(sets), len(interactions.sets)))
    for s, S in enumerate(sets):
        for u, U in enumerate(interactions.sets):
            if set(U) <= set(S):
                stretch = interactions.cells(S) / interactions.cells(U)
                variance = LaplaceCells().variance(interactions.cells(S), REPLACE)
                overlap[s, u] = 1 / (variance * stretch)
    costs = interactions.costs.copy()
    costs[0] = 0  # the number of records is public
    return costs, overlap


def equal_error(workload, sets):
    costs, overlap = split_problem(workload, sets)
    needed = costs > 0
    return float((costs[needed] / (overlap[:, needed].sum(axis=0) / len(sets) ** 2)).sum())


@pytest.mark.parametrize("workload", GRID, ids=repr)
def test_never_above_simpler_strategies(workload):
    """Simpler: one table of all columns, designs with equal weights, tables of up to k columns."""
    found = WeightedMarginals().design(workload, REPLACE).energy * (1 - 1e-9)
    columns = len(workload.levels)
    assert found <= equal_error(workload, [tuple(range(columns))])
    for blocks in covering_designs(workload.levels, workload.k, 1 << 20):
        assert found <= equal_error(workload, blocks)
    costs, overlap = split_problem(workload, column_sets(columns, workload.k))
    assert found <= best_split(costs, sp.csr_array(overlap)).value


@pytest.mark.parametrize(
    ("levels", "k"),
    [((2, 2, 2, 2), 2), ((2, 3, 4), 1), ((2, 2, 3, 2, 2), 3), ((2,) * 6, 2)],
    ids=repr,
)
def test_within_one_percent_of_optimised_marginals(levels, k):
    """HDMM minimises (sum t)^2 times the error at t, for weights t of all sets of columns."""
    workload = MarginalTables(levels, k)
    costs, overlap = split_problem(workload, column_sets(len(levels), len(levels)))
    needed = costs > 0
    costs, overlap = costs[needed], overlap[:, needed]

    def loss(t):
        precision = t**2 @ overlap
        error = float((costs / precision).sum())
        slope = -2 * t * (overlap @ (costs / precision**2))
        return t.sum() ** 2 * error, 2 * t.sum() * error + t.sum() ** 2 * slope

    rng = np.random.default_rng(0)
    starts = rng.uniform(0.01, 1, size=(40, len(overlap)))
    bounds = [(1e-6, None)] * len(overlap)
    ends = [minimize(loss, t, jac=True, method="L-BFGS-B", bounds=bounds).fun for t in starts]
    assert WeightedMarginals().design(workload, REPLACE).energy <= 1.01 * min(ends)


def many_columns():
    """All 2-way tables of 22 binary columns (2^22 elements), and 40 records."""
    workload = MarginalTables([2] * 22, 2)
    return workload, workload.universe.sample(40, 0)


def test_counts_of_other_tables_are_taken_from_the_records_again():
    workload, records = many_columns()
    frame = pd.DataFrame(records, columns=workload.names)
    schema = Schema(tuple(BooleanColumn(name) for name in workload.names))
    counted = count_records(source_of(frame), schema, workload)
    strategy = WeightedMarginals()
    mechanism = Matrix(workload, n=40, privacy=PureDP(1.0), strategy=strategy)
    largest = max((part.table for part in mechanism._design.measurements), key=len)
    assert len(largest) > 2
    found = mechanism.measured(counted)
    np.testing.assert_array_equal(found.sums, mechanism.measured(records).sums)


def test_counts_without_the_measured_tables_are_refused():
    workload, records = many_columns()
    levels = workload.levels
    tallies = Tallies.empty(levels, tables_of(workload, levels)).with_records(list(records.T))
    counted = CountedRecords(workload.universe, tallies)
    everything = tuple(range(22))
    assert counted.with_tables([(0, 1), ()]) is counted
    with pytest.raises(ValueError, match="give the mechanism the records instead"):
        counted.with_tables([(0, 1), everything])
    fewer = Tallies.empty(levels, [(0, 1)]).with_records(list(records[:39].T))
    changed = CountedRecords(workload.universe, tallies, lambda tables: fewer)
    with pytest.raises(ValueError, match="must not change between two scans"):
        changed.with_tables([everything])
