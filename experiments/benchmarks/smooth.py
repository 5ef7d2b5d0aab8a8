"""Speed and memory of smooth summaries: moments of a million records, answers, and Parquet files.

Records have d variables, and a summary has t degrees in each. The peer is blocked NumPy: for a
block of records it takes the angles, the cosines of their multiples, and then matrix products. Two
more methods are shown: NumPy with Chebyshev recurrences, which a careful user would write, and one
call of finufft at the tolerance of geomdp. geomdp is timed for whole releases from an array in
memory. Their time includes the noise and all checks on the records (formula sheet SM-A1, X-NUFFT).

Claims, in counted work: a release adds each record to at least 10 times fewer sums than blocked
NumPy, at (d, t) = (1, 64), (2, 32) and (3, 16). A release from a Parquet file in chunks needs less
than 1 GiB of memory (10^7 records at the full preset). The goal is to be 10 times as fast as
finufft. Where this is not reached, the goal is half of the physical limit: the time of one pass
over the records and of as many additions, within the cache, as a release makes, over the time of
the release. All times are processor time, medians of five turns that the methods take in one
process. They are drawn and printed, and no claim depends on them.

What was tried below half of the limit, at (3, 16): a counting sort of the records by cell, 20 in
place of 53 ns a record, is in use. Monomials sorted by degree, so that one long loop adds them,
took 138 in place of 84 ns a record. To copy the table slab by slab for the products at the end
saved a tenth of the 45 ms that they take, whatever the number of records.

Run time on one core: quick 4 s, full 2 minutes.
"""

import enum
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import experiments.engine.tools as ex
import geomdp as gd
from experiments.benchmarks.geometry_work.instances import timed
from experiments.benchmarks.limits import rebased, seconds_of_additions
from experiments.benchmarks.peaks import SCHEMA, SMOOTHNESS, apart, release_summary
from experiments.benchmarks.peers.moments import blocked_cosines, blocked_recurrences, fourier
from experiments.engine.script import Needs
from geomdp.workloads.smooth import GaussianMixture, Truncation, approximate

NEEDS = Needs(("finufft",), extra="bench")

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
    ADDITIONS = "the additions of a release"
    COMBINE = "answer from known coefficients"
    WHOLE = "answer that computes its coefficients"
    CHUNKS = "geomdp release from Parquet"


@dataclass(frozen=True)
class Config:
    task: Task  # What is measured
    #: Number d of variables (`d`), and number t of degrees in each variable (`size`).
    d: int
    size: int
    n: int  # Number of records
    repetitions: int  # Number of turns of `in_turns`; memory is measured once


def in_turns(
    works: dict[Method, Callable[[], object]],
    repetitions: int,
    sums: dict[Method, int] | None = None,
) -> list[ex.Row]:
    """Median, least and most seconds of each function of `works`; the functions take turns."""
    next(iter(works.values()))()
    taken = {method: np.empty(repetitions) for method in works}
    for turn in range(repetitions):
        for method, work in works.items():
            taken[method][turn] = timed(work)[1]
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


