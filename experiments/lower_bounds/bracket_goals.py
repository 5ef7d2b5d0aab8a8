"""Goals for the widths of brackets, by epsilon.

A bracket is a lower and an upper bound on the number of records that a mechanism needs.
"""

from __future__ import annotations

import itertools

import pandas as pd

from experiments.engine.goals import Aim, Goal
from experiments.lower_bounds.argument_goals import goals_on_arguments
from experiments.lower_bounds.bracket_problems import Error, Guarantee

#: Goals for the ratio of the two bounds. `MEDIAN` is the goal for the median ratio. `LARGEST` has a
#: goal for the largest ratio in each range of epsilon; the keys are the upper ends of the ranges.
MEDIAN = 4.0
LARGEST = {1.0: 12.0, 10.0: 20.0}
#: Number of guarantees for which brackets are wanted: pure, zero-concentrated and approximate.
GUARANTEES = 3


def ratio(table: pd.DataFrame) -> pd.Series[float]:
    """The largest number of records in the bracket divided by the smallest."""
    return table.upper / (table.lower + 1)


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """The goals over the standard and the random workloads together."""
    crossed = table[table.lower >= table.upper]
    kinds = table.guarantee.unique()
    pure = table[table.guarantee == Guarantee.PURE]
    return [
        _median(pure),
        *(_largest(pure, above, up_to) for above, up_to in _ranges(pure)),
        *(_of_guarantee(table, kind) for kind in kinds if kind != Guarantee.PURE),
        Goal(
            "brackets whose lower and upper bound cross",
            len(crossed),
            0,
            Aim.AT_MOST,
            "; ".join(map(_words, crossed.itertuples())) or "none crosses",
            f"{len(table)} brackets, {(table.draw > 0).sum()} of them of random workloads",
        ),
        Goal(
            "guarantees (pure, zero-concentrated, approximate) that have brackets",
            len(kinds),
            GUARANTEES,
            Aim.AT_LEAST,
            f"the table has rows for {', '.join(kinds)} differential privacy only",
        ),
        *goals_on_arguments(table),
    ]


def _of_guarantee(table: pd.DataFrame, kind: str) -> Goal:
    """The widest bracket under a guarantee that is not pure."""
    mine = table[table.guarantee == kind]
    wide = ratio(mine)
    return Goal(
        f"largest ratio of upper bound to 1 + lower bound under {kind} privacy",
        float(wide.max()),
        LARGEST[1.0],
        Aim.AT_MOST,
        "lower bounds come from data sets on lines only; widest: "
        f"{_words(mine.loc[wide.idxmax()])}",
        f"{len(mine)} brackets, median {wide.median():.3g}",
    )


def _ranges(table: pd.DataFrame) -> list[tuple[float, float]]:
    """Intervals of epsilon that have a goal and rows in the table."""
    pairs = itertools.pairwise([0.0, *LARGEST])
    return [(low, high) for low, high in pairs if table.epsilon.between(low, high, "right").any()]


def _median(table: pd.DataFrame) -> Goal:
    mine = table[table.epsilon <= min(LARGEST)]
    wide = ratio(mine)
    above = int((wide > MEDIAN).sum())
    return Goal(
        f"median ratio of upper bound to 1 + lower bound, epsilon at most {min(LARGEST):g}",
        float(wide.median()),
        MEDIAN,
        Aim.AT_MOST,
        f"{above} of {len(mine)} brackets are wider than {MEDIAN:g}",
        _medians(mine),
    )


def _medians(table: pd.DataFrame) -> str:
    """The median ratios of the standard and of the random workloads, in words."""
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
        f"largest ratio of upper bound to 1 + lower bound, epsilon above {above:g} and at most "
        f"{up_to:g}",
        float(wide.max()),
        LARGEST[up_to],
        Aim.AT_MOST,
        f"{wider} of {len(mine)} brackets are wider than {LARGEST[up_to]:g}: "
        + _why(mine[wide > LARGEST[up_to]]),
        f"widest: {_words(worst)}",
    )


def _why(wide: pd.DataFrame) -> str:
    """Why brackets are wide: the number of brackets for each of three reasons."""
    nothing, largest = wide.lower == 0, (wide.lower > 0) & (wide.error == Error.WORST)
    reasons = {
        "exclude no record: our mechanisms add noise as large as the change by one record, but "
        "some mechanism might nearly always answer exactly": nothing,
        "are in worst-case error, where the lower bound grows with the logarithm of the number of "
        "queries, or is the bound for the root mean square": largest,
        "have a lower bound from few data sets": ~(nothing | largest),
    }
    return "; ".join(f"{rows.sum()} {why}" for why, rows in reasons.items() if rows.any())


def _words(row: object) -> str:
    names = ("workload", "error", "epsilon", "alpha", "lower", "upper")
    workload, error, epsilon, alpha, lower, upper = (getattr(row, name) for name in names)
    return f"{workload}, {error} error {alpha:g}, epsilon {epsilon:g}: {lower:g} to {upper:g}"
