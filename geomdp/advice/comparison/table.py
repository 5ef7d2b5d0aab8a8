"""The table of all candidates, with a prediction or the reason for leaving the candidate out."""

from __future__ import annotations

import math
from typing import NamedTuple

from geomdp.advice.comparison.trials import Built


class Row(NamedTuple):
    """One candidate, with a value for each of `COLUMNS`.

    If the candidate was left out, only `mechanism` and `why` have a value. The other texts are
    empty, and the numbers are nan.
    """

    mechanism: str
    predicted_rmse: float
    kind: str
    simulated_rmse: float
    sampler: str
    seconds: float
    why: str

    @property
    def applies(self) -> bool:
        """Whether the candidate has a prediction."""
        return not math.isnan(self.predicted_rmse)


COLUMNS = (
    "mechanism",
    "predicted_rmse",
    "kind",
    "simulated_rmse",
    "sampler",
    "set-up seconds",
    "why",
)


def comparison_rows(ranked: list[Built], refused: dict[str, str]) -> tuple[Row, ...]:
    """Rows for the candidates in `ranked`, in this order, then rows for the candidates left out.

    Parameters
    ----------
    ranked : list of Built
        The candidates with a prediction.
    refused : dict of str to str
        For the name of each other candidate, the reason why it was left out.
    """
    built = (
        Row(
            trial.name,
            trial.prediction.value,
            trial.prediction.kind.value,
            trial.simulated,
            str(trial.sampler),
            trial.seconds,
            trial.prediction.source,
        )
        for trial in ranked
    )
    left_out = (
        Row(name, math.nan, "", math.nan, "", math.nan, why) for name, why in refused.items()
    )
    return (*built, *left_out)
