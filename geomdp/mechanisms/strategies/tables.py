"""Designs for tables of attributes: weighted marginals, and weighted products of signs."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import LinearConstraint, minimize

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray, IntArray
from geomdp.data.counting.record_counts import Counts, RecordCounts
from geomdp.data.counting.tallies import MAX_WHOLE
from geomdp.mechanisms.strategies.design import (
    CellNoise,
    Design,
    ExactSums,
    LaplaceCells,
    Measurement,
    cell_measurement,
    laplace_measurement,
)
from geomdp.mechanisms.strategies.weights import Split, best_split
from geomdp.privacy import Adjacency
from geomdp.workloads import MarginalTables, Workload, WorkloadSizeError
from geomdp.workloads.finite import zero_sum_basis
from geomdp.workloads.structure.sign_products import product_sums, record_signs, sign_products

#: Most sets of columns that are all considered; beyond it only those of at most k columns are.
MAX_SETS = 1 << 11
#: Most cells of the table of all columns for the same. Measuring large tables hardly helps, yet
#: each that is measured needs a map with as many columns as it has cells. Up to here a reader
#: counts the table of all columns, from which all others follow.
MAX_CELLS = MAX_WHOLE
#: Most pairs of a measured and a wanted set: 2^22 are split in seconds.
MAX_OVERLAP = 1 << 22
#: Random elements on which the measurements must rebuild the answers: a missing interaction shows
#: on nearly every pair of them.
CHECKED = 64

Columns = tuple[int, ...]


@dataclass(frozen=True)
class WeightedMarginals:
    """Marginal tables of sets of columns, each with its share of the budget.

    The sets are all subsets of the columns where there are at most 2^11, and at most 2^20 cells in
    the table of all columns, else those of at most k columns. Every measured set that contains the
    columns of an interaction (`MarginalTables.blocks`) gives an estimate of it; least squares
    weighs the estimates by their precision. Each table is measured by `cells`.

    References
    ----------
    McKenna-Miklau-Hay-Machanavajjhala 2018 (marginal strategies); formula sheet JL-SPLIT, X-SIM.
    """

    cells: CellNoise = field(default_factory=LaplaceCells)

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The best split over sets of columns.

        Raises
        ------
        ValueError
            For another workload than `MarginalTables`, too many sets, or more than 2^26 cells
            times dimensions.
        """
        if not isinstance(workload, MarginalTables):
            raise ValueError(f"workload must be MarginalTables, got {workload!r}")
        # Refused here if too large for the maps to answers, before weights are sought in vain.
        workload.blocks()
        layout = _Layout(workload, adjacency)
        size = sum(math.comb(len(S), j) for S in layout.measured for j in range(workload.k + 1))
        if size > MAX_OVERLAP:
            raise WorkloadSizeError(
                f"measured and wanted sets of columns must meet in at most 2^22 pairs, got {size}"
            )
        sizes = [math.prod(workload.shape(S)) for S in layout.measured]
        variances = np.array([self.cells.variance(size, adjacency) for size in sizes])
        overlap = sp.csr_array(sp.diags_array(1 / variances) @ layout.overlap())
        split = best_split(layout.costs(), overlap)

        records = workload.universe.sample(CHECKED, np.random.default_rng(PUBLIC_SEED))

        def measure() -> list[Measurement]:
            return [
                cell_measurement(
                    self.cells,
                    split.shares[i],
                    layout.counts(i, records),
                    matrix,
                    adjacency,
                    sums=layout.sums(i),
                )
                for i, matrix in layout.maps(split, overlap)
            ]

        answers = workload.evaluate(records)
        return Design("weighted marginals", split.value, answers, adjacency, measure)


