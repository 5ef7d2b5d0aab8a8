"""Tables of categorical columns: all k-way tables, chosen tables with weights, and their products.

A column of a product is asked by other queries than its levels, such as all prefixes or ranges.
"""

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

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull, row_blocks, zero_sum_basis
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import batch, listed, plural, positive, require_type, whole
from geomdp.workloads.base import (
    MAX_ENTRIES,
    MAX_SCORES,
    Block,
    Totals,
    Workload,
    WorkloadSizeError,
)
from geomdp.workloads.explicit import LinearMap, explicit_answers
from geomdp.workloads.universes import CategoricalProduct, FiniteUniverse, Records

#: Number of records counted at a time. `totals` stores a few integers for each of these records.
COUNT_ROWS = 1 << 16


class ByTable(Workload):
    """Queries listed table by table, each with the weight of its table."""

    #: Column numbers of each table, in increasing order.
    tables: tuple[tuple[int, ...], ...]
    #: The weight w_T of each table.
    table_weights: FloatArray

    @abc.abstractmethod
    def shape(self, table: Sequence[int]) -> tuple[int, ...]:
        """Number of queries of each column of `table`, a sequence of column numbers."""

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """For each table, the slice of the queries that holds its own."""
        ends = list(itertools.accumulate(math.prod(self.shape(table)) for table in self.tables))
        return tuple(slice(a, b) for a, b in zip([0, *ends], ends, strict=False))

    @cached_property
    def table_sizes(self) -> IntArray:
        """Number of queries of each table."""
        return np.array([place.stop - place.start for place in self.slices])

    @property
    def n_queries(self) -> int:
        return int(self.slices[-1].stop)

    @cached_property
    def weights(self) -> FloatArray:
        """The weight of each query (m,): the weight of its table."""
        return np.repeat(self.table_weights, self.table_sizes)

    @abc.abstractmethod
    def column_labels(self) -> list[list[str]]:
        """Names of the queries of each column."""

    def labels(self) -> list[str]:
        own = self.column_labels()
        choices = (itertools.product(*(own[i] for i in table)) for table in self.tables)
        return [",".join(chosen) for chosen in itertools.chain.from_iterable(choices)]


