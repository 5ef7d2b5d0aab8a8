"""Marginal tables of categorical columns: all k-way tables, or chosen tables with weights."""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._numerics.linalg import AffineHull, zero_sum_basis
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import batch, listed, positive, whole
from geomdp.workloads.base import (
    MAX_ENTRIES,
    MAX_SCORES,
    Block,
    Totals,
    Workload,
    WorkloadSizeError,
)
from geomdp.workloads.universes import CategoricalProduct, Records

#: Number of records counted at a time. `totals` stores a few integers for each of these records.
COUNT_ROWS = 1 << 16


# Interactions of columns (analysis of variance): orthogonal blocks of marginal tables.
#
# Q(x) holds the weighted cells of the tables for a record x. It is a sum with one part for each set
# S of columns. The part of S depends on x only through the columns in S. In a table T that does not
# contain S, the part is 0. In any other table, the part is the weight w_T times a tensor product
# with one factor for each column i of T. Let l_i be the number of levels of column i. If i is in S,
# the factor is e_(x_i) - 1/l_i, where e_j is unit vector j. If i is not in S, the factor is the
# constant vector 1/l_i. The parts of different sets are orthogonal. If some table contains S, the
# parts of S for all x span a space of dimension prod (l_i - 1). Let c_S^2 = sum over tables T that
# contain S of w_T^2 prod over i in T - S of 1/l_i. Then
#
#     ||part(x) - part(x')||^2 = 2 c_S^2 (prod (1 - 1/l_i) - prod (1[x_i = x'_i] - 1/l_i)),
#     ||part(x)||^2 = c_S^2 prod (1 - 1/l_i)   for all x.
#
# Products without a range are over i in S. The first expression depends on x and x' only through
# the set of columns of S in which x and x' agree. So the largest value of this expression is found
# by trying all subsets of S.


