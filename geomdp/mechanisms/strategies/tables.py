"""The strategy for workloads of tables: measure marginal tables, each with a share of the budget.

The table of a set of columns has a cell for each combination of levels (values) of these columns.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import require_type
from geomdp.data.counting.covering import MAX_WHOLE
from geomdp.mechanisms.strategies.cells import CellNoise, LaplaceCells, cell_measurement
from geomdp.mechanisms.strategies.covering_designs import Blocks, covering_designs
from geomdp.mechanisms.strategies.design import Design, ExactSums, Measurement
from geomdp.mechanisms.strategies.families import combined_split
from geomdp.mechanisms.strategies.interactions import Columns, Interactions
from geomdp.mechanisms.strategies.table_map import TableMap
from geomdp.mechanisms.strategies.weights import Split, best_split
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload, WorkloadSizeError
from geomdp.workloads.table_queries import TableQueries

#: If there are more sets of columns than this, not all of them are candidates for measurement.
MAX_SETS = 1 << 11
#: The table of all columns, and the table of a block of a covering design, may be measured only if
#: they have at most this number of cells. If the table of all columns has at most this number of
#: cells, records are counted in this table. All other tables follow from these counts.
MAX_CELLS = MAX_WHOLE
#: Largest number of cells of all blocks of a covering design together: each cell of a measured
#: table gets a draw of noise.
MAX_MEASURED = 1 << 22
#: Let k be the largest number of columns of a table of the workload. For each set in a list of sets
#: of columns, the subsets of at most k columns are counted. The list is used only if these counts
#: add up to at most this number. With 2^22 subsets, splitting the budget takes seconds.
MAX_OVERLAP = 1 << 22
#: Largest number of answers. They are checked on 64 records, in arrays of at most 256 MiB.
MAX_ANSWERS = 1 << 19
#: Number of random elements for which the answers are compared with the answers computed from the
#: measurements. If an interaction is not measured, the comparison fails almost surely.
CHECKED = 64


@dataclass(frozen=True)
class WeightedMarginals:
    """Marginal tables of sets of columns, each with a share of the budget.

    Let k be the largest number of columns of a table of the workload. Columns with one level are
    left out. The sets that are measured are chosen from these candidates:

    * All sets of columns, if there are at most 2^11 sets and the table of all columns has at most
      2^20 cells. If not, all sets of at most k columns.
    * The table of all columns, if it has at most 2^20 cells. For 3-way tables of 12 binary columns,
      measuring this table gives a fourth of the error of measuring the 3-way tables.
    * The blocks of covering designs. Each design has a strength t from 1 to k: every set of t
      columns lies in one of its blocks.

    Every measured set that contains the columns of an interaction estimates it. Least squares
    weighs the estimates by their precision. `cells` is the noise on the counts of a table.

    References
    ----------
    McKenna-Miklau-Hay-Machanavajjhala 2018 (marginal strategies); Qardaji-Yang-Li 2014 (covering
    designs); formula sheet JL-SPLIT, X-SIM, X-RES.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.strategies import WeightedMarginals
    >>> workload = gd.workloads.MarginalTables({"region": 2, "age": 3}, k=1)
    >>> strategy = WeightedMarginals()
    >>> design = strategy.design(workload, gd.Adjacency.REPLACE_ONE)
    >>> design.name, [measurement.matrix.shape for measurement in design.measurements]
    ('weighted marginals', [(5, 6)])
    """

    cells: CellNoise = field(default_factory=LaplaceCells)

    def __post_init__(self) -> None:
        require_type(self.cells, CellNoise, "cells")

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The design with the best split of the budget over sets of columns.

        ``ValueError`` if the workload is not `MarginalTables` or `ChosenTables`, or if its tables
        have too many cells in all or too many columns.
        """
        if not isinstance(workload, TableQueries):
            raise ValueError(f"workload must be MarginalTables or ChosenTables, got {workload!r}")
        if workload.n_queries > MAX_ANSWERS:
            raise WorkloadSizeError(
                f"tables must have at most 2^19 cells in all, got {workload.n_queries}"
            )
        interactions = Interactions(workload)
        candidates = _Candidates(interactions, adjacency)
        sizes = [interactions.cells(S) for S in candidates.sets]
        variances = np.array([self.cells.variance(size, adjacency) for size in sizes])
        overlap = sp.csr_array(sp.diags_array(1 / variances) @ candidates.overlap())
        costs = interactions.costs.copy()
        if adjacency is Adjacency.REPLACE_ONE:
            costs[0] = 0.0  # the number of records is public
        split = candidates.split(costs, overlap)
        records = workload.universe.sample(CHECKED, np.random.default_rng(PUBLIC_SEED))

        def measure() -> list[Measurement]:
            needed = np.flatnonzero(costs)
            return [
                cell_measurement(
                    self.cells,
                    split.shares[s],
                    _indicators(interactions, candidates.sets[s], records),
                    TableMap(interactions, candidates.sets[s], shares),
                    adjacency,
                    sums=_sums(candidates.sets[s]),
                    table=candidates.sets[s],
                )
                for s, shares in _least_squares(split, overlap, needed)
            ]

        answers = workload.evaluate(records)
        return Design("weighted marginals", split.value, answers, adjacency, measure)


