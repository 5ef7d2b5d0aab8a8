"""Several processes give the results of one process, even if some of them are killed."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Iterator
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
from tests.experiments.test_kills import wait_for_end
from tests.experiments.trivial_sweep import Config


@pytest.fixture(scope="module")
def pair() -> Iterator[Processes]:
    with Processes(2) as processes:
        yield processes


def table(folder: Path, sweep: Sweep[Config], executor: Executor) -> pd.DataFrame:
    with Store(folder / "s.sqlite", trivial_sweep.code()) as store:
        return run_sweep(trivial_sweep.compute, sweep, store, executor).table()


def test_results_do_not_depend_on_the_number_of_processes(tmp_path, pair):
    expected = table(tmp_path / "one", trivial_sweep.SWEEP, in_process)
    two = table(tmp_path / "two", trivial_sweep.SWEEP, pair)
    pd.testing.assert_frame_equal(two, expected, check_exact=True)
    with Processes(3) as processes:
        three = table(tmp_path / "three", trivial_sweep.SWEEP, processes)
        identifiers = processes.identifiers
    pd.testing.assert_frame_equal(three, expected, check_exact=True)
    assert len(identifiers) == 3
    assert processes.identifiers == ()
    for identifier in identifiers:
        wait_for_end(identifier)


def test_killed_processes_lose_nothing(tmp_path):
    chance, kills = random.Random(3), 0

    def kill_some(outcome: Outcome[Any]) -> None:
        nonlocal kills
        if outcome.cell.configuration.n % 10 == 5 and outcome.cell.trial == 0:
            os.kill(chance.choice(processes.identifiers), signal.SIGKILL)
            kills += 1

    cells = trivial_sweep.SWEEP.cells()
    with Processes(2) as processes, Store(tmp_path / "k.sqlite", trivial_sweep.code()) as store:
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
    with Processes(2) as processes, Store(tmp_path / "s.sqlite", trivial_sweep.code()) as store:
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


def test_an_exception_is_the_outcome_of_its_cell_alone(tmp_path, pair):
    sweep = Sweep((Config(0), Config(1, seconds=-1.0)), trials=1, seed=0)
    with Store(tmp_path / "s.sqlite", trivial_sweep.code()) as store:
        result = run_sweep(trivial_sweep.compute, sweep, store, pair)
    assert [outcome.failed for outcome in result.outcomes] == [False, True]
    assert "sleep length must be non-negative" in (result.failures[0].traceback or "")


def test_a_sweep_broken_off_leaves_nothing_to_the_next(tmp_path, pair):
    slow = Sweep(tuple(Config(n, seconds=60.0) for n in range(4)), trials=1, seed=0)
    quick = Config(99)

    def stop(outcome: Outcome[Any]) -> None:
        raise KeyboardInterrupt

    with Store(tmp_path / "s.sqlite", trivial_sweep.code()) as store:
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


@pytest.mark.parametrize(
    "code", [Code("edited", trivial_sweep.code().library), Code(trivial_sweep.code().script, "old")]
)
def test_processes_with_other_code_refuse_the_sweep(tmp_path, pair, code):
    cells = trivial_sweep.SWEEP.cells()
    with Store(tmp_path / "s.sqlite", code) as store:
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
        Store(tmp_path / "s.sqlite", trivial_sweep.code()) as store,
        pytest.raises(ExecutorError, match="No module named 'here_alone'"),
    ):
        run_sweep(compute, trivial_sweep.SWEEP, store, pair)


def test_the_number_of_processes_is_positive():
    with pytest.raises(ValueError, match="count must be at least 1, got 0"):
        Processes(0)


def test_draws_of_a_cell_are_those_of_its_seed(tmp_path, pair):
    found = table(tmp_path, trivial_sweep.SWEEP, pair)
    for cell in trivial_sweep.SWEEP.cells()[::17]:
        rows = found[(found.n == cell.configuration.n) & (found.trial == cell.trial)]
        draws = cell.configuration.n + np.random.default_rng(cell.seed).random(3)
        assert rows.value.tolist() == draws.tolist()
