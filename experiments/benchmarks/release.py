"""The main job, from records to private tables: its time, and speed and error beside other tools.

Time is the wall-clock time of the command `geomdp release` as a whole process, from the start of
Python to the written files, with an empty cache of set-ups. The full preset times one command for
each of ten workloads on bundled tables. The workloads are of every kind except second moments.
Speed is the number of rows a second when all 1-way or all 2-way tables of ten text columns of a
Parquet file are counted. geomdp checks every value against the schema. The other tools check
nothing. They are one query of DuckDB with a grouping set per table, and groupings of pyarrow and
pandas. Error is the root mean squared error of all 2-way tables of five columns, for two bundled
real tables, at epsilon = 1 under replace-one. These 2-way tables are released by the default of
geomdp, by OpenDP's discrete Laplace noise, by diffprivlib's histograms, and by a graphical model
that mbi fits to the answers of the matrix mechanism.

Claims: the default release errs less than OpenDP and diffprivlib. Times and speeds (LAB-2) are
drawn and printed, and no claim depends on them. A command that runs longer than its limit, 60
seconds at the full preset, is stopped and shown at this limit.

Run time: quick 40 s, full 5 minutes.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from rich.table import Table

from experiments.benchmarks.release_measurements import (
    COMMANDS,
    COUNTERS,
    ORDERS,
    SAMPLES,
    Config,
    Part,
    Tool,
    error,
    seconds,
    speed,
)
from experiments.engine.cells import Row, Sweep
from experiments.engine.claims import Claim
from experiments.engine.script import Needs

NEEDS = Needs(("mbi", "jax", "opendp", "diffprivlib", "sklearn"), extra="bench")
TIMED = "commands and counts"
CLOCK = ("timed",)


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """One row with the measured error, time or speed."""
    if config.part is Part.ERROR:
        return [{"error": error(config, rng), "timed": None}]
    measure = {Part.TIME: seconds, Part.SPEED: speed}[config.part]
    return [{"error": None, "timed": measure(config, rng)}]


def values(table: pd.DataFrame) -> dict[tuple[str, str, str], float]:
    """The median of the trials, by part, question and tool."""
    measured = table.error.fillna(table.timed) if "timed" in table else table.error
    found = measured.groupby([table.part, table.question, table.tool]).median()
    return {(str(p), str(q), str(t)): float(value) for (p, q, t), value in found.items()}


def claims(table: pd.DataFrame) -> list[Claim]:
    """Claims about errors."""
    found = values(table)
    made = []
    for question, peer in itertools.product(SAMPLES, (Tool.OPENDP, Tool.DIFFPRIVLIB)):
        if (Part.ERROR, question, peer) in found:
            ours, theirs = (found[Part.ERROR, question, tool] for tool in (Tool.OURS, peer))
            name = f"on {question}, our error is below that of {peer} (RMSE)"
            shown, goal, used = f"{ours:.3g}", f"below {theirs:.3g}", ours / theirs
            made.append(Claim(name, ours < theirs, shown, goal, "X-LKJ", used=used))
    return made


def report(table: pd.DataFrame) -> Table:
    """One line for each question, one column for each tool."""
    shown = Table("measured", "question", title="The main job")
    for tool in Tool:
        shown.add_column(tool.value, justify="right")
    found = values(table)
    for part, question in dict.fromkeys((part, question) for part, question, _ in found):
        cells = [found.get((part, question, tool)) for tool in Tool]
        shown.add_row(part, question, *("" if v is None else f"{v:.3g}" for v in cells))
    return shown


TITLES = {
    Part.TIME: "a whole command, with no stored set-up",
    Part.SPEED: "counting (only geomdp checks every value)",
    Part.ERROR: r"error of all 2-way tables, $\varepsilon=1$",
}
UNITS = {
    Part.TIME: "seconds (less is better)",
    Part.SPEED: "million rows a second (more is better)",
    Part.ERROR: "root mean squared error of a share (less is better)",
}


def plot(table: pd.DataFrame) -> Figure:
    """Three panels of bars: seconds, rows a second, errors; ours in colour."""
    figure = Figure(figsize=(7.2, 8.6), layout="constrained")
    found = values(table)
    parts = [part for part in Part if any(key[0] == part for key in found)]
    heights = [sum(key[0] == part for key in found) + 1 for part in parts]
    panels = figure.subplots(len(parts), 1, height_ratios=heights, squeeze=False)[:, 0]
    for axes, part, letter in zip(panels, parts, "abc", strict=False):
        questions = dict.fromkeys(key[1] for key in table_order(table, part))
        rows = [(q, t) for q in questions for t in Tool if (part, q, t) in found]
        sizes = [found[part, question, tool] for question, tool in rows]
        places = np.arange(len(rows))[::-1]
        colours = ["C0" if tool is Tool.OURS else "0.7" for _, tool in rows]
        axes.barh(places, sizes, color=colours, edgecolor="black", linewidth=0.6)
        axes.bar_label(axes.containers[0], fmt="%.3g", padding=2, fontsize=7)
        alone = part is Part.TIME
        axes.set_yticks(places, [q if alone else f"{q}: {t}" for q, t in rows], fontsize=7)
        axes.margins(x=0.12)
        axes.set(xlabel=UNITS[part], title=f"({letter}) {TITLES[part]}")
        axes.grid(axis="y", visible=False)
    return figure


def table_order(table: pd.DataFrame, part: Part) -> list[tuple[str, str]]:
    """The rows with the given part, each as (part, question), in the order of the sweep."""
    chosen = table[table.part == part]
    return list(zip(chosen.part, chosen.question, strict=True))


def grid(
    commands: list[str], limit: int, rows: int, samples: list[str], releases: int
) -> tuple[Config, ...]:
    """All measurements."""
    return (
        *(Config(Part.TIME, question, Tool.OURS, limit) for question in commands),
        *(
            Config(Part.SPEED, question, tool, rows)
            for question in ORDERS
            for tool in (Tool.OURS, *COUNTERS)
        ),
        *(
            Config(Part.ERROR, question, tool, releases)
            for question in samples
            for tool in (Tool.OURS, Tool.OPENDP, Tool.DIFFPRIVLIB, Tool.MBI)
        ),
    )


#: DuckDB counts so many rows in about a second.
FULL_ROWS = 5_000_000
QUICK = Sweep(
    grid(["1-way tables, 10 columns", "prefixes"], 10, 300_000, ["RAND, 5 columns"], 2),
    trials=1,
    seed=0,
)
FULL = Sweep(grid(list(COMMANDS), 60, FULL_ROWS, list(SAMPLES), 10), trials=1, seed=0)
