"""Bodies of Chebyshev product moments of distributions on the cube [-1, 1]^d.

The moments are M_m = E prod_i T_{m_i}(x_i) for m in {0..t-1}^d, where T_k is the Chebyshev
polynomial of degree k. They are in row-major order of m. M_0 is 1 for every distribution and is
left out. The coordinates of a body are M_m / s_m with positive scales s_m. Euclidean projection on
the body is therefore least squares in M with the weights 1 / s_m^2.
"""

from __future__ import annotations

import math
from functools import partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray
from geomdp._validation import finite_array, whole
from geomdp.bodies.arguments import check_all_above_0
from geomdp.bodies.conic.cvx_body import CvxBody
from geomdp.bodies.polytopes.vpolytope import VPolytope

#: Largest value of (number of grid points) x (number of moments): 2^25 float64 are 256 MB.
MAX_ENTRIES = 1 << 25


def cosine_moment_body(scales: npt.ArrayLike) -> CvxBody:
    """The set of all moment vectors of distributions on [-1, 1], by two semidefinite constraints.

    For x = cos(a) with a random angle a, M_k is E cos(k a). (M_1, ..., M_{t-1}) are such moments if
    and only if the Toeplitz matrix H = (M_|i-j|) of order t, with M_0 = 1, is positive semidefinite
    (Caratheodory 1911, Toeplitz 1911: the truncated trigonometric moment problem). H does not
    change if its rows and columns are reversed. So H is positive semidefinite if and only if two
    blocks are, with the entries E cos(i a) cos(j a) and E sin(i a) sin(j a). Here i and j run over
    {0, 1, ..} for odd t and over {1/2, 3/2, ..} for even t, up to (t - 1) / 2.

    Parameters
    ----------
    scales : (t - 1,) array
        The scales s_m; the body's coordinates are M_m / s_m.

    Returns
    -------
    CvxBody
        The body in R^(t - 1).

    Raises
    ------
    ValueError
        If there are no scales, or a scale is not above 0.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> body = gd.bodies.cosine_moment_body(np.ones(2))
    >>> angle = np.pi / 3
    >>> body.contains(np.array([[np.cos(angle), np.cos(2 * angle)], [0.0, -1.5]])).tolist()
    [True, False]
    """
    import cvxpy as cp

    scales = finite_array(scales, "scales", ndim=1)
    check_all_above_0(scales, "scales")
    # The solver is SCS, because both blocks are singular at points of the moment curve. There, the
    # solver Clarabel often stops before it reaches its tolerances.
    return CvxBody(len(scales), partial(_semidefinite, scales), cp.SCS)


def _semidefinite(scales: FloatArray, variable: Any) -> list[Any]:
    """The semidefinite constraints on `variable`, the vector (t - 1,) of M_m / s_m."""
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
    """Coefficients of M_0..M_{t-1} in twice each entry of a block, and the order of the block; the
    block is E cos(i a) cos(j a) for `sign` 1 and E sin(i a) sin(j a) for `sign` -1.
    """
    # `doubled` holds the numbers 2 i. They are even for odd t, and odd for even t. The row of
    # sin(0 a) would be 0, so it is left out.
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
    """Moment vectors of distributions on a grid of equally spaced angles.

    Grid points have coordinates cos(pi j / (G - 1)), j = 0..G-1. The body lies inside the body of
    the moments of all distributions on the cube. For each of these moment vectors, it has a vector
    with entries for m that differ by at most (h^2 / 8) sum_i m_i^2, where h = pi / (G - 1), by
    linear interpolation between grid angles.

    Parameters
    ----------
    scales : (t,) * d array
        s_m > 0 for m != 0; s_0 must be finite, but is not used.
    per_axis : int
        G >= 2, the number of grid angles in each variable. The body is the hull of G^d points.

    Returns
    -------
    VPolytope
        The body in R^(t^d - 1).

    Raises
    ------
    ValueError
        If a scale but the first is not above 0, the shape of `scales` is not (t,) * d with
        t >= 2, or `per_axis` is below 2. Also if the moments of all grid points are more than 2^25
        numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> body = gd.bodies.grid_moment_body(np.ones(3), per_axis=3)
    >>> body
    VPolytope(3 points in R^2)
    >>> body.vertices.round(6).tolist()
    [[1.0, 1.0], [0.0, -1.0], [-1.0, 1.0]]
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
    """The scales (t,) * d, t >= 2, checked to be above 0 after the first; else ``ValueError``."""
    array = finite_array(scales, "scales", np.ndim(scales))
    if array.ndim == 0 or len(array) < 2 or set(array.shape) != {len(array)}:
        raise ValueError(f"scales must have shape (t,) * d, t >= 2, got {array.shape}")
    check_all_above_0(array.ravel()[1:], "scales after the first")
    return array
