"""The update rule, and two rules over a finite universe: BR-MW and BR-FK.

A rule says how noisy answers correct a public hypothesis about the data. Multiplicative weights
(BR-MW) keep a distribution, the Frieze-Kannan perceptron (BR-FK) keeps a sum of queries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import positive, whole
from geomdp.workloads.single_queries import DenseQuery, LinearQuery

#: Smallest accuracy alpha that may be asked for. At this accuracy the bounds of all rules are in
#: the range of float64.
LEAST_ALPHA = 1e-100

Query = TypeVar("Query", bound=LinearQuery, contravariant=True)


class UnfollowedAnswerError(ValueError):
    """No hypothesis agrees with a noisy answer, so the bound does not hold; nothing was changed."""


class Hypothesis(Protocol[Query]):
    """A public estimate of the data that answers queries and is updated by noisy answers."""

    def evaluate(self, query: Query) -> float:
        """The hypothesis' answer to `query`."""

    def update(self, query: Query, answer: float) -> None:
        """Move the hypothesis' answer to `query` towards the noisy `answer`."""


@runtime_checkable
class UpdateRule(Protocol[Query]):
    """Starts hypotheses for a target accuracy and bounds the number of updates they need (BR-IDC).

    Let D be the data and D_t the hypothesis before update t. Let every update get a query Q_t with
    |Q_t(D) - Q_t(D_t)| >= alpha and an answer that differs from Q_t(D) by less than alpha. Then
    after at most B(alpha) updates, no query Q with |Q(D) - Q(D_t)| >= alpha is left.
    """

    def bound(self, alpha: float) -> float:
        """B(alpha), a bound on the number of updates at accuracy `alpha`; can be infinite."""

    def start(self, alpha: float) -> Hypothesis[Query]:
        """The initial hypothesis for accuracy `alpha`."""


def follow(hypothesis: Hypothesis[Query], query: Query, answer: float) -> bool:
    """Update `hypothesis`; False if its rule cannot follow the answer, which is paid for."""
    try:
        hypothesis.update(query, answer)
    except UnfollowedAnswerError:
        return False
    return True


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


@dataclass(frozen=True)
class Perceptron:
    """The Frieze-Kannan rule on {0, ..., M - 1}, with at most B(alpha) = M / alpha^2 updates.

    The hypothesis is a vector x in R^M, which starts at 0. For a query Q, an update subtracts
    (alpha / M) Q from x if <Q, x> is above the noisy answer, else adds it. If <Q, x> errs by at
    least alpha, and the noisy answer by less than alpha, this lowers ||data - x||_2^2, which starts
    at most at 1, by at least alpha^2 / M (Dwork-Roth, Algorithm 10 and Theorem 5.11; BR-FK).

    Parameters
    ----------
    size : int
        Universe size M.

    Examples
    --------
    >>> import geomdp as gd
    >>> rule = gd.mechanisms.Perceptron(2)
    >>> round(rule.bound(0.5), 1)
    8.0
    >>> hypothesis = rule.start(0.5)
    >>> hypothesis.update(gd.workloads.DenseQuery([1.0, 0.0]), answer=0.7)
    >>> hypothesis.vector
    array([0.25, 0.  ])
    """

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole(self.size, "size"))

    def bound(self, alpha: float) -> float:
        """An upper bound on the number of updates: B(alpha) = M / alpha^2."""
        alpha = positive(alpha, "alpha")
        # The square of alpha can be rounded to 0 or be beyond float64, so divide twice.
        return self.size / alpha / alpha

    def start(self, alpha: float) -> LinearHypothesis:
        """The zero vector, with updates that add or subtract alpha / M times the query."""
        return LinearHypothesis(self.size, positive(alpha, "alpha") / self.size)


class LinearHypothesis:
    """A real vector (`size`,). An update adds or subtracts `step` times the values of its query.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.interactive.updates import LinearHypothesis
    >>> hypothesis = LinearHypothesis(size=2, step=0.25)
    >>> query = gd.workloads.DenseQuery([1.0, 0.5])
    >>> hypothesis.update(query, answer=0.7)
    >>> hypothesis.vector, hypothesis.evaluate(query)
    (array([0.25 , 0.125]), 0.3125)
    """

    def __init__(self, size: int, step: float) -> None:
        self._vector = np.zeros(size)
        self._step = step

    def __repr__(self) -> str:
        return f"LinearHypothesis(a vector of {len(self._vector)} elements)"

    @property
    def vector(self) -> FloatArray:
        """A copy of the vector, with one entry for each element."""
        return self._vector.copy()

    def evaluate(self, query: DenseQuery) -> float:
        """Inner product of `query` with the vector."""
        return float(query.values @ self._vector)

    def update(self, query: DenseQuery, answer: float) -> None:
        """Add or subtract `step` times `query`, to move the answer to `query` towards `answer`."""
        sign = -1 if self.evaluate(query) > answer else 1
        self._vector += sign * self._step * query.values
