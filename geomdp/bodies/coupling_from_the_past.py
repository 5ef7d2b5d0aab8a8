"""Exact spectra of uniform points of the symmetric spectral bodies, in any dimension (JL-COV).

A uniform point of the nuclear-norm ball, or of {tr M_+ <= 1, tr M_- <= 1}, is V diag(lambda) V^T
with a Haar orthogonal V; the spectrum lambda has density proportional to prod |lambda_i - lambda_j|
on the body's spectra. It comes from a state of the log-gas: d ascending positions of particles with
density proportional to prod |lambda_i - lambda_j| e^(-||lambda||_1).

States are drawn by coupling from the past (Propp and Wilson 1996, "Exact sampling with coupled
Markov chains"). A heat bath redraws one particle, given all others; a sweep redraws each once. The
density is log-supermodular on ascending states, so two chains with the same uniform numbers keep
their order, and all stay between two bounding chains, from all particles at -inf and at +inf.

A block is a fixed number of sweeps, followed by one sweep by rejection sampling, with proposals
from an envelope common to all states between the bounding chains. If each proposal is accepted for
all of them, the block coalesces: all chains reach the same state. The algorithm of Wilson (2000),
"How to couple from the past using a read-once source of randomness", returns the state before each
block that coalesces, except the first. These are independent exact draws, up to errors near machine
precision in the quantiles of single particles.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from geomdp._numerics.compilation import copy_into, numba
from geomdp._numerics.linalg import row_blocks
from geomdp._typing import FloatArray

# Heat baths. Given all others, particle i lies between two neighbours, with density at x
# proportional to e^(-|x|) prod over j != i of |x - lambda_j|, which is log-concave. Particles at
# -inf or +inf do not change the density. For quadrature, the interval is divided into panels.

#: Gauss-Legendre nodes per panel. The density on a panel is close to a polynomial of degree below
#: 20, times an exponential that changes by at most e^4, so interpolation is accurate to rounding.
NODES = 24
#: Length of the longest panel of a short interval.
PANEL = 4.0
#: Intervals longer than `SHORT`, such as that of an outermost particle, are cut off where the
#: density is below `NEGLIGIBLE` times its largest value, and divided into `PANELS` equal panels.
SHORT, PANELS = 16.0, 5
#: Below 1e-16, the resolution of a uniform float64 number in [0, 1).
NEGLIGIBLE = 1e-17
#: A short interval gets one more panel for every `CROWD` particles, whose factors vary over it.
CROWD = 32
#: Number of bisections for the mode, which only places the panels.
MODE_BISECTIONS = 12
#: Largest number of Newton steps for a quantile; most take about 5. Bisection replaces a step that
#: leaves the current bracket.
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
    """Redraw all particles of `points` (d,) T times in place, at quantiles `uniforms` (T, d)."""
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
        low, high = _cut(middle, low, points, i), _cut(middle, high, points, i)
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
    copy_into(values, np.exp(abs(middle) - np.abs(places)))
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


# Spectra of the two bodies from states of the gas, and these states by coupling.

#: The interval between the bounding chains is widened by this on each side. Rounding of quantiles
#: is far smaller, so it cannot put a state outside the interval.
MARGIN = 1e-9


def nuclear_spectra(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Spectra (n, d) of uniform points of the nuclear-norm ball {||M||_* <= 1} (JL-KN)."""
    # A state in a Haar frame has density proportional to e^(-||M||_*), so a uniform point is
    # M / ||M||_* times an independent norm U^(1/D), D = d (d + 1) / 2.
    spectra = gas_spectra(n, d, rng)
    sizes = rng.random((n, 1)) ** (2 / (d * (d + 1)))
    return np.asarray(spectra * sizes / np.abs(spectra).sum(axis=1, keepdims=True))


