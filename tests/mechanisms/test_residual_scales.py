"""The best variances of noise on residuals: closed forms, brute force and another solver."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

from geomdp.mechanisms import Gaussian, ResidualGaussian
from geomdp.mechanisms.strategies import residual_scales
from geomdp.mechanisms.strategies.residual_scales import (
    LinearCost,
    ProfileCost,
    TableCost,
    _largest,
    best_scales,
    capped_cost,
    replace_one_classes,
    shares_of,
)
from geomdp.privacy import ZCDP, Adjacency
from geomdp.workloads import ChosenTables, MarginalTables
from geomdp.workloads.structure import Residuals
from tests.workloads.test_residuals import residual_matrix, sets_of

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
ORACLE = MarginalTables([2, 3, 2], 2)
WORKLOADS = [
    ORACLE,
    MarginalTables([2, 3, 1, 4], 3),
    MarginalTables([2] * 5, 3),
    MarginalTables([4, 2, 3], 1),
    MarginalTables([3, 3, 2, 2], 2),
    MarginalTables([2, 3], 2),
    ChosenTables(
        {"a": 2, "b": 3, "c": 1, "d": 4}, [list("ab"), list("bcd"), ["d"]], [1.0, 2.5, 0.5]
    ),
    ChosenTables(dict.fromkeys("abcd", 2), [list("ab"), list("bc"), list("cd"), list("ad")]),
]


def cost_of_pairs(residuals, precisions, adjacency):
    """Cost by brute force over all records (add/remove) or all pairs of records (replace-one)."""
    levels = residuals.workload.levels
    images = [
        math.sqrt(s) * residual_matrix(levels, A)
        for A, s in zip(sets_of(residuals), precisions, strict=True)
    ]
    points = np.vstack(images).T
    if adjacency is ADD:
        return (points**2).sum(axis=1).max()
    return max(((points - x) ** 2).sum(axis=1).max() for x in points)


def lengths_of_pairs(residuals, records):
    """Squared lengths (b^2, sets) of the changes of residuals, for all pairs of b records."""
    counts = np.array([residuals.workload.cell_counts(record[None]).sums for record in records])
    moves = residuals.of_counts((counts[:, None] - counts[None]).reshape(-1, counts.shape[1]))
    return residuals.squared_lengths(moves)


def precisions_of(scales):
    moving = scales.variances > 0
    return np.divide(1.0, scales.variances, out=np.zeros(len(moving)), where=moving)


def test_oracle_of_the_formula_sheet():
    residuals = Residuals(ORACLE)
    scales = best_scales(residuals, ADD)
    assert scales.energy == pytest.approx(28.5417801743, abs=1e-9)
    precisions = precisions_of(scales)
    assert cost_of_pairs(residuals, precisions, ADD) == pytest.approx(1, rel=1e-12)
    precisions[0] = 0.0  # the number of records is public under replace-one
    assert cost_of_pairs(residuals, precisions, REPLACE) == pytest.approx(2.1892481480, abs=1e-9)
    for classes in replace_one_classes(residuals):
        bound = ProfileCost(residuals, classes).at_most(precisions)
        assert bound == pytest.approx(2.1892481480, abs=1e-9)
    # Gaussian noise of variance 1 gives ZCDP(0.5) if the squared sensitivity is 1.
    mechanism = ResidualGaussian(ORACLE, n=1, privacy=ZCDP(0.5), adjacency=ADD)
    assert mechanism.noise.second_moment().value == pytest.approx(28.5417801743, abs=1e-9)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("workload", WORKLOADS, ids=repr)
def test_no_pair_of_records_costs_more(workload, adjacency):
    """The best scales cost 1 by brute force; random precisions cost at most the stated bounds.

    The bound under add/remove is exact. So is the bound of the last `ProfileCost`, in which each
    class is one column.
    """
    residuals = Residuals(workload)
    scales = best_scales(residuals, adjacency)
    spent = cost_of_pairs(residuals, precisions_of(scales), adjacency)
    assert 1 - 1e-9 <= spent <= 1 + 1e-12
    rng = np.random.default_rng(0)
    for _ in range(3):
        precisions = rng.uniform(0, 1, residuals.count)
        if adjacency is ADD:
            exact = LinearCost(shares_of(residuals)).at_most(precisions)
            truth = cost_of_pairs(residuals, precisions, ADD)
            assert exact == pytest.approx(truth, rel=1e-12)
            continue
        precisions[0] = 0.0
        truth = cost_of_pairs(residuals, precisions, REPLACE)
        alone = replace_one_classes(residuals)[-1]
        assert ProfileCost(residuals, alone).at_most(precisions) == pytest.approx(truth, rel=1e-12)
        for classes in replace_one_classes(residuals):
            assert ProfileCost(residuals, classes).at_most(precisions) >= truth * (1 - 1e-12)
        assert capped_cost(residuals).at_most(precisions) >= truth * (1 - 1e-12)
        assert TableCost(residuals).at_most(precisions) >= truth * (1 - 1e-12)


def independent_optimum(residuals, adjacency):
    """Least energy by CVXPY. Under replace-one, each set of differing columns is a constraint."""
    levels = residuals.workload.levels
    sets = sets_of(residuals)
    matrices = [residual_matrix(levels, A) for A in sets]
    differing = itertools.product(*(range(min(n, 2)) for n in levels))
    records = [np.ravel_multi_index(bits, levels) for bits in differing]
    if adjacency is ADD:
        rows = np.array([[(R[:, 0] ** 2).sum() for R in matrices]])
        used = np.ones(len(sets), dtype=bool)
    else:
        rows = np.array([[((R[:, x] - R[:, 0]) ** 2).sum() for R in matrices] for x in records[1:]])
        used = np.array([bool(A) for A in sets])
    energies, rows = residuals.energies()[used], rows[:, used]
    precisions = cp.Variable(int(used.sum()))
    objective = cp.sum(cp.multiply(energies, cp.inv_pos(precisions)))
    problem = cp.Problem(cp.Minimize(objective), [rows @ precisions <= 1])
    problem.solve(solver=cp.CLARABEL)
    return problem.value


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("workload", WORKLOADS, ids=repr)
def test_least_energy_by_an_independent_solver(workload, adjacency):
    residuals = Residuals(workload)
    expected = independent_optimum(residuals, adjacency)
    found = best_scales(residuals, adjacency)
    assert found.energy == pytest.approx(expected, rel=1e-6)
    assert found.is_best


def test_merged_classes_and_caps_are_proved_bounds(monkeypatch):
    """If few profiles are allowed, columns with different numbers of levels share a class."""
    monkeypatch.setattr(residual_scales, "MAX_PROFILES", 40)
    workload = MarginalTables([2, 2, 3, 4, 5, 7], 2)
    residuals = Residuals(workload)
    (classes,) = replace_one_classes(residuals)
    assert math.prod(len(members) + 1 for members in classes) <= 40
    assert sorted(itertools.chain(*classes)) == list(range(6))
    scales = best_scales(residuals, REPLACE)
    monkeypatch.undo()
    alone = ProfileCost(residuals, [[i] for i in range(6)])
    spent = alone.at_most(precisions_of(scales))
    assert 0.85 <= spent <= 1 + 1e-12
    best = best_scales(residuals, REPLACE).energy
    assert best <= scales.energy <= 1.1 * best
    monkeypatch.setattr(residual_scales, "MAX_PROFILES", 1)
    assert replace_one_classes(residuals) == []
    capped = best_scales(residuals, REPLACE)
    assert 0.5 <= alone.at_most(precisions_of(capped)) <= 1 + 1e-12


@pytest.mark.parametrize("workload", WORKLOADS, ids=repr)
def test_equal_noise_costs_the_squared_sensitivity_table_by_table(workload):
    """Noise of variance 1 on all answers costs 2 w^2 for each table, where w is its weight."""
    residuals = Residuals(workload)
    cost, square = TableCost(residuals), workload.l2_diameter() ** 2
    # A price is the mean over two uniform records, which may be equal.
    lengths = lengths_of_pairs(residuals, workload.universe.elements())
    np.testing.assert_allclose(cost.prices, lengths.mean(axis=0))
    assert cost.at_most(cost.equal) == pytest.approx(square, rel=1e-12)
    assert cost_of_pairs(residuals, cost.equal, REPLACE) == pytest.approx(square, rel=1e-12)


def test_a_class_of_whole_columns_costs_as_its_longest():
    columns = Residuals(MarginalTables([2, 5, 3], 1)).columns
    assert _largest(columns) == (Fraction(4, 5), Fraction(1, 5))


def test_chosen_tables_of_many_columns():
    """Here the bound table by table gives the least energy, and less error than equal noise."""
    rng = np.random.default_rng(0)
    names = [f"c{i}" for i in range(30)]
    triples = list(itertools.combinations(names, 3))
    tables = [triples[i] for i in rng.choice(len(triples), 30, replace=False)]
    workload = ChosenTables({name: int(rng.integers(2, 6)) for name in names}, tables)
    residuals = Residuals(workload)
    scales = best_scales(residuals, REPLACE)
    assert isinstance(scales.cost, TableCost)
    precisions = precisions_of(scales)
    lengths = lengths_of_pairs(residuals, workload.universe.sample(25, 1))
    assert (lengths @ precisions).max() <= 1
    ours, equal = (
        kind(workload, n=1, privacy=ZCDP(0.5)).predicted_rmse.value
        for kind in (ResidualGaussian, Gaussian)
    )
    assert ours <= 0.995 * equal


def test_too_many_kinds_are_not_optimised(monkeypatch):
    monkeypatch.setattr(residual_scales, "MAX_KINDS", 2)
    residuals = Residuals(MarginalTables([2] * 6, 3))
    scales = best_scales(residuals, REPLACE)
    assert cost_of_pairs(residuals, precisions_of(scales), REPLACE) <= 1 + 1e-12
    assert not scales.is_best
    monkeypatch.undo()
    assert best_scales(residuals, REPLACE).energy < scales.energy


def test_a_pair_with_the_worst_profile_of_a_hundred_columns_costs_1():
    levels = [2] * 50 + [3] * 30 + [7] * 20
    workload = MarginalTables(levels, 2)
    residuals = Residuals(workload)
    scales = best_scales(residuals, REPLACE)
    precisions = precisions_of(scales)
    inverse = 1 / np.array(levels)

    def cost(differ):
        y = (~differ) - inverse
        total = 0.0
        for group in residuals.groups[1:]:
            p = np.prod(1 - inverse[group.columns], axis=1)
            q = np.prod(y[group.columns], axis=1)
            total += 2 * float(precisions[group.numbers] @ (p - q))
        return total

    highest = np.zeros(len(scales.cost.kinds))
    np.maximum.at(highest, scales.cost.kind, precisions)
    bound, profile = scales.cost.largest(highest)
    differ = np.zeros(100, dtype=bool)
    for members, d in zip(scales.cost.classes, profile, strict=True):
        differ[members[:d]] = True
    assert cost(differ) == pytest.approx(bound, rel=1e-11)
    assert bound == pytest.approx(1, rel=1e-6)
