"""Measurements of the release benchmark: seconds of commands, speeds of counting, and errors."""

from __future__ import annotations

import enum
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd

import geomdp as gd
from experiments.benchmarks.peers.graphical_model import fitted_tables
from experiments.benchmarks.peers.noisy_tables import diffprivlib_tables, opendp_tables
from experiments.benchmarks.peers.table_counts import by_duckdb, by_pandas, by_pyarrow


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


@dataclass(frozen=True)
class Config:
    """One measurement.

    Parameters
    ----------
    part : Part
        What is measured.
    question : str
        The workload, or for errors the sample, by its name in the figure.
    tool : Tool
        Which program or library is measured.
    size : int
        For times, the limit in seconds after which a command is stopped; for speeds, the number of
        rows; for errors, the number of releases.
    """

    part: Part
    question: str
    tool: Tool
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
    Tool.DUCKDB: by_duckdb,
    Tool.PYARROW: by_pyarrow,
    Tool.PANDAS: by_pandas,
}
ORDERS = {"1-way tables": 1, "2-way tables": 2}
LEVELS = (2, 3, 4, 5, 6, 7, 8, 9, 5, 4)
COLUMNS = {f"c{i}": [f"level {j} of {i}" for j in range(n)] for i, n in enumerate(LEVELS)}
EPSILON = 1.0


def seconds(config: Config, rng: np.random.Generator) -> float:
    """Seconds of one command in a process of its own.

    The result is the faster of two runs. Code that numba compiles in the first run is stored on
    disk, so the second run is like any later use of an installed library. If a run is stopped, the
    result is the limit.
    """
    del rng
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
        write_records(path, config.size, rng)

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


def write_records(path: Path, rows: int, rng: np.random.Generator) -> None:
    """Write records with independent uniform levels in ten text columns."""
    chosen = []
    for name, levels in COLUMNS.items():
        texts = ", ".join(f"'{level}'" for level in levels)
        chosen.append(f"[{texts}][1 + CAST(floor(random() * {len(levels)}) AS INT)] AS {name}")
    duckdb.sql(f"SELECT setseed({rng.uniform():.6f})").fetchall()
    duckdb.sql(f"COPY (SELECT {', '.join(chosen)} FROM range({rows})) TO '{path}'")


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
) -> npt.NDArray[np.float64]:
    """One release of all cells of all 2-way tables, as shares of n; 1-DP under replace-one."""
    levels, n = list(schema.levels.values()), len(frame)
    if tool is Tool.OURS:
        return gd.release(frame, schema, "marginals:2", epsilon=EPSILON, rng=rng).answers
    if tool is Tool.DIFFPRIVLIB:
        seed = int(rng.integers(1 << 20))
        return diffprivlib_tables(codes, levels, EPSILON, seed) / n
    workload = gd.workloads.MarginalTables(levels, 2)
    if tool is Tool.OPENDP:
        counts = (n * workload.answers(codes)).round().astype(np.int64)
        return opendp_tables([counts[place] for place in workload.slices], EPSILON) / n
    noisy = gd.mechanisms.Matrix(workload, n=n, privacy=gd.PureDP(EPSILON))
    return fitted_tables(levels, 2, noisy.release(codes, rng=rng).answers, n)
