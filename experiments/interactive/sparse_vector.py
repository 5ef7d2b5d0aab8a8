"""Sparse vector: failure probabilities compared with the accuracy theorems, one of them false.

Source: Dwork-Roth 2014, Theorems 3.24, 3.26 and 3.28; Ligett's slides; formula sheet SV-AT, SV-SP,
SV-NUM, SV-LSL, DISC-11.

Claim: if all k queries are at least alpha away from the threshold, and at most c of them are above
it, then all answers are right with probability at least 1 - beta. This holds for the alpha of each
theorem but one. The theorem printed for NumericSparse with delta > 0 is false for few queries: at
c = k = 10 the noise on the released values alone breaks it with probability 0.347, where beta is
0.05. If comparisons get 8/9 of epsilon and values 1/9, the theorem holds for every k. At every
distance, the measured probability of a wrong answer agrees with the exact probability, which is
computed as an integral over the noise of the threshold.

Run time on one core: quick 1 s, full 2 minutes.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy.stats
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.engine import margins
from experiments.engine.cells import Row, Sweep
from experiments.engine.claims import Claim
from experiments.engine.drawing import (
    BAND_LEVEL,
    Look,
    draw_points,
    draw_theory,
    log_axes,
    shared_legend,
)
from experiments.engine.statistics import LEVEL
from experiments.interactive.sparse_vector_runs import (
    APPROX_FAMILIES,
    BETA,
    CUTOFF,
    PURE_FAMILIES,
    Config,
    Family,
    ask,
    cutoff,
    exact_failure,
    fails,
    stated_accuracy,
)


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """Failures over the runs of one trial.

    The queries above the threshold come last. So all k queries are asked, unless noise puts other
    queries above the threshold.
    """
    alpha = stated_accuracy(config)
    truths = np.full(config.queries, -config.gap * alpha)
    truths[-cutoff(config) :] *= -1
    failures = sum(
        fails(truths, ask(config, truths, child), alpha) for child in rng.spawn(config.runs)
    )
    return [{"failures": failures, "alpha": alpha}]


def pooled(table: pd.DataFrame) -> pd.DataFrame:
    """Failures and runs of each configuration over its trials."""
    keys = ["family", "approximate", "queries", "gap"]
    return table.groupby(keys, as_index=False).agg(
        failures=("failures", "sum"), runs=("runs", "sum"), alpha=("alpha", "first")
    )


#: Ids of the theorems in the formula sheet.
SOURCES = {
    Family.ABOVE: "SV-AT, T3.24",
    Family.KEPT: "SV-LSL",
    Family.REDRAWN: "SV-SP, T3.26",
    Family.NUMERIC: "SV-NUM, T3.28 corrected",
    Family.PRINTED: "DISC-11",
}


def claims(table: pd.DataFrame) -> list[Claim]:
    """Binomial tests of the theorems, each at a level of at most 1e-6 over all its points."""
    points = pooled(table)
    at_gap = points[points.gap >= 1]
    few = points[(points.family == Family.PRINTED) & (points.queries == CUTOFF)].iloc[0]
    interval = scipy.stats.binomtest(few.failures, few.runs).proportion_ci(1 - LEVEL)
    stated = exact_failure(Family.PRINTED, True, CUTOFF, few.gap)
    return [
        *(agrees(family, points[points.family == family], id) for family, id in SOURCES.items()),
        *(
            holds(
                f"{family}: runs fail at most as often as the theorem states",
                at_gap[at_gap.family == family],
                id,
            )
            for family, id in SOURCES.items()
            if family is not Family.PRINTED
        ),
        Claim(
            f"the printed NumericSparse theorem fails at c = k = {CUTOFF}",
            bool(BETA < interval.low <= stated <= interval.high),
            f"share of failed runs {few.failures / few.runs:.3f} "
            f"[{interval.low:.3f}, {interval.high:.3f}]",
            f"{stated:.3f} by the exact law, above {BETA}",
            "DISC-11",
            used=max(
                margins.position(stated, interval.low, interval.high),
                margins.inverse_share(interval.low, BETA),
            ),
        ),
    ]


def agrees(family: Family, points: pd.DataFrame, id: str) -> Claim:
    """Two-sided tests of failures against exact probabilities, at every point of a mechanism."""
    exact = [
        exact_failure(row.family, row.approximate, row.queries, row.gap)
        for row in points.itertuples()
    ]
    low = scipy.stats.binom.cdf(points.failures, points.runs, exact)
    high = scipy.stats.binom.sf(points.failures - 1, points.runs, exact)
    chance = float(2 * np.minimum(low, high).min())
    # LEVEL is shared by all points of all mechanisms.
    level = LEVEL / (len(SOURCES) * len(points))
    return Claim(
        f"{family}: at every distance, runs fail as often as the exact law says",
        chance > level,
        f"{len(points)} points, probabilities {min(exact):.1e} to {max(exact):.2f}, smallest "
        f"p-value {chance:.2g} (binomial)",
        f"above {level:.1e}",
        id,
        used=margins.rarity(chance, level),
    )


def holds(name: str, points: pd.DataFrame, id: str) -> Claim:
    """At every point, the failures are compatible with a probability of at most BETA."""
    tails = scipy.stats.binom.sf(points.failures - 1, points.runs, BETA)
    rates = points.failures / points.runs
    return Claim(
        name,
        bool((tails > LEVEL / len(points)).all()),
        f"{len(points)} points, shares of failed runs at most {rates.max():.3f}",
        f"probability at most {BETA}",
        id,
        used=float(rates.max() / BETA),
    )


LOOKS = {
    Family.ABOVE: Look("C0", "o"),
    Family.KEPT: Look("C1", "s"),
    Family.REDRAWN: Look("C2", "v", filled=False),
    Family.NUMERIC: Look("C3", "D"),
    Family.PRINTED: Look("C4", "X"),
}
#: Distance of the queries from the threshold in panel (b), in units of alpha. At this distance, in
#: practice, only released values are wrong.
FAR = 10.0
LIMIT = rf"failure probability of all theorems, $\beta={BETA}$"
STATED = r"distance $\alpha$ at which a theorem promises $\beta$"
VALUES = "exact law"


def plot(table: pd.DataFrame) -> Figure:
    """Failure probability against the distance from the threshold, and against k."""
    figure = Figure(figsize=(7.2, 4.7))
    panels = figure.subplots(1, 2, sharey=True)
    points = pooled(table)
    for family in PURE_FAMILIES:
        mine = points[(points.family == family) & ~points.approximate]
        mine = mine.assign(distance=mine.gap * mine.alpha)
        exact = [exact_failure(family, False, 100, gap) for gap in mine.gap]
        draw_theory(panels[0], mine.distance, exact, LOOKS[family].colour, VALUES, (1, 2))
        draw(panels[0], mine, "distance", family)
        # Mark the point (alpha, beta) that the theorem promises.
        panels[0].plot(
            mine.alpha.iloc[:1], [BETA], ls="none", marker="|", ms=13, mew=2,
            color=LOOKS[family].colour, zorder=4,
        )  # fmt: skip
    panels[0].plot([], [], ls="none", marker="|", ms=13, mew=2, color="black", label=STATED)
    for family in APPROX_FAMILIES:
        rows = points[(points.family == family) & points.approximate & (points.gap > 1)]
        exact = [exact_failure(family, True, k, FAR) for k in rows.queries]
        draw_theory(panels[1], rows.queries, exact, LOOKS[family].colour, VALUES, (1, 2))
        draw(panels[1], rows, "queries", family)
    corrected = points[(points.family == Family.NUMERIC) & points.approximate & (points.gap > 1)]
    note = f"corrected: {corrected.failures.sum()} failures\nin {corrected.runs.sum():,} runs"
    colour = LOOKS[Family.NUMERIC].colour
    panels[1].text(0.25, 0.05, note, color=colour, transform=panels[1].transAxes, size=8)
    for axes in panels:
        axes.axhline(BETA, color="black", linestyle=(0, (4, 2)), linewidth=1.1, label=LIMIT)
    log_axes(panels[1])
    panels[0].set(ylim=(3e-4, 1.3), xscale="log")
    panels[0].set_title("(a) 1-DP, $k=100$:\nfewer failures than stated", fontsize=9)
    panels[1].set_title(
        rf"(b) $(1, 10^{{-6}})$-DP, $c={CUTOFF}$:" "\nthe printed theorem fails", fontsize=9
    )
    panels[0].set_xlabel("distance from the threshold (counts)")
    panels[1].set_xlabel("number of queries $k$")
    panels[0].set_ylabel("probability of a wrong answer")
    shared_legend(figure, panels, {"mechanism": [*LOOKS], "theory": [STATED, LIMIT, VALUES]})
    return figure


def draw(axes: Axes, points: pd.DataFrame, x: str, family: Family) -> None:
    """Failure rates with 95% intervals, where there were five failures or more."""
    points = points[points.failures >= 5].sort_values(x)
    look = LOOKS[family]
    if points.empty:
        draw_points(axes, [], [], look, family)
        return
    intervals = np.array(
        [
            scipy.stats.binomtest(row.failures, row.runs).proportion_ci(1 - BAND_LEVEL)
            for row in points.itertuples()
        ]
    )
    shares, band = points.failures / points.runs, (intervals[:, 0], intervals[:, 1])
    draw_points(axes, points[x], shares, look, family, band=band)


def grid(gaps: tuple[float, ...], queries: tuple[int, ...], runs: int) -> tuple[Config, ...]:
    """Points for k = 100 and all `gaps`, and the points of panel (b), far from the threshold."""
    near = [Config(family, False, 100, gap, runs) for family in PURE_FAMILIES for gap in gaps]
    near += [
        Config(family, True, 100, gap, runs)
        for family in (Family.REDRAWN, *APPROX_FAMILIES)
        for gap in gaps
    ]
    far = [Config(family, True, k, FAR, runs) for family in APPROX_FAMILIES for k in queries]
    return (*near, *far)


QUICK = Sweep(grid((0.25, 0.5, 1.0), (10, 300, 10_000), runs=400), trials=1, seed=0)
FULL = Sweep(
    grid(
        (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
        (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000),
        runs=1000,
    ),
    trials=4,
    seed=0,
)
