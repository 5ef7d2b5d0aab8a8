"""Tests of privacy claims on outputs for two neighbouring inputs.

One half of the outputs chooses an event, and the other half tests it: an exact binomial test of a
single event, no matter how many were tried in training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from geomdp._typing import RandomState
from geomdp._validation import require_type, whole
from geomdp.audit.claims import (
    AuditResult,
    RenyiTest,
    best_renyi,
    checked_level,
    claims_of,
    definition,
    epsilon_bounds,
    event_rho,
)
from geomdp.audit.scores import (
    DEFAULT_LEARNERS,
    Data,
    Learner,
    Outputs,
    Sampler,
    Score,
    draw,
    repeat,
    same_shape,
    scores_of,
    taken_for_rounding,
)
from geomdp.privacy import ZCDP, Guarantee, Privacy

# Choose an event {score >= t} on training outputs, and judge a claim by its counts

#: Largest number of thresholds tried from each end of the N sorted scores, at ranks in a geometric
#: progression from 1 to N.
RANKS = 128


@dataclass(frozen=True)
class ScoreEvent:
    """The event {score >= threshold}, its excess of the lower bound over the claimed epsilon in
    training, and for a zCDP claim a test of Renyi divergences.
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
    """The event that contradicts the claim most; one half of the outputs teaches the scores, and
    the other half chooses, so that a score that has memorised its outputs has no advantage.
    """
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
    events = [_best_threshold(*named, outputs_a, outputs_b, privacy, level) for named in scores]
    event = max(events, key=lambda each: each.excess)
    unseen = taken_for_rounding(outputs_a, outputs_b)
    found = replace(event, shape=outputs_a.shape[1:], unseen=unseen)
    if not isinstance(privacy, ZCDP):
        return found
    renyi, rho = best_renyi(scores, outputs_a, outputs_b, level / 2)
    # An excess of rho counts in units of epsilon: rho-zCDP noise has losses of about sqrt(2 rho).
    gain = np.sign(rho - privacy.rho) * np.sqrt(2 * abs(rho - privacy.rho))
    return replace(found, renyi=renyi, excess=max(event.excess, float(gain)))


def _best_threshold(
    name: str, score: Score, outputs_a: Outputs, outputs_b: Outputs, privacy: Privacy, level: float
) -> ScoreEvent:
    claims = claims_of(privacy)
    scores_a, scores_b = scores_of(score, outputs_a), scores_of(score, outputs_b)
    # Distinct scores at geometric ranks from both ends of the sorted sample.
    ordered = np.sort(np.concatenate([scores_a, scores_b]))
    steps = np.geomspace(1, len(ordered), RANKS).astype(np.int64)
    thresholds = np.unique(np.concatenate([ordered[steps - 1], ordered[-steps]]))
    both = (scores_a, scores_b)
    hits_a, hits_b = (len(each) - np.searchsorted(np.sort(each), thresholds) for each in both)
    bounds = epsilon_bounds(hits_a, hits_b, len(scores_a), level, claims)
    excess = (bounds - np.array([claim.epsilon for claim in claims])[:, None]).max(axis=0)
    best = int(np.argmax(excess))
    return ScoreEvent(name, score, float(thresholds[best]), float(excess[best]))


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


# Audits of samplers and functions

#: Smallest number of outputs per input from which `audit_pairs` learns an event.
FEWEST = 4


