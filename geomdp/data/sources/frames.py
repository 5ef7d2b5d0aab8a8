"""Records in memory: pandas and polars data frames, Arrow tables."""

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
        """Kind and number of rows."""
        return f"{type(self.frame).__name__} of {len(self.frame)} rows"

    def chunks(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Chunks as pandas frames."""
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
        """The frame through Arrow; None for one chunk, or where a column mixes types."""
        table = None if len(self.frame) <= CHUNK_ROWS else _arrow(self.frame, list(columns))
        if table is None:
            yield None
            return
        with connected() as connection:
            yield connection.from_arrow(table)


def is_frame(records: object) -> bool:
    """Whether `records` are a data frame or an Arrow table, without importing what it is not.

    A LazyFrame of polars raises ``ValueError``.
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
    """`CHUNK_ROWS` rows from `start` on as a pandas frame."""
    if is_polars(frame):
        return frame.select(columns)[start : start + CHUNK_ROWS].to_pandas()
    if type(frame).__name__ == "Table":
        rows: pd.DataFrame = frame.select(columns).slice(start, CHUNK_ROWS).to_pandas()
        return rows
    chosen: pd.DataFrame = frame.loc[:, columns].iloc[start : start + CHUNK_ROWS]
    return chosen


def _arrow(frame: Any, columns: list[str]) -> pa.Table | None:
    """The columns as an Arrow table; None where Arrow would change a value or cannot hold it."""
    if len(set(columns)) < len(columns) or not set(columns) <= set(_names(frame)):
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
    # Arrow makes one type of a column of Python objects: 1 and 1.5 become reals, which is the same
    # to us only where all are texts.
    objects = [name for name in columns if frame[name].dtype == object]
    texts = (pa.string(), pa.large_string())
    return table if all(table.schema.field(name).type in texts for name in objects) else None
