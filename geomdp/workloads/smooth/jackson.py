"""A Jackson-type approximation operator, given by its factors for Chebyshev coefficients."""

from __future__ import annotations

import math

import numpy as np
import scipy.special

from geomdp._typing import FloatArray
from geomdp._validation import whole

#: Largest order K. In `jackson_multiplier`, cancellation loses up to K + 1 of 53 binary digits.
MAX_SMOOTHNESS = 30


def jackson_multiplier(smoothness: int, size: int) -> FloatArray:
    """Factors (t,) by which the operator multiplies the Chebyshev coefficients 0..t-1.

    `smoothness` is the order K of the operator, from 1 to 30, and `size` is t; ``ValueError`` for
    others. In each variable, the operator replaces a function g of the angle a by I(g)(a) = int
    H(s) sum_{k=1}^{K+1} (-1)^(k+1) C(K+1, k) g(a + k s) ds. H is the kernel of
    `kernel_coefficients`, with cosine moments rho_l. So the operator multiplies cos(n a) by
    lambda_n = sum_k (-1)^(k+1) C(K+1, k) rho_{k n}. Here lambda_0 = 1 and |lambda_n| <= 2^K.

    References
    ----------
    Wang, Fan, Zhang and Wang 2013, Theorem 3.2; formula sheet SM-JK, DISC-16, DISC-18.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> np.round(gd.workloads.smooth.jackson_multiplier(2, 5), 4)
    array([1.  , 1.4 , 0.9 , 0.15, 0.  ])
    """
    rho = kernel_coefficients(smoothness, size)
    padded = np.concatenate([rho, np.zeros((smoothness + 1) * size)])
    degrees = np.arange(size)
    multiplier = np.zeros(size)
    for k in range(1, smoothness + 2):
        multiplier -= (-1) ** k * math.comb(smoothness + 1, k) * padded[k * degrees]
    multiplier[0] = 1.0  # the exact sum of the signed binomials
    return multiplier


def kernel_coefficients(smoothness: int, size: int) -> FloatArray:
    """Cosine moments rho_l = int H(s) cos(l s) ds of the kernel H for l = 0..t-1, all in [0, 1].

    H(s) = (sin(t' s / 2) / sin(s / 2))^(2 r) / gamma on [-pi, pi] has integral 1, with r, t' from
    `kernel_orders`. Its coefficients are proportional to those of (1 + z + ... + z^(t'-1))^(2 r).
    """
    half_power, terms = kernel_orders(smoothness, size)
    # These coefficients are proportional to the probabilities of a sum of 2 r independent
    # variables, each uniform on 0..t'-1. A convolution of probabilities has no overflow and no
    # cancellation.
    uniform = np.full(terms, 1.0 / terms)
    law = np.ones(1)
    for _ in range(2 * half_power):
        law = np.convolve(law, uniform)
    centre = half_power * (terms - 1)
    rho = np.zeros(size)
    rho[: centre + 1] = law[centre:] / law[centre]
    return rho


def kernel_orders(smoothness: int, size: int) -> tuple[int, int]:
    """The pair r = ceil((K + 3) / 2) and t' = floor((t - 1) / r) + 1."""
    smoothness = whole(smoothness, "smoothness", maximum=MAX_SMOOTHNESS)
    size = whole(size, "size")
    half_power = (smoothness + 4) // 2
    return half_power, (size - 1) // half_power + 1


def kernel_moment(smoothness: int, size: int) -> float:
    """The moment mu_K = int H(s) |s|^K ds, in radians^K, by exact quadrature in O(t)."""
    half_power, terms = kernel_orders(smoothness, size)
    # Use one panel for each half period of the numerator. With 2 r + 32 nodes per panel, the
    # quadrature is exact up to rounding.
    nodes, weights = scipy.special.roots_legendre(2 * half_power + 32)
    panel = math.pi / terms
    angles = panel * (np.arange(terms)[:, None] + (nodes + 1) / 2)
    kernel = (np.sin(terms * angles / 2) / (terms * np.sin(angles / 2))) ** (2 * half_power)
    return float((kernel * angles**smoothness @ weights).sum() / (kernel @ weights).sum())
