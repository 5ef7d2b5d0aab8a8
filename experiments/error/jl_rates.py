r"""The JL mechanism with the noise of its theorem: error against n, rows, epsilon and dimension.

Paper: Nikolov 2022, "Private query release via the Johnson-Lindenstrauss transform"
(arXiv 2208.07410), Algorithm 1, Theorems 2 and 21, Lemma 16; formula sheet JL-A1, JL-D8, JL-T2,
JL-L13, JL-L16, JL-T21.

Claims, for worst-case data that depend on the public map: with m = eps n / 2 rows the error falls
as (eps n)^(-1/2), in n and in eps, and not as (eps n)^(-1/3). The error does not grow as k^(1/2)
with the dimension k; the measurements agree with no growth at all. With more rows the error first
falls, because the map distorts less. From about eps n / 2 rows on, the error rises, because there
is more noise. The error stays below w (c1 / m^(1/2) + c2 m^(1/2) / (eps n)), where w is the
Gaussian width of the body and the constants are explicit. The error is at least 1/7 of this bound,
or 1/7 of the body's diameter 2 if the bound is larger than 2.
The number of records used is 1 to 16 times the number that Theorem 2 with C = 1 asks for at the
measured error. Sign maps and sparse maps err as Gaussian maps do, up to a factor 1.25 on average.
At the largest k, the error is larger without a map. With ball noise, the JL mechanism uses fewer
rows and errs more.

The body is a needle: an ellipsoid with one semi-axis of length 1 and all others of length k^(-1/2).
Its width is about 1.35, at most 2^(1/2). The images of the body under the maps are ellipsoids, so
all noise has an exact sampler. Errors are in Euclidean norm, not divided by k^(1/2). The constant
c2 is computed from the noise and is about 2. For Gaussian maps, c1 w = 2 w + 0.61 diam(K).

Run time on one core: quick 9 s, full 7 minutes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import geomdp as gd
from experiments.engine.cells import Row, Sweep
from experiments.engine.claims import Claim
from experiments.engine.drawing import (
    Look,
    draw_measured,
    draw_theory,
    label_ticks,
    log_axes,
    shared_legend,
)
from experiments.engine.statistics import MeanSquare, pooled_by
from experiments.error.needle.claims import (
    NOISE_TO_DISTORTION,
    Panel,
    additive,
    alike,
    better,
    bounded,
    noisy,
    optimum,
    rates,
    records,
)
from experiments.error.needle.needle import (
    LAWS,
    Route,
    mechanism,
    noise_factor,
    squared_errors,
    width,
)
from geomdp.bounds.upper import jl_mechanism_error, jl_mechanism_rows

#: 0.61 diam(K), with diameter 2: c1 is (2 w + DRIFT) / w (JL-L13).
DRIFT = 0.61 * 2


@dataclass(frozen=True)
class Config:
    """One point of the figure."""

    panel: Panel  # Panel that shows the point
    route: Route  # Mechanism
    k: int  # Number of queries and dimension of the body
    n: int  # Number of records
    epsilon: float  # Parameter of pure differential privacy
    rows: int  # Rows of the map; 0 if there is no map
    maps: int  # Number of independent maps in one trial; without a map, number of releases


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """Mean squared error over the maps for the worse of two data sets, and the bound."""
    squares = np.empty((config.maps, 2))
    factors = []
    M = mechanism(config.route, config.k, config.n, config.epsilon, config.rows, rng)
    for i, row in enumerate(squares):
        if i > 0 and config.rows > 0:
            M = mechanism(config.route, config.k, config.n, config.epsilon, config.rows, rng)
        row[:] = squared_errors(M, config.k, rng)
        if isinstance(M, gd.mechanisms.JL):
            factors.append(noise_factor(M, config.k, config.epsilon))
    found: Row = dict(MeanSquare.of(squares[:, squares.mean(axis=0).argmax()]).columns())
    w = width(config.k)
    if config.route in LAWS:
        bound = jl_mechanism_error(
            w,
            1,
            config.rows,
            n=config.n,
            epsilon=config.epsilon,
            distortion=2 + DRIFT / w,
            noise=float(np.mean(factors)),
        )
        found |= {"bound": bound, "noise_factor": float(np.mean(factors))}
    return [{"bound": None, "noise_factor": None, **found}]


def claims(table: pd.DataFrame) -> list[Claim]:
    """Claims on rates, on the best number of rows, on the bound, and on the other mechanisms."""
    mapped = table[table.route.isin(LAWS)]
    return [
        *rates(mapped),
        optimum(mapped[(mapped.panel == Panel.ROWS) & (mapped.route == Route.GAUSSIAN)]),
        bounded(mapped[mapped.route == Route.GAUSSIAN]),
        records(mapped[mapped.route == Route.GAUSSIAN]),
        noisy(mapped),
        alike(mapped[mapped.panel != Panel.DIMENSION]),
        better(table[table.panel == Panel.DIMENSION]),
        additive(table[(table.panel == Panel.DIMENSION) & (table.route == Route.ADDITIVE)]),
    ]


LOOKS = {
    Route.GAUSSIAN: Look("C0", "o"),
    Route.RADEMACHER: Look("C1", "s"),
    Route.SPARSE: Look("C2", "v", filled=False),
    Route.BALL: Look("C5", "^"),
    Route.UNMAPPED: Look("C3", "D"),
    Route.ADDITIVE: Look("C4", "X"),
}
BOUND = r"bound: $w\,(c_1/\sqrt{m}+c_2\sqrt{m}/(\varepsilon n))$"
OPTIMUM = r"$m=\varepsilon n/2$"
LABELS = {
    Panel.RECORDS: "records $n$",
    Panel.ROWS: "rows of the map $m$",
    Panel.EPSILON: r"$\varepsilon$",
    Panel.DIMENSION: "queries $k$",
}


def plot(table: pd.DataFrame) -> Figure:
    """Errors against n, rows, epsilon and dimension."""
    figure = Figure(figsize=(7.2, 6.4))
    panels = figure.subplots(2, 2)
    for axes, panel, letter in zip(panels.flat, Panel, "abcd", strict=True):
        rows = table[table.panel == panel]
        draw(axes, rows, panel)
        axes.set(xlabel=LABELS[panel], title=f"({letter}) {fixed(rows, panel)}")
    for axes in panels[:, 0]:
        axes.set_ylabel(r"error $\Vert M(X)-Q(X)\Vert_2$ (RMS)")
    columns = {"mechanism": [*LOOKS][:3], " ": [*LOOKS][3:], "theory": [BOUND, OPTIMUM]}
    shared_legend(figure, panels.flat, columns)
    return figure


def fixed(rows: pd.DataFrame, panel: Panel) -> str:
    """Text with the parameters that are fixed in a panel."""
    first = rows[rows.route == Route.GAUSSIAN].iloc[0]
    parts = {
        "k": f"$k={first.k}$",
        "n": f"$n={first.n}$",
        "epsilon": rf"$\varepsilon={first.epsilon:g}$",
    }
    return ", ".join(text for name, text in parts.items() if name != panel)


def draw(axes: Axes, rows: pd.DataFrame, panel: Panel) -> None:
    """All mechanisms of a panel, with the bound for Gaussian maps."""
    gaussian = rows[rows.route == Route.GAUSSIAN].sort_values(panel)
    draw_theory(axes, gaussian[panel], gaussian.bound, LOOKS[Route.GAUSSIAN].colour, BOUND)
    for route, look in LOOKS.items():
        mine = rows[rows.route == route]
        if mine.empty:
            continue
        means = {position: mean for (position,), mean in pooled_by(mine, [panel]).items()}
        if panel is Panel.ROWS and route is Route.UNMAPPED:
            (mean,) = means.values()
            means = dict.fromkeys((gaussian.rows.min(), gaussian.rows.max()), mean)
        draw_measured(axes, means, look, route)
    log_axes(axes)
    if panel is Panel.ROWS:
        best = float((gaussian.epsilon * gaussian.n).iloc[0]) / NOISE_TO_DISTORTION
        axes.axvline(best, color="black", linestyle=(0, (1, 2)), linewidth=1.1, label=OPTIMUM)
    else:
        label_ticks(axes, sorted(rows[panel].unique()))


@dataclass(frozen=True)
class Size:
    """The sizes of the figure at one preset."""

    k: int  # Number of queries in panels (a) to (c)
    records: Sequence[int]  # Numbers of records in panel (a)
    rows: Sequence[int]  # Numbers of rows in panel (b)
    epsilons: Sequence[float]  # Values of epsilon in panel (c)
    dimensions: Sequence[int]  # Numbers of queries in panel (d)
    middle: int  # Number of records in panels (b) to (d)
    maps: int  # Number of maps for each point that `many` does not cover
    many: int  # Number of Gaussian maps for each point of panels (a), (c) and (d)


def grid(size: Size) -> tuple[Config, ...]:
    """The points of all panels."""

    def point(panel: Panel, route: Route, k: int, n: int, epsilon: float) -> Config:
        if route is Route.BALL:
            rows = math.ceil(math.pow(epsilon * n, 2 / 3))
        elif route in LAWS:
            rows = jl_mechanism_rows(k - 1, n=n, epsilon=epsilon, noise=NOISE_TO_DISTORTION)
        else:
            rows = 0
        # Releases without a map are cheap, so there are four times as many.
        few = size.maps if rows > 0 else 4 * size.maps
        maps = size.many if route is Route.GAUSSIAN else few
        return Config(panel, route, k, n, epsilon, rows, maps)

    k, n, laws = size.k, size.middle, [*LAWS]
    beside = [Route.GAUSSIAN, Route.BALL, Route.UNMAPPED]
    return (
        *(point(Panel.RECORDS, route, k, each, 1.0) for route in beside for each in size.records),
        *(
            Config(Panel.ROWS, route, k, n, 1.0, rows, size.maps)
            for route in laws
            for rows in size.rows
        ),
        point(Panel.ROWS, Route.UNMAPPED, k, n, 1.0),
        *(point(Panel.EPSILON, Route.GAUSSIAN, k, n, each) for each in size.epsilons),
        *(
            point(Panel.DIMENSION, route, each, n, 1.0)
            for route in (Route.GAUSSIAN, Route.UNMAPPED, Route.ADDITIVE)
            for each in size.dimensions
        ),
    )


QUICK = Sweep(
    grid(
        Size(
            k=64,
            records=(16, 48),
            rows=(2, 16, 63),
            epsilons=(0.75, 2.25),
            dimensions=(32, 128),
            middle=24,
            maps=20,
            many=60,
        )
    ),
    trials=1,
    seed=0,
)
FULL = Sweep(
    grid(
        Size(
            k=256,
            records=(16, 32, 64, 125, 250),
            rows=(2, 6, 16, 32, 80, 250),
            epsilons=(0.25, 0.5, 2.0, 4.0),
            dimensions=(32, 64, 128, 256),
            middle=64,
            maps=40,
            many=160,
        )
    ),
    trials=1,
    seed=0,
)
