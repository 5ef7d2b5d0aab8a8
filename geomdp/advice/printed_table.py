"""A DataFrame that prints all of its columns, with long texts cut short."""

from __future__ import annotations

import pandas as pd

from geomdp.bounds.problem import ALL_DIGITS

#: Texts in cells are printed up to this many characters: names of mechanisms in full, reasons cut.
CELL = 40


class PrintedTable(pd.DataFrame):
    """A table that prints all rows and columns, with long texts cut, and whole numbers in full."""

    @property
    def _constructor(self) -> type[PrintedTable]:
        return PrintedTable

    def __repr__(self) -> str:
        return self.to_string(max_colwidth=CELL, float_format=_number, na_rep="")


def _number(value: float) -> str:
    """Text of a number: all digits if it is a whole number below 10^15, else four digits."""
    whole = value.is_integer() and abs(value) < ALL_DIGITS
    return f"{value:.0f}" if whole else f"{value:.4g}"
