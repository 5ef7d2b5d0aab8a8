"""Smooth queries: worst error over kernel mixtures against the number of records.

Paper: Wang, Fan, Zhang and Wang 2013, "Efficient algorithm for privately releasing smooth queries",
Theorem 3.1; formula sheet SM-A1, SM-A2, SM-JK, SM-T3.1, SM-X1, DISC-15.

Queries: mixtures of three Gaussian kernels in C^K_1 with bandwidths from narrow to 1. Records: n at
ten random places, drawn anew for each release; all n records are real rows that the mechanism
reads, up to 10^7 in one variable. The figure shows the largest error over the queries.

Claims: the paper's summary (uniform Laplace noise of the corrected scale, t = n^(1/(2d+K))) errs
no worse than n^(-K/(2d+K)) with truncated series, and less than with the paper's Jackson operator,
at d = 1 and 2. Weighted noise with t chosen by prediction errs less still; its exponents are shown
with the hypothesis min(1, K/(1.5 d)). For d = 3 the degrees are too small for a fit. Every single
answer is within the error stated with it: proved bound on the approximation, and noise.

Run time on one core: quick 5 s, full 2 minutes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from experiments.engine.cells import Row, Sweep
from experiments.engine.checks import is_below, slopes_by
from experiments.engine.claims import Claim
from experiments.engine.drawing import (
    Look,
    draw_measured,
    draw_points,
    draw_theory,
    log_axes,
    shared_legend,
)
from experiments.engine.statistics import Slope, pooled_along, pooled_by
from experiments.smooth import smooth_exponents
from experiments.smooth.smooth_releases import SPREAD, Config, Method, worst_errors

#: Largest n with enough releases for comparing methods.
COMPARED = 10**4


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """Mean square of the worst error over the family, and the largest share of a stated error."""
    return [worst_errors(config, rng)]


THEORY: Mapping[Method, Callable[[int, int], float]] = {
    Method.TRUNCATED: smooth_exponents.accuracy,
    Method.WEIGHTED: smooth_exponents.accuracy_of_weighted,
}


def fitted(table: pd.DataFrame) -> dict[tuple[Method, int, int], Slope]:
    """Fitted slopes by method, d and K, where there are enough degrees for a fit."""
    return slopes_by(table[table.d <= 2], ["method", "d", "smoothness"], "n")


def claims(table: pd.DataFrame) -> list[Claim]:
    """Slopes beside theory, the order of the methods, stated errors, and post-processing."""
    slopes, compared = fitted(table), table[table.n <= COMPARED]
    points = {
        method: pooled_by(compared[compared.method == method], ["d", "smoothness", "n"])
        for method in Method
    }
    last = {
        method: {
            (d, K, n): mean
            for (d, K, n), mean in found.items()
            if d <= 2 and n == compared[compared.d == d].n.max()
        }
        for method, found in points.items()
    }
    return [
        at_least_as_steep(
            "uniform noise, truncation: error falls at least as n^(-K/(2d+K))",
            "SM-T3.1",
            slopes,
            Method.TRUNCATED,
        ),
        at_least_as_steep(
            "weighted noise: error falls at least as n^(-min(1, K/(1.5d)))",
            "SM-X1, hypothesis",
            slopes,
            Method.WEIGHTED,
        ),
        is_below(
            "truncation errs less than the Jackson operator, same summary, d <= 2",
            "SM-JK",
            {key: mean for key, mean in points[Method.TRUNCATED].items() if key[0] <= 2},
            {key: mean for key, mean in points[Method.PAPER].items() if key[0] <= 2},
        ),
        is_below(
            f"weighted noise errs less than uniform noise, d <= 2, largest n up to {COMPARED}",
            "SM-X1",
            last[Method.WEIGHTED],
            last[Method.TRUNCATED],
        ),
        stated_errors_hold(table),
    ]


def at_least_as_steep(
    name: str, id: str, slopes: Mapping[tuple[Method, int, int], Slope], method: Method
) -> Claim:
    """No fitted slope is shallower than minus the exponent of theory, beyond chance."""
    found = {key[1:]: slope for key, slope in slopes.items() if key[0] == method}
    exponents = {key: THEORY[method](*key) for key in found}
    passed = all(slope.low <= -exponents[key] for key, slope in found.items())
    pairs = "; ".join(
        f"d={d}, K={K}: {-slope.value:.2f} beside {exponents[d, K]:.2f}"
        for (d, K), slope in found.items()
    )
    return Claim(name, passed, pairs, "fitted exponents not below", id)


def stated_errors_hold(table: pd.DataFrame) -> Claim:
    """No answer is off by more than its error bound and its noise."""
    share = float(table.largest_share.max())
    return Claim(
        "every answer is within the error stated with it",
        share <= 1,
        f"at most {share:.2f} of error bound + {SPREAD:.1f} noise standard deviations",
        "at most 1",
        "SM-A2",
    )


COLOURS = {1: "C1", 2: "C0", 4: "C2"}
MARKERS = {Method.PAPER: "^", Method.TRUNCATED: "o", Method.WEIGHTED: "s"}
THEOREM = r"$n^{-K/(2d+K)}$"
HYPOTHESIS = r"$n^{-\min(1,\,K/1.5d)}$"


def plot(table: pd.DataFrame) -> Figure:
    """Worst error against n for d = 1, 2, 3."""
    figure = Figure(figsize=(7.2, 4.6))
    panels = figure.subplots(1, 3)
    slopes = fitted(table)
    for d, axes, letter in zip((1, 2, 3), panels, "abc", strict=True):
        draw(axes, table[table.d == d])
        axes.set_title(f"({letter}) $d={d}$")
        if d <= 2:
            write_exponents(axes, slopes, d)
        log_axes(axes)
        axes.set_xlabel("number of records $n$")
    panels[0].set_ylabel("worst error of an answer (RMS)")
    columns = {
        "summary": [str(method) for method in Method],
        "smoothness": [f"$K={K}$" for K in COLOURS],
        "theory": [THEOREM, HYPOTHESIS],
    }
    shared_legend(figure, panels, columns)
    return figure


def draw(axes: Axes, table: pd.DataFrame) -> None:
    """All methods and K, with rates through the first points of two of them."""
    for method, marker in MARKERS.items():
        look = Look("0.3", marker, filled=method is Method.WEIGHTED)
        draw_points(axes, [], [], look, str(method))
    for K, colour in COLOURS.items():
        axes.plot([], [], color=colour, label=f"$K={K}$")
    draw_theory(axes, [], [], "0.3", THEOREM)
    draw_theory(axes, [], [], "0.3", HYPOTHESIS, (1, 2))
    for method, K in itertools.product(MARKERS, COLOURS):
        rows = table[(table.method == method) & (table.smoothness == K)]
        if rows.empty:
            continue
        means = pooled_along(rows, "n")
        look = Look(COLOURS[K], MARKERS[method], filled=method is Method.WEIGHTED)
        draw_measured(axes, means, look, label="_")
        if method in THEORY:
            n = np.array([min(means), max(means)], dtype=float)
            exponent = THEORY[method](int(rows.d.iloc[0]), K)
            start = means[min(means)].root
            dashes = (4, 2) if method is Method.TRUNCATED else (1, 2)
            draw_theory(axes, n, start * (n / n[0]) ** -exponent, COLOURS[K], "_", dashes)


def write_exponents(axes: Axes, slopes: Mapping[tuple[Method, int, int], Slope], d: int) -> None:
    """Fitted exponents beside theory, in the corner of a panel."""
    lines = ["exponents: fitted / theory", "  K  uniform    weighted"]
    for K in COLOURS:
        parts = [
            f"{-slopes[m, d, K].value:.2f}/{THEORY[m](d, K):.2f}"
            for m in THEORY
            if (m, d, K) in slopes
        ]
        if parts:
            lines.append(f"  {K}  " + "  ".join(parts))
    axes.text(
        0.03,
        0.03,
        "\n".join(lines),
        transform=axes.transAxes,
        fontsize=6,
        va="bottom",
        family="monospace",
    )


def report(table: pd.DataFrame) -> Table:
    """Fitted exponents beside theory."""
    shown = Table("method", "d", "K", "fitted", "theory", title="Exponents of the worst error")
    for (method, d, K), slope in fitted(table).items():
        theory = THEORY.get(Method(method), smooth_exponents.accuracy)(d, K)
        shown.add_row(str(method), str(d), str(K), str(slope), f"{-theory:.3f}")
    return shown


def grid(
    sizes: Mapping[int, tuple[int, ...]],
    orders: tuple[int, ...],
    queries: int,
    draws: Callable[[int], int],
) -> tuple[Config, ...]:
    """All methods over all n, by number of variables."""
    return tuple(
        Config(d, K, method, n, queries, draws(n))
        for d, numbers in sizes.items()
        for K in orders
        for method in Method
        for n in numbers
    )


QUICK = Sweep(
    grid(
        {1: (10**3, 10**4), 2: (10**3, 10**4), 3: (10**3,)},
        orders=(1, 4),
        queries=40,
        draws=lambda _: 200,
    ),
    trials=1,
    seed=0,
)
FULL = Sweep(
    grid(
        {
            1: (10**3, 10**4, 10**5, 10**6, 10**7),
            2: (10**3, 10**4, 10**5, 10**6),
            3: (10**3, 10**4, 10**5, 10**6),
        },
        orders=(1, 2, 4),
        queries=200,
        draws=lambda n: 400 if n <= COMPARED else 60 if n == 10**5 else 24,
    ),
    trials=1,
    seed=0,
)
