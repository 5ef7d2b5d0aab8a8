"""Bodies of symmetric d x d matrices defined by eigenvalues, in svec coordinates.

svec (see `geomdp._numerics.linalg`) writes a symmetric d x d matrix as its upper triangle, a vector
in R^D, D = d (d + 1) / 2, with entries off the diagonal times sqrt(2). Its Euclidean norm is the
Frobenius norm of the matrix.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from geomdp._numerics.linalg import svec, unsvec
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import whole
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.conic.pfaffians import SpectralMoments, difference_moments, nuclear_moments
from geomdp.bodies.oracles import Facets, nearest_in_corner

#: Gaussian matrices are drawn in blocks. A block has at most this many entries, but at least one
#: matrix: 2^20 float64 numbers take 8 MB.
BLOCK_ENTRIES = 1 << 20


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


class SymmetricSpectral(MatrixBody):
    """A symmetric body of symmetric d x d matrices, defined by their spectra.

    Membership, gauge, support and projection need one eigenvalue decomposition per point or
    direction: O(d^3); a chord needs many. Uniform points have Haar-distributed eigenvectors, and
    eigenvalues drawn by coupling from the past: O(d^3 log d) per draw for d up to about 30
    (JL-COV). Moments and volume are computed from Pfaffians of matrices of order d or d + 1.
    """

    symmetric = True

    @abc.abstractmethod
    def _moments(self) -> SpectralMoments: ...

    @abc.abstractmethod
    def _bounds(self, above: Any, below: Any) -> list[Any]:
        """CVXPY constraints on the traces `above` and `below` of psd matrices with difference M."""

    @abc.abstractmethod
    def orbits(self) -> FloatArray:
        """Spectra (k, d), one for each orbit of extreme points under M -> V M V^T and M -> -M."""

    def second_moment(self) -> FloatArray:
        """alpha I_D + beta svec(I_d) svec(I_d)^T for D = d (d + 1) / 2, see `SpectralMoments`."""
        return self._moments().second_moment(self.d)

    def volume(self) -> float:
        """Volume of the spectraplex times the ratio given by `SpectralMoments.log_integral`."""
        return spectraplex_volume(self.d) * math.exp(self._moments().log_integral)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        import cvxpy as cp

        above = cp.Variable((self.d, self.d), PSD=True)
        below = cp.Variable((self.d, self.d), PSD=True)
        difference = half_vector(above - below, self.d) == variable
        return [difference, *self._bounds(cp.trace(above), cp.trace(below))]


@dataclass(frozen=True)
class NuclearBall(SymmetricSpectral):
    """The ball {M symmetric : ||M||_* <= 1} of the nuclear norm, in svec coordinates.

    The nuclear norm is the sum of the absolute values of the eigenvalues. The ball is the convex
    hull of K and -K for the spectraplex K (JL-COV). Its matrices are d x d; svec lists the d (d +
    1) / 2 entries of the upper triangle, with those off the diagonal times sqrt(2). See
    `SymmetricSpectral` for the cost of each method.

    Parameters
    ----------
    d : int
        Number of rows of the matrices, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> ball = gd.bodies.NuclearBall(2)
    >>> ball.gauge(np.array([[0.5, 0.0, -0.5], [1.0, 0.0, -1.0]])).round(6).tolist()
    [1.0, 2.0]
    """

    def support(self, directions: FloatArray) -> FloatArray:
        values = eigenvalues(directions)
        return np.asarray(np.maximum(values[:, -1], -values[:, 0]))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """sign(lambda) v v^T for a unit eigenvector v with the largest |lambda|; sign(0) = 1."""
        values, vectors = eigen(directions)
        above = (values[:, -1] >= -values[:, 0])[:, None]
        best = np.where(above, vectors[:, :, -1], vectors[:, :, 0])
        return np.where(above, 1.0, -1.0) * svec(best[:, :, None] * best[:, None, :])

    def gauge(self, points: FloatArray) -> FloatArray:
        return np.asarray(np.abs(eigenvalues(points)).sum(axis=1))

    def facets(self, points: FloatArray) -> Facets:
        values, vectors = eigen(points)
        return Facets(np.abs(values).sum(axis=1), assemble(np.sign(values), vectors))

    def project(self, points: FloatArray) -> FloatArray:
        values, vectors = eigen(points)
        nearest = np.copysign(nearest_in_corner(np.abs(values), 1.0), values)
        return assemble(nearest, vectors)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        from geomdp.bodies.conic.coupling_from_the_past import nuclear_spectra

        return in_haar_frames(nuclear_spectra(n, self.d, rng), rng)

    def _moments(self) -> SpectralMoments:
        return nuclear_moments(self.d)

    def orbits(self) -> FloatArray:
        """Eigenvalues of e_1 e_1^T: up to sign, its orbit is the set of all extreme points."""
        return np.eye(1, self.d)

    def radius(self) -> float:
        """1, attained at every x x^T with ||x|| = 1."""
        return 1.0

    def _bounds(self, above: Any, below: Any) -> list[Any]:
        return [above + below <= 1]


@dataclass(frozen=True)
class Spectraplex(MatrixBody):
    """The spectraplex {M psd : tr M <= 1} = conv{x x^T : ||x||_2 <= 1} in svec coordinates.

    M is d x d, and the dimension is D = d (d + 1) / 2. Membership, support and projection need one
    eigenvalue decomposition per point or direction: O(d^3) (JL-COV, X-SPX).

    Parameters
    ----------
    d : int
        Number of rows of the matrices, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> body = gd.bodies.Spectraplex(2)
    >>> x = np.array([0.6, 0.8])
    >>> moment = np.array([x[0] ** 2, np.sqrt(2) * x[0] * x[1], x[1] ** 2])
    >>> body.contains(moment[None]).tolist()
    [True]
    """

    def support(self, directions: FloatArray) -> FloatArray:
        """max(lambda_max, 0) for the largest eigenvalue lambda_max of each direction."""
        return np.asarray(np.maximum(eigenvalues(directions)[:, -1], 0.0))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """svec(v v^T) for a unit top eigenvector v; 0 if the largest eigenvalue is at most 0."""
        values, vectors = eigen(directions)
        return top_projector(values, vectors)

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether no eigenvalue is below -`tolerance` and the trace is at most 1 + `tolerance`."""
        values = eigenvalues(points)
        return np.asarray((values[:, 0] >= -tolerance) & (values.sum(axis=1) <= 1 + tolerance))

    def project(self, points: FloatArray) -> FloatArray:
        """Project eigenvalues on {x >= 0, sum x <= 1}, and keep the eigenvectors (JL-COV)."""
        values, vectors = eigen(points)
        return assemble(nearest_in_corner(values, 1.0), vectors)

    def radius(self) -> float:
        """1, attained at every x x^T with ||x|| = 1."""
        return 1.0

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """U^(1/D) W / tr W, W = G G^T, for uniform U and normal G, d x (d + 1); exact (X-SPX)."""
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
        """D / (D + 1) times svec(I) / d, where I is the d x d identity matrix."""
        shape = svec(np.eye(self.d))
        return np.asarray(self.dimension / (self.dimension + 1) / self.d * shape)

    def second_moment(self) -> FloatArray:
        """(2 (d + 1) I_D + (d + 1)^2 svec(I_d) svec(I_d)^T) / (4 (D + 1) (D + 2)).

        I_n is the n x n identity matrix. Let k = d + 1 and e = I_d. The W of `sample_uniform` has
        E[W_ij W_gh] = k^2 e_ij e_gh + k (e_ig e_jh + e_ih e_jg). tr W is chi-square with k d = 2 D
        degrees of freedom and independent of W / tr W. So the second moment of W / tr W is that of
        W divided by E[(tr W)^2] = 2 D (2 D + 2). U^(1/D) contributes E[U^(2/D)] = D / (D + 2).
        """
        D, k = self.dimension, self.d + 1
        identity = svec(np.eye(self.d))
        moment = 2 * k * np.eye(D) + k**2 * np.outer(identity, identity)
        return np.asarray(moment / (4 * (D + 1) * (D + 2)))

    def volume(self) -> float:
        return spectraplex_volume(self.d)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        import cvxpy as cp

        matrix = cp.Variable((self.d, self.d), PSD=True)
        return [half_vector(matrix, self.d) == variable, cp.trace(matrix) <= 1]

    def difference(self) -> Body:
        return SpectraplexDifference(self.d)

    def symmetric_hull(self) -> Body:
        return NuclearBall(self.d)

    def gaussian_width(self) -> float | None:
        """E max(lambda_max, 0) over standard normal svecs if d = 1 or 2; None for larger d."""
        if self.d == 1:
            return 1 / math.sqrt(2 * math.pi)
        if self.d == 2:
            # The largest eigenvalue is (g + r) / sqrt(2). Here g is standard normal, and r is the
            # norm of two further standard normals. Let Phi and phi be the normal distribution
            # function and density. E max(g + r, 0) is the integral over r > 0 of
            # r e^(-r^2/2) (r Phi(r) + phi(r)).
            return 3 * math.sqrt(math.pi) / 8 + 1 / (2 * math.sqrt(math.pi))
        return None


