"""Goals on three arguments that no bracket uses: how much each could raise a lower bound at most.

The numbers `SHARE` and `RAISED` were chosen before the measurements.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from experiments.engine.goals import Aim, Goal
from experiments.lower_bounds.bracket_problems import Error

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
