"""The largest noise in the values of an online release against epsilon, and its exact law.

All queries are so far from the hypothesis that, with high probability, each causes an update. Then
every answer is a released value, and its error is Laplace noise. The scale of this noise is
computed from the equations of the formula sheet.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import geomdp as gd
from experiments.engine.cells import Row
from experiments.engine.checks import agrees_with_prediction, slopes_by, slopes_lie_within
from experiments.engine.claims import Claim
from experiments.engine.drawing import Look, draw_measured, draw_theory
from experiments.engine.statistics import MeanSquare, pooled_along
from experiments.interactive.online_gaps import (
    BETA,
    PRIVACY,
    QUERIES,
    run_at_gap,
    solved_accuracy,
    sparse_updates,
    value_scale,
)
from experiments.interactive.online_noise import POWERS

EXACT = "exact law of the noise"


def at_epsilon(
    n: int, sparsity: int, gap: float, epsilon: float, runs: int, rng: np.random.Generator
) -> Row:
    """The largest error of a run: measured mean square, and exact root mean square.

    The hypothesis errs by `gap` times alpha0 on every query (see `solved_accuracy`).
    """
    alpha = solved_accuracy(n, sparsity=sparsity, epsilon=epsilon)
    largest, promised = [], []
    for child in rng.spawn(runs):
        online: gd.OnlineConstruction[gd.workloads.SparseQuery] = gd.OnlineConstruction(
            gd.SparseMultiplicativeWeights(sparsity),
            n=n, queries=QUERIES, privacy=gd.ApproxDP(epsilon, PRIVACY.delta), beta=BETA, rng=child,
        )  # fmt: skip
        noise, left = run_at_gap(gap * alpha, sparsity, online)
        # A query that causes no update keeps its whole distance to the hypothesis as its error.
        largest.append(max([*noise, left]))
        promised.append(online.accuracy)
    scale = value_scale(n, sparse_updates(sparsity, alpha), epsilon)
    return {
        **MeanSquare.of(np.square(largest)).columns(),
        "guaranteed": promised[0],
        "predicted": scale * largest_modulus(QUERIES),
        "predicted_stderr": 0.0,
        "prediction": "exact",
    }


def largest_modulus(count: int) -> float:
    """Root mean square of the largest of `count` independent exponential variables of mean 1.

    The largest is a sum of independent exponentials of means 1, 1/2, ..., 1/count.
    """
    means = 1 / np.arange(1, count + 1)
    return math.sqrt(means.sum() ** 2 + (means**2).sum())


def claims(table: pd.DataFrame) -> list[Claim]:
    """Two-sided tests of the largest noise at every epsilon, and of its slope against epsilon."""
    slopes = slopes_by(table, ["sparsity"], "epsilon")
    return [
        agrees_with_prediction(
            f"the largest of {QUERIES} errors has the exact root mean square at every epsilon",
            "BR-OIC, SV-NUM",
            table,
            ["epsilon"],
        ),
        slopes_lie_within(
            "up to logarithms, the largest error of released values falls as epsilon^(-1/2)",
            "BR-T3.8",
            {(f"m = {m}",): slope for (m,), slope in slopes.items()},
            *POWERS,
        ),
    ]


def draw(axes: Axes, table: pd.DataFrame, look: Look, promise: str, label: str) -> None:
    """Largest errors against epsilon, with their exact law and the promised accuracy."""
    stated = table.groupby("epsilon")[["guaranteed", "predicted"]].first()
    draw_theory(axes, stated.index, stated.guaranteed, look.colour, promise)
    draw_theory(axes, stated.index, stated.predicted, "black", EXACT, (1, 1.5))
    draw_measured(axes, pooled_along(table, "epsilon"), look, label, joined=False)
