"""Residuals of tables: a few sums over records for each set of columns determine all tables."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp.workloads.base import WorkloadSizeError
from geomdp.workloads.product_queries import ProductQueries, along, cells_of
from geomdp.workloads.tables import TableQueries

#: Largest number of pairs of a table and a set of columns within it. All 3-way tables of 100
#: columns have 1.3 million pairs, which are listed in a second.
MAX_PAIRS = 1 << 24


@dataclass(frozen=True, eq=False)
class Column:
    """A column in the residuals: its levels and queries, and the noise on differences of counts.

    With C = [1, -I] as in `Residuals`, the noise on C h is `root` g for independent variables g of
    variance 1, and C g if there is no `root`. A record of level j changes the differences by C e_j,
    which has the length |b_j| in units of this noise. |b_j|^2 is at most `share`, and <b_j, b_k> is
    at least -`against` for different levels j and k. `factor` (queries, levels) holds the values of
    the queries, None for the levels themselves.
    """

    levels: int
    factor: FloatArray | None = None
    root: FloatArray | None = None
    share: Fraction = Fraction(0)
    against: Fraction = Fraction(0)

    @property
    def share_float(self) -> float:
        return 1 - 1 / self.levels if self.root is None else float(self.share)

    @property
    def mean_varying(self) -> float:
        """Mean over the queries of `varying`."""
        return 1 - 1 / self.levels if self.factor is None else float(self.varying.mean())

    @property
    def mean_constant(self) -> float:
        """Mean over the queries of `constant`."""
        return 1 / self.levels**2 if self.factor is None else float(self.constant.mean())

    @cached_property
    def varying(self) -> FloatArray:
        """Variance of each query (queries,) from unit noise on the differences."""
        if self.factor is None:
            return np.full(self.levels, 1 - 1 / self.levels)
        return np.asarray(((self._on_differences @ self._noise) ** 2).sum(axis=1))

    @cached_property
    def constant(self) -> FloatArray:
        """Variance of each query (queries,) from unit noise on the number of records."""
        if self.factor is None:
            return np.full(self.levels, 1 / self.levels**2)
        return np.asarray(self.factor.mean(axis=1) ** 2)

    @cached_property
    def metric(self) -> FloatArray:
        """P with y^T P y the squared length, in units of the noise, of what queries tell of y."""
        told = self._on_differences
        spread = told @ self._noise
        return np.asarray(told.T @ np.linalg.pinv(spread @ spread.T, hermitian=True) @ told)

    @cached_property
    def inverse(self) -> FloatArray | None:
        """A map from the queries to counts of levels with the same answers."""
        return None if self.factor is None else np.asarray(np.linalg.pinv(self.factor))

    @property
    def _noise(self) -> FloatArray:
        return contrast(self.levels) if self.root is None else self.root

    @property
    def _on_differences(self) -> FloatArray:
        inverse = np.linalg.pinv(contrast(self.levels))
        if self.factor is None:
            return np.asarray(inverse)
        # Differences tell nothing of a constant query. The subtraction makes its row exactly 0.
        return np.asarray((self.factor - self.factor[:, :1]) @ inverse)


def contrast(levels: int) -> FloatArray:
    """C = [1, -I], which maps counts of levels to differences of counts."""
    return np.hstack([np.ones((levels - 1, 1)), -np.eye(levels - 1)])


@functools.cache
def categories(levels: int) -> Column:
    """A column asked by its levels, with the noise of independent noise on the levels."""
    return Column(levels, share=Fraction(levels - 1, levels), against=Fraction(1, levels))


class Residuals:
    """Differences of counts, for each set of columns. They determine all tables of a workload.

    The coordinates of the residual of a set A are whole numbers: for each column of A, the count of
    level 0 minus that of another level. With the histogram h, a vector 1 of ones and C_i = [1, -I]
    of shape (l_i - 1, l_i) for a column of l_i levels,

        y_A = (tensor over i in A of C_i, and of 1^T over the other columns) h.

    The sets A are the subsets of tables without columns of a single level; the empty set gives the
    number of records. A table T is the sum over A within T of

        (tensor over i in A of C_i^+, and of the vectors 1 / l_i over the other columns of T) y_A.

    Both directions take O(k) additions for each cell of a k-way table, without matrices. Products
    of queries are computed from the cells; `columns` then holds the queries of each column of the
    records, and the noise on its differences. Source: Xiao-He-Zhang-Kifer 2023 (ResidualPlanner,
    and ResidualPlanner+ in version 5); formula sheet X-RES, X-PROD.
    """

    def __init__(
        self, workload: TableQueries | ProductQueries, columns: Sequence[Column] | None = None
    ) -> None:
        #: The tables whose cells are counted.
        self.cells = cells_of(workload)
        pairs = sum(2 ** len(table) for table in self.cells.tables)
        if pairs > MAX_PAIRS:
            raise WorkloadSizeError(
                f"tables must have at most 2^24 subsets of columns in all, got {pairs}"
            )
        self.workload = workload
        #: The sets of columns and the tables, each by shape.
        self.columns = columns or [categories(count) for count in self.cells.levels]
        self.groups, self.tables = sets_in_tables(workload, self.cells, self.columns)
        #: Whether all columns are asked by their levels.
        self.categorical = all(kind.factor is None for kind in self.columns)

    @property
    def count(self) -> int:
        """Number of sets of columns; the empty set has number 0."""
        return self.groups[-1].first + self.groups[-1].count

    @property
    def dimension(self) -> int:
        last = self.groups[-1]
        return last.start + last.count * last.size

    def energies(self) -> FloatArray:
        """For each set A, the total variance that unit noise on A adds to all answers.

        Noise of variance s_A has covariance s_A (tensor over i in A of C_i C_i^T) on the
        coordinates. It adds w_T^2 s_A (prod over A of (1 - 1 / l_i)) (prod over T - A of 1 / l_i^2)
        to each answer of T; see `Column` for other noise and other queries.
        """
        found = np.zeros(self.count)
        for tables in self.tables:
            squares = self.cells.table_weights[tables.numbers] ** 2 * math.prod(tables.asked)
            for own in tables.within:
                numbers = own.group.first + own.rows
                share = math.prod(
                    kind.mean_varying if i in own.axes else kind.mean_constant
                    for i, kind in enumerate(tables.kinds)
                )
                found += np.bincount(numbers, squares * share, minlength=self.count)
        return found

    def answer_variances(self, variances: FloatArray) -> FloatArray:
        """Variance of each answer (m,), for noise of variance `variances[A]` on each residual A."""
        found = np.empty(self.workload.n_queries)
        for tables in self.tables:
            squares = self.cells.table_weights[tables.numbers] ** 2
            own_found = np.zeros((len(squares), math.prod(tables.asked)))
            for own in tables.within:
                parts = (
                    kind.varying if i in own.axes else kind.constant
                    for i, kind in enumerate(tables.kinds)
                )
                shares = functools.reduce(np.multiply.outer, parts, np.ones(())).ravel()
                own_found += np.outer(variances[own.group.first + own.rows], shares)
            found[tables.answer_places(slice(None))] = own_found * squares[:, None]
        return found

    def of_counts(self, counts: FloatArray) -> FloatArray:
        """Residuals (b, dimension) from the counts (b, cells) of all cells, exact below 2^53."""
        found = np.empty((len(counts), self.dimension))
        for tables in self.tables:
            for block in tables.blocks(len(counts)):
                cells = counts[:, tables.places(block)].reshape(len(counts), -1, *tables.shape)
                self._take_residuals(tables, block, cells, found)
        return found

    def of_answers(self, answers: FloatArray) -> FloatArray:
        """Coordinates (b, dimension) with the given answers (b, m), up to rounding."""
        found = np.empty((len(answers), self.dimension))
        for tables in self.tables:
            weights = self.cells.table_weights[tables.numbers]
            for block in tables.blocks(len(answers)):
                given = answers[:, tables.answer_places(block)] / weights[block, None]
                cells = given.reshape(len(answers), -1, *tables.asked)
                for axis, kind in enumerate(tables.kinds, start=2):
                    if kind.inverse is not None:
                        cells = along(kind.inverse, cells, axis)
                self._take_residuals(tables, block, np.array(cells), found)
        return found

    def _take_residuals(
        self, tables: SameShape, block: slice, cells: FloatArray, found: FloatArray
    ) -> None:
        """Write the residuals of the tables in `block` to `found`; `cells` are overwritten."""
        for axis in range(2, cells.ndim):
            _to_sum_and_differences(cells, axis)
        for own in tables.within:
            target = self._rows(found, own.group)
            part = cells[tables.part(own)]
            target[:, own.rows[block]] = part.reshape(*cells.shape[:2], own.group.size)

    def to_answers(self, coordinates: FloatArray) -> FloatArray:
        """Answers (b, m), weighted, from coordinates (b, dimension)."""
        # Coordinates can be objects, such as numbers with error bounds (`arb`).
        count, kind = len(coordinates), coordinates.dtype
        answers = np.empty((count, self.workload.n_queries), dtype=kind)
        for tables in self.tables:
            weights = self.cells.table_weights[tables.numbers]
            for block in tables.blocks(count):
                cells = np.empty((count, len(tables.numbers[block]), *tables.shape), dtype=kind)
                for own in tables.within:
                    part = cells[tables.part(own)]
                    known = self._rows(coordinates, own.group)[:, own.rows[block]]
                    part[...] = known.reshape(part.shape)
                for axis, column in enumerate(tables.kinds, start=2):
                    _from_sum_and_differences(cells, axis)
                    if column.factor is not None:
                        cells = along(column.factor, cells, axis)
                flat = cells.reshape(*cells.shape[:2], -1)
                answers[:, tables.answer_places(block)] = flat * weights[block, None]
        return answers

    def _rows(self, coordinates: FloatArray, group: ColumnSets) -> FloatArray:
        return coordinates[:, group.places].reshape(len(coordinates), group.count, group.size)

    def squared_lengths(self, coordinates: FloatArray) -> FloatArray:
        """Squared lengths (b, sets) y^T (C C^T)^-1 y, with (C_i C_i^T)^-1 = I - 11^T / l_i.

        A column with a `root` of its noise has its `metric` in place of (C_i C_i^T)^-1.
        """
        found = np.empty((len(coordinates), self.count))
        for group in self.groups:
            rows = self._rows(coordinates, group)
            own = rows.reshape(*rows.shape[:2], *(levels - 1 for levels in group.shape))
            solved = own
            for axis, kind in enumerate(group.kinds, start=2):
                if kind.root is None:
                    solved = solved - solved.sum(axis=axis, keepdims=True) / kind.levels
                else:
                    solved = along(kind.metric, solved, axis)
            found[:, group.numbers] = (own * solved).reshape(rows.shape).sum(axis=2)
        return found


def differences(values: FloatArray, axis: int) -> FloatArray:
    """Entry 0 minus each other entry along an axis."""
    first, rest = np.split(values, [1], axis=axis)
    return np.asarray(first - rest)


def _to_sum_and_differences(cells: FloatArray, axis: int) -> None:
    """Replace x by (sum of x, x_0 - x_1, x_0 - x_2, ...) along an axis, in place."""
    moved = np.moveaxis(cells, axis, 0)
    total = moved.sum(axis=0)
    np.subtract(moved[0], moved[1:], out=moved[1:])
    moved[0] = total


def _from_sum_and_differences(cells: FloatArray, axis: int) -> None:
    moved = np.moveaxis(cells, axis, 0)
    moved[0] = moved.sum(axis=0) / len(moved)  # the x_0 - x_j for j >= 1 add up to l x_0 - sum of x
    np.subtract(moved[0], moved[1:], out=moved[1:])


# The sets of columns within the tables of a workload, in arrays for each shape.


#: Number of cells of tables that are transformed at a time: 2^21 float64 are 16 MB.
BLOCK_CELLS = 1 << 21


@dataclass(frozen=True, eq=False)
class ColumnSets:
    """The sets `columns` (c, j) of j kinds; `first` and `start` place them among all groups."""

    kinds: tuple[Column, ...]
    columns: IntArray
    first: int
    start: int

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(kind.levels for kind in self.kinds)

    @property
    def count(self) -> int:
        return len(self.columns)

    @property
    def size(self) -> int:
        return math.prod(levels - 1 for levels in self.shape)

    @property
    def numbers(self) -> slice:
        return slice(self.first, self.first + self.count)

    @property
    def places(self) -> slice:
        return slice(self.start, self.start + self.count * self.size)


@dataclass(frozen=True, eq=False)
class Within:
    """Sets at the given `axes` of tables of one shape; `rows` (t,) are positions in `group`."""

    axes: tuple[int, ...]
    group: ColumnSets
    rows: IntArray


@dataclass(frozen=True, eq=False)
class SameShape:
    """The tables of equal kinds of columns: `numbers` (t,), first cells `starts` and first answers
    `answer_starts` (t,), and sets `within`.
    """

    kinds: tuple[Column, ...]
    numbers: IntArray
    starts: IntArray
    answer_starts: IntArray
    within: list[Within]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(kind.levels for kind in self.kinds)

    @property
    def asked(self) -> tuple[int, ...]:
        """Number of queries of each column."""
        return tuple(len(kind.constant) for kind in self.kinds)

    def blocks(self, copies: int) -> Iterator[slice]:
        """Slices of the tables, of one table or with at most 2^21 numbers in `copies` copies."""
        step = max(1, BLOCK_CELLS // (math.prod(self.asked) * max(copies, 1)))
        return (slice(a, a + step) for a in range(0, len(self.numbers), step))

    def places(self, block: slice) -> IntArray:
        """The numbers (b, cells) of the cells of each table in `block`."""
        return np.asarray(self.starts[block, None] + np.arange(math.prod(self.shape)))

    def answer_places(self, block: slice) -> IntArray:
        """The query numbers (b, answers) of the answers of each table in `block`."""
        return np.asarray(self.answer_starts[block, None] + np.arange(math.prod(self.asked)))

    def part(self, own: Within) -> tuple[slice, ...]:
        """Index of the sets `own` in tables (b, tables, *shape) of a sum, then differences."""
        chosen = (slice(1, None) if i in own.axes else slice(0, 1) for i in range(len(self.shape)))
        return (slice(None), slice(None), *chosen)


def sets_in_tables(
    workload: TableQueries | ProductQueries, cells: TableQueries, kinds: Sequence[Column]
) -> tuple[list[ColumnSets], list[SameShape]]:
    """The sets of columns of several levels (first the empty set) and the tables, both by kinds."""
    numbers: dict[tuple[Column, ...], list[int]] = {}
    for number, table in enumerate(cells.tables):
        numbers.setdefault(tuple(kinds[i] for i in table), []).append(number)
    starts, answer_starts = (
        np.array([place.start for place in slices], dtype=np.int64)
        for slices in (cells.slices, workload.slices)
    )
    tables = []
    # The sets of some kinds are at some axes of the tables of several kinds.
    sources: dict[tuple[Column, ...], list[tuple[SameShape, tuple[int, ...], IntArray]]] = {}
    for own_kinds, own in numbers.items():
        same = SameShape(own_kinds, np.array(own), starts[own], answer_starts[own], [])
        tables.append(same)
        columns = np.array([cells.tables[number] for number in own], dtype=np.int64)
        varying = [axis for axis, levels in enumerate(same.shape) if levels > 1]
        for size in range(len(varying) + 1):
            for axes in itertools.combinations(varying, size):
                source = same, axes, columns[:, list(axes)]
                sources.setdefault(tuple(own_kinds[axis] for axis in axes), []).append(source)
    order = {kind: place for place, kind in reversed(list(enumerate(kinds)))}

    def rank(own: tuple[Column, ...]) -> tuple[int, list[int], list[int]]:
        return len(own), [kind.levels for kind in own], [order[kind] for kind in own]

    groups: list[ColumnSets] = []
    first = start = 0
    for own_kinds in sorted(sources, key=rank):
        parts = [part for *_, part in sources[own_kinds]]
        distinct, rows = _distinct_rows(np.concatenate(parts))
        group = ColumnSets(own_kinds, distinct, first, start)
        for (same, axes, part), stop in zip(
            sources[own_kinds], itertools.accumulate(map(len, parts)), strict=True
        ):
            same.within.append(Within(axes, group, rows[stop - len(part) : stop]))
        groups.append(group)
        first, start = group.numbers.stop, group.places.stop
    for same in tables:
        same.within.sort(key=lambda own: (len(own.axes), own.axes))
    return groups, tables


def _distinct_rows(rows: IntArray) -> tuple[IntArray, IntArray]:
    """The sorted different rows, and the position of each row among them."""
    # A first key of zeros, because rows of the empty set have no columns.
    order = np.lexsort((np.zeros(len(rows)), *rows.T[::-1]))
    ranked = rows[order]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (ranked[1:] != ranked[:-1]).any(axis=1)
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    return ranked[new], place
