"""Connections to DuckDB for reading files and frames, with an empty database in memory."""

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
    """A connection to the empty database of this process, closed at the end of the context.

    Connections share the database because making one takes 20 milliseconds, as long as counting
    some 100,000 records, and a folder may have many files. They share nothing else: views and
    registered frames belong to one connection and end with it.
    """
    with _database(os.getpid()).cursor() as connection:
        yield connection


@functools.cache
def _database(process: int) -> duckdb.DuckDBPyConnection:
    """The database of the process with this id, made once.

    A forked process needs its own, because the threads of a database do not survive a fork. The
    database keeps no copy of the files that were read.
    """
    del process
    import duckdb

    return duckdb.connect(config={"enable_external_file_cache": False})