class _Layout:
    """The sets of columns measured, the interactions wanted, and which sets determine which."""

    def __init__(self, workload: MarginalTables, adjacency: Adjacency) -> None:
        self.workload, self.adjacency = workload, adjacency
        varying = [i for i, levels in enumerate(workload.levels) if levels > 1]
        few = 2 ** len(varying) <= MAX_SETS and math.prod(workload.levels) <= MAX_CELLS
        largest = len(varying) if few else workload.k
        # The empty set is the number of records, known under replace-one.
        least = 1 if adjacency is Adjacency.REPLACE_ONE else 0
        self.wanted = _subsets(varying, least, min(workload.k, len(varying)))
        self.measured = _subsets(varying, least, largest)

    def costs(self) -> FloatArray:
        """E of the squared length of the answers, for unit variance on each interaction."""
        return np.array([self._dimension(U) * self._scale(U) ** 2 for U in self.wanted])

    def _dimension(self, U: Columns) -> int:
        return math.prod(self.workload.levels[i] - 1 for i in U)

    def _scale(self, U: Columns) -> float:
        """Length in the answers of one unit of a coordinate of interaction U: see `blocks`."""
        return math.sqrt(
            sum(
                1 / math.prod(self.workload.levels[i] for i in table if i not in U)
                for table in self.workload.tables
                if set(U) <= set(table)
            )
        )

    def overlap(self) -> sp.csr_array:
        """1 / (number of cells of S per cell of U) for U in S: (measured, wanted)."""
        number = {U: u for u, U in enumerate(self.wanted)}
        rows, columns, values = [], [], []
        for s, S in enumerate(self.measured):
            for U in _subsets(list(S), len(self.wanted[0]), min(self.workload.k, len(S))):
                rows.append(s)
                columns.append(number[U])
                values.append(1 / math.prod(self.workload.levels[i] for i in S if i not in U))
        shape = (len(self.measured), len(self.wanted))
        return sp.coo_array((values, (rows, columns)), shape=shape).tocsr()

    def maps(self, split: Split, overlap: sp.csr_array) -> list[tuple[int, FloatArray]]:
        """Number of each measured set with a budget, and the map (m, cells) from it to answers."""
        precision = sp.csr_array(sp.diags_array(split.shares**2) @ overlap)
        total = precision.sum(axis=0)
        lifts = self._lifts()
        maps = []
        for s in np.nonzero(split.shares)[0]:
            S = self.measured[s]
            cells = math.prod(self.workload.shape(S))
            matrix = np.zeros((self.workload.n_queries, cells))
            start, stop = precision.indptr[s], precision.indptr[s + 1]
            for u, told in zip(
                precision.indices[start:stop], precision.data[start:stop], strict=True
            ):
                U = self.wanted[u]
                contrasts: FloatArray = np.ones((1, 1))
                for i in S:
                    levels = self.workload.levels[i]
                    factor = zero_sum_basis(levels).T if i in U else np.ones((1, levels))
                    contrasts = np.kron(contrasts, factor).astype(np.float64)
                # Only tables that hold all columns of U have rows that are not 0.
                rows = np.flatnonzero(lifts[U].any(axis=1))
                matrix[rows] += told / total[u] * (lifts[U][rows] @ contrasts)
            maps.append((int(s), matrix))
        return maps

    def counts(self, s: int, records: IntArray) -> sp.csr_array:
        """Indicators (cells, b) of the cell of measured set number `s` that each record is in."""
        b = len(records)
        place = (self._cells(s, records), np.arange(b))
        size = math.prod(self.workload.shape(self.measured[s]))
        return sp.coo_array((np.ones(b), place), shape=(size, b)).tocsr()

    def sums(self, s: int) -> ExactSums:
        """How many records are in each cell of measured set number `s`."""
        S = self.measured[s]
        return lambda counts: counts.table(S).ravel().astype(np.float64)

    def _cells(self, s: int, records: IntArray) -> IntArray:
        S = list(self.measured[s])
        if not S:  # of the empty set all records are in the one cell
            return np.zeros(len(records), dtype=np.int64)
        columns = tuple(records[:, S].T)
        return np.asarray(np.ravel_multi_index(columns, self.workload.shape(S)))

    def _lifts(self) -> dict[Columns, FloatArray]:
        """From coordinates of an interaction to answers: (m, dimension) for each."""
        wanted = [U for U in self.wanted if U]
        lifts = {
            U: self._scale(U) * block.basis
            for U, block in zip(wanted, self.workload.blocks(), strict=True)
        }
        if () in self.wanted:
            lifts[()] = self.workload.affine_hull().offset[:, None]
        return lifts


def _subsets(columns: list[int], least: int, most: int) -> list[Columns]:
    """Subsets of `columns` of `least` to `most`, by size and then lexicographic."""
    sizes = range(least, most + 1)
    return [S for size in sizes for S in itertools.combinations(columns, size)]


