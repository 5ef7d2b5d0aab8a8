"""Counts of tables, computed as sums over cells of larger counted tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from geomdp._typing import IntArray
from geomdp.data.counting.covering import Table


class TableSums:
    """Computes the counts of a table as sums over cells of a larger table that was counted.

    `cells` has the counts of each table, in row-major order, by its sorted column numbers.
    """

    def __init__(self, levels: tuple[int, ...], cells: Mapping[Table, IntArray]) -> None:
        self._levels, self._cells, self._counted = levels, cells, list(cells)
        # For each column, a whole number. Bit j is 1 if counted table j contains the column.
        self._holders = [0] * len(levels)
        for place, table in enumerate(self._counted):
            for column in table:
                self._holders[column] |= 1 << place

    def of(self, wanted: Sequence[Table]) -> list[IntArray]:
        """Counts of the `wanted` tables, one axis per column; ``ValueError`` if one is not held."""
        by_holder: dict[Table, dict[Table, None]] = {}
        for columns in wanted:
            by_holder.setdefault(self._holder(columns), {})[tuple(sorted(columns))] = None
        summed: dict[Table, IntArray] = {}
        for holder, inside in by_holder.items():
            counts = self._cells[holder].reshape([self._levels[column] for column in holder])
            _add_sums(counts, holder, 0, list(inside), summed)
        found = []
        for columns in wanted:
            kept = tuple(sorted(columns))
            order = [kept.index(column) for column in columns]
            found.append(np.asarray(summed[kept].transpose(order)))
        return found

    def has(self, columns: Table) -> bool:
        """Whether a counted table contains all `columns`."""
        return self._containing(columns) != 0

    def _containing(self, columns: Table) -> int:
        """A number whose bit j is 1 if counted table j contains all `columns`."""
        bits = (1 << len(self._counted)) - 1
        for column in columns:
            bits &= self._holders[column]
        return bits

    def _holder(self, columns: Table) -> Table:
        """The first counted table that contains all `columns`; ``ValueError`` if there is none."""
        bits = self._containing(columns)
        if not bits:
            counted = ", ".join(map(str, self._counted))
            raise ValueError(
                f"the table of columns {columns} was not counted and cannot be summed from the "
                f"tables that were counted: {counted}"
            )
        return self._counted[(bits & -bits).bit_length() - 1]


def _add_sums(
    counts: IntArray,
    columns: Table,
    axis: int,
    wanted: Sequence[Table],
    found: dict[Table, IntArray],
) -> None:
    """Add the tables `wanted` to `found`, as sums over cells of `counts`, the table of `columns`.

    All columns before `axis` are in every wanted table.
    """
    if axis == len(columns):
        found[columns] = counts
        return
    column = columns[axis]
    kept = [table for table in wanted if column in table]
    if kept:
        _add_sums(counts, columns, axis + 1, kept, found)
    if len(kept) < len(wanted):
        rest = [table for table in wanted if column not in table]
        smaller = (*columns[:axis], *columns[axis + 1 :])
        _add_sums(counts.sum(axis=axis), smaller, axis, rest, found)
