"""A DataFrame that prints all of its columns, with long texts cut short."""

from __future__ import annotations

import pandas as pd

from geomdp.bounds.rounding import ALL_DIGITS

#: Texts in cells are printed up to this many characters. Names of mechanisms are shorter, so they
#: are printed in full. Most sentences in the columns `why` and `statement` are longer and are cut.
CELL = 40


class PrintedTable(pd.DataFrame):
    """A table of results that prints all rows and columns, and whole numbers with all digits.

    From 10^15 on, whole numbers of type float are printed with four digits, like other floats.
    If long sentences make a table wide, pandas by default leaves out the columns in the middle. In
    the advisor's table of mechanisms, these columns hold the errors. Long texts are cut in print
    only: the table holds the full texts and numbers.
    """

    @property
    def _constructor(self) -> type[PrintedTable]:
        return PrintedTable

    def __repr__(self) -> str:
        """The table as text, with all rows and columns."""
        return self.to_string(max_colwidth=CELL, float_format=_number, na_rep="")


def _number(value: float) -> str:
    """Text of a number: all digits if it is a whole number below 10^15, else four digits."""
    whole = value.is_integer() and abs(value) < ALL_DIGITS
    return f"{value:.0f}" if whole else f"{value:.4g}"
