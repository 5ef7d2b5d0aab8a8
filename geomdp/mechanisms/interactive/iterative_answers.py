"""The two private steps of a round of an iterative construction: a choice and an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol

from geomdp._typing import FloatArray
from geomdp.mechanisms.interactive.distinguishers import AnyQuery, Distinguisher
from geomdp.mechanisms.interactive.exact_truths import ExactTruths
from geomdp.mechanisms.interactive.updates.base import Hypothesis
from geomdp.noise.scalar import ExactNoise, ScalarNoise


class Run(Protocol[AnyQuery]):
    distinguisher: Distinguisher[AnyQuery]
    n: int
    step_epsilon: float

    @property
    def answer_scale(self) -> float:
        """Scale of the Laplace noise on an answer."""


class Answers(Protocol):
    """The two private steps of a round. In an unseeded run, each call is `step_epsilon`-DP."""

    def choose(self, hypothesis: Hypothesis[Any]) -> int:
        """Index of a query on which the data and the hypothesis differ much."""

    def value(self, index: int) -> float:
        """The true answer to query number `index`, plus noise."""


@dataclass(frozen=True)
class SeededAnswers(Generic[AnyQuery]):
    """The steps of a seeded run, simulated in float64."""

    run: Run[AnyQuery]
    truths: FloatArray
    noise: ScalarNoise

    def choose(self, hypothesis: Hypothesis[AnyQuery]) -> int:
        run = self.run
        return run.distinguisher.choose(
            self.truths, hypothesis, epsilon=run.step_epsilon, n=run.n, noise=self.noise
        )

    def value(self, index: int) -> float:
        return self.noise.laplace(float(self.truths[index]), self.run.answer_scale)


@dataclass(frozen=True)
class ExactAnswers(Generic[AnyQuery]):
    """The steps of an unseeded run, decided and rounded exactly on rational true answers."""

    run: Run[AnyQuery]
    truths: ExactTruths
    noise: ExactNoise

    def choose(self, hypothesis: Hypothesis[AnyQuery]) -> int:
        return self.run.distinguisher.choose_exactly(
            self.truths, hypothesis, epsilon=self.run.step_epsilon, noise=self.noise
        )

    def value(self, index: int) -> float:
        return self.noise.laplace(self.truths[index], self.run.answer_scale)
