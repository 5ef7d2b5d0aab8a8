"""Laplace and Gaussian vectors in float64 with proved errors: they decide most roundings.

A filter, as in exact geometric predicates. Each value comes with a bound on its distance from the
exact one. If a rounding could differ within that bound, balls decide it with more bits of the same
numbers, so the result is the same as without the filter.

The bounds rest on sums, products, quotients and square roots alone, which IEEE 754 rounds
correctly: each has a relative error of at most u = 2^-53. Logarithms, sines and cosines are
polynomials written out here, since those of a mathematical library come without a proved error.
Bounds are stated with a margin of 2 to 8 over the errors that are counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray
from geomdp.noise.exact.uniforms import WORD_BITS, Undecided, UniformBits

#: The first words of uniform numbers: whole numbers below 2^62.
Words = npt.NDArray[np.uint64]
#: Values (m,), and bounds on their errors (m,), which may be infinite.
Near = tuple[FloatArray, FloatArray]

#: Bound on the error of `near_log`, and on that of `near_turn`.
LOG_ERROR, TURN_ERROR = 2.0**-45, 2.0**-48
#: Error of `minus_log`: a share of its value, and what the rounding of the word to a float adds.
SHARE_ERROR, WORD_ERROR = 2.0**-46, 2.0**-52
#: A number u of which the first word w is known lies in [w, w + 1] 2^-62, so that -ln u is below
#: 62 ln 2 - ln w by at most 1 / w. The float nearest to w is off by a relative u, which is within
#: this share of 1 / w.
CUT = 1.01
#: Whole numbers below this are floats, and so are their halves.
LARGEST = 2.0**51


@dataclass(frozen=True)
class NearVector:
    """A random vector in float64 with proved errors.

    Parameters
    ----------
    count : int
        Uniform numbers that it is made of.
    evaluate : callable
        Their first words (count,) -> values (m,) and bounds on the errors (m,).
    """

    count: int
    evaluate: Callable[[Words], Near]

    def rounded(self, bits: UniformBits, grid: int) -> list[int]:
        """As `nearest_multiples` of the exact vector.

        Raises
        ------
        Undecided
            If float64 does not decide the rounding of all coordinates.
        """
        with np.errstate(all="ignore"):
            values, errors = self.evaluate(bits.first_words(self.count))
            return nearest_by_floats(values, errors, grid)


def nearest_by_floats(values: FloatArray, errors: FloatArray, grid: int) -> list[int]:
    """The whole numbers j with j 2^-grid nearest to numbers known up to `errors`.

    Raises
    ------
    Undecided
        If a number within the error of a value, or beyond 2^51 units, has another one.
    """
    # A product with a power of two is exact, or infinite, or 0 with an error below 2^-1000.
    scaled = np.ldexp(values, grid)
    whole = np.floor(scaled + 0.5)
    # |scaled - whole| is at most 1/2 and exact, because both are multiples of the last place of
    # `scaled`. The sum above can round up to a whole number that is too large; the distance is then
    # 1/2 up to a rounding, and the coordinate is undecided.
    room = 0.5 - np.abs(scaled - whole)
    decided = (room > np.ldexp(errors, grid) * (1 + 2.0**-50) + 2.0**-60) & (
        np.abs(whole) < LARGEST
    )
    # NaN is not decided.
    if not decided.all():
        raise Undecided
    return [int(j) for j in whole.astype(np.int64).tolist()]


def near_laplaces(count: int, scale: float) -> NearVector:
    """`scale` times the variables of `variates.laplaces`: ln(U / V)."""

    def evaluate(words: Words) -> Near:
        logs, off = minus_log(words)
        values = scale * (logs[count:] - logs[:count])
        return values, scale * (off[:count] + off[count:]) * (1 + 2.0**-40) + 4 * _unit(values)

    return NearVector(2 * count, evaluate)


def near_gaussians(count: int, scale: float) -> NearVector:
    """`scale` times the variables of `variates.gaussians`, (-2 ln U)^(1/2) (sin, cos)(2 pi V)."""
    pairs = (count + 1) // 2

    def evaluate(words: Words) -> Near:
        square, off = minus_log(words[:pairs])
        length = np.sqrt(2 * square)
        # |a^(1/2) - b^(1/2)| <= |a - b| / b^(1/2); infinite for b = 0.
        wrong = 2 * off / length * (1 + 2.0**-40) + 4 * _unit(length)
        sine, cosine = near_turn(words[pairs:])
        values = scale * np.column_stack([length * sine, length * cosine]).ravel()
        errors = scale * np.repeat(wrong + (length + wrong) * 2 * TURN_ERROR, 2)
        return values[:count], errors[:count] + 4 * _unit(values[:count])

    return NearVector(2 * pairs, evaluate)


def _unit(values: FloatArray) -> FloatArray:
    """A bound on the rounding of results of these sizes, down to the smallest floats."""
    return np.asarray(2.0**-53 * np.abs(values) + 2.0**-1000)


def minus_log(words: Words) -> Near:
    """-ln u of uniform numbers u from their first words, and how far it may be off.

    With w = 2^e t as in `_split`, it is (62 - e) ln 2 - ln t. Either e = 62 and only the second
    term is left, or the sum is at least 0.34 and the terms at most 2.1 and 1.1 times as large. So
    it is off by at most 50 u of its value. Infinite for the word 0.
    """
    numbers = words.astype(np.float64)
    e, log = _split(numbers)
    value = (WORD_BITS - e) * math.log(2) - log
    off = SHARE_ERROR * np.abs(value) + WORD_ERROR + CUT / numbers
    return np.where(numbers > 0, value, np.inf), off


def near_log(numbers: FloatArray) -> FloatArray:
    """ln x of x from 2^-62 to 2^62 to within 2^-45, a relative error u of x included.

    With x = 2^e t as in `_split`, e ln 2, at most 43, and the sum bring 4 roundings of 43 u: in all
    below 2^-45. -inf for x = 0.
    """
    e, log = _split(numbers)
    return np.asarray(np.where(numbers > 0, e * math.log(2) + log, -np.inf))


def _split(numbers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The e and ln t of x = 2^e t with t in [2^-1/2, 2^1/2].

    With s = (t - 1) / (t + 1), |s| < 0.172 and ln t = 2 (s + s^3/3 + s^5/5 + ...), at most 0.35.
    What follows s^23 adds less than 2^-66 of it, and all roundings less than 40 u of it.
    """
    fraction, exponent = np.frexp(numbers)
    low = fraction < math.sqrt(0.5)
    t = np.where(low, 2 * fraction, fraction)
    s = (t - 1) / (t + 1)
    square = s * s
    series = np.full_like(s, 1 / 23)
    for odd in range(21, 0, -2):
        series = series * square + 1 / odd
    return np.asarray(exponent - low, dtype=np.float64), 2 * s * series


def near_turn(words: Words) -> tuple[FloatArray, FloatArray]:
    """sin and cos of 2 pi v to within 2^-48, for any v in [w, w + 1] 2^-62.

    The first three bits of v name an octant. The rest is an angle x in it, from 0 to pi / 4, to
    within 3 u, with odd octants counted from their end. What follows x^17 and x^18 in the series
    adds less than 2^-63. Each of the at most 10 steps of Horner's rule is off by 2 u.
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
    # The angle is a quarter turn, q times, plus or minus x.
    a, b = np.where(odd, -x * sine, x * sine), cosine
    quarter = (octant + 1) // 2 % 4
    swapped = (quarter & 1).astype(bool)
    first = np.where(swapped, b, a)
    second = np.where(swapped, -a, b)
    sign = np.where(quarter >= 2, -1.0, 1.0)
    return first * sign, second * sign
