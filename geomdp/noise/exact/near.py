"""Laplace and Gaussian vectors in float64, with proved error bounds that settle most roundings.

This is a filter, as in exact geometric predicates. Each exact value is to be rounded to a
multiple of 2^-grid. Its float64 value comes with a bound on the distance between the two. If all
numbers within this distance round to the same multiple, the result is this multiple. If not,
ball arithmetic computes the result from more bits of the same uniform numbers. So the filter does
not change any result.

The values are computed by sums, products, quotients and square roots alone. IEEE 754 rounds these
correctly, so without underflow each has a relative error of at most u = 2^-53. Logarithms, sines
and cosines are computed by polynomials, because the functions of a mathematical library have no
proved error bound. The docstrings derive bounds on the errors. The code uses larger bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray
from geomdp.noise.exact.float_functions import logarithm, split_logarithm
from geomdp.noise.exact.uniforms import WORD_BITS, Undecided, UniformBits

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
    """A random vector in float64 with proved error bounds.

    Parameters
    ----------
    count : int
        Number of uniform numbers from which the vector is computed.
    evaluate : callable
        Takes the first words of the uniform numbers, of shape (count,). Returns values and bounds
        on their errors.
    """

    count: int
    evaluate: Callable[[Words], Near]

    def rounded(self, bits: UniformBits, grid: int) -> list[int]:
        """Whole numbers j, one for each coordinate, with j 2^-grid nearest to the exact coordinate.

        Raises
        ------
        Undecided
            If float64 leaves the rounding of a coordinate undecided.
        """
        with np.errstate(all="ignore"):
            values, errors = self.evaluate(bits.first_words(self.count))
            return nearest_by_floats(values, errors, grid)


def nearest_by_floats(values: FloatArray, errors: FloatArray, grid: int) -> list[int]:
    """Whole numbers j, one for each exact number, with j 2^-grid nearest to the exact number.

    The exact numbers are known only through `values`, which differ from them by at most `errors`.

    Raises
    ------
    Undecided
        If two numbers within the error of a value have different nearest multiples. Also if a value
        or an error is NaN, or if the modulus of a value is 2^51 2^-grid or more.
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
    """`scale` times the Gaussian variables of `variates.gaussians`.

    They come in pairs, (-2 ln U)^(1/2) sin(2 pi V) and (-2 ln U)^(1/2) cos(2 pi V).
    """
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

    With w = t 2^e as in `split_logarithm`, the value is (62 - e) ln 2 - ln t. If e = 62, only the
    second term is left. If e is smaller, the value is at least 0.34, and the moduli of the two
    terms are at most 2.1 and 1.1 times the value. So the relative error of the value is at most
    80 u. For the word 0 the value is infinite.
    """
    numbers = words.astype(np.float64)
    e, log = split_logarithm(numbers)
    value = (WORD_BITS - e) * math.log(2) - log
    off = SHARE_ERROR * np.abs(value) + WORD_ERROR + CUT / numbers
    return np.where(numbers > 0, value, np.inf), off


def near_log(numbers: FloatArray) -> FloatArray:
    """ln x for x from 2^-62 to 2^62, to within 2^-45; -inf for x = 0.

    The bound holds even if x itself has a relative error of u. With x = t 2^e as in
    `split_logarithm`, ln x = e ln 2 + ln t. Both e ln 2 and ln x are at most 43 in modulus. There
    are four errors of at most 43 u, and the total error is below 2^-45.
    """
    return np.asarray(np.where(numbers > 0, logarithm(numbers), -np.inf))


def near_turn(words: Words) -> tuple[FloatArray, FloatArray]:
    """sin and cos of 2 pi V to within 2^-48, for any V in [w, w + 1] 2^-62 with w in `words`.

    The first three bits of V give the octant of the angle 2 pi V. The other bits give the angle x
    from 0 to pi / 4 within the octant, to within 3 u. In odd octants x is measured from the end.
    The series of sin x and cos x are cut after x^17 and x^18; the remainders are below 2^-63.
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