@dataclass(frozen=True)
class SpectraplexDifference(SymmetricSpectral):
    """The difference body K - K of the spectraplex K, in svec coordinates.

    K - K = {M symmetric : tr M_+ <= 1, tr M_- <= 1}. M is d x d, and the dimension is
    d (d + 1) / 2. M_+ and M_- are the positive and the negative part of M, so M = M_+ - M_-
    (JL-COV). See `SymmetricSpectral` for the cost of each method.

    Parameters
    ----------
    d : int
        Number of rows of the matrices, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> body = gd.difference_body(gd.bodies.Spectraplex(2))
    >>> body
    SpectraplexDifference(2 x 2 matrices in R^3)
    >>> body.gauge(np.array([[1.0, 0.0, -1.0], [1.0, 0.0, 1.0]])).round(6).tolist()
    [1.0, 2.0]
    """

    def support(self, directions: FloatArray) -> FloatArray:
        values = eigenvalues(directions)
        return np.asarray(np.maximum(values[:, -1], 0.0) + np.maximum(-values[:, 0], 0.0))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """v v^T - w w^T for unit eigenvectors v and w of the largest eigenvalue, if above 0, and of
        the smallest, if below 0; other terms are left out.
        """
        values, vectors = eigen(directions)
        bottom = top_projector(-values[:, ::-1], vectors[:, :, ::-1])
        return np.asarray(top_projector(values, vectors) - bottom)

    def gauge(self, points: FloatArray) -> FloatArray:
        """max(tr M_+, tr M_-)."""
        return np.asarray(np.maximum(*_traces(eigenvalues(points))))

    def facets(self, points: FloatArray) -> Facets:
        """Gauges, and the projector on M_+'s range if tr M_+ >= tr M_-, else minus that of M_-."""
        values, vectors = eigen(points)
        above, below = _traces(values)
        signs = np.where((above >= below)[:, None], values > 0, -1.0 * (values < 0))
        return Facets(np.maximum(above, below), assemble(signs, vectors))

    def project(self, points: FloatArray) -> FloatArray:
        values, vectors = eigen(points)
        nearest = nearest_in_corner(values, 1.0) - nearest_in_corner(-values, 1.0)
        return assemble(nearest, vectors)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        from geomdp.bodies.conic.coupling_from_the_past import difference_spectra

        return in_haar_frames(difference_spectra(n, self.d, rng), rng)

    def _moments(self) -> SpectralMoments:
        return difference_moments(self.d)

    def orbits(self) -> FloatArray:
        """Eigenvalues of e_1 e_1^T and of e_1 e_1^T - e_2 e_2^T; for d = 1, of e_1 e_1^T twice."""
        spectra = np.zeros((2, self.d))
        spectra[:, 0] = 1.0
        spectra[1, 1:2] = -1.0
        return spectra

    def radius(self) -> float:
        """sqrt(2), attained at v v^T - w w^T with orthogonal unit vectors v, w; 1 for d = 1."""
        return math.sqrt(2) if self.d > 1 else 1.0

    def _bounds(self, above: Any, below: Any) -> list[Any]:
        return [above <= 1, below <= 1]

    def width_rule(self) -> tuple[float, Body]:
        """w(K - K) = 2 w(K) for the Gaussian width w."""
        return 2.0, Spectraplex(self.d)


