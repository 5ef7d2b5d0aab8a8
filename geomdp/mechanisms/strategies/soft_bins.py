"""Soft bins: measure the histogram, and a coarse histogram with overlapping bins."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import require_type, whole
from geomdp.mechanisms.strategies.cells import CellNoise, SimplexCells, cell_measurement
from geomdp.mechanisms.strategies.design import ENTRY_UNIT, Design
from geomdp.mechanisms.strategies.least_squares import error_and_slopes, gram, reconstruct
from geomdp.mechanisms.strategies.listed import listed_sums
from geomdp.mechanisms.strategies.p_identity import (
    bump_counts,
    hat_functions,
    optimisable_answers,
)
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload

#: Accuracy of the share of the budget for the bins. Around the best share, a change by a hundredth
#: changes the error by less than a thousandth.
SHARE_TOLERANCE = 0.01


@dataclass(frozen=True)
class SoftBins:
    """Measure the histogram h and C h, each with a share of the budget.

    The rows of C are the hat functions of p bins. These are piecewise linear along the order of the
    elements and add up to 1. So an element adds a point of a simplex to C h and to h, and the same
    kind of noise suits both. Hat functions can give a smaller error than the indicators of a `Tree`
    with the same noise: for prefixes of 256 elements at epsilon = 1, the root mean squared error of
    sums is 11.4 instead of 12.3. A descent over all entries of C, started at hat functions, did not
    lower this error further. Without bins only the histogram is measured.

    Parameters
    ----------
    bins : int, optional
        Number p of bins; by default the best of 0, 3/4 N^(1/2) and N^(1/2), rounded, for N
        elements.
    cells : CellNoise
        The noise on both measurements.

    References
    ----------
    Formula sheet JL-SPLIT, X-SIM.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.strategies import SoftBins
    >>> workload = gd.workloads.Prefixes(16)
    >>> design = SoftBins(bins=4).design(workload, gd.Adjacency.REPLACE_ONE)
    >>> [measurement.rows.shape for measurement in design.measurements]
    [(16, 16), (4, 16)]
    """

    bins: int | None = None
    cells: CellNoise = field(default_factory=SimplexCells)

    def __post_init__(self) -> None:
        if self.bins is not None:
            whole(self.bins, "bins", minimum=0)
        require_type(self.cells, CellNoise, "cells")

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The design with the best bins; ``ValueError`` below 2 or above 2^10 elements."""
        answers = optimisable_answers(workload)
        # A single bin counts all records. This is useless if the number of records is public.
        least = 2 if adjacency is Adjacency.REPLACE_ONE else 1
        tried = [count for count in bump_counts(len(answers)) if count >= least]
        counts = [0, *tried] if self.bins is None else [self.bins]
        designs = [self._with_bins(workload, answers, count, adjacency) for count in counts]
        return min(designs, key=lambda design: design.energy)

    def _with_bins(
        self, workload: Workload, answers: FloatArray, count: int, adjacency: Adjacency
    ) -> Design:
        size = len(answers)
        measured, shares = [np.eye(size)], np.ones(1)
        if count > 0:
            measured.append(_on_grid(hat_functions(count, size)))
            shares = self._shares(answers, count, adjacency)
        variances = [self.cells.variance(len(matrix), adjacency) for matrix in measured]
        precisions = [share**2 / v for share, v in zip(shares, variances, strict=True)]
        maps = reconstruct(answers, measured, precisions, adjacency)
        energy = sum(float((R**2).sum()) / p for R, p in zip(maps, precisions, strict=True))
        name = f"histogram and {count} soft bins" if count else "histogram"
        parts = [
            cell_measurement(
                self.cells,
                share,
                C,
                R,
                adjacency,
                unit=ENTRY_UNIT if C is not measured[0] else 1,
                sums=listed_sums(workload, C),
            )
            for C, share, R in zip(measured, shares, maps, strict=True)
        ]
        return Design(name, energy, answers, adjacency, lambda: parts)

    def _shares(self, answers: FloatArray, count: int, adjacency: Adjacency) -> FloatArray:
        """The shares (2,) of the histogram and of the bins that give the least error."""
        squared, bins = gram(answers, adjacency), hat_functions(count, len(answers))
        fine = self.cells.variance(len(answers), adjacency)
        coarse = self.cells.variance(count, adjacency)

        def error(share: float) -> float:
            diagonal = np.full(len(answers), (1 - share) ** 2 / fine)
            rows = bins * (share / math.sqrt(coarse))
            return error_and_slopes(squared, diagonal, rows, adjacency)[0]

        from scipy.optimize import minimize_scalar  # slow import

        found = minimize_scalar(
            error, bounds=(0.0, 1.0), method="bounded", options={"xatol": SHARE_TOLERANCE}
        )
        return np.array([1 - found.x, found.x])


def _on_grid(hats: FloatArray) -> FloatArray:
    """Weights rounded to multiples of 2^-24. The weights of each element add up to exactly 1."""
    rounded = np.rint(hats * ENTRY_UNIT) / ENTRY_UNIT
    largest = rounded.argmax(axis=0), np.arange(hats.shape[1])
    rounded[largest] += 1 - rounded.sum(axis=0)
    return np.asarray(rounded)
