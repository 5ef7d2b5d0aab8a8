"""The table of all candidates, with a prediction or the reason for leaving the candidate out."""

from __future__ import annotations

import math
from typing import NamedTuple

from geomdp.advice.comparison.trials import Built


class Row(NamedTuple):
    """One candidate, with a value for each of `COLUMNS`; only `mechanism` and `why` if left out."""

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
    """Rows for `ranked` candidates, then for those left out, with the reasons in `refused`."""
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
