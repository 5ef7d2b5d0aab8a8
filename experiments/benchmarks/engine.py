"""The engine itself: the time that it adds to a cell, and the speed-up by a second process.

A cell is one configuration and one trial of a sweep. A sweep writes the outcome of each cell to a
database before it asks for the next outcome, so that a kill loses only outcomes that have not yet
reached the sweep. It hands cells to processes one by one. Neither the database nor the processes
may cost much time (LAB-1).

Claims (the quick run checks only processor time): in one process a sweep of 5000 trivial cells
takes less than 3 ms a cell by the wall clock. This time includes opening the database, writing, and
reading back. Trivial cells take less than 3 ms of processor time in sweeps of all sizes. On 2
processes, the parallel efficiency (time of one process divided by twice the time of two, in the
same run) is at least 0.85 for cells that sleep for 50 ms. When cells compute for 50 ms, the two
processes spend on average at least 0.85 of the time inside cells. The parallel efficiency of these
cells is reported and not claimed, because it depends on the other programs that run on the cores. A
process takes about 1 s to start, and this time is not counted.

Run time on two idle cores: quick 8 s, full 3 minutes.
"""

from __future__ import annotations

import enum
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from experiments.engine import margins
from experiments.engine.cells import Row, Sweep
from experiments.engine.claims import Claim
from experiments.engine.drawing import Look, draw_points, shared_legend
from experiments.engine.processes import Processes
from experiments.engine.provenance import Code
from experiments.engine.run import Compute, Executor, SweepResult, in_process, run_sweep
from experiments.engine.store import Store

TIMED = "sweeps in one and on two processes"


class Load(enum.StrEnum):
    """What the cells of the measured sweep do."""

    NOTHING = "nothing"
    SLEEP = "sleep"
    COMPUTE = "compute"


@dataclass(frozen=True)
class Config:
    """One measured sweep."""

    load: Load  # What its cells do
    milliseconds: float  # How long each cell sleeps or computes
    cells: int  # Number of cells


@dataclass(frozen=True)
class Task:
    """Configuration of a cell of the measured sweep: its number, and how long it takes."""

    number: int
    seconds: float


WORKERS = 2
#: A time by the wall clock is claimed for a sweep of this many cells. For smaller sweeps, which
#: also run in the test suite while other work runs, processor time alone is claimed.
MANY = 5000
#: Limits of the claims: the most milliseconds that a trivial cell may cost in one process, and the
#: least parallel efficiency of cells that sleep for `LENGTH` milliseconds. For cells that compute
#: for `LENGTH` milliseconds, the share of time inside cells must reach the same number.
MOST_MILLISECONDS, LEAST_EFFICIENCY, LENGTH = 3.0, 0.85, 50.0


def trivial(task: Task, rng: np.random.Generator) -> list[Row]:
    """Draw one number."""
    return [{"value": task.number + rng.random()}]


def sleeping(task: Task, rng: np.random.Generator) -> list[Row]:
    """Sleep for ``task.seconds``: even on a busy machine processes can sleep at the same time."""
    time.sleep(task.seconds)
    return trivial(task, rng)


def computing(task: Task, rng: np.random.Generator) -> list[Row]:
    """Use a core for ``task.seconds`` of processor time."""
    end = time.process_time() + task.seconds
    while time.process_time() < end:
        np.sin(np.arange(1000.0))
    return trivial(task, rng)


LOADS: dict[Load, Compute[Task]] = {
    Load.NOTHING: trivial,
    Load.SLEEP: sleeping,
    Load.COMPUTE: computing,
}


@dataclass(frozen=True)
class Timing:
    """Wall-clock seconds and processor seconds of this process for one sweep."""

    wall: float
    processor: float
    result: SweepResult


def timed(config: Config, cells: int, executor: Executor) -> Timing:
    """Run a sweep of `cells` cells into a new store and take its time."""
    tasks = tuple(Task(number, config.milliseconds / 1000) for number in range(cells))
    sweep, code = Sweep(tasks, trials=1, seed=0), Code.of(sys.modules[__name__])
    with tempfile.TemporaryDirectory() as folder:
        wall, processor = time.perf_counter(), time.process_time()
        with Store(Path(folder) / "sweep.sqlite", code) as store:
            result = run_sweep(LOADS[config.load], sweep, store, executor)
        return Timing(time.perf_counter() - wall, time.process_time() - processor, result)


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """Time one sweep in this process and, unless its cells do nothing, on two processes."""
    del rng  # nothing but the time is random here
    alone = timed(config, config.cells, in_process)
    row: Row = {
        "wall_ms": 1000 * alone.wall / config.cells,
        "processor_ms": 1000 * alone.processor / config.cells,
        "efficiency": None,
        "occupied": None,
    }
    if config.load is not Load.NOTHING:
        with Processes(WORKERS) as processes:
            timed(config, 2 * WORKERS, processes)  # starts the processes
            shared = timed(config, config.cells, processes)
        row["efficiency"] = alone.wall / (WORKERS * shared.wall)
        row["occupied"] = shared.result.seconds / (WORKERS * shared.wall)
    return [row]


