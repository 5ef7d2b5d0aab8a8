"""A store returns the outcomes that it recorded, and does not change files that are no stores."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from experiments.engine.cells import Cell, Outcome
from experiments.engine.provenance import Code
from experiments.engine.store import APPLICATION_ID, Contents, Store, StoreError

CODE = Code("script", "library")


@dataclass(frozen=True)
class Config:
    n: int


def completed(n: int, value: float = 0.25, trial: int = 0) -> Outcome[Config]:
    return Outcome(Cell(Config(n), trial, 2**70), 1.5, ({"value": value, "kind": "a"},), None)


def failed(n: int) -> Outcome[Config]:
    return Outcome(Cell(Config(n), 0, 2**70), 0.5, None, "Traceback: it broke")


def test_outcomes_come_back_in_the_order_asked_for(tmp_path):
    path = tmp_path / "new folder" / "sweep.sqlite"
    outcomes = [completed(3), failed(1), completed(2, 1e-300)]
    with Store(path, CODE) as store:
        for outcome in outcomes:
            store.record(outcome)
    cells = [outcome.cell for outcome in outcomes]
    with Store(path, CODE) as store:
        assert store.outcomes(cells) == outcomes
        assert store.outcomes(cells[::-1]) == outcomes[::-1]
        assert store.outcomes([completed(9).cell]) == []


def test_a_failed_cell_may_be_replaced_a_completed_one_never(tmp_path):
    with Store(tmp_path / "s.sqlite", CODE) as store:
        cell = failed(1).cell
        store.record(failed(1))
        store.record(completed(1, 0.5))
        assert store.outcomes([cell]) == [completed(1, 0.5)]
        store.record(completed(1, 0.75))
        store.record(failed(1))
        assert store.outcomes([cell]) == [completed(1, 0.5)]
        assert store.contents([cell]) == Contents(completed=1, failed=0, stale=0)


@pytest.mark.parametrize("other", [Code("edited", "library"), Code("script", "edited")])
def test_other_code_is_kept_apart(tmp_path, other):
    path, cell = tmp_path / "s.sqlite", completed(1).cell
    with Store(path, CODE) as store:
        store.record(completed(1))
    with Store(path, other) as store:
        assert store.outcomes([cell]) == []
        store.record(completed(1, 9.0))
        assert store.contents([cell]) == Contents(completed=1, failed=0, stale=1)
    with Store(path, CODE) as store:
        assert store.outcomes([cell]) == [completed(1)]


def test_other_cells_are_kept_apart_and_two_open_stores_share_a_file(tmp_path):
    path = tmp_path / "s.sqlite"
    with Store(path, CODE) as first, Store(path, CODE) as second:
        first.record(completed(1))
        cell = completed(1).cell
        for other in (replace(cell, trial=1), replace(cell, sweep_seed=1), completed(2).cell):
            assert first.outcomes([other]) == []
        second.record(completed(2))
        assert len(first.outcomes([cell, completed(2).cell])) == 2


def test_the_file_is_write_ahead_and_carries_everything(tmp_path):
    path = tmp_path / "s.sqlite"
    with Store(path, CODE) as store:
        store.record(completed(1))
        store.record(failed(2))
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
        rows = {row["configuration"]: row for row in connection.execute("SELECT * FROM cells")}
    done, broken = rows['{"n": 1}'], rows['{"n": 2}']
    assert int(done["seed"], 16) == completed(1).cell.seed
    assert done["seconds"] == 1.5
    assert '"numpy"' in done["versions"]
    assert done["traceback"] is None
    assert broken["rows"] is None
    assert "it broke" in broken["traceback"]


def test_an_empty_file_is_what_a_kill_at_birth_leaves(tmp_path):
    path = tmp_path / "s.sqlite"
    path.touch()
    with Store(path, CODE) as store:
        store.record(completed(1))
        assert len(store.outcomes([completed(1).cell])) == 1


def foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE cells (precious TEXT)")
        connection.commit()


def future_layout(path: Path) -> None:
    Store(path, CODE).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def damaged_pages(path: Path, *, truncated: bool = False) -> None:
    with Store(path, CODE) as store:
        for n in range(200):
            store.record(completed(n))
    content = bytearray(path.read_bytes())
    content[4096:12288] = b"\xff" * 8192  # the second and third page: part of the table
    path.write_bytes(bytes(content)[: 5000 if truncated else None])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (foreign_database, "another program"),
        (lambda path: path.write_text("configuration,value\n1,2\n"), "not an SQLite file"),
        (lambda path: path.write_text("x" * 5000), "not an SQLite file"),
        (future_layout, "layout 99"),
        (damaged_pages, "damaged|malformed"),
        (lambda path: damaged_pages(path, truncated=True), "damaged|malformed"),
    ],
)
def test_unusable_files_are_named_and_left_as_they_are(tmp_path, spoil, message):
    path = tmp_path / "s.sqlite"
    spoil(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=message) as caught:
        Store(path, CODE)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before


def test_a_full_disk_is_named_and_what_is_stored_stays(tmp_path):
    path, stored = tmp_path / "s.sqlite", []
    with Store(path, CODE) as store:
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages + 5}")

        def fill() -> None:
            for n in range(1000):
                store.record(completed(n))
                stored.append(completed(n))

        with pytest.raises(StoreError, match="disk is full") as caught:
            fill()
        assert str(path) in str(caught.value)
        assert store.outcomes(outcome.cell for outcome in stored) == stored
    assert len(stored) > 5
    # Without the limit on pages, the next outcome is recorded.
    cells = [completed(n).cell for n in range(1000)]
    with Store(path, CODE) as store:
        assert store.outcomes(cells) == stored
        store.record(completed(len(stored)))
        assert store.contents(cells) == Contents(completed=len(stored) + 1, failed=0, stale=0)


def test_a_folder_in_the_way_and_a_file_in_place_of_the_folder_are_named(tmp_path):
    (tmp_path / "s.sqlite").mkdir()
    (tmp_path / "results").write_text("a file")
    for path, named in ((tmp_path / "s.sqlite", r"s\.sqlite"), (tmp_path / "results/s", "results")):
        with pytest.raises(StoreError, match=named):
            Store(path, CODE)


@contextmanager
def without_privileges() -> Iterator[None]:
    """Act as user 65534 (nobody) if the test runs as root, because permissions do not bind root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(("stored", "folder_mode"), [(False, 0o500), (True, 0o500), (True, 0o700)])
def test_what_is_read_only_is_named_before_cells_run(stored, folder_mode):
    with without_privileges(), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.sqlite"
        if stored:
            Store(path, CODE).close()
            path.chmod(0o400)
        before = path.read_bytes() if stored else os.listdir(folder)
        os.chmod(folder, folder_mode)
        with pytest.raises(StoreError, match="cannot keep results"):
            Store(path, CODE)
        assert (path.read_bytes() if stored else os.listdir(folder)) == before
        os.chmod(folder, 0o700)


def test_a_file_that_cannot_be_counted_is_named(tmp_path, monkeypatch):
    """The outcomes were read before another program changed the file."""
    path = tmp_path / "s.sqlite"
    with Store(path, CODE) as store:
        monkeypatch.setattr(store, "outcomes", lambda cells: [])
        with closing(sqlite3.connect(path)) as other:
            other.execute("DROP TABLE cells")
        with pytest.raises(StoreError, match=r"cannot read .*s\.sqlite: no such table"):
            store.contents([])
