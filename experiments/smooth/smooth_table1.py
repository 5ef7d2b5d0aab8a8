"""Smooth queries, Table 1: exponents of accuracy, of summary time and of answer time.

Paper: Wang, Fan, Zhang and Wang 2013, "Efficient algorithm for privately releasing smooth queries",
Table 1 and Theorem 3.1; formula sheet SM-TAB, SM-T3.1, SM-JK.

Setting: d = 1 variable, smoothness K = 1, 2 and 8, degree t = n^(1/(2d+K)), and Laplace noise of
one scale on all moments (the scale as corrected by DISC-15). Queries are kernel mixtures whose
derivatives up to order K are at most 1 in size. The n records lie at ten random places, as in
`smooth_error_vs_n`. Times are seconds of one core for three tasks: the summary by the paper's
direct sums, the summary as the library computes it, and the coefficients of one answer.

Claims: with truncated series and K <= 2d the error falls at least as fast as in the table. At K = 8
the degree t is 2 to 4 at all n here. This range is too small to fit a rate, so the measured
exponent is only shown. The additions of the direct summary, counted as they are made, grow with the
table's exponent of time. Times are drawn and printed, and no claim depends on them. The times of
the library's summary and of an answer grow with smaller exponents than in the table: the library's
cost per record does not depend on t, and one cosine transform replaces quadrature.
The library's coefficients for the Jackson operator of the paper equal coefficients that
are computed by integrating the operator's kernel. If t <= r = ceil((K + 3) / 2), the operator
answers with the mean of the query over points x with uniform angles arccos(x). At K = 8 this is the
case at all n here, and the error does not fall.

Run time on one core: quick 3 s, full 1 minute.
"""

import enum
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
from experiments.shared.smooth_problems import kernel_family, random_places, records_at
from experiments.smooth import jackson_factors
from experiments.smooth import smooth_releases as releases
from geomdp.workloads.smooth import Truncation, approximate
from geomdp.workloads.smooth.moments import Recurrences


class Measure(enum.StrEnum):
    """The errors and times that the figure shows against n."""

    TRUNCATED = "error, truncated"
    JACKSON = "error, Jackson"
    DIRECT = "summary, direct sums"
    SUMMARY = "summary"
    ANSWER = "answer"


METHODS = {Measure.TRUNCATED: releases.Method.TRUNCATED, Measure.JACKSON: releases.Method.PAPER}
TIMES = (Measure.DIRECT, Measure.SUMMARY, Measure.ANSWER)
D = 1
#: The timed tasks. The cells of a script that defines this name run one by one.
TIMED = "summaries and answers"
CLOCK = ("seconds",)
#: Tolerance for the exponent of counted additions. Degrees are rounded to whole numbers: t = 3.16
#: becomes 3, which changes the count at one end of a decade of n by a factor of 1.05 = 10^0.02.
ROUNDED = 0.05


