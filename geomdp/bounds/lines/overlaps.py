"""How much the outputs of a private mechanism on two data sets must overlap.

`geomdp.bounds.checker.guarantees` defines the overlap and proves the bounds. That for zCDP is never
weaker than Pinsker's inequality (2 TV^2 <= r^2 rho) or the inequality of Bretagnolle and Huber
(TV^2 <= 1 - e^(-r^2 rho)).

References
----------
Dwork-Roth 2014, Theorem 2.2; Vadhan 2017, Lemma 2.2; Bun-Steinke 2016, Proposition 1.9; formula
sheet GEN-2.
"""

from __future__ import annotations

import math

from geomdp.privacy import ZCDP, ApproxDP, Privacy, PureDP

#: Relative margin for the rounding errors of an overlap, far above 2^-52 times a few operations.
#: The checker of certificates computes each overlap again, with a margin of 2e-13. The overlap that
#: it finds must not be smaller than the overlap here. So the margin here is much larger. If
#: delta > 0, the overlap can be a small difference of two larger numbers, and small errors of these
#: numbers are then large relative to the overlap.
MARGIN = 1e-12
#: The bound 1 - tanh(x) is at most 2 e^(-2 x). It is set to 0 if 2 x is at least this number.
MOST_LOSS = 600.0
#: Number of bisections. The two ends are then neighbouring float64 numbers, unless both are below
#: 2^-46.
BISECTIONS = 100


def overlap(privacy: Privacy, changes: int) -> float:
    """A lower bound, rounded down and at least 0, on the overlap of outputs `changes` apart."""
    match privacy:
        case PureDP(epsilon=epsilon):
            return _from_loss(changes * epsilon)
        case ApproxDP(epsilon=epsilon, delta=delta):
            loss = changes * epsilon
            common = _from_loss(loss)
            if common == 0:
                return 0.0
            lost = math.tanh(loss / 2) * 2 * delta / math.expm1(epsilon)
            return max(0.0, common - lost * (1 + MARGIN))
        case ZCDP(rho=rho):
            return _from_loss(_loss_of_binary_answers(changes**2 * rho))


def _from_loss(loss: float) -> float:
    """1 - tanh(loss / 2), rounded down."""
    return 2 / (math.exp(loss) + 1) * (1 - MARGIN) if loss < MOST_LOSS else 0.0


def _loss_of_binary_answers(divergence: float) -> float:
    """The number 2 x with 2 x tanh(x) = `divergence`, rounded up; at most `divergence` + 1."""
    low, high = 0.0, divergence + 1
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if middle * math.tanh(middle / 2) < divergence * (1 + MARGIN):
            low = middle
        else:
            high = middle
    return high
