"""Positive semidefinite (psd) matrices with a given or bounded diagonal: correlation matrices,
their linear images, and second moments of data in a cube.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull, svec, unsvec
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import batch, whole
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.conic.spectral import MatrixBody, half_vector
from geomdp.bodies.oracles import Facets

#: Largest number of entries of the Gaussian vectors of one batch of several draws: 128 MB.
SAMPLE_ENTRIES = 1 << 24


@dataclass(frozen=True)
class Elliptope(Body):
    """The correlation matrices {R psd, R_ii = 1} of order p, by their entries above the diagonal.

    The coordinates are the m = p (p - 1) / 2 entries R_ij with i < j, in row-major order. The point
    0 is the identity matrix. The body contains (s_i s_j)_(i < j) for all signs s in {-1, 1}^p. psd
    stands for positive semidefinite. Gauges and facets cost O(p^3), an exact draw O(p^3) (X-LKJ),
    and a projection some ten eigendecompositions.

    Parameters
    ----------
    order : int
        p, at least 2.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bodies.Elliptope(3).matrices([[0.5, -0.5, 0.0]]).tolist()
    [[[1.0, 0.5, -0.5], [0.5, 1.0, 0.0], [-0.5, 0.0, 1.0]]]
    """

    order: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", whole(self.order, "order", minimum=2))

    def _summary(self) -> str:
        return f"order {self.order}"

    @property
    def dimension(self) -> int:
        return self.order * (self.order - 1) // 2

    def matrices(self, points: FloatArray) -> FloatArray:
        """Symmetric matrices (b, p, p) with unit diagonal, one for each row of `points` (b, m)."""
        points = batch(points, self.dimension, "points")
        rows, columns = np.triu_indices(self.order, 1)
        matrices = np.zeros((len(points), self.order, self.order))
        matrices[:, rows, columns] = points
        matrices += np.swapaxes(matrices, 1, 2)
        matrices[:, np.arange(self.order), np.arange(self.order)] = 1.0
        return matrices

    def support(self, directions: FloatArray) -> FloatArray:
        """Upper bounds h(u) on the largest <u, R>, from the dual of the MaxCut relaxation: the
        halfspaces {x : <u, x> <= h(u)} contain the body up to rounding, and h(u) is nearly always
        within a relative 1e-9 of the maximum.
        """
        from geomdp.bodies.conic.compiled import highest_correlation  # slow to import

        return highest_correlation(self._weights(directions)).bounds

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """For each row u, an R with <u, R> nearly always within a relative 1e-9 of the maximum."""
        from geomdp.bodies.conic.compiled import highest_correlation  # slow to import

        rows, columns = np.triu_indices(self.order, 1)
        return highest_correlation(self._weights(directions)).matrices[:, rows, columns]

    def _weights(self, directions: FloatArray) -> FloatArray:
        """Symmetric matrices C (b, p, p) with zero diagonal and <C, R> / 2 = <u, R>."""
        weights = self.matrices(directions)
        weights[:, np.arange(self.order), np.arange(self.order)] = 0.0
        return weights

    def project(self, points: FloatArray) -> FloatArray:
        rows, columns = np.triu_indices(self.order, 1)
        ones = np.ones(self.order)
        return np.array(
            [nearest_with_diagonal(each, ones)[rows, columns] for each in self.matrices(points)]
        ).reshape(-1, self.dimension)

    def gauge(self, points: FloatArray) -> FloatArray:
        """-lambda_min(X) for X = R - I, since I + X / t is psd iff t >= -lambda_min(X)."""
        return np.asarray(np.maximum(1 - np.linalg.eigvalsh(self.matrices(points))[:, 0], 0.0))

    def facets(self, points: FloatArray) -> Facets:
        """Halfspaces {R : v^T R v >= 0}, v an eigenvector of lambda_min."""
        values, vectors = np.linalg.eigh(self.matrices(points))
        lowest = vectors[:, :, 0]
        rows, columns = np.triu_indices(self.order, 1)
        return Facets(np.maximum(1 - values[:, 0], 0.0), -2 * lowest[:, rows] * lowest[:, columns])

    def radius(self) -> float:
        """sqrt(m), attained at the matrices s s^T for signs s."""
        return math.sqrt(self.dimension)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Inner products of p uniform unit vectors in R^(p+1). For p Gaussian vectors in R^v, the
        density is proportional to det(R)^((v - p - 1) / 2), constant for v = p + 1 (X-LKJ).
        """
        rows, columns = np.triu_indices(self.order, 1)
        points = np.empty((n, self.dimension))
        step = max(1, SAMPLE_ENTRIES // (self.order * (self.order + 1)))
        for start in range(0, n, step):
            count = min(step, n - start)
            vectors = rng.standard_normal((count, self.order, self.order + 1))
            vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
            points[start : start + count] = (vectors @ np.swapaxes(vectors, 1, 2))[:, rows, columns]
        return points

    def centroid(self) -> FloatArray:
        """0: flipping the signs of row and column i maps the body to itself and negates R_ij."""
        return np.zeros(self.dimension)

    def entry_variances(self) -> FloatArray:
        """1 / (p + 1): the variance of <v, w> for independent uniform unit vectors in R^(p+1)."""
        return np.full(self.dimension, 1 / (self.order + 1))

    def second_moment(self) -> FloatArray:
        """The diagonal matrix of `entry_variances`; sign flips show that covariances are 0."""
        return np.diag(self.entry_variances())

    def volume(self) -> float:
        """prod (2^k B((k + 1)/2, (k + 1)/2))^k, 0 < k < p, with the beta function B (Joe 2006)."""
        sides = np.arange(1, self.order)
        halves = (sides + 1) / 2
        logs = sides * (sides * math.log(2) + scipy.special.betaln(halves, halves))
        return math.exp(float(logs.sum()))

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        import cvxpy as cp

        matrix = cp.Variable((self.order, self.order), PSD=True)
        rows, columns = np.triu_indices(self.order, 1)
        return [cp.diag(matrix) == 1, matrix[rows, columns] == variable]


#: Let T be the matrix of a `MappedElliptope`, and w its weights. T^T T must equal the diagonal
#: matrix of the products w_i w_j. The error of an entry may be this share of the largest product.
STRETCH_ERROR = 1e-12


@dataclass(frozen=True, eq=False)
class MappedElliptope(Body):
    """The body {c + T r : r in the elliptope of order p}, T^T T = Diag(w_i w_j for i < j), such as
    the relaxation of all two-way tables of d = p - 1 binary attributes, with w proportional to (d -
    1, 1, .., 1).
    """

    # The matrices X_ij = (w_i w_j)^(1/2) R_ij are psd with diagonal w, and the squared distance of
    # two images is half that of their X. So projection finds the nearest psd X with diagonal w.
    matrix: sp.csr_array
    weights: FloatArray
    constant: FloatArray

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
        """Upper bounds."""
        return np.asarray(
            self._elliptope.support((self.matrix.T @ directions.T).T) + directions @ self.constant
        )

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        best = self._elliptope.extreme_point((self.matrix.T @ directions.T).T)
        return np.asarray((self.matrix @ best.T).T + self.constant)

    def _pulled_back(self, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For each row u of `directions`, the v with T v nearest to u, and the norm of u - T v."""
        back = (self.matrix.T @ directions.T).T / self._stretch**2
        return back, np.linalg.norm(directions - (self.matrix @ back.T).T, axis=1)

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
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
        # Coordinates of the points along the columns of T, which are orthogonal.
        stretched = (self.matrix.T @ (points - self.constant).T).T / self._stretch
        rows, columns = np.triu_indices(len(self.weights), 1)
        nearest = np.empty(stretched.shape)
        for i, matrix in enumerate(self._elliptope.matrices(stretched)):
            nearest[i] = nearest_with_diagonal(matrix, self.weights)[rows, columns]
        return np.asarray((self.matrix @ (nearest / self._stretch).T).T + self.constant)

    def radius(self) -> float:
        """An upper bound."""
        return float(np.linalg.norm(self.constant) + np.linalg.norm(self._stretch))

    def half_diameter(self) -> float:
        """An upper bound: no point is farther from c."""
        return float(np.linalg.norm(self._stretch))

    def affine_hull(self) -> AffineHull:
        """By a dense basis (m, p (p - 1) / 2), the columns of T."""
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
    >>> import geomdp as gd
    >>> gd.bodies.PsdBox(2).contains([[1.0, 2**-0.5, 1.0], [2.0, 0.0, 1.0]]).tolist()
    [True, False]
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
        """Exact draws of S R S, R uniform on the elliptope and S_ii = U_i^(1/(d+1)) (X-PSDBOX): the
        Jacobian of M = D^(1/2) R D^(1/2), D the diagonal of M, is prod D_ii^((d - 1) / 2).
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
        """E[M_ii M_jj] = a^2, E[M_ii^2] = (d + 1)/(d + 5) and E[2 M_ij^2] = 2 a^2 / (d + 1) for i
        != j, a = E S_ii^2 = (d + 1) / (d + 3); all other entries are 0.
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


# Nearest positive semidefinite matrices with a given diagonal, by a semismooth Newton method. The
# problem min { ||X - G||_F : X psd, X_ii = b_i } has the dual
#
#     min over y of  theta(y) = ||(G + Diag y)_+||_F^2 / 2 - <b, y>,
#
# where (.)_+ sets negative eigenvalues to 0. At the optimum, X = (G + Diag y)_+. The gradient of
# theta is diag((G + Diag y)_+) - b. Newton's method converges quadratically; each step solves a
# linear system with the generalised Hessian by conjugate gradients (Qi and Sun 2006).

#: Newton's method stops at this error of the diagonal, as a share of the largest entry of b.
DIAGONAL_ERROR = 1e-13
#: Largest number of Newton steps; 5 to 10 are usual.
MOST_STEPS = 200
#: `DECREASE`: a step is accepted if theta falls by this share of the predicted decrease (Armijo's
#: rule). `REGULAR`: this multiple of the identity is added to the Hessian, which may be singular.
DECREASE, REGULAR = 1e-4, 1e-10
#: Newton's method stops if rounding makes a line search shorter than this share of the step.
SHORTEST = 1e-10


def nearest_with_diagonal(matrix: FloatArray, diagonal: FloatArray) -> FloatArray:
    """The psd X (p, p) nearest to a symmetric G, with diagonal exactly b > 0; O(p^3) per step."""
    # A change of the diagonal of G only shifts y, because the problem depends on G + Diag y.
    target = matrix - np.diag(np.diag(matrix)) + np.diag(diagonal)
    shift = np.zeros(len(diagonal))
    value, gradient, parts = _dual(target, shift, diagonal)
    for _ in range(MOST_STEPS):
        if np.abs(gradient).max() <= DIAGONAL_ERROR * diagonal.max():
            break
        step = _newton_step(parts, gradient, float(diagonal.max()))
        slope, length = float(gradient @ step), 1.0
        trial = _dual(target, shift + step, diagonal)
        # Near the optimum, changes of theta are below its rounding error, about 1e-16 |theta|.
        slack = 1e-15 * abs(value)
        while trial[0] > value + DECREASE * length * slope + slack and length > SHORTEST:
            length /= 2
            trial = _dual(target, shift + length * step, diagonal)
        if length <= SHORTEST:
            break
        shift = shift + length * step
        value, gradient, parts = trial
    values, vectors = parts
    nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
    scale = np.sqrt(diagonal / np.diag(nearest))
    nearest *= np.outer(scale, scale)
    np.fill_diagonal(nearest, diagonal)
    return np.asarray((nearest + nearest.T) / 2)


def _dual(
    target: FloatArray, shift: FloatArray, diagonal: FloatArray
) -> tuple[float, FloatArray, tuple[FloatArray, FloatArray]]:
    """theta(y), its gradient, and the eigenvalues and eigenvectors of G + Diag y."""
    values, vectors = np.linalg.eigh(target + np.diag(shift))
    positive = np.maximum(values, 0.0)
    gradient = (vectors**2) @ positive - diagonal
    return float(positive @ positive / 2 - diagonal @ shift), gradient, (values, vectors)


def _newton_step(
    parts: tuple[FloatArray, FloatArray], gradient: FloatArray, size: float
) -> FloatArray:
    """The solution h of (V + REGULAR I) h = -gradient, for a V in the generalised Hessian."""
    from scipy.sparse.linalg import LinearOperator, cg  # slow import

    values, vectors = parts
    positive = np.maximum(values, 0.0)
    gaps = values[:, None] - values[None, :]
    # Eigenvalues that differ only by rounding errors count as equal.
    same = np.abs(gaps) <= 1e-14 * float(np.abs(values).max())
    slopes = np.where(
        same,
        ((values[:, None] > 0) | (values[None, :] > 0)).astype(np.float64),
        (positive[:, None] - positive[None, :]) / np.where(same, 1.0, gaps),
    )

    def product(direction: FloatArray) -> FloatArray:
        inner = slopes * (vectors.T @ (direction[:, None] * vectors))
        return np.asarray(((vectors @ inner) * vectors).sum(axis=1) + REGULAR * direction)

    p = len(gradient)
    operator = LinearOperator((p, p), matvec=product, dtype=np.float64)
    # Quadratic convergence needs more accurate steps as the gradient falls.
    accuracy = min(1e-2, float(np.linalg.norm(gradient)) / size)
    step, _ = cg(operator, -gradient, rtol=max(accuracy, 1e-12), maxiter=4 * p)
    return np.asarray(step)
