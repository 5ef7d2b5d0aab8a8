"""The privacy records of `release` and `ask`: JSON with the claim, the question and the method."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass

from geomdp.data import Schema
from geomdp.mechanisms import Mechanism
from geomdp.privacy import Guarantee, Privacy
from geomdp.tabulation.results import Tabulation

#: A record states the versions of these packages, which take part in computing the answers.
RECORDED_DISTRIBUTIONS = ("geomdp", "numpy", "scipy", "numba", "python-flint")


@dataclass(frozen=True)
class Provenance:
    """Facts about a release that its answers do not show.

    The guarantee of the release can be stronger than the one `asked`. `declared_n` is None if
    records were counted.
    """

    spec: str
    source: str
    asked: Privacy
    chosen_by: str
    declared_n: int | None
    seed: int | None
    confidence: float

    def record(self, release: Tabulation) -> str:
        assert release.task.schema is not None  # `geomdp.release` sets it
        own = {
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
            "seed": self.seed,
        }
        schema, n = release.task.schema, release.mechanism.n
        record = privacy_record(
            release.guarantee, self.asked, own, schema, self.source, n, self.declared_n
        )
        return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def privacy_record(
    guarantee: Guarantee,
    asked: Privacy,
    own: Mapping[str, object],
    schema: Schema,
    source: str,
    n: int,
    declared_n: int | None,
) -> dict[str, object]:
    """The privacy record of any command; `own` are the facts that only this command states."""
    return {
        "claim": str(guarantee),
        "guarantee": guarantee.to_dict(),
        "asked": str(asked),
        **own,
        "schema": {"source": source, **schema.to_dict()},
        "n": {"value": n, "source": n_source(declared_n)},
        "versions": {
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in RECORDED_DISTRIBUTIONS},
        },
    }


def n_source(declared_n: int | None) -> str:
    """How the number of records is known: it was counted or declared."""
    return "counted" if declared_n is None else "declared"


def mechanism_name(mechanism: Mechanism) -> str:
    """The name of the class and of any wrapped mechanism, for instance Projected(KNorm)."""
    inner = getattr(mechanism, "inner", None)
    name = type(mechanism).__name__
    return name if inner is None else f"{name}({mechanism_name(inner)})"
