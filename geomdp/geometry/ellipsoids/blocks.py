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
    """Semi-axes sqrt(s_i) (B,) of the least-trace ellipsoid for blocks of bounded lengths.

    It contains all v with ||v_i||_2 <= delta_i (`diameters`) and ||v||_2 <= delta (`diameter`). Its
    trace, the sum of r_i s_i with the `dimensions` r_i, is t^2 with t = max {sum of sqrt(r_i u_i) :
    0 <= u_i <= delta_i^2, sum of u_i <= delta^2} (JL-ELL). ``ValueError`` for bad bounds.
    """
    caps = finite_array(diameters, "diameters", ndim=1)
    check_all_above_0(caps, "diameters")
    caps = caps**2
    sizes = _sizes(dimensions, len(caps))
    total = positive(diameter, "diameter") ** 2
    # The maximum is at u_i = min(delta_i^2, lambda r_i) for the lambda with sum of u_i = delta^2
    # (or all u_i at their caps). Because u attains it, the sum of u'_i sqrt(r_i / u_i) is at most t
    # for every feasible u', such as u'_i = ||v_i||^2: so s_i = t sqrt(u_i / r_i) contains the
    # vectors.
    shares = np.minimum(caps, _water_level(caps, sizes, total) * sizes)
    t = float(np.sqrt(sizes * shares).sum())
    return np.asarray(np.sqrt((1 + INFLATION) * t * np.sqrt(shares / sizes)))


def profile_ellipsoid(
    dimensions: npt.ArrayLike, profiles: npt.ArrayLike, *, tolerance: float = 1e-3
) -> FloatArray:
    """Semi-axes sqrt(s_i) (B,) of the least-trace ellipsoid whose blocks obey a row of `profiles`.

    A row of `profiles` (P, B) bounds the squared length of every block; some row has entries of at
    least ||v_1||^2, ..., ||v_B||^2. With r_i = `dimensions`, s_i = t sqrt(u_i / r_i) for the
    maximum t of the sum of sqrt(r_i u_i) over u in the hull of the rows (JL-ELL). At the end s is
    rescaled, so the ellipsoid contains the vectors even if `tolerance` (relative gap) was missed.
    ``ValueError`` for bad arguments. Cost: O(P B) for each of at most 5000 updates.
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
    """The lambda for which the sum of min(cap_i, lambda size_i) is `total`; at most all caps."""
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
