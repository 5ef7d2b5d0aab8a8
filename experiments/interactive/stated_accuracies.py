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

import enum
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
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
    theorem: Theorem  # Which statement
    n: int  # Number of records


def compute(config: Config, _: np.random.Generator) -> ex.Row:
    """The accuracy that the theorem states, and the accuracy that the mechanism promises."""
    rule = gd.mechanisms.MultiplicativeWeights(1 << BITS)
    if config.theorem is Theorem.ONLINE:
        online: gd.OnlineConstruction[gd.workloads.DenseQuery] = gd.OnlineConstruction(
            rule, n=config.n, queries=QUERIES, privacy=APPROX, beta=BETA, rng=0
        )
        stated = online_accuracy(rule.bound, n=config.n, queries=QUERIES, privacy=APPROX, beta=BETA)
        return {"stated": stated, "promised": online.accuracy}
    privacy = PURE if config.theorem is Theorem.SEVEN else APPROX
    built = gd.IterativeConstruction(
        rule, gd.mechanisms.AllParities(BITS), n=config.n, privacy=privacy, beta=BETA
    )
    stated = iterative_accuracy(
        rule.bound, n=config.n, queries=1 << BITS, privacy=privacy, beta=BETA
    )
    return {"stated": stated, "promised": built.accuracy}


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


def claims(table: pd.DataFrame) -> ex.Claims:
    for theorem, expected in EXPECTED.items():
        rows = table[table.theorem == theorem]
        ratio = rows.promised / rows.stated
        slope = float(np.polyfit(np.log(rows.n), np.log(rows.stated), 1)[0])
        yield ex.Claim(
            f"{theorem}: the mechanism promises {expected.low:.3g} to {expected.high:.3g} "
            "times the stated accuracy",
            ex.Verdict(
                ratio.between(expected.low, expected.high).all(), ratio.max() / expected.high
            ),
            f"{ratio.min():.4f} to {ratio.max():.4f} times, at {len(rows)} values of n",
            f"{expected.low:.3g} to {expected.high:.3g}",
            expected.id,
        )
        yield ex.Claim(
            f"{theorem}: up to a logarithm, the stated accuracy falls as n^({expected.power:.3g})",
            ex.Verdict(
                0 <= slope - expected.power + 1e-9 <= expected.drift,
                abs(slope - expected.power) / expected.drift,
            ),
            f"slope {slope:.4f}",
            f"{expected.power:.3f} to {expected.power + expected.drift:.3f}",
            expected.id,
        )


TITLES = {
    Theorem.SEVEN: "Theorem 7:\n1-DP",
    Theorem.EIGHT: "Theorem 8:\n$(1, 10^{-6})$-DP",
    Theorem.ONLINE: "Theorem 3.3:\n$(1, 10^{-6})$-DP",
}
LOOK = ex.Look("C0", "o")
STATED, PROMISED = "stated by\nthe theorem", "promised by\nthe mechanism"


def plot(table: pd.DataFrame) -> ex.Figure:
    titles = TITLES.values()
    figure, panels = ex.panels((7.2, 3.4), titles, ["records $n$"] * 3, r"accuracy $\alpha$")
    for axes, theorem in zip(panels, TITLES, strict=True):
        rows = table[table.theorem == theorem].sort_values("n")
        ex.draw_theory(axes, rows.n, rows.stated, ex.GREY, STATED)
        ex.draw_points(axes, rows.n, rows.promised, LOOK, PROMISED, "none")
        ex.log_axes(axes)
    ex.label_curves(panels[-1])
    result = "Mechanisms promise the stated error, or a quarter of it"
    return ex.headline(figure, result, "Solutions of equations; nothing is random.")


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


QUICK = ex.Sweep(grid(every=2))
FULL = ex.Sweep(grid(every=1))
