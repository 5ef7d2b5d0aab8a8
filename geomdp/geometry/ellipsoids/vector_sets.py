"""Sets of vectors in R^r that an ellipsoid must contain, and searches for their longest vectors."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import finite_array

#: Number of rows whose distances to all rows are computed at a time. With 4096 rows in all, these
#: 512 x 4096 float64 are 16 MB.
BLOCK_ROWS = 512
#: Two squared lengths are treated as equal up to this relative difference, because rounding can
#: cause it.
EQUAL_LENGTHS = 1e-12


@dataclass(frozen=True)
class LongVectors:
    """The v of a set with ||root v||^2 near its maximum `largest`, from `VectorSet.longest`.

    `vectors` (a, r) is None if there are more than the `limit`. `mean` (r, r) averages their v v^T.
    """

    largest: float
    vectors: FloatArray | None
    mean: FloatArray


def _threshold(level: float, largest: float) -> float:
    """Least ||root v||^2 of a long vector: halfway from `level` to the maximum, `largest`."""
    # Because of rounding, `level` can be `largest` or more, but the longest vectors still count as
    # long.
    return min((level + largest) / 2, largest * (1 - EQUAL_LENGTHS))


@dataclass(frozen=True, eq=False)
class VectorSet(abc.ABC):
    """A finite set V of vectors in R^r, derived from the rows of an array (N, r)."""

    points: FloatArray

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.points)} in dimension {self.dimension})"

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", finite_array(self.points, "points", ndim=2))

    @property
    def dimension(self) -> int:
        """Dimension r."""
        return int(self.points.shape[1])

    @abc.abstractmethod
    def mean(self) -> FloatArray:
        """Average of v v^T over V: (r, r)."""

    @abc.abstractmethod
    def longest(self, root: FloatArray, level: float, limit: int) -> LongVectors:
        """The vectors v of V with ||root v||^2 at least (`level` + the maximum) / 2.

        `root` is an array (r, r). If there are at most `limit` such vectors, the result lists them.
        The longest vectors of V are always included, even if `level` is above the maximum.
        """


class Rows(VectorSet):
    """The rows v of an array. An ellipsoid around 0 that contains v also contains -v."""

    def mean(self) -> FloatArray:
        return np.asarray(self.points.T @ self.points / len(self.points))

    def longest(self, root: FloatArray, level: float, limit: int) -> LongVectors:
        """The long rows. Cost: O(N r^2)."""
        squares = ((self.points @ root.T) ** 2).sum(axis=1)
        largest = float(squares.max())
        rows = self.points[squares >= _threshold(level, largest)]
        return LongVectors(largest, rows if len(rows) <= limit else None, rows.T @ rows / len(rows))


class PairDifferences(VectorSet):
    """All differences a - b of two rows of an array (N, r). Only long differences are stored."""

    @cached_property
    def _centred(self) -> FloatArray:
        # Differences do not depend on the origin. The squared distance of a and b is computed as
        # |a|^2 + |b|^2 - 2 <a, b>. Far from 0, the rounding error of this formula is large.
        return np.asarray(self.points - self.points.mean(axis=0))

    def mean(self) -> FloatArray:
        """Average of (a - b)(a - b)^T over all N^2 pairs: twice the covariance of the N rows."""
        return np.asarray(2 * self._centred.T @ self._centred / len(self._centred))

    def longest(self, root: FloatArray, level: float, limit: int) -> LongVectors:
        """The long differences, a - b or b - a. Cost: O(N^2 r), in blocks of 512 rows."""
        images = self._centred @ root.T
        largest = max(float(block.max()) for _, block in _squared_distances(images))
        threshold = _threshold(level, largest)
        seen = 0
        listed: list[FloatArray] = []
        total = np.zeros((self.dimension, self.dimension))
        for start, block in _squared_distances(images):
            # Count each pair of rows once, in the block of the row with the lower number.
            long = np.triu(block >= threshold, k=start)
            total += self._outer_products(start, long)
            rows, others = np.nonzero(long)
            seen += len(rows)
            if seen <= limit:
                listed.append(self._centred[start + rows] - self._centred[others])
        vectors = np.vstack(listed) if seen <= limit else None
        return LongVectors(largest, vectors, total / seen)

    def _outer_products(self, start: int, chosen: BoolArray) -> FloatArray:
        """Sum of (a - b)(a - b)^T where chosen[i, j] is True; a is row start + i and b is row j."""
        mask = chosen.astype(np.float64)
        block, rows = self._centred[start : start + len(mask)], self._centred
        mixed = block.T @ (mask @ rows)
        left, right = mask.sum(axis=1), mask.sum(axis=0)
        own = (block.T * left) @ block + (rows.T * right) @ rows
        return np.asarray(own - mixed - mixed.T)


def _squared_distances(points: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    """For each block of rows, the number of the first row, and squared distances to all rows."""
    squares = np.einsum("nr,nr->n", points, points)
    for start in range(0, len(points), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        yield start, squares[rows, None] + squares - 2 * (points[rows] @ points.T)
