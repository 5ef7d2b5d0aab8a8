"""Smooth queries: worst error over kernel mixtures against the number of records.

Paper: Wang, Fan, Zhang and Wang 2013, "Efficient algorithm for privately releasing smooth queries",
Theorem 3.1; formula sheet SM-A1, SM-A2, SM-JK, SM-T3.1, SM-X1, DISC-15.

Queries: mixtures of three Gaussian kernels in C^K_1 with bandwidths from narrow to 1. Records: n at
ten random places, drawn anew for each release; all n records are real rows that the mechanism
reads, up to 10^7 in one variable. The figure shows the largest error over the queries.

Claims: the paper's summary (uniform Laplace noise of the corrected scale, t = n^(1/(2d+K))) errs
no worse than n^(-K/(2d+K)) with truncated series, and with the paper's Jackson operator errs more
than that at every n. Weighted noise with t chosen by prediction errs less still; its exponents at
d = 1 and 2 are beside the hypothesis min(1, K/(1.5 d)). For d = 3 the degrees are too small for a
fit. Every single answer is within the error stated with it. At a fixed t moving the noisy moments
to the nearest true ones lowers the worst error on such records, the more the fewer records.

Run time on one core: quick 6 s, full 6 minutes.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

import geomdp as gd
from experiments.engine.cells import Row, Sweep
from experiments.engine.checks import is_below, slopes_by
from experiments.engine.claims import Claim
from experiments.engine.drawing import Look, draw_measured, draw_theory, log_axes, shared_legend
from experiments.engine.statistics import LEVEL, MeanSquare, Slope, pooled_by
from experiments.smooth_problems import (
    kernel_family,
    random_places,
    records_at,
    true_answers,
)
from geomdp.workloads.smooth import (
    Coefficients,
    Filter,
    Jackson,
    Shrinkage,
    Truncation,
    approximate_many,
)

PRIVACY = gd.PureDP(1.0)
#: Answers over all releases together, at most: for the level of single answers.
ANSWERS = 10**6
#: A sum of independent Laplace variables has a log-concave density, so it exceeds u standard
#: deviations with probability at most exp(1 - u).
SPREAD = 1 + math.log(ANSWERS / LEVEL)
#: Degrees of the summaries that are post-processed, and grid angles, by number of variables.
FIXED = {1: 32, 2: 8}
GRID = {1: 256, 2: 33}
#: Largest n with enough releases for comparing methods, and for comparing post-processing.
COMPARED, NOISY = 10**5, 300


class Method(enum.StrEnum):
    """Noise and filter, in the order of the legend; the last three post-process a fixed t."""

    PAPER = "uniform, Jackson (paper)"
    TRUNCATED = "uniform, truncated"
    WEIGHTED = "weighted, truncated"
    SHRUNK = "uniform, shrunk"
    SEMIDEFINITE = "nearest, semidefinite"
    ON_GRID = "nearest, on a grid"


CHOSEN = (Method.PAPER, Method.TRUNCATED, Method.WEIGHTED)
NEAREST = (Method.SEMIDEFINITE, Method.ON_GRID)


@dataclass(frozen=True)
class Config:
    """One point of the figure.

    Parameters
    ----------
    d : int
        Number of variables.
    smoothness : int
        K.
    method : Method
        Noise, filter and post-processing.
    degree : int
        t; 0 leaves it to the method.
    n : int
        Number of records.
    queries : int
        Size of the family.
    draws : int
        Releases in one cell, each of records at new places.
    """

    d: int
    smoothness: int
    method: Method
    degree: int
    n: int
    queries: int
    draws: int


@cache
def mechanism(config: Config) -> gd.SmoothSummary:
    """The summary of a configuration."""
    noise = None if config.method is Method.WEIGHTED else gd.mechanisms.UniformLaplace()
    theorem = None if config.method is Method.WEIGHTED else gd.mechanisms.TheoremDegree()
    return gd.SmoothSummary(
        config.d,
        n=config.n,
        smoothness=config.smoothness,
        privacy=PRIVACY,
        degree=config.degree or theorem,
        noise=noise,
    )


@cache
def coefficients(config: Config) -> tuple[Coefficients, ...]:
    """Coefficients of the family under the filter of a configuration."""
    M = mechanism(config)
    filters: dict[Method, Callable[[], Filter]] = {
        Method.PAPER: lambda: Jackson(config.smoothness),
        Method.SHRUNK: lambda: Shrinkage(M.noise_std, config.n),
    }
    chosen = filters.get(config.method, Truncation)()
    family = kernel_family(config.d, config.smoothness, config.queries)
    return approximate_many(family, M.degree, config.d, chosen)


@cache
def projection(config: Config) -> gd.mechanisms.MomentProjection | None:
    """Post-processing of the moments, if there is any."""
    deviations = mechanism(config).noise_std
    if config.method is Method.SEMIDEFINITE:
        return gd.mechanisms.MomentProjection.semidefinite(deviations)
    if config.method is Method.ON_GRID:
        return gd.mechanisms.MomentProjection.on_grid(deviations, GRID[config.d])
    return None


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """Mean square of the worst error over the family, and the largest share of a stated error."""
    M, combine = mechanism(config), coefficients(config)
    family = kernel_family(config.d, config.smoothness, config.queries)
    matrix = np.array([each.values.ravel() for each in combine])
    stated = np.array([each.error_bound + SPREAD * each.noise_std(M.noise_std) for each in combine])
    project = projection(config)
    places = random_places(config.d, config.draws, rng)
    truths = true_answers(family, places, config.n)
    errors = np.empty(truths.shape)
    ratios = []
    for row, here, truth in zip(errors, places, truths, strict=True):
        records = records_at(here, config.n)
        moments = M.release(records, rng=rng).moments
        if project is not None:
            nearest, exact = project(moments), M.workload.table(M.workload.answers(records))
            drawn = weighted_norm(moments - exact, M.noise_std)
            ratios.append(weighted_norm(nearest - exact, M.noise_std) / drawn)
            moments = nearest
        row[:] = np.abs(matrix @ moments.ravel() - truth)
    return [
        {
            **MeanSquare.of(errors.max(axis=1) ** 2).columns(),
            "chosen_degree": M.degree,
            "largest_share": float((errors / stated).max()),
            "largest_ratio": max(ratios, default=1.0),
        }
    ]


def weighted_norm(gap: npt.NDArray[np.float64], deviations: npt.NDArray[np.float64]) -> float:
    """Euclidean norm of moments over the noise's standard deviations, the constant left out."""
    return float(np.linalg.norm(gap.ravel()[1:] / deviations.ravel()[1:]))


