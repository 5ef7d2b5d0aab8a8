"""Sources of records from SQL queries, in DuckDB or on a PostgreSQL server."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from geomdp.data.readers import CHUNK_ROWS
from geomdp.data.sources.connection import opened
from geomdp.data.sources.failures import (
    duckdb_failure,
    postgresql_failure,
    postgresql_refusal,
)
from geomdp.data.sources.source import Source

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

POSTGRESQL = ("postgresql://", "postgres://")


@dataclass(frozen=True, repr=False)
class Query(Source):
    """The rows of a SQL query.

    Parameters
    ----------
    sql : str
        One SELECT statement. In DuckDB it can read files: ``SELECT * FROM 'a/*.parquet'``.
    database : str, optional
        A PostgreSQL server as ``postgresql://user:password@host/database``, or a DuckDB file. The
        file is opened for reading only. By default DuckDB runs the query without a database.

    Notes
    -----
    The query can run twice, for instance to find the row with a wrong value. The result must not
    change between the two runs.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> pd.DataFrame({"age": [30, 40, 50]}).to_csv("survey.csv", index=False)
    >>> source = gd.data.Query("SELECT age FROM 'survey.csv' WHERE age >= 40")
    >>> [chunk["age"].tolist() for chunk in source.chunks(["age"])]
    [[40, 50]]
    """

    sql: str
    database: str | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Always "the query", because the SQL can contain values and `database` a password."""
        return "the query"

    def chunks(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Chunks of the result, in the order of the query."""
        with self.relation(columns) as relation:
            for name in columns:
                if relation.columns.count(name) != 1:
                    raise ValueError(
                        f"the query must have the column {name!r} once, "
                        f"got {relation.columns.count(name)} times"
                    )
            for batch in relation.to_arrow_reader(CHUNK_ROWS):
                if batch.num_rows > 0:
                    yield batch.to_pandas()[list(columns)]

    @contextmanager
    def relation(self, columns: Sequence[str]) -> Iterator[duckdb.DuckDBPyRelation]:
        """The result, computed while it is read."""
        del columns
        import duckdb

        server = self.database is not None and self.database.startswith(POSTGRESQL)
        try:
            with (_from_postgresql if server else _from_duckdb)(
                self.sql, self.database
            ) as relation:
                yield relation
        except (duckdb.Error, OSError) as error:
            # The text of the error may contain values. `from None` hides it from the traceback.
            raise ValueError(f"the query fails: {duckdb_failure(error)}") from None


@contextmanager
def _from_duckdb(sql: str, database: str | None) -> Iterator[duckdb.DuckDBPyRelation]:
    import duckdb

    if database is not None and not os.path.isfile(database):
        # The message does not quote `database`: it can be a misspelt address with a password.
        raise ValueError(
            "database must be an address postgresql://USER@HOST/NAME or a DuckDB file that "
            "exists, got neither"
        )
    with opened(database) as connection:
        statements = connection.extract_statements(sql)
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            raise ValueError("the query must be one SELECT statement")
        yield connection.sql(sql)


@contextmanager
def _from_postgresql(sql: str, database: str | None) -> Iterator[duckdb.DuckDBPyRelation]:
    """The result as a stream of Arrow batches, which the driver reads by COPY."""
    try:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi
    except ImportError as error:
        raise ValueError(
            'PostgreSQL needs the extra "postgresql": pip install "geomdp[postgresql]"'
        ) from error
    try:
        server = dbapi.connect(database)
    except Error as error:
        reason = postgresql_refusal(error)
        raise ValueError(f"PostgreSQL refuses the connection: {reason}") from None
    try:
        with server, server.cursor() as cursor:
            cursor.execute(sql)
            with opened(None) as connection:
                yield connection.from_arrow(cursor.fetch_record_batch())
    except Error as error:
        raise ValueError(f"PostgreSQL refuses the query: {postgresql_failure(error)}") from None
