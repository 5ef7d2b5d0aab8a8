"""Pairs of points that are far apart in orthogonal directions.

An ascent alternates two steps: find the pair with the largest delta_j = <u_j, w_j> for each vector
u_j of an orthonormal frame, then take the polar factor of the matrix with columns delta_j w_j. Up
to raised eigenvalues (see `SINGULAR`), no step lowers the sum of squares of the delta_j.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray, IntArray

#: How often an ascent repeats its two steps. Further repetitions usually change the lengths by less
#: than one per cent.
ASCENT_STEPS = 8
#: Eigenvalues below this share of the largest eigenvalue are raised to this share, because the
#: square roots of the eigenvalues are inverted, and 0 has no inverse.
SINGULAR = 1e-9
#: The pivot of an element is its squared distance from the span of the elements before it. If the
#: pivot is below this share of the largest pivot, the element is taken to be in the span.
LEAST_PIVOT = 1e-8


def coordinates(centred: FloatArray) -> FloatArray:
    """Coordinates (E, r) of `centred` points (E, k) of rank r in a Gram-Schmidt basis."""
    gram = centred @ centred.T
    least = LEAST_PIVOT * float(np.diag(gram).max(initial=0.0))
    factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(gram, tol=least, lower=1)
    points = np.empty((len(gram), rank))
    points[pivots - 1] = np.tril(factor)[:, :rank]
    return points


def widest_frame(points: FloatArray, size: int) -> tuple[IntArray, FloatArray]:
    """Pairs (size, 2) of rows of `points` (E, r) far apart along orthogonal axes; their lengths."""
    rank = points.shape[1]
    random = np.random.default_rng(PUBLIC_SEED).standard_normal((rank, size))
    starts = (np.eye(rank, size), np.linalg.qr(random)[0])
    return max(
        (_ascend(points, start) for start in starts), key=lambda found: (found[1] ** 2).sum()
    )


def _ascend(points: FloatArray, frame: FloatArray) -> tuple[IntArray, FloatArray]:
    """Pairs and lengths at the end of an ascent that starts with `frame` (r, size)."""
    pairs, lengths = _widest(points, frame)
    for _ in range(ASCENT_STEPS):
        differences = (points[pairs[:, 0]] - points[pairs[:, 1]]) * lengths[:, None]
        values, vectors = np.linalg.eigh(differences @ differences.T)
        # If pairs repeat, some eigenvalues are 0, and the polar factor is not unique. With raised
        # eigenvalues the frame is unique, but not orthonormal: some of its vectors are too short.
        roots = np.sqrt(np.maximum(values, SINGULAR * values[-1]))
        pairs, lengths = _widest(points, differences.T @ (vectors / roots) @ vectors.T)
    return pairs, lengths


def _widest(points: FloatArray, frame: FloatArray) -> tuple[IntArray, FloatArray]:
    """The points farthest apart along each column of `frame` (r, size), and their distances."""
    along = points @ frame
    pairs = np.column_stack([along.argmax(axis=0), along.argmin(axis=0)])
    columns = np.arange(frame.shape[1])
    return pairs, along[pairs[:, 0], columns] - along[pairs[:, 1], columns]
