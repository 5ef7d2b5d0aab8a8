"""Running sweeps: interrupts, failures, executors, changed configurations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments.engine.cells import Cell, Outcome, Row, Sweep
from experiments.engine.provenance import Code
from experiments.engine.run import SweepResult, Work, in_process, run_cell, run_sweep
from experiments.engine.store import Contents, Store

CODE = Code("script", "library")


@dataclass(frozen=True)
class Config:
    n: int


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


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "at least 1 row"),
        ([{"value": float("nan")}], "value must be finite"),
        ([{"value": 1}, {"n": 2}], r"must not use the names ['n']"),
        ([{"trial": 2}], r"must not use the names ['trial']"),
        ([{"value": np.zeros(3)}], "value must be a string, number"),
    ],
)
def test_results_that_are_no_rows_are_failures(rows, message):
    outcome = run_cell(lambda config, rng: rows, Cell(Config(1), 0, 0))
    assert outcome.failed
    assert message in (outcome.traceback or "")


def test_a_changed_sweep_shares_only_equal_cells(tmp_path):
    with Store(tmp_path / "s.sqlite", CODE) as store:
        first = run_sweep(draw, SWEEP, store).table()
        other = Sweep((Config(5), Config(100)), trials=3, seed=1)
        computed: list[Outcome[Any]] = []
        second = run_sweep(draw, other, store, observe=computed.append).table()
        assert len(computed) == 4  # trial 2 of n = 5, and three of n = 100
        assert set(second.n) == {5, 100}
        common = second[(second.n == 5) & (second.trial < 2)].reset_index(drop=True)
        expected = first[first.n == 5].reset_index(drop=True)
        pd.testing.assert_frame_equal(common, expected, check_exact=True)


def test_another_seed_gives_other_numbers(tmp_path):
    with Store(tmp_path / "s.sqlite", CODE) as store:
        first = run_sweep(draw, SWEEP, store).table()
        second = run_sweep(draw, Sweep(SWEEP.configurations, 2, seed=2), store).table()
    assert not np.isin(second.value, first.value).any()


def backwards(work: Work, cells: Sequence[Cell[Any]]) -> Iterator[Outcome[Any]]:
    return in_process(work, cells[::-1])


def threads(work: Work, cells: Sequence[Cell[Any]]) -> Iterator[Outcome[Any]]:
    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(work, cells)


@pytest.mark.parametrize("executor", [backwards, threads])
def test_results_do_not_depend_on_the_executor(tmp_path, executor):
    with Store(tmp_path / "a.sqlite", CODE) as store:
        expected = run_sweep(draw, SWEEP, store).table()
    with Store(tmp_path / "b.sqlite", CODE) as store:
        found = run_sweep(draw, SWEEP, store, executor).table()
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


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
