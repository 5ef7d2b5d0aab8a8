"""Laplace and Gaussian vectors in float64, with proved error bounds that settle most roundings.

If all numbers within the error of a float64 value round to the same multiple of 2^-grid, this is
the result. If not, ball arithmetic decides from more bits of the same uniform numbers. So this
filter, as in exact geometric predicates, changes no result. Sums, products, quotients and roots
have a relative error of at most u = 2^-53 (IEEE 754, no underflow). The docstrings derive bounds on
the errors, and the code uses larger ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray
from geomdp.noise.exact.variates import WORD_BITS, Undecided, UniformBits

# Logarithm, sine and cosine by IEEE operations alone, with proved error bounds; u = 2^-53

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


# Laplace and Gaussian vectors

#: The first words of uniform numbers: their first 62 bits as whole numbers below 2^62.
Words = npt.NDArray[np.uint64]
#: Values and bounds on their errors, both of shape (m,). A bound may be infinite or NaN.
Near = tuple[FloatArray, FloatArray]

#: Bounds on the errors of `near_log` and of `near_turn`.
LOG_ERROR, TURN_ERROR = 2.0**-45, 2.0**-48
#: Bounds on two errors of `minus_log`: a relative error, and an absolute error that comes from
#: rounding a word to a float.
SHARE_ERROR, WORD_ERROR = 2.0**-46, 2.0**-52
#: A uniform number U with the first word w lies in [w, w + 1] 2^-62. So -ln U is smaller than
#: 62 ln 2 - ln w by at most 1 / w. The code divides by the float nearest to w instead of w; the
#: factor 1.01 covers this.
CUT = 1.01
#: Below this number, all multiples of 1/2 are exact in float64.
LARGEST = 2.0**51


@dataclass(frozen=True)
class NearVector:
    """A random vector with error bounds: `evaluate` takes the first words of `count` uniforms."""

    count: int
    evaluate: Callable[[Words], Near]

    def rounded(self, bits: UniformBits, grid: int) -> list[int]:
        """Whole numbers j with j 2^-grid nearest to the exact coordinates, or `Undecided`."""
        with np.errstate(all="ignore"):
            values, errors = self.evaluate(bits.first_words(self.count))
            return nearest_by_floats(values, errors, grid)


def nearest_by_floats(values: FloatArray, errors: FloatArray, grid: int) -> list[int]:
    """Whole numbers j with j 2^-grid nearest to each exact number within `errors` of `values`.

    `Undecided` if numbers within an error have different multiples, for a NaN, and from 2^51
    2^-grid.
    """
    # Scaling by a power of two is exact, with two exceptions: overflow to infinity, and underflow
    # with an error below 2^-1000.
    scaled = np.ldexp(values, grid)
    whole = np.floor(scaled + 0.5)
    # |scaled - whole| is computed exactly, because `scaled` and `whole` are multiples of the unit
    # in the last place of `scaled`. Below `LARGEST`, this distance is at most 1/2, with one
    # exception: the sum scaled + 0.5 can round up to a whole number that is too large. Then the
    # distance is 1/2 up to rounding, and the coordinate is undecided.
    room = 0.5 - np.abs(scaled - whole)
    decided = (room > np.ldexp(errors, grid) * (1 + 2.0**-50) + 2.0**-60) & (
        np.abs(whole) < LARGEST
    )
    # Comparisons with NaN are False, so NaN is not decided.
    if not decided.all():
        raise Undecided
    return [int(j) for j in whole.astype(np.int64).tolist()]


def near_laplaces(count: int, scale: float) -> NearVector:
    """`scale` times the Laplace variables ln(U / V) of `variates.laplaces`."""

    def evaluate(words: Words) -> Near:
        logs, off = minus_log(words)
        values = scale * (logs[count:] - logs[:count])
        return values, scale * (off[:count] + off[count:]) * (1 + 2.0**-40) + 4 * rounding_error(
            values
        )

    return NearVector(2 * count, evaluate)


def near_gaussians(count: int, scale: float) -> NearVector:
    pairs = (count + 1) // 2

    def evaluate(words: Words) -> Near:
        square, off = minus_log(words[:pairs])
        length = np.sqrt(2 * square)
        # |a^(1/2) - b^(1/2)| <= |a - b| / b^(1/2). For b = 0 this bound is infinite.
        wrong = 2 * off / length * (1 + 2.0**-40) + 4 * rounding_error(length)
        sine, cosine = near_turn(words[pairs:])
        values = scale * np.column_stack([length * sine, length * cosine]).ravel()
        errors = scale * np.repeat(wrong + (length + wrong) * 2 * TURN_ERROR, 2)
        return values[:count], errors[:count] + 4 * rounding_error(values[:count])

    return NearVector(2 * pairs, evaluate)


def rounding_error(values: FloatArray) -> FloatArray:
    """A bound on the rounding error of one operation with results `values`, including underflow."""
    return np.asarray(2.0**-53 * np.abs(values) + 2.0**-1000)


def minus_log(words: Words) -> Near:
    """-ln U for uniform numbers U with first words `words`, and bounds on the errors.

    In (62 - e) ln 2 - ln t for w = t 2^e with e < 62, the terms are at most 2.1 and 1.1 times the
    value, so its relative error is at most 80 u. Word 0 gives infinity.
    """
    numbers = words.astype(np.float64)
    e, log = split_logarithm(numbers)
    value = (WORD_BITS - e) * math.log(2) - log
    off = SHARE_ERROR * np.abs(value) + WORD_ERROR + CUT / numbers
    return np.where(numbers > 0, value, np.inf), off


def near_log(numbers: FloatArray) -> FloatArray:
    """ln x for x from 2^-62 to 2^62, to within 2^-45; -inf for x = 0.

    It holds even if x has a relative error of u: in e ln 2 + ln t, there are four errors of at most
    43 u, because e ln 2 and ln x are at most 43 in modulus.
    """
    return np.asarray(np.where(numbers > 0, logarithm(numbers), -np.inf))


def near_turn(words: Words) -> tuple[FloatArray, FloatArray]:
    """sin and cos of 2 pi V to within 2^-48, for any V in [w, w + 1] 2^-62 with w in `words`.

    The first three bits give the octant, and the others the angle x in it to within 3 u (from its
    end in odd octants). The series are cut after x^17 and x^18, with remainders below 2^-63.
    Horner's rule takes at most 10 steps with an error of at most 2 u each.
    """
    octant = (words >> np.uint64(WORD_BITS - 3)).astype(np.int64)
    rest = np.uint64((1 << (WORD_BITS - 3)) - 1)
    share = np.ldexp((words & rest).astype(np.float64), 3 - WORD_BITS)
    odd = (octant & 1).astype(bool)
    x = math.pi / 4 * np.where(odd, 1 - share, share)
    square = x * x
    sine, cosine = np.ones_like(x), np.ones_like(x)
    for k in range(16, 0, -2):
        sine = 1 - sine * square / (k * (k + 1))
    for k in range(17, 0, -2):
        cosine = 1 - cosine * square / (k * (k + 1))
    # The angle is `quarter` quarter turns plus x, or minus x in odd octants.
    a, b = np.where(odd, -x * sine, x * sine), cosine
    quarter = (octant + 1) // 2 % 4
    swapped = (quarter & 1).astype(bool)
    first = np.where(swapped, b, a)
    second = np.where(swapped, -a, b)
    sign = np.where(quarter >= 2, -1.0, 1.0)
    return first * sign, second * sign
