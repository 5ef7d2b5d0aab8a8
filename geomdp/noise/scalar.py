"""Noise on single numbers and on comparisons: exact, or simulated in float64 from a seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np
from flint import arb, ctx, fmpq

from geomdp._numerics.randomness import NotCopied
from geomdp._typing import FloatArray, RandomState
from geomdp.noise.rounding import (
    FIRST_WORDS,
    LOG_ERROR,
    SHARE,
    WORD_BITS,
    Draw,
    Entropy,
    Near,
    NearVector,
    Undecided,
    UniformBits,
    Vector,
    Words,
    decided,
    decided_below,
    exponentials,
    laplaces,
    minus_log,
    near_laplaces,
    near_log,
    nearest_multiples,
    refined,
)
from geomdp.privacy.guarantees import DECIDED_ARITHMETIC, FLOAT64_CAVEAT

# Laplace variables that are compared exactly

#: A true answer as an exact rational number. A float is taken as exact.
ExactNumber = int | float | Fraction

#: Number of variables that are drawn together, as a block.
BLOCK = 128
#: Bound on the float64 error of (x + b z) - (T + b' z') relative to the sum of the moduli of the
#: four terms, for Laplace variables z and z'. Each term has an error of at most 3 units of 2^-53
#: (conversion of the exact number or of the ball, scale, product), and the three sums add 3 units.
#: So 6 units suffice, and the bound is 16 units.
MARGIN = 2.0**-49
#: Largest radius of the ball of a variable whose float64 value is used: a margin includes RADIUS
#: times the scale. TINY covers products below the normal range of float64.
RADIUS, TINY = 2.0**-80, 2.0**-1000


class _Block:
    """Independent standard Laplace variables ln(U / V). No two of them share random bits."""

    def __init__(self, entropy: Entropy | None) -> None:
        self._bits = UniformBits(entropy)
        balls = self.balls(FIRST_WORDS)
        self.floats = [float(x) if x.rad() < RADIUS else math.nan for x in balls]

    def balls(self, words: int) -> list[arb]:
        """Balls around all variables, from `words` words (62 bits each) of each uniform number."""
        with ctx.workprec(words * WORD_BITS):
            return laplaces(BLOCK, Draw(self._bits, words))


@dataclass(frozen=True)
class LaplaceNumber:
    """One standard Laplace variable: the one at index `place` of `block`."""

    block: _Block
    place: int

    @property
    def near(self) -> float:
        """The float64 value; NaN if an error of at most 2^-52 |value| + 2^-80 is not proved."""
        return self.block.floats[self.place]

    def ball(self, words: int) -> arb:
        return self.block.balls(words)[self.place]


class LaplaceNumbers(NotCopied):
    """A supply of independent standard Laplace variables. Each is returned once."""

    def __init__(self, entropy: Entropy | None = None) -> None:
        self._entropy = entropy
        self._block: _Block | None = None
        self._used = BLOCK

    def one(self) -> LaplaceNumber:
        """The next variable; ``RuntimeError`` in a forked process."""
        return self.many(1)[0]

    def many(self, count: int) -> list[LaplaceNumber]:
        with self._alone():
            return [self._next() for _ in range(count)]

    def _next(self) -> LaplaceNumber:
        if self._block is None or self._used == BLOCK:
            self._block, self._used = _Block(self._entropy), 0
        self._used += 1
        return LaplaceNumber(self._block, self._used - 1)


def exact_ball(value: ExactNumber) -> arb:
    """A ball around an exact number; for whole numbers and floats its radius is 0."""
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    return arb(int(value) if isinstance(value, int) else value)


class NoisyThreshold:
    """T + b Z for an exact T, a float b and a standard Laplace variable Z."""

    def __init__(self, value: float, scale: float, number: LaplaceNumber) -> None:
        self._value, self._scale, self._number = value, scale, number
        spread = scale * number.near
        self.near = value + spread
        self.margin = MARGIN * (abs(value) + abs(spread)) + RADIUS * scale + TINY

    def ball(self, words: int) -> arb:
        return arb(self._value) + arb(self._scale) * self._number.ball(words)

    def reached_by(self, value: ExactNumber, scale: float, number: LaplaceNumber) -> bool:
        """Whether value + scale Z' >= T + b Z, decided exactly; Z' is `number`."""
        middle = float(value)
        spread = scale * number.near
        gap = middle + spread - self.near
        margin = self.margin + MARGIN * (abs(middle) + abs(spread)) + RADIUS * scale
        # The comparison is False for NaN and for infinite numbers. Then balls decide.
        if abs(gap) > margin:
            return gap > 0

        def reached(words: int) -> bool:
            exact_gap = exact_ball(value) + arb(scale) * number.ball(words) - self.ball(words)
            return not decided_below(exact_gap, arb(0))

        return decided(reached)


class NoisyValues:
    """x_i + b Z_i for exact numbers x_i, to be compared with a sequence of thresholds."""

    def __init__(
        self, values: Sequence[ExactNumber], near: FloatArray, scale: float, numbers: LaplaceNumbers
    ) -> None:
        self._values, self._scale = values, scale
        self._numbers = numbers.many(len(values))
        spread = scale * np.array([number.near for number in self._numbers])
        self._near = near + spread
        self._margins = MARGIN * (np.abs(near) + np.abs(spread)) + RADIUS * scale

    def first_reaching(self, begin: int, threshold: NoisyThreshold) -> int:
        """The first i >= `begin` with noisy value i >= `threshold`, or the number of values."""
        gaps = self._near[begin:] - threshold.near
        # Skip values that are certainly below the threshold: NaN is not, its comparison is False.
        below = gaps < -(self._margins[begin:] + threshold.margin)
        for i in (np.flatnonzero(~below) + begin).tolist():
            if threshold.reached_by(self._values[i], self._scale, self._numbers[i]):
                return i
        return len(self._values)


def rounded_value(value: ExactNumber, scale: float, number: LaplaceNumber) -> float:
    """value + scale Z, rounded to a public power of two of at most 1/1024 of the scale."""
    grid = math.ceil(-math.log2(SHARE * scale))

    def rounded(words: int) -> int:
        noisy = exact_ball(value) + arb(scale) * number.ball(words)
        return nearest_multiples([noisy], grid)[0]

    return float(Fraction(decided(rounded)) / Fraction(2) ** grid)


# The index of the largest noisy score


@dataclass(frozen=True)
class Perturbation:
    """Independent noise of scale 1 on k scores: in balls, in float64 with bounds, and simulated."""

    balls: Callable[[int, Draw], Vector]
    near: Callable[[int], NearVector]
    sample: Callable[[np.random.Generator, int], FloatArray]


def _near_gumbels(words: Words) -> Near:
    """Gumbel variables -ln E with E = -ln U, in float64 with error bounds."""
    size, off = minus_log(words)
    # An error `off` of E causes one of at most off / (E - off), which is doubled for rounding.
    errors = np.where(size > 2 * off, off / (size - off) * 2 + LOG_ERROR, np.inf)
    return -near_log(size), errors


#: -ln E for exponential E. With this noise the choice is the exponential mechanism.
GUMBEL = Perturbation(
    lambda count, draw: [-value.log() for value in exponentials(count, draw)],
    partial(NearVector, evaluate=_near_gumbels),
    lambda rng, k: rng.gumbel(size=k),
)
#: -ln U for uniform U.
EXPONENTIAL = Perturbation(
    exponentials,
    partial(NearVector, evaluate=minus_log),
    lambda rng, k: rng.standard_exponential(k),
)
#: ln(U / V) for uniform U and V.
LAPLACE = Perturbation(
    laplaces, partial(near_laplaces, scale=1.0), lambda rng, k: rng.laplace(size=k)
)


def noisy_argmax(
    scores: FloatArray,
    scale: float,
    entropy: Entropy | None = None,
    *,
    perturbation: Perturbation = GUMBEL,
) -> int:
    """The index of the largest scores[i] + scale * noise; the floats are exact numbers."""
    exact, none = scores.tolist().__getitem__, np.zeros(len(scores))
    return exact_argmax(scores, none, exact, scale, entropy, perturbation=perturbation)


def exact_argmax(
    near: FloatArray,
    errors: FloatArray,
    exact: Callable[[int], ExactNumber],
    scale: float,
    entropy: Entropy | None = None,
    *,
    perturbation: Perturbation = GUMBEL,
) -> int:
    """The index of the largest exact(i) + scale * noise, decided exactly.

    `exact` is called for all indices if the floats `near` (k,), within `errors` (k,), do not
    decide. With Gumbel noise, index i has a probability proportional to exp(exact(i) / scale).
    """

    def largest(draw: Draw) -> int:
        unit = arb(scale)
        variables = perturbation.balls(len(near), draw)
        keys = [exact_ball(exact(i)) / unit + z for i, z in enumerate(variables)]
        # Midpoints are exact; as floats, those of large scores could be equal.
        best = max(range(len(keys)), key=lambda i: keys[i].mid())
        if all(i == best or key < keys[best] for i, key in enumerate(keys)):
            return best
        raise Undecided

    by_floats = partial(_by_floats, near, errors, scale, perturbation.near(len(near)))
    return refined(largest, entropy, by_floats)


def _by_floats(
    near: FloatArray, errors: FloatArray, scale: float, noise: NearVector, bits: UniformBits
) -> int:
    """The index of the largest score / scale + noise from first words, or `Undecided`."""
    with np.errstate(all="ignore"):
        values, off = noise.evaluate(bits.first_words(noise.count))
        shift = near / scale
        keys = shift + values
        rounding = 2.0**-51 * (np.abs(shift) + np.abs(values) + np.abs(keys)) + 2.0**-1000
        wrong = errors / scale * (1 + 2.0**-50) + off + rounding
        lowest = keys - wrong
        best = int(np.argmax(lowest))
        rivals = keys + wrong
        rivals[best] = -np.inf
        # The comparison is False for NaN. Then ball arithmetic decides.
        if (rivals < lowest[best]).all():
            return best
    raise Undecided


# Exact and simulated noise on single numbers


class GeneratorNoise:
    """Laplace and Gumbel noise by NumPy in float64: a simulation that is not private."""

    arithmetic = FLOAT64_CAVEAT

    def __init__(self, rng: RandomState) -> None:
        self._rng = np.random.default_rng(rng)

    def threshold(self, value: float, scale: float) -> float:
        return self.laplace(value, scale)

    def reaches(self, value: ExactNumber, scale: float, threshold: float) -> bool:
        return self.laplace(value, scale) >= threshold

    def values(self, values: Sequence[ExactNumber] | FloatArray, scale: float) -> _FloatValues:
        near = np.array(values, dtype=np.float64)
        return _FloatValues(near + self._rng.laplace(0.0, scale, size=len(near)))

    def laplace(self, value: ExactNumber, scale: float) -> float:
        return float(value) + float(self._rng.laplace(0.0, scale))

    def noisy_argmax(self, scores: FloatArray, scale: float) -> int:
        return int(np.argmax(scores + self._rng.gumbel(0.0, scale, size=len(scores))))


class _FloatValues:
    def __init__(self, noisy: FloatArray) -> None:
        self._noisy = noisy

    def first_reaching(self, begin: int, threshold: float) -> int:
        hits = self._noisy[begin:] >= threshold
        return begin + (int(hits.argmax()) if hits.any() else len(hits))


class ExactNoise(NotCopied):
    """Real-valued Laplace and Gumbel noise, compared exactly or correctly rounded (X-GRID)."""

    arithmetic = DECIDED_ARITHMETIC

    def __init__(self) -> None:
        self._numbers = LaplaceNumbers()

    def threshold(self, value: float, scale: float) -> NoisyThreshold:
        """`value` + Lap(scale), for use in `reaches` and `first_reaching` only."""
        return NoisyThreshold(value, scale, self._numbers.one())

    def reaches(self, value: ExactNumber, scale: float, threshold: NoisyThreshold) -> bool:
        """Whether `value` + Lap(scale) is at least `threshold`."""
        return threshold.reached_by(value, scale, self._numbers.one())

    def values(self, values: Sequence[ExactNumber] | FloatArray, scale: float) -> NoisyValues:
        exact = values.tolist() if isinstance(values, np.ndarray) else values
        return NoisyValues(exact, np.array(values, dtype=np.float64), scale, self._numbers)

    def laplace(self, value: ExactNumber, scale: float) -> float:
        """`value` + Lap(scale), rounded to a multiple of a power of two <= scale / 1024."""
        return rounded_value(value, scale, self._numbers.one())

    def noisy_argmax(self, scores: FloatArray, scale: float) -> int:
        """The exponential mechanism (GEN-3): eps-DP for `scale` = 2 sensitivity / eps."""
        self._require_own_process()
        return noisy_argmax(scores, scale)

    def exact_argmax(
        self,
        near: FloatArray,
        errors: FloatArray,
        exact: Callable[[int], ExactNumber],
        scale: float,
    ) -> int:
        """`noisy_argmax` for exact scores; see `geomdp.noise.scalar.exact_argmax`."""
        self._require_own_process()
        return exact_argmax(near, errors, exact, scale)


ScalarNoise: TypeAlias = GeneratorNoise | ExactNoise


def scalar_noise(rng: RandomState) -> ScalarNoise:
    """Exact noise if `rng` is None, else the float64 simulation."""
    return ExactNoise() if rng is None else GeneratorNoise(rng)
