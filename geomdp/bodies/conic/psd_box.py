"""Positive semidefinite matrices of bounded diagonal, like second moments of data in a cube."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomdp._numerics.linalg import svec, unsvec
from geomdp._typing import BoolArray, FloatArray
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE
from geomdp.bodies.conic.elliptope import Elliptope
from geomdp.bodies.spectral.eigenvalues import MatrixBody, half_vector


@dataclass(frozen=True)
class PsdBox(MatrixBody):
    """The matrices {M psd : M_ii <= 1} of order d in svec coordinates.

    The svec coordinates are the d (d + 1) / 2 entries of the upper triangle, row by row, with
    entries off the diagonal times sqrt(2). The body contains x x^T for all x in [-1, 1]^d, and
    therefore the second moment of any data in this cube. For d >= 3 it is larger than the hull of
    the x x^T, just as the elliptope is larger than the cut polytope (X-PSDBOX, X-LKJ).

    Parameters
    ----------
    d : int
        Order of the matrices, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> body = gd.bodies.PsdBox(2)
    >>> half = np.sqrt(2) / 2
    >>> body.contains(np.array([[1.0, half, 1.0], [2.0, 0.0, 1.0]])).tolist()
    [True, False]
    >>> body.second_moment().round(3).tolist()
    [[0.429, 0.0, 0.36], [0.0, 0.24, 0.0], [0.36, 0.0, 0.429]]
    """

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether all eigenvalues are >= -d * `tolerance` and all M_ii are <= 1 + `tolerance`."""
        matrices = unsvec(points)
        lowest = np.linalg.eigvalsh(matrices)[:, 0]
        largest = np.diagonal(matrices, axis1=1, axis2=2).max(axis=1)
        # Matrices in the body have eigenvalues of up to d, with rounding errors proportional to d.
        return np.asarray((lowest >= -tolerance * self.d) & (largest <= 1 + tolerance))

    def radius(self) -> float:
        """d, the norm of the matrices s s^T for sign vectors s."""
        return float(self.d)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Exact draws of S R S, R uniform on the elliptope and S_ii = U_i^(1/(d+1)) (X-PSDBOX).

        The Jacobian of M = D^(1/2) R D^(1/2), where D is the diagonal of M, is prod D_ii^((d - 1) /
        2). So D_ii = S_ii^2 is U^(2 / (d + 1)) with U uniform on [0, 1], independent of R.
        """
        scales = rng.random((n, self.d)) ** (1 / (self.d + 1))
        rows, columns = np.triu_indices(self.d)
        points = scales[:, rows] * scales[:, columns]
        if self.d > 1:
            above = rows != columns
            points[:, above] *= math.sqrt(2) * Elliptope(self.d).sample_uniform(n, rng)
        return points

    def centroid(self) -> FloatArray:
        """svec(I) times E S_ii^2 = (d + 1) / (d + 3), with S as in `sample_uniform`."""
        return np.asarray((self.d + 1) / (self.d + 3) * svec(np.eye(self.d)))

    def second_moment(self) -> FloatArray:
        """E[M_ii M_jj] = a^2, E[M_ii^2] = (d + 1)/(d + 5) and E[2 M_ij^2] = 2 a^2 / (d + 1).

        Here i != j and a = E S_ii^2 = (d + 1) / (d + 3); all other entries are 0. In the notation
        of `sample_uniform`, E S_ii^4 = (d + 1) / (d + 5), and the R_ij have mean 0, variance 1 / (d
        + 1) and no correlation.
        """
        a = (self.d + 1) / (self.d + 3)
        rows, columns = np.triu_indices(self.d)
        on = (rows == columns).astype(float)
        moment = a**2 * np.outer(on, on)
        own = np.where(on > 0, (self.d + 1) / (self.d + 5), 2 * a**2 / (self.d + 1))
        np.fill_diagonal(moment, own)
        return np.asarray(moment)

    def volume(self) -> float:
        """2^(d (d - 1) / 4) vol(E_d) (2 / (d + 1))^d, where E_d is the elliptope."""
        d = self.d
        elliptope = Elliptope(d).volume() if d > 1 else 1.0
        return float(2 ** (d * (d - 1) / 4) * elliptope * (2 / (d + 1)) ** d)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        import cvxpy as cp

        matrix = cp.Variable((self.d, self.d), PSD=True)
        return [half_vector(matrix, self.d) == variable, cp.diag(matrix) <= 1]
