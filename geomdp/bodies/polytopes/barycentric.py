"""Barycentric coordinates of a simplex, shared by the simplex and its difference body."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from geomdp._linalg import significant
from geomdp._typing import FloatArray
from geomdp.bodies.arguments import frozen_array


class Barycentric:
    """Barycentric coordinates of a simplex: y(x) = 1/(r+1) + linear @ (x - centre)."""

    def __init__(self, vertices: FloatArray) -> None:
        self.centre = vertices.mean(axis=0)
        centred = (vertices - self.centre).T
        # (v_0 - c) + ... + (v_r - c) = 0, so the least-norm weights of a direction sum to 0.
        left, singular, right = np.linalg.svd(centred, full_matrices=False)
        rank = len(vertices) - 1
        found = int(significant(singular).sum())
        if found != rank:
            raise ValueError(
                f"vertices must be affinely independent, got {len(vertices)} with affine hull of "
                f"dimension {found}"
            )
        self.basis = np.ascontiguousarray(left[:, :rank])
        self.singular = singular[:rank]
        self.linear = (right[:rank].T / self.singular) @ self.basis.T

    def weights(self, points: FloatArray) -> FloatArray:
        """Coordinates (b, r + 1), which sum to 1, of the nearest points of the affine hull."""
        return np.asarray(1 / len(self.linear) + (points - self.centre) @ self.linear.T)


def simplex_vertices(vertices: npt.ArrayLike) -> FloatArray:
    """Read-only copy of `vertices` (r + 1, m), or ``ValueError`` for a wrong shape."""
    rows = frozen_array(vertices, "vertices", ndim=2)
    if 0 in rows.shape or rows.shape[0] > rows.shape[1] + 1:
        raise ValueError(
            f"vertices must have shape (r + 1, m) with 0 <= r <= m, m >= 1, got {rows.shape}"
        )
    return rows


def log_simplex_volume(singular: FloatArray) -> float:
    """Logarithm of the volume of a simplex from the singular values of its centred vertices.

    The differences v_i - v_0 are D C with C the centred vertices (r + 1, m) and D D^T = I + 1 1^T
    of determinant r + 1, so their Gram determinant is r + 1 times the product of squares.
    """
    rank = len(singular)
    gram = math.log(rank + 1) / 2 + float(np.log(singular).sum())
    return gram - math.lgamma(rank + 1)
