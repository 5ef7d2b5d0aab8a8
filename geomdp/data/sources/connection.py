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

    Connections share the database because making one takes 20 milliseconds, as long as counting
    some 100,000 records, and a folder may have many files. They share nothing else: views and
    registered frames belong to one connection and end with it.
    """
    with _database(os.getpid()).cursor() as connection:
        yield connection


@contextmanager
def opened(database: str | None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a separate database: a DuckDB file, read-only, or an empty one for None."""
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

    A forked process needs its own, because the threads of a database do not survive a fork. The
    database keeps no copy of the files that were read.
    """
    import duckdb

    return duckdb.connect(
        config={"enable_external_file_cache": False, "temp_directory": spill_folder(process)}
    )


@functools.cache
def spill_folder(process: int) -> str:
    """The folder where databases of the process with this id put what memory cannot hold.

    Such data can be records. By default DuckDB would write them to the working folder, where others
    may read them. This folder has mode 0700 and is deleted when the process ends.
    """
    folder = tempfile.mkdtemp(prefix="geomdp-")

    def delete() -> None:
        # A forked process inherits this function, but not the folder.
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(delete)
    return folder
