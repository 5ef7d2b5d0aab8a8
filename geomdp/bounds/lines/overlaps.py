"""How much the outputs of a private mechanism on two data sets must overlap.

Let P and Q be the distributions of the output on two data sets that are r changes apart. Their
overlap is 1 - TV, where TV = max_S P(S) - Q(S) is the total variation. A test sees one output and
guesses which of the two data sets was used. Its two error probabilities add up to at least the
overlap. Each guarantee gives a lower bound on the overlap by group privacy (GEN-2).

* epsilon-DP and (epsilon, delta)-DP: TV <= tanh(r epsilon / 2) (1 + 2 delta / (e^epsilon - 1)).
  Proof: group privacy gives epsilon' = r epsilon and delta' = delta (e^epsilon' - 1) /
  (e^epsilon - 1). Add P(S) <= e^epsilon' Q(S) + delta' and
  1 - Q(S) <= e^epsilon' (1 - P(S)) + delta', and solve for d = P(S) - Q(S): the result is
  d (e^epsilon' + 1) <= e^epsilon' - 1 + 2 delta'.
* rho-zCDP: TV <= tanh(x), where x > 0 solves 2 x tanh(x) = r^2 rho. Proof: group privacy gives
  r^2 rho, so both Kullback-Leibler divergences are at most r^2 rho: they are the limits of the
  Renyi divergences as the order tends to 1. Let p = P(S), q = Q(S) and d = p - q. By data
  processing, the two divergences of (p, 1 - p) and (q, 1 - q) add up to
  d ln(p (1 - q) / (q (1 - p))) <= 2 r^2 rho. For fixed d, the left-hand side is least at
  p + q = 1, where it is 2 d ln((1 + d) / (1 - d)). With d = tanh(x) this is 4 x tanh(x). The bound
  is never weaker than Pinsker's inequality (2 d^2 <= r^2 rho) or the inequality of Bretagnolle and
  Huber (d^2 <= 1 - e^(-r^2 rho)).

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
    """A lower bound on the overlap 1 - TV of outputs on data sets that are `changes` apart.

    Parameters
    ----------
    privacy : PureDP, ApproxDP or ZCDP
        The guarantee of the mechanism.
    changes : int
        Number r of changes, each to a neighbouring data set; at least 1.

    Returns
    -------
    float
        1 minus the bound on TV in the module's docstring, rounded down; 0 if this is below 0.
    """
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
    """The number 2 x with 2 x tanh(x) = `divergence`, rounded up.

    Since 2 x tanh(x) is at least 2 x - 1, the number 2 x is at most `divergence` + 1.
    """
    low, high = 0.0, divergence + 1
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if middle * math.tanh(middle / 2) < divergence * (1 + MARGIN):
            low = middle
        else:
            high = middle
    return high
