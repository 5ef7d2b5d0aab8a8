"""Lower bound on the budget of answers that are accurate with a stated probability.

Let D_1, ..., D_M be data sets of n records. One becomes another by at most k changes, and the
answers of any two differ by more than 2 h. Assume that a mechanism states, for each data set, a
region of half-width h that contains the true answers with probability at least c. The event E_j
that the region contains the answers of D_j has probability at least c on D_j. The events exclude
each other, so on D_1 the least likely of E_2, ..., E_M has a probability of at most
q = (1 - c) / (M - 1). Group privacy (GEN-2) compares its probabilities on two data sets:

    epsilon-DP:          c <= e^(k epsilon) q
    (epsilon, delta)-DP: c <= e^(k epsilon) q + delta (e^(k epsilon) - 1) / (e^epsilon - 1)
    rho-zCDP:            kl(c, q) <= k^2 rho,

where kl is the Kullback-Leibler divergence of coins with the heads probabilities c > q. A smaller
epsilon or rho is impossible. The regions may depend on the records in any way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from geomdp._validation import probability, whole
from geomdp.privacy import ZCDP, ApproxDP, Privacy, PureDP

#: Relative margin by which a budget is rounded down, far above the errors of a few logarithms.
MARGIN = 1e-9
#: Number of halvings of the interval of epsilon under (epsilon, delta)-DP.
HALVINGS = 100


@dataclass(frozen=True)
class ConfidentAnswers:
    """Data sets whose regions exclude each other: a proof that a budget is too small.

    Parameters
    ----------
    data_sets : int
        M, at least 2: number of data sets, any two of which have answers more than 2 h apart.
    changes : int
        k, at least 1: number of changes that lead from one of them to another.
    confidence : float
        c: probability of the region of half-width h, above 1/2 and below 1.

    References
    ----------
    The packing argument of JL-L6, with the probability in place of Markov's inequality.

    Examples
    --------
    A count that is within 10 with probability 0.95 distinguishes counts that are 21 apart:

    >>> import geomdp as gd
    >>> proof = gd.bounds.ConfidentAnswers(data_sets=2, changes=21, confidence=0.95)
    >>> round(proof.least_budget(gd.PureDP(1.0)), 4)  # ln(19) / 21
    0.1402
    """

    data_sets: int
    changes: int
    confidence: float = 0.95

    def __post_init__(self) -> None:
        whole(self.data_sets, "data_sets", minimum=2)
        whole(self.changes, "changes")
        if probability(self.confidence, "confidence") <= 0.5:
            raise ValueError(f"confidence must be above 1/2, got {self.confidence!r}")

    @property
    def least_likely(self) -> float:
        """The bound q on the probability of one of the events of the other data sets."""
        return (1 - self.confidence) / (self.data_sets - 1)

    def least_budget(self, privacy: Privacy) -> float:
        """The epsilon (rho for zCDP) below which no mechanism has such regions; 0 if none.

        Of `privacy`, only the definition and a delta matter.
        """
        c, q, k = self.confidence, self.least_likely, self.changes
        odds = math.log(c) - math.log(q)
        match privacy:
            case PureDP():
                return odds / k * (1 - MARGIN)
            case ZCDP():
                divergence = c * odds + (1 - c) * (math.log1p(-c) - math.log1p(-q))
                return divergence / k / k * (1 - MARGIN)
            case ApproxDP(delta=delta):
                low, high = 0.0, odds / k
                for _ in range(HALVINGS):
                    middle = (low + high) / 2
                    group = math.expm1(k * middle) / math.expm1(middle) if middle > 0 else k
                    enough = c <= math.exp(k * middle) * q + delta * group
                    low, high = (low, middle) if enough else (middle, high)
                return low * (1 - MARGIN)
