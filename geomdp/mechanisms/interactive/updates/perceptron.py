"""The Frieze-Kannan (perceptron) update rule over a finite universe (BR-FK)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import positive, whole
from geomdp.workloads.single_queries.single_query import DenseQuery


@dataclass(frozen=True)
class Perceptron:
    """Frieze-Kannan on {0, ..., M - 1}: x <- x -+ (alpha / M) Q, B(alpha) = M / alpha^2.

    Each update lowers ||data - x||_2^2 by alpha^2 / M. It starts at ||data||_2^2, for which the
    bound uses the public 1 (Dwork-Roth, Algorithm 10 and Theorem 5.11; BR-FK).

    Parameters
    ----------
    size : int
        Universe size M.
    """

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole(self.size, "size"))

    def bound(self, alpha: float) -> float:
        """B(alpha) = M / alpha^2."""
        return self.size / positive(alpha, "alpha") ** 2

    def start(self, alpha: float) -> LinearHypothesis:
        """The zero vector."""
        return LinearHypothesis(self.size, positive(alpha, "alpha") / self.size)


class LinearHypothesis:
    """A real vector (`size`,), not necessarily a distribution; an update takes one `step`."""

    def __init__(self, size: int, step: float) -> None:
        self._vector = np.zeros(size)
        self._step = step

    def __repr__(self) -> str:
        return f"LinearHypothesis(a vector of {len(self._vector)} elements)"

    @property
    def vector(self) -> FloatArray:
        """The vector (M,)."""
        return self._vector.copy()

    def evaluate(self, query: DenseQuery) -> float:
        """Inner product of `query` with the vector."""
        return float(query.values @ self._vector)

    def update(self, query: DenseQuery, answer: float) -> None:
        """Add or subtract a multiple of the query's values, towards the answer."""
        sign = -1 if self.evaluate(query) > answer else 1
        self._vector += sign * self._step * query.values
