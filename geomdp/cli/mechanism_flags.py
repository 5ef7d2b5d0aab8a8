"""The flags that choose the mechanism: by least predicted error, by name, or by a saved plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Protocol

from geomdp._validation import positive
from geomdp.advice.advisor import advise_on
from geomdp.advice.candidates import CANDIDATES, FITTED, PROJECTED, SHRUNK, STEPS, Candidate, Step
from geomdp.advice.plan import Plan, load_plan
from geomdp.advice.setting import DEFAULT_BUDGET, UNLIMITED, Budget, InapplicableError, Setting
from geomdp.cli.flags import AUTO
from geomdp.mechanisms import AdditiveMechanism, Mechanism
from geomdp.privacy import Adjacency, Exact, Privacy
from geomdp.workloads import Workload


class Choice(Protocol):
    """A rule that chooses the mechanism for a workload and a known number of records."""

    @property
    def by(self) -> str:
        """The rule in words, for the privacy record."""

    def __call__(
        self, workload: Workload, *, n: int, privacy: Privacy, adjacency: Adjacency
    ) -> Mechanism:
        """The mechanism that the rule chooses."""


@dataclass(frozen=True)
class LeastError:
    """--mechanism auto: the least predicted error, with the limit of --effort on each set-up."""

    exact: bool
    budget: Budget

    by: ClassVar[str] = "least predicted error"

    def __call__(
        self, workload: Workload, *, n: int, privacy: Privacy, adjacency: Adjacency
    ) -> Mechanism:
        return advise_on(Setting(workload, n, privacy, adjacency, self.exact, self.budget)).best


@dataclass(frozen=True)
class Named:
    """--mechanism NAME: take this mechanism; ``ValueError`` for an unknown name."""

    flag: str
    exact: bool

    by: ClassVar[str] = "the user"

    def __post_init__(self) -> None:
        _parsed(self.flag)

    def __call__(
        self, workload: Workload, *, n: int, privacy: Privacy, adjacency: Adjacency
    ) -> Mechanism:
        return build_mechanism(self.flag, Setting(workload, n, privacy, adjacency, self.exact))


@dataclass(frozen=True)
class Planned:
    """--plan FILE: take the mechanism that `geomdp advise --save-plan FILE` chose."""

    path: Path
    plan: Plan
    exact: bool

    @property
    def by(self) -> str:
        return f"the plan in {self.path}"

    def __call__(
        self, workload: Workload, *, n: int, privacy: Privacy, adjacency: Adjacency
    ) -> Mechanism:
        try:
            mechanism = self.plan(workload, n=n, privacy=privacy, adjacency=adjacency)
        except ValueError as error:
            raise ValueError(f"--plan {self.path}: {error}") from error
        _check_sampler(mechanism, self.exact, f"--plan {self.path}")
        return mechanism


def choice_of(
    mechanism: str, exact: bool, effort: float | None = None, plan: Path | None = None
) -> Choice:
    """The choice by --mechanism, --exact, --effort and --plan; ``ValueError`` if they are wrong."""
    if plan is not None and (mechanism != AUTO or effort is not None):
        raise ValueError("--plan excludes --mechanism and --effort: the plan names the mechanism")
    if plan is not None:
        return Planned(plan, load_plan(plan), exact)
    if mechanism == AUTO:
        return LeastError(exact, budget_of(effort))
    if effort is not None:
        raise ValueError(f"--effort needs --mechanism {AUTO}, got --mechanism {mechanism}")
    return Named(mechanism, exact)


def budget_of(effort: float | None) -> Budget:
    """The limit on the set-up cost of one candidate; ``ValueError`` if --effort is not above 0."""
    if effort is None:
        return DEFAULT_BUDGET
    return Budget.of_seconds(positive(effort, "--effort"))


def build_mechanism(flag: str, setting: Setting) -> Mechanism:
    """The mechanism named `flag`, at any cost; ``ValueError`` if unknown or not applicable."""
    step, row = _parsed(flag)
    try:
        # `_check_sampler` below checks exactness, because its message names the flag.
        mechanism = row.built(replace(setting, exact_only=False, budget=UNLIMITED))
    except InapplicableError as error:
        raise ValueError(f"--mechanism {flag} does not apply: {error}") from error
    if step is not None:
        assert isinstance(mechanism, AdditiveMechanism)
        mechanism = step.kind(mechanism)
    _check_sampler(mechanism, setting.exact_only, f"--mechanism {flag}")
    return mechanism


def _check_sampler(mechanism: Mechanism, exact: bool, flag: str) -> None:
    """If `exact` is true and the sampler is not exact, raise a ``ValueError`` that names `flag`."""
    if exact and not isinstance(mechanism.guarantee.sampler, Exact):
        raise ValueError(
            f"{flag} needs --allow-heuristic here: its sampler is {mechanism.guarantee.sampler}"
        )


def _parsed(flag: str) -> tuple[Step | None, Candidate]:
    """The post-processing step that the prefix of `flag` names (or None), and the candidate."""
    step = next((step for step in STEPS if flag.startswith(step.prefix)), None)
    plain = flag if step is None else flag.removeprefix(step.prefix)
    row = next((row for row in CANDIDATES if row.flag == plain), None)
    if row is None:
        known = ", ".join(row.flag for row in CANDIDATES)
        raise ValueError(
            f"--mechanism must be {AUTO} or one of {known}, or {PROJECTED.prefix}, {FITTED.prefix} "
            f"or {SHRUNK.prefix} before one of them; got {flag!r}"
        )
    if step is not None and step not in row.steps:
        raise ValueError(f"--mechanism {plain} projects its answers already, got {flag!r}")
    return step, row
