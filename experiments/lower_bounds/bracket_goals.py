"""Goals for the widths of brackets, by epsilon.

A bracket is a lower and an upper bound on the number of records that a mechanism needs.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd

from experiments.engine.claims import Aim, Goal
from experiments.lower_bounds.bracket_problems import Error, Guarantee

#: Goal for the sum of the squared lengths of orthogonal lines, as a share of the squared
#: factorisation norm. The lines are those that the search finds for a tiny error, which takes many
#: records.
SHARE = 0.9
#: A volume packing matters if it could raise a lower bound by more than this factor.
RAISED = 1.5


def goals_on_arguments(table: pd.DataFrame) -> list[Goal]:
    """One goal for each argument that has rows in the table."""
    found = []
    for column, goal in (("norm", _norms), ("volume", _volumes), ("row_products", _row_products)):
        rows = table[table[column].notna()] if column in table else table.iloc[:0]
        if len(rows):
            found.append(goal(rows))
    return found


def _norms(rows: pd.DataFrame) -> Goal:
    """Goal for the share of the squared factorisation norm that orthogonal lines reach."""
    shares, own = rows.all_lines / rows.norm, rows.own_lines / rows.norm
    few = own[own > 0]
    worst = rows.loc[shares.idxmin()]
    beside = f"{len(rows)} rows, median {shares.median():.3g} with lines for many records"
    if len(few):
        beside += f"; lines of the lower bounds themselves reach {few.min():.3g} to {few.max():.3g}"
    if len(few) < len(rows):
        beside += f"; {len(rows) - len(few)} of the lower bounds are not from lines"
    return Goal(
        "least share of the squared factorisation norm that orthogonal lines reach",
        float(shares.min()),
        SHARE,
        Aim.AT_LEAST,
        "the search for lines takes at most as many pairs as there are dimensions; for a "
        f"histogram, only weights on all pairs are optimal. Least: {worst.workload}. For many "
        "records, more pairs would raise a lower bound by a factor of at most "
        f"{1 / math.sqrt(shares.min()):.3g}",
        beside,
    )


def _volumes(rows: pd.DataFrame) -> Goal:
    """Goal for how many lower bounds volume packings might raise by a factor above `RAISED`."""
    factors = volume_gains(rows)
    largest = rows.error == Error.WORST
    mean, worst = factors[~largest], factors[largest]
    above = mean[mean > RAISED].groupby(rows.workload).max().sort_values(ascending=False)
    named = ", ".join(f"{workload} {factor:.3g}" for workload, factor in above.items())
    none = rows.lower[mean.index] == 0
    beside = (
        f"{len(mean)} rows in mean l2 or root mean square error; {(mean > 1).sum()} could rise at "
        f"all, by a factor of at most {max(mean[~none], default=1.0):.3g}"
    )
    if none.any():
        beside += f", or from 0 to at most {mean[none].max() - 1:.0f} records"
    if len(worst):
        beside += (
            f"; in worst-case error, where the ceiling is cruder, {(worst > RAISED).sum()} of "
            f"{len(worst)} rows by more than {RAISED:g}, at most {worst.max():.3g}"
        )
    return Goal(
        f"lower bounds that volume packings might raise by a factor above {RAISED:g}",
        int((mean > RAISED).sum()),
        0,
        Aim.AT_MOST,
        "the ceilings on what volumes could prove do not exclude a gain. They use upper bounds in "
        f"place of volumes and treat records as divisible. Largest factors: {named}",
        beside,
    )


def _row_products(rows: pd.DataFrame) -> Goal:
    """Goal for the number of lower bounds that row products of marginals could raise."""
    excluded = np.ceil(rows.row_products) - 1
    named = ", ".join(map(str, rows.workload[excluded > rows.lower].unique()))
    return Goal(
        "lower bounds that row products of marginals could raise",
        int((excluded > rows.lower).sum()),
        0,
        Aim.AT_MOST,
        f"row products might exclude more records than the lower bounds of {named}",
        f"{len(rows)} rows; row products exclude at most "
        f"{(excluded / rows.lower.clip(lower=1)).max():.3g} times the records of the lower bound",
    )


def volume_gains(rows: pd.DataFrame) -> pd.Series[float]:
    """Largest factor by which a volume packing could raise 1 + the lower bound, for each row.

    A packing excludes fewer records than the ceiling in the column `volume`, and fewer records than
    the upper bound of the row.
    """
    excluded = np.minimum(np.ceil(rows.volume) - 1, rows.upper - 1)
    factors: pd.Series[float] = ((excluded + 1) / (rows.lower + 1)).clip(lower=1)
    return factors


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
