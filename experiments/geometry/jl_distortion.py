"""Random maps that keep distances up to an additive error, and what they do to Gaussian widths.

Paper: Nikolov 2022 (arXiv 2208.07410), Definition 8, Theorem 9 (Liaw, Mehrabian, Plan and
Vershynin), Lemma 12; formula sheet JL-D8, JL-T9, JL-L12.

Claim: the mean largest change of a distance within a set S under a random map A to R^m, E sup over
x, y in S of | ||A(x - y)|| - ||x - y|| |, falls as w(S) / sqrt(m), where w is the Gaussian width.
For Gaussian maps, the factor of w(S) / sqrt(m) is at most 4 + (0.71 + 1/(4 sqrt m)) diam(S) / w(S).
Rademacher maps (random signs) change distances about as little. A Gaussian map multiplies the width
by mu_m / sqrt(m) on average, where mu_m is the mean norm of a Gaussian vector in R^m.

Sets: answers to random sign queries, corners of a cube (1-way parities), vertices of a simplex (a
histogram), and a ball of diameter 1. For a ball, the largest change is the largest | s - 1 | over
the singular values s of A, where s = 0 counts if A takes some vectors to zero. This change is near
2 w(S) / sqrt(m). Once m reaches the dimension of the ball, the change is 0.35 to 0.5 times the
bound. For the finite sets, all pairs are compared.

Run time on one core: quick 4 s, full 1 minute.
"""

import enum
import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared.workloads import Kind, workload


class Points(ex.Curve):
    """Sets S, in the order of the legend."""

    SIGNS = "random signs", "C0", "o"
    CUBE = "cube corners", "C5", "s"
    SIMPLEX = "simplex vertices", "C2", "v"
    BALL = "ball", "C4", "D"


#: Dimension of the ball.
BALL_DIMENSION = 64
WORKLOADS = {
    Points.SIGNS: (Kind.SIGNS, 200, 256),
    Points.CUBE: (Kind.PARITIES_1, 8),
    Points.SIMPLEX: (Kind.HISTOGRAM, 256),
}


class Map(enum.StrEnum):
    """Random matrices with rows of covariance I/m."""

    GAUSSIAN = "Gaussian"
    RADEMACHER = "Rademacher"


@dataclass(frozen=True)
class Config:
    points: Points  # Set S
    kind: Map  # Kind of A
    rows: int  # Target dimension m
    maps: int  # Independent maps in one cell


@cache
def vertices(points: Points) -> ex.FloatArray:
    """The points of S as rows, shape (256, k): k is 200 for signs, 8 for the cube, else 256."""
    return gd.workloads.explicit_answers(workload(*WORKLOADS[points]))


@cache
def width(points: Points) -> float:
    """Gaussian width of S: exact for simplex and ball, else with a standard error below 0.1%."""
    if points is Points.BALL:
        return gd.gaussian_width(gd.bodies.Ball(BALL_DIMENSION, 0.5)).value
    return gd.gaussian_width(gd.bodies.VPolytope(vertices(points)), rng=0, samples=20_000).value


def distances(rows: ex.FloatArray) -> ex.FloatArray:
    """All distances between two of the N `rows`, shape (N, N)."""
    products = rows @ rows.T
    squares = np.diag(products)
    return np.sqrt(np.maximum(squares[:, None] + squares - 2 * products, 0.0))


def change_and_image(
    config: Config, A: ex.FloatArray, rng: np.random.Generator
) -> tuple[float, float]:
    """Largest change of a distance, and an unbiased estimate of the width of the image."""
    if config.points is Points.BALL:
        values = np.linalg.svd(A, compute_uv=False)
        # With fewer rows than columns, A takes some vectors to zero.
        smallest = values[-1] if len(A) >= A.shape[1] else 0.0
        change = max(values[0] - 1, 1 - smallest)
        return float(change), float(np.linalg.norm(A.T @ rng.standard_normal(config.rows)) / 2)
    S = vertices(config.points)
    image = S @ A.T
    change = np.abs(distances(image) - distances_of(config.points)).max()
    return float(change), float(np.ptp(image @ rng.standard_normal(config.rows)) / 2)


