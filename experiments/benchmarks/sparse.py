"""Speed of the sparse mechanisms: queries, updates, sign bits and summaries per second of one core.

Sparse multiplicative weights cost O(m) per query of sparsity m whatever the universe; dense
multiplicative weights cost O(|X|). The hash over GF(2^64) gives 64 signs per evaluation (formula
sheet BR-SMW, BR-PROJ, X-GF, SV-AT).

Claims: at sparsity 10 at least 30,000 and at sparsity 1,000 at least 4,000 queries per second, each
evaluated and updated on elements that have been mentioned before, on universes of 10^3 and 10^9
numbers and of strings; dense weights on 2^20 elements at least 100 times slower; at least 100
million sign bits per second; a summary of 10^5 distinct records with 2^16 rows within 60 seconds,
which is measured on one core although two are allowed; AboveThreshold at least 200,000 answers per
second from an array and 30,000 one at a time. The quick preset, which also runs in the test suite,
claims the ratio alone, because speeds are only claimed for a machine that does nothing else. Rates
count seconds of processor time; each is a median over repetitions in one process.

Run time on one core: quick 4 s, full 1 minute.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from rich.table import Table

import geomdp as gd
from experiments.engine.cells import Row, Sweep
from experiments.engine.claims import Claim
from experiments.engine.drawing import Look, draw_points, log_axes, shared_legend
from experiments.engine.processor_time import timed
from geomdp.mechanisms.interactive.updates import MultiplicativeWeights, SparseMultiplicativeWeights
from geomdp.mechanisms.sparse.hashing.signs import HashedSigns
from geomdp.workloads import DenseQuery, SparseQuery

TIMED = "queries, updates, sign bits and summaries"


class Task(enum.StrEnum):
    """What is timed, and the unit of its rate."""

    EVALUATE = "sparse weights: evaluations"
    FIRST = "sparse weights: evaluations with update, new elements"
    UPDATE = "sparse weights: evaluations with update, known elements"
    DENSE = "dense weights: evaluations with update"
    BITS = "GF(2^64) hash: sign bits"
    SUMMARY = "sparse projection: records summarised"
    ARRAY = "AboveThreshold: answers from an array"
    SINGLE = "AboveThreshold: answers one at a time"


class Elements(enum.StrEnum):
    """Universes."""

    FEW = "10^3 numbers"
    MANY = "10^9 numbers"
    STRINGS = "strings"
    DENSE = "2^20 numbers"
    NONE = "-"


@dataclass(frozen=True)
class Config:
    """One measurement."""

    task: Task  # What is timed
    elements: Elements  # Universe
    sparsity: int  # Sparsity of the queries; 0 where it does not apply
    operations: int  # Operations in one repetition
    repetitions: int  # Repetitions, of which the median counts


SPARSE_TASKS = (Task.EVALUATE, Task.FIRST, Task.UPDATE)
UNIVERSES = (Elements.FEW, Elements.MANY, Elements.STRINGS)
#: Accuracy of the hypotheses. It does not change the speed.
ALPHA = 0.05
DENSE_SIZE = 1 << 20
ROWS = 1 << 16
#: Enough for 10^6 queries at beta = 0.05 on 2^16 rows (BR-PROJ).
INDEPENDENCE = 80


def sparse_queries(config: Config, rng: np.random.Generator) -> list[SparseQuery]:
    """Queries on random elements."""
    size = 10**3 if config.elements is Elements.FEW else 10**9
    queries = []
    for _ in range(config.operations):
        if config.sparsity == size:
            numbers = rng.permutation(size)
        else:
            numbers = np.unique(rng.integers(size, size=config.sparsity))
        support = numbers.tolist()
        if config.elements is Elements.STRINGS:
            support = [f"element {number}" for number in support]
        queries.append(SparseQuery.counting(support))
    return queries


def time_sparse_weights(config: Config, rng: np.random.Generator) -> list[float]:
    """Seconds of the repetitions of a task on sparse multiplicative weights."""
    queries, seconds = sparse_queries(config, rng), []
    rule = SparseMultiplicativeWeights(config.sparsity)
    hypothesis = rule.start(ALPHA)
    if config.task is not Task.FIRST:
        for query in queries:
            hypothesis.update(query, 1.0)
    for _ in range(config.repetitions):
        if config.task is Task.FIRST:
            hypothesis = rule.start(ALPHA)
        with timed(seconds):
            for query in queries:
                value = hypothesis.evaluate(query)
                if config.task is not Task.EVALUATE:
                    hypothesis.update(query, value - 1)
    return seconds


def time_dense_weights(config: Config, rng: np.random.Generator) -> list[float]:
    """Seconds of evaluating and updating dense multiplicative weights."""
    hypothesis = MultiplicativeWeights(DENSE_SIZE).start(ALPHA)
    query, seconds = DenseQuery(rng.integers(2, size=DENSE_SIZE).astype(float)), []
    for _ in range(config.repetitions):
        with timed(seconds):
            for _ in range(config.operations):
                hypothesis.update(query, hypothesis.evaluate(query) - 1)
    return seconds


def time_sign_bits(config: Config, rng: np.random.Generator) -> list[float]:
    """Seconds of hashing whole columns of 2^16 signs."""
    signs, seconds = HashedSigns.draw(ROWS, INDEPENDENCE, rng), []
    columns = max(1, config.operations // ROWS)
    for _ in range(config.repetitions):
        elements = rng.integers(signs.elements, size=columns)
        with timed(seconds):
            signs.words(elements)
    return seconds


def time_summary(config: Config, rng: np.random.Generator) -> list[float]:
    """Seconds of whole releases on distinct records, counting and noise included."""
    project = gd.SparseProject(
        n=config.operations, sparsity=10, queries=10**6, privacy=gd.ZCDP(0.1), rows=ROWS, rng=rng
    )
    seconds: list[float] = []
    for _ in range(config.repetitions):
        records = rng.permutation(10 * config.operations)[: config.operations]
        with timed(seconds):
            project.release(records, rng=rng)
    return seconds


def time_above_threshold(config: Config, rng: np.random.Generator) -> list[float]:
    """Seconds of asking for answers that are all far below the threshold."""
    truths, seconds = np.full(config.operations, -1e9), []
    for _ in range(config.repetitions):
        stream = gd.AboveThreshold(0.0, privacy=gd.PureDP(1.0), rng=rng)
        with timed(seconds):
            if config.task is Task.ARRAY:
                stream.ask_many(truths)
            else:
                for truth in truths:
                    stream.ask(truth)
    return seconds


TIMERS: dict[Task, Callable[[Config, np.random.Generator], list[float]]] = {
    Task.EVALUATE: time_sparse_weights,
    Task.FIRST: time_sparse_weights,
    Task.UPDATE: time_sparse_weights,
    Task.DENSE: time_dense_weights,
    Task.BITS: time_sign_bits,
    Task.SUMMARY: time_summary,
    Task.ARRAY: time_above_threshold,
    Task.SINGLE: time_above_threshold,
}


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """Median, slowest and fastest rate per second, after one repetition that compiles."""
    timer = TIMERS[config.task]
    warm_up = min(config.operations, 2 * ROWS if config.task is Task.BITS else 10)
    timer(Config(config.task, config.elements, config.sparsity, warm_up, 1), rng)
    rates = config.operations / np.array(timer(config, rng))
    return [
        {"rate": np.median(rates), "slowest": rates.min(), "fastest": rates.max()},
    ]


def claims(table: pd.DataFrame) -> list[Claim]:
    """Every speed, and the dense weights beside the sparse ones."""
    rate = {(row.task, row.sparsity, row.elements): row.rate for row in table.itertuples()}
    updates = {m: [rate[Task.UPDATE, m, place] for place in UNIVERSES] for m in (10, 1000)}
    dense = rate[Task.DENSE, 0, Elements.DENSE]
    seconds = 10**5 / rate[Task.SUMMARY, 0, Elements.NONE]
    ratio = at_least(
        "dense weights on 2^20 elements are slower by", min(updates[10]) / dense, 100, "BR-MW"
    )
    bits = rate[Task.BITS, 0, Elements.NONE]
    beside = at_least(
        "signs hashed while one entry of dense weights is updated",
        bits / (dense * DENSE_SIZE),
        1,
        "X-GF",
    )
    if not (table.sparsity == 1).any():  # sparsity 1 is measured at the full preset only
        return [ratio, beside]
    return [
        ratio,
        beside,
        at_least("sparse weights, queries/s at m = 10", min(updates[10]), 30_000, "BR-SMW"),
        at_least(
            "sparse weights, queries a second at m = 1000", min(updates[1000]), 4000, "BR-SMW"
        ),
        at_least("sign bits/s", bits, 1e8, "X-GF"),
        Claim(
            "seconds for a summary of 10^5 records with 2^16 rows on one core",
            seconds < 60,
            f"{seconds:.3g}",
            "below 60, on two cores",
            "BR-PROJ",
        ),
        at_least("answers/s from an array", rate[Task.ARRAY, 0, Elements.NONE], 2e5, "SV-AT"),
        at_least("answers/s one at a time", rate[Task.SINGLE, 0, Elements.NONE], 3e4, "SV-AT"),
    ]


def at_least(name: str, measured: float, required: float, id: str) -> Claim:
    """A rate with its requirement."""
    shown, goal = f"{measured:.3g}", f"at least {required:.3g}"
    return Claim(name, measured >= required, shown, goal, id, used=required / measured)


def report(table: pd.DataFrame) -> Table:
    """One line for each measurement."""
    shown = Table("task", "universe", title="Rates per second of one core")
    for heading in ("sparsity", "median", "slowest", "fastest"):
        shown.add_column(heading, justify="right")
    for row in table.itertuples():
        numbers = (f"{value:,.4g}" for value in (row.rate, row.slowest, row.fastest))
        shown.add_row(row.task, row.elements, str(row.sparsity or "-"), *numbers)
    return shown


LOOKS = {
    Task.EVALUATE: Look("C0", "o"),
    Task.UPDATE: Look("C3", "D"),
    Task.FIRST: Look("C1", "s", filled=False),
}
DENSE_LABEL = r"evaluations with update, $2^{20}$ elements"


def plot(table: pd.DataFrame) -> Figure:
    """Rates of sparse weights against sparsity, over all universes, above the dense ones."""
    figure = Figure(figsize=(7.2, 4.6))
    axes = figure.subplots()
    for task, look in LOOKS.items():
        rows = table[table.task == task].groupby("sparsity").rate.agg(["min", "median", "max"])
        label = task.removeprefix("sparse weights: ")
        band = rows["min"], rows["max"]
        draw_points(axes, rows.index, rows["median"], look, label, band=band)
    dense = float(table[table.task == Task.DENSE].rate.iloc[0])
    axes.axhline(dense, color="black", linestyle=(0, (4, 2)), linewidth=1.1, label=DENSE_LABEL)
    log_axes(axes)
    axes.set_ylim(bottom=10 ** math.floor(math.log10(dense)))
    axes.set_xlabel("sparsity of the query $m$")
    axes.set_ylabel("queries per second of one core")
    axes.set_title("Speed on universes of $10^3$ and $10^9$ numbers and of strings (bands)")
    shared_legend(
        figure,
        [axes],
        {
            "sparse weights": [task.removeprefix("sparse weights: ") for task in LOOKS],
            "dense weights": [DENSE_LABEL],
        },
    )
    return figure


def grid(
    sparsities: tuple[int, ...], scale: int, records: int, repetitions: int
) -> tuple[Config, ...]:
    """All measurements; `scale` multiplies most operations of a repetition."""
    weights = [
        Config(task, place, m, max(20, 2000 * scale // m), repetitions)
        for task in SPARSE_TASKS
        for m in sparsities
        for place in UNIVERSES
    ]
    others = [
        Config(Task.DENSE, Elements.DENSE, 0, 5, repetitions),
        Config(Task.BITS, Elements.NONE, 0, 200 * scale * ROWS, repetitions),
        Config(Task.SUMMARY, Elements.NONE, 0, records, min(repetitions, 3)),
        Config(Task.ARRAY, Elements.NONE, 0, 200_000 * scale, repetitions),
        Config(Task.SINGLE, Elements.NONE, 0, 10_000 * scale, repetitions),
    ]
    return (*weights, *others)


QUICK = Sweep(grid((10, 1000), scale=1, records=2000, repetitions=3), trials=1, seed=0)
FULL = Sweep(grid((1, 10, 100, 1000), scale=7, records=10**5, repetitions=5), trials=1, seed=0)
