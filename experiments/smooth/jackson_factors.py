"""Factors of the Jackson operator, by integration of its kernel (SM-JK).

The library computes the factors by convolutions. This module does not use that code, so that it can
check the results.
"""

import math

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
from experiments.shared.smooth_problems import kernel_family, stacked
from experiments.smooth.kinks import half_power, signed_binomials
from experiments.smooth.smooth_releases import Config, Method, coefficients, mechanism
from geomdp.workloads.smooth import Truncation, approximate_many


def factors(order: int, size: int) -> ex.FloatArray:
    """Factors (t,) of the Chebyshev coefficients of degrees 0 to t - 1, for t = `size`.

    Let K = `order` and r = ceil((K + 3) / 2). The factor of degree n is the sum over k = 1..K+1 of
    (-1)^(k+1) C(K+1, k) rho_l for l = k n. Here rho_l is the mean of cos(l s) under the kernel
    (sin(t' s / 2) / sin(s / 2))^(2 r), with t' = floor((t - 1) / r) + 1. All integrands are cosine
    polynomials of degree below (K + 2) t, so the midpoint rule with (K + 2) t points is exact, up
    to rounding.
    """
    r, points = half_power(order), (order + 2) * size
    s = (np.arange(points) + 0.5) * 2 * math.pi / points
    terms = (size - 1) // r + 1
    kernel = (np.sin(terms * s / 2) / (terms * np.sin(s / 2))) ** (2 * r)
    kernel /= kernel.sum()
    degrees = np.arange(size)
    return np.asarray(
        sum(
            factor * np.cos(k * degrees[:, None] * s) @ kernel
            for k, factor in signed_binomials(order)
        )
    )


def off(config: Config) -> float:
    """Largest error of a coefficient for d = 1, divided by the largest coefficient.

    The correct value is the coefficient of the truncated series times the factor of the Jackson
    operator. Methods that only truncate the series have the factor 1.
    """
    K, t = config.smoothness, mechanism(config).degree
    series = stacked(approximate_many(kernel_family(1, K, config.queries), t, 1, Truncation()))
    expected = series * factors(K, t) if config.method is Method.PAPER else series
    found = stacked(coefficients(config))
    return float(np.abs(found - expected).max() / np.abs(expected).max())


#: Relative rounding error allowed in coefficients. The sum over k of binomials with changing signs,
#: whose sizes add up to nearly 2^(K+1), loses three of the 16 digits of float64 at K = 8. Sums over
#: 2 t nodes and (K + 2) t points lose two more.
ROUNDING = 1e-10


def is_the_operator(table: pd.DataFrame) -> ex.Claim:
    """The library's coefficients agree, up to rounding, with coefficients from `factors`."""
    off = float(table.operator_off.max())
    name = "Jackson operator: coefficients equal those from integrals of its kernel of power 2r"
    measured = f"{len(table)} points, off by {off:.1g} of the largest coefficient or less"
    theory = f"equal, up to a rounding error of {ROUNDING:g}"
    return ex.Claim(name, ex.at_most(off, ROUNDING), measured, theory, "SM-JK")
