"""Records from a SELECT in DuckDB or PostgreSQL. No error shows a value of a record."""

from __future__ import annotations

import functools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING

from geomdp.data.frames import CHUNK_ROWS, RecordsError, Source, check_columns

if TYPE_CHECKING:
    import adbc_driver_manager
    import duckdb
    import pyarrow as pa

POSTGRESQL = ("postgresql://", "postgres://")
#: Operators of a plan of DuckDB that read texts, and those for which types can be declared.
TEXT_SCAN = re.compile(r'"name": "(READ_(?:CSV|JSON|NDJSON|XLSX)\w*)')
DECLARABLE = frozenset({"READ_CSV", "READ_JSON", "READ_NDJSON"})
#: A call in the words of a query that reads a text file, or runs SQL in a text.
TEXT_READER = re.compile(r"\b(?:read_(?:csv|json|ndjson|xlsx)|query)\w*\"? \(", re.IGNORECASE)


def _declaring(functions: str, arguments: str) -> re.Pattern[str]:
    """A call, in the words of a query, of a function for which an argument is false."""
    others = r"(?:[^()]|\([^()]*\))*"
    return re.compile(
        rf"\b(?:{functions})\"? \({others}"
        rf", (?:\( )?\"?(?:{arguments})\"? (?::?=|=>) false\b(?: \))?{others}\)",
        re.IGNORECASE,
    )


#: Calls that keep DuckDB from finding types in a text file, and in the names of folders.
DECLARED = _declaring("read_csv|read_json|read_ndjson", "auto_detect")
FOLDERS_DECLARED = _declaring(r"read_\w+|parquet_scan", "hive_partitioning|hive_types_autocast")
#: The word of a token. In some versions of DuckDB a token goes on to the end of a comment.
WORD = re.compile(r"\"(?:[^\"]|\"\")*\"|\w+|[^\w\s\"]+")
#: A pattern that can match several folders, and what stands for one that matches such as age=7.
FOLDERS = re.compile(r"[*?\[].*/", re.DOTALL)
DIVIDED = "'='"
#: The definitions of the views and macros of a database.
DEFINITIONS = """
SELECT sql FROM duckdb_views() WHERE NOT internal
UNION ALL SELECT macro_definition FROM duckdb_functions()
WHERE NOT internal AND macro_definition IS NOT NULL
"""
#: DuckDB types that Arrow lacks or cannot hold exactly. Their values travel as texts.
AS_TEXT = ("HUGEINT", "UHUGEINT", "BIGNUM", "VARINT", "UUID", "BIT", "TIME WITH TIME ZONE")
ONE_STATEMENT = "the query must be one SELECT statement"
#: DuckDB errors about the query, its names or files: the first line of the message is passed on.
UNREAD = frozenset({"ParserException", "BinderException", "CatalogException", "IOException"})
#: Start of the SQLSTATE codes for wrong syntax, unknown names and missing rights.
UNREADABLE = "42"
#: The kind of the error at the start of a message of DuckDB.
KIND = re.compile(r"[A-Z][A-Za-z ]{0,40} Error(?=:)")
#: Messages with a place: a line of a CSV file, or a line of the query, with ^ below the column if
#: DuckDB repeats all of it.
CSV_LINE = re.compile(r"[A-Z][A-Za-z ]{0,40} Error: CSV Error on Line: (\d+)\n")
QUERY_PLACE = re.compile(r"\n(LINE (\d+): )(?!\.\.\.)[^\n]*\n( *)\^+\Z")

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
        One SELECT statement. Semicolons and comments may follow. In DuckDB the statement can read
        files: ``SELECT * FROM 'a/*.parquet'``.
    database : str, optional
        A PostgreSQL server as ``postgresql://user:password@host/database``, or a DuckDB file, which
        is opened for reading only. By default DuckDB runs the query without a database.

    Notes
    -----
    The query can run twice, and its result must not change. The account on a PostgreSQL server
    should have the right to read only: the transaction of the query only reads, but this does not
    stop functions with other effects, and a superuser can write files by ``lo_export``.

    DuckDB finds the types of a CSV, JSON or Excel file from its values, so that one record could
    change the others. A query of such a file is refused, unless it declares the types
    (``auto_detect = false``) and reads no database. DuckDB also finds the type of a column that
    comes from the names of folders such as ``age=7``. Such a query is refused, unless it takes the
    names as texts (``hive_types_autocast = false``).

    Examples
    --------
    >>> import geomdp as gd
    >>> source = gd.data.Query("SELECT range AS age FROM range(100) WHERE range >= 98")
    >>> [chunk["age"].tolist() for chunk in source.chunks(["age"])]
    [[98, 99]]
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
            sql = _statement(sql)
            statements = connection.extract_statements(sql)
            if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
                raise RecordsError(ONE_STATEMENT)
            _check_types(connection, sql, database)
            relation = connection.sql(_subquery(sql))
            kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
            check_columns(columns, relation.columns, "the query")
            quoted = [(name, '"' + name.replace('"', '""') + '"') for name in columns]
            casts = [f"{q}::VARCHAR AS {q}" if kinds[n] in AS_TEXT else q for n, q in quoted]
            chosen = connection.sql(_subquery(sql, ", ".join(casts)))
            yield from chosen.to_arrow_reader(CHUNK_ROWS)
            return
    except RecordsError:
        raise
    except (duckdb.Error, OSError) as error:  # an OSError comes from a stream that fails
        failure = duckdb_failure(error)
    raise RecordsError(f"the query fails: {failure}")


