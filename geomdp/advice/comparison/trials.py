"""Build the mechanism of each candidate; note the reason if the candidate is left out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from geomdp.advice.candidate import Candidate
from geomdp.advice.costs import pure_tables_work
from geomdp.advice.setting import InapplicableError, Setting, UntriedError
from geomdp.advice.steps import Step
from geomdp.bodies import MissingOracle
from geomdp.mechanisms import AdditiveMechanism, Mechanism, Prediction
from geomdp.mechanisms.additive_noise.base import additive_within
from geomdp.privacy import Exact, SamplerStatus
from geomdp.workloads import WorkloadSizeError

#: Reason given for a candidate that is left out because its set-up runs out of memory.
TOO_LARGE = "its set-up does not fit into the memory of this machine"


@dataclass(frozen=True, repr=False)
class Built:
    """A candidate that applies, with its prediction.

    `simulated` is the error on uniform data, or NaN; `seconds` is the time of set-up and
    prediction.
    """

    candidate: Candidate
    step: Step | None
    mechanism: Mechanism
    prediction: Prediction
    sampler: SamplerStatus
    seconds: float
    simulated: float = math.nan

    def __repr__(self) -> str:
        return f"Built({self.name}, {self.prediction.value:.4g})"

    @property
    def name(self) -> str:
        return _name(self.candidate, self.step)

    @property
    def exact(self) -> bool:
        return self.sampler == Exact()

    @property
    def noise(self) -> AdditiveMechanism | None:
        """The additive mechanism before post-processing, if it answers the same workload."""
        return additive_within(self.mechanism)


def _name(candidate: Candidate, step: Step | None) -> str:
    return candidate.name if step is None else f"{step.name}({candidate.name})"


@dataclass(repr=False)
class Trials:
    """The candidates that apply to a setting, in the order of trial, and why others do not.

    The names in `untried` are those in `refused` that may apply, but cost too much to try.
    """

    setting: Setting
    built: list[Built] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    untried: set[str] = field(default_factory=set)

    def __repr__(self) -> str:
        return f"Trials({len(self.built)} built, {len(self.refused)} left out)"

    @property
    def least(self) -> float:
        """The least prediction so far; inf if there is none."""
        return min((trial.prediction.value for trial in self.built), default=math.inf)

    def attempt(self, candidate: Candidate) -> None:
        setting = (
            replace(self.setting, least=self.least) if candidate.depends_on_n else self.setting
        )
        self._attempt(candidate, None, partial(candidate.compared, setting))

    def attempt_stronger(self, candidate: Candidate, floor: float = 0.0) -> None:
        """Build a candidate with pure privacy, although the requested guarantee is not pure.

        It is left out if `floor`, a lower bound on its prediction per query, is not below the least
        so far, and for tables of many columns, because its set-up would take long.
        """
        known = replace(self.setting, least=self.least)

        def build() -> Mechanism:
            known.check_floor("error", floor)
            known.check_cost("set-up", work=pure_tables_work(known.workload))
            return candidate.compared(known)

        self._attempt(candidate, None, build)

    def attempt_after(self, noisy: Built, step: Step, build: Callable[[], Mechanism]) -> None:
        """Build the mechanism that applies `step` to the answers of `noisy`; predict its error."""
        self._attempt(noisy.candidate, step, build)

    def _attempt(
        self, candidate: Candidate, step: Step | None, build: Callable[[], Mechanism]
    ) -> None:
        start, name = time.perf_counter(), _name(candidate, step)
        try:
            mechanism = build()
            prediction, sampler = mechanism.predicted_rmse, mechanism.sampler
        except (InapplicableError, WorkloadSizeError, MissingOracle) as reason:
            self.refused[name] = str(reason)
            if isinstance(reason, UntriedError):
                self.untried.add(name)
            return
        except MemoryError:
            # The estimates of cost do not cover all memory. If one candidate runs out of memory,
            # the others must still be compared.
            self.refused[name] = TOO_LARGE
            self.untried.add(name)
            return
        seconds = time.perf_counter() - start
        self.built.append(Built(candidate, step, mechanism, prediction, sampler, seconds))
