"""Goals of the figure `audit_power`, and how many of an audit's draws the best event needs.

Noise is multiplied by a noise factor below 1. The best event is the event that refutes the privacy
claim for this factor with the fewest draws. `best_events` finds it from the laws of the outputs.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.engine.goals import Aim, Goal
from experiments.privacy.audited_mechanisms import Family
from experiments.privacy.faulty_noise import Fault

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


def shares_of_draws(table: pd.DataFrame) -> pd.Series[float]:
    """By mechanism, the share of an audit's draws that the best event needs for the same factor.

    The shares are geometric means over all searches. Only mechanisms with known laws have a share.
    """
    found = table[(table.fault == Fault.SCALED) & table.needed.notna()]
    logs = np.log(found.needed / found.trials)
    return np.exp(logs.groupby(found.family).mean())


def open_goals(table: pd.DataFrame) -> list[Goal]:
    """Goals for mechanisms, numbers of draws and speed. A goal without rows is left out."""
    factors = table[table.fault == Fault.SCALED]
    return [*_rows(factors), *_sizes(factors), *_spectral(table), *_sparse(table)]


def _rows(factors: pd.DataFrame) -> list[Goal]:
    rows = factors.family.nunique()
    reasons = "; ".join(f"{name}: {reason}" for name, reason in WITHOUT_ROW.items())
    return [
        Goal(
            "mechanisms for which the largest refuted noise factor is measured",
            rows,
            len(Family) + len(WITHOUT_ROW),
            Aim.AT_LEAST,
            reasons,
            "post-processing adds no power: audits of Projected, JL, Coarse, Shrunk and Fitted "
            "have at most the power of audits of the noise inside them, and audits of "
            "SparseProject with Gaussian rows at most the power of audits of Gaussian",
        )
    ]


def _sizes(factors: pd.DataFrame) -> list[Goal]:
    learned = factors[factors.needed.isna()]
    if learned.empty:
        return []
    slowest = learned[learned.trials == learned.trials.max()].seconds
    times = MOST_DRAWS / learned.trials.max()
    return [
        Goal(
            "mechanisms for which the largest refuted noise factor is measured with 10^6 draws",
            factors[factors.trials == MOST_DRAWS].family.nunique(),
            factors.family.nunique(),
            Aim.AT_LEAST,
            f"without a known density, a classifier learns the score: a search took "
            f"{slowest.min():.0f} to {slowest.max():.0f} s at {learned.trials.max():,} draws and "
            f"would take {times:g} times as long at 10^6",
        )
    ]


def _spectral(table: pd.DataFrame) -> list[Goal]:
    mine = table[table.family == Family.SPECTRAL]
    if mine.empty:
        return []
    per_draw = float((mine.seconds / (2 * mine.trials)).median())
    within = AFFORDED / (2 * AUDITS_OF_SEARCH * 10_000)
    fit = AFFORDED / (2 * AUDITS_OF_SEARCH * per_draw)
    return [
        Goal(
            "seconds for one draw of spectral noise",
            per_draw,
            within,
            Aim.AT_MOST,
            f"a search draws for two inputs in {AUDITS_OF_SEARCH} audits; at this speed "
            f"a search of one minute has {fit:,.0f} draws per audit and input, not 10^4",
        )
    ]


def _sparse(table: pd.DataFrame) -> list[Goal]:
    share = shares_of_draws(table).get(Family.SPARSE)
    if share is None:
        return []
    return [
        Goal(
            "Sparse: share of an audit's draws with which the best event refutes the same noise",
            float(share),
            LEAST_SHARE,
            Aim.AT_LEAST,
            "an audit orders transcripts by their probabilities under correct noise; for smaller "
            "noise this is not the best order if two queries are found above the threshold",
        )
    ]
