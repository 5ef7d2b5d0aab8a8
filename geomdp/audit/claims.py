"""What a privacy claim implies for probabilities, the bounds that refute it, and the result."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv, betaincinv, expit, ndtr

from geomdp._typing import FloatArray
from geomdp._validation import probability, whole
from geomdp.audit.scores import Outputs, Score, scores_of
from geomdp.privacy import (
    ZCDP,
    ApproxDP,
    Approximate,
    Guarantee,
    Privacy,
    PureDP,
    zcdp_to_approx_optimal_order,
)
from geomdp.privacy.definitions import check_privacy, printed, printed_down

# The inequalities for the probabilities of one event

#: Deltas at which a zCDP claim is tested, as it implies (epsilon, delta)-DP for every delta.
ZCDP_DELTAS = tuple(float(delta) for delta in np.geomspace(1e-7, 0.1, 25))


class Claim(NamedTuple):
    """Pr_a(S) <= e^epsilon Pr_b(S) + delta for neighbours a and b and every event S."""

    epsilon: float
    delta: float


@lru_cache
def claims_of(privacy: Privacy) -> tuple[Claim, ...]:
    """The pairs (epsilon, delta) to test: one, or for zCDP one for each of `ZCDP_DELTAS`."""
    match privacy:
        case PureDP(epsilon=epsilon):
            return (Claim(epsilon, 0.0),)
        case ApproxDP(epsilon=epsilon, delta=delta):
            return (Claim(epsilon, delta),)
        case ZCDP():
            implied = [zcdp_to_approx_optimal_order(privacy, delta) for delta in ZCDP_DELTAS]
            return tuple(Claim(each.epsilon, each.delta) for each in implied)


def definition(guarantee: Guarantee | Privacy) -> Privacy:
    """The proved privacy of a guarantee, or its target if its sampler is heuristic."""
    if not isinstance(guarantee, Guarantee):
        check_privacy(guarantee, name="guarantee")
        return guarantee
    approximate = isinstance(guarantee.sampler, Approximate)
    return guarantee.effective if approximate else guarantee.privacy


# Exact confidence bounds on a probability from a count (Clopper-Pearson 1934), and on epsilon

#: Smallest level. The bounds divide a level by up to 16, and the result must not underflow.
LEAST_LEVEL = 1e-300


def checked_level(level: float) -> float:
    """Return `level`; ``ValueError`` if it is not below 1 and at least `LEAST_LEVEL`."""
    if probability(level, "level") < LEAST_LEVEL:
        raise ValueError(f"level must be at least {LEAST_LEVEL:g}, got {level!r}")
    return float(level)


def lower_bound(successes: npt.ArrayLike, trials: int, level: float) -> FloatArray:
    """Lower confidence bounds on a probability p, one for each count.

    A bound is above p with probability at most `level`. For a count k in `successes`, among n =
    `trials` independent trials, Binomial(n, q) is k or more with probability `level` at the bound
    q, the `level` quantile of Beta(k, n - k + 1). For k = 0, the bound is 0.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.audit.lower_bound([0, 50, 100], 100, level=0.01).round(3)
    array([0.   , 0.381, 0.955])
    """
    k = np.asarray(successes, dtype=np.float64)
    # The beta distribution needs k >= 1. The last line replaces the result for k = 0.
    quantile = betaincinv(np.maximum(k, 1), trials - np.maximum(k, 1) + 1, level)
    return np.where(k > 0, quantile, 0.0)


def upper_bound(successes: npt.ArrayLike, trials: int, level: float) -> FloatArray:
    """Upper confidence bounds on a probability p, one for each count.

    A bound is below p with probability at most `level`. For a count k in `successes`, among n =
    `trials` trials, it is the 1 - `level` quantile of Beta(k + 1, n - k); for k = n, it is 1.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.audit.upper_bound([0, 50, 100], 100, level=0.01).round(3)
    array([0.045, 0.619, 1.   ])
    """
    k = np.asarray(successes, dtype=np.float64)
    kept = np.minimum(k, trials - 1)
    return np.where(k < trials, betainccinv(kept + 1, trials - kept, level), 1.0)


def epsilon_bounds(
    hits_a: npt.ArrayLike, hits_b: npt.ArrayLike, trials: int, level: float, claims: Sequence[Claim]
) -> FloatArray:
    """Lower bounds (claims, events) on epsilon, at `level` in all: the largest of those of the
    event and its complement, in both orders, from four bounds on probabilities at `level` / 4 each.
    """
    deltas = np.array([claim.delta for claim in claims])[:, None]
    hits_a, hits_b = np.asarray(hits_a), np.asarray(hits_b)
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


# Tests of a zCDP claim by lower bounds on Renyi divergences

#: Orders, factors of the score, and limits of the function g among which training chooses, on this
#: many outputs on each input. Orders near 1 need the fewest outputs.
ORDERS, FACTORS = (1.05, 1.25, 1.5, 2.0, 4.0, 9.0), (0.5, 1.0, 1.4, 2.0)
REACHES, MOST_LOOKED_AT = (1.0, 2.0, 4.0, 8.0), 20_000


@dataclass(frozen=True)
class RenyiTest:
    """A lower bound on rho from a score, at one order.

    rho-zCDP is D_order(p || q) <= order * rho, and (Birrell et al. 2021) for every function g

        D_order / order >= ln E_p[e^((order - 1) g)] / (order - 1) - ln E_q[e^(order g)] / order.

    Here g is `factor` (score - `centre`), limited to [-`reach`, `reach`], so that Maurer-Pontil
    2009, Theorem 4, bounds both means. If `swapped`, p is the second law.
    """

    name: str
    score: Score
    centre: float
    order: float
    factor: float
    reach: float
    swapped: bool

    def __str__(self) -> str:
        return f"Renyi divergence of order {self.order:g}, from the {self.name}"

    def bound(self, scores_a: FloatArray, scores_b: FloatArray, level: float) -> float:
        """A number from scores of outputs that is above rho with probability at most `level`."""
        scores, sign = ((scores_b, scores_a), -1.0) if self.swapped else ((scores_a, scores_b), 1.0)
        factor, reach = sign * self.factor, self.reach
        first, second = (np.clip(factor * (x - self.centre), -reach, reach) for x in scores)
        above = _moments(np.exp((self.order - 1) * first))
        below = _moments(np.exp(self.order * second))
        return rho_bound(self.order, above, below, reach, len(scores_a), level)


def _moments(values: FloatArray) -> tuple[float, float]:
    return float(values.mean()), float(values.var(ddof=1)) if len(values) > 1 else math.inf


def rho_bound(
    order: float,
    first: tuple[float, float],
    second: tuple[float, float],
    reach: float,
    trials: int,
    level: float,
) -> float:
    """The bound on rho from the means and variances of e^((order - 1) g) and e^(order g)."""
    # A bound on a mean of numbers in an interval of length r fails with probability at most d, here
    # level / 2 for each: mean +- sqrt(2 v ln(2 / d) / n) + 7 r ln(2 / d) / (3 (n - 1)).
    if trials < 2:
        return -math.inf
    log = math.log(4) - math.log(level)
    away = [
        math.sqrt(2 * variance * log / trials)
        + 7 * 2 * math.sinh(power * reach) * log / (3 * (trials - 1))
        for power, (_, variance) in ((order - 1, first), (order, second))
    ]
    low, high = first[0] - away[0], second[0] + away[1]
    if low <= 0:
        return -math.inf
    return math.log(low) / (order - 1) - math.log(high) / order


def event_rho(hits_a: int, hits_b: int, trials: int, level: float) -> float:
    """A number from the counts of one event that is above rho with probability at most `level`: the
    divergence of two Bernoulli laws grows with their distance, so bounds on both probabilities
    bound it at all orders at once.
    """
    found = 0.0
    for first, second in ((hits_a, hits_b), (hits_b, hits_a)):
        p = float(lower_bound(first, trials, level / 4))
        q = float(upper_bound(second, trials, level / 4))
        if p > q:
            orders = 1 + np.geomspace(1e-2, 1e2, 81)
            for r, s in ((p, q), (1 - q, 1 - p)):
                pairs = ((r, s), (1 - r, 1 - s))
                terms = [orders * math.log(x) + (1 - orders) * math.log(y) for x, y in pairs]
                divergences = np.logaddexp(*terms) / (orders - 1)
                found = max(found, float((divergences / orders).max()))
    return found


def best_renyi(
    scores: Sequence[tuple[str, Score]], outputs_a: Outputs, outputs_b: Outputs, level: float
) -> tuple[RenyiTest, float]:
    """The test with the largest bound on rho for training outputs, and this bound."""
    found: list[tuple[RenyiTest, float]] = []
    for name, score in scores:
        a, b = (scores_of(score, each[:MOST_LOOKED_AT]) for each in (outputs_a, outputs_b))
        both = np.concatenate([a, b])
        finite = both[np.isfinite(both)]
        centre = float(np.median(finite)) if len(finite) else 0.0
        for choice in itertools.product(ORDERS, FACTORS, REACHES, (False, True)):
            test = RenyiTest(name, score, centre, *choice)
            found.append((test, test.bound(a, b, level)))
    return max(found, key=lambda each: each[1])


# The smallest violation of a claim that a sample can show

#: Parameters of a violation are searched up to this factor times the claim plus this number.
#: Gaussian noise is cut into cells up to `CUT` standard deviations.
FARTHEST, CUT, CELLS = 50.0, 10.0, 2001


@lru_cache
def smallest_violation(privacy: Privacy, *, trials: int, level: float = 1e-6) -> float:
    """The smallest true epsilon, or rho for a zCDP claim, up to 1e-4 of it, that an audit of this
    size could show: that of randomised response, or Gaussian noise, which the best test refutes at
    expected counts; infinite if there is none.
    """
    whole(trials, "trials")
    checked_level(level)

    def excess(parameter: float) -> float:
        if isinstance(privacy, ZCDP):
            return _gaussian(parameter, privacy, trials, level)
        return _response(parameter, privacy, trials, level)

    low = privacy.rho if isinstance(privacy, ZCDP) else privacy.epsilon
    high = FARTHEST * (low + 1)
    if excess(high) <= 0:
        return math.inf
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    return high


def _response(epsilon: float, privacy: PureDP | ApproxDP, trials: int, level: float) -> float:
    """The excess of randomised response over the claim, at expected counts."""
    (claim,) = claims_of(privacy)
    delta = claim.delta
    rare = (1 - delta) * float(expit(-epsilon))
    hits = np.rint(trials * np.array([1 - rare, delta])), np.rint(trials * np.array([rare, 0.0]))
    return float(epsilon_bounds(*hits, trials, level, [claim]).max()) - claim.epsilon


def _gaussian(rho: float, privacy: ZCDP, trials: int, level: float) -> float:
    """The excess over rho of Gaussian noise that is rho-zCDP, at expected means and counts."""
    shift = math.sqrt(2 * rho)
    points = np.linspace(-CUT, CUT + shift, CELLS)
    ends = (points[1:] + points[:-1]) / 2
    above = [np.concatenate([[1.0], ndtr(centre - ends), [0.0]]) for centre in (shift, 0.0)]
    laws = [each[:-1] - each[1:] for each in above]
    losses = shift * points - rho
    found = -math.inf
    for order in ORDERS:
        for reach in REACHES:
            limited = np.clip(losses, -reach, reach)
            values = np.exp((order - 1) * limited), np.exp(order * limited)
            first, second = (
                (float(law @ x), max(float(law @ x**2 - (law @ x) ** 2), 0.0))
                for law, x in zip(laws, values, strict=True)
            )
            found = max(found, rho_bound(order, first, second, reach, trials, level / 2))
    claims = claims_of(privacy)
    hits_a, hits_b = (np.rint(trials * each[::10]) for each in above)
    bounds = epsilon_bounds(hits_a, hits_b, trials, level / 2, claims)
    epsilons = np.array([claim.epsilon for claim in claims])[:, None]
    return max(found - privacy.rho, float((bounds - epsilons).max()))


# The result of an audit


@dataclass(frozen=True)
class AuditResult:
    """The result of an audit.

    Parameters
    ----------
    refuted : bool
        Whether the claim was shown to be false, at confidence 1 - `level`. False does not mean that
        the claim is true.
    epsilon_lower_bound : float
        A lower bound on epsilon, at the same confidence. For every epsilon' below the bound, the
        mechanism is not (epsilon', `delta`)-DP. The bound is 0 if the test gives no positive bound.
    claimed_epsilon, delta : float
        The claim that was tested; delta is 0 for pure DP. A zCDP claim implies many pairs (epsilon,
        delta). The result holds the pair that the outputs contradict most.
    level : float
        Upper bound on the probability of refuting a true claim.
    trials : int
        Number of outputs per input that tested the event.
    hits_a, hits_b : int
        How many of these outputs are in the event, for the first and for the second input.
    event : str
        The event, in words.
    pair : str
        The neighbouring inputs, in words; empty for `audit`.
    claim : PureDP, ApproxDP or ZCDP
        The claim, as it was made.
    rho_lower_bound : float or None
        For a zCDP claim, a lower bound on rho from Renyi divergences, at the same confidence. None
        for other claims.
    unseen : float
        The largest difference between outputs that was taken for a rounding error, and so not
        tested; see `null_space_score`.

    Examples
    --------
    Laplace noise of scale 0.5 on a count, with the false claim that it is 1-DP:

    >>> import geomdp as gd
    >>> samples = [lambda n, rng, x=x: rng.laplace(x, 0.5, n) for x in (0.0, 1.0)]
    >>> result = gd.audit.audit(*samples, gd.PureDP(1.0), trials=20_000, rng=0)
    >>> result.refuted, result.claimed_epsilon, round(result.epsilon_lower_bound, 1)
    (True, 1.0, 1.7)
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
    pair: str
    claim: Privacy
    rho_lower_bound: float | None
    unseen: float

    @property
    def smallest_violation(self) -> float:
        """The smallest true epsilon, or rho for zCDP, that could have been shown."""
        return smallest_violation(self.claim, trials=self.trials, level=self.level)

    def __repr__(self) -> str:
        found = "refuted" if self.refuted else "not refuted"
        return (
            f"AuditResult({found}; claimed epsilon={printed(self.claimed_epsilon)}; "
            f"epsilon_lower_bound={printed_down(self.epsilon_lower_bound, 4)}; "
            f"delta={printed(self.delta)}; level={self.level:g}; trials={self.trials})"
        )

    def __str__(self) -> str:
        epsilon, delta = self.claimed_epsilon, self.delta
        verdict = (
            f"The claim of {self.claim} is refuted at level {self.level:g}"
            if self.refuted
            else f"The claim of {self.claim} is not refuted, which proves nothing"
        )
        where = f" for {self.pair}" if self.pair else ""
        shown = "the outputs are consistent with every epsilon"
        if self.epsilon_lower_bound > 0:
            shown = f"this shows an epsilon of at least {printed_down(self.epsilon_lower_bound, 4)}"
        if self.rho_lower_bound is not None:
            implied = ApproxDP(epsilon, delta) if delta > 0 else PureDP(epsilon)
            shown += (
                f", where {implied} is implied. Renyi divergences show a rho of at least "
                f"{printed_down(self.rho_lower_bound, 4)}"
            )
        return (
            f"{verdict}. The event ({self.event}) held for {self.hits_a} of {self.trials} outputs "
            f"on the first input and for {self.hits_b} on the second{where}; {shown}. {self.limits}"
        )

    @property
    def limits(self) -> str:
        """What an audit of this size could not have seen, in sentences."""
        least, name = self.smallest_violation, "rho" if isinstance(self.claim, ZCDP) else "epsilon"
        seen = f"The smallest {name} that so many outputs could have shown is {least:.4g}"
        if least == math.inf:
            seen = "So few outputs could not have shown any violation"
        if self.unseen > 0:
            seen += f". Differences up to {self.unseen:.2g} were taken for rounding errors"
        return f"{seen}."
