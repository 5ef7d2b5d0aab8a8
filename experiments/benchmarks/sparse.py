"""Speed of the sparse mechanisms: queries, updates, sign bits and summaries per second of one core.

Sparse multiplicative weights cost O(m) per query of sparsity m, whatever the universe X; dense
multiplicative weights cost O(|X|). The hash over GF(2^64) gives 64 signs per evaluation (formula
sheet BR-SMW, BR-PROJ, X-GF, SV-AT).

Claims, in counted work: a query of sparsity m looks up each of its m elements once, for an
evaluation and an update together, on elements that earlier queries mentioned. It does so for
m = 10 and 1,000 in universes of 10^3 numbers, 10^9 numbers, and strings. An update of dense weights
on 2^20 elements changes at least 100 times as many entries as sparse weights look up at sparsity
10. A column of 2^16 signs takes 2^10 values of the hash, which all differ. Rates are per second of
processor time; each is a median over repetitions in one process. They are drawn, and
no claim depends on them. The goals are 200,000 queries a second at sparsity 10, and 1,000 times the
speed of dense weights.

Run time on one core: quick 2 s, full 1 minute.
"""

import enum
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.benchmarks.limits import rebased
from experiments.engine.processes import timed
from geomdp.mechanisms.interactive.updates import MultiplicativeWeights, SparseMultiplicativeWeights
from geomdp.mechanisms.sparse_summary import HashedSigns
from geomdp.workloads import DenseQuery, SparseQuery


class Task(enum.StrEnum):
    """The timed tasks. The words after the colon say which operations the rate counts."""

    EVALUATE = "sparse weights: evaluations"
    FIRST = "sparse weights: evaluations with update, new elements"
    UPDATE = "sparse weights: evaluations with update, known elements"
    READ = "NumPy: additions to the weights of a query"
    DENSE = "dense weights: evaluations with update"
    BITS = "GF(2^64) hash: sign bits"
    SUMMARY = "sparse projection: records summarised"
    ARRAY = "AboveThreshold: answers from an array"
    SINGLE = "AboveThreshold: answers one at a time"


class Elements(enum.StrEnum):
    """The universe of the queries' elements; NONE for tasks without a choice of universe."""

    FEW = "10^3 numbers"
    MANY = "10^9 numbers"
    STRINGS = "strings"
    DENSE = "2^20 numbers"
    NONE = "-"


@dataclass(frozen=True)
class Config:
    task: Task  # What is timed
    elements: Elements  # Universe
    sparsity: int  # Sparsity of the queries; 0 where it does not apply
    operations: int  # Operations in one repetition
    repetitions: int  # Number of repetitions; their median is reported


SPARSE_TASKS = (Task.EVALUATE, Task.FIRST, Task.UPDATE)
UNIVERSES = (Elements.FEW, Elements.MANY, Elements.STRINGS)
#: Accuracy of the hypotheses. It does not change the speed.
ALPHA = 0.05
DENSE_SIZE = 1 << 20
ROWS = 1 << 16
#: The signs of the hash are r-wise independent for an r of at least this number. The number is
#: enough for 10^6 queries at failure probability beta = 0.05 with 2^16 rows (BR-PROJ).
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


class Element:
    """An element of a universe that counts how often elements are looked up in a dictionary."""

    looked_up: ClassVar[int] = 0

    def __init__(self, value: Hashable) -> None:
        self.value = value

    def __hash__(self) -> int:
        Element.looked_up += 1
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Element) and self.value == other.value


def entries(config: Config, rng: np.random.Generator) -> dict[str, int | None]:
    """Entries of one operation, and the size of the support of its query; None if not counted."""
    support = None
    counted: int | None = None
    if config.task is Task.UPDATE:
        (drawn,) = sparse_queries(replace(config, operations=1), rng)
        query = SparseQuery.counting([*map(Element, drawn.support)])
        hypothesis = SparseMultiplicativeWeights(config.sparsity).start(ALPHA)
        hypothesis.update(query, 1.0)
        support, Element.looked_up = len(query.support), 0
        hypothesis.update(query, hypothesis.evaluate(query) - 1)
        counted = Element.looked_up
    elif config.task is Task.DENSE:
        dense = MultiplicativeWeights(DENSE_SIZE).start(ALPHA)
        before = dense.distribution
        dense.update(DenseQuery(rng.integers(2, size=DENSE_SIZE).astype(float)), 0.0)
        counted = int(np.count_nonzero(dense.distribution != before))
    elif config.task is Task.BITS:
        signs = HashedSigns.draw(ROWS, INDEPENDENCE, rng)
        counted = len(np.unique(signs.words(rng.integers(signs.elements, size=1))))
    return {"entries": counted, "support": support}


def time_sparse_weights(config: Config, rng: np.random.Generator) -> list[float]:
    """Seconds that each repetition of a task on sparse multiplicative weights takes."""
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


def time_additions(config: Config, rng: np.random.Generator) -> list[float]:
    """Seconds per repetition. An operation adds 1 to `config.sparsity` entries of an array."""
    numbers = np.zeros(10**5)
    places = rng.permutation(len(numbers))[: config.sparsity]
    seconds: list[float] = []
    for _ in range(config.repetitions):
        with timed(seconds):
            for _ in range(config.operations):
                numbers[places] += 1.0
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
    """Seconds per repetition for queries with true answers that are all far below the threshold."""
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
    Task.READ: time_additions,
    Task.DENSE: time_dense_weights,
    Task.BITS: time_sign_bits,
    Task.SUMMARY: time_summary,
    Task.ARRAY: time_above_threshold,
    Task.SINGLE: time_above_threshold,
}