# Eigenvalues, matrices with given eigenvalues, and the volume of the spectraplex.


def spectraplex_volume(d: int) -> float:
    """Volume of {M psd : tr M <= 1}: 2^(d (d - 1) / 4) Gamma_d((d + 1) / 2) / D! in svec."""
    stretch = d * (d - 1) / 4 * math.log(2)
    gamma = float(scipy.special.multigammaln((d + 1) / 2, d))
    return math.exp(stretch + gamma - math.lgamma(d * (d + 1) // 2 + 1))


def _traces(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """tr M_+ and tr M_- (b,) for the eigenvalues `values` (b, d) of M."""
    return np.maximum(values, 0).sum(axis=1), np.maximum(-values, 0).sum(axis=1)


def eigen(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ascending eigenvalues (b, d) and eigenvectors (b, d, d) of the matrices with svecs (b, D)."""
    values, basis = np.linalg.eigh(unsvec(vectors))
    return np.asarray(values), np.asarray(basis)


def assemble(values: FloatArray, vectors: FloatArray) -> FloatArray:
    """Vectors svec(V diag(w) V^T), (b, D), for each row w of `values` and matrix V of `vectors`."""
    return svec((vectors * values[:, None, :]) @ np.swapaxes(vectors, 1, 2))


def in_haar_frames(spectra: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Rows svec(V diag(lambda) V^T) for rows lambda of `spectra` (n, d), with Haar matrices V."""
    n, d = spectra.shape
    points = np.empty((n, d * (d + 1) // 2))
    rows = max(1, BLOCK_ENTRIES // d**2)
    for start in range(0, n, rows):
        part = spectra[start : start + rows]
        frames = np.linalg.qr(rng.standard_normal((len(part), d, d)))[0]
        points[start : start + rows] = assemble(part, frames)
    return points


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
