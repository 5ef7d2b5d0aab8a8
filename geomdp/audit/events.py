"""Choose an event {score >= t} on training outputs, and bound epsilon from its counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import require_type
from geomdp.audit.binomial import lower_bound, upper_bound
from geomdp.audit.claims import Claim
from geomdp.audit.result import AuditResult
from geomdp.audit.samplers import Learner, Outputs, Score, scores_of

#: Largest number of thresholds tried from each end of the N sorted scores. Their ranks, counted
#: from that end, form a geometric progression from 1 to N, rounded to whole numbers. Successive
#: small ranks differ by at most 1. Successive large ranks differ by about a tenth of their value,
#: for N from 10^5 to 10^6.
RANKS = 128


@dataclass(frozen=True)
class ScoreEvent:
    """The event {score >= threshold}.

    Parameters
    ----------
    name : str
        The score in words.
    score : callable (trials, ...) -> (trials,)
        Maps outputs to the numbers that are compared with `threshold`.
    threshold : float
        Outputs with at least this score are in the event.
    excess : float
        The lower bound on epsilon minus the claimed epsilon, on the training outputs.
    """

    name: str
    score: Score
    threshold: float
    excess: float

    def __str__(self) -> str:
        return f"{self.name} >= {self.threshold:.6g}"

    def hits(self, outputs: Outputs) -> int:
        """How many of `outputs` are in the event."""
        return int(np.count_nonzero(scores_of(self.score, outputs) >= self.threshold))


def learn_event(
    outputs_a: Outputs,
    outputs_b: Outputs,
    learners: Sequence[Learner],
    claims: Sequence[Claim],
    level: float,
) -> ScoreEvent:
    """The event that contradicts the claims most, over the scores of all learners.

    Scores are learned on the first half of the outputs, and the event is chosen on the second
    half. So a score that has memorised its training outputs has no advantage. If no learner finds a
    score, the event contains all outputs, and so contradicts no claim.
    """
    half = len(outputs_a) // 2
    events = []
    for learner in learners:
        require_type(learner, Learner, "learners")
        score = learner.learn(outputs_a[:half], outputs_b[:half])
        if score is not None:
            rest = outputs_a[half:], outputs_b[half:]
            events.append(best_event(learner.name, score, *rest, claims, level))
    if not events:
        return ScoreEvent("nothing found", lambda outputs: np.zeros(len(outputs)), 0.0, -np.inf)
    return max(events, key=lambda event: event.excess)


def best_event(
    name: str,
    score: Score,
    outputs_a: Outputs,
    outputs_b: Outputs,
    claims: Sequence[Claim],
    level: float,
) -> ScoreEvent:
    """The event {score >= t} with the largest lower bound on epsilon minus the claimed epsilon."""
    scores_a, scores_b = scores_of(score, outputs_a), scores_of(score, outputs_b)
    thresholds = _thresholds(np.concatenate([scores_a, scores_b]))
    hits_a, hits_b = (
        len(scores) - np.searchsorted(np.sort(scores), thresholds)
        for scores in (scores_a, scores_b)
    )
    bounds = epsilon_bounds(hits_a, hits_b, len(scores_a), level, claims)
    excess = (bounds - np.array([claim.epsilon for claim in claims])[:, None]).max(axis=0)
    best = int(np.argmax(excess))
    return ScoreEvent(name, score, float(thresholds[best]), float(excess[best]))


def _thresholds(scores: FloatArray) -> FloatArray:
    """Distinct scores at geometric ranks from both ends of the sorted sample."""
    ordered = np.sort(scores)
    steps = np.geomspace(1, len(ordered), RANKS).astype(np.int64)
    return np.unique(np.concatenate([ordered[steps - 1], ordered[-steps]]))


def epsilon_bounds(
    hits_a: IntArray, hits_b: IntArray, trials: int, level: float, claims: Sequence[Claim]
) -> FloatArray:
    """Lower bounds on epsilon, one row per claim and one column per event.

    Each entry is the largest of four bounds. They come from the event and its complement, each with
    both orders of the inputs. The four bounds follow from four bounds on probabilities: a lower and
    an upper bound on the probability of the event, for each input. Each bound on a probability
    fails with probability at most `level` / 4, so all of them hold together with probability at
    least 1 - `level`.
    """
    deltas = np.array([claim.delta for claim in claims])[:, None]
    best = np.full((len(claims), len(hits_a)), -np.inf)
    for first, second in ((hits_a, hits_b), (hits_b, hits_a)):
        low = lower_bound(first, trials, level / 4)
        high = upper_bound(second, trials, level / 4)
        # The event itself, and its complement with the inputs exchanged.
        for numerator, denominator in ((low - deltas, high), (1 - high - deltas, 1 - low)):
            possible = numerator > 0
            ratio = np.divide(numerator, denominator, where=possible, out=np.ones_like(best))
            best = np.maximum(best, np.where(possible, np.log(ratio), -np.inf))
    return best


def judge(
    claims: Sequence[Claim],
    hits_a: int,
    hits_b: int,
    trials: int,
    level: float,
    event: str,
    pair: str = "",
) -> AuditResult:
    """The result for one event and the claim that the event contradicts most.

    Several claims occur only if a zCDP claim implies all of them. If the zCDP claim is true, all
    these claims are true. The same four bounds on probabilities test every claim. So the level
    needs no correction for several tests.
    """
    bounds = epsilon_bounds(np.array([hits_a]), np.array([hits_b]), trials, level, claims)[:, 0]
    worst = int(np.argmax(bounds - [claim.epsilon for claim in claims]))
    claim, bound = claims[worst], float(bounds[worst])
    return AuditResult(
        refuted=bound > claim.epsilon,
        epsilon_lower_bound=max(bound, 0.0),
        claimed_epsilon=claim.epsilon,
        delta=claim.delta,
        level=level,
        trials=trials,
        hits_a=hits_a,
        hits_b=hits_b,
        event=event,
        pair=pair,
    )
