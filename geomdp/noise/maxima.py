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
    """A proved upper bound on E max over i of |Z_i|, for noise Z on sums of answers.

    `noise` is symmetric on R^m. The result is the least of these bounds, or infinity if none
    applies:

    * For Laplace noise of scale b: b (1 + 1/2 + ... + 1/m). This is the exact value, because the
      |Z_i| / b are independent exponential variables.
    * For geometric noise of scale b, where each Z_i is a multiple of a unit u_i:
      b (1 + 1/2 + ... + 1/m) + max over i of u_i. The reason is that Z_i / u_i is distributed as
      floor(x) - floor(y), where x - y is a Laplace variable of scale b / u_i, and
      |floor(x) - floor(y)| < |x - y| + 1.
    * For geometric noise: the sum of the E |Z_i|, which is exact for m = 1.
    * For K-norm noise: (r / epsilon) max over i of h_K(e_i), because E ||Z||_K = r / epsilon
      (JL-KN). h_K is the support function of K, and r is the dimension of K.
    * For the classes in `LOG_CONCAVE` and their linear images: `log_concave_maximum`, a union bound
      over the coordinates. Linear images and sums of independent log-concave vectors are
      log-concave (Prekopa).
    * For all noise: (E ||Z||_2^2)^(1/2).

    The last two bounds need second moments in closed form. They are skipped if the second moments
    are estimated. Cost: the variances (m,), and for K-norm noise m support values. Prekopa 1973;
    formula sheet GEN-3, JL-KN.
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
    """1 + 1/2 + ... + 1/m for m = `count`.

    This is the expected maximum of m independent exponential variables of mean 1.
    """
    return float((1 / np.arange(1, count + 1)).sum())


def is_log_concave(noise: Noise) -> bool:
    """Whether the density is known to be symmetric and log-concave."""
    if isinstance(noise, MappedNoise):
        return all(is_log_concave(part.noise) for part in noise.parts)
    return isinstance(noise, LOG_CONCAVE)


def log_concave_maximum(deviations: FloatArray) -> float:
    """Upper bound on E max over i of |X_i| for symmetric log-concave X_i.

    For one X = X_i with standard deviation sigma, G(t) = P(|X| > t) is log-concave with G(0) = 1.
    If G(t) = e^-c, then G(u) >= e^(-c u / t) for u <= t, and
    E X^2 = 2 integral of u G(u) du >= 2 (t / c)^2 (1 - (1 + c) e^-c). So

        P(|X| > s(c) sigma) <= e^-c,    s(c) = c / (2 (1 - (1 + c) e^-c))^(1/2).

    Each P(|X_i| > t) has such a bound. Let S(t) be the sum of these bounds over i. Then
    E max over i of |X_i| is at most the integral of min{1, S(t)} over t. The X_i need not be
    independent.

    `deviations` are the standard deviations sigma_i >= 0, (m,). The result is an upper bound on
    this integral: an upper sum over steps up to the last exponent c, plus a bound on the tail. For
    each X_i, the tail is at most the integral of e^(-c t / (s(c) sigma_i)) over t >= s(c) sigma_i,
    because c / s(c) increases.
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
    """Positive `values` rounded up to `DIGITS` significant digits."""
    places = 10.0 ** (np.floor(np.log10(values)) - DIGITS + 1)
    return np.asarray(np.ceil(values / places) * places)
