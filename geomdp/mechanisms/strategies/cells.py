"""Noise on the counts of cells of a partition of the universe, and measurements of counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from geomdp._validation import positive
from geomdp.bodies import SimplexDifference
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.mechanisms.strategies.design import ExactSums, Measurement
from geomdp.noise import KNormNoise, LaplaceNoise, Noise
from geomdp.noise.mapped import Columns, Map
from geomdp.privacy import Adjacency
from geomdp.privacy.definitions import checked_adjacency


@runtime_checkable
class CellNoise(Protocol):
    """The noise on the counts of the cells of a partition of the universe."""

    def variance(self, cells: int, adjacency: Adjacency) -> float:
        """Variance at epsilon = 1 along a unit vector.

        Under replace-one, the entries of the vector add up to 0.
        """
        ...

    def noise(self, cells: int, epsilon: float, adjacency: Adjacency) -> Noise:
        """The noise that makes the counts (cells,) epsilon-DP."""
        ...


@dataclass(frozen=True)
class LaplaceCells:
    """Independent noise Lap(D / epsilon) on every cell, D = 2 (replace-one) or 1 (add/remove).

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.strategies import LaplaceCells
    >>> cells = LaplaceCells()
    >>> cells.variance(5, gd.Adjacency.REPLACE_ONE), cells.variance(5, gd.Adjacency.ADD_REMOVE)
    (8.0, 2.0)
    """

    def variance(self, cells: int, adjacency: Adjacency) -> float:
        """Variance of the noise on a cell at epsilon = 1: 2 D^2."""
        del cells
        return 2 * _l1_change(adjacency) ** 2

    def noise(self, cells: int, epsilon: float, adjacency: Adjacency) -> LaplaceNoise:
        """Independent Laplace noise on the counts (cells,)."""
        return LaplaceNoise(cells, _l1_change(adjacency) / positive(epsilon, "epsilon"))


@dataclass(frozen=True)
class SimplexCells:
    """K-norm noise on the counts of cells; K is the hull of changes between neighbours (X-SIM).

    Under replace-one K is the difference body of a simplex, of dimension r = cells - 1. The
    variance is then 4 (2 r + 1) / (r + 2), and 8 for `LaplaceCells`. The ratio of these variances
    is 1/2 for two cells, and tends to 1 for many cells. Under add/remove K is the l1 ball, and the
    noise is the same as for `LaplaceCells`.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.strategies import SimplexCells
    >>> cells = SimplexCells()
    >>> [cells.variance(count, gd.Adjacency.REPLACE_ONE) for count in (2, 5)]
    [4.0, 6.0]
    """

    def variance(self, cells: int, adjacency: Adjacency) -> float:
        """Variance at epsilon = 1: 4 (2 r + 1) / (r + 2), or 2 under add/remove."""
        if checked_adjacency(adjacency) is Adjacency.ADD_REMOVE:
            return LaplaceCells().variance(cells, adjacency)
        # Let U be a uniform point of the body. The variance of K-norm noise is
        # (r + 1)(r + 2) E ||U||^2 / r, and E ||U||^2 / r = 4 (2 r + 1) / ((r + 1)(r + 2)^2); see
        # `SimplexDifference`.
        return 4 * (2 * cells - 1) / (cells + 1)

    def noise(self, cells: int, epsilon: float, adjacency: Adjacency) -> Noise:
        """K-norm noise on the counts (cells,); under replace-one the entries add up to 0."""
        if checked_adjacency(adjacency) is Adjacency.ADD_REMOVE:
            return LaplaceCells().noise(cells, epsilon, adjacency)
        body = SimplexDifference.at_units(cells)
        return KNormNoise(body, epsilon, ExactSampler(body))


def cell_measurement(
    cells: CellNoise,
    share: float,
    rows: Columns,
    matrix: Map,
    adjacency: Adjacency,
    *,
    unit: int = 1,
    sums: ExactSums | None = None,
    table: tuple[int, ...] | None = None,
) -> Measurement:
    """The measurement of counts of cells, with noise that spends the share `share` of epsilon.

    The columns of `rows` (p, b) must be multiples of 1 / `unit` that add up to exactly 1.
    """
    count = rows.shape[0]
    # Between neighbours the counts change by a point of the simplex or a difference of two points.
    known = {LaplaceCells(): _l1_change(adjacency), SimplexCells(): 1.0}
    change = known.get(cells) if isinstance(cells, LaplaceCells | SimplexCells) else None
    return Measurement(
        rows,
        matrix,
        lambda epsilon: cells.noise(count, epsilon * share, adjacency),
        None if change is None else np.array([change]),
        unit,
        sums,
        table,
    )


def _l1_change(adjacency: Adjacency) -> float:
    """Largest l1 change of the counts of a partition between neighbours."""
    return 2.0 if checked_adjacency(adjacency) is Adjacency.REPLACE_ONE else 1.0
