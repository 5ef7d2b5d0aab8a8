"""The main job, from records to private tables: its time, and speed and error beside other tools.

Time is the wall-clock time of the command `geomdp release` as a whole process, from the start of
Python to the written files, with an empty cache of set-ups. The full preset times one command for
each of ten workloads on bundled tables. The workloads are of every kind except second moments.
Speed is the number of rows a second when all 1-way or all 2-way tables of ten text columns of a
Parquet file are counted. geomdp checks every value against the schema. The other tools check
nothing. They are one query of DuckDB with a grouping set per table, and groupings of pyarrow and
pandas. Error is the root mean squared error of all 2-way tables of five columns, for two bundled
real tables, at epsilon = 1 under replace-one. These 2-way tables are released by the default of
geomdp, by OpenDP's discrete Laplace noise, by diffprivlib's histograms, and by graphical models
that mbi fits to the answers of the matrix mechanism, of Laplace noise and of the unbiased release
of geomdp.

Claims: the default release errs less than OpenDP and diffprivlib. Times and speeds (LAB-2) are
drawn, and no claim depends on them. A command that runs longer than its limit, 60
seconds at the full preset, is stopped and shown at this limit.

Run time: quick 40 s, full 5 minutes.
"""

import enum
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.benchmarks.large_files import write_records
from experiments.benchmarks.peers import noisy_tables
from experiments.benchmarks.peers.graphical_model import fitted_tables
from experiments.engine.script import Needs


class Part(enum.StrEnum):
    """What is measured, with its unit."""

    TIME = "seconds of the whole command"
    SPEED = "million rows a second"
    ERROR = "root mean squared error"


class Tool(enum.StrEnum):
    """The program or library that is measured."""

    OURS = "geomdp"
    DUCKDB = "DuckDB"
    PYARROW = "pyarrow"
    PANDAS = "pandas"
    OPENDP = "OpenDP"
    DIFFPRIVLIB = "diffprivlib"
    MBI = "mbi"
    MBI_LAPLACE = "mbi, Laplace noise"
    MBI_OURS = "mbi, our noise"


@dataclass(frozen=True)
class Config:
    part: Part  # What is measured
    question: str  # The workload, or for errors the sample, by its name in the figure
    tool: Tool  # Which program or library is measured
    #: For times, the seconds after which a command is stopped; for speeds, the number of rows; for
    #: errors, the number of releases.
    size: int


#: Flags of the command for each workload, by its name in the figure.
COMMANDS = {
    "2-way tables, 10 columns": "--sample rand --workload marginals:2",
    "2-way tables, 9 columns": "--sample affairs --workload marginals:2",
    "1-way tables, 10 columns": "--sample rand --workload marginals:1",
    "3-way tables, 5 columns": "--sample affairs --workload marginals:3 "
    "--columns rate_marriage,children,religious,educ,occupation",
    "histogram of 2 columns": "--sample rand --workload histogram --columns mdvis,disea",
    "prefixes": "--sample affairs --workload prefixes:age",
    "ranges": "--sample affairs --workload ranges:yrs_married",
    "conjunctions": "--sample rand --workload conjunctions:2 --columns idp,hlthg,hlthf,hlthp",
    "parities": "--sample rand --workload parities:2 --columns idp,hlthg,hlthf,hlthp",
    "random signs": "--sample rand --workload signs:20 --columns mdvis,idp",
}
#: For each name in the figure, a bundled sample and the columns whose 2-way tables are released.
SAMPLES = {
    "RAND, 5 columns": ("rand", ("mdvis", "lncoins", "idp", "disea", "hlthg")),
    "affairs, 5 columns": ("affairs", ("rate_marriage", "age", "children", "religious", "educ")),
}
COUNTERS: dict[Tool, Callable[[Path, list[str], int], int]] = {
    Tool.DUCKDB: noisy_tables.by_duckdb,
    Tool.PYARROW: noisy_tables.by_pyarrow,
    Tool.PANDAS: noisy_tables.by_pandas,
}
ORDERS = {"1-way tables": 1, "2-way tables": 2}
LEVELS = (2, 3, 4, 5, 6, 7, 8, 9, 5, 4)
COLUMNS = {f"c{i}": [f"level {j} of {i}" for j in range(n)] for i, n in enumerate(LEVELS)}
EPSILON = 1.0


