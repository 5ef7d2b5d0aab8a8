"""Strategies for workloads of tables or signs: measurements that each get a share of the budget."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._numerics.linalg import RANK_TOLERANCE
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import require_type
from geomdp.data.tallies import MAX_CELLS as MAX_COUNTED
from geomdp.data.tallies import MAX_WHOLE, Counts, RecordCounts
from geomdp.mechanisms.strategies.design import (
    ENTRY_UNIT,
    Blocks,
    CellNoise,
    ColumnSet,
    Design,
    ExactSums,
    LaplaceCells,
    Measurement,
    Split,
    best_split,
    combined_split,
    covering_designs,
    laplace_on,
)
from geomdp.noise import KNormNoise, LaplaceNoise
from geomdp.noise.base import Noise
from geomdp.noise.knorm import Columns
from geomdp.privacy import Adjacency
from geomdp.workloads import Explicit, Workload, WorkloadSizeError
from geomdp.workloads.structure import (
    Column,
    Residuals,
    categories,
    contrast,
    product_sums,
    record_signs,
    sign_products,
)
from geomdp.workloads.tables import ProductQueries, TableQueries, along, cells_of

# Interactions of columns: they are computed from tables of counts, and determine all answers.

#: Largest number of cell counts (32 MB) whose basis is changed at a time, in whole columns.
MAX_CHANGED = 1 << 22


class Interactions:
    """Coordinates of the interactions on which the answers to table queries depend.

    The interaction of a set U of columns is theta_U = (tensor over i in U of B_i^T, and of 1^T over
    the other columns) h, for the histogram h of the records. The columns of B_i (l_i, l_i - 1) are
    an orthonormal basis of the vectors of sum 0 over the l_i levels of column i. It is the residual
    of U (see `Residuals`) in another basis: variances are of theta_U, coordinates of residuals.
    """

    def __init__(self, asked: TableQueries | ProductQueries) -> None:
        self.asked = asked
        #: The tables of cells.
        self.workload = cells_of(asked)
        self.order = max(map(len, self.workload.tables))
        #: The sets U, the empty set first.
        self.sets: list[ColumnSet] = [(), *self.workload.interacting()]
        #: Number of each set in `sets`.
        self.number = {U: u for u, U in enumerate(self.sets)}

    @cached_property
    def residuals(self) -> Residuals:
        """Residuals, noise of variance 1 on which is as on theta_U."""
        columns = [categories(levels) for levels in self.workload.levels]
        if isinstance(self.asked, ProductQueries):
            asked = zip(columns, self.asked.factors, strict=True)
            columns = [c if factor is None else Column(c.levels, factor) for c, factor in asked]
        return Residuals(self.asked, columns)

    @cached_property
    def _numbers(self) -> IntArray:
        """The number of each U among the sets of `residuals`."""
        groups = self.residuals.groups
        rows = (tuple(row) for group in groups for row in group.columns.tolist())
        number = {U: place for place, U in enumerate(rows)}
        return np.array([number[U] for U in self.sets])

    @cached_property
    def starts(self) -> IntArray:
        """The first coordinate of the residual of each U."""
        groups = self.residuals.groups
        starts = [group.start + group.size * np.arange(group.count) for group in groups]
        return np.asarray(np.concatenate(starts)[self._numbers])

    @cached_property
    def costs(self) -> FloatArray:
        """For each U, E ||Z||_2^2 of the noise Z on sums of answers from variance 1 on theta_U."""
        return self.residuals.energies()[self._numbers]

    def cells(self, table: ColumnSet) -> int:
        return math.prod(self.workload.shape(table))

    def within(self, table: ColumnSet) -> list[int]:
        """Numbers of the sets U within a table, which need not belong to the workload."""
        sets = _subsets(table, 0, min(self.order, len(table)))
        return [self.number[U] for U in sets if U in self.number]

    def to_answers(self, coordinates: FloatArray) -> FloatArray:
        """Sums of answers (m, b) from the coordinates (dimension, b) of all residuals."""
        return self.residuals.to_answers(coordinates.T).T

    def variances(self, variances: FloatArray) -> FloatArray:
        """Variances of answers (m,), given the variance of the coordinates of each U (sets,)."""
        ordered = np.empty(len(variances))
        ordered[self._numbers] = variances
        return self.residuals.answer_variances(ordered)


@functools.cache
def _sum_and_differences(levels: int) -> FloatArray:
    """The map from counts of levels to their sum, and to the differences of `Residuals`."""
    return np.vstack([np.ones(levels), contrast(levels)])


@dataclass(frozen=True, eq=False)
class TableMap:
    """The part R x of the answers that comes from one table, where x are the counts of its cells.

    Several tables can estimate an interaction. R multiplies each by the share of this table
    (`shares`, by the position in `expansion.sets`; 0 if missing). R is not formed: O(l) operations
    for each cell and axis with l levels.
    """

    expansion: Interactions = field(repr=False)
    table: tuple[int, ...]
    shares: dict[int, float] = field(repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        return self.expansion.asked.n_queries, self.expansion.cells(self.table)

    def to_coordinates(self, columns: Columns) -> FloatArray:
        """Coordinates (dimension, b) of all residuals times shares, from counts (cells, b)."""
        cells, width = columns.shape
        found = np.zeros((self.expansion.residuals.dimension, width))
        sources, targets, factors = self._entries
        step = max(1, MAX_CHANGED // cells)
        shape = self.expansion.workload.shape(self.table)
        for start in range(0, width, step):
            part = columns[:, start : start + step]
            dense = part.toarray() if sp.issparse(part) else np.ascontiguousarray(part)
            left = 1
            for levels in shape:
                dense = _sum_and_differences(levels) @ dense.reshape(left, levels, -1)
                left *= levels
            own = dense.reshape(cells, -1)[sources]
            found[targets, start : start + step] = factors[:, None] * own
        return found

    def __matmul__(self, columns: Columns) -> FloatArray:
        """The product R x, where x is `columns`, of shape (cells, b) or (cells,)."""
        single = columns.ndim == 1
        found = self.to_coordinates(columns.reshape((-1, 1)) if single else columns)
        answers = self.expansion.to_answers(found)
        return answers[:, 0] if single else answers

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> FloatArray:
        """The matrix R, of shape `shape`; it fits in memory only for tables of few cells."""
        del copy
        return np.asarray(self @ np.eye(self.shape[1]), dtype=dtype)

    def image_variances(self, noise: Noise) -> FloatArray:
        """Variances (m,) of the m entries of R Z, for the noise Z of a `CellNoise`."""
        if isinstance(noise, LaplaceNoise):
            along = 2 * noise.scale**2
        else:
            assert isinstance(noise, KNormNoise)
            along = noise.second_moment().value / noise.effective_dimension
        # Z has this variance along each unit vector. The coordinates of theta_U are products of Z
        # with orthogonal vectors of squared length (cells of table) / (cells of U).
        own, cells = np.zeros(len(self.expansion.sets)), self.shape[1]
        for u, share in self.shares.items():
            stretch = cells / self.expansion.cells(self.expansion.sets[u])
            own[u] = share**2 * along * stretch
        return self.expansion.variances(own)

    @cached_property
    def _entries(self) -> list[npt.NDArray[Any]]:
        """Positions of the coordinates with a share, in the table and in all, and the shares."""
        of, kept = self.expansion, []
        positions = np.arange(self.shape[1]).reshape(of.workload.shape(self.table))
        for u in of.within(self.table):
            if u in self.shares:
                # Along each axis, position 0 is the sum, and the others are the differences.
                inside = (slice(1, None) if i in of.sets[u] else 0 for i in self.table)
                places = np.ravel(positions[tuple(inside)])
                targets = of.starts[u] + np.arange(len(places))
                kept.append((places, targets, np.full(len(places), self.shares[u])))
        return [np.concatenate(parts) for parts in zip(*kept, strict=True)]


# Marginal tables.

#: If there are more sets of columns than this, not all of them are candidates for measurement.
MAX_SETS = 1 << 11
#: Largest number of cells of the table of all columns, and of a block of a covering design.
MAX_CELLS = MAX_WHOLE
#: Largest number of cells of all blocks of a design together, each of which gets a draw of noise.
MAX_MEASURED = 1 << 22
#: Largest number of subsets of at most k columns of all sets in a list of sets of columns, where k
#: is the largest number of columns of a table of the workload. A split then takes seconds.
MAX_OVERLAP = 1 << 22
#: Largest number of answers, and number of random elements for which they are compared with those
#: computed from the measurements. An interaction that is not measured shows almost surely.
MAX_ANSWERS, CHECKED = 1 << 19, 64


@dataclass(frozen=True)
class WeightedMarginals:
    """Marginal tables of sets of columns, each with a share of the budget and the noise `cells`.

    The sets are chosen from those of `_Candidates`. Every measured set that contains the columns of
    an interaction estimates it, and least squares weighs the estimates. `ProductQueries` are sums
    of the cells of tables. If the queries of a column depend only on shares of its levels in a few
    (a count and a total, on two), tables have these few levels, and a record adds its shares.

    References
    ----------
    McKenna-Miklau-Hay-Machanavajjhala 2018 (marginal strategies); Qardaji-Yang-Li 2014 (covering
    designs); formula sheet JL-SPLIT, X-SIM, X-RES.
    """

    cells: CellNoise = field(default_factory=LaplaceCells)

    def __post_init__(self) -> None:
        require_type(self.cells, CellNoise, "cells")

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The design with the best split of the budget over sets of columns; ``ValueError`` if the
        workload does not consist of tables, or these have too many cells or columns.
        """
        if not isinstance(workload, TableQueries | ProductQueries):
            raise ValueError(
                f"workload must be MarginalTables, ChosenTables or ProductQueries, got {workload!r}"
            )
        if workload.n_queries > MAX_ANSWERS:
            raise WorkloadSizeError(
                f"tables must have at most 2^19 cells in all, got {workload.n_queries}"
            )
        small, soft = softened(workload)
        interactions = Interactions(small)
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
                Measurement(
                    _shares(interactions, candidates.sets[s], records, soft),
                    TableMap(interactions, candidates.sets[s], shares),
                    self.cells.spending(split.shares[s], sizes[s], adjacency),
                    self.cells.changes(adjacency),
                    unit=ENTRY_UNIT if any(i in soft for i in candidates.sets[s]) else 1,
                    sums=partial(_table_sums, candidates.sets[s], soft),
                    table=candidates.sets[s],
                )
                for s, shares in _least_squares(split, overlap, needed)
            ]

        answers = workload.evaluate(records)
        return Design("weighted marginals", split.value, answers, adjacency, measure)


