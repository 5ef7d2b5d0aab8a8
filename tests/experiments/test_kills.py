"""After kill -9 or Ctrl-C, stored cells remain; a resumed or parallel sweep equals a plain one."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments.engine.cells import Cell, Outcome, Row, Sweep
from experiments.engine.processes import DEATHS, Processes
from experiments.engine.provenance import Code
from experiments.engine.run import Executor, ExecutorError, in_process, run_sweep
from experiments.engine.store import Contents, Store
from tests.experiments import trivial_sweep
from tests.experiments.sweep_program import CODE
from tests.experiments.trivial_sweep import Config

ROOT = Path(__file__).parents[2]
KILLS = 20


def uninterrupted(folder: Path) -> pd.DataFrame:
    with Store(folder / "straight.sqlite", CODE) as store:
        return run_sweep(trivial_sweep.compute, trivial_sweep.SWEEP, store).table()


def check_resumed(path: Path, folder: Path) -> None:
    """Resume a stopped sweep: it computes only missing cells and equals an uninterrupted sweep."""
    cells = trivial_sweep.SWEEP.cells()
    with Store(path, CODE) as store:  # opening the file also checks every page
        done = store.contents(cells).completed
        computed: list[object] = []
        resumed = run_sweep(
            trivial_sweep.compute, trivial_sweep.SWEEP, store, observe=computed.append
        )
        assert len(computed) == len(cells) - done
        assert store.contents(cells) == Contents(completed=len(cells), failed=0, stale=0)
    pd.testing.assert_frame_equal(resumed.table(), uninterrupted(folder), check_exact=True)


def test_twenty_kills_of_a_sweep(tmp_path):
    path = tmp_path / "killed.sqlite"
    program = [sys.executable, "-m", "tests.experiments.forked_kills"]
    result = subprocess.run(
        [*program, str(path), str(KILLS), "20240501"], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    snapshots = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(snapshots) == KILLS
    for before, after in zip([{}, *snapshots], snapshots, strict=False):
        # A stored cell is not computed again, so its seconds do not change.
        assert before.items() <= after.items()
    assert 0 < len(snapshots[-1]) < len(trivial_sweep.SWEEP.cells())
    check_resumed(path, tmp_path)


def wait_for_end(process: int) -> None:
    """Wait until the process has ended. After 30 seconds the test fails instead of hanging."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with suppress(ProcessLookupError):
            os.kill(process, 0)
            # An orphan that has ended stays in the process table as a zombie, with status Z, until
            # init collects it.
            status = Path(f"/proc/{process}/stat")
            if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
                return
            time.sleep(0.02)
            continue
        return
    raise AssertionError(f"process {process} outlives its sweep")


def test_a_kill_of_a_parallel_sweep_takes_its_processes_along(tmp_path):
    path = tmp_path / "killed.sqlite"
    command = [sys.executable, "-m", "tests.experiments.sweep_program", str(path), "2"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(31)]
        assert all(lines), "the sweep ended before it could be killed"
        workers = [int(word) for word in lines[-1].split()]
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert len(workers) == 2
    for worker in workers:
        wait_for_end(worker)
    check_resumed(path, tmp_path)


def test_ctrl_c_stops_a_parallel_sweep_once(tmp_path):
    path = tmp_path / "interrupted.sqlite"
    command = [sys.executable, "-m", "tests.experiments.sweep_program", str(path), "2"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(21)]
        # Like a terminal, send Ctrl-C to the command and to its worker processes at once.
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode == -signal.SIGINT
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    for worker in lines[-1].split():
        wait_for_end(int(worker))
    check_resumed(path, tmp_path)


# --- several processes ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair() -> Iterator[Processes]:
    with Processes(2) as processes:
        yield processes


def table(folder: Path, sweep: Sweep[Config], executor: Executor) -> pd.DataFrame:
    with Store(folder / "s.sqlite", CODE) as store:
        return run_sweep(trivial_sweep.compute, sweep, store, executor).table()


def test_results_do_not_depend_on_the_number_of_processes(tmp_path, pair):
    expected = table(tmp_path / "one", trivial_sweep.SWEEP, in_process)
    two = table(tmp_path / "two", trivial_sweep.SWEEP, pair)
    pd.testing.assert_frame_equal(two, expected, check_exact=True)
    for cell in trivial_sweep.SWEEP.cells()[::17]:
        rows = two[(two.n == cell.configuration.n) & (two.trial == cell.trial)]
        draws = cell.configuration.n + np.random.default_rng(cell.seed).random(3)
        assert rows.value.tolist() == draws.tolist()


def test_killed_processes_lose_nothing(tmp_path):
    chance, kills = random.Random(3), 0

    def kill_some(outcome: Outcome[Any]) -> None:
        nonlocal kills
        if outcome.cell.configuration.n % 10 == 5 and outcome.cell.trial == 0:
            os.kill(chance.choice(processes.identifiers), signal.SIGKILL)
            kills += 1

    cells = trivial_sweep.SWEEP.cells()
    with Processes(2) as processes, Store(tmp_path / "k.sqlite", CODE) as store:
        killed = run_sweep(
            trivial_sweep.compute, trivial_sweep.SWEEP, store, processes, observe=kill_some
        )
        assert store.contents(cells) == Contents(completed=len(cells), failed=0, stale=0)
    assert kills == 5
    expected = table(tmp_path, trivial_sweep.SWEEP, in_process)
    pd.testing.assert_frame_equal(killed.table(), expected, check_exact=True)


