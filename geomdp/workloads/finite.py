"""Workloads on the finite universe {0, ..., N - 1}: histogram, prefixes and ranges.

The N answer vectors of each workload are linearly independent. So the sensitivity polytope, their
convex hull, is a simplex, and diameters and radii have closed forms.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import batch, whole
from geomdp.workloads.base import MAX_ENTRIES, Totals, Workload, WorkloadSizeError
from geomdp.workloads.universes import FiniteUniverse, Records

#: Number of records counted at a time: 8 MB of integers. A chunk of c records costs O(N + c), so
#: a few large chunks cost less than many small ones.
COUNT_ROWS = 1 << 20


class FiniteWorkload(Workload):
    """A workload on {0, ..., N - 1}, with totals from the count of each element."""

    @property
    @abc.abstractmethod
    def universe(self) -> FiniteUniverse: ...

    @abc.abstractmethod
    def _weighted_sum(self, counts: FloatArray) -> FloatArray:
        """Sum over elements x of counts[x] Q(x), as an array (m,)."""

    def totals(self, records: Records | Iterable[Records]) -> Totals:
        counts = np.zeros(self.universe.size, dtype=np.int64)
        for chunk in self.universe.chunks(records, COUNT_ROWS):
            counts += np.bincount(chunk, minlength=len(counts))
        return Totals(int(counts.sum()), self._weighted_sum(counts.astype(np.float64)))


class _OnCodes(FiniteWorkload):
    """A workload with one parameter N, the number of elements. By default it has N queries."""

    whole_answers: ClassVar[bool] = True
    N: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "N", whole(self.N, "N"))

    @property
    def universe(self) -> FiniteUniverse:
        return FiniteUniverse(self.N)

    @property
    def n_queries(self) -> int:
        return self.N


@dataclass(frozen=True)
class Histogram(_OnCodes):
    """The N point queries q_t(x) = 1[x = t] on {0, ..., N - 1}; Q(x) is the unit vector e_x.

    Parameters
    ----------
    N : int
        Size of the universe and number of queries.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(4)
    >>> workload.answers(np.array([0, 2, 2, 3]))
    array([0.25, 0.  , 0.5 , 0.25])
    >>> workload.l1_diameter()
    2.0
    """

    N: int

    def evaluate(self, records: Records) -> FloatArray:
        codes = self.universe.validate(records)
        answers = np.zeros((len(codes), self.N))
        answers[np.arange(len(codes)), codes] = 1
        return answers

    def _weighted_sum(self, counts: FloatArray) -> FloatArray:
        return counts

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """The first x with the largest u_x wins a tie."""
        directions = batch(directions, self.N, "directions")
        return self.evaluate(directions.argmax(axis=1))

    def affine_hull(self) -> AffineHull:
        """The hyperplane {y : sum of y = 1}; its basis is N x (N - 1)."""
        return AffineHull(np.full(self.N, 1 / self.N), zero_sum_basis(self.N))

    def l1_diameter(self) -> float:
        """2, the l1 distance between two unit vectors (0 if N = 1)."""
        return 2.0 if self.N > 1 else 0.0

    def l2_diameter(self) -> float:
        """sqrt(2), the distance between two unit vectors (0 if N = 1)."""
        return math.sqrt(2) if self.N > 1 else 0.0

    def l1_radius(self) -> float:
        return 1.0

    def l2_radius(self) -> float:
        return 1.0

    def labels(self) -> list[str]:
        return [f"x={t}" for t in range(self.N)]


@dataclass(frozen=True)
class Prefixes(_OnCodes):
    """The N prefix (threshold) queries q_t(x) = 1[x <= t] on {0, ..., N - 1}.

    The last query is 1 for every record.

    Parameters
    ----------
    N : int
        Size of the universe and number of queries.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> gd.workloads.Prefixes(4).answers(np.array([0, 2, 2, 3]))
    array([0.25, 0.25, 0.75, 1.  ])
    """

    N: int

    def evaluate(self, records: Records) -> FloatArray:
        codes = self.universe.validate(records)
        return (codes[:, None] <= np.arange(self.N)).astype(np.float64)

    def _weighted_sum(self, counts: FloatArray) -> FloatArray:
        return np.cumsum(counts)

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """Q(x), where x has the largest sum of u_t over t >= x, for each row u of `directions`."""
        directions = batch(directions, self.N, "directions")
        suffix_sums = np.cumsum(directions[:, ::-1], axis=1)[:, ::-1]
        return self.evaluate(suffix_sums.argmax(axis=1))

    def affine_hull(self) -> AffineHull:
        """The hyperplane {y : y_(N-1) = 1}, with the first N - 1 axes as basis."""
        offset = np.arange(1, self.N + 1) / self.N
        return AffineHull(offset, np.eye(self.N, self.N - 1))

    def l1_diameter(self) -> float:
        """N - 1, between the first and the last element."""
        return float(self.N - 1)

    def l2_diameter(self) -> float:
        """sqrt(N - 1), between the first and the last element."""
        return math.sqrt(self.N - 1)

    def l1_radius(self) -> float:
        """N, at element 0, because every query is 1 there."""
        return float(self.N)

    def l2_radius(self) -> float:
        """sqrt(N), at element 0, because every query is 1 there."""
        return math.sqrt(self.N)

    def labels(self) -> list[str]:
        return [f"x<={t}" for t in range(self.N)]


@dataclass(frozen=True)
class Ranges(_OnCodes):
    """All m = N (N + 1) / 2 interval queries q_[a,b](x) = 1[a <= x <= b] on {0, ..., N - 1}.

    The queries are ordered by a, then by b.

    Parameters
    ----------
    N : int
        Size of the universe.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Ranges(3)
    >>> workload.labels()
    ['0<=x<=0', '0<=x<=1', '0<=x<=2', '1<=x<=1', '1<=x<=2', '2<=x<=2']
    >>> workload.answers(np.array([0, 1, 1, 2]))
    array([0.25, 0.75, 1.  , 0.5 , 0.75, 0.25])
    """

    N: int

    @property
    def n_queries(self) -> int:
        return self.N * (self.N + 1) // 2

    @cached_property
    def ends(self) -> tuple[IntArray, IntArray]:
        """First and last element (a, b) of each interval: two arrays (m,)."""
        first, last = np.triu_indices(self.N)
        return first.astype(np.int64), last.astype(np.int64)

    def evaluate(self, records: Records) -> FloatArray:
        codes = self.universe.validate(records)[:, None]
        first, last = self.ends
        return ((first <= codes) & (codes <= last)).astype(np.float64)

    def _weighted_sum(self, counts: FloatArray) -> FloatArray:
        cumulative = np.concatenate([[0.0], np.cumsum(counts)])
        first, last = self.ends
        return np.asarray(cumulative[last + 1] - cumulative[first])

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """O(m) operations for each direction."""
        directions = batch(directions, self.n_queries, "directions")
        lengths = np.arange(self.N, 0, -1)
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        by_first = np.add.reduceat(directions, starts, axis=1)
        by_last = np.empty((len(directions), self.N))
        for row, weights in zip(by_last, directions, strict=True):
            row[:] = np.bincount(self.ends[1], weights, self.N)
        scores = np.cumsum(by_first, axis=1)
        scores[:, 1:] -= np.cumsum(by_last, axis=1)[:, :-1]
        return self.evaluate(scores.argmax(axis=1))

    def affine_hull(self) -> AffineHull:
        """One QR decomposition, O(m N^2); ``ValueError`` if m N > 2^26 (N > 511)."""
        if self.n_queries * self.N > MAX_ENTRIES:
            raise WorkloadSizeError(f"N must be at most 511 for an affine hull, got {self.N}")
        elements = self.evaluate(self.universe.elements())
        offset = elements.mean(axis=0)
        basis = np.linalg.qr((elements[1:] - elements[:-1]).T)[0]
        return AffineHull(offset, np.ascontiguousarray(basis))

    def l1_diameter(self) -> float:
        """The exact diameter: the maximum of s (N + 1 - s) over 2 <= s <= N; 0 if N = 1.

        For x < y, a = x + 1, b = N - y and s = a + b: a (N + 1 - a) intervals contain x,
        b (N + 1 - b) contain y and a b contain both, so s (N + 1 - s) contain exactly one.
        """
        if self.N == 1:
            return 0.0
        best = max(2, (self.N + 1) // 2)
        return float(best * (self.N + 1 - best))

    def l2_diameter(self) -> float:
        """Square root of `l1_diameter`, as all answers are 0 or 1."""
        return math.sqrt(self.l1_diameter())

    def l1_radius(self) -> float:
        """Number of intervals that contain the middle element: a (N + 1 - a), a = (N + 1) // 2."""
        middle = (self.N + 1) // 2
        return float(middle * (self.N + 1 - middle))

    def l2_radius(self) -> float:
        """Square root of `l1_radius`, as all answers are 0 or 1."""
        return math.sqrt(self.l1_radius())

    def labels(self) -> list[str]:
        return [f"{a}<=x<={b}" for a, b in zip(*self.ends, strict=True)]


def zero_sum_basis(size: int) -> FloatArray:
    """Orthonormal Helmert contrasts (size, size - 1): column j compares entries 0..j with j + 1."""
    basis = np.zeros((size, size - 1))
    for j in range(1, size):
        # Column j - 1 is (1, ..., 1, -j, 0, ...), divided by its norm (j + j^2)^(1/2).
        basis[:j, j - 1] = 1 / math.sqrt(j * (j + 1))
        basis[j, j - 1] = -j / math.sqrt(j * (j + 1))
    return basis
