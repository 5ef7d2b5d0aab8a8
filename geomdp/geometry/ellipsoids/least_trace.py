"""The ellipsoid {v : v^T S^-1 v <= 1} of least trace tr S around a set of vectors (JL-ELL)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import positive
from geomdp.geometry.ellipsoids.vector_sets import LongVectors, VectorSet

#: S is enlarged by this share, because the ellipsoid must contain every vector despite rounding
#: (SAM-5). The rounding error of the search for the longest vector is about 1e-13 for a few hundred
#: coordinates.
INFLATION = 1e-9
#: Largest number of searches for the vectors with the largest v^T S^-1 v.
MAX_SEARCHES = 60
#: Largest number of multiplicative updates of the weights between two searches.
INNER_UPDATES = 100
#: Exponents of the multiplicative updates. Exponent 2 never lowers the dual value. Larger exponents
#: are several times as fast, so each update multiplies the exponent by 1.3, up to 16. If an update
#: with a larger exponent does not raise the dual value, the update is undone and the exponent is 2
#: again.
SAFE_EXPONENT, MOST_EXPONENT, EXPONENT_GROWTH = 2.0, 16.0, 1.3
#: Only columns have weights: a column is a vector or a distribution of vectors. A search gives the
#: gap on the whole set. The updates after the search end when the gap on the columns is at most
#: this share of the gap on the whole set, or half the tolerance if that is more.
BALANCED_SHARE = 0.25
#: The score of a vector v is v^T (t W^(1/2))^-1 v. The weighted mean of the scores is 1. Vectors
#: with a score below 1 lose weight. A vector is dropped if its score is below DECAYING and its
#: weight is below LEAST_SHARE times the average weight. A later search may find the vector again.
LEAST_SHARE, DECAYING = 1e-4, 0.99
#: If a search in R^r finds at most r times this number of vectors, each vector becomes a column. If
#: the search finds more vectors, their uniform distribution becomes one column. In general
#: position, the best ellipsoid touches at most r (r + 1) / 2 vectors, in practice a small multiple
#: of r. In a set with symmetries, the ellipsoid touches either all vectors of an orbit or none.
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
    searches: int
    converged: bool


def least_trace_ellipsoid(vectors: VectorSet, *, tolerance: float = 1e-3) -> TraceEllipsoid:
    """The ellipsoid K around `vectors` for which K-norm noise has the least second moment (JL-ELL).

    The dual problem for the set V of vectors is to maximise t^2 over weights p on V, with t = tr
    W^(1/2) and W = sum of p_v v v^T. For every p, let s be the maximum over V of v^T (t W^(1/2))^-1
    v. Then S = s t W^(1/2) is feasible with the relative gap s - 1. A gap of 1e-3 (`tolerance`)
    costs at most 0.05% in root mean squared error. ``ValueError`` if all vectors are 0.

    Cost: at most 60 searches of V, and between two of them at most 100 updates of O(A r^2 + r^3)
    for A columns.
    """
    tolerance = positive(tolerance, "tolerance")
    # Many long vectors (the orbit of a symmetry) make one column, their uniform distribution. The
    # first column is the uniform distribution on V, so W never loses rank.
    columns = _Columns(vectors.mean())
    limit = COLUMNS_PER_DIMENSION * vectors.dimension
    long = vectors.longest(columns.whitening, columns.trace, limit)
    searches = 1
    while long.largest > (1 + tolerance) * columns.trace and searches < MAX_SEARCHES:
        excess = long.largest / columns.trace - 1
        columns.add(long)
        columns.improve(max(tolerance / 2, BALANCED_SHARE * excess))
        long = vectors.longest(columns.whitening, columns.trace, limit)
        searches += 1
    # The maximum of v^T (t W^(1/2))^-1 v over V. Rounding and raised eigenvalues can make it less
    # than 1.
    scale = max(long.largest / columns.trace, 1.0)
    gap = scale * (columns.trace / columns.dual_root) ** 2 - 1
    inflated = scale * (1 + INFLATION)
    root = np.sqrt(inflated * columns.trace) * columns.fourth_root
    return TraceEllipsoid(root, inflated * columns.trace**2, gap, searches, scale <= 1 + tolerance)


class _Columns:
    """Weights p on vectors and distributions of vectors, W = sum of p_v v v^T, and roots of W.

    The first column is the uniform distribution on the set; `bulk` (r, r) is its mean of v v^T.
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
        """Update the weights until the gap on the columns is at most `tolerance` (or 100 times)."""
        scores, exponent = self._scores(), SAFE_EXPONENT
        for _ in range(INNER_UPDATES):
            if scores.max() <= 1 + tolerance:
                break
            before, reached = self._weights, self.dual_root
            # With exponent 2 the update never decreases t: it is power iteration for the maximum of
            # a convex function on a sphere.
            weights = before * scores**exponent
            self._weights = weights / weights.sum()
            self._decompose()
            if self.dual_root <= reached and exponent > SAFE_EXPONENT:
                self._weights, exponent = before, SAFE_EXPONENT
                self._decompose()
            else:
                exponent = min(EXPONENT_GROWTH * exponent, MOST_EXPONENT)
            scores = self._scores()
        self._drop_negligible(scores)

    def _drop_negligible(self, scores: FloatArray) -> None:
        """Drop the vectors that `LEAST_SHARE` and `DECAYING` describe."""
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