def seconds(config: Config, _: np.random.Generator) -> float:
    """Seconds of one command in a process of its own.

    The result is the faster of two runs. Code that numba compiles in the first run is stored on
    disk, so the second run is like any later use of an installed library. If a run is stopped, the
    result is the limit.
    """
    try:
        return min(one_command(config) for _ in range(2))
    except subprocess.TimeoutExpired:
        return float(config.size)


def one_command(config: Config) -> float:
    """Seconds of one run; a run that exceeds the limit raises ``TimeoutExpired``."""
    with tempfile.TemporaryDirectory() as folder:
        flags = [*COMMANDS[config.question].split(), "--epsilon", "1", "--out", f"{folder}/a.csv"]
        program = [sys.executable, "-c", "from geomdp.cli import main; main()", "release", *flags]
        start = time.perf_counter()
        subprocess.run(program, check=True, capture_output=True, timeout=config.size)
        return time.perf_counter() - start


def speed(config: Config, rng: np.random.Generator) -> float:
    """Million rows a second of the faster of two runs on one file of random records."""
    k, names = ORDERS[config.question], list(COLUMNS)
    schema = gd.data.Schema.from_dict(COLUMNS)
    workload = gd.workloads.MarginalTables(schema.levels, k)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.parquet"
        write_records(path, config.size, COLUMNS, rng)

        def ours() -> int:
            return gd.data.count_records(gd.data.source_of(path), schema, workload).count

        peer = COUNTERS.get(config.tool)
        run = ours if peer is None else lambda: peer(path, names, k)
        fastest = np.inf
        for _ in range(2):
            start = time.perf_counter()
            counted = run()
            fastest = min(fastest, time.perf_counter() - start)
    if counted != config.size:
        raise AssertionError(f"{config.tool} counted {counted} of {config.size} rows")
    return float(config.size / fastest / 1e6)


def error(config: Config, rng: np.random.Generator) -> float:
    """Root mean squared error of the shares of the records, over all cells and releases."""
    name, columns = SAMPLES[config.question]
    loaders = {"rand": gd.data.rand_health_insurance, "affairs": gd.data.fair_affairs}
    sample = loaders[name]()
    schema = sample.schema.select(columns)
    workload = gd.workloads.MarginalTables(schema.levels, 2)
    (codes,) = gd.data.encode(sample.frame, schema, workload.universe)
    truth = workload.answers(codes)
    squares = [
        np.mean((private(config.tool, sample.frame, schema, codes, rng) - truth) ** 2)
        for _ in range(config.size)
    ]
    return float(np.sqrt(np.mean(squares)))


def private(
    tool: Tool,
    frame: pd.DataFrame,
    schema: gd.data.Schema,
    codes: npt.NDArray[np.int64],
    rng: np.random.Generator,
) -> ex.FloatArray:
    """One release of all cells of all 2-way tables, as shares of n; 1-DP under replace-one."""
    levels, n = list(schema.levels.values()), len(frame)
    if tool is Tool.OURS:
        return gd.release(frame, schema, "marginals:2", epsilon=EPSILON, rng=rng).answers
    if tool is Tool.DIFFPRIVLIB:
        seed = int(rng.integers(1 << 20))
        return noisy_tables.diffprivlib_tables(codes, levels, EPSILON, seed) / n
    workload = gd.workloads.MarginalTables(levels, 2)
    if tool is Tool.OPENDP:
        counts = (n * workload.answers(codes)).round().astype(np.int64)
        return noisy_tables.opendp_tables([counts[place] for place in workload.slices], EPSILON) / n
    privacy = gd.PureDP(EPSILON)
    if tool is Tool.MBI_OURS:
        asked = gd.release(frame, schema, "marginals:2", epsilon=EPSILON, unbiased=True, rng=rng)
        return fitted_tables(workload, asked.answers, n)
    strategy = gd.mechanisms.Laplace if tool is Tool.MBI_LAPLACE else gd.mechanisms.Matrix
    noisy = strategy(workload, n=n, privacy=privacy)
    return fitted_tables(workload, noisy.release(codes, rng=rng).answers, n)


