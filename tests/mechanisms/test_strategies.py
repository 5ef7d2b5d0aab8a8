"""Strategies and designs: reconstruction, energies, splits of the budget, and known errors."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from geomdp.data.tallies import RecordCounts
from geomdp.geometry.sampling.samplers import ChainSampler
from geomdp.mechanisms import Ellipsoid, Gaussian, Hierarchical, Matrix
from geomdp.mechanisms.additive_noise.strategy_mechanism import best_design, strategies_for
from geomdp.mechanisms.strategies import Haar, Tree
from geomdp.mechanisms.strategies.design import (
    Design,
    LaplaceCells,
    Measurement,
    SimplexCells,
    _without_tiny,
    best_split,
    laplace_on,
)
from geomdp.mechanisms.strategies.histograms import PIdentity, SoftBins, reconstruct
from geomdp.mechanisms.strategies.tables import WeightedMarginals, WeightedSigns
from geomdp.noise import KNormNoise, LaplaceNoise
from geomdp.privacy import ZCDP, Adjacency, Heuristic, PureDP
from geomdp.workloads import (
    ChosenTables,
    Explicit,
    Histogram,
    Marginals,
    MarginalTables,
    Parities,
    Prefixes,
    ProductQueries,
    Ranges,
    SecondMoment,
    explicit_answers,
)
from tests.mechanisms.test_exact_table import TABLES, TOTALS
from tests.mechanisms.test_exact_table import moves as changes

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
PURE = PureDP(1.0)
WORKLOADS = [
    TABLES,
    MarginalTables([2, 2, 2], 2),
    Marginals(4, 2),
    Parities(4, 2),
    Prefixes(11),
    Ranges(6),
    TOTALS,  # a count and a total
]
COLUMNS = {"a": 4, "b": 3, "c": 1, "d": 2}
MORE = [
    MarginalTables([2] * 5, 3),
    MarginalTables([4, 2, 3], 1),
    ChosenTables(COLUMNS, [list("ab"), list("bcd"), ["d"]], [1.0, 2.0, 0.5]),
    ProductQueries(
        COLUMNS,
        [list("ab"), list("bcd"), ["d"]],
        {"a": Prefixes(4), "b": Ranges(3), "d": Explicit([[1.0, 1], [0, 3]])},
        [1.0, 2.0, 0.5],
    ),
    ProductQueries(  # the values of b are shares of the lowest and the highest
        {"a": 3, "b": 6, "c": 2},
        [list("ab"), list("bc")],
        {"b": Explicit([[1, 1, 1, 1, 1, 0], [-1, -0.5, 0, 0.25, 1, 0], [0, 0, 0, 0, 0, 1]])},
        [1.0, 2.0],
    ),
    ProductQueries(  # under add/remove, the number of records is measured alone
        {"a": 3, "b": 2}, [["a"], ["b"]], {"a": Explicit([[9, 9, 9], [1, 0, 0]])}
    ),
]


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("workload", [*WORKLOADS, *MORE], ids=repr)
def test_the_noise_has_the_least_variances_for_the_measurements(workload, adjacency):
    """They are the diagonal of W (sum_i C_i^T V_i^+ C_i)^+ W^T (Gauss-Markov).

    W has the queries as rows, and measurement i has rows C_i and noise of covariance V_i. Under
    replace-one the number of records is public, so only changes of the counts with sum 0 matter.
    """
    answers, elements = explicit_answers(workload), workload.universe.elements()
    size = len(answers)
    moves = np.eye(size)[:, 1:] - np.eye(size)[:, :1] if adjacency is REPLACE else np.eye(size)
    wanted = answers.T @ moves
    records = [RecordCounts(workload.universe, elements[i : i + 1]) for i in range(size)]
    laplace, simplex = (strategies_for(workload, cells()) for cells in (LaplaceCells, SimplexCells))
    for strategy in [*laplace, *simplex]:
        design = strategy.design(workload, adjacency)
        assert isinstance(design.name, str)
        information = np.zeros((size, size))
        for part in design.measurements:
            rows = np.array([part.sums(record) for record in records])
            precision = np.linalg.pinv(part.noise(1.0).covariance(), hermitian=True)
            information += rows @ precision @ rows.T
        inverse = np.linalg.pinv(moves.T @ information @ moves, rcond=1e-12, hermitian=True)
        least = ((wanted @ inverse) * wanted).sum(axis=1)
        noise = design.noise(0.5)
        # Elements that are added up to a power of two are known to have no records, which is not
        # used.
        if size.bit_count() == 1 or not isinstance(strategy, Tree | Haar):
            np.testing.assert_allclose(noise.variances(), 4 * least, rtol=1e-6)
        assert noise.second_moment().value == pytest.approx(4 * design.energy, rel=1e-9)
        assert np.trace(noise.covariance()) == pytest.approx(4 * design.energy, rel=1e-9)


def test_levels_of_a_tree_are_weighed_by_the_variance_of_their_noise():
    """Noise for cells as a simplex depends on their number, unlike Laplace noise."""
    design = Tree(SimplexCells()).design(Prefixes(64), REPLACE)
    assert len(design.measurements) == 2
    assert design.noise(0.5).second_moment().value == pytest.approx(4 * design.energy, rel=1e-9)


@pytest.mark.parametrize(("adjacency", "bins"), [(REPLACE, 0), (ADD, 1)])
def test_one_bin_counts_the_records_where_their_number_is_private(adjacency, bins):
    workload = Explicit([[1.0, 1.0, 1.0], [0.1, 0.0, 0.0]])
    chosen, stated = (
        strategy.design(workload, adjacency) for strategy in (SoftBins(), SoftBins(bins))
    )
    assert chosen.energy == stated.energy < SoftBins(1 - bins).design(workload, adjacency).energy


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("workload", WORKLOADS, ids=repr)
def test_measurements_stay_within_the_budget(workload, adjacency):
    """A change of the sums between neighbours costs at most epsilon in the measurements.

    A change u of the measurements changes the sums by v = R u, where R is the matrix of the map
    from measurements to answers. With Laplace scales b_i, the change u costs sum_i |u_i|_1 / b_i.
    A linear program finds the cheapest u for a given v. The true u is feasible in this program.
    """
    from scipy.optimize import linprog

    moves = changes(explicit_answers(workload), adjacency)
    for strategy in strategies_for(workload, LaplaceCells()):
        noise = strategy.design(workload, adjacency).noise(1.0)
        matrices = [sp.csr_array(part.matrix).toarray() for part in noise.parts]
        assert all(isinstance(part.noise, LaplaceNoise) for part in noise.parts)
        costs = np.concatenate(
            [np.full(part.noise.dimension, 1 / part.noise.scale) for part in noise.parts]
        )
        both = np.hstack([*matrices, *(-matrix for matrix in matrices)])
        for move in moves[:: max(1, len(moves) // 6)]:
            found = linprog(np.tile(costs, 2), A_eq=both, b_eq=move)
            assert found.status == 0, strategy
            assert found.fun <= 1 + 1e-7, strategy


def half_measured(answers, scale):
    """A design for `answers` (4, m) that measures only two of the four cells of the histogram."""
    rows = np.eye(4)[:2]
    (matrix,) = reconstruct(answers, [rows], [1.0], REPLACE)
    measurement = Measurement(rows, matrix, laplace_on(len(rows), scale))
    return Design("half", 1.0, answers, REPLACE, lambda: [measurement])


def test_undetermined_answers_are_refused():
    with pytest.raises(ValueError, match="must determine all answers"):
        half_measured(np.eye(4), 1.0).noise(1.0)
    # These queries need only the two cells that are measured.
    known = np.array([[1.0, 0], [0, 1], [0, 0], [0, 0]])
    assert half_measured(known, 1.0).noise(1.0).dimension == 2
    # An answer that is not measured is found beside answers and noise that are 10^12 times larger.
    hidden = np.hstack([1e12 * known, [[0.0], [0], [1], [-1]]])
    with pytest.raises(ValueError, match="must determine all answers"):
        half_measured(hidden, 1e12).noise(1.0)


def test_a_small_part_of_the_answers_is_not_released_without_noise():
    """Both answers get the same noise, so their difference would show the second cell exactly."""
    answers = np.array([[1.0, 1.0], [0.0, 1e-8], [0.0, 0.0]])
    measured = Measurement(np.eye(3)[:1], np.ones((2, 1)), laplace_on(1, 2.0))
    design = Design("first cell", 16.0, answers, REPLACE, lambda: [measured])
    with pytest.raises(ValueError, match="must determine all answers"):
        design.noise(1.0)


class Fixed:
    """A strategy with a single design."""

    def __init__(self, design: Design) -> None:
        self._design = design

    def design(self, workload, adjacency):
        return self._design


def test_a_design_that_costs_more_than_its_budget_gives_no_noise():
    """Rounding of scales may raise the cost by some units in the last place, but not double it."""
    design = WeightedSigns().design(Parities(3, 2), REPLACE)
    first, *others = design.measurements
    dear = replace(first, changes=2 * first.changes)
    with pytest.raises(ArithmeticError, match=r"cost epsilon 2.0 and must cost at most 1.0"):
        replace(design, measure=lambda: [dear, *others]).noise(1.0)


def test_the_next_best_design_is_taken_where_the_best_misses_an_answer():
    good, bad = Tree().design(Histogram(4), REPLACE), half_measured(np.eye(4), 1.0)
    assert bad.energy < good.energy
    assert best_design([Fixed(bad), Fixed(good)], Histogram(4), REPLACE) is good
    with pytest.raises(ValueError, match="must determine all answers"):
        best_design([Fixed(bad)], Histogram(4), REPLACE)


@pytest.mark.parametrize(("seed", "m", "count"), [(12, 3, 8), (20, 4, 7)])
def test_answers_over_many_orders_of_magnitude(seed, m, count):
    """If tiny weights were rounded to 0, the smallest queries would not be measured."""
    rng = np.random.default_rng(seed)
    answers = rng.standard_normal((m, count))
    answers *= 10.0 ** (-rng.uniform(0, 8 + seed, m))[:, None]
    workload = Explicit(answers)
    for strategy in (None, PIdentity()):
        mechanism = Matrix(workload, n=10, privacy=PURE, strategy=strategy)
        assert (mechanism.noise.variances() > 0).all()


def test_split_of_disjoint_measurements_is_the_cube_root_rule():
    """Costs A_i get shares proportional to A_i^(1/3); the value is (sum A_i^(1/3))^3 (JL-SPLIT)."""
    costs = np.array([1.0, 8.0, 27.0, 0.5, 0.0])
    split = best_split(costs, sp.csr_array(sp.eye_array(5)))
    roots = np.cbrt(costs)
    np.testing.assert_allclose(split.shares, roots / roots.sum(), rtol=1e-3)
    assert split.value == pytest.approx(roots.sum() ** 3, rel=1e-6)
    assert split.shares[-1] == 0  # what costs nothing is not measured


def test_known_errors_of_ten_binary_columns():
    """Root mean squared error per cell at n = 5000, epsilon = 1. With equal shares it is 0.025."""
    workload = MarginalTables([2] * 10, 2)
    scale = math.sqrt(workload.n_queries) * 5000

    def error(strategy, adjacency=REPLACE):
        return math.sqrt(strategy.design(workload, adjacency).energy) / scale

    tables, signs = error(WeightedMarginals()), error(WeightedSigns())
    assert (tables, signs) == (pytest.approx(0.0059, rel=0.01), pytest.approx(0.00624, rel=0.01))
    assert error(WeightedMarginals(SimplexCells())) <= tables * 1.02
    # Under add/remove, the l1 change of a table of counts is 1 instead of 2.
    assert error(WeightedMarginals(), ADD) <= 0.0036
    best = Matrix(workload, n=5000, privacy=PURE).predicted_rmse.value
    assert best == pytest.approx(min(tables, signs), rel=1e-9)


def test_soft_bins_beat_trees_and_the_best_laplace_strategies():
    """For both workloads, soft bins have an error about 1.5% below the error of `Matrix`."""
    for workload, ratio in ((Prefixes(256), 0.985), (Ranges(64), 0.986)):
        hierarchical = Hierarchical(workload, n=100, privacy=PURE)
        matrix = Matrix(workload, n=100, privacy=PURE)
        got = hierarchical.predicted_rmse.value / matrix.predicted_rmse.value
        assert got == pytest.approx(ratio, abs=0.003)
        assert "soft bins" in hierarchical.design


def test_gaussian_matrix_mechanism_is_the_ellipsoid_at_another_radius():
    """The covariance is S / (2 rho), where S is the matrix of `Ellipsoid` (JL-GAUSS)."""
    workload, privacy = MarginalTables([2, 3, 2], 2), ZCDP(0.5)
    matrix = Matrix(workload, n=10, privacy=privacy)
    shape = Ellipsoid(workload, n=10, privacy=PURE).noise.body.second_moment()
    r = workload.affine_hull().dimension
    # A uniform point of the ellipsoid has second moment S / (r + 2).
    np.testing.assert_allclose(matrix.noise.covariance(), (r + 2) * shape, atol=1e-9)
    isotropic = Gaussian(workload, n=10, privacy=privacy)
    assert matrix.predicted_rmse.value <= isotropic.predicted_rmse.value
    assert matrix.design == "ellipsoid"


REFUSED = {
    "strategy must be None unless privacy is PureDP": lambda: Matrix(
        Prefixes(4), n=5, privacy=ZCDP(1.0), strategy=Tree()
    ),
    "PureDP": lambda: Hierarchical(Prefixes(4), n=5, privacy=ZCDP(1.0)),
    "MarginalTables": lambda: WeightedMarginals().design(Prefixes(4), REPLACE),
    "at most 2\\^19 cells": lambda: WeightedMarginals().design(
        MarginalTables([2] * 100, 3), REPLACE
    ),
    "sign products": lambda: WeightedSigns().design(Prefixes(4), REPLACE),
    "rows must be": lambda: PIdentity(rows=0),
    "bins must be": lambda: SoftBins(bins=-1),
    "cells must be a CellNoise": lambda: Tree("laplace"),
    "from 1 to 4096 elements": lambda: Tree().design(Prefixes(5000), REPLACE),
    "from 2 to 1024 elements": lambda: PIdentity().design(Explicit(np.ones((2, 1))), REPLACE),
    "no strategy is known": lambda: Hierarchical(SecondMoment(2), n=5, privacy=PURE).noise,
    "workload has no strategy": lambda: Matrix(SecondMoment(2), n=5, privacy=PURE).noise,
}


@pytest.mark.parametrize("words", REFUSED)
def test_bad_arguments(words):
    with pytest.raises(ValueError, match=words):
        REFUSED[words]()


def test_a_level_of_little_cost_is_measured_and_has_a_finite_energy():
    """The cosines are even around the middle, so the coarsest wavelet costs 0 up to rounding."""
    places = 2 * np.pi * (np.arange(512) + 0.5) / 512
    cosines = Explicit(np.cos(np.arange(1, 9)[:, None] * places))
    design = Haar().design(cosines, REPLACE)
    assert design.energy == pytest.approx(17_456, rel=1e-4)
    assert design.energy == pytest.approx(design.noise(1.0).second_moment().value, rel=1e-9)


@pytest.mark.parametrize(
    ("costs", "told"),
    # In the last row, the first measurement tells too little of the second quantity.
    [([1.0, 1e-20, 1.0], 0), ([1e300, 1e-300], 0), ([1.0, 5e-324], 0), ([1.0, 1e-24], 1e-20)],
)
def test_what_costs_anything_is_measured(costs, told):
    overlap = np.eye(len(costs))
    overlap[0, 1] = told
    split = best_split(np.array(costs), sp.csr_array(overlap))
    assert split.shares.min() >= 1e-6 * split.shares.max() * (1 - 1e-9)
    assert math.isfinite(split.value)


@pytest.mark.parametrize(
    ("shares", "overlap", "kept"),
    [
        # The second measurement gives 4/5 of the precision, although its share is tiny.
        ([0.5, 1e-7], [[1.0, 1e14]], [0.5, 1e-6]),
        ([0.5, 1e-7], [[1.0, 1e13]], [0.5, 0.0]),
        # Of the tiny shares of the second quantity, the one that tells most is raised.
        ([1.0, 1e-7, 1e-8], [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]], [1.0, 1e-6, 0.0]),
        ([1.0, 1e-7, 1e-8], [[1.0, 0.0, 0.0], [0.0, 1.0, 200.0]], [1.0, 0.0, 1e-6]),
    ],
)
def test_tiny_shares_are_dropped_where_enough_precision_is_left(shares, overlap, kept):
    found = _without_tiny(np.array(shares), sp.csr_array(np.array(overlap)))
    np.testing.assert_allclose(found, np.array(kept) / sum(kept), rtol=1e-12)


def test_the_elements_that_check_sign_products_differ():
    """No product is constant on these elements, and no two products of an order are equal."""
    for measurement in WeightedSigns().design(Marginals(5, 2), REPLACE).measurements:
        rows = np.asarray(measurement.rows)
        assert (np.ptp(rows, axis=1) == 2).all()
        assert len(np.unique(rows, axis=0)) == len(rows)


def test_the_sampler_is_that_of_the_noise_given():
    design = SoftBins(0).design(Histogram(3), REPLACE)
    (cells,) = design.measurements
    body = cells.noise(1.0).body
    drawn = replace(
        cells, changes=None, noise=lambda epsilon: KNormNoise(body, epsilon, ChainSampler(body))
    )
    given = Fixed(replace(design, measure=lambda: [drawn]))
    chain = Matrix(Histogram(3), n=10, privacy=PURE, strategy=given)
    assert isinstance(chain.guarantee.sampler, Heuristic)
    assert str(chain.guarantee).startswith("heuristic")
