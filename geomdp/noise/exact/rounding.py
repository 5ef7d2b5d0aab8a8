"""Correct rounding to a public grid, and scales of noise that are proved to give a guarantee.

Bits are drawn until the nearest grid points are certain. Floats are taken as exact numbers.

Most roundings of Laplace and Gaussian vectors are settled in float64, with proved error bounds. If
all numbers within the error of a float64 value round to the same multiple of 2^-grid, this is the
result. If not, ball arithmetic decides from more bits of the same uniform numbers. So this filter,
as in exact geometric predicates, changes no result. Sums, products, quotients and roots have a
relative error of at most u = 2^-53 (IEEE 754, no underflow). The docstrings derive bounds on the
errors, and the code uses larger ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from geomdp._typing import FloatArray
from geomdp.noise.base import Noise, checked_noise
from geomdp.noise.exact.variates import WORD_BITS, Draw, Entropy, Undecided, UniformBits
from geomdp.privacy import ZCDP, ApproxDP, shortcut_step_epsilon
from geomdp.privacy.definitions import check_privacy, gaussian_scale

# Rounding to a public grid

Result = TypeVar("Result")

#: Number of words of each uniform number at the first evaluation: 124 bits. A coordinate of
#: standard deviation s is then known to about 2^-110 s. On a grid of s / 1024, about one coordinate
#: in 2^99 is left undecided.
FIRST_WORDS = 2
#: Number of words at the last evaluation: 15872 bits. Grids finer than about 2^-15000 standard
#: deviations would need more. A coordinate is computed as a ball, an interval that contains it. No
#: number of bits suffices if, with positive probability, the coordinate is exactly half-way between
#: grid points and its ball has a radius above 0.
LAST_WORDS = 256
#: The unit of the grid is at most this share of the smallest standard deviation of a coordinate.
#: Rounding then adds about (1 / 1024)^2 / 12 < 10^-7 of the variance, or less.
SHARE = 1 / 1024

_HALF = arb(0.5)


class PrecisionExhausted(ArithmeticError):  # noqa: N818 (a name like BudgetExhausted)
    """Raised if the largest precision does not decide the outcome of a draw."""

    def __init__(self) -> None:
        super().__init__(
            f"the rounding of a draw is not decided by {LAST_WORDS * WORD_BITS} bits: the grid is "
            "too fine for that precision, or a coordinate is half-way between two grid points with "
            "positive probability"
        )


def refined(
    evaluate: Callable[[Draw], Result],
    entropy: Entropy | None = None,
    filtered: Callable[[UniformBits], Result] | None = None,
) -> Result:
    """The value of `evaluate` at the first precision that decides it, up to 15872 bits.

    Inexact balls must be computed inside the call, because a ball from outside would not shrink.
    """
    bits = UniformBits(entropy)
    if filtered is not None:
        try:
            return filtered(bits)
        except Undecided:
            pass
    words = FIRST_WORDS
    while words <= LAST_WORDS:
        try:
            with ctx.workprec(words * WORD_BITS):
                return evaluate(Draw(bits, words))
        except Undecided:
            words *= 2
    raise PrecisionExhausted


def nearest_multiples(values: Sequence[arb], grid: int) -> list[int]:
    """The whole j of the nearest j 2^-grid, ties up; `Undecided` for a ball that is too wide."""
    # A product with a power of two is exact at any precision.
    scale = arb(2) ** grid
    result = []
    for value in values:
        # floor(x + 1/2) over the ball. The addition widens the ball by the error of its rounding.
        whole = (value * scale + _HALF).floor().unique_fmpz()
        if whole is None:
            raise Undecided
        result.append(int(whole))
    return result


def public_grid(noise: Noise) -> int:
    """The least k >= 0 with 2^-k at most 1/1024 of the smallest standard deviation above 0.

    This k depends only on the public distribution of the noise, and sums of whole numbers lie on
    the grid. ``ValueError`` if `noise` is not a `Noise`, or all standard deviations are 0.
    """
    variances = np.asarray(checked_noise(noise).variances())
    moving = variances[variances > 0]
    if not moving.size:
        raise ValueError(f"noise must have a coordinate of variance above 0, got {noise!r}")
    return grid_for(math.sqrt(float(moving.min())))


def grid_for(deviation: float) -> int:
    """The least k >= 0 with 2^-k at most 1/1024 of a standard deviation.

    `deviation` is a standard deviation of noise, above 0.
    """
    return max(0, math.ceil(-math.log2(SHARE * deviation)))


# Scales that are proved to give a guarantee

#: Working precision, in bits, of ball arithmetic (a ball is a number with a bound on its error).
#: `gaussian_delta_ball` computes delta as a difference of two terms. The subtraction cancels only
#: few of the bits, so hundreds of correct bits remain.
DELTA_BITS = 512


def proved_gaussian_scale(squared: int, privacy: ZCDP | ApproxDP) -> float:
    """A float64 sigma for which N(0, sigma^2 I) noise is proved to give `privacy`.

    `squared` > 0 bounds ||v - v'||_2^2 for the noiseless vectors of neighbours. The parameters of
    `privacy` are taken as exact numbers. The result is `gaussian_scale`, enlarged if the proof
    needs it, usually by a few parts in 10^16.
    """
    scale = least = gaussian_scale(math.sqrt(squared), privacy)
    more = 2.0**-52
    while not _suffices(scale, squared, privacy):
        scale, more = least * (1 + more), 2 * more
    return scale


def _suffices(scale: float, squared: int, privacy: ZCDP | ApproxDP) -> bool:
    """Whether `scale` is proved to give `privacy`; False if the proof fails."""
    if isinstance(privacy, ZCDP):
        return 2 * Fraction(privacy.rho) * Fraction(scale) ** 2 >= squared
    with ctx.workprec(DELTA_BITS):
        found = gaussian_delta_ball(squared, scale, privacy.epsilon)
        return bool(found <= arb(privacy.delta))


def proved_shortcut_scale(change: int, privacy: ApproxDP, steps: int) -> float:
    """A float64 b that is proved to be at least change / `shortcut_step_epsilon`.

    If each of `steps` numbers changes by at most `change` > 0 between neighbours, Laplace noise of
    scale b on each of them gives `privacy` (GEN-2b). ``ValueError`` for an epsilon above 1.
    """
    check_privacy(privacy, ApproxDP)
    scale = change / shortcut_step_epsilon(privacy, steps)
    with ctx.workprec(DELTA_BITS):
        squared = -8 * steps * arb(privacy.delta).log() * change**2 / arb(privacy.epsilon) ** 2
        while not arb(scale) ** 2 >= squared:
            scale = math.nextafter(scale, math.inf)
    return scale


def gaussian_delta_ball(squared: int, scale: float, epsilon: float) -> arb:
    """A ball with the `gaussian_delta` of N(0, scale^2 I), for a `squared` l2 sensitivity."""
    loss, theta = arb(epsilon), arb(squared).sqrt() / arb(scale)
    return _normal(theta / 2 - loss / theta) - loss.exp() * _normal(-theta / 2 - loss / theta)


def _normal(x: arb) -> arb:
    return (-x / arb(2).sqrt()).erfc() / 2


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
