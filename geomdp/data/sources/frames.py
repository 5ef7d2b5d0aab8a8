"""Sources of records in memory: data frames of pandas and polars, and Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from geomdp.data.dtypes import is_lazy, is_polars
from geomdp.data.readers import CHUNK_ROWS
from geomdp.data.sources.connection import connected
from geomdp.data.sources.source import Source

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa


@dataclass(frozen=True, repr=False, eq=False)
class Frame(Source):
    """A data frame of pandas or polars, or an Arrow table."""

    frame: pd.DataFrame | pl.DataFrame | pa.Table

    @property
    def name(self) -> str:
        """The type of the frame and its number of rows."""
        return f"{type(self.frame).__name__} of {len(self.frame)} rows"

    def chunks(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """The given columns of all rows, as pandas frames of up to `CHUNK_ROWS` rows."""
        found = list(_names(self.frame))
        for name in columns:
            if found.count(name) != 1:
                raise ValueError(
                    f"records must have the column {name!r} once, got {found.count(name)} times"
                )
        for start in range(0, len(self.frame), CHUNK_ROWS):
            yield _pandas_rows(self.frame, list(columns), start)

    @contextmanager
    def relation(self, columns: Sequence[str]) -> Iterator[duckdb.DuckDBPyRelation | None]:
        """The frame as a DuckDB relation, by way of Arrow.

        The result is None if the frame has only one chunk, because DuckDB is then not faster. It is
        also None if a column is missing or repeated, or if Arrow could change the values of a
        column, for instance because the column mixes types.
        """
        table = None if len(self.frame) <= CHUNK_ROWS else _arrow(self.frame, list(columns))
        if table is None:
            yield None
            return
        with connected() as connection:
            yield connection.from_arrow(table)


def is_frame(records: object) -> bool:
    """Whether `records` are a data frame of pandas or polars, or an Arrow table.

    No library is imported for the test. A LazyFrame of polars raises ``ValueError``.
    """
    if is_lazy(records):
        raise ValueError("records must be DataFrames, got a LazyFrame: call its collect() first")
    kind = type(records)
    return is_polars(records) or (kind.__name__, kind.__module__.partition(".")[0]) in (
        ("DataFrame", "pandas"),
        ("Table", "pyarrow"),
    )


def _names(frame: Any) -> Sequence[str]:
    names: Sequence[str] = frame.column_names if type(frame).__name__ == "Table" else frame.columns
    return names


def _pandas_rows(frame: Any, columns: list[str], start: int) -> pd.DataFrame:
    """A pandas frame of up to `CHUNK_ROWS` rows, from row `start` on."""
    if is_polars(frame):
        return frame.select(columns)[start : start + CHUNK_ROWS].to_pandas()
    if type(frame).__name__ == "Table":
        rows: pd.DataFrame = frame.select(columns).slice(start, CHUNK_ROWS).to_pandas()
        return rows
    chosen: pd.DataFrame = frame.loc[:, columns].iloc[start : start + CHUNK_ROWS]
    return chosen


def _arrow(frame: Any, columns: list[str]) -> pa.Table | None:
    """The columns as an Arrow table.

    The result is None if a name is missing or repeated, or if Arrow could change a value or cannot
    hold it.
    """
    names = list(_names(frame))
    if len(set(columns)) < len(columns) or any(names.count(name) != 1 for name in columns):
        return None
    if is_polars(frame):
        return frame.select(columns).to_arrow()
    if type(frame).__name__ == "Table":
        return frame.select(columns)
    import pyarrow as pa

    try:
        table = pa.Table.from_pandas(frame.loc[:, columns], preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return None
    # Arrow converts a column of Python objects to one type: 1 and 1.5 both become reals. If all
    # objects are texts, no value changes.
    objects = [name for name in columns if frame[name].dtype == object]
    texts = (pa.string(), pa.large_string())
    return table if all(table.schema.field(name).type in texts for name in objects) else None
