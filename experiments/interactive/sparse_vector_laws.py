"""Failure probabilities of sparse vector mechanisms by integration; epsilon and sensitivity are 1.

Of k queries, the first k - c lie at some distance below the threshold, and the last c lie at the
same distance above the threshold. The scales of the noise and the alpha of each theorem are written
out here (SV-AT, SV-SP, SV-LSL, SV-NUM), so that nothing comes from the code that is measured.
Theorems 3.24, 3.26 and 3.28 are from Dwork and Roth 2014.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

#: Number of quantiles of the threshold's noise over which an expectation is taken.
QUANTILES = 100_000


@dataclass(frozen=True)
class Law:
    """Scales of Laplace noise, and the alpha of the theorem."""

    alpha: float  # Distance at which the theorem bounds the failure probability by beta
    threshold: float  # Scale of the threshold's noise
    query: float  # Scale of a query's noise
    redraw: bool  # Whether each answer above the threshold gives the threshold new noise
    answer: float | None = None  # Scale of the noise on released values; None without values

    def failure(self, queries: int, cutoff: int, distance: float) -> float:
        """Probability that a comparison is wrong or a released value is off by more than alpha."""
        ranks = (np.arange(QUANTILES) + 0.5) / QUANTILES
        # Quantiles of Laplace noise.
        noise = -self.threshold * np.sign(ranks - 0.5) * np.log1p(-2 * np.abs(ranks - 0.5))
        below = self._at_most(distance + noise) ** (queries - cutoff)
        above = self._at_most(distance - noise)
        if self.redraw:
            right = (below * above).mean() * above.mean() ** (cutoff - 1)
        else:
            right = (below * above**cutoff).mean()
        if self.answer is not None:
            right *= (-math.expm1(-self.alpha / self.answer)) ** cutoff
        return float(1 - right)

    def _at_most(self, x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Probability that a query's noise is at most x."""
        half = 0.5 * np.exp(-np.abs(x) / self.query)
        return np.where(x < 0, half, 1 - half)


def above_threshold(queries: int, beta: float) -> Law:
    """AboveThreshold with the alpha of Theorem 3.24."""
    return Law(8 * (math.log(queries) + math.log(2 / beta)), 2, 4, redraw=True)


def kept(queries: int, cutoff: int, beta: float) -> Law:
    """Lyu, Su and Li: the budget is split 1 : (2 c)^(2/3) between threshold and queries."""
    first = 1 / (1 + (2 * cutoff) ** (2 / 3))
    threshold, query = 1 / first, 2 * cutoff / (1 - first)
    alpha = threshold * math.log(2 / beta) + query * math.log(2 * queries / beta)
    return Law(alpha, threshold, query, redraw=False)


def redrawn(queries: int, cutoff: int, beta: float, delta: float | None) -> Law:
    """Theorem 3.26: c runs of AboveThreshold.

    Each run has epsilon 1/c, or 1 / sqrt(8 c ln(1/delta)) if delta is given.
    """
    logs = math.log(queries) + math.log(2 * cutoff / beta)
    if delta is None:
        return Law(8 * cutoff * logs, 2 * cutoff, 4 * cutoff, redraw=True)
    spread = math.sqrt(8 * cutoff * math.log(1 / delta))
    alpha = math.sqrt(512 * cutoff * math.log(1 / delta)) * logs
    return Law(alpha, 2 * spread, 4 * spread, redraw=True)


def numeric(queries: int, cutoff: int, beta: float, delta: float | None) -> Law:
    """Theorem 3.28, corrected: 8/9 of epsilon for comparisons, 1/9 for values."""
    logs = math.log(queries) + math.log(4 * cutoff / beta)
    unit = cutoff if delta is None else math.sqrt(8 * cutoff * math.log(2 / delta))
    return Law(9 * unit * logs, 2 * unit * 9 / 8, 4 * unit * 9 / 8, True, 9 * unit)


def numeric_printed(queries: int, cutoff: int, beta: float, delta: float) -> Law:
    """Theorem 3.28 as printed: comparisons have sqrt(512) / 2 times the epsilon of values."""
    logs = math.log(queries) + math.log(4 * cutoff / beta)
    root = math.sqrt(512)
    spread = math.sqrt(32 * cutoff * math.log(2 / delta)) * (root + 1)
    alpha = (root + 1) * math.sqrt(cutoff * math.log(2 / delta)) * logs
    return Law(alpha, spread / root, 2 * spread / root, True, spread / 2)
