"""A source of records, which is read in chunks, or by DuckDB if DuckDB reads the same values."""

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

    Reading is lazy: the constructor of a source reads no records.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> source = gd.data.source_of(pd.DataFrame({"age": [30, 40, 50], "smoker": [0, 1, 0]}))
    >>> [chunk["age"].tolist() for chunk in source.chunks(["age"])]
    [[30, 40, 50]]
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Name of the records in messages."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    @property
    def parts(self) -> tuple[Source, ...]:
        """The parts of this source, in order. A cluster reads each part separately."""
        return (self,)

    @abc.abstractmethod
    def chunks(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Chunks of the chosen columns, in order. A chunk is made only when it is needed.

        Raises
        ------
        ValueError
            For a missing column or a malformed file.
        """

    @contextmanager
    def relation(self, columns: Sequence[str]) -> Iterator[duckdb.DuckDBPyRelation | None]:
        """The records as a DuckDB relation, in any order.

        The values must be equal to the values from `chunks`, but may have other types. If DuckDB
        may read different values, or would not be faster, the result is None.

        Yields
        ------
        DuckDBPyRelation or None
            Valid inside the context.
        """
        del columns
        yield None
