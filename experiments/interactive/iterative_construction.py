"""Iterative construction: largest error over all parities against n, with two sets of constants.

Source: Roth's lecture on iterative construction, Algorithm 1, Theorems 4 to 8 (after Gupta, Roth
and Ullman 2011); Dwork-Roth 2014, section 5.2; formula sheet IC-DIST, IC-ALG, IC-T4, IC-T5, BR-MW,
DISC-13.

Claim: with probability 1 - beta the hypothesis errs by at most alpha on every one of the 2^d
parities, for the alpha of the corrected Theorem 5. The constants as printed give a smaller alpha,
but their proof shows an error of 3 alpha / 2 only: the run can end at a query whose gap is near
alpha, while another query has a larger gap that the distinguisher missed. alpha falls as n^(-1/3)
under pure and as n^(-1/2) under approximate DP, up to logarithms, and the 2 B private steps
together stay within the budget. Errors are near 3 alpha / 4, the level of the test that ends a run.

Records are known by their shares, so that n may be as large as the theorem needs. Run time on one
core: quick 4 s, full 1 minute.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.stats
from matplotlib.figure import Figure

import geomdp as gd
from experiments.engine.cells import Row, Sweep
from experiments.engine.claims import Claim
from experiments.engine.drawing import Look, draw_measured, draw_theory, log_axes, shared_legend
from experiments.engine.statistics import LEVEL, MeanSquare, pooled_along
from experiments.shared.known_shares import KnownShares, falling_shares
from geomdp.mechanisms.interactive.stopping import CORRECTED, PRINTED

BITS, BETA = 5, 0.05
PRIVACY: dict[str, gd.PureDP | gd.ApproxDP] = {
    "pure": gd.PureDP(1.0),
    "approximate": gd.ApproxDP(1.0, 1e-6),
}


class Constants(enum.StrEnum):
    """Constants of Theorem 5, in the order of the legend."""

    CORRECTED = "corrected constants"
    PRINTED = "printed constants"


DESIGNS = {Constants.CORRECTED: CORRECTED, Constants.PRINTED: PRINTED}


@dataclass(frozen=True)
class Config:
    """One point of the figure."""

    privacy: str  # Key of `PRIVACY`
    constants: Constants  # Constants of the stopping rule
    n: int  # Number of records
    runs: int  # Independent runs in one cell


def construction(config: Config) -> gd.IterativeConstruction[Any]:
    """The mechanism of one point."""
    return gd.IterativeConstruction(
        gd.mechanisms.MultiplicativeWeights(1 << BITS),
        KnownShares(falling_shares(1 << BITS)),
        n=config.n,
        privacy=PRIVACY[config.privacy],
        beta=BETA,
        design=DESIGNS[config.constants],
    )


def spent(built: gd.IterativeConstruction[Any]) -> float:
    """Epsilon of the 2 B steps by basic or advanced composition."""
    step, count = gd.PureDP(built.step_epsilon), 2 * built.updates_allowed
    match built.privacy:
        case gd.ApproxDP(delta=delta):
            return gd.privacy.advanced_composition(step, count, delta).epsilon
        case _:
            return count * step.epsilon


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """Mean square of the largest error over the runs of one trial, beside what is promised."""
    built = construction(config)
    truths = built.distinguisher.truths(None, config.n)
    errors, steps = [], []
    for child in rng.spawn(config.runs):
        release = built.release(range(config.n), rng=child)
        estimates = built.distinguisher.estimates(release.hypothesis)
        errors.append(float(np.abs(estimates - truths).max()))
        steps.append(len(release.exchanges))
    start = built.distinguisher.estimates(built.rule.start(built.alpha / 2))
    return [
        {
            **MeanSquare.of(np.square(errors)).columns(),
            "within": sum(error <= built.accuracy for error in errors),
            "alpha": built.alpha,
            "guaranteed": built.accuracy,
            "steps": max(steps),
            "updates_allowed": built.updates_allowed,
            "spent": spent(built),
            "untouched": float(np.abs(start - truths).max()),
        }
    ]


POINT = ["privacy", "constants", "n"]
#: Powers of n by which alpha falls.
POWERS = {"pure": -1 / 3, "approximate": -1 / 2}


def claims(table: pd.DataFrame) -> list[Claim]:
    """The guarantee by binomial tests; budget, number of steps and rate."""
    points = table.groupby(POINT, as_index=False).agg(
        within=("within", "sum"), releases=("releases", "sum"), alpha=("alpha", "first")
    )
    tails = scipy.stats.binom.cdf(points.within, points.releases, 1 - BETA)
    slopes = {
        (str(privacy), constants): float(np.polyfit(np.log(rows.n), np.log(rows.alpha), 1)[0])
        for (privacy, constants), rows in points.groupby(["privacy", "constants"])
    }
    wide = points.pivot(index=["privacy", "n"], columns="constants", values="alpha")
    ratio = wide[Constants.CORRECTED] / wide[Constants.PRINTED]
    printed = table[table.constants == Constants.PRINTED]
    factor = (printed.guaranteed / printed.alpha).round(12)
    return [
        Claim(
            f"all {1 << BITS} parities err by at most what is promised",
            bool(np.all(tails > LEVEL / len(points))),
            f"{points.within.sum()} of {points.releases.sum()} runs, {len(points)} points",
            f"probability at least {1 - BETA} at each",
            "IC-T5",
        ),
        Claim(
            "no run makes more than floor(B(alpha / 2)) steps, some make several",
            bool((table.steps <= table.updates_allowed).all() and table.steps.max() > 1),
            f"at most {table.steps.max()}",
            f"at most {table.updates_allowed.min()}",
            "IC-ALG",
        ),
        Claim(
            "two private steps per round, together within the budget",
            bool((table.spent <= 1 + 1e-12).all()),
            f"epsilon at most {table.spent.max():.6f}",
            "at most 1",
            "IC-T4",
        ),
        Claim(
            "alpha falls as n^(-1/3), under approximate DP as n^(-1/2), up to logarithms",
            # The logarithm of the number of steps makes it a little slower.
            all(0 <= slope - POWERS[privacy] <= 0.06 for (privacy, _), slope in slopes.items()),
            ", ".join(f"{privacy} {slope:.3f}" for (privacy, _), slope in slopes.items()),
            "from -1/3 to -0.273; from -1/2 to -0.44",
            "IC-T5",
        ),
        Claim(
            "printed constants name a smaller alpha, and 3 / 2 of it is what their proof gives",
            bool((ratio > 1).all()) and bool((factor == PRINTED.guaranteed).all()),
            f"alpha smaller by {ratio.min():.2f} to {ratio.max():.2f}",
            "above 1",
            "IC-T5, DISC-13",
        ),
    ]


LOOKS = {
    Constants.CORRECTED: Look("C0", "o"),
    Constants.PRINTED: Look("C3", "D", filled=False),
}
PROMISED = {
    Constants.CORRECTED: r"$\alpha$, corrected",
    Constants.PRINTED: r"$3\alpha/2$, printed",
}
PRINTED_ALPHA = r"$\alpha$, printed: not proved"
NO_UPDATE = "uniform start"


def plot(table: pd.DataFrame) -> Figure:
    """Largest error against n, below what is promised."""
    figure = Figure(figsize=(7.2, 3.8))
    panels = figure.subplots(1, 2, sharey=True)
    titles = ("(a) 1-DP", r"(b) $(1,10^{-6})$-DP")
    for axes, privacy, title in zip(panels, PRIVACY, titles, strict=True):
        for constants, look in LOOKS.items():
            rows = table[(table.privacy == privacy) & (table.constants == constants)]
            promised = rows.groupby("n")[["alpha", "guaranteed", "untouched"]].first()
            if constants is Constants.PRINTED:
                draw_theory(
                    axes, promised.index, promised.alpha, look.colour, PRINTED_ALPHA, (1, 1.5)
                )
            else:
                draw_theory(
                    axes, promised.index, promised.untouched, "0.5", NO_UPDATE, (4, 1.5, 1, 1.5)
                )
            label = PROMISED[constants]
            draw_theory(axes, promised.index, promised.guaranteed, look.colour, label)
            draw_measured(axes, pooled_along(rows, "n"), look, constants)
        log_axes(axes)
        axes.set_title(title)
        axes.set_xlabel("number of records $n$")
    panels[0].set_ylabel(f"largest error of {1 << BITS} parities")
    theory = [*PROMISED.values(), PRINTED_ALPHA, NO_UPDATE]
    shared_legend(figure, panels, {"measured": [*LOOKS], "theory": theory})
    return figure


def grid(exponents: dict[str, tuple[float, ...]], runs: int) -> tuple[Config, ...]:
    """Both guarantees with both sets of constants."""
    return tuple(
        Config(privacy, constants, round(10**exponent), runs)
        for privacy in PRIVACY
        for constants in Constants
        for exponent in exponents[privacy]
    )


QUICK = Sweep(grid({"pure": (7, 8, 9), "approximate": (6, 7, 7.5)}, runs=5), trials=1, seed=0)
FULL = Sweep(
    grid(
        {
            "pure": (7, 7.5, 8, 8.5, 9, 9.5, 10),
            "approximate": (6, 6.5, 7, 7.5, 8),
        },
        runs=20,
    ),
    trials=2,
    seed=0,
)
