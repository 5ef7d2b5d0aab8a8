"""The ellipsoid {v : v^T S^-1 v <= 1} of least trace tr S around a set of vectors (JL-ELL)."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from geomdp._numerics.linalg import row_blocks
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import finite_array, positive
from geomdp.bodies.base import check_all_above_0

#: S is enlarged by this share, to contain every vector despite rounding of about 1e-13 (SAM-5).
INFLATION = 1e-9
#: Largest number of searches for the vectors with the largest v^T S^-1 v, and of multiplicative
#: updates of the weights between two searches.
MAX_SEARCHES, INNER_UPDATES = 60, 100
#: Exponent 2 of an update never lowers the dual value: it is power iteration for the maximum of a
#: convex function on a sphere. Larger ones are several times as fast, so each update multiplies the
#: exponent by 1.3, up to 16. If it then does not raise the dual value, it is undone, back to 2.
SAFE_EXPONENT, MOST_EXPONENT, EXPONENT_GROWTH = 2.0, 16.0, 1.3
#: Only columns have weights: a column is a vector or a distribution of vectors. Updates end when
#: the gap on the columns is at most this share of the gap that the last search gave for the whole
#: set, or half the tolerance if that is more.
BALANCED_SHARE = 0.25
#: The score of a vector v is v^T (t W^(1/2))^-1 v; the weighted mean of the scores is 1. A vector
#: is dropped if its score is below DECAYING, so that it loses weight, and its weight below
#: LEAST_SHARE times the average weight. A later search may find the vector again.
LEAST_SHARE, DECAYING = 1e-4, 0.99
#: If a search in R^r finds at most r times this number of vectors, each becomes a column, else
#: their uniform distribution: the best ellipsoid touches all vectors of an orbit of symmetries or
#: none, and in general position at most r (r + 1) / 2, in practice a small multiple of r.
COLUMNS_PER_DIMENSION = 8


@dataclass(frozen=True)
class TraceEllipsoid:
    """The ellipsoid {root @ u : ||u||_2 <= 1} for the symmetric `root` (r, r) of S; trace tr S.

    `gap` is relative: tr S <= (1 + gap) times the least trace, up to 1e-9 (INFLATION). The
    ellipsoid contains the set also if the gap missed the tolerance (`converged`).
    """

    root: FloatArray
    trace: float
    gap: float
    converged: bool


def least_trace_ellipsoid(vectors: VectorSet, *, tolerance: float = 1e-3) -> TraceEllipsoid:
    """The ellipsoid K around `vectors` for which K-norm noise has the least second moment (JL-ELL).

    The dual problem for the set V of vectors is to maximise t^2 over weights p on V, with t = tr
    W^(1/2) and W = sum of p_v v v^T. For every p, let s be the maximum over V of v^T (t W^(1/2))^-1
    v. Then S = s t W^(1/2) is feasible with the relative gap s - 1. A gap of 1e-3 (`tolerance`)
    costs at most 0.05% in root mean squared error.
    """
    # The first column is the uniform distribution on V, so W never loses rank.
    columns = _Columns(vectors.mean())
    limit = COLUMNS_PER_DIMENSION * vectors.dimension
    for search in range(MAX_SEARCHES):
        long = vectors.longest(columns.whitening, columns.trace, limit)
        excess = long.largest / columns.trace - 1
        if excess <= tolerance or search == MAX_SEARCHES - 1:
            break
        columns.add(long)
        columns.improve(max(tolerance / 2, BALANCED_SHARE * excess))
    # The maximum of v^T (t W^(1/2))^-1 v over V is at least 1, up to rounding.
    scale = max(long.largest / columns.trace, 1.0)
    gap = scale * (columns.trace / columns.dual_root) ** 2 - 1
    inflated = scale * (1 + INFLATION)
    root = np.sqrt(inflated * columns.trace) * columns.fourth_root
    return TraceEllipsoid(root, inflated * columns.trace**2, gap, scale <= 1 + tolerance)


class _Columns:
    """Weights p on vectors and distributions of vectors, W = sum of p_v v v^T, and roots of W; the
    first column is the uniform distribution on the set, with the mean `bulk` (r, r) of v v^T.
    """

    def __init__(self, bulk: FloatArray) -> None:
        self._vectors = np.empty((0, len(bulk)))
        self._means = bulk[None]
        #: The weights of the vectors, then the weights of the distributions.
        self._weights = np.ones(1)
        self._decompose()

    def _decompose(self) -> None:
        single, crowd = np.split(self._weights, [len(self._vectors)])
        W = (self._vectors.T * single) @ self._vectors + np.tensordot(crowd, self._means, axes=1)
        values, axes = np.linalg.eigh(W)
        if values[-1] <= 0:
            raise ValueError("vectors must not all be 0")
        # Eigenvalues below the floor are rounding errors. The dual value leaves them out.
        floor = np.finfo(np.float64).eps * len(values) * values[-1]
        self.dual_root = float(np.sqrt(values[values > floor]).sum())
        values = np.maximum(values, floor)
        #: t = tr W^(1/2), after small eigenvalues of W were raised to the floor.
        self.trace = float(np.sqrt(values).sum())
        self.fourth_root = (axes * values**0.25) @ axes.T
        #: W^(-1/4): its square is the metric W^(-1/2).
        self.whitening = (axes * values**-0.25) @ axes.T

    def _scores(self) -> FloatArray:
        """v^T (t W^(1/2))^-1 v for every vector v, and its mean over v for every distribution."""
        single = ((self._vectors @ self.whitening) ** 2).sum(axis=1)
        crowd = np.tensordot(self._means, self.whitening @ self.whitening, axes=2)
        return np.asarray(np.concatenate([single, crowd]) / self.trace)

    def improve(self, tolerance: float) -> None:
        """Update the weights until the gap on the columns is at most `tolerance` (or 100 times).

        Then drop the vectors that `LEAST_SHARE` and `DECAYING` describe.
        """
        scores, exponent = self._scores(), SAFE_EXPONENT
        for _ in range(INNER_UPDATES):
            if scores.max() <= 1 + tolerance:
                break
            before, reached = self._weights, self.dual_root
            weights = before * scores**exponent
            self._weights = weights / weights.sum()
            self._decompose()
            if self.dual_root <= reached and exponent > SAFE_EXPONENT:
                self._weights, exponent = before, SAFE_EXPONENT
                self._decompose()
            else:
                exponent = min(EXPONENT_GROWTH * exponent, MOST_EXPONENT)
            scores = self._scores()
        kept = (self._weights >= LEAST_SHARE / len(self._weights)) | (scores >= DECAYING)
        kept[len(self._vectors) :] = True
        if not kept.all():
            self._vectors = self._vectors[kept[: len(self._vectors)]]
            self._weights = self._weights[kept] / self._weights[kept].sum()
            self._decompose()

    def add(self, long: LongVectors) -> None:
        """Add the vectors of a search with average weight, each as a column, or all as one."""
        new = 1 if long.vectors is None else len(long.vectors)
        share = new / (new + len(self._weights))
        single, crowd = np.split(self._weights * (1 - share), [len(self._vectors)])
        fresh = np.full(new, share / new)
        if long.vectors is None:
            self._means = np.concatenate([self._means, long.mean[None]])
            self._weights = np.concatenate([single, crowd, fresh])
        else:
            self._vectors = np.vstack([self._vectors, long.vectors])
            self._weights = np.concatenate([single, fresh, crowd])
        self._decompose()


# Least-trace ellipsoids in R^(r_1) x ... x R^(r_B), with equal semi-axes within each factor, called
# a block. Block i of a vector v is v_i in R^(r_i).

#: Largest number of updates of the weights in `profile_ellipsoid`.
MAX_UPDATES = 5000


def capped_ellipsoid(
    dimensions: npt.ArrayLike, diameters: npt.ArrayLike, diameter: float
) -> FloatArray:
    """Semi-axes sqrt(s_i) (B,) of the least-trace ellipsoid for blocks of bounded lengths.

    It contains all v with ||v_i||_2 <= delta_i (`diameters`) and ||v||_2 <= delta (`diameter`). Its
    trace, the sum of r_i s_i with the `dimensions` r_i, is t^2 with t = max {sum of sqrt(r_i u_i) :
    0 <= u_i <= delta_i^2, sum of u_i <= delta^2} (JL-ELL).
    """
    caps = finite_array(diameters, "diameters", ndim=1)
    check_all_above_0(caps, "diameters")
    caps, total = caps**2, positive(diameter, "diameter") ** 2
    sizes = np.asarray(dimensions, dtype=np.float64)
    # The maximum is at u_i = min(delta_i^2, lambda r_i) for the lambda with sum of u_i = delta^2
    # (or all u_i at their caps). So the sum of u'_i sqrt(r_i / u_i) is at most t for every feasible
    # u', such as u'_i = ||v_i||^2, and s_i = t sqrt(u_i / r_i) contains the vectors.
    shares = np.minimum(caps, _water_level(caps, sizes, total) * sizes)
    t = float(np.sqrt(sizes * shares).sum())
    return np.asarray(np.sqrt((1 + INFLATION) * t * np.sqrt(shares / sizes)))


def profile_ellipsoid(
    dimensions: npt.ArrayLike, rows: FloatArray, *, tolerance: float = 1e-3
) -> FloatArray:
    """Semi-axes sqrt(s_i) (B,) of the least-trace ellipsoid whose blocks obey one of the `rows`.

    A row of `rows` (P, B) bounds the squared length of every block; some row has entries of at
    least ||v_1||^2, ..., ||v_B||^2. With r_i = `dimensions`, s_i = t sqrt(u_i / r_i) for the
    maximum t of the sum of sqrt(r_i u_i) over u in the hull of the rows (JL-ELL). At the end s is
    rescaled, so the ellipsoid contains the vectors even if `tolerance` (relative gap) was missed.
    """
    if not ((rows >= 0).all() and (rows > 0).any(axis=0).all()):
        raise ValueError("profiles must be at least 0, and each column must have an entry above 0")
    sizes = np.asarray(dimensions, dtype=np.float64)
    weights = np.full(len(rows), 1 / len(rows))
    for _ in range(MAX_UPDATES):
        u = weights @ rows
        t = float(np.sqrt(sizes * u).sum())
        scores = rows @ np.sqrt(sizes / u) / t
        if scores.max() <= 1 + tolerance:
            break
        weights = weights * scores**2
        weights /= weights.sum()
    # The ellipsoid with the squares s contains the vectors of row j if (rows @ (1 / s))_j <= 1.
    squares = t * np.sqrt(u / sizes)
    squares *= float((rows @ (1 / squares)).max()) * (1 + INFLATION)
    return np.asarray(np.sqrt(squares))


def _water_level(caps: FloatArray, sizes: FloatArray, total: float) -> float:
    """The lambda for which the sum of min(cap_i, lambda size_i) is `total`; at most all caps."""
    if caps.sum() <= total:
        return float((caps / sizes).max())
    order = np.argsort(caps / sizes)
    capped = np.concatenate([[0.0], np.cumsum(caps[order])])[:-1]
    free = np.cumsum(sizes[order][::-1])[::-1]
    # If the first i blocks are at their caps, the others share the rest in proportion to sizes.
    levels = (total - capped) / free
    return float(levels[np.argmax(levels <= (caps / sizes)[order])])


# Sets of vectors in R^r that an ellipsoid must contain, and searches for their longest vectors.

#: Number of rows whose distances to all rows are computed at a time: 16 MB for 4096 rows in all.
BLOCK_ROWS = 512
#: Squared lengths are treated as equal up to this relative difference, which rounding can cause.
EQUAL_LENGTHS = 1e-12


@dataclass(frozen=True)
class LongVectors:
    """The v of a set with ||root v||^2 near its maximum `largest`: `vectors` (a, r), None if they
    are more than a limit, and the `mean` (r, r) of their v v^T.
    """

    largest: float
    vectors: FloatArray | None
    mean: FloatArray


def _threshold(level: float, largest: float) -> float:
    """Least ||root v||^2 of a long vector: halfway from `level` to the maximum, `largest`."""
    # By rounding, `level` can be `largest` or more; the longest vectors still count as long.
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
        """The v of V with ||root v||^2 at least (`level` + the maximum) / 2, and in any case the
        longest, for a `root` (r, r); the result lists them if they are at most `limit`.
        """


class Rows(VectorSet):
    """The rows v of an array. An ellipsoid around 0 that contains v also contains -v."""

    def mean(self) -> FloatArray:
        return np.asarray(self.points.T @ self.points / len(self.points))

    def longest(self, root: FloatArray, level: float, limit: int) -> LongVectors:
        squares = ((self.points @ root.T) ** 2).sum(axis=1)
        largest = float(squares.max())
        rows = self.points[squares >= _threshold(level, largest)]
        return LongVectors(largest, rows if len(rows) <= limit else None, rows.T @ rows / len(rows))


class PairDifferences(VectorSet):
    """All differences a - b of two rows of an array (N, r). Only long differences are stored."""

    @cached_property
    def _centred(self) -> FloatArray:
        # Far from 0, the rounding error of |a|^2 + |b|^2 - 2 <a, b> would be large.
        return np.asarray(self.points - self.points.mean(axis=0))

    def mean(self) -> FloatArray:
        # Over all N^2 pairs: twice the covariance of the N rows.
        return np.asarray(2 * self._centred.T @ self._centred / len(self._centred))

    def longest(self, root: FloatArray, level: float, limit: int) -> LongVectors:
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
    for rows in row_blocks(len(points), 1, BLOCK_ROWS):
        yield rows.start, squares[rows, None] + squares - 2 * (points[rows] @ points.T)