class TableQueries(ByTable):
    """Weighted cells of tables in row-major order: q_(T,a)(x) = w_T 1[x_T = a] for all cells a."""

    # Interactions of columns (analysis of variance): orthogonal blocks of the answers.
    #
    # Q(x) is a sum with one part for each set S of columns. The part is 0 in a table T that does
    # not contain S. In any other table it is the weight w_T times a tensor product with one factor
    # for each column i of T, with l_i levels: e_(x_i) - 1/l_i, where e_j is unit vector j, if i is
    # in S, else the constant vector 1/l_i. Parts of different sets are orthogonal. If some table
    # contains S, the parts of S for all x span a space of dimension prod (l_i - 1). Let c_S^2 = sum
    # over tables T that contain S of w_T^2 prod over i in T - S of 1/l_i. With products over S,
    #
    #     ||part(x) - part(x')||^2 = 2 c_S^2 (prod (1 - 1/l_i) - prod (1[x_i = x'_i] - 1/l_i)),
    #     ||part(x)||^2 = c_S^2 prod (1 - 1/l_i)   for all x.
    #
    # The largest value of the first expression is found by trying all sets of columns in S in which
    # x and x' agree.

    levels: tuple[int, ...]

    @property
    @abc.abstractmethod
    def universe(self) -> CategoricalProduct: ...

    def shape(self, table: Sequence[int]) -> tuple[int, ...]:
        """Number of levels of each column of `table`, a sequence of column numbers."""
        return tuple(self.levels[i] for i in table)

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
        sizes = zip(cells, self.table_sizes, strict=True)
        counts = [np.bincount(numbers, minlength=size) for numbers, size in sizes]
        return np.concatenate(counts).astype(np.float64)

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
        from geomdp._numerics.compilation import corner_sum  # slow import: compiled

        weights, elements = self._corner_map
        winners = np.empty(len(directions), dtype=np.int64)
        for rows in row_blocks(len(directions), size, MAX_SCORES):
            part = directions[rows]
            scores = np.zeros((len(part), size))
            scores[:, elements] = part @ weights
            corner_sum(scores, np.array(self.levels))
            winners[rows] = scores.argmax(axis=1)
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
            differences, numbers = sp.csr_array(np.ones((1, 1))), np.zeros(1, dtype=np.int64)
            for i in table:
                difference = np.eye(self.levels[i])
                difference[0, 1:] = -1
                differences = sp.kron(differences, difference, format="csr")
                numbers = np.add.outer(numbers, strides[i] * np.arange(self.levels[i])).ravel()
            maps.append(differences)
            places.append(numbers)
        elements, columns = np.unique(np.concatenate(places), return_inverse=True)
        # Several tables can give a weight to the same element: add these weights.
        gather = sp.csr_array((np.ones(len(columns)), (np.arange(len(columns)), columns)))
        return sp.csr_array(sp.block_diag(maps, format="csr") @ gather), elements

    def interacting(self) -> list[tuple[int, ...]]:
        """Non-empty sets of columns of several levels within a table, by size, then in order."""
        sets = {
            S
            for table in self.tables
            for order in range(1, len(table) + 1)
            for S in itertools.combinations([i for i in table if self.levels[i] > 1], order)
        }
        return sorted(sets, key=lambda S: (len(S), S))

    @cached_property
    def _blocks(self) -> tuple[Block, ...]:
        sets = self.interacting()
        rank = sum(math.prod(n - 1 for n in self.shape(S)) for S in sets)
        if rank * self.n_queries > MAX_ENTRIES:
            raise WorkloadSizeError(
                "number of cells times dimension of the affine hull must be at most 2^26 for a "
                f"basis, got {self.n_queries} times {rank}"
            )
        return tuple(self._interaction_block(S) for S in sets)

    def _interaction_block(self, S: tuple[int, ...]) -> Block:
        """The block of the columns S; see the comment at the top of the class."""
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
            # Values are repeated along the axes of columns that are not in S.
            axes = [self.levels[i] if i in S else 1 for i in table]
            spread = np.broadcast_to(contrasts.reshape(*axes, rank), (*self.shape(table), rank))
            basis[place] = weight * constant * spread.reshape(-1, rank)
            squared_scale += weight**2 * constant
        # Products for all sets of columns in which two records agree, all columns last.
        patterns = itertools.product(*((-1 / self.levels[i], 1 - 1 / self.levels[i]) for i in S))
        *apart, same = map(math.prod, patterns)
        basis /= math.sqrt(squared_scale)
        diameter = math.sqrt(2 * squared_scale * (same - min(apart)))
        return Block(basis, diameter, math.sqrt(squared_scale * same))

    def blocks(self) -> tuple[Block, ...]:
        """One interaction block (analysis of variance) for each set of columns within a table.

        Columns of one level have none. Diameters and radii are exact. For columns of two levels,
        each block is the parity of its columns. ``ValueError`` if cells times the dimension of the
        affine hull exceed 2^26 (512 MB).
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

    @property
    def _changing(self) -> FloatArray:
        """Weights of those tables in which two records can be in different cells."""
        return np.asarray(self.table_weights[self.table_sizes > 1])

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

    def column_labels(self) -> list[list[str]]:
        pairs = zip(self.universe.names, self.levels, strict=True)
        return [[f"{name}={a}" for a in range(levels)] for name, levels in pairs]


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

    x_T are the codes of x in the columns of the table T. Tables are in lexicographic order, and
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
    >>> dict(zip(workload.labels(), workload.answers(records).tolist()))
    {'region=0': 0.25, 'region=1': 0.25, 'region=2': 0.5, 'smoker=0': 0.75, 'smoker=1': 0.25}
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
    def tables(self) -> tuple[tuple[int, ...], ...]:  # type: ignore[override]
        """The columns of each table: all sets of k columns."""
        return tuple(itertools.combinations(range(len(self.levels)), self.k))

    @cached_property
    def table_weights(self) -> FloatArray:  # type: ignore[override]
        """The weight of each table: 1."""
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
        sizes = np.array(self.levels)[pairs].prod(axis=1)
        tables = np.repeat(np.arange(len(pairs)), sizes)
        starts, (first, second) = (np.cumsum(sizes) - sizes)[tables], pairs[tables].T
        rows, columns = np.divmod(np.arange(len(tables)) - starts, np.array(self.levels)[second])
        firsts = self._first_levels
        return PairCells(firsts[first] + rows, firsts[second] + columns, starts, sizes[tables])

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


class ChosenTables(TableQueries):
    """Weighted cells of chosen tables: q_(T,a)(x) = w_T 1[x_T = a] for all level codes a.

    x_T are the codes of x in the columns of the table T, and w_T is its weight. Mechanisms keep the
    error of the weighted cells small, so tables of larger weight become more accurate. Divide their
    answers by the weight to get shares of records. Tables are in the given order, their columns in
    the order of `columns`, and cells in row-major order (the last column changes fastest). For all
    tables of k columns with equal weights, more mechanisms accept `MarginalTables`.

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
        self.levels, names = self._universe.levels, self._universe.names
        self.tables = tuple(_table_numbers(names, table) for table in listed(tables, "tables"))
        if not self.tables:
            raise ValueError("tables must hold at least 1 table, got 0")
        for table in self.tables:
            if self.tables.count(table) > 1:
                twice = [names[i] for i in table]
                raise ValueError(f"tables must differ; the table {twice} occurs more than once")
        given = listed([1.0] * len(self.tables) if weights is None else weights, "weights")
        if len(given) != len(self.tables):
            raise ValueError(
                f"weights must have {len(self.tables)} entries, one per table, got {len(given)}"
            )
        self.table_weights = np.array([positive(weight, "weights") for weight in given])

    def _summary(self) -> str:
        return f"{len(self.tables)} tables of {len(self.levels)} columns; {self.n_queries} queries"

    @property
    def universe(self) -> CategoricalProduct:
        return self._universe

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


