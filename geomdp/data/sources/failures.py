"""Messages of failed queries and connections: what failed and where, without values of records.

An error of a database often quotes a value that the database could not convert. Messages about
records must not contain values, so the text of such an error is not passed on.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import adbc_driver_manager

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
        return f"{said} at line {place.group(1)}, column {column} of the query"
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
