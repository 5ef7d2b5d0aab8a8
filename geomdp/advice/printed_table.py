"""A DataFrame that prints all of its columns, with long texts cut short."""

from __future__ import annotations

import pandas as pd

from geomdp.bounds.problem import ALL_DIGITS

#: Texts in cells are printed up to this many characters. Names of mechanisms are shorter, so they
#: are printed in full. Most sentences in the columns `why` and `statement` are longer and are cut.
CELL = 40


class PrintedTable(pd.DataFrame):
    """A table that prints all rows and columns, with long texts cut, and whole numbers in full.

    By default, pandas leaves out the columns in the middle of a wide table, which hold the errors.
    """

    @property
    def _constructor(self) -> type[PrintedTable]:
        return PrintedTable

    def __repr__(self) -> str:
        return self.to_string(max_colwidth=CELL, float_format=_number, na_rep="")


def _number(value: float) -> str:
    """Text of a number: all digits if it is a whole number below 10^15, else four digits."""
    whole = value.is_integer() and abs(value) < ALL_DIGITS
    return f"{value:.0f}" if whole else f"{value:.4g}"
