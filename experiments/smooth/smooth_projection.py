"""Smooth queries: what post-processing the noisy moments saves.

Paper: Wang, Fan, Zhang and Wang 2013, "Efficient algorithm for privately releasing smooth queries";
formula sheet SM-A1, SM-A2. Post-processing is not in the paper.

Summaries of a fixed number of moments with uniform Laplace noise, epsilon = 1: t = 32 in one
variable and t = 8 in two. Answers are taken from the noisy moments as they are, with shrunk
coefficients, and after moving the moments to the nearest moments of a distribution on the cube: by
the semidefinite moment characterisation (d = 1) and over the hull of a grid's moments. Queries are
kernel mixtures in C^1_1; the figure shows the largest error over them. Records lie at ten random
places, drawn anew for each release, whose moments are on the boundary of the body.

Claims: no release is further from the exact moments, in the norm of the noise, after the
semidefinite projection; the worst error of an answer falls, and falls most with few records.

Run time on one core: quick 3 s, full 1 minute.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

import geomdp as gd
from experiments.engine import margins
from experiments.engine.cells import Row, Sweep
from experiments.engine.checks import is_below
from experiments.engine.claims import Claim
from experiments.engine.drawing import Look, draw_measured, log_axes, shared_legend
from experiments.engine.statistics import MeanSquare, pooled_along, pooled_by
from experiments.shared.smooth_problems import (
    kernel_family,
    random_places,
    records_at,
    shares,
    stacked,
    true_answers,
)
from geomdp.workloads.smooth import Filter, Shrinkage, Truncation, approximate_many

#: t, and grid angles in each variable, by number of variables.
DEGREES = {1: 32, 2: 8}
GRID = {1: 256, 2: 33}
SMOOTHNESS, QUERIES = 1, 100
#: Largest n at which the gain exceeds what 300 releases leave to chance.
NOISY = 300


class Method(enum.StrEnum):
    """What answers are taken from, in the order of the legend."""

    NOISY = "noisy moments"
    SHRUNK = "noisy moments, shrunk coefficients"
    SEMIDEFINITE = "nearest moments, semidefinite"
    ON_GRID = "nearest moments, on a grid"


@dataclass(frozen=True)
class Config:
    """One point of the figure."""

    d: int  # Number of variables
    method: Method  # Post-processing
    n: int  # Number of records
    draws: int  # Releases in one cell, each of records at new places


@cache
def mechanism(d: int, n: int) -> gd.SmoothSummary:
    """The summary of a fixed number of moments."""
    return gd.SmoothSummary(
        d,
        n=n,
        smoothness=SMOOTHNESS,
        privacy=gd.PureDP(1.0),
        degree=DEGREES[d],
        noise=gd.mechanisms.UniformLaplace(),
    )


def post_processing(
    config: Config,
) -> Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]:
    """The map of noisy moments (t,) * d to those that answers are taken from."""
    deviations = mechanism(config.d, config.n).noise_std
    if config.method is Method.SEMIDEFINITE:
        return gd.mechanisms.MomentProjection.semidefinite(deviations)
    if config.method is Method.ON_GRID:
        return gd.mechanisms.MomentProjection.on_grid(deviations, GRID[config.d])
    return lambda moments: moments


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """Mean square of the worst error, and the largest ratio of distances after to before."""
    M, process = mechanism(config.d, config.n), post_processing(config)
    family = kernel_family(config.d, SMOOTHNESS, QUERIES)
    shrunk = config.method is Method.SHRUNK
    chosen: Filter = Shrinkage(M.noise_std, config.n) if shrunk else Truncation()
    matrix = stacked(approximate_many(family, M.degree, config.d, chosen))
    places = random_places(config.d, config.draws, rng)
    truths = true_answers(family, places, config.n)
    errors, ratios = np.empty(truths.shape), np.empty(config.draws)
    for i, (here, truth) in enumerate(zip(places, truths, strict=True)):
        noisy = M.release(records_at(here, config.n), rng=rng).moments
        moments = process(noisy)
        exact = M.workload.table(shares(config.n) @ M.workload.evaluate(here))
        # The noise is uniform: its norm is the Euclidean one.
        ratios[i] = np.linalg.norm(moments - exact) / np.linalg.norm(noisy - exact)
        errors[i] = np.abs(matrix @ moments.ravel() - truth)
    return [
        {
            **MeanSquare.of(errors.max(axis=1) ** 2).columns(),
            "largest_ratio": float(ratios.max()),
            "mean_ratio": float(ratios.mean()),
        }
    ]


def claims(table: pd.DataFrame) -> list[Claim]:
    """Distances of moments, and worst errors of answers, after against before."""
    return [never_further(table), worst_error_falls(table)]


#: Largest mean share of the distance that is left.
NEARER = 0.9


def never_further(table: pd.DataFrame) -> Claim:
    """Projection on a convex body that holds the exact moments."""
    rows = table[table.method == Method.SEMIDEFINITE]
    ratio = float(rows.largest_ratio.max())
    means = rows.groupby("n").mean_ratio.mean()
    shown = ", ".join(f"{mean:.2f} at n = {n}" for n, mean in means.items())
    return Claim(
        "the nearest true moments are never further from the exact ones, and a tenth nearer",
        ratio <= 1 and bool(means.max() <= NEARER),
        f"at most {ratio:.3f} of the distance of the noisy ones, on average {shown}",
        f"at most 1, on average at most {NEARER:g}",
        "projection on a convex set",
        used=margins.share(means, NEARER),
    )


def worst_error_falls(table: pd.DataFrame) -> Claim:
    """Ratios of worst errors after to before, below 1 beyond chance."""
    small = table[table.n <= NOISY]
    before = pooled_by(small[small.method == Method.NOISY], ["d", "n"])
    after = pooled_by(small[small.method == Method.ON_GRID], ["d", "n"])
    check = is_below("", "", after, before)
    ratios = "; ".join(
        f"d={d}, n={n}: {mean.root / before[d, n].root:.2f}" for (d, n), mean in after.items()
    )
    return Claim(
        f"the worst error of an answer falls by moving to the nearest moments, n <= {NOISY}",
        check.passed,
        f"{ratios} of the error before",
        "below 1",
        "measured",
        used=check.used,
    )


LOOKS = {
    Method.NOISY: Look("C1", "o", filled=False),
    Method.SHRUNK: Look("C4", "v"),
    Method.SEMIDEFINITE: Look("C3", "D"),
    Method.ON_GRID: Look("C0", "X"),
}


def plot(table: pd.DataFrame) -> Figure:
    """Worst error against n in one and in two variables."""
    figure = Figure(figsize=(7.2, 4.0))
    panels = figure.subplots(1, 2)
    for d, axes, letter in zip(DEGREES, panels, "ab", strict=True):
        axes.set_title(f"({letter}) $d={d}$, $t={DEGREES[d]}$")
        axes.set_xlabel("number of records $n$")
        log_axes(axes)
    panels[0].set_ylabel("worst error of an answer (RMS)")
    for (d, axes), (method, look) in itertools.product(
        zip(DEGREES, panels, strict=True), LOOKS.items()
    ):
        rows = table[(table.d == d) & (table.method == method)]
        if not rows.empty:
            draw_measured(axes, pooled_along(rows, "n"), look, method)
    shared_legend(figure, panels, {"answers from": [str(method) for method in LOOKS]})
    return figure


def grid(numbers: tuple[int, ...], draws: int, programs: int) -> tuple[Config, ...]:
    """All methods at all n; fewer releases where each solves a semidefinite program."""
    return tuple(
        Config(d, method, n, programs if method is Method.SEMIDEFINITE else draws)
        for d, method, n in itertools.product(DEGREES, Method, numbers)
        if not (d == 2 and method is Method.SEMIDEFINITE)
    )


QUICK = Sweep(grid((100,), draws=300, programs=10), trials=1, seed=0)
FULL = Sweep(grid((100, 300, 1000, 3000, 10_000), draws=300, programs=60), trials=1, seed=0)
