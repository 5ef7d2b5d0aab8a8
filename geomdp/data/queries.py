"""Records from a SQL query, in DuckDB or on a PostgreSQL server.

The query runs as a part of a larger one that only reads, so it can be nothing but one SELECT. What
fails is said without values of records: an error of a database often quotes a value that the
database could not convert.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING

from geomdp.data.frames import CHUNK_ROWS, RecordsError, Source

if TYPE_CHECKING:
    import adbc_driver_manager
    import duckdb
    import pyarrow as pa

POSTGRESQL = ("postgresql://", "postgres://")
#: Operators of a plan of DuckDB that read texts, whose types DuckDB may find from the values.
TEXT_SCANS = ("READ_CSV", "READ_JSON", "READ_NDJSON", "READ_XLSX")
#: A call in SQL that reads a text file, and the argument that keeps DuckDB from finding the types.
TEXT_READER = re.compile(r"\bread_(?:csv|json|ndjson|xlsx)\w*\s*\(", re.IGNORECASE)
DECLARED = re.compile(r"\bauto_detect\s*:?=\s*'?false\b", re.IGNORECASE)
#: DuckDB types that Arrow lacks or cannot hold exactly. Their values travel as texts.
AS_TEXT = ("HUGEINT", "UHUGEINT", "BIGNUM", "VARINT", "UUID", "BIT", "TIME WITH TIME ZONE")
#: Kinds of DuckDB errors about the query, the names in it, or files. For these kinds, the first
#: line of the message is passed on. It can quote the query, names of columns and paths of files.
UNREAD = frozenset({"ParserException", "BinderException", "CatalogException", "IOException"})
#: First two characters of the SQLSTATE code that PostgreSQL gives to a query with wrong syntax,
#: unknown names or missing rights.
UNREADABLE = "42"
#: The kind of the error at the start of a message of DuckDB.
KIND = re.compile(r"[A-Z][A-Za-z ]{0,40} Error(?=:)")
#: Messages with a place: a line of a CSV file, or a line and a column of the query. If the line of
#: the query is short, DuckDB repeats all of it, and marks the column by ^ in the line below.
CSV_LINE = re.compile(r"[A-Z][A-Za-z ]{0,40} Error: CSV Error on Line: (\d+)\n")
QUERY_PLACE = re.compile(r"\nLINE (\d+): (?!\.\.\.)[^\n]*\n( *)\^+\Z")

#: Reasons of the driver of PostgreSQL for a refused connection, in its own words.
REFUSALS = (
    "Connection refused",
    "No such file or directory",
    "authentication failed",
    "could not translate host name",
    "does not exist",
    "no password supplied",
    "timeout expired",
)


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

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        server = self.database is not None and self.database.startswith(POSTGRESQL)
        read = _from_postgresql if server else _from_duckdb
        return read(self.sql, self.database, list(columns))


def _from_duckdb(sql: str, database: str | None, columns: list[str]) -> Iterator[pa.RecordBatch]:
    import duckdb

    if database is not None and not os.path.isfile(database):
        # The message does not quote `database`: it can be a misspelt address with a password.
        raise RecordsError(
            "database must be an address postgresql://USER@HOST/NAME or a DuckDB file that "
            "exists, got neither"
        )
    try:
        with opened(database) as connection:
            statements = connection.extract_statements(sql)
            if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
                raise RecordsError("the query must be one SELECT statement")
            whole = _subquery(statements[0].query)
            _check_scans(connection, whole)
            relation = connection.sql(whole)
            kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
            _check_columns(columns, relation.columns)
            names = [
                f"{_quoted(name)}::VARCHAR AS {_quoted(name)}"
                if kinds[name] in AS_TEXT
                else _quoted(name)
                for name in columns
            ]
            chosen = connection.sql(_subquery(statements[0].query, ", ".join(names)))
            yield from chosen.to_arrow_reader(CHUNK_ROWS)
            return
    except RecordsError:
        raise
    except (duckdb.Error, OSError) as error:  # an OSError comes from a stream that fails
        failure = duckdb_failure(error)
    raise RecordsError(f"the query fails: {failure}")


def _subquery(sql: str, columns: str = "*") -> str:
    """`sql` as the only part of a query that reads its rows. `sql` may end in a comment."""
    return f"SELECT {columns} FROM (\n{sql.rstrip().removesuffix(';')}\n) AS records"


def _quoted(name: str) -> str:
    """`name` as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _check_columns(columns: Sequence[str], found: Sequence[str]) -> None:
    for name in columns:
        if found.count(name) != 1:
            raise RecordsError(
                f"the query must have the column {name!r} once, got {found.count(name)} times"
            )