def claims(table: pd.DataFrame) -> list[Claim]:
    """Claims about the time that a cell costs, and about the speed-up by a second process."""
    trivial_cells = table[table.load == Load.NOTHING].groupby("cells")
    cost = trivial_cells[["wall_ms", "processor_ms"]].median()
    long = table[table.milliseconds == LENGTH].groupby("load")[["efficiency", "occupied"]].median()
    gained = long.efficiency
    processor = below(
        f"trivial cells take on average less than {MOST_MILLISECONDS:g} ms of processor time (ms)",
        cost.processor_ms.max(),
    )
    if MANY not in cost.index:
        return [processor]
    found = [
        processor,
        at_least(
            f"two processes have a parallel efficiency of at least {LEAST_EFFICIENCY} on cells "
            "that sleep for 50 ms",
            gained[Load.SLEEP],
        ),
        at_least(
            f"two processes spend at least {LEAST_EFFICIENCY} of their time in cells that "
            "compute for 50 ms",
            long.occupied[Load.COMPUTE],
            f" (parallel efficiency {gained[Load.COMPUTE]:.3f})",
        ),
    ]
    wall = below(
        f"{MANY} trivial cells take on average less than {MOST_MILLISECONDS:g} ms of wall-clock "
        "time (ms)",
        cost.wall_ms[MANY],
    )
    return [wall, *found]


def below(name: str, measured: float) -> Claim:
    """Claim that the cost of a cell is below its limit."""
    passed = bool(measured < MOST_MILLISECONDS)
    return Claim(
        name,
        passed,
        f"{measured:.2f}",
        f"below {MOST_MILLISECONDS:g}",
        "design",
        used=margins.share(measured, MOST_MILLISECONDS),
    )


def at_least(name: str, measured: float, beside: str = "") -> Claim:
    """Claim that a parallel efficiency, or a share of time in cells, is as large as required."""
    passed = bool(measured >= LEAST_EFFICIENCY)
    return Claim(
        name,
        passed,
        f"{measured:.3f}{beside}",
        f"at least {LEAST_EFFICIENCY}",
        "design",
        used=margins.inverse_share(measured, LEAST_EFFICIENCY),
    )


def report(table: pd.DataFrame) -> Table:
    """One line for each sweep, with medians over its repetitions."""
    headings = ("a cell does", "for ms", "cells", "wall ms", "processor ms")
    shown = Table(*headings, "efficiency", "in cells", title="Sweeps in one and on two processes")
    keys = ["load", "milliseconds", "cells"]
    medians = table.groupby(keys).median(numeric_only=True).reset_index()
    for row in medians.itertuples():
        shares = (f"{share:.3f}" if share > 0 else "-" for share in (row.efficiency, row.occupied))
        costs = (f"{cost:.3f}" for cost in (row.wall_ms, row.processor_ms))
        shown.add_row(row.load, f"{row.milliseconds:g}", str(row.cells), *costs, *shares)
    return shown


LOOKS = {
    (Load.SLEEP, "efficiency"): ("cells sleep: speed-up / 2", Look("C0", "o")),
    (Load.COMPUTE, "efficiency"): ("cells compute: speed-up / 2", Look("C3", "D")),
    (Load.COMPUTE, "occupied"): ("cells compute: share in cells", Look("C1", "s", filled=False)),
}
REQUIRED, LIMIT = "required at 50 ms", "required"


def plot(table: pd.DataFrame) -> Figure:
    """Time of a trivial cell against sweep size, and parallel efficiency against cell length."""
    figure = Figure(figsize=(7.2, 3.9))
    cost, gain = figure.subplots(1, 2)
    sizes = table[table.load == Load.NOTHING].groupby("cells")
    for column, label, look in (
        ("wall_ms", "wall clock", Look("C0", "o")),
        ("processor_ms", "processor", Look("C2", "v", filled=False)),
    ):
        _curve(cost, sizes[column].agg(["min", "median", "max"]), label, look)
    cost.axhline(MOST_MILLISECONDS, color="black", linestyle=(0, (4, 2)), lw=1.1, label=LIMIT)
    cost.set_xscale("log")
    cost.set_ylim(0, 1.1 * max(MOST_MILLISECONDS, table[table.load == Load.NOTHING].wall_ms.max()))
    cost.set_xlabel("cells of the sweep")
    cost.set_ylabel("time per cell (ms)")
    cost.set_title("(a) trivial cells, one process")
    for (load, column), (label, look) in LOOKS.items():
        lengths = table[table.load == load].groupby("milliseconds")[column]
        _curve(gain, lengths.agg(["min", "median", "max"]), label, look)
    gain.plot([LENGTH], [LEAST_EFFICIENCY], "k_", markersize=14, label=REQUIRED)
    gain.set_xscale("log")
    gain.set_ylim(0, 1.2)
    gain.set_xlabel("length of a cell (ms)")
    gain.set_ylabel("parallel efficiency")
    gain.set_title("(b) two processes")
    labels = [label for label, _ in LOOKS.values()]
    shared_legend(
        figure,
        (cost, gain),
        {"(a)": ["wall clock", "processor", LIMIT], "(b)": [*labels, REQUIRED]},
    )
    return figure


def _curve(axes: Axes, spread: pd.DataFrame, label: str, look: Look) -> None:
    band = spread["min"], spread["max"]
    draw_points(axes, spread.index, spread["median"], look, label, band=band)


def grid(sizes: tuple[int, ...], lengths: tuple[float, ...], seconds: float) -> tuple[Config, ...]:
    """One sweep of trivial cells per size, and one of about `seconds` per load and cell length."""
    return (
        *(Config(Load.NOTHING, 0.0, size) for size in sizes),
        *(
            Config(load, length, max(20, round(1000 * seconds / length)))
            for load in (Load.SLEEP, Load.COMPUTE)
            for length in lengths
        ),
    )


QUICK = Sweep(grid((100, 500), (LENGTH,), seconds=1.0), trials=1, seed=0)
FULL = Sweep(grid((50, 500, MANY), (5.0, 10.0, 20.0, LENGTH, 100.0), seconds=2.0), trials=3, seed=0)
