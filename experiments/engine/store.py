"""Results of one sweep in one SQLite file, which stays valid if the process is killed."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from experiments.engine.cells import Cell, Outcome, configuration_fields
from experiments.engine.provenance import Code, versions

#: Marks the file as a `Store` in the SQLite header: "gmdp" in ASCII.
APPLICATION_ID = int.from_bytes(b"gmdp", "big")
#: Version of the table's layout.
LAYOUT = 1
#: Seconds to wait for another process that is writing.
BUSY_SECONDS = 30

HEADER_MAGIC = b"SQLite format 3\x00"
#: Bytes of the SQLite header that hold the application id (file format, section 1.3).
HEADER_APPLICATION_ID = slice(68, 72)
HEADER_LENGTH = 100

SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS cells (
    configuration_hash TEXT NOT NULL,
    trial INTEGER NOT NULL,
    sweep_seed TEXT NOT NULL,
    script_hash TEXT NOT NULL,
    library_hash TEXT NOT NULL,
    configuration TEXT NOT NULL,
    seed TEXT NOT NULL,
    seconds REAL NOT NULL,
    versions TEXT NOT NULL,
    finished TEXT NOT NULL,
    rows TEXT,
    traceback TEXT,
    PRIMARY KEY (configuration_hash, trial, sweep_seed, script_hash, library_hash),
    CHECK ((rows IS NULL) <> (traceback IS NULL))
) WITHOUT ROWID;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {LAYOUT};
COMMIT;
"""

#: A later attempt may replace a failed cell, but never a completed one.
INSERT = """
INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    seconds = excluded.seconds, versions = excluded.versions, finished = excluded.finished,
    rows = excluded.rows, traceback = excluded.traceback
WHERE cells.rows IS NULL
"""


class StoreError(Exception):
    """The file cannot hold, or does not hold, results of a sweep; it was left as it is."""


@dataclass(frozen=True)
class Contents:
    """How many cells a store holds."""

    #: Cells of the present sweep and code.
    completed: int
    failed: int
    #: Cells of other code, configurations, trials or seeds; unused, kept until the file is deleted.
    stale: int


class Store:
    """Outcomes of the cells of one script at one preset, for one state of the code.

    Every outcome is one transaction in write-ahead mode, synchronised to disk: a process killed
    between two cells loses nothing, and a process killed inside a cell loses that cell alone. Rows
    are found by (configuration hash, trial, sweep seed, hash of the script, hash of geomdp), so
    results of other code or another configuration are never mixed in. Several processes may share a
    file.
    """

    def __init__(self, path: Path, code: Code) -> None:
        self.path = path
        self.code = code
        with _refusing(f"cannot keep results in {path}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            _check_header(path)
            self._connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self) -> None:
        damage = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if damage != "ok":
            raise StoreError(f"{self.path} is damaged ({damage}); move it away to start afresh")
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        (layout,) = self._connection.execute("PRAGMA user_version").fetchone()
        if tables and layout != LAYOUT:
            raise StoreError(
                f"{self.path} has layout {layout}, this engine writes layout {LAYOUT}; "
                "move it away to start afresh"
            )
        if not tables:
            # The table is created in one transaction, which ends before the journal mode changes.
            # A process killed here leaves either an empty file or a complete one.
            self._connection.executescript(SCHEMA)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        # SQLite opens a file that it cannot write to for reading only. Writing the layout again
        # raises an error then, before any cell runs. The transaction is undone.
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute(f"PRAGMA user_version = {LAYOUT}")
        self._connection.execute("ROLLBACK")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; everything recorded is already on disk."""
        self._connection.close()

    def record(self, outcome: Outcome[Any]) -> None:
        """Write one outcome; a completed cell that is already there stays as it is."""
        cell = outcome.cell
        values = (
            *_key(cell, self.code),
            json.dumps(configuration_fields(cell.configuration)),
            f"{cell.seed:#x}",
            outcome.seconds,
            json.dumps(versions()),
            datetime.now(UTC).isoformat(timespec="seconds"),
            None if outcome.rows is None else json.dumps(outcome.rows, allow_nan=False),
            outcome.traceback,
        )
        with _refusing(f"cannot write to {self.path}"):
            self._connection.execute(INSERT, values)

    def forget(self) -> None:
        """Delete all outcomes of the present code, so that its cells are computed again."""
        query = "DELETE FROM cells WHERE script_hash = ? AND library_hash = ?"
        with _refusing(f"cannot write to {self.path}"):
            self._connection.execute(query, (self.code.script, self.code.library))

    def outcomes(self, cells: Iterable[Cell[Any]]) -> list[Outcome[Any]]:
        """Outcomes that are stored for `cells` under `code`, in the order of `cells`."""
        cells_by_key = {_key(cell, self.code): cell for cell in cells}
        stored: dict[tuple[str, int, str, str, str], Outcome[Any]] = {}
        query = (
            "SELECT configuration_hash, trial, sweep_seed, script_hash, library_hash, seconds, "
            "rows, traceback FROM cells WHERE script_hash = ? AND library_hash = ?"
        )
        found = self._read(query, self.code.script, self.code.library)
        for *key, seconds, rows, traceback in found:
            cell = cells_by_key.get(tuple(key))
            if cell is not None:
                parsed = None if rows is None else tuple(json.loads(rows))
                stored[tuple(key)] = Outcome(cell, seconds, parsed, traceback)
        return [stored[key] for key in cells_by_key if key in stored]

    def contents(self, cells: Iterable[Cell[Any]]) -> Contents:
        """How many of `cells` are stored, and how many other cells the file holds."""
        found = self.outcomes(cells)
        failed = sum(outcome.failed for outcome in found)
        ((everything,),) = self._read("SELECT count(*) FROM cells")
        return Contents(len(found) - failed, failed, everything - len(found))

    def _read(self, query: str, *values: str) -> Iterator[tuple[Any, ...]]:
        """The rows that a query finds."""
        with (
            _refusing(f"cannot read {self.path}"),
            closing(self._connection.execute(query, values)) as cursor,
        ):
            yield from cursor


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Turn errors of SQLite and of files into a `StoreError` that begins with `what`."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"{what}: {error}") from error


def _key(cell: Cell[Any], code: Code) -> tuple[str, int, str, str, str]:
    # The sweep seed is text because it may exceed the 64 bits of an SQLite integer.
    digest, trial, sweep_seed = cell.key
    return (digest, trial, str(sweep_seed), code.script, code.library)


def _check_header(path: Path) -> None:
    """Raise `StoreError` unless `path` is absent, empty or a store; only the header is read."""
    if not path.exists():
        return
    with path.open("rb") as file:
        header = file.read(HEADER_LENGTH)
    if not header:
        return  # an empty file: the process that made it was killed before its first transaction
    if len(header) < HEADER_LENGTH or not header.startswith(HEADER_MAGIC):
        raise StoreError(f"{path} is not an SQLite file; it was left as it is")
    if int.from_bytes(header[HEADER_APPLICATION_ID], "big") != APPLICATION_ID:
        raise StoreError(f"{path} is an SQLite file of another program; it was left as it is")
