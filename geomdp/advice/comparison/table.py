"""The table of a comparison: every candidate with its prediction, or why it was left out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from geomdp.advice.comparison.trials import Built

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("mechanism", "predicted_rmse", "kind", "sampler", "set-up seconds", "why")


def comparison_table(ranked: list[Built], refused: dict[str, str]) -> pd.DataFrame:
    """One row for each of `ranked`, in this order, then one for each name left out.

    Parameters
    ----------
    ranked : list of Built
        Candidates with a prediction.
    refused : dict of str to str
        Names of the other candidates, with the reason for each.
    """
    from geomdp.advice.printed_table import PrintedTable

    rows: list[tuple[str, float, str, str, float, str]] = [
        (
            trial.name,
            trial.prediction.value,
            trial.prediction.kind.value,
            str(trial.sampler),
            trial.seconds,
            trial.prediction.source,
        )
        for trial in ranked
    ]
    rows += [(name, math.nan, "", "", math.nan, why) for name, why in refused.items()]
    return PrintedTable(rows, columns=[*COLUMNS])
