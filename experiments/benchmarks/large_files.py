"""Cost of large files: time and memory of counting, against records, columns and order of tables.

All k-way tables of d columns are counted from a Parquet file of n records, which is all that a
release does with the records. Columns are texts with four levels, drawn independently. A process of
its own counts, and its processor time and its peak memory are measured. Ten columns are counted in
one more table, that of all columns, because mechanisms use it.

Claims (formula sheet JL-DEF: answers are averages over the records). The counts of eight files,
each counted alone, add up to those of one file with the same records, so that any number of workers
finds the counts of one process. The memory for the most records is at most twice that for the
fewest. In counted work, a record is added to at most one table for each set of at most k blocks of
columns. A block has as many columns as fit, if k blocks are to have at most 2^16 cells together.
With blocks of b columns that is about (d/b)^k/k! tables, in place of the d^k/k! tables that are
asked for. Times are drawn, and no claim depends on them.

Run time on one core: quick 10 s, full 2 minutes.
"""

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

import experiments.engine.tools as ex
from experiments.benchmarks.peaks import LEVELS, apart, count_tables

#: Number of files whose counts are added, and of records of each.
PARTS, FEW = 8, 2500
#: Largest number of cells of a table of k blocks, and how many times as much memory is allowed.
CACHED, GROWTH = 1 << 16, 2


@dataclass(frozen=True)
class Config:
    records: int  # Number n of records
    columns: int  # Number d of columns
    order: int  # Number k of columns of a table


def write_records(
    path: Path, rows: int, columns: Mapping[str, Sequence[str]], rng: np.random.Generator
) -> None:
    """Write independent uniform levels of text columns, given by their levels."""
    drawn = "[1 + CAST(floor(random() * {}) AS INT)] AS {}"
    chosen = [f"{levels}{drawn.format(len(levels), name)}" for name, levels in columns.items()]
    seed = f"SELECT setseed({rng.uniform():.6f})"
    copy(f"{seed}; COPY (SELECT {', '.join(chosen)} FROM range({rows}))", path)


def copy(query: str, path: Path) -> None:
    """Write the result of a query with one thread, so that the rows depend on the seed alone."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(f"{query} TO '{path}'")


TIMED = "counts of files"
CLOCK = ("seconds",)


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Seconds and memory for all records; tables, and cells that differ in parts, for a few."""
    with tempfile.TemporaryDirectory() as folder:
        path, parts = Path(folder) / "records.parquet", Path(folder) / "parts"
        columns = {f"c{number}": LEVELS for number in range(config.columns)}
        parts.mkdir()
        for part in range(PARTS):
            write_records(parts / f"{part}.parquet", FEW, columns, rng)
        copy(f"COPY (FROM '{parts}/*.parquet')", path)
        shape = config.columns, config.order
        whole = count_tables(path, *shape).tallies.cells
        counts = (count_tables(part, *shape).tallies for part in parts.iterdir())
        summed = reduce(add, counts).cells  # as workers add them
        write_records(path, config.records, columns, rng)
        found = apart(count_tables, path, *shape, repetitions=3)
    differing = sum(int(np.count_nonzero(whole[table] != summed[table])) for table in whole)
    return {"tables": len(whole), "differing": differing, **found}


def allowed_tables(d: int, k: int) -> int:
    """The number of sets of at most k blocks."""
    block = int(math.log(CACHED ** (1 / k), len(LEVELS)) + 1e-9) if k > 1 else 1
    return sum(math.comb(math.ceil(d / block), j) for j in range(k + 1))


