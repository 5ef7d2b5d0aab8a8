"""Connections to DuckDB, whose temporary files go to a folder that only this user may read."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


@contextmanager
def connected() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to the empty database of this process, closed at the end of the context.

    All connections share one database. A new database for each of many files would be slow: it
    takes 20 milliseconds, as long as counting some 100,000 records. The connections share nothing
    else: views and registered frames belong to one connection and end with it.
    """
    with _database(os.getpid()).cursor() as connection:
        yield connection


@contextmanager
def opened(database: str | None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to another database: a DuckDB file, read-only; for None, a new empty one."""
    import duckdb

    with duckdb.connect(
        database or ":memory:",
        read_only=database is not None,
        config={"temp_directory": spill_folder(os.getpid())},
    ) as connection:
        yield connection


@functools.cache
def _database(process: int) -> duckdb.DuckDBPyConnection:
    """The database of the process with this id, made once.

    A forked process needs its own database, because the threads of a database do not survive a
    fork. The database keeps no copy of the files that were read.
    """
    import duckdb

    return duckdb.connect(
        config={"enable_external_file_cache": False, "temp_directory": spill_folder(process)}
    )


@functools.cache
def spill_folder(process: int) -> str:
    """The folder for data that the databases of the process with this id cannot hold in memory.

    Such data can be records. By default DuckDB would write them to the working folder, where others
    may read them. The folder made here has mode 0700 and is deleted when the process ends.
    """
    folder = tempfile.mkdtemp(prefix="geomdp-")

    def delete() -> None:
        # A forked process inherits this function, but not the folder.
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(delete)
    return folder
