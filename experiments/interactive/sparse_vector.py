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

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.stats

import experiments.engine.tools as ex
import geomdp as gd
from geomdp.bounds.upper import theorems as accuracy

#: Number of quantiles of the threshold's noise over which an expectation is taken.
QUANTILES = 100_000


@dataclass(frozen=True)
class Law:
    """Scales of Laplace noise, and the alpha of the theorem."""

    alpha: float  # Distance at which the theorem bounds the failure probability by beta
    threshold: float  # Scale of the threshold's noise
    query: float  # Scale of a query's noise
    redraw: bool  # Whether each answer above the threshold gives the threshold new noise
    answer: float | None = None  # Scale of the noise on released values; None without values

    def failure(self, queries: int, cutoff: int, distance: float) -> float:
        """Probability that a comparison is wrong or a released value is off by more than alpha."""
        ranks = (np.arange(QUANTILES) + 0.5) / QUANTILES
        # Quantiles of Laplace noise.
        noise = -self.threshold * np.sign(ranks - 0.5) * np.log1p(-2 * np.abs(ranks - 0.5))
        below = self._at_most(distance + noise) ** (queries - cutoff)
        above = self._at_most(distance - noise)
        if self.redraw:
            right = (below * above).mean() * above.mean() ** (cutoff - 1)
        else:
            right = (below * above**cutoff).mean()
        if self.answer is not None:
            right *= (-math.expm1(-self.alpha / self.answer)) ** cutoff
        return float(1 - right)

    def _at_most(self, x: ex.FloatArray) -> ex.FloatArray:
        """Probability that a query's noise is at most x."""
        half = 0.5 * np.exp(-np.abs(x) / self.query)
        return np.where(x < 0, half, 1 - half)


def above_threshold(queries: int, beta: float) -> Law:
    """AboveThreshold with the alpha of Theorem 3.24."""
    return Law(8 * (math.log(queries) + math.log(2 / beta)), 2, 4, redraw=True)


def kept_law(queries: int, cutoff: int, beta: float) -> Law:
    """Lyu, Su and Li: the budget is split 1 : (2 c)^(2/3) between threshold and queries."""
    first = 1 / (1 + (2 * cutoff) ** (2 / 3))
    threshold, query = 1 / first, 2 * cutoff / (1 - first)
    alpha = threshold * math.log(2 / beta) + query * math.log(2 * queries / beta)
    return Law(alpha, threshold, query, redraw=False)


def redrawn(queries: int, cutoff: int, beta: float, delta: float | None) -> Law:
    """Theorem 3.26: c runs of AboveThreshold."""
    logs = math.log(queries) + math.log(2 * cutoff / beta)
    if delta is None:
        return Law(8 * cutoff * logs, 2 * cutoff, 4 * cutoff, redraw=True)
    spread = math.sqrt(8 * cutoff * math.log(1 / delta))
    alpha = math.sqrt(512 * cutoff * math.log(1 / delta)) * logs
    return Law(alpha, 2 * spread, 4 * spread, redraw=True)


def numeric(queries: int, cutoff: int, beta: float, delta: float | None) -> Law:
    """Theorem 3.28, corrected: 8/9 of epsilon for comparisons, 1/9 for values."""
    logs = math.log(queries) + math.log(4 * cutoff / beta)
    unit = cutoff if delta is None else math.sqrt(8 * cutoff * math.log(2 / delta))
    return Law(9 * unit * logs, 2 * unit * 9 / 8, 4 * unit * 9 / 8, True, 9 * unit)


def numeric_printed(queries: int, cutoff: int, beta: float, delta: float) -> Law:
    """Theorem 3.28 as printed: comparisons have sqrt(512) / 2 times the epsilon of values."""
    logs = math.log(queries) + math.log(4 * cutoff / beta)
    root = math.sqrt(512)
    spread = math.sqrt(32 * cutoff * math.log(2 / delta)) * (root + 1)
    alpha = (root + 1) * math.sqrt(cutoff * math.log(2 / delta)) * logs
    return Law(alpha, spread / root, 2 * spread / root, True, spread / 2)


