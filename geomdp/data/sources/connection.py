"""Connections to DuckDB without a database of the user's."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


@contextmanager
def connected() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that shares nothing with others but their empty database.

    A new database takes 20 milliseconds, as long as counting some 100,000 records, and a folder may
    have many files. Views and registered frames belong to one connection and end with it.
    """
    with _database(os.getpid()).cursor() as connection:
        yield connection


@functools.cache
def _database(process: int) -> duckdb.DuckDBPyConnection:
    """The database of a process; a forked process has another, for threads do not survive a fork.

    It keeps no copy of the files that were read.
    """
    del process
    import duckdb

    return duckdb.connect(config={"enable_external_file_cache": False})
