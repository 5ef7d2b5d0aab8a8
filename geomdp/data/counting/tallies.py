"""Numbers of records in the cells of tables, and the answers computed from these counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from geomdp._typing import IntArray
from geomdp.data.counting.covering import Table, covering_tables
from geomdp.data.counting.table_sums import TableSums
from geomdp.workloads import Marginals, Parities
from geomdp.workloads.base import Totals, Workload
from geomdp.workloads.finite import FiniteWorkload
from geomdp.workloads.table_queries import TableQueries
from geomdp.workloads.universe.universes import Records, Universe

Codes: TypeAlias = npt.NDArray[np.integer]
#: Number of elements of a universe at which queries are evaluated together.
ELEMENTS = 1 << 12


@dataclass(frozen=True, eq=False)
class Tallies:
    """Number of records in each cell of some tables. `+` adds the counts of two sets of records.

    `cells` has the counts of each table, in row-major order, by its sorted column numbers.
    """

    levels: tuple[int, ...]
    count: int
    cells: dict[Table, IntArray] = field(repr=False)

    @classmethod
    def empty(cls, levels: Sequence[int], tables: Sequence[Table]) -> Tallies:
        """Counts of 0 records in the tables that `covering_tables` chooses for `tables`."""
        cells = {
            table: np.zeros(math.prod(levels[column] for column in table), dtype=np.int64)
            for table in covering_tables(tables, levels)
        }
        return cls(tuple(levels), 0, cells)

    def with_records(self, columns: Sequence[Codes]) -> Tallies:
        """Counts with n more records, by codes (n,) per column. `self` is changed in place."""
        for table, counts in self.cells.items():
            numbers = self._numbers(columns, table, len(counts))
            if len(counts) > len(numbers):
                np.add.at(counts, numbers, 1)
            else:
                counts += np.bincount(numbers, minlength=len(counts))
        return Tallies(self.levels, self.count + len(columns[0]), self.cells)

    def _numbers(self, columns: Sequence[Codes], table: Table, n_cells: int) -> Codes:
        """The cell number (n,) of each record in `table`."""
        kind: type[np.integer] = np.uint16 if n_cells <= 1 << 16 else np.int64
        numbers = columns[table[0]].astype(kind)
        for column in table[1:]:
            numbers *= kind(self.levels[column])
            numbers += columns[column].astype(kind, copy=False)
        return numbers

    def __add__(self, other: Tallies) -> Tallies:
        cells = {table: counts + other.cells[table] for table, counts in self.cells.items()}
        return Tallies(self.levels, self.count + other.count, cells)

    def table(self, columns: Table) -> IntArray:
        """Counts of a table, one axis per column; ``ValueError`` if no counted table has them."""
        (counts,) = self.tables([columns])
        return counts

    def has(self, columns: Table) -> bool:
        return self._sums.has(columns)

    def tables(self, wanted: Sequence[Table]) -> list[IntArray]:
        """As `table` for several tables. Shared sums are computed once."""
        return self._sums.of(wanted)

    @cached_property
    def _sums(self) -> TableSums:
        return TableSums(self.levels, self.cells)


@dataclass(frozen=True, eq=False)
class CountedRecords:
    """Counts of records. A mechanism accepts the counts in place of the records.

    Parameters
    ----------
    universe : Universe
        The universe for which the records were encoded.
    tallies : Tallies
        Counts of the tables of one workload.
    recount : callable, optional
        Counts other tables of the same records, which do not follow from `tallies`.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> schema = gd.data.Schema.from_dict({"region": ["north", "south"], "smoker": bool})
    >>> source = gd.data.source_of(
    ...     pd.DataFrame({"region": ["north", "south", "south"], "smoker": [True, False, True]})
    ... )
    >>> counted = gd.data.count_records(source, schema, schema.workload("marginals", k=2))
    >>> counted.count
    3
    >>> counted.table([0, 1])
    array([[0, 1],
           [1, 1]])
    """

    universe: Universe
    tallies: Tallies = field(repr=False)
    recount: Callable[[Sequence[Table]], Tallies] | None = field(default=None, repr=False)

    @property
    def count(self) -> int:
        """Number of records."""
        return self.tallies.count

    def table(self, columns: Sequence[int]) -> IntArray:
        """Counts of the table of `columns`, with one axis per column, in the order of `columns`.

        ``ValueError`` if no counted table contains all `columns`.
        """
        return self.tallies.table(tuple(columns))

    def with_tables(self, tables: Sequence[Table]) -> CountedRecords:
        """Counts of the same records from which all `tables` follow, counted again if necessary.

        ``ValueError`` if the records cannot be counted again, or their number has changed.
        """
        missing = [table for table in tables if not self.tallies.has(table)]
        if not missing:
            return self
        if self.recount is None:
            raise ValueError(
                f"counts must include the table of columns {missing[0]}, which this mechanism "
                "measures; give the mechanism the records instead"
            )
        tallies = self.recount([table for table in tables if table])
        if tallies.count != self.count:
            raise ValueError(
                f"records must not change between two scans: {self.count} were counted first, then "
                f"{tallies.count}"
            )
        return CountedRecords(self.universe, tallies, self.recount)

    def tables(self, wanted: Sequence[Table]) -> list[IntArray]:
        """As `table` for several tables, which is faster than a call for each."""
        return self.tallies.tables(wanted)

    def histogram(self) -> IntArray:
        """How often each of the N elements of the universe occurs (N,).

        ``ValueError`` if the table of all columns was not counted.
        """
        return self.table(range(len(self.tallies.levels))).ravel()

    def totals(self, workload: Workload) -> Totals:
        """Number of records and the sum of their answers to `workload`.

        ``ValueError`` if the workload is on another universe, or no counted table contains all
        columns of a table of the workload.
        """
        self.require(workload.universe)
        return Totals(self.count, self._sums(workload))

    def cell_counts(self, workload: TableQueries) -> Totals:
        """Numbers of records: all, and in each cell of each table of `workload`, without weights.

        Errors are as for `totals`.
        """
        self.require(workload.universe)
        cells = [counts.ravel() for counts in self.tables(workload.tables)]
        return Totals(self.count, np.concatenate(cells).astype(np.float64))

    def require(self, universe: Universe) -> None:
        """Raise ``ValueError`` if the records were counted for another universe."""
        if universe != self.universe:
            raise ValueError(f"records were counted for {self.universe!r}, not for {universe!r}")

    def _sums(self, workload: Workload) -> npt.NDArray[np.float64]:
        table = self.tallies.table
        match workload:
            case TableQueries():
                return self.cell_counts(workload).sums * workload.weights
            case Marginals() | Parities():
                ones = np.array([_ones(workload, table(tuple(s))) for s in workload.subsets])
                low, high = workload._values
                return low * self.count + (high - low) * ones.astype(np.float64)
        counts = table(tuple(range(len(self.tallies.levels)))).ravel()
        if isinstance(workload, FiniteWorkload):
            return workload._weighted_sum(counts.astype(np.float64))
        sums = np.zeros(workload.n_queries)
        present = np.flatnonzero(counts)
        for start in range(0, len(present), ELEMENTS):
            part = present[start : start + ELEMENTS]
            sums += counts[part] @ workload.evaluate(workload.universe.elements_at(part))
        return sums


def totals_of(workload: Workload, records: Records | Iterable[Records] | CountedRecords) -> Totals:
    if isinstance(records, CountedRecords):
        return records.totals(workload)
    return workload.totals(records)


def _ones(workload: Marginals | Parities, counts: IntArray) -> int:
    """Number of records with answer 1 (`Marginals`) or -1 (`Parities`), from a table of counts."""
    if isinstance(workload, Marginals):
        return int(counts[(1,) * counts.ndim])
    odd = [bits for bits in itertools.product((0, 1), repeat=counts.ndim) if sum(bits) % 2]
    return sum(int(counts[bits]) for bits in odd)
