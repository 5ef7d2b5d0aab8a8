"""Noise with draws that are correctly rounded values of draws in real arithmetic (X-GRID).

A noise is a function F of an infinite string of fair bits, from `os.urandom`. From the first bits,
ball arithmetic (`flint.arb`) encloses the value of F in a box, which more bits of the same string
make smaller (Haney et al. 2022, arXiv 2207.13793). The draw ends when all points of the box have
the same nearest multiples of a public power of two. So it is a rounded draw from the real-valued
distribution, and the privacy proof for real numbers also holds for it, because rounding is
post-processing. The floats in noises and bodies are exact numbers, for which a proof must hold.

Most roundings of Laplace, Gaussian and cone noise are settled in float64: if all numbers within a
proved error bound round to the same multiple, this is the result. So this filter, as in exact
geometric predicates, changes no result. Sums, products, quotients and roots have a relative error
of at most u = 2^-53 (IEEE 754, no underflow). The docstrings derive bounds on the errors, and the
code uses larger ones.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, singledispatch
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from geomdp._typing import FloatArray

if TYPE_CHECKING:
    from geomdp.noise.base import Noise

# Uniform random numbers

#: A source of random bytes: it returns the given number of independent uniform bytes.
Entropy = Callable[[int], bytes]

#: Number of bits of a word. FLINT stores whole numbers of up to 62 bits without allocating memory.
WORD_BITS = 62
#: Least number of words that one call to the operating system fetches; a call costs 0.6 us.
BLOCK = 256

#: The interval [0, 1]. It contains every uniform number, before any bits are known.
_UNIT = arb(0.5, 0.5)
_WORD = arb(2) ** -WORD_BITS


class Undecided(ArithmeticError):  # noqa: N818 (a state, not a failure: refinement goes on)
    """Raised if the bits known so far do not decide a comparison or a rounding."""


class UniformBits:
    """An infinite list of independent uniform numbers on [0, 1], known to finitely many bits.

    The bits come in words of 62 bits. Words that were read never change. `entropy` is the source of
    the bits, by default `os.urandom`; anything else is for tests.
    """

    def __init__(self, entropy: Entropy | None = None) -> None:
        self._entropy = os.urandom if entropy is None else entropy
        # Entry [j][i] is word j of number i.
        self._words: list[list[int]] = []

    def words(self, first: int, last: int, count: int) -> list[list[int]]:
        """List j holds word j of numbers `first` to `last` - 1; ``OSError`` for too few bytes."""
        while len(self._words) < count:
            self._words.append([])
        for known in self._words[:count]:
            if len(known) < last:
                known.extend(self._fresh(max(last - len(known), BLOCK)).tolist())
        return [known[first:last] for known in self._words[:count]]

    def first_words(self, count: int) -> npt.NDArray[np.uint64]:
        """The first words of the first `count` numbers, which must be read before all others."""
        if self._words:
            raise RuntimeError("first_words must be called before any other word is read")
        fresh = self._fresh(max(count, BLOCK))
        self._words.append(fresh.tolist())
        return fresh[:count]

    def _fresh(self, count: int) -> npt.NDArray[np.uint64]:
        data = self._entropy(8 * count)
        if len(data) != 8 * count:
            raise OSError(f"the entropy source gave {len(data)} bytes of {8 * count}")
        return np.frombuffer(data, dtype="<u8").astype(np.uint64) >> np.uint64(64 - WORD_BITS)


class Draw:
    """One evaluation of a random vector, which reads `word_count` words of each number in order.

    An evaluation must make the same decisions at any precision, so it reads the same numbers. Its
    result is a box that contains the exact value of the vector for these numbers.
    """

    def __init__(self, bits: UniformBits, word_count: int) -> None:
        self._bits = bits
        self._word_count = word_count
        self._next = 0

    def _read(self, count: int) -> list[list[int]]:
        first = self._next
        self._next += count
        return self._bits.words(first, self._next, self._word_count)

    def uniforms(self, count: int) -> list[arb]:
        """The next `count` uniform numbers, as intervals of length about 2^-(62 * word_count)."""
        *leading, last = self._read(count)
        values = [(_UNIT + word) * _WORD for word in last]
        for words in reversed(leading):
            values = [(value + word) * _WORD for value, word in zip(values, words, strict=True)]
        return values

    def uniform(self) -> arb:
        return self.uniforms(1)[0]

    def leading(self, count: int) -> FloatArray:
        """The next `count` numbers U, still unread, as floats x: |x - U| <= 2^-53 x + 2^-62.

        Only the first words are used, so each x is the same at every precision.
        """
        (words,) = self._bits.words(self._next, self._next + count, 1)
        return np.array(words, dtype=np.float64) * 2.0**-WORD_BITS

    def skip(self, count: int) -> None:
        self._next += count

    def ahead(self, count: int) -> Draw:
        """Another evaluation on the same numbers, which begins `count` numbers later."""
        other = Draw(self._bits, self._word_count)
        other._next = self._next + count
        return other

    def order(self, count: int) -> list[int]:
        """A uniform permutation: positions of the next `count` numbers by size, or `Undecided`."""
        prefixes = list(zip(*self._read(count), strict=True))
        positions = sorted(range(count), key=prefixes.__getitem__)
        for low, high in pairwise(positions):
            if prefixes[low] == prefixes[high]:
                raise Undecided
        return positions


#: A vector of balls.
Vector = list[arb]
#: A random vector as a function of uniform numbers, evaluated in ball arithmetic.
Computable = Callable[[Draw], Vector]
#: The first words of uniform numbers: their first 62 bits as whole numbers below 2^62.
Words = npt.NDArray[np.uint64]
#: Values and bounds on their errors, both of shape (m,). A bound may be infinite or NaN.
Near = tuple[FloatArray, FloatArray]


# Rounding to a public grid

Result = TypeVar("Result")

#: Number of words of each uniform number at the first evaluation: 124 bits. On a grid of s / 1024,
#: for a standard deviation s, about one coordinate in 2^99 is left undecided.
FIRST_WORDS = 2
#: Number of words at the last evaluation: 15872 bits. Grids finer than about 2^-15000 standard
#: deviations would need more, and no number suffices if a coordinate is exactly half-way between
#: grid points with positive probability, and its ball has a radius above 0.
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
            "too fine, or a coordinate is half-way between two grid points"
        )


def decided(evaluate: Callable[[int], Result]) -> Result:
    """`evaluate(words)` for the least number of 62-bit words that decides it, up to 15872 bits.

    Inexact balls must be computed inside the call, because a ball from outside would not shrink.
    """
    words = FIRST_WORDS
    while words <= LAST_WORDS:
        try:
            with ctx.workprec(words * WORD_BITS):
                return evaluate(words)
        except Undecided:
            words *= 2
    raise PrecisionExhausted


def decided_below(first: arb, second: arb) -> bool:
    """Whether first < second; `Undecided` if the balls leave both answers possible."""
    if first < second:
        return True
    if first >= second:
        return False
    raise Undecided


def refined(
    evaluate: Callable[[Draw], Result],
    entropy: Entropy | None = None,
    filtered: Callable[[UniformBits], Result] | None = None,
) -> Result:
    """The value of `evaluate`, decided by `filtered` or else by `decided`."""
    bits = UniformBits(entropy)
    if filtered is not None:
        try:
            return filtered(bits)
        except Undecided:
            pass
    return decided(lambda words: evaluate(Draw(bits, words)))


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
    """`grid_for` of the smallest standard deviation of a coordinate above 0, which is public."""
    variances = np.asarray(noise.variances())
    return grid_for(math.sqrt(float(variances[variances > 0].min())))


def grid_for(deviation: float) -> int:
    """The least k >= 0 with 2^-k at most 1/1024 of a standard deviation above 0."""
    return max(0, math.ceil(-math.log2(SHARE * deviation)))


# Logarithm, sine and cosine by IEEE operations alone, with proved error bounds; u = 2^-53

#: Bound on the relative error of `logarithm` and on the absolute error of `sine_cosine`.
FUNCTION_ERROR = 2.0**-46

_LOG_TERMS, _TURN_TERMS = 12, 11


def logarithm(values: FloatArray) -> FloatArray:
    """ln x for a normal float x > 0, with a relative error of at most 2^-46.

    x = m 2^e with 1/2 <= m^2 < 2. With s = (m - 1) / (m + 1), |s| < 0.172 and
    ln m = 2 s (1 + s^2/3 + s^4/5 + ...), at most 0.35 in modulus. After twelve terms the rest is
    below 2^-60 of the sum. Relative errors are at most 3 u for s and 50 u for the sum by Horner's
    rule, because all terms are positive. If e = 0, the result is ln m. Else |ln x| >= ln(2) / 2,
    both summands of e ln 2 + ln m are at most 3 |ln x| in modulus, and rounding adds at most 10 u.
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
    return np.asarray((exponent - small) * math.log(2) + 2 * ratio * series)


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


