"""Coordinates of points in the space that they span."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

#: Singular values below this share of the largest singular value count as 0.
SINGULAR = 1e-9


def principal_coordinates(rows: FloatArray) -> FloatArray:
    """Coordinates of the points `rows` along their right singular vectors.

    For an array `rows` of shape (N, k) and rank r, the result has shape (N, r). The vectors are in
    decreasing order of the singular values.
    """
    _, values, axes = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(rows @ axes[values > SINGULAR * values[0]].T)
