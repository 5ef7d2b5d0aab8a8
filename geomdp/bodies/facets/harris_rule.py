"""Which bound stops a facet that slides along an edge: the ratio test of Harris (1973), compiled.

Compilers do not vectorise a running minimum or maximum of floats, so the loops keep `LANES` of them
side by side: the bounds are read in rows of so many, one bound to a lane.
"""

from __future__ import annotations

import numba
import numpy as np

#: Slack of the ratio test; far below the perturbation, far above rounding in <z, v_i>.
HARRIS_SLACK = 1e-11
#: Running extremes side by side: 32 float64 are 4 registers of 512 bits or 8 of 256.
LANES = 32
#: Sums and extremes may be taken in any order; infinities keep their meaning.
FREE_ORDER = {"nnan", "nsz", "reassoc", "contract"}


@numba.njit(cache=True, fastmath=FREE_ORDER)
def steepest_slope(slopes, two_sided):  # type: ignore[no-untyped-def]
    """Largest slope, in size where bounds are two-sided; 0 if none is above."""
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
    """Length of the step to a bound, and by how much the slack lengthens it.

    Infinite where a positive slope is at most `rising`, or the size of a negative one `falling`.
    """
    inverse = 1.0 / abs(slope)
    gap = bound - (value if slope > 0.0 else -value)
    least = rising if slope > 0.0 else falling
    return (gap * inverse if abs(slope) > least else np.inf), HARRIS_SLACK * inverse


@numba.njit(cache=True, fastmath=FREE_ORDER, error_model="numpy")
def entering_vertex(bounds, two_sided, values, slopes, smallest, times):  # type: ignore[no-untyped-def]
    """Vertex whose bound stops z first, by the ratio test of Harris, and the length of the step.

    The products stay in [-bound, bound], or only below the bound if not `two_sided`. Slopes up to
    `smallest` in size never stop z. `times` is room for the length of the step to every bound.
    Returns -1 if nothing stops z.
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
