"""Speed of the sparse mechanisms: queries, updates, sign bits and summaries per second of one core.

Sparse multiplicative weights cost O(m) per query of sparsity m, whatever the universe X; dense
multiplicative weights cost O(|X|). The hash over GF(2^64) gives 64 signs per evaluation (formula
sheet BR-SMW, BR-PROJ, X-GF, SV-AT).

Claims: sparse weights answer at least 30,000 queries per second at sparsity 10 and at least 4,000
at sparsity 1,000. Each query is evaluated and followed by an update, on elements that earlier
queries mentioned. The universes are 10^3 numbers, 10^9 numbers, and strings. Dense weights on 2^20
elements are at least 100 times slower than sparse weights at sparsity 10. At least 100 million sign
bits are hashed per second, and at least one bit in the time in which dense weights evaluate and
update one entry. Summarising 10^5 distinct records in 2^16 rows takes less than 60 seconds on one
core; the requirement allows two cores. AboveThreshold gives at least 200,000 answers per second
from an array and 30,000 one at a time. Speeds are claimed only for a machine that does nothing
else: the quick preset, which also runs in the test suite, claims nothing but the two comparisons
with dense weights. The goals are 200,000 queries a second at sparsity 10, and 1,000 times the speed
of dense weights. Rates are per second of processor time; each is a median over repetitions in one
process.

Run time on one core: quick 4 s, full 1 minute.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from rich.table import Table

from experiments.benchmarks.sparse_measurements import (
    DENSE_SIZE,
    ROWS,
    SPARSE_TASKS,
    TIMERS,
    UNIVERSES,
    Config,
    Elements,
    Task,
)
from experiments.engine import margins
from experiments.engine.cells import Row, Sweep
from experiments.engine.claims import Claim
from experiments.engine.drawing import Look, draw_points, log_axes, shared_legend
from experiments.engine.goals import Aim, Goal

TIMED = "queries, updates, sign bits and summaries"


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
    """Claims that compare with dense weights, and at the full preset also claims about speeds."""
    rate = {(row.task, row.sparsity, row.elements): row.rate for row in table.itertuples()}
    updates = {m: [rate[Task.UPDATE, m, place] for place in UNIVERSES] for m in (10, 1000)}
    dense = rate[Task.DENSE, 0, Elements.DENSE]
    seconds = 10**5 / rate[Task.SUMMARY, 0, Elements.NONE]
    ratio = at_least(
        "sparse weights at m = 10 handle at least 100 times as many queries per second as dense "
        "weights on 2^20 elements",
        min(updates[10]) / dense,
        100,
        "BR-MW",
    )
    bits = rate[Task.BITS, 0, Elements.NONE]
    beside = at_least(
        "at least one sign is hashed in the time that dense weights take for one entry (signs)",
        bits / (dense * DENSE_SIZE),
        1,
        "X-GF",
    )
    if not (table.sparsity == 1).any():  # sparsity 1 is measured at the full preset only
        return [ratio, beside]
    return [
        ratio,
        beside,
        at_least(
            "sparse weights handle at least 30,000 queries per second at m = 10",
            min(updates[10]),
            30_000,
            "BR-SMW",
        ),
        at_least(
            "sparse weights handle at least 4,000 queries per second at m = 1000",
            min(updates[1000]),
            4000,
            "BR-SMW",
        ),
        at_least("at least 10^8 sign bits are hashed per second", bits, 1e8, "X-GF"),
        Claim(
            "a summary of 10^5 records with 2^16 rows takes less than 60 s on one core (s)",
            seconds < 60,
            f"{seconds:.3g}",
            "below 60 (two cores allowed)",
            "BR-PROJ",
            used=margins.share(seconds, 60),
        ),
        at_least(
            "AboveThreshold gives at least 200,000 answers per second from an array",
            rate[Task.ARRAY, 0, Elements.NONE],
            2e5,
            "SV-AT",
        ),
        at_least(
            "AboveThreshold gives at least 30,000 answers per second one at a time",
            rate[Task.SINGLE, 0, Elements.NONE],
            3e4,
            "SV-AT",
        ),
    ]


def at_least(name: str, measured: float, required: float, id: str) -> Claim:
    """Claim that a rate, or a ratio of rates, is at least as large as required."""
    shown, goal = f"{measured:.3g}", f"at least {required:.3g}"
    return Claim(name, measured >= required, shown, goal, id, used=required / measured)


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
