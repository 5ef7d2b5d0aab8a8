"""Intervals and tests at stated levels for measured mean squared errors.

A mean squared error is the average of the squared errors of many independent releases. Its
deviation from an expected value, divided by the standard error, is compared with Student's t. The
level is divided by the number of simultaneous tests (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.stats

from experiments.engine.cells import Row

FloatArray = npt.NDArray[np.float64]

#: False-alarm probability of one claim.
LEVEL = 1e-6


@dataclass(frozen=True)
class MeanSquare:
    """A mean of squared errors over independent releases."""

    value: float  # The mean, above 0
    stderr: float  # Its standard error
    count: int  # Number of releases, at least 2

    def __post_init__(self) -> None:
        if not self.value > 0 or not math.isfinite(self.value):
            raise ValueError(f"value must be finite and above 0, got {self.value!r}")
        if not self.stderr >= 0 or not math.isfinite(self.stderr):
            raise ValueError(f"stderr must be finite and at least 0, got {self.stderr!r}")
        if self.count < 2:
            raise ValueError(f"count must be at least 2, got {self.count}")

    @classmethod
    def of(cls, squares: Sequence[float] | FloatArray) -> MeanSquare:
        """Mean and standard error of `squares`, the squared errors of independent releases."""
        values = np.asarray(squares, dtype=float)
        stderr = float(values.std(ddof=1)) / math.sqrt(len(values))
        return cls(float(values.mean()), stderr, len(values))

    @classmethod
    def pooled(cls, parts: Sequence[MeanSquare]) -> MeanSquare:
        """Mean over all releases of `parts`, independent samples from one distribution."""
        counts = np.array([part.count for part in parts], dtype=float)
        values = np.array([part.value for part in parts])
        # The squared deviations in a part sum to (count - 1) times the sample variance, and the
        # sample variance is count * stderr^2.
        within = sum(part.count * (part.count - 1) * part.stderr**2 for part in parts)
        total = counts.sum()
        mean = float(counts @ values / total)
        between = float(counts @ (values - mean) ** 2)
        return cls(mean, math.sqrt((within + between) / (total - 1) / total), int(total))

    def over(self, error: float) -> MeanSquare:
        """This mean in units of a known `error`: the root is divided by `error`."""
        return MeanSquare(self.value / error**2, self.stderr / error**2, self.count)

    def columns(self) -> Row:
        """The measurement as columns of a row."""
        return {
            "mean_square": self.value,
            "mean_square_stderr": self.stderr,
            "releases": self.count,
        }

    @property
    def root(self) -> float:
        """Root mean square."""
        return math.sqrt(self.value)

    @property
    def root_stderr(self) -> float:
        """Standard error of the root, by the delta method."""
        return self.stderr / (2 * self.root)

    def root_interval(self, level: float, tests: int = 1) -> tuple[float, float]:
        """Two-sided interval for the root; `tests` intervals all hold with chance 1 - `level`."""
        reach = quantile(level / (2 * tests), self.count) * self.stderr
        return math.sqrt(max(self.value - reach, 0.0)), math.sqrt(self.value + reach)


def quantile(tail: float, count: int) -> float:
    """Upper `tail` quantile of Student's t for a mean of `count` values."""
    return float(scipy.stats.t.isf(tail, count - 1))


def deviation(measured: MeanSquare, expected: float, expected_stderr: float = 0.0) -> float:
    """How many standard errors the measured mean square lies above expected^2."""
    spread = math.hypot(measured.stderr, 2 * expected * expected_stderr)
    gap = measured.value - expected**2
    # Measurements without noise have no standard error, but still a rounding error.
    rounding = 1e3 * np.finfo(float).eps * max(measured.value, expected**2)
    if abs(gap) <= rounding:
        return 0.0
    return gap / spread if spread > 0 else math.copysign(math.inf, gap)


@dataclass(frozen=True)
class Slope:
    """Least-squares slope of log y against log x with a two-sided interval."""

    value: float
    low: float
    high: float

    def within(self, low: float, high: float) -> bool:
        """Whether the whole interval lies in [low, high]."""
        return low <= self.low and self.high <= high

    def covers(self, value: float) -> bool:
        """Whether `value` lies in the interval."""
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def log_log_slope(
    x: Sequence[float], means: Sequence[MeanSquare], level: float, tests: int = 1
) -> Slope:
    """Ordinary least-squares slope of log(root mean square) against log(x).

    The slope is sum c_i log(y_i), where y_i is the root mean square at x_i, and the c_i depend on
    `x` alone. The y_i are independent, so the delta method gives the standard error of the slope
    from the standard errors of the y_i. The points are not weighted, because the quantity that a
    weighted slope estimates would depend on the noise of each point.
    """
    if len(x) != len(means) or len(set(x)) < 2:
        raise ValueError(f"x must hold 2 different positions or more, one per mean, got {list(x)}")
    centred = np.log(np.asarray(x, dtype=float))
    centred -= centred.mean()
    coefficients = centred / (centred @ centred)
    slope = float(coefficients @ [0.5 * math.log(mean.value) for mean in means])
    relative = np.array([0.5 * mean.stderr / mean.value for mean in means])
    smallest = min(mean.count for mean in means)
    reach = quantile(level / (2 * tests), smallest) * float(np.linalg.norm(coefficients * relative))
    # Points without noise still have rounding errors.
    reach = max(reach, 1e3 * np.finfo(float).eps)
    return Slope(slope, slope - reach, slope + reach)


def pooled_by(table: pd.DataFrame, keys: Sequence[str]) -> dict[tuple[Any, ...], MeanSquare]:
    """Pooled mean squares of the rows that share `keys`."""
    groups = table.groupby(list(keys), sort=False)
    return {
        key if isinstance(key, tuple) else (key,): MeanSquare.pooled(
            [
                MeanSquare(float(value), float(stderr), int(count))
                for value, stderr, count in zip(
                    rows["mean_square"], rows["mean_square_stderr"], rows["releases"], strict=True
                )
            ]
        )
        for key, rows in groups
    }


def pooled_along(table: pd.DataFrame, x: str) -> dict[float, MeanSquare]:
    """For each value in column `x`, the pooled mean square of the rows with this value."""
    return {position: mean for (position,), mean in pooled_by(table, [x]).items()}
