"""Least-trace ellipsoids in R^(r_1) x ... x R^(r_B), with equal semi-axes within each factor.

The factors are called blocks. Block i of a vector v is v_i in R^(r_i).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray
from geomdp._validation import finite_array, positive
from geomdp.bodies.arguments import check_all_above_0
from geomdp.geometry.ellipsoids.least_trace import INFLATION

#: Largest number of updates of the weights in `profile_ellipsoid`.
MAX_UPDATES = 5000


def capped_ellipsoid(
    dimensions: npt.ArrayLike, diameters: npt.ArrayLike, diameter: float
) -> FloatArray:
    """Least-trace ellipsoid for all vectors with a bound on each block and on the whole vector.

    The vectors are all v = (v_1, ..., v_B) with ||v_i||_2 <= delta_i and ||v||_2 <= delta. Consider
    the ellipsoids {v : sum of ||v_i||^2 / s_i <= 1} that contain these vectors. The trace of such
    an ellipsoid is the sum of r_i s_i. The least trace is t^2 with

        t = max {sum of sqrt(r_i u_i) : 0 <= u_i <= delta_i^2, sum of u_i <= delta^2}.

    The maximum is at u_i = min(delta_i^2, lambda r_i). The number lambda is chosen to make the sum
    of the u_i equal to delta^2. If the sum is smaller for every lambda, u_i = delta_i^2 for all i.

    The ellipsoid with s_i = t sqrt(u_i / r_i) has trace t^2. It contains the vectors for the
    following reason. Because u attains the maximum, the sum of u'_i sqrt(r_i / u_i) is at most t
    for every feasible u'. For every vector v, u'_i = ||v_i||^2 is feasible. So the sum of
    ||v_i||^2 / s_i is at most 1. If no cap delta_i^2 is reached, the ellipsoid is the ball of
    radius delta.

    Parameters
    ----------
    dimensions : (B,) array of int
        The r_i, at least 1 each.
    diameters : (B,) array
        The delta_i, above 0.
    diameter : float
        The bound delta on the whole vector, above 0.

    Returns
    -------
    (B,) array
        The semi-axes sqrt(s_i), one per block.

    Raises
    ------
    ValueError
        For bounds that are not finite and above 0, dimensions below 1, or arrays of different
        lengths.

    References
    ----------
    Formula sheet JL-ELL, for a matrix S that is a multiple of I on each block.
    """
    caps = finite_array(diameters, "diameters", ndim=1)
    check_all_above_0(caps, "diameters")
    caps = caps**2
    sizes = _sizes(dimensions, len(caps))
    total = positive(diameter, "diameter") ** 2
    shares = np.minimum(caps, _water_level(caps, sizes, total) * sizes)
    t = float(np.sqrt(sizes * shares).sum())
    return np.asarray(np.sqrt((1 + INFLATION) * t * np.sqrt(shares / sizes)))


def profile_ellipsoid(
    dimensions: npt.ArrayLike, profiles: npt.ArrayLike, *, tolerance: float = 1e-3
) -> FloatArray:
    """Least-trace ellipsoid for all vectors whose blocks obey the bounds in a row of `profiles`.

    A row of `profiles` bounds the squared length of every block. The vectors are all
    v = (v_1, ..., v_B) for which some row has entries of at least ||v_1||^2, ..., ||v_B||^2.

    The ellipsoids are {v : sum of ||v_i||^2 / s_i <= 1}. Let t be the maximum of the
    sum of sqrt(r_i u_i) over u in the convex hull of the rows. The least trace is t^2. The u that
    attains the maximum gives s_i = t sqrt(u_i / r_i). The function writes u as a weighted mean of
    the rows, and updates the weights as `least_trace_ellipsoid` does with exponent 2. At the end s
    is rescaled, so the ellipsoid contains the vectors even if the tolerance was missed.

    Parameters
    ----------
    dimensions : (B,) array of int
        The r_i, at least 1 each.
    profiles : (P, B) array
        Squared lengths, at least 0. Every column has an entry above 0.
    tolerance : float
        Relative duality gap at which to stop.

    Returns
    -------
    (B,) array
        The semi-axes sqrt(s_i), one per block.

    Raises
    ------
    ValueError
        For negative squared lengths, a column of zeros, dimensions below 1, shapes that do not fit,
        or a tolerance of 0 or less.

    Notes
    -----
    Cost: O(P B) for each of at most 5000 updates.

    References
    ----------
    Formula sheet JL-ELL, for a matrix S that is a multiple of I on each block.
    """
    rows = finite_array(profiles, "profiles", ndim=2)
    sizes = _sizes(dimensions, rows.shape[1])
    tolerance = positive(tolerance, "tolerance")
    if not ((rows >= 0).all() and (rows > 0).any(axis=0).all()):
        raise ValueError("profiles must be at least 0, and each column must have an entry above 0")
    weights = np.full(len(rows), 1 / len(rows))
    for _ in range(MAX_UPDATES):
        u = weights @ rows
        t = float(np.sqrt(sizes * u).sum())
        scores = rows @ np.sqrt(sizes / u) / t
        if scores.max() <= 1 + tolerance:
            break
        weights = weights * scores**2
        weights /= weights.sum()
    # The s before rescaling. The ellipsoid contains the vectors of row j if entry j of
    # rows @ (1 / s) is at most 1.
    squares = t * np.sqrt(u / sizes)
    squares *= float((rows @ (1 / squares)).max()) * (1 + INFLATION)
    return np.asarray(np.sqrt(squares))


def _sizes(dimensions: npt.ArrayLike, count: int) -> FloatArray:
    sizes = finite_array(dimensions, "dimensions", ndim=1)
    if len(sizes) != count or (sizes < 1).any():
        raise ValueError(f"dimensions must be {count} numbers of at least 1, got {dimensions!r}")
    return sizes


def _water_level(caps: FloatArray, sizes: FloatArray, total: float) -> float:
    """The lambda for which the sum of min(cap_i, lambda size_i) is `total`.

    If the sum of the caps is at most `total`, return the least lambda with all terms at their caps.
    """
    if caps.sum() <= total:
        return float((caps / sizes).max())
    order = np.argsort(caps / sizes)
    capped = np.concatenate([[0.0], np.cumsum(caps[order])])[:-1]
    free = np.cumsum(sizes[order][::-1])[::-1]
    # Let the first i blocks in this order be at their caps. The other blocks then share what
    # remains of `total` in proportion to their sizes.
    levels = (total - capped) / free
    full = int(np.argmax(levels <= (caps / sizes)[order]))
    return float(levels[full])