class _Candidates:
    """The sets of columns that may be measured, and the families of them to try.

    They are all sets of columns, if these are at most 2^11 with at most 2^20 cells in the largest
    table, or else the sets of at most as many columns as a table of the workload has; and the
    families of `_families`. Columns with one level are left out.
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
        families = list(filter(self._affordable, _families(tuple(levels), order)))
        self.sets = list(dict.fromkeys(itertools.chain(pool, *families)))
        if not self.sets:
            raise WorkloadSizeError(
                "workload needs too many measurements: for tables of up to k columns, the measured "
                "sets of columns must have at most 2^22 subsets of at most k columns in all, got "
                f"more for {interactions.workload!r}"
            )
        self._pool = len(pool)
        place = {S: s for s, S in enumerate(self.sets)}
        self._families = [np.array(sorted(place[S] for S in blocks)) for blocks in families]

    def _affordable(self, sets: Sequence[ColumnSet]) -> bool:
        orders = range(self.interactions.order + 1)
        return sum(math.comb(len(S), j) for S in sets for j in orders) <= MAX_OVERLAP

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


def _shares(
    interactions: Interactions, S: ColumnSet, records: IntArray, soft: SoftColumns
) -> sp.csr_array:
    """As `_indicators`, with shares in the few levels of a soft column; no set has two of them."""
    axis = next((i for i in S if i in soft), None)
    if axis is None:
        return _indicators(interactions, S, records)
    found, moved = sp.csr_array((interactions.cells(S), len(records))), records.copy()
    for level, weights in enumerate(soft[axis][:, records[:, axis]]):
        moved[:, axis] = level
        found = found + _indicators(interactions, S, moved) @ sp.diags_array(weights)
    return sp.csr_array(found)


def _table_sums(S: ColumnSet, soft: SoftColumns, counts: Counts) -> FloatArray:
    table = counts.table(S).astype(np.float64)
    for axis, i in enumerate(S):
        if i in soft:  # exact below 2^29 records: all terms are multiples of 2^-24
            table = along(soft[i], table, axis)
    return table.ravel()


#: The shares (s, l) of the levels of a column in s of them, by the number of the column.
SoftColumns = dict[int, FloatArray]


def softened(
    workload: TableQueries | ProductQueries,
) -> tuple[TableQueries | ProductQueries, SoftColumns]:
    """The queries on a column with fewer levels (`soft_levels`); only one, so sums are exact."""
    if not isinstance(workload, ProductQueries):
        return workload, {}
    if math.prod(workload.workload.levels) > MAX_COUNTED:
        return workload, {}
    factors = {i: own for i, own in enumerate(workload.factors) if own is not None}
    found = {i: own for i in factors if (own := soft_levels(factors[i])) is not None}
    if not found:
        return workload, {}
    i = max(found, key=lambda i: factors[i].shape[1])
    chosen, shares = found[i]
    columns = factors[i][:, chosen]
    universe, tables = workload.workload.universe, workload.workload.tables
    asked = {universe.names[j]: own for j, own in enumerate(workload.queries) if own is not None}
    small = ProductQueries(
        universe.columns | {universe.names[i]: len(chosen)},
        [[universe.names[j] for j in table] for table in tables],
        asked | {universe.names[i]: Explicit(columns)},
        workload.workload.table_weights.tolist(),
    )
    return small, {i: shares}


def soft_levels(factor: FloatArray) -> tuple[IntArray, FloatArray] | None:
    """The numbers (s,) of s < l levels, and the shares S (s, l) in them of all levels.

    The `factor` W (queries, l) is then W' S with the columns W' of these levels. Shares are
    multiples of 2^-24 that add up to exactly 1. None if there are no such levels.
    """
    # The point farthest from a point or a plane is a corner of the hull of all points.
    centred = factor.T - factor.mean(axis=1)
    chosen = [int((centred**2).sum(axis=1).argmax())]
    rest = factor.T - factor[:, chosen[0]]
    while np.abs(rest).max() > RANK_TOLERANCE * np.abs(factor).max():
        chosen.append(int((rest**2).sum(axis=1).argmax()))
        axis = rest[chosen[-1]] / np.linalg.norm(rest[chosen[-1]])
        rest = rest - (rest @ axis)[:, None] * axis
    chosen.sort()
    ends = np.vstack([factor[:, chosen], np.ones(len(chosen))])
    whole = np.vstack([factor, np.ones(factor.shape[1])])
    shares = np.rint(np.linalg.lstsq(ends, whole)[0] * ENTRY_UNIT) / ENTRY_UNIT
    exact = (shares >= 0).all() and (ends @ shares == whole).all()
    return (np.array(chosen), shares) if exact and len(chosen) < factor.shape[1] else None


def _subsets(columns: Sequence[int], least: int, most: int) -> list[ColumnSet]:
    """Subsets of `columns` with `least` to `most` elements, by size and then lexicographically."""
    return [S for j in range(least, most + 1) for S in itertools.combinations(columns, j)]


# Columns of two levels: weighted products of at most two signs.


@dataclass(frozen=True)
class WeightedSigns:
    """Measure single signs and products of two signs, with one weight for each kind.

    The d columns have two levels each, written as signs -1 and +1. All n_j products of j signs get
    the same weight t_j, and Laplace noise. If two records differ in w signs, o_1(w) = w products of
    one sign and o_2(w) = w (d - w) products of two change, each by 2. So the l1 change of the
    weighted products is at most 2 max over w of sum_j t_j o_j(w) under replace-one, and
    sum_j t_j n_j under add/remove, where the number of records (j = 0) is measured as well if
    answers depend on it. The weights minimise the squared error subject to an l1 change of 1.
    """

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The design with the weights of least error; ``ValueError`` without such products."""
        products = sign_products(workload)
        if products is None:
            raise ValueError(f"workload must be linear in pairwise sign products, got {workload!r}")
        order = products.order
        # If there are more signs than columns, the first sign is the constant 1, and its products
        # with the others are the single signs.
        leading = order > len(workload.universe.elements(0, 1)[0])
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
            sums: list[ExactSums] = [partial(_product_sums, workload, places) for places in groups]
            if len(columns) > len(groups):
                rows.append(np.ones((1, CHECKED)))
                sums.append(lambda counts: np.array([float(counts.count)]))
            # Weighted products have l1 sensitivity 1, so a product gets noise of scale 1 / weight.
            return [
                Measurement(C, part, laplace_on(len(C), 1 / weight), limit, sums=total)
                for weight, C, part, limit, total in zip(
                    weights, rows, columns, limits.T, sums, strict=True
                )
            ]

        answers = products.constant + told @ products.matrix.T
        energy = 2 * float((costs / weights**2).sum())
        return Design("weighted sign products", energy, answers, adjacency, measure)


def _product_sums(workload: Workload, places: npt.NDArray[np.bool_], counts: Counts) -> FloatArray:
    if not isinstance(counts, RecordCounts):
        return product_sums(workload, counts.table, places)
    signs = record_signs(workload, counts.records).astype(np.float64)
    products = signs.T @ signs
    return np.asarray(products[np.triu_indices(len(products), 1)][places])


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
    weights = found.x * even  # rescaled to an l1 change of 1, whatever the solver returned
    return np.asarray(weights / (limits @ weights).max())
