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
    """A measure of error.

    Parameters
    ----------
    norm : callable
        Takes an array (b, k) whose rows are errors of k queries, and returns the b norms of the
        rows. The norm is the root mean square or the largest absolute value.
    moment : int
        The number p: 1 for a mean, 2 for a root mean square. For a mechanism of error alpha, the
        p-th moment of the norm of the errors is at most alpha^p.
    largest : bool
        Whether the norm is the largest absolute value.
    """

    norm: Norm
    moment: int
    largest: bool

    def log_odds(self, factor: float) -> float:
        """ln(q / (1 - q)) for q = 1 - (2 / c)^moment, where c = `factor` is above 2.

        Let a mechanism have error alpha, and let any two answers be at least c alpha apart. By
        Markov's inequality, the norm of its errors is below c alpha / 2, half of this distance,
        with probability at least q.
        """
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
