"""Correctly rounded noise for sums of answers, and the public grid it is rounded to."""

from __future__ import annotations

import math

import numpy as np

from geomdp.noise.base import Noise
from geomdp.noise.exact.rounding import nearest_multiples, refined
from geomdp.noise.exact.uniforms import Entropy
from geomdp.noise.exact.vectors import noise_vector

#: The grid is at most this share of the smallest standard deviation of a coordinate: rounding then
#: adds at most (1 / 1024)^2 / 12 < 10^-7 of the variance.
SHARE = 1 / 1024


def rounded_noise(noise: Noise, grid: int, entropy: Entropy | None = None) -> list[int]:
    """One draw Z of the noise, rounded: whole numbers j with j_i 2^-grid nearest to Z_i.

    Halves are rounded up. For true sums S that are multiples of 2^-grid, S + 2^-grid j is the
    rounding of S + Z, hence post-processing of the mechanism of the proof: what is proved of it in
    real arithmetic holds of S + 2^-grid j as computed. The draw does not see S, so neither its time
    nor the bits it uses depend on records.

    Parameters
    ----------
    noise : Noise
        On sums. Its scales, and the entries of its matrices and bodies, are taken as the dyadic
        rationals that the floats are: the proof must hold for these.
    grid : int
        k; the unit of the result is 2^-k. Negative for units above 1.
    entropy : callable, optional
        Source of random bytes; by default `os.urandom`. Anything else is for tests.

    Returns
    -------
    list of int
        One number for each coordinate, of any size.

    Raises
    ------
    NoExactPath
        If the noise has no computable sampler; before any bit is drawn.
    PrecisionExhausted
        If a coordinate is still undecided at 15872 bits. There is no fallback to float64.

    References
    ----------
    Mironov 2012 (what float64 noise gives away); formula sheet X-GRID.
    """
    vector = noise_vector(noise)
    return refined(lambda draw: nearest_multiples(vector(draw), grid), entropy)


def public_grid(noise: Noise) -> int:
    """The least k >= 0 with 2^-k at most 1/1024 of the smallest standard deviation above 0.

    It depends on the noise alone, which is public. As 2^-k divides 1, sums of whole numbers lie on
    the grid.

    Raises
    ------
    ValueError
        If all standard deviations are 0.
    """
    variances = np.asarray(noise.variances())
    moving = variances[variances > 0]
    if not moving.size:
        raise ValueError(f"noise must move at least one coordinate, got {noise!r}")
    return max(0, math.ceil(-math.log2(SHARE * math.sqrt(float(moving.min())))))
