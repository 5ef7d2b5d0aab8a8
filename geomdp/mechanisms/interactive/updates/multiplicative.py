"""Multiplicative weights over a finite universe (BR-MW)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import positive, whole
from geomdp.workloads.single_queries.single_query import DenseQuery


@dataclass(frozen=True)
class MultiplicativeWeights:
    """Multiplicative weights on {0, ..., M - 1}: at most 4 ln M / alpha^2 updates.

    At the start KL(data || hypothesis) is at most ln M. An update lowers it by at least
    alpha^2 / 4, if the hypothesis errs on the query by at least alpha, and the noisy answer by less
    (Dwork-Roth, Algorithm 5 and Theorem 4.10; BR-MW). Evaluations and updates take time O(M).

    Parameters
    ----------
    size : int
        Universe size M, at least 2.

    Examples
    --------
    >>> import geomdp as gd
    >>> rule = gd.mechanisms.MultiplicativeWeights(3)
    >>> round(rule.bound(0.2), 1)
    109.9
    >>> hypothesis = rule.start(0.2)
    >>> hypothesis.update(gd.workloads.DenseQuery([1.0, 0.0, 0.0]), answer=0.7)
    >>> hypothesis.distribution.round(3)
    array([0.356, 0.322, 0.322])
    """

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole(self.size, "size", minimum=2))

    def bound(self, alpha: float) -> float:
        """An upper bound on the number of updates: B(alpha) = 4 ln M / alpha^2."""
        alpha = positive(alpha, "alpha")
        # The square of alpha can round to 0 or exceed the range of float64. In these cases,
        # dividing by alpha twice gives infinity or a number near 0.
        return 4 * math.log(self.size) / alpha / alpha

    def start(self, alpha: float) -> WeightedHypothesis:
        """The uniform distribution, with learning rate alpha / 2."""
        return WeightedHypothesis(self.size, positive(alpha, "alpha") / 2)


class WeightedHypothesis:
    """A distribution on {0, ..., `size` - 1}, first uniform. `rate` is the learning rate eta.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.interactive.updates import WeightedHypothesis
    >>> hypothesis = WeightedHypothesis(size=3, rate=0.5)
    >>> query = gd.workloads.DenseQuery([1.0, 0.0, 0.0])
    >>> round(hypothesis.evaluate(query), 3)
    0.333
    >>> hypothesis.update(query, answer=0.7)
    >>> round(hypothesis.evaluate(query), 3)
    0.452
    """

    def __init__(self, size: int, rate: float) -> None:
        self._logs = np.zeros(size)
        self._rate = rate
        self._distribution: FloatArray = np.full(size, 1 / size)

    def __repr__(self) -> str:
        return f"WeightedHypothesis(a distribution on {len(self._logs)} elements)"

    @property
    def distribution(self) -> FloatArray:
        """A copy of the distribution, with one probability for each element."""
        return self._distribution.copy()

    def evaluate(self, query: DenseQuery) -> float:
        """Mean of `query` under the distribution."""
        return float(query.values @ self._distribution)

    def update(self, query: DenseQuery, answer: float) -> None:
        """Multiply the weight of each element x by exp(-eta r(x)).

        For the query Q, r = Q if `answer` is below the answer of the hypothesis, else r = 1 - Q.
        """
        sign = -1 if answer < self.evaluate(query) else 1
        # exp(-eta (1 - Q)) and exp(eta Q) differ by a constant factor, which normalising removes.
        self._logs += sign * self._rate * query.values
        self._logs -= self._logs.max()
        weights = np.exp(self._logs)
        self._distribution = weights / weights.sum()
