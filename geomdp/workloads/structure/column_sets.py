"""The sets of columns within the tables of a workload, in arrays for each shape."""

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
    varying = [i for i, levels in enumerate(shape) if levels > 1]
    sizes = range(len(varying) + 1)
    return [axes for size in sizes for axes in itertools.combinations(varying, size)]


_ByShape = dict[tuple[int, ...], tuple[IntArray, IntArray]]


def _columns_by_shape(workload: TableQueries) -> _ByShape:
    """For each shape, the numbers (t,) and the columns (t, k) of its t tables."""
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
    """All groups of sets, and the positions (t,) in their groups by shape and axes."""
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
    """The sorted different rows and the position of each row; all entries are below `base`."""
    width = rows.shape[1]
    if base**width >= LARGEST_KEY:
        distinct, place = np.unique(rows, axis=0, return_inverse=True)
        return distinct, place.ravel()
    keys = rows @ np.array([base ** (width - 1 - i) for i in range(width)], dtype=np.int64)
    _, where, place = np.unique(keys, return_index=True, return_inverse=True)
    return rows[where], place