class _Candidates:
    """The sets of columns that may be measured, and the families in which they are tried.

    A family is the table of all columns, or the blocks of one covering design. Only those over
    which the budget can be split in seconds are kept.
    """

    def __init__(self, interactions: Interactions, adjacency: Adjacency) -> None:
        self.interactions = interactions
        levels, order = interactions.workload.levels, interactions.order
        varying = [i for i, count in enumerate(levels) if count > 1]
        # The table of no columns is the number of records, which is public under replace-one.
        least = 1 if adjacency is Adjacency.REPLACE_ONE else 0
        few = 2 ** len(varying) <= MAX_SETS and math.prod(levels) <= MAX_CELLS
        pool = _subsets(varying, least, len(varying) if few else order)
        pool = pool if self._affordable(pool) else []
        families = [
            blocks for blocks in _families(tuple(levels), order) if self._affordable(blocks)
        ]
        self.sets = list(dict.fromkeys(itertools.chain(pool, *families)))
        if not self.sets:
            raise WorkloadSizeError(
                "workload needs too many measurements: let k be the number of columns of its "
                "largest table; the measured sets of columns must have at most 2^22 subsets of at "
                f"most k columns in all, got more for {interactions.workload!r}"
            )
        self._pool = len(pool)
        place = {S: s for s, S in enumerate(self.sets)}
        self._families = [np.array(sorted(place[S] for S in blocks)) for blocks in families]

    def _affordable(self, sets: Sequence[Columns]) -> bool:
        orders = range(self.interactions.order + 1)
        pairs = sum(math.comb(len(S), j) for S in sets for j in orders)
        return pairs <= MAX_OVERLAP

    def overlap(self) -> sp.csr_array:
        """Cells of U over cells of S for S in `sets` (rows) and U within S (columns), else 0."""
        rows, columns, values = [], [], []
        cells = np.array([float(self.interactions.cells(U)) for U in self.interactions.sets])
        for s, S in enumerate(self.sets):
            within = self.interactions.within(S)
            rows.append(np.full(len(within), s))
            columns.append(within)
            values.append(cells[within] / self.interactions.cells(S))
        places = (np.concatenate(rows), np.concatenate(columns))
        shape = (len(self.sets), len(cells))
        return sp.coo_array((np.concatenate(values), places), shape=shape).tocsr()

    def split(self, costs: FloatArray, overlap: sp.csr_array) -> Split:
        """The best shares found by two searches: over subsets of columns, then over families."""
        known = []
        if self._pool:
            found = best_split(costs, overlap[: self._pool])
            known = [np.pad(found.shares, (0, len(self.sets) - self._pool))]
        return combined_split(costs, overlap, self._families, known)


@functools.lru_cache(maxsize=4)
def _families(levels: tuple[int, ...], order: int) -> list[Blocks]:
    """The table of all columns, and covering designs for sets of 1 to `order` columns."""
    varying = [i for i, count in enumerate(levels) if count > 1]
    own = [levels[i] for i in varying]
    found: dict[Blocks, None] = {}
    if math.prod(own) <= MAX_CELLS:
        found[tuple(varying),] = None
    for strength in range(1, min(order, len(own)) + 1):
        for design in covering_designs(own, strength, MAX_CELLS):
            if sum(math.prod(own[i] for i in block) for block in design) <= MAX_MEASURED:
                found[tuple(tuple(varying[i] for i in block) for block in design)] = None
    return list(found)


def _least_squares(
    split: Split, overlap: sp.csr_array, needed: IntArray
) -> Iterator[tuple[int, dict[int, float]]]:
    """The index of each measured set, and its weight in each of the `needed` interactions."""
    precision = sp.csr_array(sp.diags_array(split.shares**2) @ overlap)
    total = precision.sum(axis=0)
    wanted = set(needed.tolist())
    for s in np.flatnonzero(split.shares):
        own = slice(precision.indptr[s], precision.indptr[s + 1])
        told = zip(precision.indices[own].tolist(), precision.data[own].tolist(), strict=True)
        yield int(s), {u: part / float(total[u]) for u, part in told if u in wanted}


def _indicators(interactions: Interactions, S: Columns, records: IntArray) -> sp.csr_array:
    """A matrix (cells, b) for b records: column j has its only 1 at the cell of record j in S."""
    b = len(records)
    # The table of no columns has one cell, which holds all records.
    cells = np.zeros(b, dtype=np.int64)
    if S:
        columns = tuple(records[:, list(S)].T)
        cells = np.ravel_multi_index(columns, interactions.workload.shape(S))
    shape = (interactions.cells(S), b)
    return sp.coo_array((np.ones(b), (cells, np.arange(b))), shape=shape).tocsr()


def _sums(S: Columns) -> ExactSums:
    """A function from counts of records to the number of records in each cell of table S."""
    return lambda counts: counts.table(S).ravel().astype(np.float64)


def _subsets(columns: list[int], least: int, most: int) -> list[Columns]:
    """Subsets of `columns` with `least` to `most` elements, by size and then lexicographically."""
    sizes = range(least, most + 1)
    return [S for size in sizes for S in itertools.combinations(columns, size)]
