"""The privacy record of a release: what is claimed, predicted and was run, as one JSON object."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from dataclasses import dataclass

from geomdp.cli.inputs import PublicSchema
from geomdp.mechanisms import Mechanism, Release
from geomdp.tabulation.specs import Task

#: Distributions whose versions go into a record: those that touch the released numbers.
RECORDED_DISTRIBUTIONS = ("geomdp", "numpy", "scipy", "numba")


@dataclass(frozen=True)
class Provenance:
    """How a release came about.

    Parameters
    ----------
    spec : str
        Workload as written on the command line.
    task : Task
        What it stands for.
    schema : PublicSchema
        Columns and levels.
    mechanism : Mechanism
        What ran.
    chosen_by : str
        Who chose it.
    n_source : str
        Where the number of records is from.
    seed : int or None
        Seed of the noise, if one was given.
    """

    spec: str
    task: Task
    schema: PublicSchema
    mechanism: Mechanism
    chosen_by: str
    n_source: str
    seed: int | None

    def claim(self, release: Release) -> str:
        """The privacy statement of the release as a whole.

        An inferred schema depends on the records, so there is no guarantee, whatever the mechanism.
        """
        if self.schema.caveat is None:
            return str(release.guarantee)
        seeded = "seeded: " if release.guarantee.seeded else ""
        return f"{seeded}no privacy claim: {self.schema.caveat}"

    def record(self, release: Release) -> str:
        """The privacy record as JSON text."""
        record = {
            "claim": self.claim(release),
            # The mechanism's own statement takes the schema for public: the claim stands for it.
            "guarantee": release.guarantee.to_dict() | {"statement": self.claim(release)},
            "predicted_rmse": release.predicted_rmse.to_dict(),
            "mechanism": {"name": mechanism_name(self.mechanism), "chosen_by": self.chosen_by},
            "workload": {
                "spec": self.spec,
                "description": self.task.description,
                "columns": list(self.task.columns),
                "queries": self.task.workload.n_queries,
            },
            "schema": self.schema.source,
            "n": {"value": self.mechanism.n, "source": self.n_source},
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
