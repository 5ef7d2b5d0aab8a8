"""The table of a comparison: every candidate, with its prediction or why it was left out."""

from __future__ import annotations

import math
from typing import TypeAlias

from geomdp.advice.comparison.trials import Built

#: One value for each of `COLUMNS`.
Row: TypeAlias = tuple[str, float, str, str, float, str]
COLUMNS = ("mechanism", "predicted_rmse", "kind", "sampler", "set-up seconds", "why")


def comparison_rows(ranked: list[Built], refused: dict[str, str]) -> tuple[Row, ...]:
    """One row for each of `ranked`, in this order, then one row for each candidate left out.

    Parameters
    ----------
    ranked : list of Built
        The candidates with a prediction.
    refused : dict of str to str
        For the name of each other candidate, the reason why it was left out.
    """
    built = (
        (
            trial.name,
            trial.prediction.value,
            trial.prediction.kind.value,
            str(trial.sampler),
            trial.seconds,
            trial.prediction.source,
        )
        for trial in ranked
    )
    left_out = ((name, math.nan, "", "", math.nan, why) for name, why in refused.items())
    return (*built, *left_out)
