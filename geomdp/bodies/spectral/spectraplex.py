"""The spectraplex, a body of symmetric matrices given by its eigenvalues, in svec coordinates.

svec is the isometric half-vectorisation of `geomdp._linalg`: symmetric d x d matrices are R^D with
D = d (d + 1) / 2, and the Euclidean norm is the Frobenius norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import multigammaln

from geomdp._linalg import svec
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import batch, whole
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.norm_balls.positive_parts import nearest_in_corner
from geomdp.bodies.spectral.eigenvalues import (
    assemble,
    eigen,
    eigenvalues,
    half_vector,
    top_projector,
)

#: Entries of matrices decomposed at a time: 2^20 float64 are 8 MB for d x d input and output each.
BLOCK_ENTRIES = 1 << 20


@dataclass(frozen=True)
class Spectraplex(Body):
    """The spectraplex {M psd : tr M <= 1} = conv{x x^T : ||x||_2 <= 1} in svec coordinates.

    One eigenvalue decomposition, O(d^3), per point or direction.

    Parameters
    ----------
    d : int
        Size of the matrices; the dimension is D = d (d + 1) / 2.

    References
    ----------
    JL-COV, X-SPX.
    """

    d: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole(self.d, "d"))

    @property
    def dimension(self) -> int:
        """Dimension D = d (d + 1) / 2."""
        return self.d * (self.d + 1) // 2

    def support(self, directions: FloatArray) -> FloatArray:
        """max(largest eigenvalue, 0)."""
        directions = batch(directions, self.dimension, "directions")
        return np.asarray(np.maximum(eigenvalues(directions)[:, -1], 0.0))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """svec(v v^T) for a top eigenvector v, or 0 if no eigenvalue is above 0."""
        directions = batch(directions, self.dimension, "directions")
        values, vectors = eigen(directions)
        return top_projector(values, vectors)

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether no eigenvalue is below -`tolerance` and the trace is at most 1 + `tolerance`."""
        points = batch(points, self.dimension, "points")
        values = eigenvalues(points)
        return np.asarray((values[:, 0] >= -tolerance) & (values.sum(axis=1) <= 1 + tolerance))

    def project(self, points: FloatArray) -> FloatArray:
        """Eigenvalues projected on {x >= 0, sum x <= 1} (JL-COV)."""
        values, vectors = eigen(batch(points, self.dimension, "points"))
        return assemble(nearest_in_corner(values, 1.0), vectors)

    def radius(self) -> float:
        """1, at every x x^T with ||x|| = 1."""
        return 1.0

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """U^(1/D) W / tr W with W = G G^T, G standard normal d x (d + 1), exact (X-SPX)."""
        points = np.empty((n, self.dimension))
        rows = max(1, BLOCK_ENTRIES // (self.d * (self.d + 1)))
        for start in range(0, n, rows):
            count = min(rows, n - start)
            normal = rng.standard_normal((count, self.d, self.d + 1))
            wishart = svec(normal @ np.swapaxes(normal, 1, 2))
            trace = np.einsum("bij,bij->b", normal, normal)
            sizes = rng.random(count) ** (1 / self.dimension)
            points[start : start + count] = (sizes / trace)[:, None] * wishart
        return points

    def centroid(self) -> FloatArray:
        """D / (D + 1) times svec(I) / d."""
        shape = svec(np.eye(self.d))
        return np.asarray(self.dimension / (self.dimension + 1) / self.d * shape)

    def second_moment(self) -> FloatArray:
        """(2 (d + 1) I + (d + 1)^2 svec(I) svec(I)^T) / (4 (D + 1) (D + 2)).

        W of X-SPX has E[W_ij W_kl] = k^2 d_ij d_kl + k (d_ik d_jl + d_il d_jk), k = d + 1, and its
        trace, chi-square with k d = 2 D degrees of freedom, is independent of W / tr W:
        E[(tr W)^2] = 2 D (2 D + 2). The factor U^(1/D) brings D / (D + 2).
        """
        D, k = self.dimension, self.d + 1
        identity = svec(np.eye(self.d))
        moment = 2 * k * np.eye(D) + k**2 * np.outer(identity, identity)
        return np.asarray(moment / (4 * (D + 1) * (D + 2)))

    def volume(self) -> float:
        """2^(d (d - 1) / 4) Gamma_d((d + 1) / 2) / D!, Gamma_d the multivariate gamma function.

        The integral of exp(-tr M) over the cone is D! times the volume; svec coordinates stretch
        each of the d (d - 1) / 2 off-diagonal entries by sqrt(2).
        """
        d = self.d
        stretch = d * (d - 1) / 4 * math.log(2)
        gamma = float(multigammaln((d + 1) / 2, d))
        return math.exp(stretch + gamma - math.lgamma(self.dimension + 1))

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """One semidefinite cone."""
        import cvxpy as cp

        matrix = cp.Variable((self.d, self.d), PSD=True)
        return [half_vector(matrix, self.d) == variable, cp.trace(matrix) <= 1]
