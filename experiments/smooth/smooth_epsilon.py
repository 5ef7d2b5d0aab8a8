"""Smooth queries: worst error against epsilon, in one variable.

The degree t of the theorem does not depend on epsilon. Therefore the largest noise in an answer
falls as 1 / epsilon exactly, and for large epsilon only the error of the approximation is left
(DISC-17). For weighted noise, t is chosen by the predicted error, which depends on the noise, and
the noise depends on n epsilon alone. So n records at epsilon give the same errors as n / 10 records
at 10 epsilon.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from experiments.engine import margins
from experiments.engine.cells import Row
from experiments.engine.checks import slopes_are, slopes_by
from experiments.engine.claims import Claim
from experiments.engine.drawing import Look, draw_measured, draw_theory, log_axes
from experiments.engine.statistics import LEVEL, MeanSquare, pooled_along, pooled_by, quantile
from experiments.shared.smooth_problems import (
    kernel_family,
    random_places,
    records_at,
    shares,
    stacked,
    true_answers,
)
from experiments.smooth.smooth_releases import Config, Method, Panel, coefficients, mechanism

#: Number of records of the curves.
RECORDS = 10**4
#: Largest half width of the interval of the slope. Slopes of -1/2, 0 and -2 are far outside.
REACH = 0.1
NOISE = r"$1/\varepsilon$: uniform noise alone"


def errors_and_noise(config: Config, rng: np.random.Generator) -> Row:
    """Mean squares of the worst error over the family, and of the largest noise in an answer."""
    M, matrix = mechanism(config), stacked(coefficients(config))
    family = kernel_family(config.d, config.smoothness, config.queries)
    places = random_places(config.d, config.draws, rng)
    truths = true_answers(family, places, config.n)
    errors, noise = np.empty(truths.shape), np.empty(truths.shape)
    for i, here in enumerate(places):
        answers = matrix @ M.release(records_at(here, config.n), rng=rng).moments.ravel()
        errors[i] = answers - truths[i]
        noise[i] = answers - matrix @ exact_moments(here, M.degree, config.n)
    worst = MeanSquare.of(np.abs(noise).max(axis=1) ** 2)
    return {
        **MeanSquare.of(np.abs(errors).max(axis=1) ** 2).columns(),
        "noise_mean_square": worst.value,
        "noise_stderr": worst.stderr,
        "chosen_degree": M.degree,
    }


def exact_moments(places: npt.NDArray[np.float64], degree: int, n: int) -> npt.NDArray[np.float64]:
    """Means (t,) of cos(m arccos x) for m < t = `degree`, over n records x at `places` (10, 1)."""
    angles = np.arccos(places[:, 0])
    return np.asarray(shares(n) @ np.cos(angles[:, None] * np.arange(degree)))


def claims(table: pd.DataFrame) -> list[Claim]:
    """Two-sided claims on the noise against epsilon, and on the error at equal n epsilon."""
    return [falls(table[table.method == Method.TRUNCATED]), depends_on_product(table)]


def falls(table: pd.DataFrame) -> Claim:
    """Two-sided: the log-log slope of the noise in epsilon is -1, because t stays the same."""
    noise = table.assign(mean_square=table.noise_mean_square, mean_square_stderr=table.noise_stderr)
    return slopes_are(
        "uniform noise: the largest noise in an answer falls as 1 / epsilon",
        "SM-T3.1, DISC-17",
        slopes_by(noise, ["smoothness"], "epsilon"),
        -1.0,
        REACH,
    )


def depends_on_product(table: pd.DataFrame) -> Claim:
    """Two-sided: mean squares at equal n epsilon differ by no more than chance explains."""
    table = table[table.method == Method.WEIGHTED]
    table = table.assign(product=(table.n * table.epsilon).round())
    pairs = [
        [*pooled_by(rows, ["n"]).values()]
        for _, rows in table.groupby(["smoothness", "product"])
        if rows.n.nunique() == 2
    ]
    scores = [
        abs(first.value - second.value) / math.hypot(first.stderr, second.stderr)
        for first, second in pairs
    ]
    ratios = [first.root / second.root for first, second in pairs]
    reach = quantile(LEVEL / (2 * len(pairs)), min(mean.count for pair in pairs for mean in pair))
    return Claim(
        "weighted noise: the error depends on n epsilon alone",
        max(scores) <= reach,
        f"{len(pairs)} pairs, ratios {min(ratios):.3f} to {max(ratios):.3f}, furthest off by "
        f"{max(scores):.1f} standard errors",
        f"ratio 1, within {reach:.1f} standard errors",
        "SM-X1",
        used=margins.share(scores, reach),
    )


def draw(axes: Axes, table: pd.DataFrame, looks: dict[Method, Look]) -> None:
    """Draw the worst error against epsilon, and a line proportional to 1 / epsilon.

    The line starts at the measured uniform noise for the least epsilon.
    """
    table = table[table.n == RECORDS]
    for method in (Method.TRUNCATED, Method.WEIGHTED):
        rows = table[table.method == method]
        if not rows.empty:
            draw_measured(axes, pooled_along(rows, "epsilon"), looks[method], str(method))
    uniform = table[table.method == Method.TRUNCATED].sort_values("epsilon")
    if not uniform.empty:
        first = uniform.iloc[0]
        line = math.sqrt(first.noise_mean_square) * first.epsilon / uniform.epsilon
        draw_theory(axes, uniform.epsilon, line, "0.4", NOISE, (5, 2, 1, 2))
    log_axes(axes)
    axes.set_xlabel(r"$\varepsilon$")


def grid(
    epsilons: tuple[float, ...], orders: tuple[int, ...], queries: int, draws: int
) -> tuple[Config, ...]:
    """Uniform and weighted noise with truncation; weighted noise also at n / 10 and 10 epsilon."""
    return tuple(
        Config(1, K, method, n, queries, draws, epsilon, Panel.EPSILON)
        for K in orders
        for method, n, scale in (
            (Method.TRUNCATED, RECORDS, 1.0),
            (Method.WEIGHTED, RECORDS, 1.0),
            (Method.WEIGHTED, RECORDS // 10, 10.0),
        )
        for epsilon in (each * scale for each in epsilons)
    )