def difference_spectra(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Spectra (n, d) of uniform points of {tr M_+ <= 1, tr M_- <= 1}, by rejection from the gas."""
    # The density has a factor a_i + b_j for each positive eigenvalue a_i and negative eigenvalue
    # -b_j. Choose a_i in it with probability a_i / (a_i + b_j), else b_j. Given the choices, the
    # density is homogeneous in a and in b, so sum a and sum b are independent of each other and of
    # the directions. Let p be k (k + 1) / 2, for k positive eigenvalues, plus the number of choices
    # of an a_i, D = d (d + 1) / 2 and q = D - p. The sums are Gamma(p) and Gamma(q) in the gas, but
    # U^(1/p) and U^(1/q) in the body, and the probability of (p, q) is 1 / (p! q!) times that in
    # the gas, up to a constant. So a draw is accepted with probability C(D, p) / C(D, D // 2).
    accepted = np.empty((0, d))
    total = d * (d + 1) // 2
    highest = _log_binomial(total, np.array(total // 2))
    while len(accepted) < n:
        spectra = gas_spectra(n - len(accepted), d, rng)
        degrees = _degrees(spectra, rng)
        log_chance = _log_binomial(total, degrees) - highest
        kept = np.log1p(-rng.random(len(spectra))) <= log_chance
        accepted = np.vstack([accepted, _with_uniform_sums(spectra[kept], degrees[kept], rng)])
    return accepted


def _degrees(spectra: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The numbers p (n,) of `difference_spectra`, with a random choice of a term in each factor."""
    n, d = spectra.shape
    degrees = np.empty(n)
    for rows in row_blocks(n, d**2):
        part = spectra[rows]
        above, below = np.maximum(part, 0)[:, :, None], np.maximum(-part, 0)[:, None, :]
        # A factor a_i + b_j belongs to a pair of a positive and a negative eigenvalue.
        crossing = (above > 0) & (below > 0)
        chosen = crossing & (rng.random(crossing.shape) * (above + below) < above)
        count = (part > 0).sum(axis=1)
        degrees[rows] = count * (count + 1) // 2 + chosen.sum(axis=(1, 2))
    return degrees


def _with_uniform_sums(
    spectra: FloatArray, degrees: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Scale the positive entries of each row of `spectra` to sum U^(1/p) for its p in `degrees`
    (n,), and the negative ones to -U^(1/q), with q = d (d + 1) / 2 - p and U uniform on [0, 1].
    """
    n, d = spectra.shape
    sizes = rng.random((2, n))
    scaled = np.zeros((n, d))
    others = d * (d + 1) // 2 - degrees
    for sign, size, degree in zip((1.0, -1.0), sizes, (degrees, others), strict=True):
        part = np.maximum(sign * spectra, 0)
        there = degree > 0  # an eigenvalue of this sign exists iff the degree is above 0
        radii = size[there] ** (1 / degree[there])
        scaled[there] += sign * part[there] * (radii / part[there].sum(axis=1))[:, None]
    return scaled


def _log_binomial(total: int, degrees: FloatArray) -> FloatArray:
    """Logarithm of 1 / (p! (total - p)!) for the numbers p in `degrees`."""
    return np.asarray(-gammaln(degrees + 1) - gammaln(total - degrees + 1))


def gas_spectra(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Independent, exactly distributed, ascending states (n, d) of the gas; O(d^3 log d) each."""
    return np.asarray(_read_once(rng, n, d, block_sweeps(d)))


def block_sweeps(d: int) -> int:
    """Even number of sweeps with which 95 % of blocks coalesce; any number gives exact draws."""
    return 2 * math.ceil(d * math.log(d) + 2)


@numba.njit(cache=True)
def _read_once(rng, n, d, steps):  # type: ignore[no-untyped-def]
    """States (n, d) before the blocks that coalesce; the first such block only gives the start."""
    found = np.empty((n, d))
    state = np.empty(d)
    count = -1
    while count < n:
        coalesced, end = _block(rng, steps, state, count >= 0)
        if coalesced:
            if count >= 0:
                copy_into(found[count], state)
            count += 1
        state = end
    return found


@numba.njit(cache=True)
def _block(rng, steps, state, needed):  # type: ignore[no-untyped-def]
    """Whether a block coalesces, and the state after it; from `state` only if it is `needed`."""
    d = len(state)
    uniforms = np.empty((steps, d))
    for t in range(steps):
        for s in range(d):
            uniforms[t, s] = rng.random()
    first, second = np.full(d, -np.inf), np.full(d, np.inf)
    sweeps(first, uniforms)
    sweeps(second, uniforms)
    low, high = np.minimum(first, second) - MARGIN, np.maximum(first, second) + MARGIN
    for i in range(d):
        x, threshold = _propose(rng, low, high, i)
        if threshold >= _acceptance(x, low, high, i):
            end = state.copy()
            if needed:
                sweeps(end, uniforms)
                copy_into(end[:i], low)
                while threshold >= _acceptance(x, end, high, i):
                    x, threshold = _propose(rng, low, high, i)
                end[i] = x
                for j in range(i + 1, d):
                    end[j] = heat_bath(rng.random(), end, j)
            return False, end
        low[i] = high[i] = x
    return True, low


@numba.njit(cache=True)
def _propose(rng, low, high, i):  # type: ignore[no-untyped-def]
    """A draw from the envelope for particle i, and the threshold of the acceptance test."""
    envelope = high.copy()
    copy_into(envelope[:i], low)
    return heat_bath(rng.random(), envelope, i), rng.random()


@numba.njit(cache=True)
def _acceptance(x, state, high, i):  # type: ignore[no-untyped-def]
    """Ratio of density to envelope at x for particle i of `state`; least for the lowest `state`."""
    # The particles below i are those of the envelope: the block has redrawn them for all states.
    chance = 1.0
    for j in range(i + 1, len(high)):
        chance *= max(state[j] - x, 0.0) / (high[j] - x)
    return chance
