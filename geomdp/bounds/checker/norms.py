"""The three measures of error, under the names that certificate files use."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Norm = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Measure:
    """A norm of the errors of k queries, rows of (b, k), whose p-th moment is at most alpha^p."""

    norm: Norm
    #: p: 1 for a mean, 2 for a root mean square.
    moment: int
    largest: bool

    def log_odds(self, factor: float) -> float:
        """ln(q / (1 - q)) for q = 1 - (2 / c)^moment, where c = `factor` is above 2."""
        # By Markov's inequality, the norm of the errors of a mechanism of error alpha is below c
        # alpha / 2, half of the distance between answers, with probability at least q.
        # x^2 - 1 = (x - 1) (x + 1): near x = 1, the difference of x^2 and 1 would lose digits.
        half = factor / 2
        return math.log((half - 1) * (half + 1) if self.moment == 2 else half - 1)


def _mean_square_root(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(np.sqrt((rows**2).mean(axis=1)))


def _largest(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(np.maximum(rows.max(axis=1), -rows.min(axis=1)))


MEASURES = {
    "mean l2 error per query": Measure(_mean_square_root, 1, largest=False),
    "root mean squared error per query": Measure(_mean_square_root, 2, largest=False),
    "worst-case error over the queries": Measure(_largest, 1, largest=True),
}
