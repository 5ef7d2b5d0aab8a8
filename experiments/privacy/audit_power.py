"""How much noise must be missing before an audit refutes a privacy claim.

Clopper and Pearson 1934; Ding, Wang, Wang, Zhang and Kifer 2018. Formula sheet GEN-2, JL-L14.

Claim: an audit at level 1e-6 draws outputs for two neighbouring inputs. On one half of the draws,
it chooses the event "a score of the output reaches a threshold" that contradicts the claim most. On
the other half, it tests this event. It refutes no true claim. For two counting queries, it refutes
every additive mechanism that adds no noise, adds no noise to one coordinate, uses one draw for both
coordinates, draws noise from a subspace that misses a direction in which neighbours differ, or
halves the noise (except spectral noise). The noise is also multiplied by factors below 1. With more
draws, an audit refutes factors closer to 1. Where the laws of the outputs are known, the lemma of
Neyman and Pearson gives the best event, which refutes the claim for a factor with the fewest draws.
An audit needs about twice as many draws, because it tests on one half of them.

Most mechanisms answer two counting queries, whose answers on one record form the square {0, 1}^2,
with epsilon = 1 or rho = 1/2. A search for the largest noise factor that audits refute uses one
seed for all its audits. SecondMoment, PairMarginals and Covariance are audited before the last
step, a projection. This step does not read the records, so no event of its output refutes smaller
faults than events of its input do. For the same reason, audits of Projected, JL, Coarse, Shrunk
and Fitted have at most the power of an audit of the noise inside them. Audits of SparseProject with
Gaussian noise on rows have at most the power of audits of Gaussian at the same rho.

The set-up of spectral noise takes 8 s, so spectral noise is audited in the full run only. The fault
of half the noise is left out there, because 20,000 draws do not refute it. Run time on one core:
quick 50 s, full 6 minutes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
from experiments.engine.processes import timed
from experiments.engine.script import Needs
from experiments.privacy.audited_mechanisms import (
    CHANGES,
    FINITE,
    KNOWN,
    NORMAL,
    PLANTED,
    SQUARE,
    UNHIDDEN,
    Family,
    Fault,
    audited,
    audited_scaled,
    claim,
    laws,
)
from experiments.privacy.best_events import best_factor, draws_needed, largest_factor

#: Mechanisms without a row of their own, with the reason. The times are processor times.
WITHOUT_ROW = {
    "NumericSparse": "its comparisons are those of Sparse; its released values have no exact law",
    "OnlineConstruction": "a run of 4 queries takes 1 ms, so a search with 10^4 draws takes "
    "3 minutes",
    "IterativeConstruction": "a run of 2 rounds takes 4 ms, so a search with 10^4 draws takes "
    "12 minutes",
}
#: Number of audits in one search for the largest noise factor refuted (`largest_factor` in
#: `best_events`).
AUDITS_OF_SEARCH = 9
#: Longest time of a search that the full run can afford, in seconds.
AFFORDED = 60.0
MOST_DRAWS = 1_000_000
#: The best event needs only a share of an audit's draws to refute the same noise factor. The share
#: is to be at least `LEAST_SHARE` for each mechanism, and `LEAST_MEAN_SHARE` on average. An audit
#: tests on one half of its draws. Chance moves the share found by one search by about 40 percent.
LEAST_SHARE, LEAST_MEAN_SHARE = 0.25, 0.35


def shares_of_draws(table: pd.DataFrame) -> pd.Series:
    """By mechanism, the share of an audit's draws that the best event needs for the same factor.

    The shares are geometric means over all searches. Only mechanisms with known laws have a share.
    """
    found = table[(table.fault == Fault.SCALED) & table.needed.notna()]
    logs = np.log(found.needed / found.trials)
    return np.exp(logs.groupby(found.family).mean())


def goals(table: pd.DataFrame) -> ex.Goals:
    """Goals for mechanisms, numbers of draws and speed. A goal without rows is left out."""
    factors = table[table.fault == Fault.SCALED]
    yield from _rows(factors)
    yield from _sizes(factors)
    yield from _spectral(table)
    yield from _sparse(table)


def _rows(factors: pd.DataFrame) -> ex.Goals:
    rows = factors.family.nunique()
    reasons = "; ".join(f"{name}: {reason}" for name, reason in WITHOUT_ROW.items())
    statement = "mechanisms for which the largest refuted noise factor is measured"
    words = (
        "post-processing adds no power: audits of Projected, JL, Coarse, Shrunk and Fitted "
        "have at most the power of audits of the noise inside them, and audits of "
        "SparseProject with Gaussian rows at most the power of audits of Gaussian"
    )
    yield ex.Goal(statement, rows, len(Family) + len(WITHOUT_ROW), ex.Aim.AT_LEAST, reasons, words)


def _sizes(factors: pd.DataFrame) -> ex.Goals:
    learned = factors[factors.needed.isna()]
    if learned.empty:
        return
    slowest = learned[learned.trials == learned.trials.max()].seconds
    times = MOST_DRAWS / learned.trials.max()
    yield ex.Goal(
        "mechanisms for which the largest refuted noise factor is measured with 10^6 draws",
        factors[factors.trials == MOST_DRAWS].family.nunique(),
        factors.family.nunique(),
        ex.Aim.AT_LEAST,
        f"without a known density, a classifier learns the score: a search took "
        f"{slowest.min():.0f} to {slowest.max():.0f} s at {learned.trials.max():,} draws and "
        f"would take {times:g} times as long at 10^6",
    )


def _spectral(table: pd.DataFrame) -> ex.Goals:
    mine = table[table.family == Family.SPECTRAL]
    if mine.empty:
        return
    per_draw = float((mine.seconds / (2 * mine.trials)).median())
    within = AFFORDED / (2 * AUDITS_OF_SEARCH * 10_000)
    fit = AFFORDED / (2 * AUDITS_OF_SEARCH * per_draw)
    name = "seconds for one draw of spectral noise"
    reason = (
        f"a search draws for two inputs in {AUDITS_OF_SEARCH} audits; at this speed "
        f"a search of one minute has {fit:,.0f} draws per audit and input, not 10^4"
    )
    yield ex.Goal(name, per_draw, within, ex.Aim.AT_MOST, reason)


def _sparse(table: pd.DataFrame) -> ex.Goals:
    share = shares_of_draws(table).get(Family.SPARSE)
    if share is None:
        return
    name = "Sparse: share of an audit's draws with which the best event refutes the same noise"
    reason = (
        "an audit orders transcripts by their probabilities under correct noise; for smaller "
        "noise this is not the best order if two queries are found above the threshold"
    )
    yield ex.Goal(name, float(share), LEAST_SHARE, ex.Aim.AT_LEAST, reason)


#: Faults that remove noise altogether in some direction. An audit finds the same bound for each of
#: them, the largest that its number of draws can give, so they share one mark.
GROSS = (Fault.NONE, Fault.DEAD, Fault.SHARED, Fault.SUBSPACE)
SIZES = {10_000: ex.Look("C5", "o"), 100_000: ex.Look("C0", "s"), 1_000_000: ex.Look("C4", "D")}


def plot(table: pd.DataFrame) -> ex.Figure:
    figure, (power, faults) = ex.panels(
        (7.2, 6.2),
        ["noise that is too small", "planted faults"],
        ["largest noise factor refuted", r"lower bound on $\varepsilon$ / claimed $\varepsilon$"],
        sharey=True,
    )
    shown = [family for family in Family if (table.family == family).any()]
    heights = {family: -row for row, family in enumerate(shown)}
    factors = table[table.fault == Fault.SCALED]
    # The names of the marks stand in the row in which the marks are farthest apart.
    reach = factors.groupby("family").factor.agg(np.ptp)
    apart = str(reach.idxmax()) if len(reach) else ""
    for trials, look in SIZES.items():
        mine = factors[factors.trials == trials].groupby("family", as_index=False)
        found = mine.mean(numeric_only=True)
        if len(found):
            rows = found.family.map(heights)
            ex.draw_points(power, found.factor, rows, look, "_", "none", size=6)
            for x in found[found.family == apart].factor:
                size = f"$10^{round(math.log10(trials))}$"
                ex.note(power, (x, heights[apart]), size, look.colour)
    for fault, colour in ((Fault.CORRECT, "0.3"), (Fault.HALF, "C0")):
        mine = table[table.fault == fault]
        marker = ex.Look(colour, "|" if fault is Fault.CORRECT else "D")
        ex.draw_points(faults, mine.share, mine.family.map(heights), marker, "_", "none", size=6)
    gross = table[table.fault.isin(GROSS)].groupby("family").share.min()
    rows = [heights[family] for family in gross.index]
    ex.draw_points(faults, gross, rows, ex.Look("C4", "s"), "_", "none", size=5)
    for axes in (power, faults):
        axes.axvline(1.0, color=ex.GREY, lw=1.1, ls=(0, (4, 2)))
        axes.grid(axis="y", visible=False)
    power.set_yticks(list(heights.values()), list(heights))
    power.set(xlim=(0.2, 1.1), ylim=(min(heights.values()) - 0.6, 1.2))
    faults.set_xlim(left=0)
    for x, words, colour in ((0.4, "correct", "0.3"), (1.8, "half", "C0"), (4.0, "no noise", "C4")):
        ex.note(faults, (x, 0), words, colour)
    return ex.headline(
        figure,
        "An audit sees most noise that is a fifth too small, and refutes no correct noise",
        "Level 1e-6, $10^4$ to $10^6$ draws. Dashed: correct noise. No noise: in some direction.",
    )


#: scikit-learn has the classifier that learns events for noise whose density is not known.
NEEDS = Needs(("sklearn",), extra="audit")
CLOCK = ("seconds",)
#: Factors by which these faults multiply the noise.
FACTORS = {Fault.CORRECT: 1.0, Fault.HALF: 0.5}


@dataclass(frozen=True)
class Config:
    family: Family  # Mechanism
    fault: Fault  # What is wrong with its noise; `SCALED` searches for the largest factor refuted
    trials: int  # Draws for each of the two inputs of one audit
    audits: int  # Number of audits


def compute(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Verdicts and bounds of audits, or the largest noise factors that audits refute."""
    audit_rows = searched if config.fault is Fault.SCALED else verdict
    return [audit_rows(config, int(rng.integers(2**63))) for _ in range(config.audits)]


