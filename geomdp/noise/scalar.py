"""Noise on single released numbers and decisions: exact, or simulated in float64 from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from geomdp._numerics.single_use import NotCopied
from geomdp._typing import FloatArray, RandomState
from geomdp.noise.exact.laplace_numbers import (
    ExactNumber,
    LaplaceNumbers,
    NoisyThreshold,
    NoisyValues,
    noisy_argmax,
    rounded_value,
)
from geomdp.privacy.guarantees import DECIDED_ARITHMETIC, FLOAT64_CAVEAT

#: Number of answers searched first for one that is above; doubled until one is found.
FIRST_WINDOW = 64


class Values(Protocol):
    """Numbers with noise, to be compared with thresholds."""

    def first_reaching(self, begin: int, threshold: Any) -> int:
        """Number of the first from `begin` on that is at least `threshold`, else their count."""


class ScalarNoise(Protocol):
    """Adds noise to single numbers; noisy thresholds and values never leave the mechanism."""

    @property
    def arithmetic(self) -> str:
        """The caveat about arithmetic in a guarantee that uses this noise (SAM-6)."""

    def threshold(self, value: float, scale: float) -> Any:
        """`value` + Lap(scale), to be compared with."""

    def reaches(self, value: ExactNumber, scale: float, threshold: Any) -> bool:
        """Whether `value` + Lap(scale) is at least `threshold`."""

    def values(self, values: Sequence[ExactNumber] | FloatArray, scale: float) -> Values:
        """`values` (k,) + independent Lap(scale) draws, to be compared."""

    def laplace(self, value: ExactNumber, scale: float) -> float:
        """Return `value` + Lap(scale), density exp(-|x| / scale) / (2 scale)."""

    def noisy_argmax(self, scores: FloatArray, scale: float) -> int:
        """An index drawn with probability growing exponentially in `scores` (k,) (GEN-3).

        eps-DP if `scale` is 2 / eps times the sensitivity of a score.
        """


class GeneratorNoise:
    """Laplace and Gumbel noise by NumPy in float64: a simulation, reproducible and not private.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness.
    """

    arithmetic = FLOAT64_CAVEAT

    def __init__(self, rng: RandomState) -> None:
        self._rng = np.random.default_rng(rng)

    def threshold(self, value: float, scale: float) -> float:
        """Return `value` + Lap(scale)."""
        return self.laplace(value, scale)

    def reaches(self, value: ExactNumber, scale: float, threshold: float) -> bool:
        """Whether `value` + Lap(scale) is at least `threshold`."""
        return self.laplace(value, scale) >= threshold

    def values(self, values: Sequence[ExactNumber] | FloatArray, scale: float) -> Values:
        """`values` (k,) + independent Lap(scale) draws."""
        near = np.array(values, dtype=np.float64)
        return _FloatValues(near + self._rng.laplace(0.0, scale, size=len(near)))

    def laplace(self, value: ExactNumber, scale: float) -> float:
        """Return `value` + Lap(scale)."""
        return float(value) + float(self._rng.laplace(0.0, scale))

    def noisy_argmax(self, scores: FloatArray, scale: float) -> int:
        """Exponential mechanism by Gumbel-max: Pr[i] proportional to exp(scores[i] / scale)."""
        return int(np.argmax(scores + self._rng.gumbel(0.0, scale, size=len(scores))))


class _FloatValues:
    """Noisy numbers in float64."""

    def __init__(self, noisy: FloatArray) -> None:
        self._noisy = noisy

    def first_reaching(self, begin: int, threshold: float) -> int:
        """See `Values`. Windows of doubling size: the cost is proportional to the distance."""
        window = FIRST_WINDOW
        while begin < len(self._noisy):
            hits = self._noisy[begin : begin + window] >= threshold
            first = int(hits.argmax())
            if hits[first]:
                return begin + first
            begin, window = begin + window, 2 * window
        return len(self._noisy)


class ExactNoise(NotCopied):
    """Laplace and Gumbel noise of the proof, from the bits of the operating system (X-GRID).

    True answers are exact rational numbers. A comparison is decided for the real-valued noise: in
    float64 where a proved margin allows it, otherwise in ball arithmetic with more bits of the same
    draw. A released value is correctly rounded to a public grid.
    """

    arithmetic = DECIDED_ARITHMETIC

    def __init__(self) -> None:
        self._numbers = LaplaceNumbers()

    def threshold(self, value: float, scale: float) -> NoisyThreshold:
        """`value` + Lap(scale), to any precision."""
        return NoisyThreshold(value, scale, self._numbers.one())

    def reaches(self, value: ExactNumber, scale: float, threshold: NoisyThreshold) -> bool:
        """Whether `value` + Lap(scale) is at least `threshold`, decided exactly."""
        return threshold.reached_by(value, scale, self._numbers.one())

    def values(self, values: Sequence[ExactNumber] | FloatArray, scale: float) -> Values:
        """`values` (k,) + independent Lap(scale) draws, to any precision."""
        exact = values.tolist() if isinstance(values, np.ndarray) else values
        return NoisyValues(exact, np.array(values, dtype=np.float64), scale, self._numbers)

    def laplace(self, value: ExactNumber, scale: float) -> float:
        """Return `value` + Lap(scale), rounded to a grid of at most 1/1024 of the scale."""
        return rounded_value(value, scale, self._numbers.one())

    def noisy_argmax(self, scores: FloatArray, scale: float) -> int:
        """Exponential mechanism by Gumbel-max, decided exactly for the scores as they are."""
        self._require_own_process()
        return noisy_argmax(scores, scale)


def scalar_noise(rng: RandomState) -> ScalarNoise:
    """ExactNumber noise without a seed, the float64 simulation with one."""
    return ExactNoise() if rng is None else GeneratorNoise(rng)