def _check_scans(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Refuse a query in which DuckDB would find the types of a text file from its values.

    One record could change the type, and so the codes, of all others.
    """
    plan = connection.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchall()[0][1]
    scans = {scan for scan in TEXT_SCANS if scan in plan}
    if not scans:
        return
    readers, declared = len(TEXT_READER.findall(sql)), len(DECLARED.findall(sql))
    if readers == 0 or declared < readers or any(f"{scan}_AUTO" in plan for scan in scans):
        raise RecordsError(
            "the query reads a text file whose types DuckDB would find from all values; give "
            "geomdp the file itself, or declare the types: read_csv('FILE', auto_detect = false, "
            "header = true, columns = {'NAME': 'VARCHAR'})"
        )


def _from_postgresql(
    sql: str, database: str | None, columns: list[str]
) -> Iterator[pa.RecordBatch]:
    """The rows as Arrow batches, read by COPY in a transaction that only reads."""
    try:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi
    except ImportError as error:
        raise RecordsError(
            'PostgreSQL needs the extra "postgresql": pip install "geomdp[postgresql]"'
        ) from error
    try:
        server = dbapi.connect(database)
    except Error as error:
        failure = f"the connection: {postgresql_refusal(error)}"
    else:
        try:
            with server, server.cursor() as cursor:
                cursor.execute("SET TRANSACTION READ ONLY")
                cursor.execute(_subquery(sql))
                reader = cursor.fetch_record_batch()
                _check_columns(columns, reader.schema.names)
                for batch in reader:
                    for start in range(0, batch.num_rows, CHUNK_ROWS):
                        yield batch.select(columns).slice(start, CHUNK_ROWS)
                return
        except Error as error:
            failure = f"the query: {postgresql_failure(error)}"
    raise RecordsError(f"PostgreSQL refuses {failure}")


def duckdb_failure(error: Exception) -> str:
    """A message of one line about a query that failed in DuckDB, without values of records.

    Parameters
    ----------
    error : duckdb.Error, or OSError
        The error. While a result is read as a stream, DuckDB raises `OSError`.
    """
    text = str(error).strip()
    if type(error).__name__ in UNREAD:
        return text.partition("\n")[0]
    kind = KIND.match(text)
    said = kind.group() if kind else type(error).__name__
    if row := CSV_LINE.match(text):
        return f"{said} on line {row.group(1)} of a CSV file"
    if place := QUERY_PLACE.search(text):
        column = len(place.group(2)) - len(f"LINE {place.group(1)}: ") + 1
        line = int(place.group(1)) - 1  # `_subquery` writes the query after its own first line
        return f"{said} at line {line}, column {column} of the query"
    return said


def postgresql_failure(error: adbc_driver_manager.Error) -> str:
    """A message of one line about a query that failed in PostgreSQL, without values of records."""
    state = error.sqlstate or ""
    if state.startswith(UNREADABLE):
        return str(error).strip().partition("\n")[0]
    return f"error {state} (SQLSTATE)" if state.isalnum() else type(error).__name__


def postgresql_refusal(error: adbc_driver_manager.Error) -> str:
    """The reason of a refused connection, without any part of the address.

    The driver quotes the part of an address that it cannot use. In a malformed address this part
    can be the password, so only the reasons in `REFUSALS` are passed on.
    """
    text = str(error)
    hidden = "the address or the server is wrong (details are hidden: they can hold a password)"
    return next((reason for reason in REFUSALS if reason in text), hidden)


@contextmanager
def opened(database: str | None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to the DuckDB file `database`, which is opened for reading only.

    If `database` is None, the connection is to a new empty database.
    """
    import duckdb

    with duckdb.connect(
        database or ":memory:",
        read_only=database is not None,
        config={"temp_directory": spill_folder(os.getpid())},
    ) as connection:
        yield connection


#: The folder of each process, by the id of the process. A forked process inherits the entries that
#: were made before the fork.
_FOLDERS: dict[int, str] = {}


def spill_folder(process: int) -> str:
    """The folder for data that the databases of the process with this id cannot hold in memory.

    Such data can be records. By default DuckDB would write the data to the working folder, or next
    to a database file, where other users may read it. The folder made here has mode 0700. It is
    deleted when the interpreter or a process of `multiprocessing` exits normally. It remains if the
    process is killed or calls `os._exit`. All threads of a process get the same folder.
    """
    if process not in _FOLDERS:
        made = tempfile.mkdtemp(prefix="geomdp-")
        if _FOLDERS.setdefault(process, made) is made:
            # Forked processes of `multiprocessing` do not run the functions of `atexit`. A process
            # that is forked later inherits this call but does not run it.
            Finalize(None, shutil.rmtree, (made,), {"ignore_errors": True}, exitpriority=0)
        else:  # another thread was faster
            os.rmdir(made)
    return _FOLDERS[process]
