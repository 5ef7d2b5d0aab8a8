"""A design for tables of attributes: marginal tables of sets of columns, with weights."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray, IntArray
from geomdp.data.counting.tallies import MAX_WHOLE
from geomdp.mechanisms.strategies.design import (
    CellNoise,
    Design,
    ExactSums,
    LaplaceCells,
    Measurement,
    cell_measurement,
)
from geomdp.mechanisms.strategies.weights import Split, best_split
from geomdp.privacy import Adjacency
from geomdp.workloads import MarginalTables, Workload, WorkloadSizeError
from geomdp.workloads.finite import zero_sum_basis

#: Largest number of sets of columns that are all considered; beyond it only those of at most k
#: columns are.
MAX_SETS = 1 << 11
#: Largest number of cells of the table of all columns for the same. Measuring large tables hardly
#: helps, yet each that is measured needs a map with as many columns as it has cells. Up to here a
#: reader counts the table of all columns, from which all others follow.
MAX_CELLS = MAX_WHOLE
#: Largest number of pairs of a measured and a wanted set: 2^22 are split in seconds.
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
        cells = {U: math.prod(self.workload.shape(U)) for U in self.wanted}
        rows, columns, values = [], [], []
        for s, S in enumerate(self.measured):
            own = math.prod(self.workload.shape(S))
            for U in _subsets(list(S), len(self.wanted[0]), min(self.workload.k, len(S))):
                rows.append(s)
                columns.append(number[U])
                values.append(1 / (own // cells[U]))
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
