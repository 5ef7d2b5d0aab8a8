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
import math
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
from experiments.shared import smooth_problems as problems
from experiments.smooth import smooth_releases as releases
from experiments.smooth.kinks import half_power, signed_binomials
from geomdp.workloads.smooth import Truncation, approximate, approximate_many
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
            "operator_off": operator_off(error_point(config)),
        }
    spent = float(np.mean(seconds_of(config, rng)))
    return {"seconds": spent, "additions": additions(config, rng)}


def error_point(config: Config) -> releases.Config:
    """The configuration of `smooth_releases` that has the same summary."""
    method = METHODS.get(config.measure, releases.Method.TRUNCATED)
    return releases.Config(
        D, config.smoothness, method, config.n, 100, config.repetitions, 1.0, releases.Panel.RECORDS
    )


def factors(order: int, size: int) -> ex.FloatArray:
    """Factors (t,) of the Jackson operator (SM-JK) for degrees 0 to t - 1, with t = `size`.

    The library computes the factors by convolutions. This function integrates the kernel.

    Let K = `order` and r = ceil((K + 3) / 2). The factor of degree n is the sum over k = 1..K+1 of
    (-1)^(k+1) C(K+1, k) rho_l for l = k n. Here rho_l is the mean of cos(l s) under the kernel
    (sin(t' s / 2) / sin(s / 2))^(2 r), with t' = floor((t - 1) / r) + 1. All integrands are cosine
    polynomials of degree below (K + 2) t, so the midpoint rule with (K + 2) t points is exact, up
    to rounding.
    """
    r, points = half_power(order), (order + 2) * size
    s = (np.arange(points) + 0.5) * 2 * math.pi / points
    terms = (size - 1) // r + 1
    kernel = (np.sin(terms * s / 2) / (terms * np.sin(s / 2))) ** (2 * r)
    kernel /= kernel.sum()
    degrees = np.arange(size)
    return np.asarray(
        sum(
            factor * np.cos(k * degrees[:, None] * s) @ kernel
            for k, factor in signed_binomials(order)
        )
    )


def operator_off(point: releases.Config) -> float:
    """Largest error of a coefficient for d = 1, divided by the largest coefficient.

    The correct value is the coefficient of the truncated series times the factor of the Jackson
    operator. Methods that only truncate the series have the factor 1.
    """
    K, t = point.smoothness, releases.mechanism(point).degree
    family = problems.kernel_family(1, K, point.queries)
    series = problems.stacked(approximate_many(family, t, 1, Truncation()))
    expected = series * factors(K, t) if point.method is releases.Method.PAPER else series
    found = problems.stacked(releases.coefficients(point))
    return float(np.abs(found - expected).max() / np.abs(expected).max())


#: Relative rounding error allowed in coefficients. The sum over k of binomials with changing signs,
#: whose sizes add up to nearly 2^(K+1), loses three of the 16 digits of float64 at K = 8. Sums over
#: 2 t nodes and (K + 2) t points lose two more.
ROUNDING = 1e-10


def is_the_operator(table: pd.DataFrame) -> ex.Claim:
    """The library's coefficients agree, up to rounding, with coefficients from `factors`."""
    off = float(table.operator_off.max())
    name = "Jackson operator: coefficients equal those from integrals of its kernel of power 2r"
    measured = f"{len(table)} points, off by {off:.1g} of the largest coefficient or less"
    theory = f"equal, up to a rounding error of {ROUNDING:g}"
    return ex.Claim(name, ex.at_most(off, ROUNDING), measured, theory, "SM-JK")


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
    counted.sums([problems.records_at(problems.random_places(D, 1, rng)[0], config.n)])
    return counted.additions


def seconds_of(config: Config, rng: np.random.Generator) -> ex.FloatArray:
    """Processor seconds of the faster half of all repetitions."""
    M = releases.mechanism(error_point(config))
    query = problems.kernel_family(D, config.smoothness, 1)[0]
    records = problems.records_at(problems.random_places(D, 1, rng)[0], config.n)
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
    yield is_the_operator(table[table.measure == Measure.JACKSON])
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
