"""The SQLite file of a ledger: entries are only added, and readers notice damage.

The digest of an entry is the SHA-256 hash of the digest before it and of its content. A second
table holds the number of entries and the last digest. So every reader notices a damaged, altered,
missing or reordered entry. Only an open `LedgerFile` that has read the entries notices that an
older copy replaced the file, or that an attacker changed entries and computed all digests anew.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from geomdp._numerics.single_use import Turn

#: Marks a file as a ledger of this layout (SQLite's application_id): "gdp2" in ASCII.
APPLICATION_ID = 0x67647032
#: Mode of a new file. Only the owner can read it, because labels and times tell which questions
#: were asked about the data.
PRIVATE = 0o600
#: Seconds to wait for another process that is writing.
WAIT = 60.0

SCHEMA = """
CREATE TABLE entries (id INTEGER PRIMARY KEY, content TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE head (count INTEGER NOT NULL, digest TEXT NOT NULL);
INSERT INTO head VALUES (0, '');
"""


class LedgerFile:
    """Entries in the SQLite file `path`, or in memory; for one thread at a time, in one process.

    `create` allows a missing file to be created, with `first` as its first entry.
    """

    def __init__(self, path: Path | None, first: str, *, create: bool) -> None:
        self.name = "a ledger in memory" if path is None else str(path)
        self._process = os.getpid()
        self._turn = Turn()
        self._seen = 0, ""  # number of entries and last digest when the file was last read
        with self._translated():
            if path is not None:
                if create and not path.exists():
                    _create(path, first)
                if path.is_file() and path.stat().st_size == 0:
                    raise ValueError(
                        f"{path} is empty: a ledger is never empty, so its spends are lost; delete "
                        "the file only if there were no spends"
                    )
            self._connection = _connect(path)
            # Close the file also if the ledger is deleted without a call of `close`.
            weakref.finalize(self, _close, self._connection, self._process)
            try:
                if path is None:
                    _initialise(self._connection, first)
                self.entries()
            except BaseException:
                self.close()
                raise

    @property
    def count(self) -> int:
        return self._seen[0]

    def close(self) -> None:
        _close(self._connection, self._process)

    def entries(self) -> list[str]:
        """Verify and return all entries, oldest first; errors as in `Ledger.spend`."""
        with self._transaction("DEFERRED"):
            return self._verified()

    def add(self, decide: Callable[[list[str]], str]) -> None:
        """Add the entry that `decide` returns for all entries so far, in one transaction."""
        with self._transaction("IMMEDIATE"):
            head = _add(self._connection, decide(self._verified()))
        self._seen = head

    def _verified(self) -> list[str]:
        (number,) = self._connection.execute("PRAGMA application_id").fetchone()
        if number != APPLICATION_ID:
            raise ValueError(f"{self.name} is not a privacy ledger of this version")
        rows = self._connection.execute("SELECT * FROM entries ORDER BY id").fetchall()
        count, digest = 0, ""
        seen = self._seen == (count, digest)
        for count, (number, content, stored) in enumerate(rows, start=1):
            digest = _digest(digest, content)
            if (number, stored) != (count, digest):
                raise ValueError(f"{self.name} is damaged: entry {count} is not as it was written")
            seen = seen or self._seen == (count, digest)
        if self._connection.execute("SELECT * FROM head").fetchall() != [(count, digest)]:
            raise ValueError(f"{self.name} is damaged: its last entries are missing")
        if not seen:
            raise ValueError(f"{self.name} was replaced: it lacks entries that it held before")
        self._seen = count, digest
        return [content for _, content, _ in rows]

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[None]:
        if os.getpid() != self._process:
            raise RuntimeError(
                f"{self.name} belongs to the process that forked this one: open a ledger with a "
                "path in every process (each fork of a ledger in memory would have its own budget)"
            )
        with self._turn.take(self.name), self._translated():
            self._connection.execute(f"BEGIN {kind}")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn errors of SQLite into ``OSError``, or ``ValueError`` if the file is damaged."""
        try:
            yield
        except sqlite3.ProgrammingError:  # the ledger is closed
            raise
        except sqlite3.DatabaseError as error:
            # The code SQLITE_ERROR means that the content is wrong, for example its file format.
            outside = getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_ERROR
            if isinstance(error, sqlite3.OperationalError) and outside:
                raise OSError(f"{self.name} cannot be opened, read or written: {error}") from error
            raise ValueError(f"{self.name} is not a privacy ledger, or damaged: {error}") from error


def _digest(before: str, content: str) -> str:
    return hashlib.sha256(f"{before}\n{content}".encode()).hexdigest()


def _connect(path: Path | None) -> sqlite3.Connection:
    name = ":memory:" if path is None else f"{path.absolute().as_uri()}?mode=rw"
    # `LedgerFile` lets one thread at a time use the connection.
    connection = sqlite3.connect(
        name, timeout=WAIT, isolation_level=None, check_same_thread=False, uri=True
    )
    # Bytes that are not UTF-8 are read as other letters. The entry then fails its digest.
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    # EXTRA also syncs the folder after a commit. A committed spend then survives a power cut.
    connection.execute("PRAGMA synchronous = EXTRA")
    return connection


def _close(connection: sqlite3.Connection, process: int) -> None:
    # A forked child must not close the connection, because that could undo a spend of the parent.
    if os.getpid() == process:
        connection.close()


def _create(path: Path, first: str) -> None:
    """Create a ledger under a temporary name, then link it: no process sees an unfinished file."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        new = Path(folder) / path.name
        new.touch(mode=PRIVATE)
        with closing(_connect(new)) as connection:
            _initialise(connection, first)
        try:
            path.hardlink_to(new)
        except FileExistsError:
            return  # another process has created a ledger in the meantime


def _initialise(connection: sqlite3.Connection, first: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in SCHEMA.split(";"):
        connection.execute(statement)
    _add(connection, first)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("COMMIT")


def _add(connection: sqlite3.Connection, content: str) -> tuple[int, str]:
    """Add an entry; return the new number of entries and the new last digest."""
    ((count, before),) = connection.execute("SELECT * FROM head").fetchall()
    head = count + 1, _digest(before, content)
    connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (head[0], content, head[1]))
    connection.execute("UPDATE head SET count = ?, digest = ?", head)
    return head