def _subquery(sql: str, columns: str = "*") -> str:
    """`sql` as the only part of a query that reads its rows. `sql` may end in a comment."""
    return f"SELECT {columns} FROM (\n{sql}\n) AS records"


def _statement(sql: str) -> str:
    """`sql` up to its first semicolon. Only semicolons and comments may follow."""
    import duckdb

    text = sql.encode()
    tokens = [place for place, kind in duckdb.tokenize(sql) if kind != duckdb.token_type.comment]
    # A token that begins with a semicolon is no text and no name in quotation marks.
    semicolons = [place for place in tokens if text.startswith(b";", place)]
    end = min(semicolons, default=len(text))
    if [place for place in tokens if place >= end] != semicolons:
        raise RecordsError(ONE_STATEMENT)
    return text[:end].decode()


def _check_types(connection: duckdb.DuckDBPyConnection, sql: str, database: str | None) -> None:
    """Refuse a query in which DuckDB would find types from all values or names of folders."""
    with connection.cursor() as planner:
        planner.execute("PRAGMA disable_optimizer")  # a scan without rows still determines types
        plan = planner.execute(f"EXPLAIN (FORMAT JSON) {_subquery(sql)}").fetchall()[0][1]
    scans = TEXT_SCAN.findall(plan)
    undeclared, declared = DECLARED.subn("", _words(connection, sql))
    if scans and (
        database is not None
        or len(scans) > declared
        or not DECLARABLE.issuperset(scans)
        or TEXT_READER.search(undeclared)
    ):
        raise RecordsError(
            "the query reads a text file whose types DuckDB would find from all values; give "
            "geomdp the file itself, or declare the types without a database: read_csv('FILE', "
            "auto_detect = false, header = true, columns = {'NAME': 'VARCHAR'})"
        )
    parts = [(sql,)]
    if database is not None and "PARQUET" in plan:
        parts += connection.execute(DEFINITIONS).fetchall()
    for (part,) in parts:
        if DIVIDED in FOLDERS_DECLARED.sub("", _words(connection, part)):
            raise RecordsError(
                "the query reads a column from the names of folders, such as age=7, whose type "
                "DuckDB would find from all names; take the names as texts: "
                "read_parquet('FILES', hive_types_autocast = false)"
            )


