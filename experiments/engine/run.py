"""Run the cells of a sweep that are not completed yet, and gather the table of the sweep."""

from __future__ import annotations

import importlib
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol

import numpy as np
import pandas as pd

from experiments.engine.cells import C, Cell, Outcome, Row, Rows, Sweep, configuration_fields, plain
from experiments.engine.provenance import Code
from experiments.engine.store import Store

#: The function of a script that maps (configuration, generator) to the row or rows of one cell.
Compute = Callable[[C, np.random.Generator], Row | Rows]


class ExecutorError(Exception):
    """The processes or machines cannot run the cells. Stored outcomes are kept."""


@dataclass(frozen=True)
class Work:
    """The function that an executor applies to each cell."""

    compute: Compute[Any]  # Maps (configuration, generator) to rows
    code: Code  # Content hashes under which the outcomes will be stored

    def __call__(self, cell: Cell[Any]) -> Outcome[Any]:
        """Outcome of one cell in the process that hashed the code, so the code is not checked."""
        return run_cell(self.compute, cell)

    def checked(self, cell: Cell[Any]) -> Outcome[Any]:
        """Outcome of one cell in any process, after a check that this process has the same code."""
        if _code_here(self.compute.__module__) != self.code:
            raise ExecutorError(
                f"{self.compute.__module__} or geomdp differs from the code of this sweep "
                "(an edit since the start, or another version on a worker); restart the sweep"
            )
        return self(cell)


@cache
def _code_here(module_name: str) -> Code:
    """Hashes of a script and of the modules it reaches, computed once in this process."""
    return Code.of(importlib.import_module(module_name))


class Executor(Protocol):
    """Where cells run: applies `work` to each cell and yields outcomes as they complete."""

    def __call__(
        self, work: Work | EachWork, cells: Iterable[Cell[Any]] | Iterable[Task]
    ) -> Iterator[Outcome[Any]]:
        """Outcomes of all `cells`, in any order; `cells` may be read as they are begun."""


def in_process(
    work: Work | EachWork, cells: Iterable[Cell[Any]] | Iterable[Task]
) -> Iterator[Outcome[Any]]:
    """Run one cell after the other in this process: the simplest executor."""
    return map(work, cells)


def ignore(outcome: Outcome[Any]) -> None:
    """Do nothing with an outcome: the default observer."""


def run_cell(compute: Compute[Any], cell: Cell[Any]) -> Outcome[Any]:
    """Outcome of one cell. An exception is stored as its traceback; an interrupt is raised."""
    start = time.perf_counter()
    rows: tuple[Row, ...] | None = None
    failure: str | None = None
    try:
        result = compute(cell.configuration, np.random.default_rng(cell.seed))
        given = [result] if isinstance(result, dict) else result
        rows = tuple({name: plain(row[name], name) for name in row} for row in given)
        if not rows:
            raise ValueError("compute must return at least 1 row, got 0")
        taken = {*configuration_fields(cell.configuration), "trial"}
        if clash := taken & set().union(*rows):
            raise ValueError(
                f"rows must not use the names {sorted(clash)} of the configuration and the trial"
            )
    except Exception:
        rows, failure = None, traceback.format_exc()
    return Outcome(cell, time.perf_counter() - start, rows, failure)


@dataclass(frozen=True)
class SweepResult:
    """Outcomes of all cells of a sweep, in the order of the cells."""

    outcomes: tuple[Outcome[Any], ...]

    @property
    def failures(self) -> tuple[Outcome[Any], ...]:
        """Outcomes of the cells that failed."""
        return tuple(outcome for outcome in self.outcomes if outcome.failed)

    @property
    def seconds(self) -> float:
        """Sum of the seconds of all cells, including cells that earlier runs completed."""
        return sum(outcome.seconds for outcome in self.outcomes)

    def table(self) -> pd.DataFrame:
        """All rows; each begins with its configuration and the number of its trial."""
        if self.failures:
            raise ValueError(f"the sweep must be complete, {len(self.failures)} cells failed")
        records: list[Row] = []
        for outcome in self.outcomes:
            front = {
                **configuration_fields(outcome.cell.configuration),
                "trial": outcome.cell.trial,
            }
            records.extend({**front, **row} for row in outcome.rows or ())
        return pd.DataFrame.from_records(records)


def run_sweep(
    compute: Compute[C],
    sweep: Sweep[C],
    store: Store,
    executor: Executor = in_process,
    observe: Callable[[Outcome[Any]], None] = ignore,
) -> SweepResult:
    """Run the cells that have no completed outcome in the store, and return all outcomes."""
    for outcome in executor(Work(compute, store.code), pending(sweep, store)):
        store.record(outcome)
        observe(outcome)
    return result(sweep, store)


def pending(sweep: Sweep[C], store: Store) -> list[Cell[C]]:
    """The cells of a sweep that have no completed outcome in the store."""
    cells = sweep.cells()
    done = {outcome.cell.key for outcome in store.outcomes(cells) if not outcome.failed}
    return [cell for cell in cells if cell.key not in done]


def result(sweep: Sweep[Any], store: Store) -> SweepResult:
    """The outcomes of a sweep whose cells have all been run."""
    cells = sweep.cells()
    outcomes = store.outcomes(cells)
    if len(outcomes) != len(cells):
        raise RuntimeError(f"the executor returned {len(outcomes)} of {len(cells)} outcomes")
    return SweepResult(tuple(outcomes))


@dataclass(frozen=True)
class Task:
    """A cell with the work of its sweep, so that several sweeps can share an executor."""

    number: int  # Number of the sweep
    work: Work
    cell: Cell[Any]

    @property
    def key(self) -> tuple[int, str, int, int]:
        """Number of the sweep, and the key of the cell."""
        return (self.number, *self.cell.key)


class EachWork:
    """The work of tasks, for an executor. The `cell` of an outcome is the task."""

    def __call__(self, task: Task) -> Outcome[Any]:
        """Outcome of the task's cell, like `Work`."""
        return replace(task.work(task.cell), cell=task)

    def checked(self, task: Task) -> Outcome[Any]:
        """Outcome of the task's cell, like `Work.checked`."""
        return replace(task.work.checked(task.cell), cell=task)