# Products of queries of columns

#: Largest number of levels of a column that is asked by other queries than its levels.
MAX_LEVELS = 1 << 8


class ProductQueries(ByTable, LinearMap):
    """Products of queries, one for each column of a table, for all tables: region by age prefixes.

    Each column of a table is asked by its levels or by other queries on its levels. A table has one
    query for every choice of one query per column: q(x) = w_T product over its columns i of
    q_i(x_i), with the weight w_T of the table. Order and weights are as in `ChosenTables`, whose
    cells these are if all columns are asked by their levels.

    Parameters
    ----------
    columns : mapping of column name to number of levels
        The columns of a record.
    tables : sequence of sequence of str
        The columns of each table, as for `ChosenTables`.
    queries : mapping of column name to Workload
        For a column of l <= 256 levels, a workload on {0, ..., l - 1}: `Prefixes`, `Ranges`, or
        `Explicit` for any rows. Some combination of its queries must be 1 at all levels, and not
        all queries may be constant. Columns that are not named are asked by their levels.
    weights : sequence of float, optional
        One positive weight per table; by default 1. ``ValueError`` if an argument is not as stated.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.ProductQueries(
    ...     {"smoker": 2, "age": 3}, [["smoker", "age"]], {"age": gd.workloads.Prefixes(3)}
    ... )
    >>> workload.labels()[:3]
    ['smoker=0,age[x<=0]', 'smoker=0,age[x<=1]', 'smoker=0,age[x<=2]']
    >>> workload.answers(np.array([[0, 1], [1, 0], [0, 0], [0, 2]]))
    array([0.25, 0.5 , 0.75, 0.25, 0.25, 0.25])
    """

    workload: ChosenTables

    def __init__(
        self,
        columns: Mapping[str, int],
        tables: Iterable[Sequence[str]],
        queries: Mapping[str, Workload],
        weights: Sequence[float] | None = None,
    ) -> None:
        self.workload = ChosenTables(columns, tables, weights)
        self.tables, self.table_weights = self.workload.tables, self.workload.table_weights
        names = self.workload.universe.names
        require_type(queries, Mapping, "queries")
        for name in queries:
            if name not in names:
                raise ValueError(
                    f"queries must be for columns among {', '.join(names)}; got {name!r}"
                )
        #: The queries of each column, None for its levels.
        self.queries = tuple(queries.get(name) for name in names)
        #: The values (queries, levels) of the queries of each column, None for its levels.
        self.factors = tuple(
            None if asked is None else _factor(name, asked, levels)
            for name, asked, levels in zip(names, self.queries, self.workload.levels, strict=True)
        )

    def _summary(self) -> str:
        tables, columns = plural(len(self.tables), "table"), len(self.workload.levels)
        return f"{tables} of {columns} columns; {self.n_queries} queries"

    def shape(self, table: Sequence[int]) -> tuple[int, ...]:
        found = ((self.factors[i], self.workload.levels[i]) for i in table)
        return tuple(levels if factor is None else len(factor) for factor, levels in found)

    def alone(self, tables: Sequence[Sequence[str]] | None = None) -> ProductQueries:
        """The same queries without weights, of all tables or of some."""
        names, levels = self.workload.universe.names, self.workload.universe.columns
        if tables is None:
            tables = [[names[i] for i in table] for table in self.tables]
        columns = {name: levels[name] for name in names if any(name in t for t in tables)}
        asked = zip(names, self.queries, strict=True)
        queries = {name: each for name, each in asked if each is not None and name in columns}
        return ProductQueries(columns, tables, queries)

    @property
    def whole_answers(self) -> bool:
        """Whether all weights and all values of the queries of columns are whole numbers."""
        rows = [factor for factor in self.factors if factor is not None]
        return self.workload.whole_answers and all((row == np.rint(row)).all() for row in rows)

    @property
    def counts_records(self) -> bool:
        """Whether each answer is a share of the records: all values are 0 or 1, without weights."""
        rows = [factor for factor in self.factors if factor is not None]
        return all(self.table_weights == 1) and all(np.isin(row, (0, 1)).all() for row in rows)

    @cached_property
    def matrix(self) -> FloatArray:  # type: ignore[override]
        """The map (m, cells) from all cells; `WorkloadSizeError` above 2^26 entries."""
        cells = self.workload.n_queries
        if self.n_queries * cells > MAX_ENTRIES:
            raise WorkloadSizeError(
                f"workload must have at most 2^26 pairs of a query and a cell for a dense matrix, "
                f"got {self.n_queries} times {cells}"
            )
        return self.of_cells(np.eye(cells)).T

    def of_cells(self, cells: FloatArray) -> FloatArray:
        """Answers (b, m) from the cells (b, cells) of all tables."""
        return self._mapped(cells, self.workload, self)

    def _mapped(self, values: FloatArray, source: ByTable, target: ByTable) -> FloatArray:
        """Multiply each table by the factors of its columns, or by their transposes."""
        found = np.empty((len(values), target.n_queries))
        for table, place, goal in zip(self.tables, source.slices, target.slices, strict=True):
            part = values[:, place].reshape(len(values), *source.shape(table))
            for axis, i in enumerate(table, start=1):
                factor = self.factors[i]
                if factor is not None:
                    part = along(factor if target is self else factor.T, part, axis)
            found[:, goal] = part.reshape(len(values), goal.stop - goal.start)
        return found

    def evaluate(self, records: Records) -> FloatArray:
        return self.of_cells(self.workload.evaluate(records))

    def totals(self, records: Records | Iterable[Records]) -> Totals:
        """Cells are counted, O(n) per table."""
        inner = self.workload.totals(records)
        return Totals(inner.count, self.of_cells(inner.sums[None])[0])

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """As for `ChosenTables`, with the same limit on the number of elements."""
        return self.of_cells(self.workload.extreme_answers(self._on_cells(directions)))

    def breadth(self, directions: FloatArray) -> FloatArray:
        return self.workload.breadth(self._on_cells(directions))

    def _on_cells(self, directions: FloatArray) -> FloatArray:
        directions = batch(directions, self.n_queries, "directions")
        return self._mapped(directions, self, self.workload)

    @cached_property
    def _points(self) -> FloatArray | None:
        size = self.universe.size
        largest = max(self.n_queries, self.workload.n_queries)
        if size is None or size * largest > MAX_ENTRIES:
            return None
        return explicit_answers(self)

    @cached_property
    def _l2_diameter(self) -> float:
        """The largest length times 2, or times 2^(1/2) if no query is negative."""
        if self._points is not None:
            return super()._l2_diameter
        positive = all(factor is None or factor.min() >= 0 for factor in self.factors)
        return math.sqrt(2.0 if positive else 4.0) * self._reach(2)

    @cached_property
    def _diameters(self) -> tuple[float, float]:
        if self._points is not None:
            return super()._diameters
        return 2 * self._radii[0], self._l2_diameter

    @cached_property
    def _radii(self) -> tuple[float, float]:
        if self._points is not None:
            return super()._radii
        return self._reach(1), self._reach(2)

    def _reach(self, order: int) -> float:
        """A bound on the norm of an answer vector: the largest norms of columns, multiplied."""
        largest = [
            1.0 if factor is None else float(np.linalg.norm(factor, order, axis=0).max())
            for factor in self.factors
        ]
        norms = [math.prod(largest[i] for i in table) for table in self.tables]
        return float(np.linalg.norm(self.table_weights * norms, order))

    def column_labels(self) -> list[list[str]]:
        own = self.workload.column_labels()
        for i, (name, asked) in enumerate(
            zip(self.workload.universe.names, self.queries, strict=True)
        ):
            if asked is not None:
                own[i] = [f"{name}[{label}]" for label in asked.labels()]
        return own


