"""The privacy record of a release: what is claimed, predicted and was run, as one JSON object."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from dataclasses import dataclass

from geomdp.cli.inputs import PublicSchema
from geomdp.mechanisms import Mechanism
from geomdp.tabulation.results import Tabulation

#: Distributions whose versions go into a record: those that touch the released numbers.
RECORDED_DISTRIBUTIONS = ("geomdp", "numpy", "scipy", "numba")


@dataclass(frozen=True)
class Provenance:
    """How a release came about.

    Parameters
    ----------
    spec : str
        Workload as written on the command line.
    schema : PublicSchema
        Columns and levels.
    chosen_by : str
        Who chose it.
    declared_n : int or None
        The number of records, if it was declared.
    seed : int or None
        Seed of the noise, if one was given.
    confidence : float
        That of the intervals.
    """

    spec: str
    schema: PublicSchema
    chosen_by: str
    declared_n: int | None
    seed: int | None
    confidence: float

    @property
    def n_source(self) -> str:
        """Where the number of records is from."""
        return "counted" if self.declared_n is None else "declared"

    def claim(self, release: Tabulation) -> str:
        """The privacy statement of the release as a whole.

        An inferred schema depends on the records, so there is no guarantee, whatever the mechanism.
        """
        if self.schema.caveat is None:
            return str(release.guarantee)
        seeded = "seeded: " if release.guarantee.seeded else ""
        return f"{seeded}no privacy claim: {self.schema.caveat}"

    def record(self, release: Tabulation) -> str:
        """The privacy record as JSON text."""
        record = {
            "claim": self.claim(release),
            # The mechanism's own statement takes the schema for public: the claim stands for it.
            "guarantee": release.guarantee.to_dict() | {"statement": self.claim(release)},
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
            "schema": self.schema.source,
            "n": {"value": release.mechanism.n, "source": self.n_source},
            "seed": self.seed,
            "versions": {
                "python": platform.python_version(),
                **{name: importlib.metadata.version(name) for name in RECORDED_DISTRIBUTIONS},
            },
        }
        return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def mechanism_name(mechanism: Mechanism) -> str:
    """Class name, with that of the mechanism inside: Projected(KNorm)."""
    inner = getattr(mechanism, "inner", None)
    name = type(mechanism).__name__
    return name if inner is None else f"{name}({mechanism_name(inner)})"
