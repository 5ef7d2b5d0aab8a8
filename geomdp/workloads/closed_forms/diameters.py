"""Diameters of finite sets of points: exact for small sets, upper bounds for large sets."""

from __future__ import annotations

import numpy as np

from geomdp._typing import FloatArray

#: Largest N^2 m for which the l1 diameter of N points in R^m is computed exactly. The largest sets
#: take about 2 seconds on one core.
L1_WORK = 1 << 32
#: Largest number of points N for which the l2 diameter is computed exactly, by matrix products.
L2_POINTS = 1 << 14
#: Number of rows that are compared with all others at a time.
BLOCK_ROWS = 512


def l1_diameter(points: FloatArray) -> float:
    """Bound on the largest l1 distance of rows of `points` (N, m); exact for N^2 m <= 2^32."""
    from scipy.spatial.distance import cdist

    n_points, dimension = points.shape
    if n_points**2 * dimension > L1_WORK:
        low, high = points.min(axis=0), points.max(axis=0)
        radius = max(
            float(np.abs(part - (low + high) / 2).sum(axis=1).max()) for part in _parts(points)
        )
        return min(2 * radius, float((high - low).sum()))
    return max(
        float(cdist(points[start : start + BLOCK_ROWS], points[start:], "cityblock").max())
        for start in range(0, n_points, BLOCK_ROWS)
    )


def l2_diameter(points: FloatArray) -> float:
    """Bound on the largest l2 distance of rows of `points` (N, m); exact for N <= 2^14."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle = (low + high) / 2
    if len(points) > L2_POINTS:
        radius = max(float(np.linalg.norm(part - middle, axis=1).max()) for part in _parts(points))
        return min(2 * radius, float(np.linalg.norm(high - low)))
    centred = points - middle
    squares = np.einsum("nm,nm->n", centred, centred)
    best = 0.0
    for start in range(0, len(points), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        distances = squares[rows, None] + squares[start:] - 2 * (centred[rows] @ centred[start:].T)
        # The expansion |a|^2 + |b|^2 - 2 <a, b> loses digits. So it only serves to find the
        # farthest pair. The distance of this pair is then computed directly.
        i, j = np.unravel_index(distances.argmax(), distances.shape)
        best = max(best, float(np.linalg.norm(points[start + i] - points[start + j])))
    return best


def _parts(points: FloatArray) -> list[FloatArray]:
    return [points[start : start + BLOCK_ROWS] for start in range(0, len(points), BLOCK_ROWS)]