def verdict(config: Config, seed: int) -> ex.Row:
    """One audit of correct noise or of noise with a fault."""
    seconds: list[float] = []
    with timed(seconds):
        if config.fault in FACTORS:
            factor = FACTORS[config.fault]
            found = audited_scaled(config.family, factor, config.trials, seed)
        else:
            found = audited(config.family, CHANGES[config.fault], config.trials, seed)
    share = found.epsilon_lower_bound / found.claimed_epsilon
    return {"refuted": found.refuted, "share": share, "event": found.event, "seconds": seconds[0]}


def searched(config: Config, seed: int) -> ex.Row:
    """The largest noise factor that audits refute, compared with the best event."""
    family, seconds = config.family, list[float]()
    with timed(seconds):
        factor = largest_factor(
            lambda scale: audited_scaled(family, scale, config.trials, seed).refuted
        )
    row: ex.Row = {"factor": factor, "seconds": seconds[0]}
    if family in KNOWN:
        row["needed"] = draws_needed(laws(family, factor), claim(family)) if factor > 0 else 1.0
        row["best"] = best_factor(lambda scale: laws(family, scale), claim(family), config.trials)
    return row


def claims(table: pd.DataFrame) -> ex.Claims:
    true = table[table.fault == Fault.CORRECT]
    planted = table[table.fault.isin(PLANTED)]
    missed = planted[planted.refuted != True]  # noqa: E712 (a column of objects)
    scaled_noise = table[table.fault == Fault.SCALED]
    power = scaled_noise.groupby(["family", "trials"]).factor.mean()
    grown = power.groupby("family").agg(lambda factors: factors.diff().min())
    known = power[power.index.get_level_values("family").isin(KNOWN)]
    most = known.drop(list(FINITE), errors="ignore").groupby("family").last()
    # Audits of zCDP use more than one event, so the best event is no limit for them.
    shares = shares_of_draws(table).drop([Family.SPARSE, *NORMAL], errors="ignore")
    mean = math.exp(np.log(shares).mean())
    statement = "audits refute no true privacy claim"
    measured = (
        f"{int(true.refuted.sum())} of {len(true)} audits of {true.family.nunique()} mechanisms"
    )
    theory = f"0; each audit errs with probability at most {ex.LEVEL:g}"
    yield ex.Claim(statement, ex.each_case(not true.refuted.any()), measured, theory, "GEN-2")
    statement = "audits refute the claim of every mechanism with a planted fault"
    measured = f"{len(planted) - len(missed)} of {len(planted)}" + "".join(
        f"; not {row.fault} in {row.family}" for row in missed.itertuples()
    )
    theory = f"{len(planted)}, in {planted.family.nunique()} mechanisms"
    yield ex.Claim(statement, ex.each_case(len(missed) == 0), measured, theory, "GEN-2")
    statement = "with more draws, audits refute noise that is nearer to the correct size"
    judged = ex.in_order((grown.dropna() > 0).all())
    measured = f"the largest refuted noise factor rises by at least {grown.min():.2f}"
    yield ex.Claim(statement, judged, measured, "above 0", "Clopper-Pearson 1934")
    statement = (
        "if the density of the noise is known, audits refute noise of 0.7 times the correct size"
    )
    measured = ", ".join(f"{name}: {factor:.2f}" for name, factor in most.items())
    theory = "largest factor refuted with the most draws: at least 0.7"
    yield ex.Claim(statement, ex.at_least(most, 0.7), measured, theory, "Clopper-Pearson 1934")
    yield ex.Claim(
        "if the laws of the outputs are known, the best event refutes the same noise with 1/4 "
        "to 1 times the draws of an audit",
        ex.at_least(shares, LEAST_SHARE)
        & ex.at_most(shares, 1.0)
        & ex.at_least(mean, LEAST_MEAN_SHARE),
        ", ".join(f"{name}: {share:.2f}" for name, share in shares.items()) + f"; mean {mean:.2f}",
        f"without Sparse and zCDP: {LEAST_SHARE:g} to 1 each, {LEAST_MEAN_SHARE:g} or more on "
        "average; audits test on 1/2 of their draws",
        "Neyman-Pearson 1933",
    )


