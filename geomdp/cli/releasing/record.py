"""The privacy record of a release: one JSON object.

The object holds the privacy claim, the predicted error, and how the answers were computed.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
from dataclasses import dataclass

from geomdp.mechanisms import Mechanism
from geomdp.privacy import Privacy
from geomdp.tabulation.results import Tabulation

#: A record states the versions of these packages, which take part in computing the answers.
RECORDED_DISTRIBUTIONS = ("geomdp", "numpy", "scipy", "numba", "python-flint")


@dataclass(frozen=True)
class Provenance:
    """Facts about a release that its answers do not show.

    Parameters
    ----------
    spec : str
        Workload as written on the command line.
    source : str
        The origin of the schema, in words.
    asked : PureDP, ApproxDP or ZCDP
        The guarantee that was asked for. The guarantee of the release can be stronger.
    chosen_by : str
        Who or what chose the mechanism, in words.
    declared_n : int or None
        The number of records if it was declared; None if it was counted.
    seed : int or None
        Seed of the noise, if one was given.
    confidence : float
        Confidence of the intervals.
    """

    spec: str
    source: str
    asked: Privacy
    chosen_by: str
    declared_n: int | None
    seed: int | None
    confidence: float

    @property
    def n_source(self) -> str:
        """How the number of records is known: it was counted or declared."""
        return "counted" if self.declared_n is None else "declared"

    def record(self, release: Tabulation) -> str:
        """The privacy record as JSON text."""
        assert release.task.schema is not None  # `geomdp.release` sets it
        record = {
            "claim": str(release.guarantee),
            "guarantee": release.guarantee.to_dict(),
            "asked": str(self.asked),
            "predicted_rmse": release.predicted_rmse.to_dict(),
            "mechanism": {"name": mechanism_name(release.mechanism), "chosen_by": self.chosen_by},
            "answers": {
                "form": release.statement,
                "confidence": self.confidence if release.has_intervals else None,
            },
            "workload": {
                "spec": self.spec,
                "description": release.task.description,
                "columns": list(release.task.columns),
                "queries": release.task.workload.n_queries,
            },
            "schema": {"source": self.source, **release.task.schema.to_dict()},
            "n": {"value": release.mechanism.n, "source": self.n_source},
            "seed": self.seed,
            "versions": {
                "python": platform.python_version(),
                **{name: importlib.metadata.version(name) for name in RECORDED_DISTRIBUTIONS},
            },
        }
        return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def mechanism_name(mechanism: Mechanism) -> str:
    """The name of the class and of any wrapped mechanism, for instance Projected(KNorm)."""
    inner = getattr(mechanism, "inner", None)
    name = type(mechanism).__name__
    return name if inner is None else f"{name}({mechanism_name(inner)})"