NEEDS = Needs(("mbi", "jax", "opendp", "diffprivlib", "sklearn"), extra="bench")
TIMED = "commands and counts"
CLOCK = ("timed",)


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """One row with the measured error, time or speed."""
    if config.part is Part.ERROR:
        return {"error": error(config, rng), "timed": None}
    measure = {Part.TIME: seconds, Part.SPEED: speed}[config.part]
    return {"error": None, "timed": measure(config, rng)}


def values(table: pd.DataFrame) -> dict[tuple[str, str, str], float]:
    """The median of the trials, by part, question and tool."""
    measured = table.error.fillna(table.timed) if "timed" in table else table.error
    found = measured.groupby([table.part, table.question, table.tool]).median()
    return {(str(p), str(q), str(t)): float(value) for (p, q, t), value in found.items()}


def claims(table: pd.DataFrame) -> ex.Claims:
    found = values(table)
    for question, peer in itertools.product(SAMPLES, (Tool.OPENDP, Tool.DIFFPRIVLIB)):
        if (Part.ERROR, question, peer) in found:
            ours, theirs = (found[Part.ERROR, question, tool] for tool in (Tool.OURS, peer))
            name = f"on {question}, our error is below that of {peer} (RMSE)"
            shown, goal, used = f"{ours:.3g}", f"below {theirs:.3g}", ours / theirs
            yield ex.Claim(name, ex.Verdict(ours < theirs, used), shown, goal, "X-LKJ")


#: The drawn parts, with the title and the unit of each panel.
PANELS = {
    Part.SPEED: ("counting tables", "million rows a second"),
    Part.ERROR: (r"error, 2-way tables, $\varepsilon=1$", "RMSE of a share"),
}


def plot(table: pd.DataFrame) -> ex.Figure:
    found = values(table)
    titles, units = zip(*PANELS.values(), strict=True)
    figure, panels = ex.panels((7.2, 3.9), titles, units)
    for axes, part in zip(panels, PANELS, strict=True):
        questions = dict.fromkeys(table[table.part == part].question)
        rows = [(q, t) for q in questions for t in Tool if (part, q, t) in found]
        sizes = [found[part, question, tool] for question, tool in rows]
        places = np.arange(len(rows))[::-1]
        colours = ["C0" if tool is Tool.OURS else "0.7" for _, tool in rows]
        axes.barh(places, sizes, color=colours)
        axes.bar_label(axes.containers[0], fmt="%.2g", padding=2, fontsize=ex.SMALL)
        names = [f"{q.partition(',')[0].removesuffix(' tables')}: {t}" for q, t in rows]
        axes.set_yticks(places, names)
        axes.margins(x=0.3)
        axes.grid(axis="y", visible=False)
    times = [value for (part, *_), value in found.items() if part == Part.TIME]
    return ex.headline(
        figure,
        "Private tables with the least error, counted at millions of rows a second",
        f"A whole command takes {min(times):.1f} to {max(times):.1f} s, with no stored set-up. "
        "Only geomdp checks every value.",
    )


def grid(
    commands: list[str], limit: int, rows: int, samples: list[str], releases: int
) -> tuple[Config, ...]:
    """All measurements."""
    return (
        *ex.product(Config, Part.TIME, commands, Tool.OURS, limit),
        *ex.product(Config, Part.SPEED, ORDERS, (Tool.OURS, *COUNTERS), rows),
        *ex.product(
            Config,
            Part.ERROR,
            samples,
            (Tool.OURS, Tool.OPENDP, Tool.DIFFPRIVLIB, Tool.MBI, Tool.MBI_LAPLACE, Tool.MBI_OURS),
            releases,
        ),
    )


#: DuckDB counts so many rows in about a second.
FULL_ROWS = 5_000_000
QUICK = ex.Sweep(
    grid(["1-way tables, 10 columns", "prefixes"], 10, 300_000, ["RAND, 5 columns"], 2)
)
FULL = ex.Sweep(grid(list(COMMANDS), 60, FULL_ROWS, list(SAMPLES), 10))