def planted(
    families: Sequence[Family], audits: int, few: int = 4_000, faults: Sequence[Fault] = PLANTED
) -> tuple[Config, ...]:
    """Audits of correct and faulty noise: 40,000 draws for halved noise, otherwise `few` draws."""
    return tuple(
        config
        for family in families
        for config in (
            Config(family, Fault.CORRECT, few, audits),
            *(Config(family, fault, 40_000 if fault is Fault.HALF else few, 1) for fault in faults),
        )
    )


def scaled(families: Sequence[Family], sizes: Mapping[int, int]) -> tuple[Config, ...]:
    """Searches for the largest noise factor refuted; `sizes` maps draws to numbers of searches."""
    return tuple(
        Config(family, Fault.SCALED, trials, searches)
        for family in families
        for trials, searches in sizes.items()
    )


FAST = tuple(family for family in SQUARE if family is not Family.SPECTRAL)
#: Mechanisms for other queries. Faults that need two counting queries are not planted in them. With
#: half the noise, 40,000 draws refute these mechanisms. For `REST`, 40,000 draws are too few.
HALVED = (
    Family.RESIDUAL, Family.SECOND_MOMENT, Family.PAIR_MARGINALS, Family.SMOOTH, Family.EXPONENTIAL,
    Family.NOISY_MAX, Family.PERMUTE,
)  # fmt: skip
REST = (Family.COVARIANCE, Family.ABOVE_THRESHOLD, Family.SPARSE)
#: Mechanisms, apart from spectral noise, whose density is not known. A classifier learns the score.
LEARNED = tuple(
    family for family in Family if family not in KNOWN and family is not Family.SPECTRAL
)
QUICK = ex.Sweep(
    planted(FAST, 2)
    + planted(HALVED, 2, faults=(Fault.HALF,))
    + planted(REST, 2, faults=())
    + scaled(KNOWN, {10_000: 4, 100_000: 1})
)
FULL = ex.Sweep(
    planted(FAST, 10)
    + planted(HALVED, 10, faults=(Fault.HALF,))
    + planted(REST, 10, faults=())
    + planted((Family.SPECTRAL,), 2, few=1_000, faults=UNHIDDEN)
    + scaled(LEARNED, {10_000: 1, 100_000: 1})
    + scaled(KNOWN, {10_000: 8, 100_000: 3, 1_000_000: 1})
)
