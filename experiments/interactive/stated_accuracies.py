r"""Accuracies that theorems state for interactive release, and those that mechanisms promise.

Papers: Blum-Roth 2011, Theorem 3.3; Roth's lecture on iterative construction, Theorems 7 and 8 with
corrected constants; formula sheet BR-T3.3, BR-OIC, IC-T5.

Claims: the iterative construction promises the accuracy alpha that the corrected Theorems 7 and 8
state, or an alpha up to 1% smaller, because the number of updates is rounded down. The online
construction promises the accuracy 3 alpha0, where alpha0 is the least target accuracy that BR-OIC
proves. This promise is a fifth to a quarter of the alpha of Theorem 3.3 with its constant 3000. The
stated accuracies fall as theory says: as n^(-1/3) for pure privacy and as n^(-1/2) for approximate
privacy, up to the logarithm of the number of updates.

Nothing is random: all numbers are solutions of equations. Run time on one core: 1 s.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import geomdp as gd
from experiments.engine.cells import Row, Sweep
from experiments.engine.claims import Claim
from experiments.engine.drawing import Look, draw_points, draw_theory, log_axes, shared_legend
from geomdp.bounds.upper import iterative_accuracy, online_accuracy

BITS, BETA, QUERIES = 5, 0.05, 100
PURE, APPROX = gd.PureDP(1.0), gd.ApproxDP(1.0, 1e-6)


class Theorem(enum.StrEnum):
    """Statements, one panel each."""

    SEVEN = "Theorem 7"
    EIGHT = "Theorem 8"
    ONLINE = "Theorem 3.3"


@dataclass(frozen=True)
class Config:
    """One point of the figure."""

    theorem: Theorem  # Which statement
    n: int  # Number of records


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """The accuracy that the theorem states, and the accuracy that the mechanism promises."""
    del rng
    rule = gd.mechanisms.MultiplicativeWeights(1 << BITS)
    if config.theorem is Theorem.ONLINE:
        online: gd.OnlineConstruction[gd.workloads.DenseQuery] = gd.OnlineConstruction(
            rule, n=config.n, queries=QUERIES, privacy=APPROX, beta=BETA, rng=0
        )
        stated = online_accuracy(rule.bound, n=config.n, queries=QUERIES, privacy=APPROX, beta=BETA)
        return [{"stated": stated, "promised": online.accuracy}]
    privacy = PURE if config.theorem is Theorem.SEVEN else APPROX
    built = gd.IterativeConstruction(
        rule, gd.mechanisms.AllParities(BITS), n=config.n, privacy=privacy, beta=BETA
    )
    stated = iterative_accuracy(
        rule.bound, n=config.n, queries=1 << BITS, privacy=privacy, beta=BETA
    )
    return [{"stated": stated, "promised": built.accuracy}]


@dataclass(frozen=True)
class Expected:
    """The expected slope and ratio for one statement."""

    power: float  # Power of n with which the accuracy falls
    drift: float  # Largest change of the slope by the logarithm of the number of updates
    low: float  # Least ratio of promised to stated accuracy
    high: float  # Largest ratio of promised to stated accuracy
    id: str  # Ids in the formula sheet


EXPECTED = {
    Theorem.SEVEN: Expected(-1 / 3, 0.06, 0.99, 1 + 1e-9, "IC-T5"),
    Theorem.EIGHT: Expected(-1 / 2, 0.06, 0.99, 1 + 1e-9, "IC-T5"),
    Theorem.ONLINE: Expected(-1 / 2, 0.01, 0.2, 0.25, "BR-T3.3, BR-OIC"),
}


def claims(table: pd.DataFrame) -> list[Claim]:
    """Ratios of promised to stated accuracies, and slopes."""
    found = []
    for theorem, expected in EXPECTED.items():
        rows = table[table.theorem == theorem]
        ratio = rows.promised / rows.stated
        slope = float(np.polyfit(np.log(rows.n), np.log(rows.stated), 1)[0])
        found += [
            Claim(
                f"{theorem}: the mechanism promises {expected.low:.3g} to {expected.high:.3g} "
                "times the stated accuracy",
                bool(ratio.between(expected.low, expected.high).all()),
                f"{ratio.min():.4f} to {ratio.max():.4f} times, at {len(rows)} values of n",
                f"{expected.low:.3g} to {expected.high:.3g}",
                expected.id,
                used=float(ratio.max() / expected.high),
            ),
            Claim(
                f"{theorem}: up to a logarithm, the stated accuracy falls as "
                f"n^({expected.power:.3g})",
                bool(0 <= slope - expected.power + 1e-9 <= expected.drift),
                f"slope {slope:.4f}",
                f"{expected.power:.3f} to {expected.power + expected.drift:.3f}",
                expected.id,
                used=abs(slope - expected.power) / expected.drift,
            ),
        ]
    return found


TITLES = {
    Theorem.SEVEN: "(a) Theorem 7:\n1-DP",
    Theorem.EIGHT: "(b) Theorem 8:\n(1, 1e-6)-DP",
    Theorem.ONLINE: "(c) Theorem 3.3:\n(1, 1e-6)-DP",
}
LOOK = Look("C0", "o")
STATED, PROMISED = "stated by the theorem", "promised by the mechanism"


def plot(table: pd.DataFrame) -> Figure:
    """Accuracies against n, one panel for each theorem."""
    figure = Figure(figsize=(7.2, 3.4))
    panels = figure.subplots(1, 3)
    for axes, theorem in zip(panels, TITLES, strict=True):
        rows = table[table.theorem == theorem].sort_values("n")
        draw_theory(axes, rows.n, rows.stated, "C3", STATED)
        draw_points(axes, rows.n, rows.promised, LOOK, PROMISED, "none")
        log_axes(axes)
        axes.set_title(TITLES[theorem], fontsize=9)
        axes.set_xlabel("records $n$")
    panels[0].set_ylabel(r"accuracy $\alpha$")
    shared_legend(figure, panels, {"mechanism": [PROMISED], "theory": [STATED]})
    return figure


#: Logarithms of n to base 10. Theorem 3.3 needs more records than Theorem 8.
POWERS = {
    Theorem.SEVEN: (7.0, 7.5, 8.0, 8.5, 9.0, 9.5, 10.0),
    Theorem.EIGHT: (6.0, 6.5, 7.0, 7.5, 8.0),
    Theorem.ONLINE: (7.0, 7.5, 8.0, 8.5, 9.0),
}


def grid(every: int) -> tuple[Config, ...]:
    """All theorems, at n = 10^p for every `every`-th power p in `POWERS`."""
    return tuple(
        Config(theorem, round(10**power))
        for theorem, powers in POWERS.items()
        for power in powers[::every]
    )


QUICK = Sweep(grid(every=2))
FULL = Sweep(grid(every=1))