def cells_of(workload: TableQueries | ProductQueries) -> TableQueries:
    """The tables whose cells determine the answers."""
    return workload.workload if isinstance(workload, ProductQueries) else workload


def along(matrix: FloatArray, values: FloatArray, axis: int) -> FloatArray:
    """The product of `matrix` with each vector along one axis of an array."""
    return np.moveaxis(np.tensordot(matrix, values, axes=(1, axis)), 0, axis)


def _factor(name: str, asked: Workload, levels: int) -> FloatArray:
    """The values (queries, levels) of the queries of a column, checked."""
    require_type(asked, Workload, f"queries of {name}")
    if asked.universe != FiniteUniverse(levels) or levels > MAX_LEVELS:
        raise ValueError(
            f"queries of {name} must be on its levels 0 to {levels - 1}, at most 256, got {asked!r}"
        )
    rows = explicit_answers(asked).T
    ones = np.ones(levels)
    solved = np.linalg.lstsq(rows.T, ones, rcond=RANK_TOLERANCE)[0]
    if np.abs(solved @ rows - ones).max() > RANK_TOLERANCE * levels:
        raise ValueError(
            f"queries of {name} must have a combination that is 1 at all levels, got {asked!r}"
        )
    if levels > 1 and np.ptp(rows, axis=1).max() == 0:
        raise ValueError(f"queries of {name} must not all be constant, got {asked!r}")
    return np.ascontiguousarray(rows)
