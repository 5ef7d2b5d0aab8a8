"""Stores return what they recorded; sweeps go on after interrupts and failures."""

import enum
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, make_dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from experiments.engine.cells import Cell, Outcome, Row, Sweep, configuration_fields, plain
from experiments.engine.provenance import Code
from experiments.engine.run import SweepResult, run_cell, run_sweep
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
        for n in range(60):
            store.record(completed(n))
    content = bytearray(path.read_bytes())
    content[4096:12288] = b"\xff" * 8192  # the second and third page: part of the table
    path.write_bytes(bytes(content)[: 5000 if truncated else None])


@pytest.mark.parametrize(("spoil", "message"), [
    (foreign_database, "another program"),
    (lambda path: path.write_text("configuration,value\n1,2\n"), "not an SQLite file"),
    (future_layout, "layout 99"),
    (damaged_pages, "damaged|malformed"),
    (lambda path: damaged_pages(path, truncated=True), "damaged|malformed"),
])  # fmt: skip
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


# --- sweeps ---------------------------------------------------------------------------------


SWEEP = Sweep(tuple(Config(n) for n in range(6)), trials=2, seed=1)


def draw(config: Config, rng: np.random.Generator) -> list[Row]:
    return [{"value": config.n + rng.random()}]


def test_an_interrupt_keeps_what_is_done(tmp_path):
    def interrupted(config: Config, rng: np.random.Generator) -> list[Row]:
        if config.n == 3:
            raise KeyboardInterrupt
        return draw(config, rng)

    with Store(tmp_path / "s.sqlite", CODE) as store:
        with pytest.raises(KeyboardInterrupt):
            run_sweep(interrupted, SWEEP, store)
        assert store.contents(SWEEP.cells()) == Contents(completed=6, failed=0, stale=0)


def test_a_failing_cell_is_recorded_and_the_sweep_goes_on(tmp_path):
    def fragile(config: Config, rng: np.random.Generator) -> list[Row]:
        if config.n == 2:
            raise ArithmeticError("n = 2 is too hard")
        return draw(config, rng)

    with Store(tmp_path / "s.sqlite", CODE) as store:
        result = run_sweep(fragile, SWEEP, store)
        assert len(result.outcomes) == 12
        assert [outcome.cell.configuration.n for outcome in result.failures] == [2, 2]
        assert "ArithmeticError: n = 2 is too hard" in (result.failures[0].traceback or "")
        with pytest.raises(ValueError, match="2 cells failed"):
            result.table()
        # The next run computes the failed cells again, and no other cells.
        seen: list[int] = []
        healed = run_sweep(
            draw, SWEEP, store, observe=lambda outcome: seen.append(outcome.cell.configuration.n)
        )
        assert seen == [2, 2]
        assert not healed.failures


@pytest.mark.parametrize(("rows", "message"), [
    ([], "at least 1 row"),
    ([{"value": float("nan")}], "value must be finite"),
    ([{"value": 1}, {"n": 2}], r"must not use the names ['n']"),
    ([{"trial": 2}], r"must not use the names ['trial']"),
    ([{"value": np.zeros(3)}], "value must be a string, number"),
])  # fmt: skip
def test_results_that_are_no_rows_are_failures(rows, message):
    outcome = run_cell(lambda config, rng: rows, Cell(Config(1), 0, 0))
    assert outcome.failed
    assert message in (outcome.traceback or "")


def test_an_executor_that_loses_cells_is_found_out(tmp_path):
    with Store(tmp_path / "s.sqlite", CODE) as store, pytest.raises(RuntimeError, match="3 of 12"):
        run_sweep(draw, SWEEP, store, lambda work, cells: map(work, cells[:3]))


def test_the_table_names_configuration_trial_and_row():
    outcomes = tuple(
        Outcome(cell, 1.0, ({"value": 0.5},), None) for cell in Sweep((Config(1),), 2, 0).cells()
    )
    result = SweepResult(outcomes)
    assert result.table().to_dict("records") == [
        {"n": 1, "trial": 0, "value": 0.5},
        {"n": 1, "trial": 1, "value": 0.5},
    ]
    assert result.seconds == 2.0


