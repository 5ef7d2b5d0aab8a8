"""Logarithm, sine and cosine by IEEE operations alone, with proved error bounds; u = 2^-53."""

from __future__ import annotations

import math

import numpy as np

from geomdp._typing import FloatArray

#: Bound on the relative error of `logarithm` and on the absolute error of `sine_cosine`.
FUNCTION_ERROR = 2.0**-46

_LOG_TERMS, _TURN_TERMS = 12, 11


def logarithm(values: FloatArray) -> FloatArray:
    """ln x for a normal float x > 0, with a relative error of at most 2^-46.

    If e = 0 in ln x = e ln 2 + ln m, the result is ln m. Else |ln x| >= ln(2) / 2, both summands
    are at most 3 |ln x| in modulus, and rounding adds at most 10 u.
    """
    exponent, rest = split_logarithm(values)
    return np.asarray(exponent * math.log(2) + rest)


def split_logarithm(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(e, ln m) for a normal float x = m 2^e > 0 with a whole number e and 1/2 <= m^2 < 2.

    With s = (m - 1) / (m + 1), |s| < 0.172 and ln m = 2 s (1 + s^2/3 + s^4/5 + ...), at most 0.35
    in modulus. After twelve terms the rest is below 2^-60 of the sum. Relative errors are at most 3
    u for s and 50 u for the sum by Horner's rule, because all terms are positive.
    """
    mantissa, exponent = np.frexp(values)
    small = mantissa < math.sqrt(0.5)
    mantissa = np.where(small, 2 * mantissa, mantissa)
    ratio = (mantissa - 1) / (mantissa + 1)
    square = ratio * ratio
    series = np.full_like(ratio, 1 / (2 * _LOG_TERMS - 1))
    for k in range(_LOG_TERMS - 2, -1, -1):
        series *= square
        series += 1 / (2 * k + 1)
    return np.asarray(exponent - small, dtype=np.float64), 2 * ratio * series


def sine_cosine(turns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """sin(2 pi v) and cos(2 pi v) for v in [0, 1], each with an absolute error of at most 2^-46.

    v = k / 4 + r with exact |r| <= 1/8, and t = 2 pi r has a relative error of at most 2 u. The
    Taylor series are cut after degrees 21 and 20, with a rest below 2^-70. Horner's rule adds at
    most 80 u.
    """
    quarter = np.rint(4 * turns)
    angle = 2 * math.pi * (turns - quarter / 4)
    square = angle * angle
    sine, cosine = np.ones_like(angle), np.ones_like(angle)
    for k in range(_TURN_TERMS - 1, 0, -1):
        sine *= -square / (2 * k * (2 * k + 1))
        sine += 1
        cosine *= -square / (2 * k * (2 * k - 1))
        cosine += 1
    sine *= angle
    odd = quarter % 2 == 1
    first, second = np.where(odd, cosine, sine), np.where(odd, sine, cosine)
    # sin changes its sign if k is 2 or 3 modulo 4, cos if k is 1 or 2 modulo 4.
    negative = quarter % 4
    return (
        np.where(negative >= 2, -first, first),
        np.where((negative == 1) | (negative == 2), -second, second),
    )
