"""Compiled heat baths of the log-gas on the line: redraw one particle, given all other particles.

d particles lambda_1 < ... < lambda_d on the line have density proportional to

    prod over i < j of (lambda_j - lambda_i)  times  prod over i of exp(-|lambda_i|).

Given all other particles, particle i lies between two neighbours, with density at x proportional to
e^(-|x|) prod over j != i of |x - lambda_j|, which is log-concave. Particles at -inf or +inf do not
change the density of the others. For quadrature, the interval is divided into panels.
"""

from __future__ import annotations

import numpy as np

from geomdp._numerics.compilation import numba

#: Number of Gauss-Legendre nodes per panel. Few particles are near a panel. So the density on the
#: panel is close to a polynomial of degree below 20, times an exponential that changes by a factor
#: of at most e^4 on a panel of a short interval. Interpolation at the nodes is then accurate up to
#: rounding.
NODES = 24
#: Length of the longest panel of a short interval.
PANEL = 4.0
#: Intervals longer than `SHORT` are cut off where the density is below `NEGLIGIBLE` times its
#: largest value. An example is the infinite interval of an outermost particle. These intervals are
#: divided into `PANELS` equal panels.
SHORT, PANELS = 16.0, 5
#: Densities below this share of the largest density are neglected. The share is below 1e-16, the
#: resolution of a uniform float64 number in [0, 1).
NEGLIGIBLE = 1e-17
#: A short interval gets one more panel for every `CROWD` particles, because the factor of each
#: particle varies over the interval.
CROWD = 32
#: Number of bisections for the mode. The mode need only be accurate enough to place the panels.
MODE_BISECTIONS = 12
#: Largest number of Newton steps for a quantile; bisection replaces a step that leaves the current
#: bracket. Most quantiles take about 5 steps.
QUANTILE_STEPS = 60
#: The Newton steps end when a step is below this share of half a panel.
QUANTILE_TOLERANCE = 1e-14

_ABSCISSAE, _WEIGHTS = np.polynomial.legendre.leggauss(NODES)
_DEGREES = np.arange(NODES)
#: Row a maps the values at the nodes to the coefficient of the Legendre polynomial P_a.
_TO_LEGENDRE = np.ascontiguousarray(
    (_DEGREES[:, None] + 1 / 2)
    * (np.polynomial.legendre.legvander(_ABSCISSAE, NODES - 1) * _WEIGHTS[:, None]).T
)
#: For a >= 1, P_(a+1)(t) = _RISE[a] t P_a(t) - _FALL[a] P_(a-1)(t), and the integral of P_a from -1
#: to t is _INTEGRAL[a] (P_(a+1)(t) - P_(a-1)(t)).
_RISE = (2 * _DEGREES + 1) / (_DEGREES + 1)
_FALL = _DEGREES / (_DEGREES + 1)
_INTEGRAL = 1 / (2 * _DEGREES + 1)


@numba.njit(cache=True)
def sweeps(points, uniforms):  # type: ignore[no-untyped-def]
    """Redraw all particles of `points` (d,) T times in place, at the quantiles `uniforms` (T, d);
    the order of two states is kept, because no quantile falls if another particle moves up.
    """
    size = len(points)
    for t in range(len(uniforms)):
        for s in range(size):
            i = s if t % 2 == 0 else size - 1 - s
            points[i] = heat_bath(uniforms[t, s], points, i)


@numba.njit(cache=True)
def heat_bath(u, points, i):  # type: ignore[no-untyped-def]
    """The u-quantile of the distribution of particle i of `points`, given all other particles."""
    low = points[i - 1] if i > 0 else -np.inf
    high = points[i + 1] if i < len(points) - 1 else np.inf
    if not (low < high and low < np.inf and high > -np.inf):
        return points[i]  # particle and neighbour are at the same infinity, or no interval is left
    if high - low <= SHORT:
        middle = (low + high) / 2
        count = 1 + int((high - low) / PANEL) + len(points) // CROWD
    else:
        middle, count = _mode(low, high, points, i), PANELS
        left = _cut(middle, low, points, i)
        high = _cut(middle, high, points, i)
        low = left
    ends = _panel_ends(low, high, count)
    values = np.empty((len(ends) - 1, NODES))
    masses = np.empty(len(ends) - 1)
    for p in range(len(masses)):
        _density(ends[p], ends[p + 1], middle, points, i, values[p])
        masses[p] = (_WEIGHTS * values[p]).sum() * (ends[p + 1] - ends[p]) / 2
    target = u * masses.sum()
    p = 0
    while p < len(masses) - 1 and target > masses[p]:
        target -= masses[p]
        p += 1
    half = (ends[p + 1] - ends[p]) / 2
    place = _panel_quantile(values[p], target / half, masses[p] / half)
    return ends[p] + half * (1 + place)


