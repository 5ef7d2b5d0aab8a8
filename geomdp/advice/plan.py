"""A plan: the choice of a mechanism, which can be saved and used later without a comparison."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._validation import require_type, whole
from geomdp.advice.advisor import Advice
from geomdp.advice.candidates import CANDIDATES, STEPS
from geomdp.advice.setting import UNLIMITED, InapplicableError, Setting
from geomdp.mechanisms import AdditiveMechanism, Mechanism
from geomdp.privacy import Adjacency, Privacy
from geomdp.privacy.definitions import checked_adjacency
from geomdp.workloads import Workload, explicit_answers

#: If all elements of the universe together have at most this many answers, a hash of all answers
#: identifies the workload.
HASHED = 1 << 22
#: For larger workloads, the answers of at most this many elements are hashed.
ELEMENTS = 64


@dataclass(frozen=True)
class Plan:
    """The mechanism that answers a workload, chosen before any record was seen.

    A plan can be called like the class of a mechanism, and can be given in place of such a class:
    ``gd.release(records, schema, "marginals:2", epsilon=1.0, mechanism=plan)``. It stores no noise.
    Calling it builds the mechanism, whose constructor makes the privacy claim.

    Parameters
    ----------
    mechanism : str
        Name of the mechanism, as the flag `--mechanism` takes it.
    workload : str
        Hash of the queries.
    privacy : str
        The guarantee that was asked for, in words. The mechanism can have a stronger one.
    adjacency : str
        Neighbour relation.
    n : int
        Number of records for which the mechanism was chosen. For another number, its guarantee and
        prediction hold too, but another mechanism may be better.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload, privacy = gd.workloads.Prefixes(8), gd.PureDP(1.0)
    >>> plan = gd.advice.plan_of(gd.advise(workload, n=1000, privacy=privacy))
    >>> plan.mechanism, plan.n
    ('projected-knorm-exact', 1000)
    >>> mechanism = plan(workload, n=1100, privacy=privacy)
    >>> mechanism.n
    1100
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
        """Build the mechanism of the plan for `n` records.

        ``ValueError`` if the workload, the guarantee or the neighbour relation differs from the
        plan, or the plan names no mechanism of this package, or one that does not apply.
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
        # The cost of the set-up has no limit, because the mechanism was already chosen.
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
    """The plan for the mechanism that `advise` found best.

    Examples
    --------
    >>> import geomdp as gd
    >>> advice = gd.advise(gd.workloads.Prefixes(8), n=1000, privacy=gd.PureDP(1.0))
    >>> plan = gd.advice.plan_of(advice)
    >>> plan.mechanism == advice.flag, plan.privacy, plan.adjacency
    (True, '1-DP', 'replace-one')
    """
    require_type(advice, Advice, "advice")
    best = advice.best
    guarantee = best.guarantee
    return Plan(
        mechanism=advice.flag,
        workload=workload_hash(best.workload),
        privacy=str(advice.asked),
        adjacency=guarantee.adjacency.value,
        n=best.n,
    )


def save_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write a plan to a new file as JSON; ``FileExistsError`` if the file exists.

    Examples
    --------
    >>> import geomdp as gd
    >>> advice = gd.advise(gd.workloads.Prefixes(8), n=1000, privacy=gd.PureDP(1.0))
    >>> plan = gd.advice.plan_of(advice)
    >>> gd.advice.save_plan(plan, "plan.json")
    >>> gd.advice.load_plan("plan.json") == plan
    True
    """
    with Path(path).open("x", encoding="utf-8") as file:
        json.dump(dataclasses.asdict(plan), file, indent=2)
        file.write("\n")


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan from a file that `save_plan` wrote; ``ValueError`` if the file holds no plan.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload, privacy = gd.workloads.Prefixes(8), gd.PureDP(1.0)
    >>> advice = gd.advise(workload, n=1000, privacy=privacy)
    >>> gd.advice.save_plan(gd.advice.plan_of(advice), "plan.json")
    >>> plan = gd.advice.load_plan("plan.json")
    >>> plan(workload, n=1000, privacy=privacy).predicted_rmse == advice.best.predicted_rmse
    True
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # ValueError also for very long numbers
        raise ValueError(f"{path} must hold a plan as JSON: {error}") from error
    kinds = {"mechanism": str, "workload": str, "privacy": str, "adjacency": str, "n": int}
    if not isinstance(found, dict) or {name: type(part) for name, part in found.items()} != kinds:
        raise ValueError(f"{path} must hold a plan with {', '.join(kinds)}, got {found!r}")
    return replace(Plan(**found), n=whole(found["n"], "n"))


@functools.lru_cache(maxsize=2)
def workload_hash(workload: Workload) -> str:
    """Hash of the type, the universe and the answers of all, or of 64 publicly drawn, elements."""
    universe, m = workload.universe, workload.n_queries
    digest = hashlib.sha256(f"{type(workload).__name__} {m} {universe!r}".encode())
    if universe.size is not None and universe.size * m <= HASHED:
        answers = explicit_answers(workload)
    else:
        count = max(1, min(ELEMENTS, HASHED // m))
        answers = workload.evaluate(universe.sample(count, np.random.default_rng(PUBLIC_SEED)))
    digest.update(np.ascontiguousarray(answers).tobytes())
    return digest.hexdigest()
