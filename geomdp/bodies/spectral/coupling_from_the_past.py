"""Exact spectra of uniform points of the symmetric spectral bodies, in any dimension.

The two bodies are sets of symmetric d x d matrices, defined by conditions on eigenvalues alone: the
nuclear-norm ball and {tr M_+ <= 1, tr M_- <= 1}. M_+ and M_- are the positive and the negative part
of M. A uniform point of such a body is V diag(lambda) V^T. V is a uniform (Haar) orthogonal matrix.
The spectrum lambda has density proportional to prod |lambda_i - lambda_j| on the body's set of
spectra (JL-COV). So a spectrum, d numbers, is sampled in place of the d (d + 1) / 2 entries of the
matrix. The spectra are computed from states of the log-gas (see `log_gas`). A state is a vector
lambda of d ascending positions of particles. Its density is proportional to
prod |lambda_i - lambda_j| e^(-||lambda||_1).

States of the gas are drawn by coupling from the past. A heat bath redraws one particle, given all
other particles; a sweep redraws every particle once. Sweeps are the steps of a Markov chain.

The density is log-supermodular on ascending states. So two chains that use the same uniform numbers
keep their order (Propp and Wilson 1996). If one state is below another in every coordinate, the
next states have this order, too. Two chains, the bounding chains, start from the lowest state (all
particles at -inf) and from the highest state (all at +inf). Every other chain stays between them.

A block is a fixed number of sweeps, followed by one sweep by rejection sampling. Before the last
sweep, the bounding chains are usually close. The proposals of the last sweep come from an envelope
that is common to all states between the two chains. If each proposal is accepted for all of these
states, all chains coalesce: they reach the same state. Wilson's read-once algorithm (2000) makes
independent exact draws from blocks: it returns the state before each block that coalesces, except
before the first such block.

The only errors of the draws are numerical errors, near machine precision, in the quantiles of
single particles (see `log_gas`).

References
----------
Propp and Wilson (1996), "Exact sampling with coupled Markov chains"; Wilson (2000), "How to couple
from the past using a read-once source of randomness"; formula sheet JL-COV.
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

    Let D = d (d + 1) / 2 be the dimension. Let M be the random matrix with Haar-distributed
    eigenvectors and a state of the gas as spectrum. Then M has density proportional to
    e^(-||M||_*), the density of the ball's K-norm noise at epsilon = 1. Let X be a uniform point of
    the ball. Then X / ||X||_* is distributed as M / ||M||_*. The norm ||X||_* is independent of
    X / ||X||_*, and is distributed as U^(1/D) with U uniform on [0, 1] (JL-KN).
    """
    spectra = gas_spectra(n, d, rng)
    sizes = rng.random((n, 1)) ** (2 / (d * (d + 1)))
    return np.asarray(spectra * sizes / np.abs(spectra).sum(axis=1, keepdims=True))


def difference_spectra(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Spectra (n, d) of uniform points of {tr M_+ <= 1, tr M_- <= 1}, by rejection from the gas.

    Let D = d (d + 1) / 2. Let a_i > 0 be the k positive eigenvalues and -b_j < 0 the others. The
    density has a factor a_i + b_j for each pair (i, j). In each of these factors, choose one of the
    two terms: a_i with probability a_i / (a_i + b_j). Given the choices, the density is
    homogeneous in a and in b. So sum a and sum b are independent of each other and of the
    directions of a and b. Let p be k (k + 1) / 2 plus the number of choices of an a_i, and
    q = D - p. In the gas, sum a and sum b have Gamma(p) and Gamma(q) distributions. In the body,
    they are distributed as U^(1/p) and U^(1/q) with U uniform on [0, 1]. The probability of
    (p, q) in the body is proportional to 1 / (p! q!) times the probability of (p, q) in the gas. A
    draw from the gas is therefore accepted with probability C(D, p) / C(D, D // 2). About two draws
    in three are accepted for d from 3 to 20, and more for smaller d.
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
    """Scale the entries of each sign: positive ones add up to U^(1/p), negative ones to -U^(1/q).

    Each row of `spectra` is scaled with its own number p in `degrees` (n,), and with
    q = d (d + 1) / 2 - p. Each U is uniform on [0, 1].
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
    """Rows svec(V diag(lambda) V^T) with independent Haar matrices V; O(d^3) each.

    The module `eigenvalues` defines svec. The rows of `spectra` (n, d) are the vectors lambda. V is
    the orthogonal factor of a Gaussian matrix. The signs of the columns of V cancel in the product.
    """
    n, d = spectra.shape
    points = np.empty((n, d * (d + 1) // 2))
    rows = max(1, BLOCK_ENTRIES // d**2)
    for start in range(0, n, rows):
        part = spectra[start : start + rows]
        frames = np.linalg.qr(rng.standard_normal((len(part), d, d)))[0]
        points[start : start + rows] = assemble(part, frames)
    return points


def gas_spectra(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Independent, exactly distributed states (n, d) of the log-gas, each ascending.

    A draw takes about 2 `block_sweeps(d)` sweeps, and a sweep has d heat baths. For d up to about
    30 a heat bath costs O(d), so a draw costs O(d^3 log d): 0.2 ms at d = 3, 2 ms at d = 10 and
    40 ms at d = 30. For larger d the number of panels of a heat bath grows (`CROWD` in `log_gas`).
    """
    return np.asarray(_read_once(rng, n, d, block_sweeps(d)))


def block_sweeps(d: int) -> int:
    """Number of sweeps per block before the sweep by rejection sampling, an even number.

    Draws are exact for any number of sweeps. With this number, 95 % of the blocks coalesce. After
    two sweeps all particles of the two bounding chains are finite, and the distance between the
    chains is about d. This distance must fall below the gaps between particles, of order 1. A
    change of one particle affects the whole gas after about d sweeps. In this time the distance
    falls by a constant factor.
    """
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
    """Whether a block coalesces, and the state after the block that starts from `state`.

    If the block coalesces, this state is the same for every start. If it does not, the state is
    computed only if `needed`.
    """
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
    """A draw from the envelope of the densities of particle i in all states between the bounds.

    For x above lambda_j the factor x - lambda_j is largest at lambda_j = low_j. For x below
    lambda_j the factor lambda_j - x is largest at lambda_j = high_j. So the envelope is
    proportional to the density of particle i in a state with all lower particles j at low_j and all
    higher particles j at high_j. The second result is a uniform number, the threshold of the
    acceptance test.
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
