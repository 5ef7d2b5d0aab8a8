"""A DataFrame that prints all of its columns, with long texts cut short."""

from __future__ import annotations

import pandas as pd

#: Longest text of a cell; sentences of reasons are cut to it, names of mechanisms are not.
CELL = 40


class PrintedTable(pd.DataFrame):
    """A table of results whose text shows every column and four digits of every number.

    By default pandas leaves out columns in the middle where sentences make a table wide: here those
    are the errors. The values are whole, whatever is printed. All rows are printed, too.
    """

    @property
    def _constructor(self) -> type[PrintedTable]:
        return PrintedTable

    def __repr__(self) -> str:
        """All rows and columns."""
        return self.to_string(
            max_colwidth=CELL, float_format=lambda value: f"{value:.4g}", na_rep=""
        )
