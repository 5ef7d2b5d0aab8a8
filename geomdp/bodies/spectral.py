"""Bodies of symmetric d x d matrices defined by eigenvalues, in svec coordinates: the upper
triangle, a vector in R^D, D = d (d + 1) / 2, with entries off the diagonal times sqrt(2).
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from geomdp._numerics.linalg import row_blocks, svec, unsvec
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import whole
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body, Facets, cp, nearest_in_corner

#: Largest number of entries of a block of several matrices of `Spectraplex`, 8 MB. Seeded points
#: depend on it, as each block draws its matrices before their sizes.
WISHART_ENTRIES = 1 << 20


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
    """A symmetric body of symmetric d x d matrices, defined by their spectra."""

    symmetric = True

    @abc.abstractmethod
    def _moments(self) -> SpectralMoments: ...

    @abc.abstractmethod
    def _bounds(self, above: Any, below: Any) -> list[Any]:
        """CVXPY constraints on the traces `above` and `below` of psd matrices with difference M."""

    def orbits(self) -> FloatArray:
        """Points (2, D) of all orbits of extreme points under M -> V M V^T and M -> -M."""
        ends = np.zeros((2, self.d))
        ends[:, 0] = 1.0
        ends[1, 1:2] = -1.0
        return self.extreme_point(svec(ends[:, :, None] * np.eye(self.d)))

    def second_moment(self) -> FloatArray:
        """E svec(M) svec(M)^T = alpha I_D + beta e e^T, e = svec(I_d), from E tr(M^2) = alpha D +
        beta d and E (tr M)^2 = alpha d + beta d^2.
        """
        d, D, identity, moments = self.d, self.dimension, svec(np.eye(self.d)), self._moments()
        alpha = moments.squares - moments.squared_trace / d
        # D - 1 dimensions are orthogonal to the identity. For d = 1, D - 1 is 0.
        alpha = alpha / (D - 1) if d > 1 else 0.0
        beta = (moments.squared_trace / d - alpha) / d
        return np.asarray(alpha * np.eye(D) + beta * np.outer(identity, identity))

    def volume(self) -> float:
        return spectraplex_volume(self.d) * math.exp(self._moments().log_integral)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        above = cp.Variable((self.d, self.d), PSD=True)
        below = cp.Variable((self.d, self.d), PSD=True)
        difference = half_vector(above - below, self.d) == variable
        return [difference, *self._bounds(cp.trace(above), cp.trace(below))]


@dataclass(frozen=True)
class NuclearBall(SymmetricSpectral):
    """The ball {M symmetric : ||M||_* <= 1} of the nuclear norm, in svec coordinates.

    The nuclear norm is the sum of the absolute values of the eigenvalues. The ball is the convex
    hull of K and -K for the spectraplex K (JL-COV). Its matrices are d x d; svec lists the d (d +
    1) / 2 entries of the upper triangle, with those off the diagonal times sqrt(2). Membership,
    gauge, support and projection need one eigenvalue decomposition per point or direction, O(d^3);
    a chord needs many. Uniform points have Haar-distributed eigenvectors, and eigenvalues drawn by
    coupling from the past, O(d^3 log d) per draw for d up to about 30 (JL-COV).

    Parameters
    ----------
    d : int
        Number of rows of the matrices, at least 1.

    Examples
    --------
    >>> import geomdp as gd
    >>> ball = gd.bodies.NuclearBall(2)
    >>> ball.gauge([[0.5, 0.0, -0.5], [1.0, 0.0, -1.0]]).round(6).tolist()
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
        from geomdp.bodies.coupling_from_the_past import nuclear_spectra

        return in_haar_frames(nuclear_spectra(n, self.d, rng), rng)

    def _moments(self) -> SpectralMoments:
        return nuclear_moments(self.d)

    def radius(self) -> float:
        """Attained at every x x^T with ||x|| = 1."""
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
    >>> import geomdp as gd
    >>> gd.bodies.Spectraplex(2).contains([[0.36, 2**0.5 * 0.48, 0.64]]).tolist()
    [True]
    """

    def support(self, directions: FloatArray) -> FloatArray:
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
        values, vectors = eigen(points)
        return assemble(nearest_in_corner(values, 1.0), vectors)

    def radius(self) -> float:
        """1, attained at every x x^T with ||x|| = 1."""
        return 1.0

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """U^(1/D) W / tr W, W = G G^T, for uniform U and normal G, d x (d + 1); exact (X-SPX)."""
        points = np.empty((n, self.dimension))
        for rows in row_blocks(n, self.d * (self.d + 1), WISHART_ENTRIES):
            count = rows.stop - rows.start
            normal = rng.standard_normal((count, self.d, self.d + 1))
            wishart = svec(normal @ np.swapaxes(normal, 1, 2))
            trace = np.einsum("bij,bij->b", normal, normal)
            sizes = rng.random(count) ** (1 / self.dimension)
            points[rows] = (sizes / trace)[:, None] * wishart
        return points

    def centroid(self) -> FloatArray:
        """D / (D + 1) times svec(I_d) / d."""
        shape = svec(np.eye(self.d))
        return np.asarray(self.dimension / (self.dimension + 1) / self.d * shape)

    def second_moment(self) -> FloatArray:
        """(2 (d + 1) I_D + (d + 1)^2 svec(I_d) svec(I_d)^T) / (4 (D + 1) (D + 2))."""
        # W of `sample_uniform` has E[W_ij W_gh] = k^2 e_ij e_gh + k (e_ig e_jh + e_ih e_jg) for
        # e = I_d, and tr W is chi-square with 2 D degrees of freedom, independent of W / tr W.
        # U^(1/D) contributes E[U^(2/D)] = D / (D + 2).
        D, k = self.dimension, self.d + 1
        identity = svec(np.eye(self.d))
        moment = 2 * k * np.eye(D) + k**2 * np.outer(identity, identity)
        return np.asarray(moment / (4 * (D + 1) * (D + 2)))

    def volume(self) -> float:
        return spectraplex_volume(self.d)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
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
            # The largest eigenvalue is (g + r) / sqrt(2), g standard normal and r the norm of two
            # more. E max(g + r, 0) is the integral over r > 0 of r e^(-r^2/2) (r Phi(r) + phi(r)).
            return 3 * math.sqrt(math.pi) / 8 + 1 / (2 * math.sqrt(math.pi))
        return None


@dataclass(frozen=True)
class SpectraplexDifference(SymmetricSpectral):
    """The difference body K - K of the spectraplex K, in svec coordinates.

    K - K = {M symmetric : tr M_+ <= 1, tr M_- <= 1}. M is d x d, and the dimension is
    d (d + 1) / 2. M_+ and M_- are the positive and the negative part of M, so M = M_+ - M_-
    (JL-COV). Methods cost as much as those of `NuclearBall`.

    Parameters
    ----------
    d : int
        Number of rows of the matrices, at least 1.

    Examples
    --------
    >>> import geomdp as gd
    >>> body = gd.bodies.SpectraplexDifference(2)
    >>> body.gauge([[1.0, 0.0, -1.0], [1.0, 0.0, 1.0]]).round(6).tolist()
    [1.0, 2.0]
    """

    def support(self, directions: FloatArray) -> FloatArray:
        values = eigenvalues(directions)
        return np.asarray(np.maximum(values[:, -1], 0.0) + np.maximum(-values[:, 0], 0.0))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """v v^T - w w^T for eigenvectors v, w of the largest (if > 0) and smallest (if < 0)
        eigenvalue.
        """
        values, vectors = eigen(directions)
        bottom = top_projector(-values[:, ::-1], vectors[:, :, ::-1])
        return np.asarray(top_projector(values, vectors) - bottom)

    def gauge(self, points: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(*_traces(eigenvalues(points))))

    def facets(self, points: FloatArray) -> Facets:
        values, vectors = eigen(points)
        above, below = _traces(values)
        signs = np.where((above >= below)[:, None], values > 0, -1.0 * (values < 0))
        return Facets(np.maximum(above, below), assemble(signs, vectors))

    def project(self, points: FloatArray) -> FloatArray:
        values, vectors = eigen(points)
        nearest = nearest_in_corner(values, 1.0) - nearest_in_corner(-values, 1.0)
        return assemble(nearest, vectors)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        from geomdp.bodies.coupling_from_the_past import difference_spectra

        return in_haar_frames(difference_spectra(n, self.d, rng), rng)

    def _moments(self) -> SpectralMoments:
        return difference_moments(self.d)

    def radius(self) -> float:
        """sqrt(2), attained at v v^T - w w^T with orthogonal unit vectors v, w; 1 for d = 1."""
        return math.sqrt(2) if self.d > 1 else 1.0

    def _bounds(self, above: Any, below: Any) -> list[Any]:
        return [above <= 1, below <= 1]

    def width_rule(self) -> tuple[float, Body]:
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
    for rows in row_blocks(n, d**2):
        part = spectra[rows]
        frames = np.linalg.qr(rng.standard_normal((len(part), d, d)))[0]
        points[rows] = assemble(part, frames)
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
    rows, columns = np.triu_indices(d)
    scale = np.where(rows == columns, 1.0, math.sqrt(2))
    return cp.multiply(scale, matrix[rows, columns])


# Volumes and second moments of the symmetric spectral bodies, from Pfaffians (JL-COV). By de Bruijn
# (1955), "On some multiple integrals involving determinants", the integral of
#
#   prod over i < j of (r(lambda_j) - r(lambda_i))  times  prod over i of r'(lambda_i) e^-|lambda_i|
#
# over lambda_1 < ... < lambda_d is, up to a constant, the Pfaffian of the matrix
#
#   A_jk = double integral of sgn(y - x) g_j(x) g_k(y),   g_j(x) = P_j(2 r(x)) r'(x) e^(-|x|).
#
# Here r(x) is e^(1j angle/2) x for x > 0 and e^(-1j angle/2) x for x < 0, and P_0..P_(d-1) are
# orthonormal for the weight e^(-|x|), which makes A well conditioned. For odd d, A has one more row
# and column, with the integrals of the g_j. For the angle 0, the integrand is the density of the
# log-gas of `coupling_from_the_past`, up to a constant. With the random degree p of
# `difference_spectra` there, the integral for an angle divided by that for 0 is
# E e^(1j angle (p - D/2)), so a Fourier sum over angles gives the distribution of p.

ComplexArray = NDArray[np.complex128]
#: The Fourier sum stops when the modulus of E e^(1j angle (p - D/2)) is below this rounding error.
NEGLIGIBLE = 1e-15


@dataclass(frozen=True)
class SpectralMoments:
    """Volume and second moments of a symmetric spectral body; M is uniform on this body."""

    #: ln(J(body) / J(spectraplex)). J is the integral of prod over i < j of |lambda_i - lambda_j|
    #: over the ascending spectra of a body.
    log_integral: float
    squares: float  # E tr(M^2)
    squared_trace: float  # E (tr M)^2


@cache
def nuclear_moments(d: int) -> SpectralMoments:
    """Moments of {||M||_* <= 1}: the moments of the gas divided by (D + 1) (D + 2) (JL-L14)."""
    D = d * (d + 1) // 2
    gas = _gas(d)
    shares = gas.shares
    p, q = gas.degrees, D - gas.degrees
    # Given p, the sums s of the positive and -s' of the negative eigenvalues are independent, s
    # Gamma(p) and s' Gamma(q). So E (s - s')^2 is (p - q)^2 + p + q, and p + q = D.
    squared_trace = float(shares @ ((p - q) ** 2 + D))
    radial = (D + 1) * (D + 2)
    squares = 2 * float(gas.squares.sum())
    return SpectralMoments(gas.log_integral, squares / radial, squared_trace / radial)


@cache
def difference_moments(d: int) -> SpectralMoments:
    """Moments of {tr M_+ <= 1, tr M_- <= 1}, from the gas with degrees p reweighted by C(D, p)."""
    D = d * (d + 1) // 2
    gas = _gas(d)
    p, q = gas.degrees, D - gas.degrees
    gammaln = scipy.special.gammaln
    logs = gammaln(D + 1) - gammaln(p + 1) - gammaln(q + 1)
    binomials = np.exp(logs - logs.max())
    mass = float(gas.shares @ binomials)
    weights = gas.shares * binomials / mass
    # Given p, the sums of the positive and negative eigenvalues are U^(1/p) and -V^(1/(D - p)).
    cross = 2 * p * q / ((p + 1) * (q + 1))
    squared_trace = float(weights @ (p / (p + 2) + q / (q + 2) - cross))
    # Given p, the sum s of the positive eigenvalues has E s^2 = p (p + 1) in the gas, and
    # p / (p + 2) in the body. The factor 2 counts the negative eigenvalues.
    squares = 2 * float((gas.squares * binomials) @ (1 / ((p + 1) * (p + 2)))) / mass
    log_integral = gas.log_integral + math.log(mass) + float(logs.max())
    return SpectralMoments(log_integral, squares, squared_trace)


@dataclass(frozen=True)
class _Gas:
    """Statistics of the gas for each degree p; a_i are the positive eigenvalues."""

    degrees: FloatArray  # p = 0..D
    shares: FloatArray  # P(p)
    squares: FloatArray  # P(p) E[sum of a_i^2 | p]
    #: ln(J / J_+). J is the integral of prod over i < j of |lambda_i - lambda_j| times
    #: e^(-||lambda||_1) over all ascending lambda in R^d. J_+ is the integral over the ascending
    #: lambda with positive entries alone.
    log_integral: float


def _gas(d: int) -> _Gas:
    D = d * (d + 1) // 2
    degrees = np.arange(D + 1.0)
    norms = _recurrence(d)
    plain, squares = _pfaffians(norms, 0.0)
    count = D + 1 + D % 2  # number of angles; odd, so that the angles are symmetric about 0
    shares = np.full(D + 1, 1.0 / count)
    moments = np.full(D + 1, (squares / plain).real / count)
    for k in range(1, count // 2 + 1):
        angle = 2 * math.pi * k / count
        turned, weighted = _pfaffians(norms, angle)
        if abs(turned / plain) < NEGLIGIBLE:
            break
        wave = np.exp(-1j * angle * (degrees - D / 2)) * (2 / count)
        shares += (wave * turned / plain).real
        moments += (wave * weighted / plain).real
    # P_k(2 x) replace the monomials in the Vandermonde determinant, which multiplies it by the
    # product of their leading coefficients.
    leading = np.arange(d) * math.log(2) - math.log(2) / 2
    leading[1:] -= np.cumsum(np.log(norms[1:]))
    log_mass = math.log(abs(plain)) - float(leading.sum())
    j = np.arange(d)
    gammas = scipy.special.gammaln(1 + j / 2) + scipy.special.gammaln((j + 3) / 2)
    # J_+, by Selberg's integral.
    log_positive = gammas.sum() - d * scipy.special.gammaln(1.5) - scipy.special.gammaln(d + 1)
    return _Gas(degrees, shares, moments, log_mass - float(log_positive))


def _pfaffians(norms: FloatArray, angle: float) -> tuple[complex, complex]:
    """Pf A for `angle`, and its derivative in s at 0 if g_j(x) times 1 + s x^2 for x > 0."""
    d = len(norms)
    t, weights = scipy.special.roots_laguerre(d + 2)
    laguerre: FloatArray = np.asarray(np.polynomial.laguerre.lagvander(t, d + 1), dtype=np.float64)
    # e^(t/2) times the integrals of L_k(2 y) e^(-y) over y > t / 2 at the nodes t, by columns.
    tails = laguerre.copy()
    for k in range(1, d + 2):
        tails[:, k] -= laguerre[:, k - 1] + tails[:, k - 1]
    turn = np.exp(0.5j * angle)
    plain = turn * _polynomials(turn * t, norms)
    weighted = plain * (t**2 / 4)[:, None]

    def coefficients(values: ComplexArray) -> ComplexArray:
        """Laguerre coefficients (d + 2, d) of d polynomials in t, from values at the nodes."""
        return np.asarray((laguerre * weights[:, None]).T @ values)

    # Column j of `plain` has the values of a function f_j at the points t / 2. Let T_j(x) be the
    # integral of f_j(y) e^(-y) over y > x, and m_j = T_j(0). The double integral over the positive
    # half-line is 2 int f_i(x) e^(-x) T_j(x) dx - m_i m_j.
    ends = (-1.0) ** np.arange(d + 2)
    first, second = coefficients(plain), coefficients(weighted)
    means, square_means = ends @ first, ends @ second
    rows, square_rows = (plain.T * weights) @ tails, (weighted.T * weights) @ tails
    within = rows @ first - np.outer(means, means)
    moved = square_rows @ first + rows @ second
    moved -= np.outer(square_means, means) + np.outer(means, square_means)
    signs = (-1.0) ** np.arange(d)
    # On the negative half-line, the integrals are mirror images, with -angle in place of angle.
    mirrored = signs * means.conj()
    cross = np.outer(mirrored, means)
    matrix = within - np.outer(signs, signs) * within.conj() + cross - cross.T
    cross = np.outer(mirrored, square_means)
    change = moved + cross - cross.T
    matrix, change = _bordered(matrix, means + mirrored), _bordered(change, square_means)
    value = _pfaffian(matrix)
    slope = value * np.trace(np.linalg.solve(matrix, change)) / 2
    return value, complex(slope)


def _bordered(matrix: ComplexArray, border: ComplexArray) -> ComplexArray:
    """The skew-symmetric part of `matrix`, bordered by `border` if its order is odd."""
    matrix = (matrix - matrix.T) / 2
    if len(matrix) % 2 == 0:
        return np.asarray(matrix)
    corner = np.zeros((1, 1))
    return np.asarray(np.block([[matrix, border[:, None]], [-border[None, :], corner]]))


def _pfaffian(matrix: ComplexArray) -> complex:
    """Pfaffian of a skew-symmetric matrix of even order, by Parlett-Reid elimination."""
    matrix, value = matrix.copy(), 1.0 + 0.0j
    for k in range(0, len(matrix), 2):
        best = k + 1 + int(np.abs(matrix[k + 1 :, k]).argmax())
        if best != k + 1:
            matrix[[k + 1, best]] = matrix[[best, k + 1]]
            matrix[:, [k + 1, best]] = matrix[:, [best, k + 1]]
            value = -value
        pivot = matrix[k, k + 1]
        value *= pivot
        if pivot == 0:
            return complex(value)
        row = matrix[k, k + 2 :] / pivot
        column = matrix[k + 2 :, k + 1]
        matrix[k + 2 :, k + 2 :] += np.outer(row, column) - np.outer(column, row)
    return complex(value)


def _recurrence(d: int) -> FloatArray:
    """Coefficients b_1..b_(d-1) of t P_k = b_(k+1) P_(k+1) + b_k P_(k-1), by Stieltjes' method."""
    t, weights = scipy.special.roots_laguerre(d + 2)
    before, now = np.zeros_like(t), np.full_like(t, math.sqrt(0.5))  # e^(-|t|) has integral 2
    norms = np.zeros(d)
    for k in range(1, d):
        after = t * now - norms[k - 1] * before
        norms[k] = math.sqrt(2 * float(weights @ after**2))
        before, now = now, after / norms[k]
    return norms


def _polynomials(points: ComplexArray, norms: FloatArray) -> ComplexArray:
    """P_0..P_(d-1), orthonormal for the weight e^(-|t|), at complex `points`: (len(points), d)."""
    values = np.empty((len(points), len(norms)), dtype=np.complex128)
    values[:, 0] = math.sqrt(0.5)
    for k in range(1, len(norms)):
        before = norms[k - 1] * values[:, k - 2] if k > 1 else 0.0
        values[:, k] = (points * values[:, k - 1] - before) / norms[k]
    return values