def claims(table: pd.DataFrame) -> ex.Claims:
    name = f"the counts of {PARTS} files are the counts of one file with the same records"
    measured = f"{table.differing.sum()} cells differ, for {len(table)} sets of files"
    yield ex.Claim(name, ex.each_case((table.differing == 0).all()), measured, "none", "JL-DEF")
    memory = along_records(table).groupby("records").mib.max()
    growth, theory = memory.iloc[-1] / memory.iloc[0], f"at most {GROWTH} times"
    name = f"{memory.index[-1] / memory.index[0]:g} times the records need {theory} the memory"
    measured = f"{growth:.2f} times, {memory.iloc[-1]:.0f} MiB for {memory.index[-1]:,} records"
    yield ex.Claim(name, ex.at_most(growth, GROWTH), measured, theory, "JL-DEF")
    limits = np.array([allowed_tables(*key) for key in table[["columns", "order"]].to_numpy()])
    shares = table.tables / limits
    name = "a record is added to at most one table for each set of at most k blocks of columns"
    measured = (
        f"{shares.min():.2f} to {shares.max():.2f} times as many, {table.tables.max():,} at most"
    )
    yield ex.Claim(name, ex.at_most(shares, 1), measured, "at most as many", "JL-DEF")


def along_records(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the number of columns and the order with the most numbers of records."""
    groups = table.groupby(["columns", "order"])
    return table[groups.records.transform("size") == groups.size().max()]


#: The look of each order k.
LOOKS = dict(enumerate(map(ex.Look, ("C2", "C0", "C4", "C5"), "os^D"), start=1))
PANELS = {
    "time and records": ("millions", "seconds", "seconds of one core"),
    "time and columns": ("columns", "rate", "seconds per million records"),
    "memory and records": ("millions", "mib", "peak memory (MiB)"),
    "memory and columns": ("columns", "mib", "peak memory (MiB)"),
}


def plot(table: pd.DataFrame) -> ex.Figure:
    millions = table.records / 1e6
    table = table.assign(millions=millions, rate=table.seconds / millions)
    parts = {
        "millions": along_records(table),
        "columns": table.sort_values("records").drop_duplicates(["columns", "order"]),
    }
    xs, ys, ylabels = zip(*PANELS.values(), strict=True)
    xlabels = [{"millions": "million records $n$", "columns": "columns $d$"}[x] for x in xs]
    figure, panels = ex.panels((7.2, 6.2), PANELS, xlabels, ylabels, rows=2)
    for axes, x, y in zip(panels, xs, ys, strict=True):
        for order, rows in parts[x].sort_values(x).groupby("order"):
            ex.draw_points(axes, rows[x], rows[y], LOOKS[order], f"$k={order}$")
            if x == "columns":
                beside = ((-6, 4), "right") if order > 2 else ((6, 0), "left")
                last = rows.iloc[-1][[x, y]]
                ex.note(axes, tuple(last), f"$k={order}$", LOOKS[order].colour, *beside)
        ex.log_axes(axes)
        ex.label_ticks(axes, sorted(parts[x][x].unique()))
    panels[2].set_ylim(panels[3].get_ylim())
    for axes in panels[::2]:
        ex.label_curves(axes)
    shapes = parts["millions"][["columns", "order"]].drop_duplicates().to_numpy()
    left = " and ".join(f"$k={k}$ of $d={d}$" for d, k in shapes)
    return ex.headline(
        figure,
        "Time grows with the records, memory hardly; columns cost a power of both",
        "All tables of $k$ of $d$ columns with four levels, from Parquet, on one core. Left: "
        f"{left}.\nRight: {parts['columns'].records.iloc[0]:,} records; $k=3$ and $k=4$ end near "
        "$2^{21}$ cells, the limit of a release.",
    )


DIMENSIONS, MANY = (10, 20, 40, 80, 200), 250_000
LONG = (500_000, 1_000_000, 2_000_000, 4_000_000)
QUICK = ex.Sweep(
    (*ex.product(Config, (50_000, 200_000), 10, 2), *ex.product(Config, 50_000, 20, (1, 2)))
)
FULL = ex.Sweep(
    (
        *ex.product(Config, MANY, DIMENSIONS, (1, 2)),
        *ex.product(Config, MANY, DIMENSIONS[:3], 3),
        *ex.product(Config, MANY, DIMENSIONS[:2], 4),
        *ex.product(Config, LONG, 10, 2),
        *ex.product(Config, LONG, 20, 3),
    )
)
