"""Volumes and second moments of the symmetric spectral bodies, from Pfaffians (JL-COV).

By de Bruijn (1955), "On some multiple integrals involving determinants", the integral of

    prod over i < j of (r(lambda_j) - r(lambda_i))  times  prod over i of r'(lambda_i) e^-|lambda_i|

over lambda_1 < ... < lambda_d is, up to a constant, the Pfaffian of the matrix

    A_jk = double integral of sgn(y - x) g_j(x) g_k(y),   g_j(x) = P_j(2 r(x)) r'(x) e^(-|x|).

Here r(x) is e^(1j angle/2) x for x > 0 and e^(-1j angle/2) x for x < 0. The polynomials
P_0..P_(d-1) are orthonormal for the weight e^(-|x|), which makes A well conditioned. For odd d, A
has one more row and column, with the integrals of the g_j.

For the angle 0, the integrand is the density of the log-gas up to a constant (see
`coupling_from_the_past`). Let p be the random degree of
`coupling_from_the_past.difference_spectra`, and D = d (d + 1) / 2. The integral for an angle
divided by the integral for 0 is E e^(1j angle (p - D/2)), so a Fourier sum over angles gives the
distribution of p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy
from numpy.typing import NDArray

from geomdp._numerics.linalg import svec
from geomdp._typing import FloatArray

ComplexArray = NDArray[np.complex128]
#: The modulus of E e^(1j angle (p - D/2)) falls with the angle about as fast as for a normally
#: distributed p. Values below this number are rounding errors, and the Fourier sum stops there.
NEGLIGIBLE = 1e-15


@dataclass(frozen=True)
class SpectralMoments:
    """Volume and second moments of a symmetric spectral body; M is uniform on this body."""

    #: ln(J(body) / J(spectraplex)). J is the integral of prod over i < j of |lambda_i - lambda_j|
    #: over the ascending spectra of a body.
    log_integral: float
    squares: float  # E tr(M^2)
    squared_trace: float  # E (tr M)^2

    def second_moment(self, d: int) -> FloatArray:
        """E svec(M) svec(M)^T = alpha I_D + beta e e^T, D = d (d + 1) / 2 and e = svec(I_d), from
        the equations E tr(M^2) = alpha D + beta d and E (tr M)^2 = alpha d + beta d^2.
        """
        D, identity = d * (d + 1) // 2, svec(np.eye(d))
        alpha = self.squares - self.squared_trace / d
        # D - 1 dimensions are orthogonal to the identity. For d = 1, D - 1 is 0.
        alpha = alpha / (D - 1) if d > 1 else 0.0
        beta = (self.squared_trace / d - alpha) / d
        return np.asarray(alpha * np.eye(D) + beta * np.outer(identity, identity))


@cache
def nuclear_moments(d: int) -> SpectralMoments:
    """Moments of {||M||_* <= 1}: the moments of the gas divided by (D + 1) (D + 2) (JL-L14)."""
    D = d * (d + 1) // 2
    gas = _gas(d)
    shares = gas.shares
    p, q = gas.degrees, D - gas.degrees
    # Given p, let s be the sum of the positive eigenvalues, and -s' the sum of the negative
    # eigenvalues. s is Gamma(p), s' is Gamma(q), and they are independent. So E (s - s')^2 is
    # (p - q)^2 + p + q, and p + q = D.
    squared_trace = float(shares @ ((p - q) ** 2 + D))
    radial = (D + 1) * (D + 2)
    return SpectralMoments(
        gas.log_integral, 2 * float(gas.squares.sum()) / radial, squared_trace / radial
    )


@cache
def difference_moments(d: int) -> SpectralMoments:
    """Moments of {tr M_+ <= 1, tr M_- <= 1}, from the gas with degrees p reweighted by C(D, p).

    Given p, the sums of the positive and of the negative eigenvalues are U^(1/p) and -V^(1/(D - p))
    for independent uniform U and V; U^(1/p) has the mean square p / (p + 2).
    """
    D = d * (d + 1) // 2
    gas = _gas(d)
    p, q = gas.degrees, D - gas.degrees
    logs = (
        scipy.special.gammaln(D + 1) - scipy.special.gammaln(p + 1) - scipy.special.gammaln(q + 1)
    )
    binomials = np.exp(logs - logs.max())
    mass = float(gas.shares @ binomials)
    weights = gas.shares * binomials / mass
    cross = 2 * p * q / ((p + 1) * (q + 1))
    squared_trace = float(weights @ (p / (p + 2) + q / (q + 2) - cross))
    # Given p, the sum s of the positive eigenvalues has E s^2 = p (p + 1) in the gas and
    # E s^2 = p / (p + 2) in the body. The factor 2 counts the negative eigenvalues, by symmetry.
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
    # Logarithms of the leading coefficients of P_k(2 x). These polynomials replace the monomials in
    # the Vandermonde determinant. This multiplies the determinant by the product of the leading
    # coefficients.
    leading = np.arange(d) * math.log(2) - math.log(2) / 2
    leading[1:] -= np.cumsum(np.log(norms[1:]))
    log_mass = math.log(abs(plain)) - float(leading.sum())
    return _Gas(degrees, shares, moments, log_mass - _log_laguerre_mass(d))


def _log_laguerre_mass(d: int) -> float:
    """Logarithm of the integral J_+ of `_Gas`, by Selberg's integral."""
    j = np.arange(d)
    return float(
        (scipy.special.gammaln(1 + j / 2) + scipy.special.gammaln((j + 3) / 2)).sum()
        - d * scipy.special.gammaln(1.5)
        - scipy.special.gammaln(d + 1)
    )


def _pfaffians(norms: FloatArray, angle: float) -> tuple[complex, complex]:
    """Pf A for `angle`, and its derivative in s at 0 if g_j(x) times 1 + s x^2 for x > 0."""
    d = len(norms)
    t, weights = scipy.special.roots_laguerre(d + 2)
    laguerre: FloatArray = np.asarray(np.polynomial.laguerre.lagvander(t, d + 1), dtype=np.float64)
    tails = _laguerre_tails(laguerre)
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


def _laguerre_tails(laguerre: FloatArray) -> FloatArray:
    """e^(t/2) times the integrals of L_k(2 y) e^(-y) over y > t / 2 at the nodes t, by columns."""
    tails = laguerre.copy()
    for k in range(1, tails.shape[1]):
        tails[:, k] -= laguerre[:, k - 1] + tails[:, k - 1]
    return tails


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
