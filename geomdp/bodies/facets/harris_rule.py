"""The ratio test of Harris (1973), compiled: how far a pivot can move a facet normal z.

A pivot moves z along an edge of the polar body until another product <z, v_i> meets its bound (see
`ray_shooting`). Compilers often fail to vectorise a running extreme, so the loops keep one for each
position in groups of `LANES` numbers.
"""

from __future__ import annotations

import numpy as np

from geomdp._numerics.compilation import numba

#: Tolerance of the ratio test. It is far above the rounding errors of <z, v_i>, and far below the
#: random amounts by which the bounds are perturbed to break ties.
HARRIS_SLACK = 1e-11
#: Number of running extremes. 32 float64 fill 4 registers of 512 bits or 8 registers of 256 bits.
LANES = 32
#: Flags of LLVM: sums and extremes may be taken in any order; infinities keep their meaning.
FREE_ORDER = {"nnan", "nsz", "reassoc", "contract"}


@numba.njit(cache=True, fastmath=FREE_ORDER)
def steepest_slope(slopes, two_sided):  # type: ignore[no-untyped-def]
    """Largest slope, or largest modulus of a slope if bounds are two-sided; at least 0."""
    largest, least = np.zeros(LANES), np.zeros(LANES)
    whole = len(slopes) - len(slopes) % LANES
    for start in range(0, whole, LANES):
        row = slopes[start : start + LANES]
        for j in range(LANES):
            largest[j], least[j] = max(largest[j], row[j]), min(least[j], row[j])
    for i in range(whole, len(slopes)):
        largest[0], least[0] = max(largest[0], slopes[i]), min(least[0], slopes[i])
    return max(largest.max(), -least.min()) if two_sided else largest.max()


@numba.njit(cache=True, fastmath=FREE_ORDER, error_model="numpy")
def _time(bound, value, slope, rising, falling):  # type: ignore[no-untyped-def]
    """Step until a product meets its bound (inf for small slopes), and what the tolerance adds."""
    inverse = 1.0 / abs(slope)
    gap = bound - (value if slope > 0.0 else -value)
    least = rising if slope > 0.0 else falling
    return (gap * inverse if abs(slope) > least else np.inf), HARRIS_SLACK * inverse


@numba.njit(cache=True, fastmath=FREE_ORDER, error_model="numpy")
def entering_vertex(bounds, two_sided, values, slopes, smallest, times):  # type: ignore[no-untyped-def]
    """The vertex that stops z by Harris' ratio test, or -1, and the length of the step.

    Products stay in [-bound, bound] if `two_sided`, else in (-inf, bound]; `times` is overwritten.
    """
    falling = smallest if two_sided else np.inf
    soonest, latest = np.full(LANES, np.inf), np.full(LANES, np.inf)
    whole = len(slopes) - len(slopes) % LANES
    for start in range(0, whole, LANES):
        end = start + LANES
        b, v, s, t = bounds[start:end], values[start:end], slopes[start:end], times[start:end]
        for j in range(LANES):
            time, more = _time(b[j], v[j], s[j], smallest, falling)
            t[j] = time
            soonest[j], latest[j] = min(soonest[j], time), min(latest[j], time + more)
    for i in range(whole, len(slopes)):
        j = i - whole
        times[i], more = _time(bounds[i], values[i], slopes[i], smallest, falling)
        soonest[j], latest[j] = min(soonest[j], times[i]), min(latest[j], times[i] + more)
    limit = latest.min()
    pivot, entering = 0.0, -1
    for j in range(LANES):
        if soonest[j] <= limit and soonest[j] < np.inf:
            for i in range(j, len(slopes), LANES):
                if times[i] <= limit and abs(slopes[i]) > pivot:
                    pivot, entering = abs(slopes[i]), i
    return entering, max(times[entering], 0.0)