# Exponential, Laplace and Gaussian variables: in balls, and in float64 with error bounds

#: Bounds on the errors of `near_log` and of `near_turn`.
LOG_ERROR = TURN_ERROR = 2.0**-45
#: Bounds on a relative error of `minus_log`, and on the absolute error from rounding a word.
SHARE_ERROR, WORD_ERROR = 2.0**-46, 2.0**-52
#: A uniform number U with the first word w lies in [w, w + 1] 2^-62. So -ln U is smaller than
#: 62 ln 2 - ln w by at most 1 / w; the factor 1.01 covers the rounding of w to a float.
CUT = 1.01
#: Below this number, all multiples of 1/2 are exact in float64.
LARGEST = 2.0**51


@dataclass(frozen=True)
class NearVector:
    """A random vector with error bounds: `evaluate` takes the first words of `count` uniforms."""

    count: int
    evaluate: Callable[[Words], Near]

    @np.errstate(all="ignore")
    def rounded(self, bits: UniformBits, grid: int) -> list[int]:
        """Whole numbers j with j 2^-grid nearest to the exact coordinates, or `Undecided`."""
        return nearest_by_floats(*self.evaluate(bits.first_words(self.count)), grid)


def nearest_by_floats(values: FloatArray, errors: FloatArray, grid: int) -> list[int]:
    """Whole numbers j with j 2^-grid nearest to each exact number within `errors` of `values`.

    `Undecided` if numbers within an error have different multiples, for NaN, from 2^(51 - grid).
    """
    # Scaling by a power of two is exact, except for overflow to infinity, and for underflow with an
    # error below 2^-1000.
    scaled = np.ldexp(values, grid)
    whole = np.floor(scaled + 0.5)
    # |scaled - whole| is computed exactly, because `scaled` and `whole` are multiples of the unit
    # in the last place of `scaled`. Below `LARGEST`, it is at most 1/2, unless scaled + 0.5 rounds
    # up to a whole number that is too large. Then it is 1/2 up to rounding, which is undecided.
    room = 0.5 - np.abs(scaled - whole)
    needed = np.ldexp(errors, grid) * (1 + 2.0**-50) + 2.0**-60
    # Comparisons with NaN are False, so NaN is not decided.
    if not ((room > needed) & (np.abs(whole) < LARGEST)).all():
        raise Undecided
    return [int(j) for j in whole.astype(np.int64).tolist()]


