"""Exact spectra of uniform points of the symmetric spectral bodies, in any dimension (JL-COV).

The two bodies are the nuclear-norm ball of symmetric d x d matrices and {tr M_+ <= 1, tr M_- <= 1},
for the positive and the negative part M_+ and M_- of M. A uniform point is V diag(lambda) V^T with
a uniform (Haar) orthogonal matrix V. The spectrum lambda has density proportional to prod |lambda_i
- lambda_j| on the body's set of spectra. It is computed from a state of the log-gas (see
`log_gas`): a vector lambda of d ascending positions of particles, with density proportional to prod
|lambda_i - lambda_j| e^(-||lambda||_1).

States of the gas are drawn by coupling from the past (Propp and Wilson 1996, "Exact sampling with
coupled Markov chains"). A heat bath redraws one particle, given all other particles; a sweep
redraws every particle once, and is a step of a Markov chain. The density is log-supermodular on
ascending states. So two chains that use the same uniform numbers keep their order, coordinate by
coordinate. Two bounding chains start from the lowest state (all particles at -inf) and from the
highest state (all at +inf). Every other chain stays between them.

A block is a fixed number of sweeps, followed by one sweep by rejection sampling, with proposals
from an envelope that is common to all states between the bounding chains. If each proposal is
accepted for all of these states, all chains coalesce: they reach the same state. The algorithm of
Wilson (2000), "How to couple from the past using a read-once source of randomness", returns the
state before each block that coalesces, except before the first such block. These are independent
exact draws, up to errors near machine precision in the quantiles of single particles.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from geomdp._numerics.compilation import numba
from geomdp._typing import FloatArray
from geomdp.bodies.spectral.eigenvalues import assemble
from geomdp.bodies.spectral.log_gas import heat_bath, sweeps

#: The interval between the two bounding chains is widened by this amount on each side. Rounding of
#: quantiles is far smaller, so it cannot put a state outside the interval.
MARGIN = 1e-9
#: Largest number of entries of one batch of matrices: 2^20 float64 numbers take 8 MB. A batch has
#: more entries only if it is a single matrix.
BLOCK_ENTRIES = 1 << 20


def nuclear_spectra(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Spectra (n, d) of uniform points of the nuclear-norm ball {||M||_* <= 1}.

    A state of the gas in a Haar frame has density proportional to e^(-||M||_*), so a uniform point
    is M / ||M||_* times an independent norm U^(1/D), with D = d (d + 1) / 2 and U uniform (JL-KN).
    """
    spectra = gas_spectra(n, d, rng)
    sizes = rng.random((n, 1)) ** (2 / (d * (d + 1)))
    return np.asarray(spectra * sizes / np.abs(spectra).sum(axis=1, keepdims=True))


def difference_spectra(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Spectra (n, d) of uniform points of {tr M_+ <= 1, tr M_- <= 1}, by rejection from the gas.

    The density has a factor a_i + b_j for each positive eigenvalue a_i and negative eigenvalue
    -b_j. Choose a_i in it with probability a_i / (a_i + b_j), else b_j. Given the choices, the
    density is homogeneous in a and in b, so sum a and sum b are independent of each other and of
    the directions. Let p be k (k + 1) / 2, for k positive eigenvalues, plus the number of choices
    of an a_i, D = d (d + 1) / 2 and q = D - p. The sums are Gamma(p) and Gamma(q) in the gas, but
    U^(1/p) and U^(1/q) in the body, and the probability of (p, q) is 1 / (p! q!) times that in the
    gas, up to a constant. So a draw is accepted with probability C(D, p) / C(D, D // 2).
    """
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
    rows = max(1, BLOCK_ENTRIES // d**2)
    for start in range(0, n, rows):
        part = spectra[start : start + rows]
        above, below = np.maximum(part, 0)[:, :, None], np.maximum(-part, 0)[:, None, :]
        # A factor a_i + b_j belongs to a pair of a positive and a negative eigenvalue.
        crossing = (above > 0) & (below > 0)
        chosen = crossing & (rng.random(crossing.shape) * (above + below) < above)
        count = (part > 0).sum(axis=1)
        degrees[start : start + rows] = count * (count + 1) // 2 + chosen.sum(axis=(1, 2))
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


def in_haar_frames(spectra: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Rows svec(V diag(lambda) V^T) for rows lambda of `spectra` (n, d), with Haar matrices V."""
    n, d = spectra.shape
    points = np.empty((n, d * (d + 1) // 2))
    rows = max(1, BLOCK_ENTRIES // d**2)
    for start in range(0, n, rows):
        part = spectra[start : start + rows]
        frames = np.linalg.qr(rng.standard_normal((len(part), d, d)))[0]
        points[start : start + rows] = assemble(part, frames)
    return points


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
                found[count] = state
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
    proposals, thresholds = np.empty(d), np.empty(d)
    for i in range(d):
        proposals[i], thresholds[i] = _propose(rng, low, high, i)
        if thresholds[i] >= _acceptance(proposals[i], low, high, i):
            end = state.copy()
            if needed:
                sweeps(end, uniforms)
                end[:i] = proposals[:i]
                end[i] = _finish(rng, proposals[i], thresholds[i], low, high, end, i)
                for j in range(i + 1, d):
                    end[j] = heat_bath(rng.random(), end, j)
            return False, end
        low[i] = high[i] = proposals[i]
    return True, proposals


@numba.njit(cache=True)
def _propose(rng, low, high, i):  # type: ignore[no-untyped-def]
    """A draw from the envelope for particle i, and a uniform number, the threshold of the
    acceptance test.

    |x - lambda_j| is largest at low_j for lower particles j, and at high_j for higher ones.
    """
    envelope = high.copy()
    envelope[:i] = low[:i]
    return heat_bath(rng.random(), envelope, i), rng.random()


@numba.njit(cache=True)
def _acceptance(x, low, high, i):  # type: ignore[no-untyped-def]
    """Smallest ratio of density to envelope at x for particle i, over states between the bounds."""
    chance = 1.0
    for j in range(i):
        chance *= max(x - high[j], 0.0) / (x - low[j])
    for j in range(i + 1, len(low)):
        chance *= max(low[j] - x, 0.0) / (high[j] - x)
    return chance


@numba.njit(cache=True)
def _finish(rng, x, threshold, low, high, state, i):  # type: ignore[no-untyped-def]
    """The draw of particle i in `state`, by rejection sampling; x is the first proposal."""
    while True:
        chance = 1.0
        for j in range(i):
            chance *= max(x - state[j], 0.0) / (x - low[j])
        for j in range(i + 1, len(low)):
            chance *= max(state[j] - x, 0.0) / (high[j] - x)
        if threshold < chance:
            return x
        x, threshold = _propose(rng, low, high, i)
