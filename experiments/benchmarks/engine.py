"""The engine itself: what it adds to a cell, and the speed-up by a second process.

A cell is one configuration and one trial of a sweep. A sweep writes the outcome of each cell to a
database before it asks for the next outcome, so that a kill loses only outcomes that have not yet
reached the sweep. It hands cells to processes one by one. Neither the database nor the processes
may cost much (LAB-1).

Claims, in counted work: a sweep computes each cell once, in one process and on two, with the same
results. The database takes at most 2 KiB for a trivial cell. A process is sent at most 1 KiB for a
cell. Both numbers do not grow with the number of cells. Times are drawn, and no claim
depends on them: the time of a trivial cell, and the parallel efficiency (time of one process
divided by twice the time of two) of cells that sleep or compute. A process takes about 1 s to
start, and this time is not counted.

Run time on two idle cores: quick 4 s, full 3 minutes.
"""

import enum
import pickle
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
from experiments.engine.processes import Processes
from experiments.engine.provenance import Code
from experiments.engine.run import Compute, Executor, SweepResult, Work, in_process, run_sweep
from experiments.engine.store import Store

TIMED = "sweeps in one and on two processes"
CLOCK = ("wall_ms", "processor_ms", "efficiency", "occupied")


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
#: The most bytes of the database for a trivial cell, and of a message to a process.
MOST_STORED, MOST_SENT = 2048, 1024


def trivial(task: Task, rng: np.random.Generator) -> list[ex.Row]:
    """Draw one number."""
    return [{"value": task.number + rng.random()}]


def sleeping(task: Task, rng: np.random.Generator) -> list[ex.Row]:
    """Sleep for ``task.seconds``: even on a busy machine processes can sleep at the same time."""
    time.sleep(task.seconds)
    return trivial(task, rng)


def computing(task: Task, rng: np.random.Generator) -> list[ex.Row]:
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
    """Wall-clock and processor seconds of this process for one sweep, and its counted work."""

    wall: float
    processor: float
    result: SweepResult
    computed: int  # Cells computed
    stored: int  # Bytes of the database
    sent: int  # Most bytes that a process would be sent for a cell