@numba.njit(cache=True)
def _panel_ends(low, high, count):  # type: ignore[no-untyped-def]
    """Ends of `count` equal panels of [low, high]; a panel with 0 inside is cut in two at 0."""
    kink = low < 0 < high
    ends = np.empty(count + (2 if kink else 1))
    k = 0
    for p in range(count + 1):
        end = low + (high - low) * p / count
        if p == count:
            end = high
        if kink and end >= 0:
            ends[k] = 0.0
            k += 1
            kink = False
        ends[k] = end
        k += 1
    return ends


@numba.njit(cache=True)
def _density(start, end, middle, points, i, values):  # type: ignore[no-untyped-def]
    """Set `values` to (density at the nodes of [start, end]) / (density at `middle`)."""
    half = (end - start) / 2
    places = start + half * (1 + _ABSCISSAE)
    values[:] = np.exp(abs(middle) - np.abs(places))
    for j in range(len(points)):
        centre = points[j]
        if j != i and abs(centre) < np.inf:
            scale = 1 / abs(middle - centre)
            for k in range(NODES):
                values[k] *= abs(places[k] - centre) * scale


@numba.njit(cache=True)
def _panel_quantile(values, target, mass):  # type: ignore[no-untyped-def]
    """The t in [-1, 1] up to which a density with these `values` at the nodes has mass `target`."""
    coefficients = np.zeros(NODES)
    for a in range(NODES):
        for k in range(NODES):
            coefficients[a] += _TO_LEGENDRE[a, k] * values[k]
    low, high = -1.0, 1.0
    t = min(max(2 * target / mass - 1, low), high)
    for _ in range(QUANTILE_STEPS):
        before, now = 1.0, t
        below, density = coefficients[0] * (t + 1), coefficients[0]
        for a in range(1, NODES):
            after = _RISE[a] * t * now - _FALL[a] * before
            below += coefficients[a] * (after - before) * _INTEGRAL[a]
            density += coefficients[a] * now
            before, now = now, after
        if below > target:
            high = t
        else:
            low = t
        step = t - (below - target) / density if density > 0 else np.inf
        if not low < step < high:
            step = (low + high) / 2
        if abs(step - t) < QUANTILE_TOLERANCE:
            return step
        t = step
    return t


@numba.njit(cache=True)
def _mode(low, high, points, i):  # type: ignore[no-untyped-def]
    """A point near the mode of particle i in the (possibly infinite) interval (low, high)."""
    start, reach = min(high, 0.0), 1.0
    while low == -np.inf and _slope(start - reach, points, i) < 0:
        reach *= 2
    left = start - reach if low == -np.inf else low
    start, reach = max(low, 0.0), 1.0
    while high == np.inf and _slope(start + reach, points, i) > 0:
        reach *= 2
    right = start + reach if high == np.inf else high
    for _ in range(MODE_BISECTIONS):
        middle = (left + right) / 2
        if _slope(middle, points, i) > 0:
            left = middle
        else:
            right = middle
    return (left + right) / 2


@numba.njit(cache=True)
def _slope(x, points, i):  # type: ignore[no-untyped-def]
    """Derivative of the log-density of particle i at x. It decreases in x."""
    slope = -1.0 if x > 0 else 1.0
    for j in range(len(points)):
        if j != i and abs(points[j]) < np.inf:
            slope += 1 / (x - points[j])
    return slope


@numba.njit(cache=True)
def _cut(middle, end, points, i):  # type: ignore[no-untyped-def]
    """A point between the mode and `end`; beyond this point the density is negligible."""
    way = 1.0 if end > middle else -1.0
    step = 1.0
    while step < abs(end - middle):
        x = middle + way * step
        ratio = np.exp(abs(middle) - abs(x))
        for j in range(len(points)):
            if j != i and abs(points[j]) < np.inf:
                ratio *= abs(x - points[j]) / abs(middle - points[j])
        if ratio < NEGLIGIBLE:
            return x
        step *= 1.5
    return end