class TableQueries(Workload):
    """Weighted cells of tables in row-major order: q_(T,a)(x) = w_T 1[x_T = a] for all cells a."""

    levels: tuple[int, ...]

    @property
    @abc.abstractmethod
    def universe(self) -> CategoricalProduct: ...

    @property
    @abc.abstractmethod
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """Column numbers of each table, in increasing order."""

    @property
    @abc.abstractmethod
    def table_weights(self) -> FloatArray:
        """The weight w_T of each table."""

    def shape(self, table: Sequence[int]) -> tuple[int, ...]:
        """Number of levels of each column of `table`, a sequence of column numbers."""
        return tuple(self.levels[i] for i in table)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """For each table, the slice of the queries that holds its cells."""
        ends = list(itertools.accumulate(math.prod(self.shape(table)) for table in self.tables))
        return tuple(slice(a, b) for a, b in zip([0, *ends], ends, strict=False))

    @cached_property
    def table_sizes(self) -> IntArray:
        """Number of cells of each table."""
        return np.array([place.stop - place.start for place in self.slices])

    @property
    def n_queries(self) -> int:
        return int(self.slices[-1].stop)

    @cached_property
    def weights(self) -> FloatArray:
        """The weight of each query (m,): the weight of its table."""
        return np.repeat(self.table_weights, self.table_sizes)

    @cached_property
    def _strides(self) -> FloatArray:
        """Matrix (c, tables) that maps the c level codes of a record to its cell in each table."""
        strides = np.zeros((len(self.levels), len(self.tables)))
        for t, table in enumerate(self.tables):
            shape = self.shape(table)
            strides[list(table), t] = math.prod(shape) // np.cumprod(shape)
        return strides

    def evaluate(self, records: Records) -> FloatArray:
        codes = self.universe.validate(records)
        answers = np.zeros((len(codes), self.n_queries))
        # A float64 product is exact for cell numbers (below 2^53) and far faster than int64.
        cells = (codes @ self._strides).astype(np.int64) + [place.start for place in self.slices]
        np.put_along_axis(answers, cells, self.table_weights, axis=1)
        return answers

    def totals(self, records: Records | Iterable[Records]) -> Totals:
        """Cells are counted, O(n) per table."""
        counted = self.cell_counts(records)
        return Totals(counted.count, counted.sums * self.weights)

    def cell_counts(self, records: Records | Iterable[Records]) -> Totals:
        """Total number of records, and the number in each cell (m,), without weights."""
        count, counts = 0, np.zeros(self.n_queries)
        for chunk in self.universe.chunks(records, COUNT_ROWS):
            count += len(chunk)
            counts += self._counts(chunk)
        return Totals(count, counts)

    def _counts(self, codes: IntArray) -> FloatArray:
        columns = np.ascontiguousarray(codes.T)
        cells = (
            np.ravel_multi_index(tuple(columns[list(table)]), self.shape(table))
            for table in self.tables
        )
        return np.concatenate(
            [
                np.bincount(numbers, minlength=size)
                for numbers, size in zip(cells, self.table_sizes, strict=True)
            ]
        ).astype(np.float64)

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """One corner sum (see `_corner_map`), O(c N) for c columns, per direction.

        ``ValueError`` for N > 2^24 elements. Up to rounding, the element of lowest number wins.
        """
        directions = batch(directions, self.n_queries, "directions") * self.weights
        size = self.universe.size
        if size > MAX_SCORES:
            raise WorkloadSizeError(
                f"columns must have at most 2^24 level combinations for extreme answers, got {size}"
            )
        if len(directions) == 0:
            return np.empty_like(directions)
        from geomdp.workloads.compiled_loops import corner_sum  # slow import: compiled

        levels = np.array(self.levels)
        weights, elements = self._corner_map
        rows = max(1, MAX_SCORES // size)
        winners = np.empty(len(directions), dtype=np.int64)
        for start in range(0, len(directions), rows):
            part = directions[start : start + rows]
            scores = np.zeros((len(part), size))
            scores[:, elements] = part @ weights
            corner_sum(scores, levels)
            winners[start : start + rows] = scores.argmax(axis=1)
        return self.evaluate(self.universe.elements_at(winners))

    @cached_property
    def _corner_map(self) -> tuple[sp.csr_array, IntArray]:
        """The matrix (m, p) from directions to corner weights, and the indices of p elements.

        Corner weights w(y) are such that sum_T u_T(x_T) is the sum of w(y) over all y with y_i in
        {0, x_i}. For a table T, they are the differences of u_T against level 0 along each column.
        """
        strides = math.prod(self.levels) // np.cumprod(self.levels)
        maps, places = [], []
        for table in self.tables:
            differences = sp.csr_array(np.ones((1, 1)))
            numbers = np.zeros(1, dtype=np.int64)
            for i in table:
                difference = np.eye(self.levels[i])
                difference[0, 1:] = -1
                differences = sp.kron(differences, difference, format="csr")
                steps = strides[i] * np.arange(self.levels[i])
                numbers = (numbers[:, None] + steps).ravel()
            maps.append(differences)
            places.append(numbers)
        elements, columns = np.unique(np.concatenate(places), return_inverse=True)
        # Several tables can give a weight to the same element: add these weights.
        n_cells = self.n_queries
        gather = sp.csr_array(
            (np.ones(n_cells), (np.arange(n_cells), columns)), shape=(n_cells, len(elements))
        )
        return sp.csr_array(sp.block_diag(maps, format="csr") @ gather), elements

    def _interacting(self) -> Sequence[tuple[int, ...]]:
        """All non-empty sets of columns within a table, by size, then in lexicographic order."""
        sets = {
            S
            for table in self.tables
            for order in range(1, len(table) + 1)
            for S in itertools.combinations(table, order)
        }
        return sorted(sets, key=lambda S: (len(S), S))

    @cached_property
    def _blocks(self) -> tuple[Block, ...]:
        # A column with a single level is constant and has no interactions.
        sets = [S for S in self._interacting() if min(self.shape(S)) > 1]
        rank = sum(math.prod(n - 1 for n in self.shape(S)) for S in sets)
        if rank * self.n_queries > MAX_ENTRIES:
            raise WorkloadSizeError(
                "number of cells times dimension of the affine hull must be at most 2^26 for a "
                f"basis, got {self.n_queries} times {rank}"
            )
        return tuple(self._interaction_block(S) for S in sets)

    def _interaction_block(self, S: tuple[int, ...]) -> Block:
        """The block of the columns S; see the comment above the class."""
        contrasts: FloatArray = np.ones((1, 1))
        for i in S:
            contrasts = np.kron(contrasts, zero_sum_basis(self.levels[i])).astype(np.float64)
        rank = contrasts.shape[1]
        basis = np.zeros((self.n_queries, rank))
        squared_scale = 0.0
        for table, place, weight in zip(self.tables, self.slices, self.table_weights, strict=True):
            if not set(S) <= set(table):
                continue
            constant = 1 / math.prod(self.levels[i] for i in table if i not in S)
            # Columns of the table that are not in S become axes of length 1. Values are repeated
            # along these axes.
            axes = [self.levels[i] if i in S else 1 for i in table]
            spread = np.broadcast_to(contrasts.reshape(*axes, rank), (*self.shape(table), rank))
            basis[place] = weight * constant * spread.reshape(-1, rank)
            squared_scale += weight**2 * constant
        shares = [1 / self.levels[i] for i in S]
        same = math.prod(1 - share for share in shares)
        apart = min(
            math.prod(agree - share for agree, share in zip(pattern, shares, strict=True))
            for pattern in itertools.product((0, 1), repeat=len(S))
            if not all(pattern)
        )
        basis /= math.sqrt(squared_scale)
        diameter = math.sqrt(2 * squared_scale * (same - apart))
        return Block(basis, diameter, math.sqrt(squared_scale * same))

    def blocks(self) -> tuple[Block, ...]:
        """One interaction block (analysis of variance) for each set of columns within a table.

        The empty set and sets with a column of one level have none. Diameters and radii are
        exact. For columns of two levels, each block is the parity of its columns.
        ``ValueError`` if cells times the dimension of the affine hull exceed 2^26 (512 MB).
        """
        return self._blocks

    def affine_hull(self) -> AffineHull:
        """The hull is spanned by the bases of `blocks`, with the same errors."""
        return self._hull

    @cached_property
    def _hull(self) -> AffineHull:
        offset = np.repeat(self.table_weights / self.table_sizes, self.table_sizes)
        bases = [block.basis for block in self._blocks]
        return AffineHull(offset, np.hstack([np.zeros((len(offset), 0)), *bases]))

    @cached_property
    def _changing(self) -> FloatArray:
        """Weights of those tables in which two records can be in different cells."""
        changing = [max(self.shape(table)) > 1 for table in self.tables]
        return np.asarray(self.table_weights[changing])

    def l1_diameter(self) -> float:
        """Twice the sum of the weights of all tables that have a column with several levels."""
        return 2.0 * float(self._changing.sum())

    def l2_diameter(self) -> float:
        """sqrt(2 sum of squared weights), for the same tables as `l1_diameter`."""
        return math.sqrt(2.0 * float((self._changing**2).sum()))

    def l1_radius(self) -> float:
        """The sum of weights: each record is in one cell of every table."""
        return float(self.table_weights.sum())

    def l2_radius(self) -> float:
        return float(np.linalg.norm(self.table_weights))

    def labels(self) -> list[str]:
        names = self.universe.names
        return [
            ",".join(f"{names[i]}={a}" for i, a in zip(table, cell, strict=True))
            for table in self.tables
            for cell in itertools.product(*map(range, self.shape(table)))
        ]


@dataclass(frozen=True, eq=False)
class PairCells:
    """The cells of all tables of pairs: their two levels, and the start and size of their table."""

    first: IntArray
    second: IntArray
    starts: IntArray
    sizes: IntArray


@dataclass(frozen=True, init=False, repr=False)
class MarginalTables(TableQueries):
    """Cells of all k-way tables: q_(T,a)(x) = 1[x_T = a] for |T| = k and all level codes a.

    x_T are the codes of x in the k columns of the table T. Tables are in lexicographic order, and
    their cells in row-major order (the last column changes fastest).

    Parameters
    ----------
    columns : mapping of column name to number of levels, or sequence of numbers of levels
        Columns given by a sequence are named c0, c1, ...
    k : int
        Number of columns in a table, from 1 to the number of columns.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> workload = gd.workloads.MarginalTables({"region": 3, "smoker": 2}, k=1)
    >>> records = pd.DataFrame({"region": [0, 2, 2, 1], "smoker": [1, 0, 0, 0]})
    >>> workload.answers(records)
    array([0.25, 0.25, 0.5 , 0.75, 0.25])
    >>> workload.labels()
    ['region=0', 'region=1', 'region=2', 'smoker=0', 'smoker=1']
    """

    whole_answers: ClassVar[bool] = True
    names: tuple[str, ...]
    levels: tuple[int, ...]
    k: int

    def __init__(self, columns: Mapping[str, int] | Iterable[int], k: int) -> None:
        universe = CategoricalProduct(columns)
        object.__setattr__(self, "names", universe.names)
        object.__setattr__(self, "levels", universe.levels)
        object.__setattr__(self, "k", whole(k, "k", maximum=len(universe.levels)))

    def _summary(self) -> str:
        return f"{len(self.levels)} columns, k={self.k}; {self.n_queries} queries"

    @property
    def columns(self) -> dict[str, int]:
        """Number of levels of each column, by name, in column order."""
        return dict(zip(self.names, self.levels, strict=True))

    @property
    def universe(self) -> CategoricalProduct:
        return CategoricalProduct(self.columns)

    @cached_property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        return tuple(itertools.combinations(range(len(self.levels)), self.k))

    @cached_property
    def table_weights(self) -> FloatArray:
        return np.ones(len(self.tables))

    def _counts(self, codes: IntArray) -> FloatArray:
        """For k = 2, one product of indicators; for k = 3, one for each level of a column i."""
        if self.k == 2:
            indicators = self._indicators(codes)
            counts = (indicators.T @ indicators)[self._pairs.first, self._pairs.second]
            return counts.astype(np.float64)
        return self._triple_counts(codes) if self.k == 3 else super()._counts(codes)

    @cached_property
    def _first_levels(self) -> IntArray:
        levels = np.array(self.levels)
        return np.asarray(np.cumsum(levels) - levels)

    @cached_property
    def _pairs(self) -> PairCells:
        pairs = np.array(list(itertools.combinations(range(len(self.levels)), 2)))
        levels, firsts = np.array(self.levels)[pairs], self._first_levels[pairs]
        sizes = levels.prod(axis=1)
        starts = np.cumsum(sizes) - sizes
        tables = np.repeat(np.arange(len(pairs)), sizes)
        cells = np.arange(sizes.sum())
        rows, columns = np.divmod(cells - starts[tables], levels[tables, 1])
        return PairCells(
            firsts[tables, 0] + rows, firsts[tables, 1] + columns, starts[tables], sizes[tables]
        )

    def _indicators(self, codes: IntArray) -> npt.NDArray[np.float32]:
        # Sums in float32 are exact up to 2^24, far above the number of rows of a chunk.
        indicators = np.zeros((len(codes), sum(self.levels)), dtype=np.float32)
        np.put_along_axis(indicators, codes + self._first_levels, 1, axis=1)
        return indicators

    def _triple_counts(self, codes: IntArray) -> FloatArray:
        """Tables (i, a, b) of one i follow each other; at a level of i, cells are as in (a, b)."""
        indicators, pairs = self._indicators(codes), self._pairs
        counts, start, known = np.empty(self.n_queries), 0, 0
        for i, levels in enumerate(self.levels[:-2]):
            # Skip the pairs that contain column i. The pairs of two later columns remain.
            known += levels * sum(self.levels[i + 1 :])
            offset = int(self._first_levels[i + 1])
            first, second = pairs.first[known:] - offset, pairs.second[known:] - offset
            sizes, starts = pairs.sizes[known:], pairs.starts[known:]
            places = start + levels * (starts - known) + np.arange(len(starts)) - (starts - known)
            for level in range(levels):
                own = indicators[codes[:, i] == level, offset:]
                counts[places + level * sizes] = (own.T @ own)[first, second]
            start += levels * len(starts)
        return counts

    def _interacting(self) -> Sequence[tuple[int, ...]]:
        columns = range(len(self.levels))
        return [S for order in range(1, self.k + 1) for S in itertools.combinations(columns, order)]


class ChosenTables(TableQueries):
    """Weighted cells of chosen tables: q_(T,a)(x) = w_T 1[x_T = a] for all level codes a.

    x_T are the codes of x in the columns of the table T, and w_T is its weight. Mechanisms keep the
    error of the weighted cells small, so tables of larger weight become more accurate. Divide their
    answers by the weight to get shares of records.

    Tables are in the given order, and their columns in the order of `columns`. Cells are in
    row-major order (the last column changes fastest). For all tables of k columns with equal
    weights, use `MarginalTables`, because more mechanisms accept it.

    Parameters
    ----------
    columns : mapping of column name to number of levels
        The columns of a record.
    tables : sequence of sequence of str
        The columns of each table: at least one table, none empty, and no two with the same set of
        columns.
    weights : sequence of float, optional
        One positive weight per table; by default 1. For whole weights, sums over records are whole.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.ChosenTables(
    ...     {"region": 3, "smoker": 2}, [["region"], ["region", "smoker"]], weights=[2, 1]
    ... )
    >>> workload
    ChosenTables(2 tables of 2 columns; 9 queries)
    >>> workload.answers(np.array([[0, 1], [2, 0]]))
    array([1. , 0. , 1. , 0. , 0.5, 0. , 0. , 0.5, 0. ])
    """

    def __init__(
        self,
        columns: Mapping[str, int],
        tables: Iterable[Sequence[str]],
        weights: Sequence[float] | None = None,
    ) -> None:
        self._universe = CategoricalProduct(columns)
        self.levels = self._universe.levels
        self._tables = tuple(
            _table_numbers(self._universe.names, table) for table in listed(tables, "tables")
        )
        if not self._tables:
            raise ValueError("tables must hold at least 1 table, got 0")
        for table in self._tables:
            if self._tables.count(table) > 1:
                names = [self._universe.names[i] for i in table]
                raise ValueError(f"tables must differ; the table {names} occurs more than once")
        given = listed([1.0] * len(self._tables) if weights is None else weights, "weights")
        if len(given) != len(self._tables):
            raise ValueError(
                f"weights must have {len(self._tables)} entries, one per table, got {len(given)}"
            )
        self._table_weights = np.array([positive(weight, "weights") for weight in given])

    def _summary(self) -> str:
        return f"{len(self.tables)} tables of {len(self.levels)} columns; {self.n_queries} queries"

    @property
    def universe(self) -> CategoricalProduct:
        return self._universe

    @property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        return self._tables

    @property
    def table_weights(self) -> FloatArray:
        return self._table_weights

    @property
    def whole_answers(self) -> bool:
        """Whether all weights are whole numbers. Each answer of a record is 0 or a weight."""
        return bool((self.table_weights == np.rint(self.table_weights)).all())


def _table_numbers(names: Sequence[str], table: Sequence[str]) -> tuple[int, ...]:
    if isinstance(table, str) or not isinstance(table, Sequence) or not table:
        raise ValueError(f"a table must be a list of at least 1 column, got {table!r}")
    for name in table:
        if name not in names:
            raise ValueError(f"a table must have columns among {', '.join(names)}; got {name!r}")
    if len(set(table)) < len(table):
        raise ValueError(f"a table must not name a column twice, got {list(table)}")
    return tuple(sorted(names.index(name) for name in table))
