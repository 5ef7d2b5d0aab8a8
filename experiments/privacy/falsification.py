"""Privacy bugs that peers published, and what of an audit refutes it at which sample size.

Formula sheet GEN-2, SAM-6. Clopper and Pearson 1934; Mironov 2012, "On significance of the least
significant bits for differential privacy"; Haney, Desfontaines, Hartman, Shrestha and Hay 2022,
"Precision-based attacks and interval refining". Issues of the projects OpenDP, SmartNoise,
diffprivlib and Google's differential-privacy are named by their numbers.

Claim: an audit at level 1e-6 refutes each bug that breaks its privacy claim. The mechanisms are
rebuilt from the descriptions, with code of our own (`published_bugs`). No audit refutes a mended
mechanism more often than its level. The odometer of SmartNoise 621 states more than is spent. Such
a claim is true, so nothing can be refuted. The two float attacks need a score that reads the last
bits: without it, an audit takes these bits for rounding errors. OpenDP 2416 is missing, because no
description of it was found.

Run time on one core: quick 2 s, full 3 minutes.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.stats

import experiments.engine.tools as ex
import geomdp as gd
from experiments.privacy.published_bugs import BUGS, Bug

#: Level of the audits of mended mechanisms. At `LEVEL`, false alarms could not be counted.
ALARM_LEVEL = 0.05
BY_SOURCE = {bug.source: bug for bug in BUGS}


@dataclass(frozen=True)
class Config:
    """One bug, or its mended mechanism, at one sample size."""

    bug: str  # Source of the bug
    mended: bool  # Whether the mechanism is mended
    trials: int  # Outputs for each of the two inputs of one audit
    audits: int  # Number of audits


def compute(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Verdicts of audits."""
    bug = BY_SOURCE[config.bug]
    level = ALARM_LEVEL if config.mended else ex.LEVEL
    return [audited(bug, config.mended, config.trials, level, rng) for _ in range(config.audits)]


def audited(bug: Bug, mended: bool, trials: int, level: float, rng: np.random.Generator) -> ex.Row:
    """The verdict of one audit, and the test that gave it."""
    claim = bug.claim
    if mended and bug.mended_claim is not None:
        claim = bug.mended_claim
    found = gd.audit.audit(
        lambda size, rng: bug.draw(mended, False, size, rng),
        lambda size, rng: bug.draw(mended, True, size, rng),
        claim,
        trials=trials,
        score=bug.score,
        level=level,
        rng=rng,
    )
    by_event = found.epsilon_lower_bound > found.claimed_epsilon
    test = found.event.rpartition(" >= ")[0] if by_event else "Renyi divergence"
    return {
        "refuted": found.refuted,
        "test": test if found.refuted else "",
        "epsilon": found.epsilon_lower_bound,
    }


def claims(table: pd.DataFrame) -> ex.Claims:
    broken, mended = table[~table.mended], table[table.mended]
    most = broken[broken.trials == broken.groupby("bug").trials.transform("max")]
    shares = most.groupby("bug").refuted.mean()
    false = [bug.source for bug in BUGS if bug.breaks]
    missed = [source for source in false if shares[source] < 1]
    weak = broken[broken.bug.isin([bug.source for bug in BUGS if not bug.breaks])]
    alarms = mended.groupby("bug").refuted.agg(["sum", "count"])
    chances = scipy.stats.binom.sf(alarms["sum"] - 1, alarms["count"], ALARM_LEVEL)
    name = "audits refute every published bug that breaks its claim"
    measured = (
        f"{len(false) - len(missed)} of {len(false)} by all {len(most)} audits with the most "
        f"outputs{''.join(f'; not {source}' for source in missed)}"
    )
    theory = f"{len(false)}, each by all audits"
    yield ex.Claim(name, ex.each_case(not missed), measured, theory, "GEN-2")
    name = "audits refute a mended mechanism at most as often as their level says"
    measured = (
        f"{int(alarms['sum'].sum())} of {int(alarms['count'].sum())} audits, at most "
        f"{int(alarms['sum'].max())} of {int(alarms['count'].max())} for one mechanism"
    )
    theory = f"a share of {ALARM_LEVEL:g}; p-values above {ex.LEVEL / len(alarms):.1e} (binomial)"
    yield ex.Claim(name, ex.not_rare(chances, ex.LEVEL / len(alarms)), measured, theory, "GEN-2")
    name = "a bug that states more than is spent is not refuted"
    measured = f"{int(weak.refuted.sum())} of {len(weak)} audits"
    theory = f"0; each audit errs with probability at most {ex.LEVEL:g}"
    yield ex.Claim(name, ex.each_case(not weak.refuted.any()), measured, theory, "GEN-2a")


