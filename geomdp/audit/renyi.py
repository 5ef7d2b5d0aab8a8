"""Tests of a zCDP claim by lower bounds on Renyi divergences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp.audit.binomial import lower_bound, upper_bound
from geomdp.audit.samplers import Outputs, Score, scores_of

#: Orders, factors of the score, and limits of the function g among which training chooses. For
#: Gaussian noise, the best g is the log-density ratio. Some scores are half of it. Orders near 1
#: need the fewest outputs. Larger orders are for losses that a few outputs carry.
ORDERS = (1.05, 1.25, 1.5, 2.0, 4.0, 9.0)
FACTORS = (0.5, 1.0, 1.4, 2.0)
REACHES = (1.0, 2.0, 4.0, 8.0)
#: Training looks at no more than this number of outputs on each input. More outputs hardly change
#: the choice.
MOST_LOOKED_AT = 20_000


@dataclass(frozen=True)
class RenyiTest:
    """A lower bound on rho from a score, at one order.

    rho-zCDP is D_order(p || q) <= order * rho. For every function g,

        D_order / order >= ln E_p[e^((order - 1) g)] / (order - 1) - ln E_q[e^(order g)] / order

    (Birrell et al. 2021). Here g is `factor` (score - `centre`), limited to [-`reach`, `reach`], so
    that Maurer-Pontil 2009, Theorem 4, bounds both means. If `swapped`, p is the second law.
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

    def rho(self, outputs_a: Outputs, outputs_b: Outputs, level: float) -> float:
        """A number that is above the true rho with probability at most `level`."""
        of_a, of_b = scores_of(self.score, outputs_a), scores_of(self.score, outputs_b)
        return self.bound(of_a, of_b, level)

    def bound(self, scores_a: FloatArray, scores_b: FloatArray, level: float) -> float:
        """As `rho`, from the scores of the outputs on the two inputs."""
        scores, sign = ((scores_b, scores_a), -1.0) if self.swapped else ((scores_a, scores_b), 1.0)
        first, second = (
            np.clip(sign * self.factor * (each - self.centre), -self.reach, self.reach)
            for each in scores
        )
        return rho_bound(
            self.order,
            _moments(np.exp((self.order - 1) * first)),
            _moments(np.exp(self.order * second)),
            self.reach,
            len(scores_a),
            level,
        )


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
    # A bound on the mean of numbers in an interval of length r fails with probability at most d:
    # mean +- sqrt(2 v ln(2 / d) / n) + 7 r ln(2 / d) / (3 (n - 1)). Each of the two takes d =
    # level / 2.
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
    """A number from the counts of one event that is above rho with probability at most `level`.

    The divergence of the outputs is at least that of the event. That of two Bernoulli laws grows
    with their distance, so Clopper-Pearson bounds on both probabilities bound it for all orders at
    once.
    """
    found = 0.0
    for first, second in ((hits_a, hits_b), (hits_b, hits_a)):
        p = float(lower_bound(first, trials, level / 4))
        q = float(upper_bound(second, trials, level / 4))
        if p > q:
            orders = 1 + np.geomspace(1e-2, 1e2, 81)
            for r, s in ((p, q), (1 - q, 1 - p)):
                terms = [
                    orders * math.log(x) + (1 - orders) * math.log(y)
                    for x, y in ((r, s), (1 - r, 1 - s))
                ]
                divergences = np.logaddexp(*terms) / (orders - 1)
                found = max(found, float((divergences / orders).max()))
    return found


def best_renyi(
    scores: Sequence[tuple[str, Score]],
    outputs_a: Outputs,
    outputs_b: Outputs,
    level: float,
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
