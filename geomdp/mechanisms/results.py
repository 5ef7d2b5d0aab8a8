"""What a mechanism returns: a prediction before it sees data, and a release afterwards."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass

from geomdp._typing import FloatArray
from geomdp.privacy import Guarantee


class PredictionKind(enum.StrEnum):
    """What a predicted error is."""

    #: An equality for every data set (its value may be estimated: then `stderr` is above 0).
    EXACT = "exact"
    #: A bound that holds for every data set.
    UPPER_BOUND = "upper_bound"
    #: A simulation on a stated public prior over data sets.
    PRIOR = "prior"


@dataclass(frozen=True)
class Prediction:
    """Root mean squared error per query, (E ||M(X) - Q(X)||_2^2 / m)^(1/2), before any data.

    Parameters
    ----------
    value : float
        The predicted error, in the units of the answers (means).
    kind : PredictionKind
        Equality, worst-case bound, or simulated on a prior.
    source : str
        Formula-sheet id and what in it was estimated, if anything.
    stderr : float
        Standard error of `value` from that estimation; 0 if none.
    """

    value: float
    kind: PredictionKind
    source: str
    stderr: float = 0.0

    def __float__(self) -> float:
        return self.value

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return {
            "value": self.value,
            "kind": self.kind.value,
            "source": self.source,
            "stderr": self.stderr,
        }


@dataclass(frozen=True)
class Release:
    """Private answers with the claim that goes with them.

    Parameters
    ----------
    answers : (m,) array
        Private mean answers, in the order of the workload's queries.
    guarantee : Guarantee
        The privacy record of this release.
    predicted_rmse : Prediction
        The error predicted before the data were seen.
    """

    answers: FloatArray
    guarantee: Guarantee
    predicted_rmse: Prediction

    def to_json(self) -> str:
        """Answers, privacy record and prediction as one JSON object."""
        record = {
            "answers": self.answers.tolist(),
            "guarantee": self.guarantee.to_dict(),
            "predicted_rmse": self.predicted_rmse.to_dict(),
        }
        return json.dumps(record, indent=2)