def test_a_deadly_cell_is_a_failed_cell_and_no_other_suffers(tmp_path):
    antidote = tmp_path / "antidote"
    sweep = Sweep((Config(0), Config(1, deadly_without=str(antidote)), Config(2)), 1, 0)
    with Processes(2) as processes, Store(tmp_path / "s.sqlite", CODE) as store:
        result = run_sweep(trivial_sweep.compute, sweep, store, processes)
        assert [outcome.cell.configuration.n for outcome in result.failures] == [1]
        assert f"the process died in every run of this cell (runs: {DEATHS})" in (
            result.failures[0].traceback or ""
        )
        assert store.contents(sweep.cells()) == Contents(completed=2, failed=1, stale=0)
        # The next run tries the failed cells again, and only those.
        antidote.touch()
        seen: list[Outcome[Any]] = []
        healed = run_sweep(trivial_sweep.compute, sweep, store, processes, observe=seen.append)
        assert [outcome.cell.configuration.n for outcome in seen] == [1]
        assert not healed.failures


def test_a_kill_of_an_idle_process_does_not_count_against_the_next_cell(tmp_path):
    cells = Sweep(tuple(Config(n) for n in range(DEATHS)), 1, 0)
    with Processes(DEATHS) as processes:
        table(tmp_path / "first", cells, processes)
        idle = processes.identifiers
        assert len(idle) == DEATHS
        for identifier in idle:
            os.kill(identifier, signal.SIGKILL)
            wait_for_end(identifier)
        assert len(table(tmp_path / "next", Sweep((Config(0),), 1, 0), processes)) == 3
        (last,) = processes.identifiers
    assert processes.identifiers == ()
    wait_for_end(last)


def test_an_exception_is_the_outcome_of_its_cell_alone(tmp_path, pair):
    sweep = Sweep((Config(0), Config(1, seconds=-1.0)), trials=1, seed=0)
    with Store(tmp_path / "s.sqlite", CODE) as store:
        result = run_sweep(trivial_sweep.compute, sweep, store, pair)
    assert [outcome.failed for outcome in result.outcomes] == [False, True]
    assert "sleep length must be non-negative" in (result.failures[0].traceback or "")


def test_a_sweep_broken_off_leaves_nothing_to_the_next(tmp_path, pair):
    slow = Sweep(tuple(Config(n, seconds=60.0) for n in range(4)), trials=1, seed=0)
    quick = Config(99)

    def stop(outcome: Outcome[Any]) -> None:
        raise KeyboardInterrupt

    with Store(tmp_path / "s.sqlite", CODE) as store:
        with pytest.raises(KeyboardInterrupt):
            run_sweep(
                trivial_sweep.compute,
                Sweep((quick, *slow.configurations), 1, 0),
                store,
                pair,
                observe=stop,
            )
        assert store.contents([Cell(quick, 0, 0)]).completed == 1
    found = table(tmp_path / "next", trivial_sweep.SWEEP, pair)
    expected = table(tmp_path / "expected", trivial_sweep.SWEEP, in_process)
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_nothing_starts_when_everything_is_stored(tmp_path):
    expected = table(tmp_path, trivial_sweep.SWEEP, in_process)
    with Processes(2) as processes:
        found = table(tmp_path, trivial_sweep.SWEEP, processes)
        assert processes.identifiers == ()
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_processes_with_other_code_refuse_the_sweep(tmp_path, pair):
    cells = trivial_sweep.SWEEP.cells()
    with Store(tmp_path / "s.sqlite", Code(CODE.script, "old")) as store:
        with pytest.raises(ExecutorError, match="differs from the code of this sweep"):
            run_sweep(trivial_sweep.compute, trivial_sweep.SWEEP, store, pair)
        assert store.contents(cells) == Contents(completed=0, failed=0, stale=0)


def test_a_script_that_cannot_be_imported_is_named(tmp_path, pair, monkeypatch):
    def compute(config: Config, rng: np.random.Generator) -> list[Row]:
        raise AssertionError("no process can know this function")

    here_alone = ModuleType("here_alone")
    here_alone.compute = compute  # type: ignore[attr-defined]
    compute.__module__, compute.__qualname__ = "here_alone", "compute"
    monkeypatch.setitem(sys.modules, "here_alone", here_alone)
    with (
        Store(tmp_path / "s.sqlite", CODE) as store,
        pytest.raises(ExecutorError, match="No module named 'here_alone'"),
    ):
        run_sweep(compute, trivial_sweep.SWEEP, store, pair)


def test_the_number_of_processes_is_positive():
    with pytest.raises(ValueError, match="count must be at least 1, got 0"):
        Processes(0)
