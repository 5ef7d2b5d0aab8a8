"""The base class of second-moment workloads: the answers of a record x are svec(x x^T)."""

from __future__ import annotations

import abc
from collections.abc import Iterable

import numpy as np

from geomdp._numerics.linalg import AffineHull, svec, unsvec
from geomdp._typing import FloatArray
from geomdp._validation import batch, whole
from geomdp.workloads.base import CHUNK_ROWS, Totals, Workload
from geomdp.workloads.universe.universes import Records


class OuterProducts(Workload):
    """Q(x) = svec(x x^T) for records x of d reals; `SecondMoment` defines svec."""

    d: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole(self.d, "d"))

    @property
    def n_queries(self) -> int:
        return self.d * (self.d + 1) // 2

    def matrix(self, answers: FloatArray) -> FloatArray:
        """Symmetric matrices from answer vectors along the last axis: (..., m) to (..., d, d)."""
        return unsvec(answers)

    def evaluate(self, records: Records) -> FloatArray:
        return _outer_products(self.universe.validate(records))

    def totals(self, records: Records | Iterable[Records]) -> Totals:
        """One matrix product for each chunk."""
        count, total = 0, np.zeros((self.d, self.d))
        for chunk in self.universe.chunks(records, CHUNK_ROWS):
            count += len(chunk)
            total += chunk.T @ chunk
        return Totals(count, svec(total))

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        directions = batch(directions, self.n_queries, "directions")
        return _outer_products(self._maximisers(unsvec(directions)))

    @abc.abstractmethod
    def _maximisers(self, matrices: FloatArray) -> FloatArray:
        """A maximiser of <x, G x> over the universe for each G of `matrices` (b, d, d): (b, d)."""

    def affine_hull(self) -> AffineHull:
        return AffineHull.whole_space(self.n_queries)

    def labels(self) -> list[str]:
        rows, columns = np.triu_indices(self.d)
        return [
            f"x{i}^2" if i == j else f"sqrt(2)*x{i}*x{j}"
            for i, j in zip(rows, columns, strict=True)
        ]


def _outer_products(points: FloatArray) -> FloatArray:
    """svec(x x^T) for each row x of `points` (n, d): (n, m)."""
    return svec(points[:, :, None] * points[:, None, :])
