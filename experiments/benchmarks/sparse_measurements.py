"""The measurements of the script `sparse`: the tasks, the universes and the timing functions."""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

import geomdp as gd
from experiments.engine.processor_time import timed
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
    """One measurement."""

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
    """Entries of one operation, and the size of the support of its query; None if not counted.

    They are the elements that an evaluation with an update of sparse weights looks up, the entries
    that an update of dense weights changes, or the different values of the hash for one column.
    """
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