@dataclass(frozen=True)
class Pair:
    """Two neighbouring inputs, given by a sampler of the outputs on each input.

    Parameters
    ----------
    name : str
        The inputs in words, for the result.
    sample_a, sample_b : callable (trials, rng) -> (trials, ...) array
        Independent outputs of the mechanism on the two inputs.
    learners : sequence of Learner
        Each learns a score, and the best score is used. A learner may use known distributions of
        the outputs.

    Examples
    --------
    >>> import geomdp as gd
    >>> samples = [lambda n, rng, x=x: rng.laplace(x, 1.0, n) for x in (0.0, 1.0)]
    >>> pair = gd.audit.Pair("0 and 1 records", *samples)
    >>> gd.audit.audit_pairs([pair], gd.PureDP(1.0), trials=20_000, rng=0).refuted
    False
    """

    name: str
    sample_a: Sampler
    sample_b: Sampler
    learners: Sequence[Learner] = DEFAULT_LEARNERS

    def __repr__(self) -> str:
        return f"Pair({self.name!r})"

    def outputs(self, trials: int, rngs: Sequence[np.random.Generator]) -> tuple[Outputs, Outputs]:
        """Draw `trials` outputs on each of the two inputs."""
        first = draw(self.sample_a, trials, rngs[0])
        second = draw(self.sample_b, trials, rngs[1])
        return first, same_shape(second, first.shape[1:], "on the second input")


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

    The first half of the outputs chooses the threshold t with the strongest contradiction of the
    claim. The second half tests Pr_a(S) <= e^epsilon Pr_b(S) + delta for this event S and its
    complement, in both orders of a and b, by exact Clopper-Pearson bounds: a lower and an upper
    bound on each of the two probabilities, at level / 4 each. A zCDP claim implies many pairs
    (epsilon, delta). They are tested at half the level. The other half is for a lower bound on rho
    from Renyi divergences, which finds much smaller violations of Gaussian noise.

    Without a `score`, `DEFAULT_LEARNERS` learn four scores on the first quarter of the outputs:
    from directions in which all outputs on the same input are equal, from entries that are NaN or
    infinite, from frequencies of discrete outcomes, and the best linear function. The second
    quarter chooses one of them and the threshold.

    An audit sees no difference that may be a rounding error: in a coordinate that holds more than
    whole numbers up to 2^53, up to 2^-30 of the largest output in this coordinate, or 2^-50 of the
    largest output in any coordinate. The text of the result states the largest one. An audit sees
    no violation below `smallest_violation`, and no event that none of its scores describes.

    Parameters
    ----------
    sample_a, sample_b : callable (trials, rng) -> (trials, ...) array
        Independent outputs of the mechanism on two neighbouring inputs; see `repeat`.
    guarantee : Guarantee, PureDP, ApproxDP or ZCDP
        The claim. For a `Guarantee`, its proved privacy is tested. If its sampler is heuristic,
        nothing is proved, and its `privacy`, a target, is tested.
    trials : int
        Number of outputs that are drawn per input, at least 4. Half of them choose the event.
    score : callable (trials, ...) -> (trials,), optional
        The score to use instead of learned scores: a number for each output. The log-ratio of the
        densities of outputs on the two inputs makes the test most powerful. -inf and inf are
        allowed.
    level : float
        Upper bound on the probability of refuting a true claim; 0 < level < 1.
    rng : Generator, int or None
        Source of randomness.

    Raises
    ------
    ValueError
        If a parameter is out of range (`level` below 1e-300, for instance), a sampler or score
        returns a wrong number of values, outputs differ in shape or are empty, or a score is NaN.

    References
    ----------
    Clopper-Pearson 1934; Ding-Wang-Wang-Zhang-Kifer 2018 (events chosen on separate outputs);
    Birrell-Dupuis-Katsoulakis-Rey-Bellet-Wang 2021 and Maurer-Pontil 2009 (Renyi divergences);
    formula sheet GEN-2.

    Examples
    --------
    Laplace noise of scale 1 hides a change of 1 in a count; see `AuditResult` for scale 0.5:

    >>> import geomdp as gd
    >>> samples = [lambda n, rng, x=x: rng.laplace(x, 1.0, n) for x in (0.0, 1.0)]
    >>> result = gd.audit.audit(*samples, gd.PureDP(1.0), trials=20_000, rng=0)
    >>> result.refuted, round(result.epsilon_lower_bound, 1)
    (False, 0.8)
    """
    trials, level = whole(trials, "trials", minimum=4), checked_level(level)
    pair, privacy = Pair("", sample_a, sample_b), definition(guarantee)
    rngs = np.random.default_rng(rng).spawn(2)
    training = pair.outputs(trials // 2, rngs)
    if score is None:
        event = learn_event(*training, pair.learners, privacy, level)
    else:
        event = best_event([("score", score)], *training, privacy, level)
    return tested(pair, event, privacy, trials - trials // 2, level, rngs)


def audit_function(
    function: Callable[[Data], npt.ArrayLike],
    first: Data,
    second: Data,
    guarantee: Guarantee | Privacy,
    *,
    trials: int,
    level: float = 1e-6,
) -> AuditResult:
    """Try to refute the privacy claim of a function of records, for instance of another library.

    The function runs `trials` times on each of two neighbouring inputs, and its outputs are audited
    as by `audit`.

    Parameters
    ----------
    function : callable
        Maps records to one output: a number or an array of numbers, of the same shape every time
        (else ``ValueError``). NaN and infinity are outputs like others. The function draws its own
        random numbers.
    first, second : object
        Records that are neighbours under the claim.
    guarantee, trials, level : Guarantee or privacy, int, float
        As for `audit`.

    Examples
    --------
    The noise of this count hides a change of 1/2, not of 1:

    >>> import numpy as np
    >>> import geomdp as gd
    >>> noise = np.random.default_rng(0)
    >>> def noisy_count(records):
    ...     return len(records) + noise.laplace(0.0, 0.5)
    >>> found = gd.audit.audit_function(noisy_count, [1] * 9, [1] * 8, gd.PureDP(1.0), trials=4000)
    >>> found.refuted
    True
    """
    sample_a, sample_b = (repeat(lambda data, _: function(data), data) for data in (first, second))
    return audit(sample_a, sample_b, guarantee, trials=trials, level=level)


def audit_pairs(
    pairs: Sequence[Pair],
    guarantee: Guarantee | Privacy,
    *,
    trials: int,
    level: float = 1e-6,
    rng: RandomState = None,
) -> AuditResult:
    """Try to refute a privacy claim on the worst of several pairs of neighbouring inputs.

    The first quarter of the trials is divided among all pairs, to choose the pair that contradicts
    the claim most. For this pair, the second quarter chooses the event, and the second half tests
    it: a single event on a single pair.

    Parameters
    ----------
    pairs : sequence of Pair
        At least one pair (else ``ValueError``).
    guarantee : Guarantee, PureDP, ApproxDP or ZCDP
        As for `audit`.
    trials : int
        Number of outputs drawn on the first inputs of all pairs together, and on the second inputs.
        At least 16 times the number of pairs (else ``ValueError``).
    level, rng : float, random state
        As for `audit`.

    Examples
    --------
    The noise is too small for the second pair only:

    >>> import geomdp as gd
    >>> def sampler(x):
    ...     return lambda n, rng: rng.laplace(x, 1.0, n)
    >>> words = {1.0: "a change of 1", 3.0: "a change of 3"}
    >>> pairs = [gd.audit.Pair(words[x], sampler(0.0), sampler(x)) for x in words]
    >>> result = gd.audit.audit_pairs(pairs, gd.PureDP(1.0), trials=20_000, rng=0)
    >>> result.refuted, result.pair
    (True, 'a change of 3')
    """
    if not pairs:
        raise ValueError("pairs must hold at least 1 pair, got none")
    for pair in pairs:
        require_type(pair, Pair, "pairs")
    trials = whole(trials, "trials", minimum=4 * FEWEST * len(pairs))
    level, privacy = checked_level(level), definition(guarantee)
    rngs = np.random.default_rng(rng).spawn(2)
    share = trials // (4 * len(pairs))

    def first_look(pair: Pair) -> float:
        return learn_event(*pair.outputs(share, rngs), pair.learners, privacy, level).excess

    chosen = max(pairs, key=first_look)
    training = chosen.outputs(trials // 4, rngs)
    event = learn_event(*training, chosen.learners, privacy, level)
    return tested(chosen, event, privacy, trials - trials // 2, level, rngs)


def tested(
    pair: Pair,
    event: ScoreEvent,
    privacy: Privacy,
    trials: int,
    level: float,
    rngs: Sequence[np.random.Generator],
) -> AuditResult:
    """Test one event on new outputs, which were not used to choose the event."""
    outputs = pair.outputs(trials, rngs)
    hits_a, hits_b = map(event.hits, outputs)
    rho = None
    if event.renyi is not None:
        of_a, of_b = (scores_of(event.renyi.score, each) for each in outputs)
        rho = event.renyi.bound(of_a, of_b, level / 2)
    return judge(privacy, hits_a, hits_b, trials, level, str(event), pair.name, rho, event.unseen)
