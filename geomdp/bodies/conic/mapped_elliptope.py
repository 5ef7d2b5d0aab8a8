"""Images of the elliptope under linear maps with orthogonal columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import finite_array, require_type, vector
from geomdp.bodies.arguments import check_all_above_0
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.conic.elliptope import Elliptope
from geomdp.bodies.conic.projection import nearest_with_diagonal

#: Let T be the matrix of a `MappedElliptope`, and w its weights. T^T T must equal the diagonal
#: matrix of the products w_i w_j. The error of an entry may be this share of the largest product.
STRETCH_ERROR = 1e-12


@dataclass(frozen=True, eq=False)
class MappedElliptope(Body):
    """The body {c + T r : r in the elliptope of order p}, where T^T T = Diag(w_i w_j for i < j).

    r lists the entries R_ij, i < j, of a correlation matrix R. The matrix X with entries X_ij =
    (w_i w_j)^(1/2) R_ij is positive semidefinite (psd) with diagonal w. The squared distance of two
    images is half the squared Frobenius distance of their matrices X, so projection on the image
    finds the nearest psd matrix with diagonal w.

    The moment relaxation of all two-way tables of d binary attributes has this form, with p = d + 1
    and w proportional to (d - 1, 1, .., 1): each entry of r is the mean of a product of two signs,
    which occurs in one table, or the mean of a sign, which occurs in d - 1 tables.

    Parameters
    ----------
    matrix : (m, p (p - 1) / 2) sparse array
        T; its columns belong to the pairs i < j in row-major order.
    weights : (p,) array
        w, above 0.
    constant : (m,) array
        c.

    Raises
    ------
    ValueError
        If the modulus of an entry of T^T T - Diag(w_i w_j) is above 1e-12 times the largest
        w_i w_j. Also if a weight is at most 0 or the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> pairs = gd.workloads.MarginalTables({"a": 2, "b": 2, "c": 2}, k=2)
    >>> K = gd.bodies.moment_relaxation(pairs)
    >>> K
    MappedElliptope(order 4 in R^12)
    >>> noisy = np.full((1, K.dimension), 0.4)
    >>> K.contains(noisy).tolist(), K.contains(K.project(noisy)).tolist()
    ([False], [True])
    """

    matrix: sp.csr_array
    weights: FloatArray
    constant: FloatArray

    def __post_init__(self) -> None:
        require_type(self.matrix, sp.csr_array, "matrix")
        weights = finite_array(self.weights, "weights", ndim=1)
        check_all_above_0(weights, "weights")
        object.__setattr__(self, "weights", weights)
        vector(self.constant, self.matrix.shape[0], "constant")
        if self.matrix.shape[1] != self._elliptope.dimension:
            raise ValueError(
                f"matrix must have {self._elliptope.dimension} columns for {len(weights)} weights, "
                f"got shape {self.matrix.shape}"
            )
        off = abs(self.matrix.T @ self.matrix - sp.diags_array(self._stretch**2))
        if off.max() > STRETCH_ERROR * (self._stretch**2).max():
            raise ValueError(
                "the columns of matrix must be orthogonal and have lengths (w_i w_j)^(1/2) for the "
                f"weights w: the error of an entry of matrix^T matrix must be at most "
                f"{STRETCH_ERROR * (self._stretch**2).max():.3g}, got {off.max():.3g}"
            )

    def _summary(self) -> str:
        return f"order {len(self.weights)}"

    @property
    def dimension(self) -> int:
        return int(self.matrix.shape[0])

    @cached_property
    def _elliptope(self) -> Elliptope:
        return Elliptope(len(self.weights))

    @cached_property
    def _stretch(self) -> FloatArray:
        """(w_i w_j)^(1/2) for i < j, the lengths of the columns of T: (p (p - 1) / 2,)."""
        rows, columns = np.triu_indices(len(self.weights), 1)
        return np.asarray(np.sqrt(self.weights[rows] * self.weights[columns]))

    def support(self, directions: FloatArray) -> FloatArray:
        """Upper bounds: <u, c> plus the bound of `Elliptope.support` at T^T u, for each row u."""
        return np.asarray(
            self._elliptope.support((self.matrix.T @ directions.T).T) + directions @ self.constant
        )

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """For each row u, the point c + T r, where `Elliptope.extreme_point` gives r at T^T u."""
        best = self._elliptope.extreme_point((self.matrix.T @ directions.T).T)
        return np.asarray((self.matrix @ best.T).T + self.constant)

    def _pulled_back(self, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For each row u of `directions`, the v with T v nearest to u, and the norm of u - T v."""
        back = (self.matrix.T @ directions.T).T / self._stretch**2
        return back, np.linalg.norm(directions - (self.matrix @ back.T).T, axis=1)

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether each point is the image of a correlation matrix up to rounding; O(p^3) each."""
        back, off = self._pulled_back(points - self.constant)
        slack = max(tolerance, RANK_TOLERANCE) * self.radius()
        return np.asarray(self._elliptope.contains(back, tolerance) & (off <= slack))

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        starts, _ = self._pulled_back(points - self.constant)
        ways, off = self._pulled_back(directions)
        along = off <= RANK_TOLERANCE * np.linalg.norm(directions, axis=1)
        low, high = np.zeros(len(points)), np.zeros(len(points))
        low[along], high[along] = self._elliptope.chord(starts[along], ways[along])
        return low, high

    def project(self, points: FloatArray) -> FloatArray:
        """The nearest points (b, m); each takes some ten eigendecompositions of order p."""
        # Coordinates of the points along the columns of T, which are orthogonal.
        stretched = (self.matrix.T @ (points - self.constant).T).T / self._stretch
        rows, columns = np.triu_indices(len(self.weights), 1)
        nearest = np.empty(stretched.shape)
        for i, matrix in enumerate(self._elliptope.matrices(stretched)):
            nearest[i] = nearest_with_diagonal(matrix, self.weights)[rows, columns]
        return np.asarray((self.matrix @ (nearest / self._stretch).T).T + self.constant)

    def radius(self) -> float:
        """||c|| + (sum of w_i w_j)^(1/2), an upper bound, because |R_ij| <= 1."""
        return float(np.linalg.norm(self.constant) + np.linalg.norm(self._stretch))

    def half_diameter(self) -> float:
        """(sum of w_i w_j)^(1/2), an upper bound: no point is farther from c."""
        return float(np.linalg.norm(self._stretch))

    def affine_hull(self) -> AffineHull:
        """The affine subspace c + span of the columns of T, by a dense basis (m, p (p - 1) / 2)."""
        basis = np.asarray((self.matrix / self._stretch).toarray(), dtype=np.float64)
        return AffineHull(self.constant, basis)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        import cvxpy as cp

        products = cp.Variable(self._elliptope.dimension)
        image = self.matrix @ products + self.constant
        return [*self._elliptope.cvxpy_constraints(products), variable == image]


def stretching_weights(matrix: sp.csr_array, order: int) -> FloatArray | None:
    """The w > 0 (p,) with T^T T = Diag(w_i w_j), T = `matrix`; None if there is none or p < 3."""
    lengths = np.asarray(matrix.multiply(matrix).sum(axis=0)).ravel()
    if order < 3 or not (lengths > 0).all():
        return None
    squares = np.zeros((order, order))
    rows, columns = np.triu_indices(order, 1)
    squares[rows, columns] = squares[columns, rows] = lengths
    weights = np.empty(order)
    for i in range(order):
        j, k = [other for other in range(3) if other != i][:2]
        weights[i] = np.sqrt(squares[i, j] * squares[i, k] / squares[j, k])
    off = abs(matrix.T @ matrix - sp.diags_array(weights[rows] * weights[columns]))
    return None if off.max() > STRETCH_ERROR * lengths.max() else weights
