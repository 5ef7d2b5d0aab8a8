"""Tests of privacy claims on outputs for two neighbouring inputs.

The event to test is chosen on a training half of the outputs and tested on the other half. So the
result is an exact binomial test of a single event, however many events were tried in training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray, RandomState
from geomdp._validation import probability, whole
from geomdp.audit.binomial import lower_bound, upper_bound
from geomdp.audit.samplers import Event, Sampler, Score, fisher_score
from geomdp.privacy import (
    ZCDP,
    ApproxDP,
    Approximate,
    Guarantee,
    Privacy,
    PureDP,
    zcdp_to_approx_optimal_order,
)

#: Deltas at which a zCDP claim is tested: rho-zCDP implies (epsilon, delta)-DP for all of them at
#: once, with an epsilon for each. Smaller deltas would not help: events of probability below 10^-7
#: do not occur in any affordable number of trials.
ZCDP_DELTAS = tuple(10.0**-k for k in range(1, 8))
#: Number of thresholds tried from either end of the sorted scores. Their ranks form a geometric
#: progression from 1 to the number N of scores, rounded. Neighbouring ranks differ by 1 in the
#: tails, and by about a tenth in the middle for N from 10^5 to 10^6.
RANKS = 128


@dataclass(frozen=True)
class AuditResult:
    """The result of an audit.

    Parameters
    ----------
    refuted : bool
        Whether the claim was shown to be false, at confidence 1 - `level`. The value False proves
        nothing.
    epsilon_lower_bound : float
        The mechanism is not (epsilon', `delta`)-DP for any epsilon' below this, at the same
        confidence; 0 if the test gives no positive bound.
    claimed_epsilon, delta : float
        The claim tested; delta is 0 for pure DP. For a zCDP claim, the implied (epsilon, delta)
        that the outputs contradict most.
    level : float
        Upper bound on the probability of refuting a true claim.
    trials : int
        Number of outputs per input that test the event.
    hits_a, hits_b : int
        Number of these outputs in the event, for the first and for the second input.
    event : str
        The event, in words.
    """

    refuted: bool
    epsilon_lower_bound: float
    claimed_epsilon: float
    delta: float
    level: float
    trials: int
    hits_a: int
    hits_b: int
    event: str

    def __repr__(self) -> str:
        return f"AuditResult({self})"

    def __str__(self) -> str:
        verdict = "refuted" if self.refuted else "not refuted (which proves nothing)"
        return (
            f"{verdict}: claimed epsilon {self.claimed_epsilon:g}, at least "
            f"{self.epsilon_lower_bound:.4g} at delta {self.delta:g} (level {self.level:g}; "
            f"{self.event} in {self.hits_a} and {self.hits_b} of {self.trials})"
        )


class _Claim(NamedTuple):
    epsilon: float
    delta: float


def audit(
    sample_a: Sampler,
    sample_b: Sampler,
    guarantee: Guarantee | Privacy,
    *,
    trials: int,
    score: Score | None = None,
    level: float = 1e-6,
    rng: RandomState = None,
) -> AuditResult:
    """Try to refute a privacy claim with an event {score >= t} or {score < t}.

    The first half of the outputs chooses the threshold t: the one at which they contradict the
    claim most. The second half tests Pr_a(S) <= e^epsilon Pr_b(S) + delta for this event S and for
    its complement, also with a and b exchanged. The test uses exact Clopper-Pearson bounds: a lower
    and an upper one on each of the two probabilities, at level / 4 each. A zCDP claim is tested
    through the (epsilon, delta) that it implies for every delta in `ZCDP_DELTAS`.

    Parameters
    ----------
    sample_a, sample_b : callable (trials, rng) -> (trials, ...) array
        Independent outputs of the mechanism on two neighbouring inputs; see `repeat`.
    guarantee : Guarantee, PureDP, ApproxDP or ZCDP
        The claim. For a `Guarantee`, the proved privacy is tested; if its sampler is heuristic, the
        privacy that it aims at.
    trials : int
        Outputs drawn per input, at least 4; half of them choose the event.
    score : callable (trials, ...) -> (trials,), optional
        Number by which outputs are ordered. The log-density ratio ln(p_a / p_b) makes the test most
        powerful. -inf and inf are allowed. By default `fisher_score` of the training half.
    level : float
        Upper bound on the probability of refuting a true claim; 0 < level < 1.
    rng : Generator, int or None
        Source of randomness.

    Returns
    -------
    AuditResult
        Holds `refuted`, `epsilon_lower_bound` and the counts behind them.

    Raises
    ------
    ValueError
        If a parameter is out of range, a sampler or score returns a wrong number of values, or a
        score is NaN.

    References
    ----------
    Clopper-Pearson 1934; Ding-Wang-Wang-Zhang-Kifer 2018 (events chosen on separate outputs);
    formula sheet GEN-2.
    """
    trials, level = whole(trials, "trials", minimum=4), probability(level, "level")
    training, held_out = trials // 2, trials - trials // 2
    rng_a, rng_b = np.random.default_rng(rng).spawn(2)
    outputs_a, outputs_b = _draw(sample_a, training, rng_a), _draw(sample_b, training, rng_b)
    if score is None:
        score = fisher_score(outputs_a, outputs_b)
    claims = _claims(guarantee)
    threshold = _choose(_scores(score, outputs_a), _scores(score, outputs_b), claims, level)
    hits_a, hits_b = (
        int(np.count_nonzero(_scores(score, _draw(sample, held_out, child)) >= threshold))
        for sample, child in ((sample_a, rng_a), (sample_b, rng_b))
    )
    return _judge(claims, hits_a, hits_b, held_out, level, f"score >= {threshold:.6g}")


def audit_event(
    sample_a: Sampler,
    sample_b: Sampler,
    guarantee: Guarantee | Privacy,
    *,
    trials: int,
    event: Event,
    level: float = 1e-6,
    rng: RandomState = None,
) -> AuditResult:
    """Try to refute a privacy claim with one event fixed beforehand; all outputs test it.

    `event` maps outputs (trials, ...) to booleans (trials,). Its complement and the exchanged
    inputs are tested too, within the same level. Other parameters, the result and errors are those
    of `audit`, except that `trials` may be 1 or more.
    """
    trials, level = whole(trials, "trials"), probability(level, "level")
    rng_a, rng_b = np.random.default_rng(rng).spawn(2)
    hits_a, hits_b = (
        int(np.count_nonzero(_holds(event, _draw(sample, trials, child))))
        for sample, child in ((sample_a, rng_a), (sample_b, rng_b))
    )
    return _judge(_claims(guarantee), hits_a, hits_b, trials, level, "event")


def _claims(guarantee: Guarantee | Privacy) -> list[_Claim]:
    """The (epsilon, delta) to test: the claim itself, or for zCDP one for each of `ZCDP_DELTAS`."""
    if isinstance(guarantee, Guarantee):
        approximate = isinstance(guarantee.sampler, Approximate)
        guarantee = guarantee.effective if approximate else guarantee.privacy
    match guarantee:
        case PureDP(epsilon=epsilon):
            return [_Claim(epsilon, 0.0)]
        case ApproxDP(epsilon=epsilon, delta=delta):
            return [_Claim(epsilon, delta)]
        case ZCDP():
            return [
                _Claim(zcdp_to_approx_optimal_order(guarantee, delta).epsilon, delta)
                for delta in ZCDP_DELTAS
            ]


def _choose(
    scores_a: FloatArray, scores_b: FloatArray, claims: Sequence[_Claim], level: float
) -> float:
    """The threshold at which the lower bound on epsilon exceeds the claimed epsilon most."""
    thresholds = _thresholds(np.concatenate([scores_a, scores_b]))
    hits_a, hits_b = (
        len(scores) - np.searchsorted(np.sort(scores), thresholds)
        for scores in (scores_a, scores_b)
    )
    bounds = _epsilon_bounds(hits_a, hits_b, len(scores_a), level, claims)
    excess = bounds - np.array([claim.epsilon for claim in claims])[:, None]
    return float(thresholds[np.argmax(excess.max(axis=0))])


def _thresholds(scores: FloatArray) -> FloatArray:
    """Distinct scores at geometric ranks from both ends of the sorted sample."""
    ordered = np.sort(scores)
    steps = np.geomspace(1, len(ordered), RANKS).astype(np.int64)
    return np.unique(np.concatenate([ordered[steps - 1], ordered[-steps]]))


def _epsilon_bounds(
    hits_a: IntArray, hits_b: IntArray, trials: int, level: float, claims: Sequence[_Claim]
) -> FloatArray:
    """Lower bounds on epsilon (claims, events); each is the largest of four.

    The four come from the event and its complement, in both orders of the inputs. They use a lower
    and an upper bound on each of the two probabilities, at level / 4 each, so that all four bounds
    on probabilities hold together with probability at least 1 - `level`.
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


def _judge(
    claims: Sequence[_Claim], hits_a: int, hits_b: int, trials: int, level: float, event: str
) -> AuditResult:
    """The result for one event and the claim it contradicts most.

    All claims follow from one zCDP claim. If that is true, so are all of them, and the same four
    bounds on probabilities test them all. So testing several needs no correction of the level.
    """
    bounds = _epsilon_bounds(np.array([hits_a]), np.array([hits_b]), trials, level, claims)[:, 0]
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
    )


def _draw(sample: Sampler, trials: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    outputs = np.asarray(sample(trials, rng))
    if outputs.ndim == 0 or len(outputs) != trials:
        raise ValueError(f"a sampler must return {trials} outputs, got shape {outputs.shape}")
    return outputs


def _scores(score: Score, outputs: npt.NDArray[Any]) -> FloatArray:
    scores = np.asarray(score(outputs), dtype=np.float64)
    if scores.shape != (len(outputs),):
        raise ValueError(f"a score must have shape ({len(outputs)},), got {scores.shape}")
    if np.isnan(scores).any():
        raise ValueError(f"scores must not be NaN, got {np.isnan(scores).sum()} of {len(scores)}")
    return scores


def _holds(event: Event, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    holds = np.asarray(event(outputs))
    if holds.shape != (len(outputs),) or holds.dtype != np.bool_:
        raise ValueError(
            f"an event must give booleans of shape ({len(outputs)},), "
            f"got {holds.dtype} of shape {holds.shape}"
        )
    return holds
