"""Mechanisms with few possible outputs, whose laws are computed: sparse vector and selection.

The law of a mechanism gives the probability of each output. Outputs are drawn from these laws, so
the mechanisms need not run. Tests of the library compare the laws with runs. Noise scaled by a
factor c is the noise of the mechanism that claims epsilon / c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

import geomdp as gd
from experiments.engine.statistics import LEVEL
from experiments.privacy.best_events import Laws

PRIVACY = gd.PureDP(1.0)
#: Number of queries of a stream.
QUERIES = 6
#: Number of records that a selection counts.
RECORDS = 100


class Discrete(Protocol):
    """A mechanism on two neighbouring inputs."""

    @property
    def learners(self) -> Sequence[gd.audit.Learner]:
        """Learners of the scores that an audit tries. They may know the laws for unscaled noise."""

    def outcomes(self, factor: float) -> tuple[npt.NDArray[np.int64], Laws]:
        """The k possible outputs, and their laws on both inputs, with noise scaled by `factor`."""


@dataclass(frozen=True)
class Scales:
    """Laplace scales of a sparse vector mechanism."""

    threshold: float  # Scale of the noise on the threshold
    query: float  # Scale of the noise on each query
    redraw: bool  # Whether each query found above the threshold redraws the threshold noise


@dataclass(frozen=True)
class Stream:
    """A run of the sparse vector technique on six queries whose true answers equal the threshold.

    At the neighbour, the last `cutoff` answers are lower by 1, and all others are higher by 1.
    Streams of 1 to 8 queries at two distances from the threshold were compared. With 10^5 draws,
    the largest noise factor that an audit can refute (`best_factor`) is largest on this stream.
    """

    build: Callable[[], gd.AboveThreshold | gd.Sparse]  # The mechanism
    cutoff: int  # The run halts after this many queries found above the threshold

    def laws(self, factor: float) -> list[gd.audit.SparseVectorLaw]:
        """The laws of the transcript on the two inputs, with noise scaled by `factor`."""
        stated = self.build().scales
        scales = Scales(factor * stated.threshold, factor * stated.query, stated.redraw)
        moved = np.concatenate([np.ones(QUERIES - self.cutoff), -np.ones(self.cutoff)])
        return [
            gd.audit.SparseVectorLaw(truths, scales, self.cutoff)
            for truths in (np.zeros(QUERIES), moved)
        ]

    @property
    def learners(self) -> Sequence[gd.audit.Learner]:
        """The log-ratio of the laws, and learned scores."""
        return (gd.audit.law_learner(*self.laws(1.0)), *gd.audit.DEFAULT_LEARNERS)

    def outcomes(self, factor: float) -> tuple[npt.NDArray[np.int64], Laws]:
        """All transcripts with their laws."""
        first, second = self.laws(factor)
        return first.transcripts, Laws(first.probabilities, second.probabilities)


@dataclass(frozen=True)
class Selected:
    """The choice between two counts. At the neighbour one count is larger by 1, the other smaller.

    With a larger gap between the counts, one choice is rarer, but its privacy loss is larger. Of
    the gaps 0, 1, 2, 3, 4 and 6, those in `DISCRETE` are the best for an audit with 10^4 draws.
    """

    kind: Callable[..., gd.mechanisms.Selection]  # The mechanism
    gap: int  # By how much the first count is smaller than the second

    @property
    def learners(self) -> Sequence[gd.audit.Learner]:
        """The default learners, which learn scores of the two outputs from draws."""
        return gd.audit.DEFAULT_LEARNERS

    def outcomes(self, factor: float) -> tuple[npt.NDArray[np.int64], Laws]:
        """The two choices with their laws."""
        privacy = gd.PureDP(PRIVACY.epsilon / factor)
        M = self.kind(gd.workloads.Marginals(2, 1), n=RECORDS, privacy=privacy)
        counts = np.array([RECORDS / 2 - self.gap, RECORDS / 2])
        neighbour = counts + np.array([1.0, -1.0])
        laws = Laws(*(M.probabilities(each / RECORDS) for each in (counts, neighbour)))
        return np.arange(2)[:, None], laws


#: The mechanisms by their names in the figure.
DISCRETE: dict[str, Discrete] = {
    "AboveThreshold": Stream(lambda: gd.AboveThreshold(0.0, privacy=PRIVACY), 1),
    "Sparse": Stream(lambda: gd.Sparse(0.0, cutoff=2, privacy=PRIVACY), 2),
    "ExponentialMechanism": Selected(gd.mechanisms.ExponentialMechanism, 4),
    "ReportNoisyMax": Selected(gd.mechanisms.ReportNoisyMax, 4),
    "PermuteAndFlip": Selected(gd.mechanisms.PermuteAndFlip, 0),
}


def audited_outputs(
    audited: Discrete, factor: float, trials: int, seed: int
) -> gd.audit.AuditResult:
    """One audit of a mechanism whose noise is scaled by `factor`."""
    outputs, laws = audited.outcomes(factor)
    samplers = [drawn_from(outputs, law) for law in (laws.first, laws.second)]
    pair = gd.audit.Pair("two inputs", samplers[0], samplers[1], audited.learners)
    return gd.audit.audit_pairs([pair], PRIVACY, trials=trials, level=LEVEL, rng=seed)


def drawn_from(outputs: npt.NDArray[np.int64], law: npt.NDArray[np.float64]) -> gd.audit.Sampler:
    """A sampler that draws entries of `outputs` with the probabilities `law`."""
    masses = law / law.sum()

    def sample(trials: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        return outputs[rng.choice(len(masses), size=trials, p=masses)]

    return sample
