"""Coordinates of points in the space that they span."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

#: Singular values below this share of the largest singular value count as 0.
SINGULAR = 1e-9


def principal_coordinates(rows: FloatArray) -> FloatArray:
    """Coordinates (N, r) of the `rows` (N, k), of rank r, along their right singular vectors.

    The vectors are in decreasing order of the singular values.
    """
    _, values, axes = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(rows @ axes[values > SINGULAR * values[0]].T)