def rounding_error(values: FloatArray) -> FloatArray:
    """A bound on the rounding error of one operation with results `values`, including underflow."""
    return np.asarray(2.0**-53 * np.abs(values) + 2.0**-1000)


def exponentials(count: int, draw: Draw) -> Vector:
    """Independent exponential variables of mean 1: -ln U."""
    return [-value.log() for value in draw.uniforms(count)]


def minus_log(words: Words) -> Near:
    """-ln U for uniform U with first words `words`, and error bounds; infinity for word 0."""
    numbers = words.astype(np.float64)  # with a relative error of at most u
    # The logarithm is at most 0. Its modulus is never -0.0, by which a bound could be divided.
    value = np.abs(logarithm(numbers * 2.0**-WORD_BITS))
    off = SHARE_ERROR * np.abs(value) + WORD_ERROR + CUT / numbers
    return np.where(numbers > 0, value, np.inf), off


def near_log(numbers: FloatArray) -> FloatArray:
    """ln x for x from 2^-62 to 2^62, to within 2^-45; -inf for x = 0.

    It holds even if x has a relative error of u: in e ln 2 + ln t, there are four errors of at most
    43 u, because e ln 2 and ln x are at most 43 in modulus.
    """
    return np.asarray(np.where(numbers > 0, logarithm(numbers), -np.inf))


