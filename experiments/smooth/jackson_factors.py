"""Factors of the Jackson operator, by integration of its kernel (SM-JK).

The library gets them from convolutions. Here nothing comes from the code that is measured.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from experiments.smooth.kinks import half_power, signed_binomials


def factors(order: int, size: int) -> npt.NDArray[np.float64]:
    """Factors (t,) of the Chebyshev coefficients of degrees 0 to t - 1, for t = `size`.

    lambda_n is the sum over k of (-1)^(k+1) C(K+1, k) rho_kn, and rho_l is the mean of cos(l s)
    under the kernel (sin(t' s / 2) / sin(s / 2))^(2 r), with t' = floor((t - 1) / r) + 1. All
    integrands are cosine polynomials of degree below (K + 2) t, so the midpoint rule with as many
    points is exact, up to rounding.
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
