"""The Frieze-Kannan (perceptron) update rule over a finite universe (BR-FK)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import positive, whole
from geomdp.workloads.single_queries.single_query import DenseQuery


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
