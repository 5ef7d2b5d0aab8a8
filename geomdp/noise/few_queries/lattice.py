"""Log-density ratios of noise on a lattice, for shifts inside and outside the lattice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from geomdp._typing import BoolArray, FloatArray

#: Rounding in float64 may move entries of points and shifts off the lattice. An entry counts as a
#: multiple of its unit if its distance from a multiple is at most this share of the sum of the
#: moduli of the numbers from which the entry was computed.
ROUNDING = 1e-13


def near_multiples(values: FloatArray, units: FloatArray, sizes: FloatArray) -> BoolArray:
    """Whether `values` (b, m), from numbers of total modulus `sizes` (b, m), are near multiples."""
    return np.asarray(np.abs(values - units * np.rint(values / units)) <= ROUNDING * sizes)


def ratio_or_infinite(
    ratio: FloatArray,
    inside: Callable[[FloatArray, FloatArray], BoolArray],
    points: FloatArray,
    shifts: FloatArray,
) -> FloatArray:
    """log P(Z = z) - log P(Z = z - s), (b,), for rows of `points` and `shifts`, both (b, m).

    It is `ratio` for s in the lattice; else inf if z is in the lattice, -inf if z - s is, and nan
    if neither is. `inside` takes values and the sums of the moduli of their terms.
    """
    sizes = np.abs(points) + np.abs(shifts)
    cases = [inside(shifts, np.abs(shifts)), inside(points, sizes), inside(points - shifts, sizes)]
    infinite = np.full(len(ratio), np.inf)
    return np.select(cases, [ratio, infinite, -infinite], np.nan)