def laplaces(count: int, draw: Draw) -> Vector:
    """Independent variables of density exp(-|x|) / 2: ln(U / V), a difference of exponentials."""
    numbers = draw.uniforms(2 * count)
    return [(a / b).log() for a, b in zip(numbers[:count], numbers[count:], strict=True)]


def near_laplaces(count: int, scale: float) -> NearVector:
    """`scale` times the Laplace variables ln(U / V) of `laplaces`."""

    def evaluate(words: Words) -> Near:
        logs, off = minus_log(words)
        values = scale * (logs[count:] - logs[:count])
        errors = scale * (off[:count] + off[count:]) * (1 + 2.0**-40)
        return values, errors + 4 * rounding_error(values)

    return NearVector(2 * count, evaluate)


def gaussians(count: int, draw: Draw) -> Vector:
    """Independent standard Gaussian variables, in pairs: (-2 ln U)^(1/2) (sin, cos)(2 pi V)."""
    pairs = (count + 1) // 2
    numbers = draw.uniforms(2 * pairs)
    values = []
    for first, second in zip(numbers[:pairs], numbers[pairs:], strict=True):
        length = (-2 * first.log()).sqrt()
        sine, cosine = (2 * second).sin_cos_pi()
        values += [length * sine, length * cosine]
    return values[:count]


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


def near_turn(words: Words) -> tuple[FloatArray, FloatArray]:
    """sin and cos of 2 pi V to within 2^-45, for any V in [w, w + 1] 2^-62 with w in `words`."""
    # The float is within 2^-53 + 2^-62 turns of V, which changes sin and cos by less than 2^-50.
    return sine_cosine(words.astype(np.float64) * 2.0**-WORD_BITS)


# Noise that is prepared for rounded draws


class NoExactPath(TypeError):  # noqa: N818 (a name like MissingOracle)
    """Raised for a noise or body that cannot be drawn with correct rounding."""

    def __init__(self, item: object, reason: str) -> None:
        super().__init__(f"{item!r} has no correctly rounded draws: {reason}")


@dataclass(frozen=True)
class Numbers:
    """A random vector in balls and, if such code exists, in float64 with proved error bounds."""

    balls: Computable
    near: NearVector | None = None

    def times(self, factor: float) -> Numbers:
        """The vector multiplied by the exact number `factor`, without its float64 version."""
        return Numbers(lambda draw: [arb(factor) * x for x in self.balls(draw)])


@singledispatch
def exact_numbers(noise: Noise) -> Numbers:
    """The noise Z on sums, with the law that its class states; `NoExactPath` before any draw."""
    raise NoExactPath(noise, "no sampler in ball arithmetic is written for it")


class Rounded:
    """Independent random vectors, drawn with correct rounding to multiples of 2^-grid, halves up.

    If the true sums S are multiples of 2^-grid, S plus the draw is the rounding of S + Z, so it is
    post-processing of the mechanism with real-valued noise, and its guarantee holds for the
    computed numbers. Neither the draw nor its running time and random bits depend on records.
    """

    def __init__(self, parts: Sequence[Numbers], grid: int) -> None:
        self.parts, self.grid = list(parts), grid

    @classmethod
    def of(cls, noise: Noise, grid: int) -> Rounded:
        """A noise on sums, prepared for correctly rounded draws."""
        return cls([exact_numbers(noise)], grid)

    def draw(self, entropy: Entropy | None = None) -> list[int]:
        """One whole number j, of any size, for each coordinate: the rounded noise is j 2^-grid.

        ``PrecisionExhausted`` if 15872 bits do not decide a rounding; float64 is never a
        substitute. Parts share no random bits. `entropy` is as in `UniformBits`.
        """
        return [j for part in self.parts for j in self._rounded(part, entropy)]

    def _rounded(self, part: Numbers, entropy: Entropy | None) -> list[int]:
        def evaluate(draw: Draw) -> list[int]:
            return nearest_multiples(part.balls(draw), self.grid)

        filtered = None if part.near is None else partial(part.near.rounded, grid=self.grid)
        return refined(evaluate, entropy, filtered)
