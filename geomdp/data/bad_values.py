"""Collect the places of values that do not fit a schema, so that one error names several."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from geomdp._typing import BoolArray, IntArray

#: Largest number of bad values that one error names.
NAMED = 10


@dataclass(frozen=True)
class _BadValue:
    """Row and column of a value, and what it must be. The value is private and is not kept."""

    row: int
    column: str
    wanted: str


@dataclass
class BadValues:
    """The places of the bad values found so far. One error names up to `NAMED` of them."""

    places: list[_BadValue] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.places)

    @property
    def enough(self) -> bool:
        """Whether there are more bad values than an error names, so the search can stop."""
        return len(self.places) > NAMED

    def add(self, bad: BoolArray, wanted: str, column: str, rows: IntArray) -> None:
        """Record the places of the bad values of one column.

        `rows` (n,) are the row numbers of the values. `bad` (n,) is true for a bad value. A call
        keeps only its first 11 places, because an error names 10 and says whether there are more.
        """
        found = rows[np.flatnonzero(bad)[: NAMED + 1]]
        self.places += [_BadValue(int(row), column, wanted) for row in found]

    def error(self) -> ValueError:
        """An error that names the first bad values by row and column."""
        # The sort is stable: within a row, columns stay in the order of the schema.
        named = sorted(self.places, key=lambda place: place.row)[:NAMED]
        groups: dict[tuple[str, str], list[int]] = {}
        for place in named:
            groups.setdefault((place.wanted, place.column), []).append(place.row)
        parts = [
            f"{wanted}: row {rows[0]}, column {column!r} is not{_nor(rows[1:])}"
            for (wanted, column), rows in groups.items()
        ]
        counted = "rows are counted from 0, without the header"
        if len(self.places) > NAMED:
            counted += f"; there are more, the first {NAMED} are named"
        return ValueError(f"records must be {'; must be '.join(parts)} ({counted})")


def _nor(rows: list[int]) -> str:
    """Words for more rows of the same column: ``, nor is row 3`` or ``, nor are rows 3 and 8``."""
    match rows:
        case []:
            return ""
        case [row]:
            return f", nor is row {row}"
        case [*others, last]:
            return f", nor are rows {', '.join(map(str, others))} and {last}"
    raise AssertionError(rows)
