"""How narrow brackets are to be: the typical and the widest, for small and for large epsilon."""

from __future__ import annotations

import itertools

import pandas as pd

from experiments.engine.goals import Aim, Goal

#: Ratios of the two sides that are aimed at: the median, and the largest up to a privacy loss.
MEDIAN = 4.0
LARGEST = {1.0: 12.0, 10.0: 20.0}
#: Guarantees for which brackets are wanted: pure, zero-concentrated and approximate.
GUARANTEES = 3


def ratio(table: pd.DataFrame) -> pd.Series[float]:
    """The largest sc in the bracket divided by the smallest."""
    return table.upper / (table.lower + 1)


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """The goals over the standard and the random workloads together."""
    crossed = table[table.lower >= table.upper]
    kinds = table.guarantee.unique()
    return [
        _median(table),
        *(_largest(table, above, up_to) for above, up_to in _ranges(table)),
        Goal(
            "brackets whose sides cross",
            len(crossed),
            0,
            Aim.AT_MOST,
            "; ".join(map(_words, crossed.itertuples())) or "none crosses",
            f"{len(table)} brackets, {(table.draw > 0).sum()} of them of random workloads",
        ),
        Goal(
            "guarantees with a bracket",
            len(kinds),
            GUARANTEES,
            Aim.AT_LEAST,
            f"`sample_complexity_bracket` is about {', '.join(kinds)} differential privacy only",
        ),
    ]


def _ranges(table: pd.DataFrame) -> list[tuple[float, float]]:
    """Intervals of epsilon with a goal in which the table has rows."""
    pairs = itertools.pairwise([0.0, *LARGEST])
    return [(low, high) for low, high in pairs if table.epsilon.between(low, high, "right").any()]


def _median(table: pd.DataFrame) -> Goal:
    mine = table[table.epsilon <= min(LARGEST)]
    wide = ratio(mine)
    above = int((wide > MEDIAN).sum())
    return Goal(
        f"median ratio of the sides, epsilon at most {min(LARGEST):g}",
        float(wide.median()),
        MEDIAN,
        Aim.AT_MOST,
        f"{above} of {len(mine)} brackets are wider than {MEDIAN:g}",
        _medians(mine),
    )


def _medians(table: pd.DataFrame) -> str:
    """Medians of the standard and of the random workloads."""
    wide = ratio(table)
    parts = {"standard": table.draw == 0, "random": table.draw > 0}
    return "; ".join(
        f"{name} workloads: {wide[mine].median():.3g}" for name, mine in parts.items() if mine.any()
    )


def _largest(table: pd.DataFrame, above: float, up_to: float) -> Goal:
    mine = table[table.epsilon.between(above, up_to, "right")]
    wide = ratio(mine)
    worst = mine.loc[wide.idxmax()]
    wider = int((wide > LARGEST[up_to]).sum())
    return Goal(
        f"largest ratio of the sides, epsilon above {above:g} and at most {up_to:g}",
        float(wide.max()),
        LARGEST[up_to],
        Aim.AT_MOST,
        f"{wider} of {len(mine)} brackets are wider than {LARGEST[up_to]:g}; in the widest "
        + (
            "no lower bound excludes a record"
            if worst.lower == 0
            else f"the lower bound excludes {worst.lower:g} records"
        ),
        f"widest: {_words(worst)}",
    )


def _words(row: object) -> str:
    names = ("workload", "error", "epsilon", "alpha", "lower", "upper")
    workload, error, epsilon, alpha, lower, upper = (getattr(row, name) for name in names)
    return f"{workload}, {error} error {alpha:g}, epsilon {epsilon:g}: {lower:g} to {upper:g}"
