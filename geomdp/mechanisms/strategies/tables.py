"""Strategies for workloads of tables or signs: measurements that each get a share of the budget.

The table of a set of columns has a cell for each combination of levels (values) of these columns.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import require_type
from geomdp.data.tallies import MAX_WHOLE, Counts, RecordCounts
from geomdp.mechanisms.strategies.design import (
    CellNoise,
    Design,
    ExactSums,
    LaplaceCells,
    Measurement,
    cell_measurement,
    laplace_measurement,
)
from geomdp.mechanisms.strategies.interactions import ColumnSet, Interactions, TableMap
from geomdp.mechanisms.strategies.weights import Split, best_split, combined_split
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload, WorkloadSizeError
from geomdp.workloads.structure import product_sums, record_signs, sign_products
from geomdp.workloads.tables import TableQueries

# Covering designs: blocks of columns such that every set of t columns lies in some block.

#: Largest number of blocks of a design. Each block is measured as a table. A table has one cell for
#: each combination of levels (values) of the columns. The error of the answers grows like the
#: number of blocks times the root of the number of cells per block. So a design with very many
#: small blocks usually has a larger error than a design with few large blocks.
MAX_BLOCKS = 400
#: Largest number of groups into which the columns are divided. The limit keeps the number of
#: searches small, because each number of groups needs several searches. The division with one
#: column in each group is tried even beyond this limit.
MAX_GROUPS = 12
#: A search runs only if (number of sets of t groups) x (number of groups) is at most this. Finding
#: a block then takes milliseconds.
MAX_COVERED = 300_000
#: The weight of an uncovered set of groups in `_greedy_cover` is `LOOK_AHEAD`^k, where k is the
#: number of groups of the set that are not in the block yet.
LOOK_AHEAD = 0.25
#: Largest number of designs that `covering_designs` returns.
KEPT = 16

Block = tuple[int, ...]
Blocks = tuple[Block, ...]


def covering_designs(levels: Sequence[int], strength: int, max_cells: int) -> list[Blocks]:
    """Designs that cover all sets of `strength` columns by blocks of at most `max_cells` cells.

    Groups of columns are covered greedily (Gordon-Kuperberg-Patashnik 1995), without randomness.
    The first designs have the least number of blocks times root of the cells of the largest block:
    the error grows like this product.
    """
    found: dict[Blocks, float] = {}
    counts = {*range(strength + 1, min(len(levels), MAX_GROUPS) + 1), len(levels)}
    for count in sorted(counts):
        if math.comb(count, strength) * count > MAX_COVERED:
            continue
        groups = _groups(levels, count)
        bits = np.array([sum(math.log2(levels[i]) for i in group) for group in groups])
        largest = np.sort(bits)[::-1][:strength].sum()
        for limit in range(math.ceil(largest), math.floor(math.log2(max_cells)) + 1):
            cover = _greedy_cover(bits, strength, limit + 1e-9)
            if cover is None:
                continue
            blocks = tuple(
                sorted({tuple(sorted(itertools.chain(*(groups[g] for g in b)))) for b in cover})
            )
            cells = max(math.prod(levels[i] for i in block) for block in blocks)
            found[blocks] = len(blocks) * math.sqrt(cells)
            if len(blocks) == 1:
                break
    return sorted(found, key=lambda blocks: found[blocks])[:KEPT]


def _groups(levels: Sequence[int], count: int) -> list[Block]:
    """Divide the columns into `count` groups with nearly equal numbers of cells."""
    groups: list[list[int]] = [[] for _ in range(count)]
    bits = [0.0] * count
    for column in sorted(range(len(levels)), key=lambda i: -levels[i]):
        least = min(range(count), key=lambda g: (bits[g], g))
        groups[least].append(column)
        bits[least] += math.log2(levels[column])
    return [tuple(group) for group in groups]


def _greedy_cover(bits: FloatArray, strength: int, limit: float) -> list[IntArray] | None:
    """Blocks of points that cover every set of `strength` points; None above `MAX_BLOCKS` blocks.

    A point is a group of columns. The `bits` of the points of a block add up to at most `limit`.
    """
    count = len(bits)
    sets = np.array(list(itertools.combinations(range(count), strength)))
    member = np.zeros((len(sets), count))
    np.put_along_axis(member, sets, 1, axis=1)
    rng = np.random.default_rng(PUBLIC_SEED)
    blocks: list[IntArray] = []
    while len(member):
        # Each new block covers at least one more set, so the loop ends.
        if len(blocks) == MAX_BLOCKS:
            return None
        block = member[rng.integers(len(member))] > 0
        weights = LOOK_AHEAD ** (strength - member @ block.astype(np.float64))
        while (room := limit - bits[block].sum()) > 0:
            free = ~block & (bits <= room)
            if not free.any():
                break
            gains = np.where(free, (weights @ member) / bits, -1.0)
            point = int(np.argmax(gains))
            block[point] = True
            weights *= np.where(member[:, point] > 0, 1 / LOOK_AHEAD, 1.0)
        blocks.append(np.flatnonzero(block))
        member = member[member @ block.astype(np.float64) < strength]
    return blocks


# Marginal tables.

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
CHECKED_RECORDS = 64


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
        records = workload.universe.sample(CHECKED_RECORDS, np.random.default_rng(PUBLIC_SEED))

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

    def _affordable(self, sets: Sequence[ColumnSet]) -> bool:
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


def _indicators(interactions: Interactions, S: ColumnSet, records: IntArray) -> sp.csr_array:
    """A matrix (cells, b) for b records: column j has its only 1 at the cell of record j in S."""
    b = len(records)
    # The table of no columns has one cell, which holds all records.
    cells = np.zeros(b, dtype=np.int64)
    if S:
        columns = tuple(records[:, list(S)].T)
        cells = np.ravel_multi_index(columns, interactions.workload.shape(S))
    shape = (interactions.cells(S), b)
    return sp.coo_array((np.ones(b), (cells, np.arange(b))), shape=shape).tocsr()


def _sums(S: ColumnSet) -> ExactSums:
    """A function from counts of records to the number of records in each cell of table S."""
    return lambda counts: counts.table(S).ravel().astype(np.float64)


def _subsets(columns: list[int], least: int, most: int) -> list[ColumnSet]:
    """Subsets of `columns` with `least` to `most` elements, by size and then lexicographically."""
    sizes = range(least, most + 1)
    return [S for size in sizes for S in itertools.combinations(columns, size)]


# Columns of two levels: weighted products of at most two signs.

#: Number of random elements on which `Design` checks that the measurements determine the answers.
#: If a product is needed but not measured, it takes both values on these elements except with
#: probability 2^-63, so the check fails.
CHECKED_SIGNS = 64


@dataclass(frozen=True)
class WeightedSigns:
    """Measure single signs and products of two signs, with one weight for each kind.

    The d columns have two levels each, written as signs -1 and +1. The noise is Laplace noise. All
    products of order j (of j signs) get the same weight t_j. If two records differ in w signs,
    o_1(w) = w products of order 1 and o_2(w) = w (d - w) products of order 2 change, each by 2. So
    the l1 change of the weighted products between neighbours is at most

        2 max over w of sum_j t_j o_j(w)   under replace-one,
        sum_j t_j n_j                      under add/remove,

    where n_j is the number of products of order j that are measured. Under add/remove the number of
    records (order 0) is measured as well if answers depend on it. The weights minimise the squared
    error subject to an l1 change of 1. This problem is convex.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.strategies import WeightedSigns
    >>> workload = gd.workloads.Marginals(d=3, k=2)
    >>> design = WeightedSigns().design(workload, gd.Adjacency.REPLACE_ONE)
    >>> design.name, [measurement.matrix.shape for measurement in design.measurements]
    ('weighted sign products', [(3, 3), (3, 3)])
    """

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The design with the weights of least predicted error.

        ``ValueError`` for a workload that is not linear in products of at most two signs.
        """
        products = sign_products(workload)
        if products is None:
            raise ValueError(f"workload must be linear in pairwise sign products, got {workload!r}")
        order = products.order
        # If there are more signs than columns, the first sign is the constant 1. The products of
        # this sign with the other signs are the single signs.
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

        signs = np.random.default_rng(PUBLIC_SEED).choice([-1.0, 1.0], size=(CHECKED_SIGNS, order))
        signs[:, :leading] = 1
        told = np.stack([s[first] * s[second] for s in signs])

        def measure() -> list[Measurement]:
            rows = [told[:, places].T for places in groups]
            sums = [_product_sums(workload, places) for places in groups]
            if len(columns) > len(groups):
                rows.append(np.ones((1, CHECKED_SIGNS)))
                sums.append(lambda counts: np.array([float(counts.count)]))
            # The weighted products of all orders have l1 sensitivity 1. Noise of scale 1 on a
            # weighted product is noise of scale 1 / weight on the product without the weight.
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
    """A function from counts of records to the sums of the sign products chosen by `places`."""

    def sums(counts: Counts) -> FloatArray:
        if not isinstance(counts, RecordCounts):
            return product_sums(workload, counts.table, places)
        signs = record_signs(workload, counts.records).astype(np.float64)
        products = signs.T @ signs
        return np.asarray(products[np.triu_indices(len(products), 1)][places])

    return sums


def _best_weights(costs: FloatArray, limits: FloatArray) -> FloatArray:
    """Weights t > 0 that minimise sum_j costs_j / t_j^2 subject to `limits` (w, j) @ t <= 1."""
    if len(costs) == 1:
        return np.asarray(1 / limits.max(axis=0))
    from scipy.optimize import LinearConstraint, minimize  # slow import

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
    # Rescale, so that the l1 change is at most 1 whatever the solver returned.
    return np.asarray(weights / (limits @ weights).max())
