"""A source of records: read exactly in chunks, or scanned by DuckDB where that gives the same."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
    import pandas as pd


class Source(abc.ABC):
    """Records that can be read more than once.

    Reading stays lazy: making a source looks at names and headers, not at records.
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """What to call the records in messages."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    @property
    def parts(self) -> tuple[Source, ...]:
        """Sources whose records together are these, in order; a cluster reads them apart."""
        return (self,)

    @abc.abstractmethod
    def chunks(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Chunks of the chosen columns, in order, each read when asked for.

        Raises
        ------
        ValueError
            A column that is not there, or a malformed file.
        """

    @contextmanager
    def relation(self, columns: Sequence[str]) -> Iterator[duckdb.DuckDBPyRelation | None]:
        """The records as a DuckDB relation, in any order; None where DuckDB may read differently.

        A value of the relation must be the value that `chunks` yields, up to its type.

        Yields
        ------
        DuckDBPyRelation or None
            Valid inside the context.
        """
        del columns
        yield None
