"""Eigenvalue decompositions of symmetric matrices in svec coordinates, batched."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from geomdp._linalg import svec, unsvec
from geomdp._typing import FloatArray


def eigen(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ascending eigenvalues (b, d) and eigenvectors (b, d, d) of unsvec of rows (b, D)."""
    values, basis = np.linalg.eigh(unsvec(vectors))
    return np.asarray(values), np.asarray(basis)


def assemble(values: FloatArray, vectors: FloatArray) -> FloatArray:
    """Rows svec(V diag(values) V^T) (b, D)."""
    return svec((vectors * values[:, None, :]) @ np.swapaxes(vectors, 1, 2))


def eigenvalues(vectors: FloatArray) -> FloatArray:
    """Ascending eigenvalues (b, d) of unsvec of rows (b, D)."""
    return np.asarray(np.linalg.eigvalsh(unsvec(vectors)))


def top_projector(values: FloatArray, vectors: FloatArray) -> FloatArray:
    """svec(v v^T) (b, D) for the last eigenvector, 0 where the last eigenvalue is not above 0."""
    top = vectors[:, :, -1] * (values[:, -1:] > 0)
    return svec(top[:, :, None] * top[:, None, :])


def half_vector(matrix: Any, d: int) -> Any:
    """The svec of a CVXPY expression (d, d), as an expression (D,)."""
    import cvxpy as cp

    rows, columns = np.triu_indices(d)
    scale = np.where(rows == columns, 1.0, math.sqrt(2))
    return cp.multiply(scale, matrix[rows, columns])