@dataclass(frozen=True)
class WeightedSigns:
    """Products of at most two signs with Laplace noise, one weight for each order (binary columns).

    With weight t_j on products of order j the l1 change between neighbours is
    2 max over w of sum_j t_j o_j(w) under replace-one, o_j(w) the number of products of order j
    that change where w signs do, o_1 = w and o_2 = w (d - w); sum_j t_j n_j under add/remove, where
    the number of records is measured as well. Finding the weights is a convex problem.
    """

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The best weights.

        Raises
        ------
        ValueError
            For a workload that is not linear in products of at most two signs.
        """
        products = sign_products(workload)
        if products is None:
            raise ValueError(f"workload must be linear in pairwise sign products, got {workload!r}")
        order = products.order
        # The first sign of tables is the constant 1: its pairs are the single signs.
        leading = products.order > len(workload.universe.elements(0, 1)[0])
        first, second = np.triu_indices(order, 1)
        singles = (first == 0) if leading else np.zeros(len(first), dtype=bool)
        groups = [places for places in (singles, ~singles) if abs(products.matrix[:, places]).sum()]
        columns = [sp.csr_array(products.matrix[:, places]) for places in groups]
        d = order - leading
        flipped = np.arange(1, d + 1)
        changes = [flipped if places is singles else flipped * (d - flipped) for places in groups]
        limits = 2.0 * np.stack(changes, axis=1)
        if adjacency is Adjacency.ADD_REMOVE:
            if products.constant.any():
                columns.append(sp.csr_array(products.constant[:, None]))
            limits = np.array([[float(part.shape[1]) for part in columns]])
        costs = np.array([float(part.multiply(part).sum()) for part in columns])
        weights = _best_weights(costs, limits)

        signs = np.random.default_rng(PUBLIC_SEED).choice([-1.0, 1.0], size=(CHECKED, order))
        signs[:, :leading] = 1
        told = np.stack([s[first] * s[second] for s in signs])

        def measure() -> list[Measurement]:
            rows = [told[:, places].T for places in groups]
            sums = [_product_sums(workload, places) for places in groups]
            if len(columns) > len(groups):
                rows.append(np.ones((1, CHECKED)))
                sums.append(lambda counts: np.array([float(counts.count)]))
            # Weights at their limit: one measurement of l1 sensitivity 1, undone by its weight.
            return [
                laplace_measurement(1 / weight, C, part, changes=limit, sums=total)
                for weight, C, part, limit, total in zip(
                    weights, rows, columns, limits.T, sums, strict=True
                )
            ]

        answers = products.constant + told @ products.matrix.T
        energy = 2 * float((costs / weights**2).sum())
        return Design("weighted sign products", energy, answers, adjacency, measure)


def _product_sums(workload: Workload, places: npt.NDArray[np.bool_]) -> ExactSums:
    """Sums of the products of signs at `places` among all pairs of signs."""

    def sums(counts: Counts) -> FloatArray:
        if not isinstance(counts, RecordCounts):
            return product_sums(workload, counts.table, places)
        signs = record_signs(workload, counts.records).astype(np.float64)
        products = signs.T @ signs
        return np.asarray(products[np.triu_indices(len(products), 1)][places])

    return sums


def _best_weights(costs: FloatArray, limits: FloatArray) -> FloatArray:
    """Weights t > 0 that minimise sum c_j / t_j^2 under limits @ t <= 1, rescaled to fit."""
    if len(costs) == 1:
        return np.asarray(1 / limits.max(axis=0))
    even = np.full(len(costs), 1 / limits.sum(axis=1).max())
    scale = float((costs / even**2).sum())

    def error(x: FloatArray) -> tuple[float, FloatArray]:
        relative = costs / (x * even) ** 2 / scale
        return float(relative.sum()), -2 * relative / x

    found = minimize(
        error,
        np.ones(len(costs)),
        jac=True,
        method="SLSQP",
        bounds=[(1e-3, None)] * len(costs),
        constraints=LinearConstraint(limits * even, ub=1.0),
    )
    weights = found.x * even
    # Whatever the solver returned, the l1 change is then at most 1.
    return np.asarray(weights / (limits @ weights).max())
