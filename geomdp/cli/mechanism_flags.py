"""Mechanisms by the names of `--mechanism`, which are those of the advisor's table."""

from __future__ import annotations

from dataclasses import dataclass, replace

from geomdp.advice.advisor import advise_on
from geomdp.advice.candidate import Candidate
from geomdp.advice.candidates import CANDIDATES
from geomdp.advice.setting import UNLIMITED, InapplicableError, Setting
from geomdp.advice.steps import FITTED, PROJECTED, SHRUNK, STEPS, Step
from geomdp.cli.options import AUTO
from geomdp.mechanisms import AdditiveMechanism, Mechanism
from geomdp.privacy import Adjacency, Exact, Privacy
from geomdp.workloads import Workload


@dataclass(frozen=True)
class Choice:
    """The mechanism that --mechanism names, built when the number of records is known.

    Parameters
    ----------
    flag : str
        Its name, or auto for the least predicted error; ``ValueError`` for an unknown one.
    exact : bool
        Whether only exact samplers will do.
    """

    flag: str
    exact: bool

    def __post_init__(self) -> None:
        if self.flag != AUTO:
            _parsed(self.flag)

    @property
    def by(self) -> str:
        """Who chooses."""
        return "the user" if self.flag != AUTO else "least predicted error"

    def __call__(
        self, workload: Workload, *, n: int, privacy: Privacy, adjacency: Adjacency
    ) -> Mechanism:
        """The mechanism for these."""
        setting = Setting(workload, n, privacy, adjacency, self.exact)
        if self.flag == AUTO:
            return advise_on(setting).best
        return build_mechanism(self.flag, setting)


def build_mechanism(flag: str, setting: Setting) -> Mechanism:
    """The mechanism that `flag` stands for, whatever it costs.

    Raises
    ------
    ValueError
        For an unknown name, a mechanism that does not apply to the setting, or a heuristic
        sampler where an exact one is required.
    """
    step, row = _parsed(flag)
    try:
        # Exactness is judged below, in the words of the command line.
        mechanism = row.built(replace(setting, exact_only=False, budget=UNLIMITED))
    except InapplicableError as error:
        raise ValueError(f"--mechanism {flag} does not apply: {error}") from error
    if step is not None:
        assert isinstance(mechanism, AdditiveMechanism)
        mechanism = step.kind(mechanism)
    if setting.exact_only and not isinstance(mechanism.guarantee.sampler, Exact):
        raise ValueError(
            f"--mechanism {flag} needs --allow-heuristic here: its sampler is "
            f"{mechanism.guarantee.sampler}"
        )
    return mechanism


def _parsed(flag: str) -> tuple[Step | None, Candidate]:
    """What follows the noise, and the row of the table."""
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
