"""Choose an event {score >= t} on training outputs, and judge a claim by its counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import require_type
from geomdp.audit.binomial import epsilon_bounds
from geomdp.audit.claims import claims_of
from geomdp.audit.renyi import RenyiTest, best_renyi, event_rho
from geomdp.audit.result import AuditResult
from geomdp.audit.samplers import Learner, Outputs, Score, same_shape, scores_of
from geomdp.audit.scores import taken_for_rounding
from geomdp.privacy import ZCDP, Privacy

#: Largest number of thresholds tried from each end of the N sorted scores. Their ranks, counted
#: from that end, form a geometric progression from 1 to N, rounded to whole numbers. Successive
#: small ranks differ by at most 1. Successive large ranks differ by about a tenth of their value,
#: for N from 10^5 to 10^6.
RANKS = 128


@dataclass(frozen=True)
class ScoreEvent:
    """The event {score >= threshold}, and for a zCDP claim also a test of Renyi divergences.

    On the training outputs, `excess` is the lower bound on epsilon minus the claimed epsilon.
    """

    name: str
    score: Score
    threshold: float
    excess: float
    renyi: RenyiTest | None = None
    shape: tuple[int, ...] = ()
    unseen: float = 0.0

    def __str__(self) -> str:
        return f"{self.name} >= {self.threshold:.6g}"

    def hits(self, outputs: Outputs) -> int:
        same_shape(outputs, self.shape, "in the half that tests the event")
        return int(np.count_nonzero(scores_of(self.score, outputs) >= self.threshold))


def learn_event(
    outputs_a: Outputs,
    outputs_b: Outputs,
    learners: Sequence[Learner],
    privacy: Privacy,
    level: float,
) -> ScoreEvent:
    """The event that contradicts the claim most, over the scores of all learners.

    One half of the outputs teaches the scores, and the other half chooses the event, so that a
    score that has memorised its training outputs has no advantage.
    """
    same_shape(outputs_b, outputs_a.shape[1:], "on the second input")
    half = len(outputs_a) // 2
    scores = []
    for learner in learners:
        require_type(learner, Learner, "learners")
        score = learner.learn(outputs_a[:half], outputs_b[:half])
        if score is not None:
            scores.append((learner.name, score))
    if not scores:
        scores = [("nothing found", lambda outputs: np.zeros(len(outputs)))]
    return best_event(scores, outputs_a[half:], outputs_b[half:], privacy, level)


def best_event(
    scores: Sequence[tuple[str, Score]],
    outputs_a: Outputs,
    outputs_b: Outputs,
    privacy: Privacy,
    level: float,
) -> ScoreEvent:
    """The event {score >= t} of a named score with the largest excess over the claim."""
    same_shape(outputs_b, outputs_a.shape[1:], "on the second input")
    event = max(
        (_best_threshold(*named, outputs_a, outputs_b, privacy, level) for named in scores),
        key=lambda each: each.excess,
    )
    unseen = taken_for_rounding(outputs_a, outputs_b)
    found = replace(event, shape=outputs_a.shape[1:], unseen=unseen)
    if not isinstance(privacy, ZCDP):
        return found
    renyi, rho = best_renyi(scores, outputs_a, outputs_b, level / 2)
    # An excess of rho counts in units of epsilon: rho-zCDP noise has losses of about sqrt(2 rho).
    gain = np.sign(rho - privacy.rho) * np.sqrt(2 * abs(rho - privacy.rho))
    return replace(found, renyi=renyi, excess=max(event.excess, float(gain)))


def _best_threshold(
    name: str,
    score: Score,
    outputs_a: Outputs,
    outputs_b: Outputs,
    privacy: Privacy,
    level: float,
) -> ScoreEvent:
    claims = claims_of(privacy)
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


def judge(
    privacy: Privacy,
    hits_a: int,
    hits_b: int,
    trials: int,
    level: float,
    event: str,
    pair: str = "",
    rho: float | None = None,
    unseen: float = 0.0,
) -> AuditResult:
    """The result for one event and the claim that the event contradicts most.

    If a zCDP claim is true, so are all pairs (epsilon, delta) that it implies and the bound of
    `event_rho`. The same four bounds on probabilities test all of them, so `level` needs no further
    division. A `rho` is a lower bound at level / 2; then the event is tested at level / 2, too.
    """
    claims = claims_of(privacy)
    share = level if rho is None else level / 2
    bounds = epsilon_bounds(np.array([hits_a]), np.array([hits_b]), trials, share, claims)[:, 0]
    worst = int(np.argmax(bounds - [claim.epsilon for claim in claims]))
    claim, bound = claims[worst], float(bounds[worst])
    above = False
    if isinstance(privacy, ZCDP):
        rho = max(0.0 if rho is None else rho, event_rho(hits_a, hits_b, trials, share))
        above = rho > privacy.rho
    return AuditResult(
        refuted=bound > claim.epsilon or above,
        epsilon_lower_bound=max(bound, 0.0),
        claimed_epsilon=claim.epsilon,
        delta=claim.delta,
        level=level,
        trials=trials,
        hits_a=hits_a,
        hits_b=hits_b,
        event=event,
        pair=pair,
        claim=privacy,
        rho_lower_bound=rho,
        unseen=unseen,
    )