#: Short names of the tests, for the labels of the figure, by what their names contain.
TESTS = {
    "without variation": "no noise",
    "NaN": "NaN on one input",
    "frequency": "frequencies",
    "linear": "linear score",
    "Renyi": "Renyi divergence",
    "score": "last bits",
}


#: Colours of a point, by how many of its audits refute the bug; labels of the other marks.
SHADES = {"none": "white", "some": "0.7", "all": "black"}


def plot(table: pd.DataFrame) -> ex.Figure:
    figure = ex.Figure(figsize=(7.2, 5.8))
    sizes, alarms = figure.subplots(1, 2, sharey=True, width_ratios=[2.3, 1])
    draw_sizes(sizes, table[~table.mended])
    draw_alarms(alarms, table[table.mended])
    return ex.headline(
        figure,
        "An audit refutes every false claim, and no mended mechanism",
        "White, grey, black: none, some, all of the audits refute. Diamond: all, from there on.\n"
        "(b): 95% intervals.",
    )


def draw_sizes(axes: ex.Axes, broken: pd.DataFrame) -> None:
    """For each bug the least number of outputs with which all audits refute it, and the test."""
    for place, bug in enumerate(BUGS):
        mine = broken[broken.bug == bug.source]
        shares = mine.groupby("trials").refuted.mean()
        among = {"none": shares == 0, "some": (shares > 0) & (shares < 1), "all": shares == 1}
        for label, colour in SHADES.items():
            where = shares.index[among[label]]
            axes.scatter(where, np.full(len(where), place), s=22, c=colour,
                         edgecolors="0.4", linewidths=0.7, zorder=3)  # fmt: skip
        sure = shares[shares == 1]
        note = "states too much: true, so never refuted"
        if bug.breaks and len(sure):
            least = int(sure.index.min())
            axes.scatter([least], [place], s=60, c="C0", marker="D", zorder=4)
            event = mine[mine.trials == least].test.mode().iloc[0]
            note = next(short for part, short in TESTS.items() if part in event)
            left = least < 0.05 * broken.trials.max()
            axes.annotate(f"{note}: {least:,}", (least, place), (6 if left else -6, 4),
                          textcoords="offset points", ha="left" if left else "right", size=ex.SMALL,
                          color="C0")  # fmt: skip
        else:
            middle = float(np.sqrt(shares.index.min() * float(shares.index.max())))
            axes.annotate(note, (middle, place), (0, 5), textcoords="offset points", ha="center",
                          size=ex.SMALL)  # fmt: skip
    axes.set_xscale("log")
    axes.set_yticks(
        range(len(BUGS)), [f"{bug.source}\n{bug.what}" for bug in BUGS], fontsize=ex.SMALL
    )
    axes.set(ylim=(len(BUGS) - 0.5, -0.7), xlabel="outputs on each input")
    axes.set_title("(a) refuted, by this test")


def draw_alarms(axes: ex.Axes, mended: pd.DataFrame) -> None:
    """Shares of audits that refute a mended mechanism, with 95% intervals."""
    for place, bug in enumerate(BUGS):
        mine = mended[mended.bug == bug.source]
        hits, audits = int(mine.refuted.sum()), len(mine)
        found = scipy.stats.binomtest(hits, audits).proportion_ci(1 - ex.BAND_LEVEL, "exact")
        axes.plot([found.low, found.high], [place, place], color="C0", lw=1.4)
        axes.plot([hits / audits], [place], "o", color="C0")
    axes.axvline(ALARM_LEVEL, color="black", linestyle=(0, (4, 2)), lw=1.1)
    axes.annotate(f"level {ALARM_LEVEL:g}", (ALARM_LEVEL, -0.62), (3, 0),
                  textcoords="offset points", va="top", size=ex.SMALL)  # fmt: skip
    axes.set(xlim=(-0.005, 0.125), xlabel="share refuted")
    axes.set_title("(b) after mending")


def grid(sizes: tuple[int, ...], audits: int, alarms: int) -> tuple[Config, ...]:
    """All bugs at all sizes up to their largest one, and mended mechanisms at one size."""
    return tuple(
        config
        for bug in BUGS
        for config in (
            *(Config(bug.source, False, size, audits) for size in sizes if size <= bug.most),
            Config(bug.source, True, 64 if bug.most <= 3000 else 1000, alarms),
        )
    )


QUICK = ex.Sweep(grid((100, 1000, 10_000), 2, 12))
FULL = ex.Sweep(grid((30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000), 20, 300))