BETA = 0.05
PURE = gd.PureDP(1.0)
APPROX = gd.ApproxDP(1.0, 1e-6)
CUTOFF = 10
BELOW = gd.mechanisms.Answer(above=False)


class Family(ex.Curve):
    """Mechanisms; each has its own theorem on accuracy."""

    ABOVE = "AboveThreshold", "C0", "o"
    KEPT = "Sparse, threshold kept", "C5", "s"
    REDRAWN = "Sparse, threshold redrawn", "C2", "v", ex.HOLLOW
    NUMERIC = "NumericSparse, corrected", "C4", "D"
    PRINTED = "NumericSparse, printed", "C3", "X"


#: Mechanisms of panel (a), pure DP and varying distance, and of panel (b), approximate DP and
#: varying k.
PURE_FAMILIES = (Family.ABOVE, Family.KEPT, Family.REDRAWN, Family.NUMERIC)
APPROX_FAMILIES = (Family.NUMERIC, Family.PRINTED)


@dataclass(frozen=True)
class Config:
    family: Family  # Mechanism
    approximate: bool  # Whether the privacy is (1, 1e-6)-DP instead of 1-DP
    queries: int  # Number k of queries
    gap: float  # Distance of every query from the threshold, in units of the theorem's alpha
    runs: int  # Independent runs in one cell


def cutoff(config: Config) -> int:
    """Number of queries above the threshold."""
    return 1 if config.family is Family.ABOVE else CUTOFF


def stated_accuracy(config: Config) -> float:
    """The alpha of the mechanism's theorem at failure probability BETA."""
    k, c = config.queries, cutoff(config)
    match config.family:
        case Family.ABOVE:
            return accuracy.above_threshold(PURE.epsilon, queries=k, beta=BETA)
        case Family.KEPT:
            # The scales come from the law. If the mechanism drew too little noise, scales taken
            # from it would shrink the distance at which it is tested.
            kept = kept_law(k, c, BETA)
            return accuracy.sparse_kept(
                threshold=kept.threshold, query=kept.query, queries=k, beta=BETA
            )
        case Family.REDRAWN:
            privacy = APPROX if config.approximate else PURE
            return accuracy.sparse(privacy, cutoff=c, queries=k, beta=BETA)
        case Family.NUMERIC:
            privacy = APPROX if config.approximate else PURE
            return accuracy.numeric_sparse(privacy, cutoff=c, queries=k, beta=BETA)
        case Family.PRINTED:
            return accuracy.numeric_sparse_printed(APPROX, cutoff=c, queries=k, beta=BETA)


def ask(config: Config, truths: np.ndarray, rng: np.random.Generator) -> list[gd.mechanisms.Answer]:
    """Answers of one run of the mechanism, with threshold 0."""
    match config.family:
        case Family.ABOVE:
            return gd.AboveThreshold(0.0, privacy=PURE, rng=rng).ask_many(truths)
        case Family.KEPT | Family.REDRAWN:
            redraw = config.family is Family.REDRAWN
            privacy = APPROX if config.approximate else PURE
            return gd.Sparse(
                0.0, cutoff=CUTOFF, privacy=privacy, redraw=redraw, rng=rng
            ).ask_many(truths)  # fmt: skip
        case Family.NUMERIC:
            privacy = APPROX if config.approximate else PURE
            return gd.NumericSparse(0.0, cutoff=CUTOFF, privacy=privacy, rng=rng).ask_many(truths)
        case Family.PRINTED:
            return gd.mechanisms.PrintedNumericSparse(
                0.0, cutoff=CUTOFF, privacy=APPROX, rng=rng
            ).ask_many(truths)  # fmt: skip


def fails(truths: np.ndarray, answers: list[gd.mechanisms.Answer], alpha: float) -> bool:
    """Whether an answer is on the wrong side, missing, or further than alpha from the truth."""
    below = int(np.count_nonzero(truths < 0))
    last = answers[below:]
    if answers[:below].count(BELOW) != below or len(answers) != len(truths):
        return True
    return any(
        not answer.above or (answer.value is not None and abs(answer.value - truth) > alpha)
        for answer, truth in zip(last, truths[below:], strict=True)
    )