def time_summary(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Time a whole release of geomdp, the moments alone for its peers, and a sum of all records."""
    points = rng.uniform(-1, 1, (config.n, config.d))
    mechanism = built(config)
    tolerance = float(mechanism.numerical_errors.min())
    sums = sums_of_a_record(mechanism, points[:1])
    additions = config.n * seconds_of_additions(sums[Method.GEOMDP], rng)
    rows = in_turns(
        {
            Method.GEOMDP: lambda: mechanism.release(points, rng=rng),
            Method.COSINES: lambda: blocked_cosines(points, config.size),
            Method.RECURRENCES: lambda: blocked_recurrences(points, config.size),
            Method.FOURIER: lambda: fourier(points, config.size, tolerance),
            Method.PASS: points.sum,
        },
        config.repetitions,
        sums,
    )
    taken = dict.fromkeys(("seconds", "fastest", "slowest"), additions)
    return [*rows, {"method": Method.ADDITIONS, **taken, "mib": None, "sums": None}]


def sums_of_a_record(mechanism: gd.SmoothSummary, record: ex.FloatArray) -> dict[Method, int]:
    """How many sums a summary of one record (1, d) changes, in geomdp and in blocked NumPy."""
    table = mechanism.transform._empty()
    mechanism.transform._add(table, record)
    moments = blocked_cosines(record, mechanism.degree)
    counts = {Method.GEOMDP: table, Method.COSINES: moments}
    return {method: int(np.count_nonzero(each)) for method, each in counts.items()}


def time_answer(config: Config, rng: np.random.Generator) -> list[ex.Row]:
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


def take_memory(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Peak memory of a process that releases a summary of a Parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.parquet"
        write_records(path, config.n, rng)
        found = apart(release_summary, path, config.n, config.size)
    times = dict.fromkeys(("seconds", "fastest", "slowest"), found["seconds"])
    return [{"method": Method.CHUNKS, **times, "mib": found["mib"], "sums": None}]


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


TAKEN: dict[Task, Callable[[Config, np.random.Generator], list[ex.Row]]] = {
    Task.SUMMARY: time_summary,
    Task.ANSWER: time_answer,
    Task.MEMORY: take_memory,
}


# Beside other cells, which share the memory, a release at (d, t) = (3, 16) is half as fast.
TIMED = "summaries and answers"
CLOCK = ("seconds", "fastest", "slowest")
#: At each (d, t) of `REQUIRED`, geomdp must add a record to `FEWER` times fewer sums than NumPy.
REQUIRED, FEWER = ((1, 64), (2, 32), (3, 16)), 10.0
#: The (d, t) of the answers that are timed.
ANSWERED = (2, 32)
MOST_MIB = 1024.0
#: Goal: geomdp is this many times as fast as finufft, at each (d, t) of `REQUIRED`.
AIMED_AT = 10.0


def compute(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """The rows of one measurement."""
    return TAKEN[config.task](config, rng)


def ratios(table: pd.DataFrame, peer: Method) -> dict[tuple[int, int], float]:
    """Seconds of the peer divided by those of geomdp, by (d, t)."""
    summaries = table[table.task == Task.SUMMARY]
    seconds = summaries.set_index(["d", "size", "method"]).seconds
    return {
        key: seconds[(*key, peer)] / seconds[(*key, Method.GEOMDP)]
        for key in sorted(set(zip(summaries.d, summaries["size"], strict=True)))
    }


def claims(table: pd.DataFrame) -> ex.Claims:
    sums = table[table.task == Task.SUMMARY].set_index(["d", "size", "method"]).sums
    for key in REQUIRED:
        ours, theirs = (float(sums[(*key, each)]) for each in (Method.GEOMDP, Method.COSINES))
        yield ex.Claim(
            f"a release at (d, t) = {key} adds a record to at least {FEWER:g} times fewer sums "
            "than moments by blocked NumPy",
            ex.at_least(theirs / ours, FEWER),
            f"{ours:,.0f} in place of {theirs:,.0f}: {theirs / ours:.1f} times fewer",
            f"at least {FEWER:g} times",
            "X-NUFFT",
        )
    memory = table[table.task == Task.MEMORY]
    largest = memory.loc[memory.n.idxmax()]
    name = (
        f"a summary of {largest.n:,} records from Parquet needs less than {MOST_MIB:g} MiB of "
        "memory (MiB)"
    )
    measured = f"{memory.mib.max():.0f}"
    yield ex.Claim(name, ex.below(memory.mib, MOST_MIB), measured, f"below {MOST_MIB:g}", "SM-A1")


def goals(table: pd.DataFrame) -> ex.Goals:
    """Goals for the ratio to finufft, or for the share of the limit where this is not reached."""
    fourier, *limits = (
        ratios(table, each) for each in (Method.FOURIER, Method.PASS, Method.ADDITIONS)
    )
    reason = (
        "each record adds all monomials of its offsets from the centre of its cell to sums, "
        "and the number of monomials grows with d; at d = 3 the sums of all cells do not fit in "
        "the cache"
    )
    return [
        rebased(
            ex.Goal(
                f"times as fast as finufft at (d, t) = {key}",
                fourier[key],
                AIMED_AT,
                ex.Aim.AT_LEAST,
                reason,
            ),
            sum(each[key] for each in limits),
            "one pass over the records and the additions of a release",
        )
        for key in REQUIRED
    ]


LOOKS = {
    Method.GEOMDP: ex.Look("C0", "o"),
    Method.FOURIER: ex.Look("0.3", "s", filled=False),
    Method.RECURRENCES: ex.Look(ex.GREY, "v", filled=False),
    Method.COSINES: ex.Look("0.6", "D"),
}


def plot(table: pd.DataFrame) -> ex.Figure:
    summaries = table[table.task == Task.SUMMARY]
    dimensions = sorted(summaries.d.unique())
    titles, degrees = [f"$d = {d}$" for d in dimensions], "degrees $t$ per variable"
    figure, panels = ex.panels((7.2, 3.6), titles, degrees, "time per record (ns)", sharey=True)
    for axes, d in zip(panels, dimensions, strict=True):
        rows = summaries[summaries.d == d]
        for method, look in LOOKS.items():
            mine = rows[rows.method == method].sort_values("size")
            median, least, most = (
                1e9 * mine[name] / mine.n for name in ("seconds", "fastest", "slowest")
            )
            ex.draw_points(
                axes, mine["size"], median, look, method.replace(", ", ",\n"), band=(least, most)
            )
        ex.log_axes(axes)
        axes.set_xticks(*ex.ticks(*sorted(rows["size"].unique())))
        axes.set_xticks([], minor=True)
    ex.label_curves(panels[-1])
    result = "A smooth summary costs at most a few hundred nanoseconds a record"
    settings = "One core. Median and range. Peers compute the moments only."
    return ex.headline(figure, result, settings)


def grid(summaries: tuple[tuple[int, int, int, int], ...], largest: int) -> tuple[Config, ...]:
    """All measurements: a summary for each (d, t, n, repetitions), answers, and peak memory."""
    return (
        *(Config(Task.SUMMARY, *summary) for summary in summaries),
        Config(Task.ANSWER, *ANSWERED, 1000, 20),
        Config(Task.MEMORY, *ANSWERED, largest, 1),
    )


MORE = ((1, 4), (1, 16), (1, 256), (2, 4), (2, 8), (2, 16), (2, 64), (3, 4), (3, 8))
FEW, MANY = 10**5, 5 * 10**5
# Three variables need a set-up of some 50 ms, which is a small share of the time only for a million
# records.
QUICK = ex.Sweep(grid(((1, 64, FEW, 3), (2, 32, FEW, 3), (3, 16, MANY, 1)), 10**5))
FULL = ex.Sweep(grid(tuple((d, size, MANY, 5) for d, size in (*REQUIRED, *MORE)), 10**7))