@cache
def distances_of(points: Points) -> ex.FloatArray:
    """All distances between two points of S."""
    return distances(vertices(points))


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean largest change of a distance, and mean width of the image, over the maps."""
    ball, draw = config.points is Points.BALL, DRAW[config.kind]
    columns = BALL_DIMENSION if ball else vertices(config.points).shape[1]
    changes, images = np.empty(config.maps), np.empty(config.maps)
    for i in range(config.maps):
        A = draw(config.rows, columns, rng)
        changes[i], images[i] = change_and_image(config, A, rng)
    return {
        "width": width(config.points),
        "diameter": 1.0 if ball else float(distances_of(config.points).max()),
        "count": config.maps,
        "change": float(changes.mean()),
        "change_variance": float(changes.var(ddof=1)),
        "image_width": float(images.mean()),
        "image_width_variance": float(images.var(ddof=1)),
    }


DRAW = {Map.GAUSSIAN: gd.jl_map, Map.RADEMACHER: gd.geometry.RademacherMap().draw}


def bound(table: pd.DataFrame) -> pd.Series:
    """The explicit bound of Theorem 9 for Gaussian maps."""
    root = np.sqrt(table.rows)
    return (4 * table.width + (0.7072 + 1 / (4 * root)) * table.diameter) / root


def reach(table: pd.DataFrame, column: str, level: float) -> pd.Series:
    """Half-length of the two-sided confidence interval for the mean of a column, at `level`."""
    errors = np.sqrt(table[f"{column}_variance"] / table["count"])
    factors = [ex.quantile(level / 2, int(count)) for count in table["count"]]
    return errors * factors


def claims(table: pd.DataFrame) -> ex.Claims:
    level = ex.LEVEL / len(table)
    low = table.change - reach(table, "change", level)
    shares = table.change / bound(table)
    finite, balls = table.points != Points.BALL, table.points == Points.BALL
    constants = (np.sqrt(table.rows) * table.change / table.width)[finite]
    needed = shares[balls & (table.rows >= BALL_DIMENSION)]
    gaussian = table[table.kind == Map.GAUSSIAN]
    mean_norms = [gd.geometry.mean_gaussian_norm(int(m)) / math.sqrt(m) for m in gaussian.rows]
    expected = gaussian.width * np.array(mean_norms)
    off = (gaussian.image_width - expected) / reach(gaussian, "image_width", level)
    name = (
        "for both kinds of map, the mean largest change of a distance is below the bound for "
        "Gaussian maps"
    )
    measured = f"{len(table)} points, at most {shares.max():.3f} times the bound"
    yield ex.Claim(name, ex.at_most(low, bound(table)), measured, "at most 1", "JL-T9")
    name = "for a ball, the largest change of a distance is 0.35 to 0.5 times the bound"
    measured = f"{needed.min():.3f} to {needed.max():.3f} times the bound for m >= {BALL_DIMENSION}"
    theory = "0.35 to 0.5: the change is near 2 w(S) / sqrt(m), half of the bound's first term"
    yield ex.Claim(name, ex.between(needed, 0.35, 0.5), measured, theory, "JL-T9")
    name = (
        "for finite sets and both kinds of map, the largest change of a distance is "
        "w(S) / sqrt(m) up to a factor 2"
    )
    verdict = ex.between(np.log(constants), -math.log(2), math.log(2))
    measured = f"sqrt(m) change / w(S) between {constants.min():.2f} and {constants.max():.2f}"
    yield ex.Claim(name, verdict, measured, "in [0.5, 2]", "JL-T9")
    name = "a Gaussian map changes the expected width from w to mu_m w / sqrt(m)"
    measured = (
        f"{len(gaussian)} points, off by at most {off.abs().max():.2f} of the interval's "
        "half-length"
    )
    theory = f"within the interval at level {ex.LEVEL:g}"
    yield ex.Claim(name, ex.at_most(off.abs(), 1), measured, theory, "JL-L12")


LOOKS = Points.looks()
BOUND = "bound"


def plot(table: pd.DataFrame) -> ex.Figure:
    titles = ["change of a distance", "width of the image"]
    heights = [r"largest change $/\,w(S)$", r"$w(AS)\,/\,w(S)$"]
    figure, (change, image) = ex.panels((7.2, 3.6), titles, "target dimension $m$", heights)
    for (points, kind), rows in table.groupby(["points", "kind"], sort=False):
        look, mine = LOOKS[Points(points)], rows.sort_values("rows")
        filled = kind == Map.GAUSSIAN
        look, line = replace(look, filled=filled), "-" if filled else "none"
        for axes, column in ((change, "change"), (image, "image_width")):
            values = mine[column] / mine.width
            spread = reach(mine, column, ex.BAND_LEVEL) / mine.width
            label = points if filled else "_"
            band = values - spread, values + spread
            ex.draw_points(axes, mine.rows, values, look, label, line, band)
        if filled:
            name = BOUND if points == Points.SIGNS else "_"
            ex.draw_theory(change, mine.rows, bound(mine) / mine.width, ex.GREY, name)
    m = np.unique(table.rows)
    norms = [gd.geometry.mean_gaussian_norm(int(each)) / math.sqrt(each) for each in m]
    ex.draw_theory(image, m, norms, ex.GREY, "_")
    ex.log_axes(change)
    ex.log_axes(image, "x")
    ex.label_curves(change)
    result = r"A random map to m dimensions changes distances by about w(S) / $\mathbf{\sqrt{m}}$"
    settings = "Filled: Gaussian maps; open: random signs. Dashed: Theorem 9; in (b) the mean norm."
    return ex.headline(figure, result, settings)


QUICK = ex.Sweep(ex.product(Config, Points, Map, (4, 16, 64, 256), 60))
FULL = ex.Sweep(ex.product(Config, Points, Map, (2, 4, 8, 16, 32, 64, 128, 256, 512), 1000))
