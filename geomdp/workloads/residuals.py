"""Residuals of tables: a few sums over records for each set of columns determine all tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp.workloads.base import WorkloadSizeError
from geomdp.workloads.tables import TableQueries

#: Largest number of pairs of a table and a set of columns within it. All 3-way tables of 100
#: columns have 1.3 million pairs, which are listed in a second.
MAX_PAIRS = 1 << 24


class Residuals:
    """Differences of counts, for each set of columns. They determine all tables of a workload.

    The coordinates of the residual of a set A are whole numbers: for each column of A, the count of
    level 0 minus that of another level. With the histogram h, a vector 1 of ones and C_i = [1, -I]
    of shape (l_i - 1, l_i) for a column of l_i levels,

        y_A = (tensor over i in A of C_i, and of 1^T over the other columns) h.

    The sets A are the subsets of tables without columns of a single level; the empty set gives the
    number of records. A table T is the sum over A within T of

        (tensor over i in A of C_i^+, and of the vectors 1 / l_i over the other columns of T) y_A.

    Both directions take O(k) additions for each cell of a k-way table, without matrices. More than
    2^24 pairs of a table and a set within it raise `WorkloadSizeError`. Source: Xiao-He-Zhang-Kifer
    2023 (ResidualPlanner); formula sheet X-RES.
    """

    def __init__(self, workload: TableQueries) -> None:
        pairs = sum(2 ** len(table) for table in workload.tables)
        if pairs > MAX_PAIRS:
            raise WorkloadSizeError(
                f"tables must have at most 2^24 subsets of columns in all, got {pairs}"
            )
        self.workload = workload
        #: The sets of columns and the tables, each by shape.
        self.groups, self.tables = sets_in_tables(workload)

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
        to each answer of T.
        """
        found = np.zeros(self.count)
        for tables in self.tables:
            squares = self.workload.table_weights[tables.numbers] ** 2 * math.prod(tables.shape)
            for own in tables.within:
                numbers = own.group.first + own.rows
                share = _cell_share(tables.shape, own.axes)
                found += np.bincount(numbers, squares * share, minlength=self.count)
        return found

    def cell_variances(self, variances: FloatArray) -> FloatArray:
        """Variance of each answer (m,), for noise of variance `variances[A]` on each residual A."""
        by_table = np.zeros(len(self.workload.tables))
        for tables in self.tables:
            for own in tables.within:
                share = _cell_share(tables.shape, own.axes)
                by_table[tables.numbers] += share * variances[own.group.first + own.rows]
        return np.repeat(by_table * self.workload.table_weights**2, self.workload.table_sizes)

    def of_counts(self, counts: FloatArray) -> FloatArray:
        """Residuals (b, dimension) from the counts (b, m) of all cells, exact below 2^53."""
        found = np.empty((len(counts), self.dimension))
        for tables in self.tables:
            for block in tables.blocks(len(counts)):
                cells = counts[:, tables.places(block)].reshape(len(counts), -1, *tables.shape)
                for axis in range(2, cells.ndim):
                    _to_sum_and_differences(cells, axis)
                for own in tables.within:
                    target = self._rows(found, own.group)
                    part = cells[tables.part(own)]
                    target[:, own.rows[block]] = part.reshape(*cells.shape[:2], own.group.size)
        return found

    def to_answers(self, coordinates: FloatArray) -> FloatArray:
        """Answers (b, m), the weighted cells of all tables, from coordinates (b, dimension)."""
        # Coordinates can be objects, such as numbers with error bounds (`arb`).
        count, kind = len(coordinates), coordinates.dtype
        answers = np.empty((count, self.workload.n_queries), dtype=kind)
        for tables in self.tables:
            weights = self.workload.table_weights[tables.numbers]
            for block in tables.blocks(count):
                cells = np.empty((count, len(tables.numbers[block]), *tables.shape), dtype=kind)
                for own in tables.within:
                    part = cells[tables.part(own)]
                    known = self._rows(coordinates, own.group)[:, own.rows[block]]
                    part[...] = known.reshape(part.shape)
                for axis in range(2, cells.ndim):
                    _from_sum_and_differences(cells, axis)
                flat = cells.reshape(*cells.shape[:2], -1)
                answers[:, tables.places(block)] = flat * weights[block, None]
        return answers

    def _rows(self, coordinates: FloatArray, group: ColumnSets) -> FloatArray:
        return coordinates[:, group.places].reshape(len(coordinates), group.count, group.size)

    def squared_lengths(self, coordinates: FloatArray) -> FloatArray:
        """Squared lengths (b, sets) y^T (C C^T)^-1 y, with (C_i C_i^T)^-1 = I - 11^T / l_i."""
        found = np.empty((len(coordinates), self.count))
        for group in self.groups:
            rows = self._rows(coordinates, group)
            own = rows.reshape(*rows.shape[:2], *(levels - 1 for levels in group.shape))
            solved = own
            for axis, levels in enumerate(group.shape, start=2):
                solved = solved - solved.sum(axis=axis, keepdims=True) / levels
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
    # The differences x_0 - x_j for j = 1..l-1 add up to l x_0 - sum of x.
    moved[0] = moved.sum(axis=0) / len(moved)
    np.subtract(moved[0], moved[1:], out=moved[1:])


