"""Speed of the sparse mechanisms: queries, updates, sign bits and summaries per second of one core.

Sparse multiplicative weights cost O(m) per query of sparsity m, whatever the universe X; dense
multiplicative weights cost O(|X|). The hash over GF(2^64) gives 64 signs per evaluation (formula
sheet BR-SMW, BR-PROJ, X-GF, SV-AT).

Claims, in counted work: a query of sparsity m looks up each of its m elements once, for an
evaluation and an update together, on elements that earlier queries mentioned. It does so for
m = 10 and 1,000 in universes of 10^3 numbers, 10^9 numbers, and strings. An update of dense weights
on 2^20 elements changes at least 100 times as many entries as sparse weights look up at sparsity
10. A column of 2^16 signs takes 2^10 values of the hash, which all differ. Rates are per second of
processor time; each is a median over repetitions in one process. They are drawn and printed, and
no claim depends on them. The goals are 200,000 queries a second at sparsity 10, and 1,000 times the
speed of dense weights.

Run time on one core: quick 2 s, full 1 minute.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from rich.table import Table

from experiments.benchmarks.sparse_measurements import (
    ROWS,
    SPARSE_TASKS,
    TIMERS,
    UNIVERSES,
    Config,
    Elements,
    Task,
    entries,
)
from experiments.engine import margins
from experiments.engine.cells import Row, Sweep
from experiments.engine.claims import Claim
from experiments.engine.drawing import Look, draw_points, log_axes, shared_legend
from experiments.engine.goals import Aim, Goal

TIMED = "queries, updates, sign bits and summaries"
CLOCK = ("rate", "slowest", "fastest")


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """Entries of one operation; median, slowest and fastest rate after one that compiles."""
    counted = entries(config, rng)
    timer = TIMERS[config.task]
    warm_up = min(config.operations, 2 * ROWS if config.task is Task.BITS else 10)
    timer(Config(config.task, config.elements, config.sparsity, warm_up, 1), rng)
    rates = config.operations / np.array(timer(config, rng))
    timed = {"rate": np.median(rates), "slowest": rates.min(), "fastest": rates.max()}
    return [{**counted, **timed}]


def claims(table: pd.DataFrame) -> list[Claim]:
    """Claims about the entries that an operation looks up, changes or computes."""
    updates = table[(table.task == Task.UPDATE) & table.sparsity.isin([10, 1000])]
    # A random support may draw an element twice, so a query may have fewer elements than m.
    shares = updates.entries / updates.support
    dense = float(table.entries[table.task == Task.DENSE].max())
    apart = dense / float(updates.entries[updates.sparsity == 10].max())
    words = float(table.entries[table.task == Task.BITS].max())
    return [
        Claim(
            "a query to sparse weights, with its update, looks up each element once",
            bool((shares == 1).all()),
            f"{shares.min():g} to {shares.max():g} times, for {len(shares)} kinds of queries",
            "once, in every universe",
            "BR-SMW",
            used=margins.NoLimit.EVERY_CASE,
        ),
        Claim(
            "an update of dense weights on 2^20 elements changes at least 100 times as many "
            "entries as sparse weights look up at m = 10",
            apart >= 100,
            f"{apart:,.0f} times",
            "at least 100 times",
            "BR-MW",
            used=margins.inverse_share(apart, 100),
        ),
        Claim(
            f"a column of {ROWS:,} signs takes one value of the hash for 64 signs",
            words == ROWS / 64,
            f"{words:,.0f} different values",
            f"{ROWS // 64:,}",
            "X-GF",
            used=margins.NoLimit.EVERY_CASE,
        ),
    ]


#: Goals for queries per second, and for the ratio of this rate to the rate of dense weights on
#: 2^20 elements.
FAST, APART = 200_000.0, 1000.0


def goals(table: pd.DataFrame) -> list[Goal]:
    """Goals for sparse weights at sparsity 10 with updates, on the slowest universe."""
    rate = {(row.task, row.sparsity, row.elements): row.rate for row in table.itertuples()}
    slowest = min(rate[Task.UPDATE, 10, place] for place in UNIVERSES)
    reading = rate[Task.READ, 10, Elements.NONE]
    beside = f"{reading / slowest:,.3g} times one NumPy call that adds to ten numbers in memory"
    reason = (
        f"a query takes {1e6 / slowest:.3g} microseconds for a look-up of each element in a Python "
        "dictionary and for NumPy calls on short arrays"
    )
    dense = slowest / rate[Task.DENSE, 0, Elements.DENSE]
    name = "sparse weights at sparsity 10: "
    return [
        Goal(f"{name}queries a second", slowest, FAST, Aim.AT_LEAST, reason, beside),
        Goal(f"{name}times as fast as dense ones", dense, APART, Aim.AT_LEAST, reason, beside),
    ]


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
    """Rates of sparse weights on all universes against sparsity, and the rate of dense weights."""
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
    axes.set_title("Median and range over universes of $10^3$ numbers, $10^9$ numbers and strings")
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


QUICK = Sweep(grid((10, 1000), scale=1, records=2000, repetitions=3), trials=1, seed=0)
FULL = Sweep(grid((1, 10, 100, 1000), scale=7, records=10**5, repetitions=5), trials=1, seed=0)
