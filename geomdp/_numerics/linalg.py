"""Affine hulls of points, ranks up to rounding, and symmetric matrices as vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._typing import BoolArray, FloatArray

#: A singular value counts as zero if it is at most this share of the largest singular value, or of
#: the largest number from which it was computed (see `significant`). This rule gives the dimension
#: of an affine hull, the rank of the matrix of a `LinearImage`, and the number of axes of an
#: ellipsoid. For N points, rounding turns a true zero into a share of up to sqrt(N) 2^-53, which is
#: 1e-13 for N = 2^20. The value equals `MEMBERSHIP_TOLERANCE`. So a body counts as flat if it is
#: thinner than the tolerance of `contains`.
RANK_TOLERANCE = 1e-9
#: An affine hull in R^m is found from blocks of this many points, or of 2 m points if that is more.
HULL_ROWS = 4096


def significant(singular: FloatArray, scale: float = 0.0) -> BoolArray:
    """Which singular values (r,) exceed the rounding errors of numbers up to `scale`."""
    return singular > RANK_TOLERANCE * max(float(singular.max(initial=0.0)), scale)


@dataclass(frozen=True)
class AffineHull:
    """The affine subspace {offset + basis @ c : c in R^r} of R^m."""

    offset: FloatArray  # (m,): a point of the subspace
    basis: FloatArray  # (m, r): orthonormal columns that span its directions; r may be 0

    @property
    def ambient(self) -> int:
        """Dimension m of the surrounding space."""
        return int(self.basis.shape[0])

    @property
    def dimension(self) -> int:
        """Dimension r of the subspace."""
        return int(self.basis.shape[1])

    @classmethod
    def whole_space(cls, dimension: int) -> AffineHull:
        return cls(np.zeros(dimension), np.eye(dimension))

    @classmethod
    def of_points(cls, points: FloatArray) -> AffineHull:
        """Affine hull of the rows of `points` (N, m), by a singular value decomposition."""
        offset = points.mean(axis=0)
        n_points, ambient = points.shape
        centred = points[:0]
        # A matrix and the triangular factor T of its QR decomposition have the same right singular
        # vectors. T is updated with one block of points at a time, so only one block is copied at a
        # time. Each block except the last has at least 2 m rows and T has at most m rows, so all
        # updates together take O(N m^2).
        rows = max(HULL_ROWS, 2 * ambient)
        for start in range(0, n_points, rows):
            centred = np.vstack([centred, points[start : start + rows] - offset])
            if len(centred) > ambient:
                centred = np.asarray(np.linalg.qr(centred, mode="r"))
        _, singular, rows = np.linalg.svd(centred, full_matrices=False)
        rank = int(significant(singular, float(np.abs(points).max(initial=0.0))).sum())
        if rank == points.shape[1]:
            return cls(offset, np.eye(rank))
        return cls(offset, np.ascontiguousarray(rows[:rank].T))

    def coordinates(self, points: FloatArray) -> FloatArray:
        """Coordinates (b, r) of the orthogonal projections of `points` (b, m) on the subspace."""
        return (points - self.offset) @ self.basis

    def embed(self, coordinates: FloatArray) -> FloatArray:
        """Points (b, m) with the given `coordinates` (b, r)."""
        return self.offset + coordinates @ self.basis.T

    def residual(self, points: FloatArray) -> FloatArray:
        """Euclidean distances (b,) of `points` (b, m) from the subspace."""
        return np.asarray(np.linalg.norm(points - self.embed(self.coordinates(points)), axis=1))


def svec(matrices: FloatArray) -> FloatArray:
    """Upper triangles (..., d (d + 1) / 2) of symmetric matrices, row by row.

    Entries off the diagonal are multiplied by sqrt(2), so that <svec(A), svec(B)> = tr(A B).
    """
    rows, columns = np.triu_indices(matrices.shape[-1])
    return matrices[..., rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))


def unsvec(vectors: FloatArray) -> FloatArray:
    """Symmetric matrices (..., d, d) of half-vectorisations; ``ValueError`` for wrong lengths."""
    length = vectors.shape[-1]
    size = (math.isqrt(8 * length + 1) - 1) // 2
    if size * (size + 1) // 2 != length:
        raise ValueError(f"vectors must have length d (d + 1) / 2, got {length}")
    rows, columns = np.triu_indices(size)
    entries = vectors / np.where(rows == columns, 1.0, np.sqrt(2.0))
    matrices = np.empty((*vectors.shape[:-1], size, size))
    matrices[..., rows, columns] = entries
    matrices[..., columns, rows] = entries
    return matrices


def is_diagonal(matrix: FloatArray) -> bool:
    return bool(np.count_nonzero(matrix) == np.count_nonzero(np.diag(matrix)))