def _cell_share(shape: tuple[int, ...], axes: tuple[int, ...]) -> float:
    """Variance of one cell of a table, for noise of variance 1 on the residual of some axes."""
    factors = ((1 - 1 / n) if i in axes else 1 / n**2 for i, n in enumerate(shape))
    return math.prod(factors)


# The sets of columns within the tables of a workload, in arrays for each shape.


#: Number of cells of tables that are transformed at a time: 2^21 float64 are 16 MB.
BLOCK_CELLS = 1 << 21
#: To find distinct rows of column numbers, each row is turned into one whole number, the key. This
#: is done only if all keys are below `LARGEST_KEY`, so that they fit in an int64.
LARGEST_KEY = 1 << 62


@dataclass(frozen=True, eq=False)
class ColumnSets:
    """The sets `columns` (c, j) of one shape; `first` and `start` place them among all groups."""

    shape: tuple[int, ...]
    columns: IntArray
    first: int
    start: int

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
    """The tables of one shape: `numbers` (t,), first cells `starts` (t,), and sets `within`."""

    shape: tuple[int, ...]
    numbers: IntArray
    starts: IntArray
    within: list[Within]

    def blocks(self, copies: int) -> Iterator[slice]:
        """Slices of the tables, of one table or with at most 2^21 cells in `copies` copies."""
        step = max(1, BLOCK_CELLS // (math.prod(self.shape) * max(copies, 1)))
        return (slice(a, a + step) for a in range(0, len(self.numbers), step))

    def places(self, block: slice) -> IntArray:
        """The query numbers (b, cells) of the cells of each table in `block`."""
        return np.asarray(self.starts[block, None] + np.arange(math.prod(self.shape)))

    def part(self, own: Within) -> tuple[slice, ...]:
        """Index of the sets `own` in tables (b, tables, *shape) of a sum, then differences."""
        chosen = (slice(1, None) if i in own.axes else slice(0, 1) for i in range(len(self.shape)))
        return (slice(None), slice(None), *chosen)


def sets_in_tables(workload: TableQueries) -> tuple[list[ColumnSets], list[SameShape]]:
    """The sets of columns of several levels (first the empty set) and the tables, both by shape."""
    numbers: dict[tuple[int, ...], list[int]] = {}
    for number, table in enumerate(workload.tables):
        numbers.setdefault(workload.shape(table), []).append(number)
    starts = np.array([place.start for place in workload.slices], dtype=np.int64)
    tables = [SameShape(shape, np.array(own), starts[own], []) for shape, own in numbers.items()]
    columns = {
        shape: np.array([workload.tables[number] for number in own], dtype=np.int64)
        for shape, own in numbers.items()
    }
    # The sets of one shape are at some axes of the tables of several shapes.
    sources: dict[tuple[int, ...], list[tuple[SameShape, tuple[int, ...]]]] = {}
    for same in tables:
        varying = [axis for axis, levels in enumerate(same.shape) if levels > 1]
        for size in range(len(varying) + 1):
            for axes in itertools.combinations(varying, size):
                shape = tuple(same.shape[axis] for axis in axes)
                sources.setdefault(shape, []).append((same, axes))
    groups: list[ColumnSets] = []
    first = start = 0
    for shape in sorted(sources, key=lambda levels: (len(levels), levels)):
        parts = [columns[same.shape][:, list(axes)] for same, axes in sources[shape]]
        distinct, rows = _distinct_rows(np.concatenate(parts), len(workload.levels))
        group = ColumnSets(shape, distinct, first, start)
        ends = np.cumsum([len(part) for part in parts])[:-1]
        for (same, axes), own_rows in zip(sources[shape], np.split(rows, ends), strict=True):
            same.within.append(Within(axes, group, own_rows))
        groups.append(group)
        first, start = group.numbers.stop, group.places.stop
    for same in tables:
        same.within.sort(key=lambda own: (len(own.axes), own.axes))
    return groups, tables


def _distinct_rows(rows: IntArray, base: int) -> tuple[IntArray, IntArray]:
    """The sorted different rows and the position of each row; all entries are below `base`."""
    width = rows.shape[1]
    if base**width >= LARGEST_KEY:
        distinct, place = np.unique(rows, axis=0, return_inverse=True)
        return distinct, place.ravel()
    keys = rows @ np.array([base ** (width - 1 - i) for i in range(width)], dtype=np.int64)
    _, where, place = np.unique(keys, return_index=True, return_inverse=True)
    return rows[where], place