def _words(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The words of `sql`, without comments. Texts are empty; names of files can be `DIVIDED`."""
    import duckdb

    text, tokens, words = sql.encode(), duckdb.tokenize(sql), []
    ends = [place for place, _ in tokens[1:]] + [len(text)]
    for (place, kind), end in zip(tokens, ends, strict=True):
        token = text[place:end].decode()
        word = WORD.match(token)
        if kind == duckdb.token_type.string_const:
            words.append(DIVIDED if _is_divided(connection, token) else "''")
        elif kind != duckdb.token_type.comment and word:
            name = word.group()
            text_of = "'" + name[1:-1].replace('""', '"').replace("'", "''") + "'"
            is_file = name.startswith('"') and _is_divided(connection, text_of)
            words.append(DIVIDED if is_file else name)
    return " ".join(words)


def _is_divided(connection: duckdb.DuckDBPyConnection, pattern: str) -> bool:
    """Whether a text of SQL matches files in several folders, of which one is named as age=7."""
    if not FOLDERS.search(pattern):
        return False
    files = f"SELECT 1 FROM glob({pattern}\n) WHERE file LIKE '%=%/%' LIMIT 1"
    return len(connection.execute(files).fetchall()) > 0


def _from_postgresql(
    sql: str, database: str | None, columns: list[str]
) -> Iterator[pa.RecordBatch]:
    """The rows as Arrow batches, read by COPY in a transaction that only reads."""
    try:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi
    except ImportError as error:
        install = 'pip install "geomdp[postgresql]"'
        raise RecordsError(f'PostgreSQL needs the extra "postgresql": {install}') from error
    try:
        server = dbapi.connect(database)
    except Error as error:
        # Other reasons can quote the password.
        hidden = "the address or the server is wrong (details are hidden: they can hold a password)"
        reason = next((reason for reason in REFUSALS if reason in str(error)), hidden)
        failure = f"the connection: {reason}"
    else:
        try:
            with server, server.cursor() as cursor:
                cursor.execute("SET TRANSACTION READ ONLY")
                cursor.execute(_subquery(_statement(sql)))
                reader = cursor.fetch_record_batch()
                check_columns(columns, reader.schema.names, "the query")
                for batch in reader:
                    for start in range(0, batch.num_rows, CHUNK_ROWS):
                        yield batch.select(columns).slice(start, CHUNK_ROWS)
                return
        except Error as error:
            failure = f"the query: {postgresql_failure(error)}"
    raise RecordsError(f"PostgreSQL refuses {failure}")


def duckdb_failure(error: Exception) -> str:
    """One line about a query that failed in DuckDB, without values of records."""
    text = str(error).strip()
    if type(error).__name__ in UNREAD:
        return text.partition("\n")[0]
    kind = KIND.match(text)
    said = kind.group() if kind else type(error).__name__
    if row := CSV_LINE.match(text):
        return f"{said} on line {row[1]} of a CSV file"
    if place := QUERY_PLACE.search(text):  # `_subquery` writes the query after its own first line
        column = len(place[3]) - len(place[1]) + 1
        return f"{said} at line {int(place[2]) - 1}, column {column} of the query"
    return said


def postgresql_failure(error: adbc_driver_manager.Error) -> str:
    """One line about a query that failed in PostgreSQL, without values of records."""
    state = error.sqlstate or ""
    if state.startswith(UNREADABLE):
        return str(error).strip().partition("\n")[0]
    return f"error {state} (SQLSTATE)" if state.isalnum() else type(error).__name__


@contextmanager
def opened(database: str | None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a DuckDB file, for reading only; to a new empty database for None."""
    import duckdb

    with duckdb.connect(
        database or ":memory:",
        read_only=database is not None,
        config={"temp_directory": spill_folder(os.getpid())},
    ) as connection:
        yield connection


@functools.cache  # by process, because a forked process inherits what was made before
def spill_folder(process: int) -> str:
    """The folder (mode 0700) of this process for records that do not fit into memory."""
    del process
    made = tempfile.mkdtemp(prefix="geomdp-")
    # Forked processes of `multiprocessing` do not run the functions of `atexit`.
    Finalize(None, shutil.rmtree, (made,), {"ignore_errors": True}, exitpriority=0)
    return made
