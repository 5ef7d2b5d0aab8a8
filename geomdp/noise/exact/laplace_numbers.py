"""Laplace variables that are compared exactly, by float64 with a margin or by ball arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
from flint import arb, ctx, fmpq

from geomdp._numerics.single_use import NotCopied
from geomdp._typing import FloatArray
from geomdp.noise.exact.rounding import (
    FIRST_WORDS,
    LAST_WORDS,
    SHARE,
    PrecisionExhausted,
    nearest_multiples,
)
from geomdp.noise.exact.uniforms import WORD_BITS, Draw, Entropy, Undecided, UniformBits
from geomdp.noise.exact.variates import laplaces

#: A true answer as an exact rational number. A float is taken as exact.
ExactNumber = int | float | Fraction

Result = TypeVar("Result")

#: Number of variables that are drawn together, as a block. Asking the operating system for random
#: bytes takes longer than a logarithm, so one call gets one word for every number of a block.
BLOCK = 128
#: Bound on the float64 error of a noisy number minus a noisy threshold, (x + b z) - (T + b' z'),
#: relative to the sum of the moduli of the four terms. Here z and z' are Laplace variables, and b
#: and b' are their scales. Each term has an error of at most 3 units of 2^-53: one each for the
#: conversion of the exact number or of the ball, for the scale, and for the product. The three
#: sums add 3 units. So 6 units suffice, and the bound is 16 units.
MARGIN = 2.0**-49
#: The float64 value of a variable is used only if its ball has a radius below RADIUS. The margin
#: includes RADIUS times the scale. TINY covers products below the normal range of float64.
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


def decided(evaluate: Callable[[int], Result]) -> Result:
    """`evaluate(words)`, with `words` doubled after each `Undecided`, up to `LAST_WORDS`."""
    words = FIRST_WORDS
    while words <= LAST_WORDS:
        try:
            with ctx.workprec(words * WORD_BITS):
                return evaluate(words)
        except Undecided:
            words *= 2
    raise PrecisionExhausted


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
        return decided(lambda words: self._reached(value, scale, number, words))

    def _reached(self, value: ExactNumber, scale: float, number: LaplaceNumber, words: int) -> bool:
        gap = exact_ball(value) + arb(scale) * number.ball(words) - self.ball(words)
        if gap >= 0:
            return True
        if gap < 0:
            return False
        raise Undecided


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
        # Skip values that are certainly below the threshold. NaN is not skipped, because
        # comparisons with NaN are False.
        below = gaps < -(self._margins[begin:] + threshold.margin)
        for place in np.flatnonzero(~below) + begin:
            i = int(place)
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
