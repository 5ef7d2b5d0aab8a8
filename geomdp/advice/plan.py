"""A plan: the choice of a mechanism, saved to be used later without comparing again."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from geomdp._validation import whole
from geomdp.advice.advisor import Advice
from geomdp.advice.candidates import CANDIDATES
from geomdp.advice.known_moments import workload_hash
from geomdp.advice.setting import UNLIMITED, InapplicableError, Setting
from geomdp.advice.steps import STEPS
from geomdp.mechanisms import AdditiveMechanism, Mechanism
from geomdp.privacy import Adjacency, Privacy
from geomdp.privacy.definitions import checked_adjacency
from geomdp.workloads import Workload


@dataclass(frozen=True)
class Plan:
    """Which mechanism answers a workload, decided before any record was seen.

    A plan is called like a mechanism's class, so it takes the place of one:
    ``gd.release(records, schema, "marginals:2", epsilon=1.0, mechanism=plan)``. It holds names and
    no noise: the mechanism is built, and its privacy claimed, when the plan is called.

    Parameters
    ----------
    mechanism : str
        Name of the mechanism, as `--mechanism` takes it.
    workload : str
        Hash of the queries that were planned for.
    privacy : str
        Guarantee that was planned for.
    adjacency : str
        Neighbour relation.
    n : int
        Number of records that was planned for. Another one is allowed: the mechanism then may not
        be the best, but its guarantee and prediction hold.
    """

    mechanism: str
    workload: str
    privacy: str
    adjacency: str
    n: int

    def __call__(
        self,
        workload: Workload,
        *,
        n: int,
        privacy: Privacy,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
    ) -> Mechanism:
        """The planned mechanism, built for `n` records.

        Raises
        ------
        ValueError
            For another workload, guarantee or neighbour relation than was planned for, or a
            mechanism that does not exist.
        """
        asked = {
            "workload": workload_hash(workload),
            "privacy": str(privacy),
            "adjacency": checked_adjacency(adjacency).value,
        }
        for name, value in asked.items():
            if value != getattr(self, name):
                raise ValueError(
                    f"{name} must be the one that was planned for, {getattr(self, name)}, "
                    f"got {value}"
                )
        step = next((step for step in STEPS if self.mechanism.startswith(step.prefix)), None)
        flag = self.mechanism if step is None else self.mechanism.removeprefix(step.prefix)
        row = next((row for row in CANDIDATES if row.flag == flag), None)
        if row is None or (step is not None and step not in row.steps):
            raise ValueError(f"plan must name a mechanism, got {self.mechanism!r}")
        # The effort was spent when the choice was made.
        setting = Setting(workload, whole(n, "n"), privacy, adjacency, False, UNLIMITED)
        try:
            mechanism = row.built(setting)
        except InapplicableError as error:
            raise ValueError(f"{self.mechanism} does not apply: {error}") from error
        if step is None:
            return mechanism
        assert isinstance(mechanism, AdditiveMechanism)
        return step.kind(mechanism)


def plan_of(advice: Advice) -> Plan:
    """The plan to use the mechanism that was advised."""
    best = advice.best
    guarantee = best.guarantee
    return Plan(
        mechanism=advice.flag,
        workload=workload_hash(best.workload),
        privacy=str(guarantee.privacy),
        adjacency=guarantee.adjacency.value,
        n=best.n,
    )


def save_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write a plan as JSON to a file that does not exist yet; ``FileExistsError`` if it does."""
    with Path(path).open("x", encoding="utf-8") as file:
        json.dump(dataclasses.asdict(plan), file, indent=2)
        file.write("\n")


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """The plan in a file that `save_plan` wrote; ``ValueError`` for any other content."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must hold a plan as JSON: {error}") from error
    kinds = {"mechanism": str, "workload": str, "privacy": str, "adjacency": str, "n": int}
    if not isinstance(found, dict) or {name: type(part) for name, part in found.items()} != kinds:
        raise ValueError(f"{path} must hold a plan with {', '.join(kinds)}, got {found!r}")
    return replace(Plan(**found), n=whole(found["n"], "n"))
