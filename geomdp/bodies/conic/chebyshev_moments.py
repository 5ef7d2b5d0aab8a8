"""Bodies of Chebyshev product moments of distributions on the cube [-1, 1]^d.

The moments are M_m = E prod_i T_{m_i}(x_i) for m in {0..t-1}^d, m != 0 in row-major order; M_0 = 1
is left out. Coordinates are M_m / s_m with positive scales s_m, so that Euclidean projection is
least squares with the weights 1 / s_m^2.
"""

from __future__ import annotations

import math
from functools import partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray
from geomdp._validation import finite_array, whole
from geomdp.bodies.conic.cvx_body import CvxBody
from geomdp.bodies.polytopes.vpolytope import VPolytope

#: Largest number of coordinates of all grid points together: 2^25 float64 are 256 MB.
MAX_ENTRIES = 1 << 25


def cosine_moment_body(scales: npt.ArrayLike) -> CvxBody:
    """All moment vectors of distributions on [-1, 1], by two semidefinite constraints.

    (M_1, ..., M_{t-1}) are the cosine moments of a distribution of angles if and only if the
    Toeplitz matrix (M_|i-j|) of order t, with M_0 = 1, is positive semidefinite. It is so if and
    only if two blocks are, into which the symmetry under reversing the order of rows splits it: the
    matrices E cos(i a) cos(j a) and E sin(i a) sin(j a) over i, j in {0, 1, ..} for odd t and in
    {1/2, 3/2, ..} for even t, up to (t - 1) / 2 (Caratheodory 1911, Toeplitz 1911: the truncated
    trigonometric moment problem).

    Parameters
    ----------
    scales : (t - 1,) array
        s_m > 0 (``ValueError`` otherwise); the body's coordinates are M_m / s_m.
    """
    import cvxpy as cp

    scales = _positive(finite_array(scales, "scales", ndim=1))
    # At points of the moment curve both blocks are singular, and there Clarabel often stops before
    # it reaches its tolerances.
    return CvxBody(len(scales), partial(_semidefinite, scales), cp.SCS)


def _semidefinite(scales: FloatArray, variable: Any) -> list[Any]:
    """The constraints on M_m / s_m."""
    import cvxpy as cp

    size = len(scales) + 1
    constraints = []
    for sign in (1.0, -1.0):
        entries, order = _products(size, sign)
        if order:
            affine = entries[:, 0] + (entries[:, 1:] * scales) @ variable
            constraints.append(cp.reshape(affine, (order, order), order="C") >> 0)
    return constraints


def _products(size: int, sign: float) -> tuple[FloatArray, int]:
    """Entries of E cos cos (sign 1) or E sin sin (-1), times 2, as rows over M_0..M_{t-1}."""
    # Twice the frequencies: whole numbers of the parity of t - 1; sin 0 is left out.
    doubled = np.arange((size - 1) % 2, size, 2)
    if sign < 0:
        doubled = doubled[doubled > 0]
    first, second = np.meshgrid(doubled, doubled, indexing="ij")
    rows = np.arange(first.size)
    entries = np.zeros((first.size, size))
    np.add.at(entries, (rows, np.abs(first - second).ravel() // 2), 1.0)
    np.add.at(entries, (rows, (first + second).ravel() // 2), sign)
    return entries, len(doubled)


def grid_moment_body(scales: npt.ArrayLike, per_axis: int) -> VPolytope:
    """The moment vectors of distributions on a grid of equal angles, a subset of the true body.

    Grid points have coordinates cos(pi j / (G - 1)), j = 0..G-1. By linear interpolation between
    grid angles, every true moment vector has one of the body near it, whose moments differ by at
    most (h^2 / 8) sum_i m_i^2, h = pi / (G - 1).

    Parameters
    ----------
    scales : (t,) * d array
        s_m > 0 but for s_0, which is not used.
    per_axis : int
        G >= 2; a vertex for each of the G^d grid points.

    Raises
    ------
    ValueError
        For scales that are not above 0 or not of the shape of a cube, or a body of more than 2^25
        numbers.
    """
    scales = _cube(scales)
    per_axis = whole(per_axis, "per_axis", minimum=2)
    size, dimension = len(scales), scales.ndim
    if scales.size * per_axis**dimension > MAX_ENTRIES:
        raise ValueError(
            f"per_axis^d times the number of moments must be at most {MAX_ENTRIES}, got "
            f"{per_axis}^{dimension} times {scales.size}"
        )
    angles = np.linspace(0, math.pi, per_axis)
    waves = np.cos(np.multiply.outer(angles, np.arange(size)))
    products = reduce(np.kron, [waves] * dimension)
    return VPolytope(products[:, 1:] / scales.ravel()[1:])


def _cube(scales: npt.ArrayLike) -> FloatArray:
    """Scales of shape (t,) * d, t >= 2, above 0 but for the first."""
    array = finite_array(scales, "scales", np.ndim(scales))
    if array.ndim == 0 or len(array) < 2 or set(array.shape) != {len(array)}:
        raise ValueError(f"scales must have shape (t,) * d, t >= 2, got {array.shape}")
    _positive(array.ravel()[1:])
    return array


def _positive(scales: FloatArray) -> FloatArray:
    if not (len(scales) and (scales > 0).all()):
        raise ValueError(f"scales must be numbers above 0, got {scales}")
    return scales
