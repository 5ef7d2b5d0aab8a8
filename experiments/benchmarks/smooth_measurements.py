"""Measurements of smooth summaries: processor time of releases and answers, peak memory."""

from __future__ import annotations

import enum
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import geomdp as gd
from experiments.benchmarks.peers.moments import blocked_cosines, blocked_recurrences, fourier
from experiments.benchmarks.smooth_memory import SCHEMA, SMOOTHNESS
from experiments.engine.cells import Row
from geomdp.workloads.smooth import GaussianMixture, Truncation, approximate

PURE = gd.PureDP(1.0)
#: Number of kernels of the mixture that `time_answer` asks about.
KERNELS = 10
#: Rows written to Parquet at a time.
ROWS_WRITTEN = 1 << 19


class Task(enum.StrEnum):
    """What is measured: the time of a summary, the time of an answer, or memory."""

    SUMMARY = "summary"
    ANSWER = "answer"
    MEMORY = "memory"


class Method(enum.StrEnum):
    """The measured methods, by the names that the figure and its table show."""

    GEOMDP = "geomdp release"
    COSINES = "blocked NumPy, cosines"
    RECURRENCES = "blocked NumPy, recurrences"
    FOURIER = "finufft"
    PASS = "one pass over the records"
    COMBINE = "answer from known coefficients"
    WHOLE = "answer that computes its coefficients"
    CHUNKS = "geomdp release from Parquet"


@dataclass(frozen=True)
class Config:
    """One measurement."""

    task: Task  # What is measured
    #: Number d of variables (`d`), and number t of degrees in each variable (`size`).
    d: int
    size: int
    n: int  # Number of records
    repetitions: int  # Number of turns of `in_turns`; memory is measured once


def seconds_of(work: Callable[[], object]) -> float:
    """Processor seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def in_turns(
    works: dict[Method, Callable[[], object]],
    repetitions: int,
    sums: dict[Method, int] | None = None,
) -> list[Row]:
    """Median, least and most seconds of each function of `works`; the functions take turns.

    The rows also hold what `sums` has counted for some of the methods.
    The first function is called once before, so that numba compiles it outside of the measurement.
    """
    next(iter(works.values()))()
    taken = {method: np.empty(repetitions) for method in works}
    for turn in range(repetitions):
        for method, work in works.items():
            taken[method][turn] = seconds_of(work)
    return [
        {
            "method": method,
            "seconds": float(np.median(times)),
            "fastest": times.min(),
            "slowest": times.max(),
            "mib": None,
            "sums": None if sums is None else sums.get(method),
        }
        for method, times in taken.items()
    ]


def time_summary(config: Config, rng: np.random.Generator) -> list[Row]:
    """Time a whole release of geomdp, the moments alone for its peers, and a sum of all records."""
    points = rng.uniform(-1, 1, (config.n, config.d))
    mechanism = built(config)
    tolerance = float(mechanism.numerical_errors.min())
    return in_turns(
        {
            Method.GEOMDP: lambda: mechanism.release(points, rng=rng),
            Method.COSINES: lambda: blocked_cosines(points, config.size),
            Method.RECURRENCES: lambda: blocked_recurrences(points, config.size),
            Method.FOURIER: lambda: fourier(points, config.size, tolerance),
            Method.PASS: points.sum,
        },
        config.repetitions,
        sums_of_a_record(mechanism, points[:1]),
    )


def sums_of_a_record(
    mechanism: gd.SmoothSummary, record: npt.NDArray[np.float64]
) -> dict[Method, int]:
    """How many sums a summary of one record (1, d) changes, in geomdp and in blocked NumPy."""
    table = mechanism.transform._empty()
    mechanism.transform._add(table, record)
    moments = blocked_cosines(record, mechanism.degree)
    return {Method.GEOMDP: np.count_nonzero(table), Method.COSINES: np.count_nonzero(moments)}


def time_answer(config: Config, rng: np.random.Generator) -> list[Row]:
    """Time an answer to a mixture of ten kernels, from known coefficients and from the query."""
    release = built(config).release(rng.uniform(-1, 1, (config.n, config.d)), rng=rng)
    query = GaussianMixture(
        rng.uniform(-1, 1, (KERNELS, config.d)), np.full(KERNELS, 1 / KERNELS), 0.5
    )
    coefficients = approximate(query, config.size, config.d, Truncation())
    return in_turns(
        {
            Method.COMBINE: lambda: release.combine(coefficients),
            Method.WHOLE: lambda: release.answer(query),
        },
        config.repetitions,
    )


def take_memory(config: Config, rng: np.random.Generator) -> list[Row]:
    """Peak memory of a process that releases a summary of a Parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.parquet"
        write_records(path, config.n, rng)
        command = [sys.executable, "-m", "experiments.benchmarks.smooth_memory"]
        done = subprocess.run(
            [*command, str(path), str(config.n), str(config.size)],
            capture_output=True,
            text=True,
            check=True,
        )
    found = json.loads(done.stdout)
    seconds = found["seconds"]
    return [
        {
            "method": Method.CHUNKS,
            "seconds": seconds,
            "fastest": seconds,
            "slowest": seconds,
            "mib": found["peak"],
            "sums": None,
        }
    ]


def write_records(path: Path, n: int, rng: np.random.Generator) -> None:
    """Write uniform records within the bounds of the schema, one block at a time."""
    names = SCHEMA.names
    types = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, types) as writer:
        for start in range(0, n, ROWS_WRITTEN):
            rows = min(ROWS_WRITTEN, n - start)
            columns = [rng.uniform(*column.bounds, rows) for column in SCHEMA.real_columns]
            writer.write_table(pa.table(dict(zip(names, columns, strict=True)), schema=types))


def built(config: Config) -> gd.SmoothSummary:
    """The mechanism with t = ``config.size``."""
    return gd.SmoothSummary(
        config.d, n=config.n, smoothness=SMOOTHNESS, privacy=PURE, degree=config.size
    )


TAKEN: dict[Task, Callable[[Config, np.random.Generator], list[Row]]] = {
    Task.SUMMARY: time_summary,
    Task.ANSWER: time_answer,
    Task.MEMORY: take_memory,
}
