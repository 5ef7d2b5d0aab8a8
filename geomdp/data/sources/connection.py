"""Connections to DuckDB, with temporary files in folders of mode 0700 (see `spill_folder`)."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


@contextmanager
def connected() -> Iterator[duckdb.DuckDBPyConnection]:
    """Connect to the empty database of this process; the connection ends with the context.

    All these connections share one database, because a new one takes 20 milliseconds. In this time
    100,000 records could be counted. Temporary views and registered frames are not shared: they
    end with their connection.
    """
    with _database(os.getpid()).cursor() as connection:
        yield connection


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


@functools.cache
def _database(process: int) -> duckdb.DuckDBPyConnection:
    """The database of the process with the id `process`, made at the first call.

    A forked process needs its own database, because the threads of a database do not survive a
    fork. The database keeps no copy of the files that were read.
    """
    import duckdb

    return duckdb.connect(
        config={"enable_external_file_cache": False, "temp_directory": spill_folder(process)}
    )


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
