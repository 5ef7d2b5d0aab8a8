"""Upper bounds on E ||Z||_inf, the expected largest |Z_i| of a noise vector Z."""

from __future__ import annotations

import math

import numpy as np

from geomdp._typing import FloatArray
from geomdp.noise.base import Noise
from geomdp.noise.cone import ConeNoise
from geomdp.noise.few_queries.geometric import GeometricNoise
from geomdp.noise.gaussian import GaussianNoise
from geomdp.noise.knorm import KNormNoise
from geomdp.noise.laplace import LaplaceNoise
from geomdp.noise.mapped import MappedNoise
from geomdp.noise.paired import PairedNoise
from geomdp.noise.recursive import RecursiveNoise
from geomdp.noise.residual import ResidualNoise

#: Classes of noise with symmetric log-concave densities.
LOG_CONCAVE = (
    LaplaceNoise,
    GaussianNoise,
    ResidualNoise,
    KNormNoise,
    ConeNoise,
    PairedNoise,
    RecursiveNoise,
)
#: Number of steps of the upper sum in `log_concave_maximum`. The sum exceeds the integral by a
#: few tenths of a percent.
STEPS = 1 << 12
#: The upper sum ends where the exponent c of `log_concave_maximum` is ln m plus this number. There
#: the union bound is at most e^-40. The integral beyond this point is bounded separately.
REACH = 40.0
#: Standard deviations are rounded up to this number of significant digits. Few distinct values
#: remain, and each is treated once.
DIGITS = 4


def expected_maximum(noise: Noise) -> float:
    """A proved upper bound on E max over i of |Z_i|, for symmetric noise Z on sums of answers.

    The result is the least of these bounds, or infinity (Prekopa 1973; formula sheet GEN-3, JL-KN):

    * Laplace noise of scale b: b (1 + 1/2 + ... + 1/m), which is exact.
    * Geometric noise: b (1 + 1/2 + ... + 1/m) + max u_i, because Z_i / u_i is distributed as
      floor(x) - floor(y), below |x - y| + 1, for a Laplace x - y; or the sum of the E |Z_i|.
    * K-norm noise: (r / epsilon) max over i of h_K(e_i), because E ||Z||_K = r / epsilon.
    * `LOG_CONCAVE` classes and their linear images: `log_concave_maximum`, a union bound.
    * All noise: (E ||Z||_2^2)^(1/2). This and the union bound need exact second moments.
    """
    if isinstance(noise, LaplaceNoise):
        return noise.scale * _harmonic(noise.dimension)
    bounds = [math.inf]
    if isinstance(noise, GeometricNoise):
        bounds.append(noise.scale * _harmonic(noise.dimension) + float(noise.units.max()))
        bounds.append(float(noise.mean_sizes().sum()))
    moment = noise.second_moment()
    if moment.samples == 0:
        bounds.append(math.sqrt(moment.value))
        if is_log_concave(noise):
            deviations = np.sqrt(np.maximum(noise.variances(), 0.0))
            bounds.append(log_concave_maximum(deviations))
    if isinstance(noise, KNormNoise):
        reach = float(noise.body.support(np.eye(noise.dimension)).max())
        bounds.append(noise.effective_dimension / noise.epsilon * reach)
    return min(bounds)


def _harmonic(count: int) -> float:
    """1 + 1/2 + ... + 1/m, the expected maximum of m exponential variables of mean 1."""
    return float((1 / np.arange(1, count + 1)).sum())


def is_log_concave(noise: Noise) -> bool:
    """Whether the density is known to be symmetric and log-concave."""
    if isinstance(noise, MappedNoise):
        return all(is_log_concave(part.noise) for part in noise.parts)
    return isinstance(noise, LOG_CONCAVE)


def log_concave_maximum(deviations: FloatArray) -> float:
    """Upper bound on E max over i of |X_i| for symmetric log-concave X_i of `deviations` (m,).

    G(t) = P(|X| > t) is log-concave with G(0) = 1. So G(t) = e^-c implies G(u) >= e^(-c u / t) for
    u <= t, hence E X^2 >= 2 (t / c)^2 (1 - (1 + c) e^-c), and P(|X| > s(c) sigma) <= e^-c with
    s(c) = c / (2 (1 - (1 + c) e^-c))^(1/2). With the sum S(t) of these bounds over i, the result
    bounds the integral of min{1, S(t)} by an upper sum up to the last c. The tail of X_i is at most
    the integral of e^(-c t / (s(c) sigma_i)), because c / s(c) increases.
    """
    largest = float(deviations.max(initial=0.0))
    if largest == 0:
        return 0.0
    shares, counts = np.unique(
        _rounded_up(deviations[deviations > 0] / largest), return_counts=True
    )
    last = math.log(counts.sum()) + REACH
    exponents = np.linspace(0.0, last, STEPS + 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        limits = exponents / np.sqrt(2 * (1 - (1 + exponents) * np.exp(-exponents)))
    limits[0] = 1.0  # s(c) tends to 1 as c tends to 0
    heights = np.linspace(0.0, limits[-1], STEPS + 1)
    tails = np.zeros(STEPS + 1)
    for share, count in zip(shares, counts, strict=True):
        # `limits` holds s(c). Take the largest c with s(c) at or below t / sigma. This c is too
        # small, if anything, so e^-c remains an upper bound.
        place = np.searchsorted(limits, heights / share, side="right") - 1
        tails += count * np.exp(-exponents[np.maximum(place, 0)])
    body = np.minimum(tails[:-1], 1.0).sum() * heights[1]
    beyond = (shares * counts).sum() * limits[-1] / last * math.exp(-last)
    return largest * float(body + beyond)


def _rounded_up(values: FloatArray) -> FloatArray:
    places = 10.0 ** (np.floor(np.log10(values)) - DIGITS + 1)
    return np.asarray(np.ceil(values / places) * places)
