"""Bodies of symmetric d x d matrices in svec coordinates: dimension, eigenvalues, volumes.

svec (see `geomdp._numerics.linalg`) writes a symmetric d x d matrix as its upper triangle, a vector
in R^D, D = d (d + 1) / 2, with entries off the diagonal times sqrt(2). Its Euclidean norm is the
Frobenius norm of the matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from geomdp._numerics.linalg import svec, unsvec
from geomdp._typing import FloatArray
from geomdp._validation import whole
from geomdp.bodies.base import Body


@dataclass(frozen=True)
class MatrixBody(Body):
    """Base class of bodies of symmetric d x d matrices, in dimension D = d (d + 1) / 2."""

    d: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole(self.d, "d"))

    def _summary(self) -> str:
        return f"{self.d} x {self.d} matrices"

    @property
    def dimension(self) -> int:
        return self.d * (self.d + 1) // 2


def spectraplex_volume(d: int) -> float:
    """Volume of {M psd : tr M <= 1} in svec coordinates, 2^(d (d - 1) / 4) Gamma_d((d + 1) / 2) /
    D! with the multivariate gamma function Gamma_d.
    """
    stretch = d * (d - 1) / 4 * math.log(2)
    gamma = float(scipy.special.multigammaln((d + 1) / 2, d))
    return math.exp(stretch + gamma - math.lgamma(d * (d + 1) // 2 + 1))


def eigen(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ascending eigenvalues (b, d) and eigenvectors (b, d, d) of the matrices with svecs (b, D)."""
    values, basis = np.linalg.eigh(unsvec(vectors))
    return np.asarray(values), np.asarray(basis)


def assemble(values: FloatArray, vectors: FloatArray) -> FloatArray:
    """Vectors svec(V diag(w) V^T), (b, D), for each row w of `values` and matrix V of `vectors`."""
    return svec((vectors * values[:, None, :]) @ np.swapaxes(vectors, 1, 2))


def eigenvalues(vectors: FloatArray) -> FloatArray:
    """Ascending eigenvalues (b, d) of the matrices whose svecs are the rows of `vectors` (b, D)."""
    return np.asarray(np.linalg.eigvalsh(unsvec(vectors)))


def top_projector(values: FloatArray, vectors: FloatArray) -> FloatArray:
    """svec(v v^T) (b, D) for the top eigenvector v; 0 if the largest eigenvalue is at most 0."""
    top = vectors[:, :, -1] * (values[:, -1:] > 0)
    return svec(top[:, :, None] * top[:, None, :])


def half_vector(matrix: Any, d: int) -> Any:
    """The svec of a CVXPY expression (d, d), as an expression (D,)."""
    import cvxpy as cp

    rows, columns = np.triu_indices(d)
    scale = np.where(rows == columns, 1.0, math.sqrt(2))
    return cp.multiply(scale, matrix[rows, columns])
