"""Log-densities and log-probabilities of staircase, geometric and lattice box noise, by formula."""

from __future__ import annotations

import math

import numpy as np

from geomdp.noise.few_queries import GeometricNoise, LatticeBoxNoise, StaircaseNoise


def log_density(noise, points):
    """log f(z), or log P(Z = z) on a lattice, for each row z of `points` (b, m); -inf outside."""
    points = np.asarray(points, dtype=np.float64)
    match noise:
        case StaircaseNoise():
            return _staircase(noise, np.abs(points[:, 0]) / noise.width)
        case GeometricNoise():
            # (1 - q) / (1 + q) = tanh(u / (2 b)).
            at_zero = np.log(np.tanh(noise.units / (2 * noise.scale))).sum()
            found = at_zero - np.abs(points).sum(axis=1) / noise.scale
        case LatticeBoxNoise():
            found = _box(noise, np.abs(np.rint(points / noise.units)))
            still = np.array(noise.counts) == 0
            found = np.where(points[:, still].any(axis=1), -np.inf, found)
    on_lattice = (points == noise.units * np.rint(points / noise.units)).all(axis=1)
    return np.where(on_lattice, found, -np.inf)


def _staircase(noise, sizes):
    """The height at 0 is (1 - b) / (2 D (g + b (1 - g)))."""
    b, g = math.exp(-noise.epsilon), noise.share
    highest = -math.expm1(-noise.epsilon) / (2 * noise.width * (g + b * (1 - g)))
    steps = np.floor(sizes) + (sizes - np.floor(sizes) >= g)
    return math.log(highest) - noise.epsilon * steps


def _box(noise, multiples):
    """-epsilon k(z) - log of the sum over j of a_j t^j, with t = 1 / (e^epsilon - 1)."""
    log_t = -noise.epsilon - math.log(-math.expm1(-noise.epsilon))
    terms = [math.log(a) + j * log_t for j, a in enumerate(noise.coefficients) if a]
    counts = np.array(noise.counts, dtype=np.float64)
    norms = np.ceil(multiples[:, counts > 0] / counts[counts > 0]).max(axis=1)
    return -noise.epsilon * norms - np.logaddexp.reduce(terms)
