"""The exponential mechanism: choice with probability proportional to exp(eps score / spread)."""

from __future__ import annotations

import math

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import probability
from geomdp.mechanisms.selection.base import Selection
from geomdp.noise.exact.argmax import GUMBEL


class ExponentialMechanism(Selection):
    """Choose query j with probability proportional to exp(eps s_j / R) (GEN-3).

    The score s_j is the sum of query j over the records, and R is the spread of the scores. In the
    worst case R is twice the sensitivity Delta of a score, which gives the textbook's
    exp(eps s_j / (2 Delta)).

    Privacy: eps-DP. Let d_j be the change of s_j between neighbours. The weight exp(eps s_j / R)
    changes by one factor, and the sum of the weights of all queries by another. The ratio of the
    two factors is at most exp(eps max (d_i - d_j) / R) <= exp(eps). On the computer, and for the
    parameters, see `Selection`.

    Examples
    --------
    Which of four towns do most of 100 people live in? The seed makes this a simulation.

    >>> import numpy as np
    >>> import geomdp as gd
    >>> towns = gd.workloads.Explicit(np.eye(4))
    >>> records = np.repeat([0, 1, 2, 3], [10, 20, 60, 10])
    >>> choice = gd.mechanisms.ExponentialMechanism(towns, n=100, privacy=gd.PureDP(0.5))
    >>> choice.release(records, rng=1).index
    2
    >>> choice.probabilities(towns.answers(records)).round(4)
    array([0.    , 0.    , 0.9999, 0.    ])
    >>> round(choice.loss(0.01), 3)
    0.228
    """

    perturbation = GUMBEL

    def loss(self, gamma: float) -> float:
        """(R / (n eps)) ln((m - 1)(1 - gamma) / gamma) for m queries, or 0 if that is negative.

        A bound above 0 is tight: if the answer to one query exceeds all others by exactly the
        bound, another query is chosen with probability `gamma`.
        """
        share = probability(gamma, "gamma")
        ratio = (self.workload.n_queries - 1) * (1 - share) / share
        return self.scale / self.n * max(0.0, math.log(ratio))

    def _law(self, scores: FloatArray) -> FloatArray:
        weights = np.exp(scores - scores.max())
        return np.asarray(weights / weights.sum())