def timed(config: Config, cells: int, executor: Executor) -> Timing:
    """Run a sweep of `cells` cells into a new store and take its time."""
    tasks = tuple(Task(number, config.milliseconds / 1000) for number in range(cells))
    sweep, code = ex.Sweep(tasks), Code.of(sys.modules[__name__])
    computed: list[ex.Outcome[Task]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sweep.sqlite"
        wall, processor = time.perf_counter(), time.process_time()
        with Store(path, code) as store:
            result = run_sweep(LOADS[config.load], sweep, store, executor, computed.append)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        stored = path.stat().st_size
    work = Work(LOADS[config.load], code)
    sent = max(len(pickle.dumps((work, cell))) for cell in sweep.cells())
    return Timing(wall, processor, result, len(computed), stored, sent)


def compute(config: Config, _: np.random.Generator) -> ex.Row:
    """Time one sweep in this process and, unless its cells do nothing, on two processes."""
    sweeps = [alone := timed(config, config.cells, in_process)]
    row: ex.Row = {
        "wall_ms": 1000 * alone.wall / config.cells,
        "processor_ms": 1000 * alone.processor / config.cells,
        "efficiency": None,
        "occupied": None,
    }
    if config.load is not Load.NOTHING:
        with Processes(WORKERS) as processes:
            timed(config, 2 * WORKERS, processes)  # starts the processes
            sweeps.append(shared := timed(config, config.cells, processes))
        row["efficiency"] = alone.wall / (WORKERS * shared.wall)
        row["occupied"] = shared.result.seconds / (WORKERS * shared.wall)
    values = [[outcome.rows for outcome in each.result.outcomes] for each in sweeps]
    row["computed"] = max(each.computed for each in sweeps)
    row["alike"] = all(each == values[0] for each in values)
    row["stored"] = max(each.stored for each in sweeps) / config.cells
    row["sent"] = alone.sent
    return row


def claims(table: pd.DataFrame) -> ex.Claims:
    again = int((table.computed - table.cells).max())
    name = "each cell is computed once, and two processes give the results of one"
    verdict = ex.each_case(again == 0 and bool(table.alike.all()))
    measured = f"{table.cells.sum():,} cells in {len(table)} sweeps, at most {again} more computed"
    yield ex.Claim(name, verdict, measured, "0 more, equal results", "design")
    yield at_most("bytes of the database for a trivial cell", table.stored.max(), MOST_STORED)
    yield at_most("bytes sent to a process for a cell", table.sent.max(), MOST_SENT)


def at_most(name: str, measured: float, limit: int) -> ex.Claim:
    """Claim that the work for a cell is below its limit, in sweeps of every size."""
    used = ex.share(measured, limit)
    statement = f"{name}: at most {limit:,}, in sweeps of every size"
    words = f"at most {measured:,.0f}"
    return ex.Claim(statement, ex.at_most(used, 1), words, f"at most {limit:,}", "design")


LOOKS = {
    (Load.SLEEP, "efficiency"): ("cells sleep", ex.Look("C0", "o")),
    (Load.COMPUTE, "efficiency"): ("cells compute", ex.Look("C2", "D")),
    (Load.COMPUTE, "occupied"): ("share in cells", ex.Look("C5", "s", filled=False)),
}


def plot(table: pd.DataFrame) -> ex.Figure:
    titles = ["trivial cells, one process", "two processes"]
    xlabels = ["cells of the sweep", "length of a cell (ms)"]
    heights = ["time per cell (ms)", "parallel efficiency"]
    figure, (cost, gain) = ex.panels((7.2, 3.9), titles, xlabels, heights)
    sizes = table[table.load == Load.NOTHING].groupby("cells")
    for column, label, look in (
        ("wall_ms", "wall clock", ex.Look("C0", "s")),
        ("processor_ms", "processor", ex.Look(ex.GREY, "v", filled=False)),
    ):
        _curve(cost, sizes[column].agg(["min", "median", "max"]), label, look)
    ex.log_axes(cost, "x")
    cost.set_ylim(bottom=0)
    looks = {key: look for key, look in LOOKS.items() if key[0] in set(table.load)}
    for (load, column), (label, look) in looks.items():
        lengths = table[table.load == load].groupby("milliseconds")[column]
        _curve(gain, lengths.agg(["min", "median", "max"]), label, look)
    gain.set_ylim(0, 1.2)
    ex.log_axes(gain, "x")
    for axes in (cost, gain):
        ex.label_curves(axes)
    return ex.headline(
        figure,
        "The engine adds under a millisecond to a cell, and two processes pay",
        "Median and range. (b): speed-up over 2, and the share of the time that is spent in cells.",
    )


def _curve(axes: ex.Axes, spread: pd.DataFrame, label: str, look: ex.Look) -> None:
    band = spread["min"], spread["max"]
    ex.draw_points(axes, spread.index, spread["median"], look, label, band=band)


def grid(
    sizes: tuple[int, ...], loads: tuple[Load, ...], lengths: tuple[float, ...], seconds: float
) -> tuple[Config, ...]:
    """One sweep of trivial cells per size, and one of about `seconds` per load and cell length."""
    return (
        *ex.product(Config, Load.NOTHING, 0.0, sizes),
        *(
            Config(load, length, max(20, round(1000 * seconds / length)))
            for load in loads
            for length in lengths
        ),
    )


QUICK = ex.Sweep(grid((50, 200), (Load.COMPUTE,), (10.0,), seconds=0.2))
FULL = ex.Sweep(
    grid((50, 500, 5000), (Load.SLEEP, Load.COMPUTE), (5.0, 10.0, 20.0, 50.0, 100.0), seconds=2.0),
    trials=3,
)