def exponent_of_theorem(d: int, smoothness: int) -> float:
    """K / (2 d + K), of Theorem 3.1."""
    return smoothness / (2 * d + smoothness)


def exponent_of_hypothesis(d: int, smoothness: int) -> float:
    """min(1, K / (1.5 d)), of SM-X1 up to logarithms."""
    return min(1.0, smoothness / (1.5 * d))


THEORY: Mapping[Method, Callable[[int, int], float]] = {
    Method.TRUNCATED: exponent_of_theorem,
    Method.WEIGHTED: exponent_of_hypothesis,
}


def fitted(table: pd.DataFrame) -> dict[tuple[Method, int, int], Slope]:
    """Fitted slopes by method, d and K, where there are enough degrees for a fit."""
    rows = table[(table.degree == 0) & (table.d <= 2)]
    return slopes_by(rows, ["method", "d", "smoothness"], "n")


def claims(table: pd.DataFrame) -> list[Claim]:
    """Slopes beside theory, the order of the methods, stated errors, and post-processing."""
    slopes, compared = fitted(table), table[(table.degree == 0) & (table.n <= COMPARED)]
    points = {
        method: pooled_by(compared[compared.method == method], ["d", "smoothness", "n"])
        for method in CHOSEN
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
        stated_errors_hold(table[~table.method.isin(NEAREST)]),
        never_further(table),
        projection_helps(table),
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


def never_further(table: pd.DataFrame) -> Claim:
    """Distances of moments from the true ones, in the norm of the noise."""
    ratio = float(table[table.method == Method.SEMIDEFINITE].largest_ratio.max())
    return Claim(
        "the nearest true moments are never further from the exact ones than the noisy ones are",
        ratio <= 1,
        f"at most {ratio:.3f} of the distance, semidefinite, over all releases",
        "at most 1",
        "post-processing",
    )


def projection_helps(table: pd.DataFrame) -> Claim:
    """Ratios of worst errors after to before, at a fixed t; below 1 beyond chance."""
    fixed = table[(table.degree > 0) & (table.n <= NOISY)]
    before = pooled_by(fixed[fixed.method == Method.TRUNCATED], ["d", "n"])
    after = pooled_by(fixed[fixed.method == Method.ON_GRID], ["d", "n"])
    check = is_below("", "", after, before)
    ratios = "; ".join(
        f"d={d}, n={n}: {mean.root / before[d, n].root:.2f}" for (d, n), mean in after.items()
    )
    return Claim(
        f"the worst error of an answer falls by moving to the nearest moments, n <= {NOISY}",
        check.passed,
        f"{ratios} of the error before",
        "below 1",
        "post-processing",
    )


COLOURS = {1: "C1", 2: "C0", 4: "C2"}
MARKERS = {Method.PAPER: "^", Method.TRUNCATED: "o", Method.WEIGHTED: "s"}
FIXED_LOOKS = {
    Method.TRUNCATED: Look("C7", "o", filled=False),
    Method.SHRUNK: Look("C4", "v"),
    Method.SEMIDEFINITE: Look("C3", "D"),
    Method.ON_GRID: Look("C5", "X"),
}
THEOREM = r"$n^{-K/(2d+K)}$"
HYPOTHESIS = r"$n^{-\min(1,\,K/1.5d)}$"


def plot(table: pd.DataFrame) -> Figure:
    """Worst error against n for d = 1, 2, 3, and what post-processing does at a fixed t."""
    figure = Figure(figsize=(7.2, 7.8))
    panels = figure.subplots(2, 2).ravel()
    chosen = table[table.degree == 0]
    slopes = fitted(table)
    for d, axes, letter in zip((1, 2, 3), panels, "abc", strict=False):
        draw_chosen(axes, chosen[chosen.d == d])
        axes.set_title(f"({letter}) $d={d}$")
        if d <= 2:
            write_exponents(axes, slopes, d)
    draw_fixed(panels[3], table[table.degree > 0])
    panels[3].set_title("(d) $d=1$, $t=32$; dotted: $d=2$, $t=8$")
    for axes in panels:
        log_axes(axes)
        axes.set_ylabel("worst error of an answer (RMS)")
        axes.set_xlabel("number of records $n$")
    columns = {
        "noise, series": [*(str(m) for m in CHOSEN), *(f"$K={K}$" for K in COLOURS)],
        "theory": [THEOREM, HYPOTHESIS],
        "moments in (d)": [str(m) + " " for m in FIXED_LOOKS],
    }
    shared_legend(figure, panels, columns)
    return figure


def draw_chosen(axes: Axes, table: pd.DataFrame) -> None:
    """All methods and K, with rates through the first points of two of them."""
    for method, marker in MARKERS.items():
        axes.plot(
            [],
            [],
            color="0.3",
            marker=marker,
            linestyle="-",
            label=str(method),
            markerfacecolor="0.3" if method is Method.WEIGHTED else "white",
        )
    for K, colour in COLOURS.items():
        axes.plot([], [], color=colour, label=f"$K={K}$")
    draw_theory(axes, [], [], "0.3", THEOREM)
    draw_theory(axes, [], [], "0.3", HYPOTHESIS, (1, 2))
    for method, K in itertools.product(MARKERS, COLOURS):
        rows = table[(table.method == method) & (table.smoothness == K)]
        if rows.empty:
            continue
        means = {n: mean for (n,), mean in pooled_by(rows, ["n"]).items()}
        look = Look(COLOURS[K], MARKERS[method], filled=method is Method.WEIGHTED)
        draw_measured(axes, [*means], [*means.values()], look, label="_")
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


def draw_fixed(axes: Axes, table: pd.DataFrame) -> None:
    """Post-processing of summaries of one degree."""
    for d, method in itertools.product(FIXED, FIXED_LOOKS):
        rows = table[(table.d == d) & (table.method == method)]
        if rows.empty:
            continue
        means = {n: mean for (n,), mean in pooled_by(rows, ["n"]).items()}
        look = FIXED_LOOKS[method]
        label = f"{method} " if d == 1 else "_"
        draw_measured(axes, [*means], [*means.values()], look, label)
        if d == 2:
            axes.lines[-1].set_linestyle(":")


def report(table: pd.DataFrame) -> Table:
    """Fitted exponents beside theory."""
    shown = Table("method", "d", "K", "fitted", "theory", title="Exponents of the worst error")
    for (method, d, K), slope in fitted(table).items():
        theory = THEORY.get(Method(method), exponent_of_theorem)(d, K)
        shown.add_row(str(method), str(d), str(K), str(slope), f"{-theory:.3f}")
    return shown


def grid(
    sizes: Mapping[int, tuple[int, ...]],
    small: tuple[int, ...],
    orders: tuple[int, ...],
    queries: int,
    draws: Callable[[int], int],
    programs: int,
) -> tuple[Config, ...]:
    """All methods over all n by number of variables, and post-processing at a fixed t."""
    chosen = [
        Config(d, K, method, 0, n, queries, draws(n))
        for d, numbers in sizes.items()
        for K in orders
        for method in CHOSEN
        for n in numbers
    ]
    fixed = [
        Config(
            d,
            1,
            method,
            FIXED[d],
            n,
            queries,
            programs if method is Method.SEMIDEFINITE else draws(n),
        )
        for d in FIXED
        for method in FIXED_LOOKS
        for n in small
        if not (d == 2 and method is Method.SEMIDEFINITE)
    ]
    return (*chosen, *fixed)


QUICK = Sweep(
    grid(
        {1: (10**3, 10**4), 2: (10**3, 10**4), 3: (10**3,)},
        small=(100,),
        orders=(1, 4),
        queries=40,
        draws=lambda n: 100 if n >= 10**3 else 300,
        programs=20,
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
        small=(100, 300, 1000, 3000, 10_000),
        orders=(1, 2, 4),
        queries=200,
        draws=lambda n: 8 if n > COMPARED else 100 if n >= 10**3 else 300,
        programs=60,
    ),
    trials=2,
    seed=0,
)