def law(family: str, approximate: bool, queries: int) -> Law:
    """The law of a mechanism, with the alpha of its theorem."""
    delta = APPROX.delta if approximate else None
    match family:
        case Family.ABOVE:
            return above_threshold(queries, BETA)
        case Family.KEPT:
            return kept_law(queries, CUTOFF, BETA)
        case Family.REDRAWN:
            return redrawn(queries, CUTOFF, BETA, delta)
        case Family.PRINTED:
            return numeric_printed(queries, CUTOFF, BETA, APPROX.delta)
        case _:
            return numeric(queries, CUTOFF, BETA, delta)


def exact_failure(family: str, approximate: bool, queries: int, gap: float) -> float:
    """Probability that a run fails if all queries are `gap` times alpha from the threshold."""
    found = law(family, approximate, queries)
    c = 1 if family == Family.ABOVE else CUTOFF
    return found.failure(queries, c, gap * found.alpha)


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Failures over the runs of one trial."""
    alpha = stated_accuracy(config)
    truths = np.full(config.queries, -config.gap * alpha)
    truths[-cutoff(config) :] *= -1
    failures = sum(
        fails(truths, ask(config, truths, child), alpha) for child in rng.spawn(config.runs)
    )
    return {"failures": failures, "alpha": alpha}


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


def claims(table: pd.DataFrame) -> ex.Claims:
    points = pooled(table)
    at_gap = points[points.gap >= 1]
    few = points[(points.family == Family.PRINTED) & (points.queries == CUTOFF)].iloc[0]
    interval = scipy.stats.binomtest(few.failures, few.runs).proportion_ci(1 - ex.LEVEL)
    stated = exact_failure(Family.PRINTED, True, CUTOFF, few.gap)
    yield from (
        agrees(family, points[points.family == family], id) for family, id in SOURCES.items()
    )
    yield from (
        holds(
            f"{family}: runs fail at most as often as the theorem states",
            at_gap[at_gap.family == family],
            id,
        )
        for family, id in SOURCES.items()
        if family is not Family.PRINTED
    )
    name = f"the printed NumericSparse theorem fails at c = k = {CUTOFF}"
    verdict = ex.Verdict(
        BETA < interval.low <= stated <= interval.high,
        max(ex.position(stated, interval.low, interval.high), ex.inverse_share(interval.low, BETA)),
    )
    measured = (
        f"share of failed runs {few.failures / few.runs:.3f} "
        f"[{interval.low:.3f}, {interval.high:.3f}]"
    )
    theory = f"{stated:.3f} by the exact law, above {BETA}"
    yield ex.Claim(name, verdict, measured, theory, "DISC-11")


def agrees(family: Family, points: pd.DataFrame, id: str) -> ex.Claim:
    """Two-sided tests of failures against exact probabilities, at every point of a mechanism."""
    exact = [
        exact_failure(row.family, row.approximate, row.queries, row.gap)
        for row in points.itertuples()
    ]
    low = scipy.stats.binom.cdf(points.failures, points.runs, exact)
    high = scipy.stats.binom.sf(points.failures - 1, points.runs, exact)
    chance = float(2 * np.minimum(low, high).min())
    # LEVEL is shared by all points of all mechanisms.
    level = ex.LEVEL / (len(SOURCES) * len(points))
    name = f"{family}: at every distance, runs fail as often as the exact law says"
    measured = (
        f"{len(points)} points, probabilities {min(exact):.1e} to {max(exact):.2f}, smallest "
        f"p-value {chance:.2g} (binomial)"
    )
    return ex.Claim(name, ex.not_rare(chance, level), measured, f"above {level:.1e}", id)


def holds(name: str, points: pd.DataFrame, id: str) -> ex.Claim:
    """At every point, the failures are compatible with a probability of at most BETA."""
    tails = scipy.stats.binom.sf(points.failures - 1, points.runs, BETA)
    rates = points.failures / points.runs
    verdict = ex.Verdict((tails > ex.LEVEL / len(points)).all(), rates.max() / BETA)
    measured = f"{len(points)} points, shares of failed runs at most {rates.max():.3f}"
    return ex.Claim(name, verdict, measured, f"probability at most {BETA}", id)


LOOKS = Family.looks()
#: Distance of the queries from the threshold in panel (b), in units of alpha. At this distance, in
#: practice, only released values are wrong.
FAR = 10.0
LIMIT = rf"failure probability, $\beta={BETA}$"
STATED = r"distance $\alpha$ of the theorem"
VALUES = "exact law"


def plot(table: pd.DataFrame) -> ex.Figure:
    figure = ex.Figure(figsize=(7.2, 5.3))
    panels = figure.subplots(1, 2, sharey=True)
    points = pooled(table)
    for family in PURE_FAMILIES:
        mine = points[(points.family == family) & ~points.approximate]
        mine = mine.assign(distance=mine.gap * mine.alpha)
        exact = [exact_failure(family, False, 100, gap) for gap in mine.gap]
        ex.draw_theory(panels[0], mine.distance, exact, LOOKS[family].colour, VALUES, (1, 2))
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
        ex.draw_theory(panels[1], rows.queries, exact, LOOKS[family].colour, "_", (1, 2))
        draw(panels[1], rows, "queries", family)
    corrected = points[(points.family == Family.NUMERIC) & points.approximate & (points.gap > 1)]
    note = f"corrected: {corrected.failures.sum()} failures\nin {corrected.runs.sum():,} runs"
    colour = LOOKS[Family.NUMERIC].colour
    panels[1].text(0.25, 0.05, note, color=colour, transform=panels[1].transAxes, size=ex.SMALL)
    for axes in panels:
        axes.axhline(BETA, color="black", linestyle=(0, (4, 2)), linewidth=1.1, label=LIMIT)
    ex.log_axes(panels[1])
    panels[0].set(ylim=(3e-4, 1.3), xscale="log")
    panels[0].set_title("(a) 1-DP, $k=100$:\nfewer failures than stated")
    panels[1].set_title(rf"(b) $(1, 10^{{-6}})$-DP, $c={CUTOFF}$:" "\nthe printed theorem fails")
    panels[0].set_xlabel("distance from the threshold (counts)")
    panels[1].set_xlabel("number of queries $k$")
    panels[0].set_ylabel("probability of a wrong answer")
    ex.shared_legend(figure, {"mechanism": [*LOOKS], "theory": [STATED, LIMIT, VALUES]})
    result = "Sparse vector fails less than its theorems say, except for the one printed wrong"
    return ex.headline(figure, result, "Bands: 95%. Only points with five failures or more.")


def draw(axes: ex.Axes, points: pd.DataFrame, x: str, family: Family) -> None:
    """Failure rates with 95% intervals, where there were five failures or more."""
    points = points[points.failures >= 5].sort_values(x)
    look = LOOKS[family]
    if points.empty:
        ex.draw_points(axes, [], [], look, family)
        return
    intervals = np.array(
        [
            scipy.stats.binomtest(row.failures, row.runs).proportion_ci(1 - ex.BAND_LEVEL)
            for row in points.itertuples()
        ]
    )
    shares, band = points.failures / points.runs, (intervals[:, 0], intervals[:, 1])
    ex.draw_points(axes, points[x], shares, look, family, band=band)


def grid(gaps: tuple[float, ...], queries: tuple[int, ...], runs: int) -> tuple[Config, ...]:
    """Points for k = 100 and all `gaps`, and the points of panel (b), far from the threshold."""
    approximate = (Family.REDRAWN, *APPROX_FAMILIES)
    return (
        *ex.product(Config, PURE_FAMILIES, False, 100, gaps, runs),
        *ex.product(Config, approximate, True, 100, gaps, runs),
        *ex.product(Config, APPROX_FAMILIES, True, queries, FAR, runs),
    )


QUICK = ex.Sweep(grid((0.25, 0.5, 1.0), (10, 300, 10_000), runs=400))
FULL = ex.Sweep(
    grid(
        (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
        (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000),
        runs=1000,
    ),
    trials=4,
)