TIMED = "queries, updates, sign bits and summaries"
CLOCK = ("rate", "slowest", "fastest")


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Entries of one operation; median, slowest and fastest rate after one that compiles."""
    counted = entries(config, rng)
    timer = TIMERS[config.task]
    warm_up = min(config.operations, 2 * ROWS if config.task is Task.BITS else 10)
    timer(Config(config.task, config.elements, config.sparsity, warm_up, 1), rng)
    rates = config.operations / np.array(timer(config, rng))
    timed = {"rate": np.median(rates), "slowest": rates.min(), "fastest": rates.max()}
    return {**counted, **timed}


def claims(table: pd.DataFrame) -> ex.Claims:
    updates = table[(table.task == Task.UPDATE) & table.sparsity.isin([10, 1000])]
    # A random support may draw an element twice, so a query may have fewer elements than m.
    shares = updates.entries / updates.support
    dense = float(table.entries[table.task == Task.DENSE].max())
    apart = dense / float(updates.entries[updates.sparsity == 10].max())
    words = float(table.entries[table.task == Task.BITS].max())
    name = "a query to sparse weights, with its update, looks up each element once"
    measured = f"{shares.min():g} to {shares.max():g} times, for {len(shares)} kinds of queries"
    theory = "once, in every universe"
    yield ex.Claim(name, ex.each_case((shares == 1).all()), measured, theory, "BR-SMW")
    name = (
        "an update of dense weights on 2^20 elements changes at least 100 times as many "
        "entries as sparse weights look up at m = 10"
    )
    measured = f"{apart:,.0f} times"
    yield ex.Claim(name, ex.at_least(apart, 100), measured, "at least 100 times", "BR-MW")
    name = f"a column of {ROWS:,} signs takes one value of the hash for 64 signs"
    measured = f"{words:,.0f} different values"
    yield ex.Claim(name, ex.each_case(words == ROWS / 64), measured, f"{ROWS // 64:,}", "X-GF")


#: Goals for queries per second, and for the ratio of this rate to the rate of dense weights on
#: 2^20 elements.
FAST, APART = 200_000.0, 1000.0


def goals(table: pd.DataFrame) -> ex.Goals:
    """Goals for sparse weights at sparsity 10 with updates, on the slowest universe."""
    rate = {(row.task, row.sparsity, row.elements): row.rate for row in table.itertuples()}
    slowest = min(rate[Task.UPDATE, 10, place] for place in UNIVERSES)
    reading = rate[Task.READ, 10, Elements.NONE]
    reason = (
        f"a query takes {1e6 / slowest:.3g} microseconds for a look-up of each element in a Python "
        "dictionary and for NumPy calls on short arrays"
    )
    dense = slowest / rate[Task.DENSE, 0, Elements.DENSE]
    name = "sparse weights at sparsity 10: "
    aimed = (
        ex.Goal(f"{name}queries a second", slowest, FAST, ex.Aim.AT_LEAST, reason),
        ex.Goal(f"{name}times as fast as dense ones", dense, APART, ex.Aim.AT_LEAST, reason),
    )
    limit = "one NumPy call that adds to ten numbers in memory"
    return [rebased(goal, slowest / reading, limit) for goal in aimed]


LOOKS = {
    Task.EVALUATE: ex.Look("C0", "o"),
    Task.UPDATE: ex.Look("C2", "D"),
    Task.FIRST: ex.Look("C5", "s", filled=False),
}
NAMES = {
    Task.EVALUATE: "evaluations",
    Task.UPDATE: "with update,\nknown elements",
    Task.FIRST: "with update,\nnew elements",
}


def plot(table: pd.DataFrame) -> ex.Figure:
    figure = ex.Figure(figsize=(7.2, 3.8))
    axes = figure.subplots()
    for task, look in LOOKS.items():
        rows = table[table.task == task].groupby("sparsity").rate.agg(["min", "median", "max"])
        label = NAMES[task]
        band = rows["min"], rows["max"]
        ex.draw_points(axes, rows.index, rows["median"], look, label, band=band)
    dense = float(table[table.task == Task.DENSE].rate.iloc[0])
    axes.axhline(dense, color=ex.GREY, label="dense weights,\n$2^{20}$ elements")
    ex.log_axes(axes)
    axes.set_ylim(bottom=10 ** math.floor(math.log10(dense)))
    axes.set(xlabel="sparsity of the query $m$", ylabel="queries per second of one core")
    ex.label_curves(axes)
    result = "Sparse weights answer about 100 times faster than dense weights, or more"
    settings = "Median and range over universes of $10^3$ numbers, $10^9$ numbers and strings."
    return ex.headline(figure, result, settings)


def grid(
    sparsities: tuple[int, ...], scale: int, records: int, repetitions: int
) -> tuple[Config, ...]:
    """All measurements; `scale` multiplies most numbers of operations."""
    weights = [
        Config(task, place, m, max(20, 2000 * scale // m), repetitions)
        for task in SPARSE_TASKS
        for m in sparsities
        for place in UNIVERSES
    ]
    others = [
        Config(Task.READ, Elements.NONE, 10, 2000 * scale, repetitions),
        Config(Task.DENSE, Elements.DENSE, 0, 5, repetitions),
        Config(Task.BITS, Elements.NONE, 0, 200 * scale * ROWS, repetitions),
        Config(Task.SUMMARY, Elements.NONE, 0, records, min(repetitions, 3)),
        Config(Task.ARRAY, Elements.NONE, 0, 200_000 * scale, repetitions),
        Config(Task.SINGLE, Elements.NONE, 0, 10_000 * scale, repetitions),
    ]
    return (*weights, *others)


QUICK = ex.Sweep(grid((10, 1000), scale=1, records=2000, repetitions=3))
FULL = ex.Sweep(grid((1, 10, 100, 1000), scale=7, records=10**5, repetitions=5))
