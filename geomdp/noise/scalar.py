"""Noise on single numbers and on comparisons: exact, or simulated in float64 from a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from geomdp._numerics.single_use import NotCopied
from geomdp._typing import FloatArray, RandomState
from geomdp.noise.exact.argmax import exact_argmax, noisy_argmax
from geomdp.noise.exact.laplace_numbers import (
    ExactNumber,
    LaplaceNumbers,
    NoisyThreshold,
    NoisyValues,
    rounded_value,
)
from geomdp.privacy.guarantees import DECIDED_ARITHMETIC, FLOAT64_CAVEAT

#: Length of the first window of values that `first_reaching` compares with the threshold. Lengths
#: double from window to window.
FIRST_WINDOW = 64


class Values(Protocol):
    """A list of k noisy values that can only be compared with thresholds."""

    def first_reaching(self, begin: int, threshold: Any) -> int:
        """Index of the first value from `begin` on that is >= `threshold`; k if no value is."""


class ScalarNoise(Protocol):
    """Methods that add noise to numbers. Noisy thresholds and `Values` must not be released."""

    @property
    def arithmetic(self) -> str:
        """The sentence about arithmetic in guarantees of mechanisms with this noise (SAM-6)."""

    def threshold(self, value: float, scale: float) -> Any:
        """`value` + Lap(scale), for use in `reaches` and `Values.first_reaching` only."""

    def reaches(self, value: ExactNumber, scale: float, threshold: Any) -> bool:
        """Whether `value` + Lap(scale) is at least `threshold`."""

    def values(self, values: Sequence[ExactNumber] | FloatArray, scale: float) -> Values:
        """The k `values` + independent Lap(scale) draws, to be compared with thresholds."""

    def laplace(self, value: ExactNumber, scale: float) -> float:
        """`value` + Lap(scale), of density exp(-|x| / scale) / (2 scale)."""

    def noisy_argmax(self, scores: FloatArray, scale: float) -> int:
        """The exponential mechanism (GEN-3): eps-DP for `scale` = 2 sensitivity / eps."""


class GeneratorNoise:
    """Laplace and Gumbel noise by NumPy in float64: a simulation that is not private."""

    arithmetic = FLOAT64_CAVEAT

    def __init__(self, rng: RandomState) -> None:
        self._rng = np.random.default_rng(rng)

    def threshold(self, value: float, scale: float) -> float:
        return self.laplace(value, scale)

    def reaches(self, value: ExactNumber, scale: float, threshold: float) -> bool:
        return self.laplace(value, scale) >= threshold

    def values(self, values: Sequence[ExactNumber] | FloatArray, scale: float) -> Values:
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
        """Windows of doubling lengths keep the cost proportional to the number of values read."""
        window = FIRST_WINDOW
        while begin < len(self._noisy):
            hits = self._noisy[begin : begin + window] >= threshold
            first = int(hits.argmax())
            if hits[first]:
                return begin + first
            begin, window = begin + window, 2 * window
        return len(self._noisy)


class ExactNoise(NotCopied):
    """Real-valued Laplace and Gumbel noise, compared exactly or correctly rounded (X-GRID).

    Float64 decides a comparison if the difference exceeds a proved error bound. Otherwise ball
    arithmetic does, with more bits of the same draw from the operating system.
    """

    arithmetic = DECIDED_ARITHMETIC

    def __init__(self) -> None:
        self._numbers = LaplaceNumbers()

    def threshold(self, value: float, scale: float) -> NoisyThreshold:
        """The first 124 bits of each uniform number are drawn at once, later bits when needed."""
        return NoisyThreshold(value, scale, self._numbers.one())

    def reaches(self, value: ExactNumber, scale: float, threshold: NoisyThreshold) -> bool:
        return threshold.reached_by(value, scale, self._numbers.one())

    def values(self, values: Sequence[ExactNumber] | FloatArray, scale: float) -> Values:
        exact = values.tolist() if isinstance(values, np.ndarray) else values
        return NoisyValues(exact, np.array(values, dtype=np.float64), scale, self._numbers)

    def laplace(self, value: ExactNumber, scale: float) -> float:
        """Rounded to a multiple of a power of two <= scale / 1024."""
        return rounded_value(value, scale, self._numbers.one())

    def noisy_argmax(self, scores: FloatArray, scale: float) -> int:
        self._require_own_process()
        return noisy_argmax(scores, scale)

    def exact_argmax(
        self,
        near: FloatArray,
        errors: FloatArray,
        exact: Callable[[int], ExactNumber],
        scale: float,
    ) -> int:
        """`noisy_argmax` for exact scores; see `geomdp.noise.exact.argmax.exact_argmax`."""
        self._require_own_process()
        return exact_argmax(near, errors, exact, scale)


def scalar_noise(rng: RandomState) -> ScalarNoise:
    """Exact noise if `rng` is None, else the float64 simulation."""
    return ExactNoise() if rng is None else GeneratorNoise(rng)
