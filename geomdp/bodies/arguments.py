"""Checks on what bodies are built from and called with."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geomdp._linalg import RANK_TOLERANCE, AffineHull
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import batch, finite_array

#: What a short chain of float64 operations on numbers of modulus 1 may add: thousands of units in
#: the last place (2e-16).
ROUNDING = 1e-12


def frozen_array(values: npt.ArrayLike, name: str, ndim: int) -> FloatArray:
    """Return a read-only float64 copy of `values` with `ndim` axes, all entries finite."""
    array = finite_array(values, name, ndim).copy()
    array.setflags(write=False)
    return array


def rays(
    points: npt.ArrayLike, directions: npt.ArrayLike, dimension: int
) -> tuple[FloatArray, FloatArray]:
    """Return points and nonzero directions as float64 arrays, both (b, dimension)."""
    points = batch(points, dimension, "points")
    directions = batch(directions, dimension, "directions")
    if points.shape != directions.shape:
        raise ValueError(
            f"points and directions must have one shape, got {points.shape} and {directions.shape}"
        )
    zero = ~directions.any(axis=1)
    if zero.any():
        raise ValueError(f"directions must not be 0, got 0 in row {int(np.argmax(zero))}")
    return points, directions


def off_span(vectors: FloatArray, basis: FloatArray, scale: float = 0.0) -> BoolArray:
    """Whether rows of (b, m) leave the span of the orthonormal columns `basis`, beyond rounding.

    For points, `scale` is the size of the numbers they were computed from: a residual below its
    rounding says nothing about a point near 0.
    """
    if basis.shape[0] == basis.shape[1]:
        return np.zeros(len(vectors), dtype=bool)
    residual = np.linalg.norm(vectors - (vectors @ basis) @ basis.T, axis=1)
    slack = np.maximum(RANK_TOLERANCE * np.linalg.norm(vectors, axis=1), ROUNDING * scale)
    return np.asarray(residual > slack)


def off_hull(points: FloatArray, hull: AffineHull, slack: float) -> BoolArray:
    """Whether rows of (b, m) are further than `slack` from the affine subspace `hull`."""
    if hull.ambient == hull.dimension:
        return np.zeros(len(points), dtype=bool)
    return np.asarray(hull.residual(points) > slack)


def holds_origin(hull: AffineHull, scale: float) -> bool:
    """Whether the affine subspace passes through 0, up to rounding relative to `scale`."""
    residual = float(hull.residual(np.zeros((1, hull.ambient)))[0])
    return residual <= RANK_TOLERANCE * scale


def closed_under_negation(points: FloatArray) -> bool:
    """Whether the set of rows equals the set of their negatives, entry for entry."""
    # Adding 0 turns -0 into 0, which compares the same but has other bits.
    return np.array_equal(np.unique(points + 0.0, axis=0), np.unique(-points + 0.0, axis=0))