# --- cells ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    n: int
    epsilon: float = 1.0
    name: str = "a"


class Colour(enum.StrEnum):
    RED = "red"


def test_hash_ignores_the_order_of_fields_but_not_their_values():
    forward = make_dataclass("forward", [("a", int), ("b", float)], frozen=True)
    backward = make_dataclass("backward", [("b", float), ("a", int)], frozen=True)
    first = Cell(forward(1, 2.0), 0, 0).configuration_hash
    assert first == Cell(backward(2.0, 1), 0, 0).configuration_hash
    assert first != Cell(forward(2, 1.0), 0, 0).configuration_hash


def test_hash_and_seed_are_stable_over_versions_of_the_engine():
    # These values are recorded. If they change, no stored result is found, and figures change.
    cell = Cell(Setting(10), trial=3, sweep_seed=5)
    recorded = "b1a9d6680f699543263a1702c2e876a7d18e6cdffdf82f3ac6af2546cab772aa"
    assert cell.configuration_hash == recorded
    assert cell.seed == 0xE1FD2AA89271F634AC3AAFAB115627BE


def test_seeds_differ_over_configurations_trials_and_sweeps_and_over_nothing_else():
    sweeps, trials = (0, 1, 2**40, 2**64), range(10)
    cells = [Cell(Setting(n), t, sweep) for n in range(10) for t in trials for sweep in sweeps]
    assert len({cell.seed for cell in cells}) == len(cells)
    small = Sweep((Setting(2),), trials=1, seed=3)
    large = Sweep((Setting(1), Setting(2), Setting(3)), trials=2, seed=3)
    assert small.cells()[0].seed in {cell.seed for cell in large.cells()}


@pytest.mark.parametrize(
    ("value", "kind"),
    [(np.float64(0.5), float), (np.int64(3), int), (np.bool_(True), bool), (Colour.RED, str)],
)
def test_numpy_scalars_and_string_enumerations_become_plain(value, kind):
    assert type(plain(value, "x")) is kind
    assert plain(value, "x") == value


REFUSED = "x must be a string, number, boolean or None"


@pytest.mark.parametrize(("value", "error", "message"), [
    *((value, ValueError, "x must be finite") for value in (np.nan, np.inf, np.float64("-inf"))),
    *((value, TypeError, REFUSED) for value in ((1, 2), [1], {"a": 1}, np.zeros(2), object())),
])  # fmt: skip
def test_other_values_are_refused(value, error, message):
    with pytest.raises(error, match=message):
        plain(value, "x")


def test_configurations_must_be_frozen_dataclass_instances():
    thawed = make_dataclass("thawed", [("n", int)])
    for wrong, message in ((thawed(1), "frozen"), (Setting, "dataclass instance")):
        with pytest.raises(TypeError, match=message):
            configuration_fields(wrong)


@pytest.mark.parametrize(("parts", "message"), [
    (((), 1, 0), "at least 1 configuration"),
    (((Setting(1),), 0, 0), "trials must be at least 1, got 0"),
    (((Setting(1),), 1, -1), "seed must be at least 0, got -1"),
    (((Setting(1), Setting(1, 1.0)), 1, 0), "must differ"),
    (((make_dataclass("own", [("trial", int)], frozen=True)(1),), 1, 0), "'trial'"),
])  # fmt: skip
def test_sweeps_check_their_parts(parts, message):
    with pytest.raises(ValueError, match=message):
        Sweep(*parts)


def test_an_outcome_holds_rows_or_a_traceback():
    cell = Cell(Setting(1), 0, 0)
    assert not Outcome(cell, 0.1, ({"x": 1},), None).failed
    assert Outcome(cell, 0.1, None, "no").failed
    for rows, failure in [(None, None), (({"x": 1},), "no")]:
        with pytest.raises(ValueError, match="either rows or a traceback"):
            Outcome(cell, 0.1, rows, failure)
