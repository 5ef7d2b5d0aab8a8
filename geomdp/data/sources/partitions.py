"""A Dask DataFrame as a source of records. A partition is computed when it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from geomdp.data.sources.frames import Frame
from geomdp.data.sources.source import Source

if TYPE_CHECKING:
    import dask.dataframe as dd
    import duckdb
    import pandas as pd


@dataclass(frozen=True, repr=False, eq=False)
class Partitions(Source):
    """The partitions of a Dask DataFrame, in order."""

    frame: dd.DataFrame

    @property
    def name(self) -> str:
        """The kind of source, and its number of partitions."""
        return f"Dask DataFrame of {self.frame.npartitions} partitions"

    @property
    def parts(self) -> tuple[Source, ...]:
        """One source for each partition."""
        frame: Any = self.frame  # Dask's methods have no type annotations
        delayed = frame.to_delayed()
        return tuple(Partition(number, part) for number, part in enumerate(delayed))

    def chunks(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Chunks of all partitions, one partition after the other."""
        for part in self.parts:
            yield from part.chunks(columns)


@dataclass(frozen=True, repr=False, eq=False)
class Partition(Source):
    """One partition. Reading computes the partition and brings its records into this process."""

    number: int
    delayed: Any

    @property
    def name(self) -> str:
        """Number of the partition, from 0."""
        return f"partition {self.number}"

    def chunks(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Chunks of the computed frame."""
        yield from Frame(self.delayed.compute()).chunks(columns)

    @contextmanager
    def relation(self, columns: Sequence[str]) -> Iterator[duckdb.DuckDBPyRelation | None]:
        """The computed frame as a DuckDB relation, as from `Frame.relation`."""
        with Frame(self.delayed.compute()).relation(columns) as relation:
            yield relation


def is_dask(records: object) -> TypeGuard[dd.DataFrame]:
    """Whether `records` is a Dask DataFrame. Dask is optional, so it is not imported."""
    kind = type(records)
    return kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "dask"
