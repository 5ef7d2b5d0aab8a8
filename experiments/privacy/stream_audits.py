"""Audits of the sparse vector on one stream of queries, from the exact laws of its transcripts.

The stream has six queries with true answers at the threshold. Between neighbours, the first answers
move up by 1, and the last ones move down, as many as the mechanism may find above the threshold.
Of the streams of 1 to 8 queries with two distances from the threshold that were compared, this one
lets the best event refute most with 10^5 draws. Transcripts are drawn from the exact law: a draw
costs nothing, and no noise is drawn. Tests of the library compare this law with runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import geomdp as gd
from experiments.engine.statistics import LEVEL
from experiments.privacy.best_events import Laws

PRIVACY = gd.PureDP(1.0)
QUERIES = 6


@dataclass(frozen=True)
class Scales:
    """Laplace scales of a sparse vector mechanism."""

    threshold: float  # Of the noise on the threshold
    query: float  # Of the noise on each query
    redraw: bool  # Whether the threshold noise is drawn anew after each query found above


@dataclass(frozen=True)
class Stream:
    """A mechanism with its stream."""

    build: Callable[[], gd.AboveThreshold | gd.Sparse]  # The mechanism
    cutoff: int  # The run halts after this many queries found above the threshold

    def laws(self, factor: float) -> list[gd.audit.SparseVectorLaw]:
        """The laws of the transcript on the two inputs, with noise scaled by `factor`."""
        stated = self.build().scales
        scales = Scales(factor * stated.threshold, factor * stated.query, stated.redraw)
        up, down = np.ones(QUERIES - self.cutoff), -np.ones(self.cutoff)
        moved = np.concatenate([up, down])
        return [
            gd.audit.SparseVectorLaw(truths, scales, self.cutoff)
            for truths in (np.zeros(QUERIES), moved)
        ]


STREAMS = {
    "AboveThreshold": Stream(lambda: gd.AboveThreshold(0.0, privacy=PRIVACY), 1),
    "Sparse": Stream(lambda: gd.Sparse(0.0, cutoff=2, privacy=PRIVACY), 2),
}


def stream_laws(stream: Stream, factor: float) -> Laws:
    """The two laws, as masses of the transcripts."""
    first, second = stream.laws(factor)
    return Laws(first.probabilities, second.probabilities)


def audited_stream(stream: Stream, factor: float, trials: int, seed: int) -> gd.audit.AuditResult:
    """One audit; the score is the log-ratio of the laws with the correct noise."""
    samplers = [drawn_from(law) for law in stream.laws(factor)]
    learners = (gd.audit.law_learner(*stream.laws(1.0)), *gd.audit.DEFAULT_LEARNERS)
    pair = gd.audit.Pair("the two streams", *samplers, learners)
    return gd.audit.audit_pairs([pair], PRIVACY, trials=trials, level=LEVEL, rng=seed)


def drawn_from(law: gd.audit.SparseVectorLaw) -> gd.audit.Sampler:
    """A sampler of transcripts (trials, k) from the law."""
    masses = law.probabilities / law.probabilities.sum()

    def sample(trials: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        return law.transcripts[rng.choice(len(masses), size=trials, p=masses)]

    return sample