@dataclass(frozen=True)
class Config:
    measure: Measure  # Error or time
    smoothness: int  # K
    n: int  # Number of records
    repetitions: int  # Number of releases for an error, or of runs whose time is kept


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean square of worst errors, or seconds and counted additions."""
    if config.measure in METHODS:
        row = releases.worst_errors(error_point(config), rng)
        return {
            **{name: row[name] for name in ("mean_square", "mean_square_stderr", "releases")},
            "degree": row["chosen_degree"],
            "operator_off": jackson_factors.off(error_point(config)),
        }
    spent = float(np.mean(seconds_of(config, rng)))
    return {"seconds": spent, "additions": additions(config, rng)}


def error_point(config: Config) -> releases.Config:
    """The configuration of `smooth_releases` that has the same summary."""
    method = METHODS.get(config.measure, releases.Method.TRUNCATED)
    return releases.Config(
        D, config.smoothness, method, config.n, 100, config.repetitions, 1.0, releases.Panel.RECORDS
    )


class Counted(Recurrences):
    """Direct sums that count their additions: a record adds to every entry of a table."""

    additions = 0

    def _add(self, table: ex.FloatArray, points: ex.FloatArray) -> None:
        super()._add(table, points)
        self.additions += len(points) * table.size


def additions(config: Config, rng: np.random.Generator) -> int | None:
    """Additions of the direct summary; None for other measures."""
    if config.measure is not Measure.DIRECT:
        return None
    counted = Counted(D, releases.mechanism(error_point(config)).degree)
    counted.sums([records_at(random_places(D, 1, rng)[0], config.n)])
    return counted.additions


def seconds_of(config: Config, rng: np.random.Generator) -> ex.FloatArray:
    """Processor seconds of the faster half of all repetitions."""
    M = releases.mechanism(error_point(config))
    query = kernel_family(D, config.smoothness, 1)[0]
    records = records_at(random_places(D, 1, rng)[0], config.n)
    recurrences = Recurrences(D, M.degree)
    tasks: dict[Measure, Callable[[], object]] = {
        Measure.DIRECT: lambda: recurrences.sums([records]),
        Measure.SUMMARY: lambda: M.release(records, rng=rng),
        Measure.ANSWER: lambda: approximate(query, M.degree, D, Truncation()),
    }
    timer = timeit.Timer(tasks[config.measure], timer=time.process_time)
    seconds = timer.repeat(2 * config.repetitions + 1, number=1)[1:]
    return np.sort(seconds)[: config.repetitions]


#: Functions of d and K: the exponent of n for a time, and minus the exponent for an error.
THEORY: dict[Measure, Callable[[int, int], float]] = {
    Measure.TRUNCATED: releases.accuracy,
    Measure.JACKSON: releases.accuracy,
    Measure.DIRECT: releases.summary_time,
    Measure.SUMMARY: releases.summary_time,
    Measure.ANSWER: releases.answer_time,
}


def theory(measure: Measure, K: int) -> float:
    """Exponent of n in Table 1."""
    sign = -1 if measure in METHODS else 1
    return sign * THEORY[measure](D, K)


def fitted(table: pd.DataFrame) -> dict[tuple[str, int], ex.Slope]:
    """Slope against n of each error, in logarithms, by measure and K."""
    found = ex.slopes_by(table[table.measure.isin(METHODS)], ["measure", "smoothness"], "n")
    return {(measure, int(K)): slope for (measure, K), slope in found.items()}


def exponents(table: pd.DataFrame, measure: Measure, column: str) -> dict[int, float]:
    """Slope against n of a column with times or additions, in logarithms, by K."""
    curves = table[table.measure == measure].groupby("smoothness")
    logs = {int(K): np.log(rows[["n", column]].to_numpy(float)).T for K, rows in curves}
    return {K: float(np.polyfit(*log, 1)[0]) for K, log in logs.items()}


def claims(table: pd.DataFrame) -> ex.Claims:
    slopes = fitted(table)
    yield releases.degrees(table[table.measure.isin(METHODS)], D)
    found = {K: s for (m, K), s in slopes.items() if m == Measure.TRUNCATED and K <= 2 * D}
    name = f"error with truncated series, K <= {2 * D}: it falls at least as fast as in Table 1"
    verdict = ex.at_most(
        [theory(Measure.TRUNCATED, K) / slope.low for K, slope in found.items()], 1
    )
    measured = beside({K: slope.value for K, slope in found.items()}, Measure.TRUNCATED)
    stated_as = "not above the exponent in Table 1 by more than chance explains"
    yield ex.Claim(name, verdict, measured, stated_as, "SM-TAB")
    yield grows_as_in_the_table(exponents(table, Measure.DIRECT, "additions"))
    yield jackson_factors.is_the_operator(table[table.measure == Measure.JACKSON])
    yield mean_only(table)


def grows_as_in_the_table(found: dict[int, float]) -> ex.Claim:
    """The additions of direct sums grow with the exponent in Table 1, up to `ROUNDED`."""
    off = [abs(value - theory(Measure.DIRECT, K)) for K, value in found.items()]
    name = f"{Measure.DIRECT}: the number of additions grows as in Table 1"
    measured = beside(found, Measure.DIRECT)
    stated_as = f"equal, up to {ROUNDED:g}, as degrees are whole numbers"
    return ex.Claim(name, ex.at_most(off, ROUNDED), measured, stated_as, "SM-TAB")


def beside(found: dict[int, float], measure: Measure) -> str:
    """Text that states, for each K, the measured exponent and the exponent in Table 1."""
    return ", ".join(
        f"K={K}: exponent {value:.2f} (Table 1: {theory(measure, K):.2f})"
        for K, value in found.items()
    )


def mean_only(table: pd.DataFrame) -> ex.Claim:
    """With t <= r the Jackson operator keeps only a mean of each query, so errors hardly fall."""
    largest = int(table.smoothness.max())
    slope = fitted(table)[Measure.JACKSON, largest]
    name = f"Jackson operator at K = {largest}: the error does not fall at these n"
    stated_as = "within 0.1 of 0, as t <= r = ceil((K + 3) / 2)"
    return ex.Claim(name, ex.below(abs(slope.value), 0.1), f"exponent {slope}", stated_as, "SM-JK")


#: Orders K of smoothness.
ORDERS = (1, 2, 8)
#: The paper's ways, drawn with open marks. The library's ways are drawn with filled marks.
PAPERS = (Measure.JACKSON, Measure.DIRECT)
PANELS = {
    "error": (Measure.TRUNCATED, Measure.JACKSON),
    "summary": (Measure.SUMMARY, Measure.DIRECT),
    "one answer": (Measure.ANSWER,),
}


def plot(table: pd.DataFrame) -> ex.Figure:
    figure, panels = ex.panels((7.2, 2.9), PANELS, ["exponent of $n$"] * len(PANELS), sharey=True)
    orders = sorted(int(K) for K in table.smoothness.unique())
    slopes = {key: slope.value for key, slope in fitted(table).items()}
    for axes, measures in zip(panels, PANELS.values(), strict=True):
        for measure in measures:
            column = "additions" if measure is Measure.DIRECT else "seconds"
            found = (
                {K: slopes[measure, K] for K in orders if (measure, K) in slopes}
                if measure in METHODS
                else exponents(table, measure, column)
            )
            open_marks = measure in PAPERS
            look = ex.Look(
                ex.GREY if open_marks else "C0", "s" if open_marks else "o", not open_marks
            )
            rows = [orders.index(K) for K in found]
            ex.draw_points(axes, [*found.values()], rows, look, "_", line="none", size=7)
        stated = [theory(measures[0], K) for K in orders]
        ex.draw_points(
            axes, stated, range(len(orders)), ex.Look("black", "|"), "_", "none", size=16
        )
        axes.set_ylim(len(orders) - 0.5, -0.5)
    panels[0].set_yticks(range(len(orders)), [f"$K={K}$" for K in orders])
    return ex.headline(
        figure,
        "Up to K = 2 the error falls faster than Table 1 says; our times grow less",
        "$d=1$. Bars: Table 1. Filled: as released here. Open: the paper's way, with the Jackson\n"
        "operator and direct sums (counted additions).",
    )


def grid(
    errors: tuple[int, ...], times: tuple[int, ...], draws: Callable[[int], int], repetitions: int
) -> tuple[Config, ...]:
    """Errors at every n in `errors`, and times at every n in `times`, for all K."""
    measured = [
        Config(measure, K, n, draws(n)) for measure in METHODS for K in ORDERS for n in errors
    ]
    timed = ex.product(Config, TIMES, ORDERS, times, repetitions)
    return (*measured, *timed)


QUICK = ex.Sweep(grid((10**3, 10**4), (10**4, 3 * 10**5), draws=lambda _: 40, repetitions=2))
FULL = ex.Sweep(
    grid(
        (10**3, 10**4, 10**5, 10**6),
        (10**5, 3 * 10**5, 10**6),
        draws=lambda n: 200 if n <= 10**4 else 30,
        repetitions=5,
    )
)
