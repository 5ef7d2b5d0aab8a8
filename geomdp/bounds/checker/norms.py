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
        Takes rows (b, k) and returns their norms (b,), per query.
    moment : int
        The moment of the error that is at most alpha: 1 for a mean, 2 for a root mean square.
    largest : bool
        Whether the norm is the largest modulus.
    """

    norm: Norm
    moment: int
    largest: bool

    def log_odds(self, factor: float) -> float:
        """ln(p / (1 - p)) of Markov's p = 1 - (2 / c)^moment, where c is the separation factor."""
        return math.log((factor / 2) ** self.moment - 1)


def _mean_square_root(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(np.sqrt((rows**2).mean(axis=1)))


def _largest(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(np.maximum(rows.max(axis=1), -rows.min(axis=1)))


MEASURES = {
    "mean l2 error per query": Measure(_mean_square_root, 1, largest=False),
    "root mean squared error per query": Measure(_mean_square_root, 2, largest=False),
    "worst-case error over the queries": Measure(_largest, 1, largest=True),
}
