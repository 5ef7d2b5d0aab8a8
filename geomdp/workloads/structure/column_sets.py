"""The sets of columns that lie in the tables of a workload, and the tables that contain each set.

Tables of one shape, and sets of columns of one shape, are kept in common arrays.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from geomdp._typing import IntArray
from geomdp.workloads.table_queries import TableQueries

#: Number of cells of tables that are transformed at a time: 2^21 float64 are 16 MB.
BLOCK_CELLS = 1 << 21
#: To find distinct rows of column numbers, each row is turned into one whole number, the key. This
#: is done only if all keys are below `LARGEST_KEY`, so that they fit in an int64.
LARGEST_KEY = 1 << 62


@dataclass(frozen=True, eq=False)
class ColumnSets:
    """A group of sets of columns: all sets of one shape that lie in some table.

    Parameters
    ----------
    shape : tuple of int
        Number of levels of each column of a set, in the order of the columns; all above 1.
    columns : (c, j) array
        The j columns of each of the c sets, increasing.
    first : int
        Position of the first set of the group among the sets of all groups.
    start : int
        Position of the first coordinate of the group's residuals among the coordinates of all
        residuals.
    """

    shape: tuple[int, ...]
    columns: IntArray
    first: int
    start: int

    @property
    def count(self) -> int:
        """Number of sets."""
        return len(self.columns)

    @property
    def size(self) -> int:
        """Number of coordinates of the residual of one set."""
        return math.prod(levels - 1 for levels in self.shape)

    @property
    def numbers(self) -> slice:
        """The positions of these sets among the sets of all groups."""
        return slice(self.first, self.first + self.count)

    @property
    def places(self) -> slice:
        """The positions of the group's residuals among the coordinates of all residuals."""
        return slice(self.start, self.start + self.count * self.size)


@dataclass(frozen=True, eq=False)
class Within:
    """Sets of columns within tables of one shape: for each table, the columns at given axes.

    Parameters
    ----------
    axes : tuple of int
        The axes of a table that hold the columns of its set.
    group : ColumnSets
        The group that contains these sets.
    rows : (t,) array
        For each of the t tables, the position of the table's set in the group.
    """

    axes: tuple[int, ...]
    group: ColumnSets
    rows: IntArray


@dataclass(frozen=True, eq=False)
class SameShape:
    """The tables of one shape.

    Parameters
    ----------
    shape : tuple of int
        Number of levels of each axis.
    numbers : (t,) array
        Positions of these tables among all tables.
    starts : (t,) array
        The position of the first cell of each table among all queries.
    within : list of Within
        The sets of columns within these tables, one entry for each set of axes.
    """

    shape: tuple[int, ...]
    numbers: IntArray
    starts: IntArray
    within: list[Within]

    def blocks(self, copies: int) -> Iterator[slice]:
        """Slices of the tables, so that `copies` copies of a slice have at most 2^21 cells in all.

        If the copies of a single table exceed this limit, the table is a slice by itself.
        """
        step = max(1, BLOCK_CELLS // (math.prod(self.shape) * max(copies, 1)))
        return (slice(a, a + step) for a in range(0, len(self.numbers), step))

    def places(self, block: slice) -> IntArray:
        """The query numbers of the cells of each table in `block`, as an array (b, cells)."""
        return np.asarray(self.starts[block, None] + np.arange(math.prod(self.shape)))

    def part(self, own: Within) -> tuple[slice, ...]:
        """Index of the coordinates of the sets `own` in an array (b, tables, *shape) of tables.

        Each axis of the tables must hold a sum and then differences, as computed by
        `residuals._to_sum_and_differences`.
        """
        chosen = (slice(1, None) if i in own.axes else slice(0, 1) for i in range(len(self.shape)))
        return (slice(None), slice(None), *chosen)


def sets_in_tables(workload: TableQueries) -> tuple[list[ColumnSets], list[SameShape]]:
    """The sets of columns of several levels that lie in some table, and the tables, both by shape.

    The first set is the empty set.
    """
    columns = _columns_by_shape(workload)
    groups, rows = _sets_within(columns, len(workload.levels))
    starts = np.array([place.start for place in workload.slices], dtype=np.int64)
    of_shape = {group.shape: group for group in groups}
    tables = [
        SameShape(
            shape,
            numbers,
            starts[numbers],
            [
                Within(axes, of_shape[tuple(shape[i] for i in axes)], rows[shape, axes])
                for axes in _axes_of(shape)
            ],
        )
        for shape, (numbers, _) in columns.items()
    ]
    return groups, tables


def _axes_of(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All sets of axes, without the axes that have only one level."""
    varying = [i for i, levels in enumerate(shape) if levels > 1]
    sizes = range(len(varying) + 1)
    return [axes for size in sizes for axes in itertools.combinations(varying, size)]


_ByShape = dict[tuple[int, ...], tuple[IntArray, IntArray]]


def _columns_by_shape(workload: TableQueries) -> _ByShape:
    """For each shape, the numbers (t,) and the columns (t, k) of the t tables of this shape."""
    numbers: dict[tuple[int, ...], list[int]] = {}
    for t, table in enumerate(workload.tables):
        numbers.setdefault(workload.shape(table), []).append(t)
    return {
        shape: (np.array(own), np.array([workload.tables[t] for t in own], dtype=np.int64))
        for shape, own in numbers.items()
    }


def _sets_within(
    columns: _ByShape, base: int
) -> tuple[list[ColumnSets], dict[tuple[tuple[int, ...], tuple[int, ...]], IntArray]]:
    """The groups of all sets of columns, and the positions of sets in their groups.

    The second result maps a shape and axes to positions (t,), one for each table of this shape.
    `base` is the number of columns of a record.
    """
    asked: dict[tuple[int, ...], list[tuple[tuple[int, ...], tuple[int, ...]]]] = {}
    for shape in columns:
        for axes in _axes_of(shape):
            asked.setdefault(tuple(shape[i] for i in axes), []).append((shape, axes))
    groups: list[ColumnSets] = []
    rows: dict[tuple[tuple[int, ...], tuple[int, ...]], IntArray] = {}
    first = start = 0
    for own in sorted(asked, key=lambda levels: (len(levels), levels)):
        parts = [columns[shape][1][:, list(axes)] for shape, axes in asked[own]]
        distinct, place = _distinct_rows(np.concatenate(parts), base)
        groups.append(ColumnSets(own, distinct, first, start))
        ends = np.cumsum([len(part) for part in parts])[:-1]
        rows |= dict(zip(asked[own], np.split(place, ends), strict=True))
        first, start = groups[-1].numbers.stop, groups[-1].places.stop
    return groups, rows


def _distinct_rows(rows: IntArray, base: int) -> tuple[IntArray, IntArray]:
    """The different rows, sorted, and the position of each of `rows` among them.

    All entries of `rows` are below `base`.
    """
    width = rows.shape[1]
    if base**width >= LARGEST_KEY:
        distinct, place = np.unique(rows, axis=0, return_inverse=True)
        return distinct, place.ravel()
    keys = rows @ np.array([base ** (width - 1 - i) for i in range(width)], dtype=np.int64)
    _, where, place = np.unique(keys, return_index=True, return_inverse=True)
    return rows[where], place
