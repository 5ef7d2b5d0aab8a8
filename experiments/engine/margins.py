"""How close a measurement is to the limit of a claim: the numbers of `Claim.used`.

Each function returns 0 far from the limit, 1 at the limit and more than 1 beyond it, where the
claim fails. A claim about several points states the largest of their numbers. The result is
`BEYOND` for a measurement that is not a number or is infinitely far off, so that a claim that fails
badly can still be stored and shown.
"""

from __future__ import annotations

import enum
import math

import numpy as np
import numpy.typing as npt

#: Stands for everything far beyond the limit. The bar in the report is full from 1 on.
BEYOND = 1000.0


class NoLimit(enum.StrEnum):
    """Why no distance from a limit can be stated for a claim."""

    ORDER = "the claim is an order and asks for no least difference"
    EVERY_CASE = "each case holds or fails, with nothing in between"
    EQUAL_NAMES = "the claim compares names, not numbers"


def share(measured: npt.ArrayLike, limit: npt.ArrayLike) -> float:
    """For claims that nothing in `measured` exceeds `limit`, which is above 0."""
    return _largest(np.asarray(measured, dtype=float) / np.asarray(limit, dtype=float))


def inverse_share(measured: npt.ArrayLike, least: npt.ArrayLike) -> float:
    """For claims that everything in `measured` is at least `least`, which is above 0."""
    values = np.asarray(measured, dtype=float)
    with np.errstate(divide="ignore"):
        return _largest(np.where(values > 0, np.asarray(least, dtype=float) / values, np.inf))


def offset(measured: npt.ArrayLike, expected: npt.ArrayLike, tolerance: npt.ArrayLike) -> float:
    """For claims that each measurement is within `tolerance`, above 0, of its `expected` value."""
    off = np.abs(np.asarray(measured, dtype=float) - np.asarray(expected, dtype=float))
    return _largest(off / np.asarray(tolerance, dtype=float))


def position(measured: npt.ArrayLike, low: float, high: float) -> float:
    """For claims that each measurement lies in [low, high]: 0 in the middle, 1 at both ends."""
    return offset(measured, (low + high) / 2, (high - low) / 2)


def within_allowance(measured: npt.ArrayLike, allowed: npt.ArrayLike) -> float:
    """For claims that nothing in `measured` exceeds `allowed`, which may be 0.

    Where the allowance is 0, a measurement above 0 is beyond the limit, and any other gives 0.
    """
    values, limits = np.asarray(measured, dtype=float), np.asarray(allowed, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        # A comparison with NaN is false, so NaN is beyond the limit.
        shares = np.where(limits > 0, values / limits, np.where(values <= limits, 0.0, np.inf))
    return _largest(shares)


def rarity(p_values: npt.ArrayLike, level: float) -> float:
    """For claims that no p-value is below `level`, on the scale of logarithms."""
    with np.errstate(divide="ignore"):
        return _largest(np.log(np.asarray(p_values, dtype=float)) / math.log(level))


def _largest(used: npt.NDArray[np.float64]) -> float:
    if used.size == 0:
        raise ValueError("a margin needs at least 1 measurement, got 0")
    if np.isnan(used).any():
        return BEYOND
    return max(0.0, min(float(used.max()), BEYOND))
