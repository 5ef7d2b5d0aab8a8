"""A design: what is measured privately so that the answers follow from it, and at what error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from geomdp.bodies import SimplexDifference
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.noise import KNormNoise, LaplaceNoise, MappedNoise, Noise
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload


@dataclass(frozen=True)
class Design:
    """Linear measurements of the records with independent noise, and the answers from them.

    Parameters
    ----------
    name : str
        What is measured.
    energy : float
        E ||Z||_2^2 of the noise of the sums of answers at epsilon = 1.
    noise : callable
        epsilon -> the distribution of that noise; all geometry that is left happens here.
    """

    name: str
    energy: float
    noise: Callable[[float], MappedNoise]


class Strategy(Protocol):
    """A family of designs, of which it finds the best for a workload."""

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The best design; ``ValueError`` if the family has none for `workload`."""
        ...


class CellNoise(Protocol):
    """How the counts of a partition of the universe into cells are measured."""

    def variance(self, cells: int, adjacency: Adjacency) -> float:
        """Variance at epsilon = 1 along each unit vector (orthogonal to 1 under replace-one)."""
        ...

    def noise(self, cells: int, epsilon: float, adjacency: Adjacency) -> Noise:
        """The noise on the counts (cells,) that makes them epsilon-DP."""
        ...


@dataclass(frozen=True)
class LaplaceCells:
    """Independent Lap(D / epsilon) on every cell: D = 2 under replace-one, 1 under add/remove."""

    def variance(self, cells: int, adjacency: Adjacency) -> float:
        """2 D^2."""
        del cells
        return 2 * _l1_change(adjacency) ** 2

    def noise(self, cells: int, epsilon: float, adjacency: Adjacency) -> LaplaceNoise:
        """Laplace noise on every cell."""
        return LaplaceNoise(cells, _l1_change(adjacency) / epsilon)


@dataclass(frozen=True)
class SimplexCells:
    """K-norm noise of the neighbour body of counts, the difference body of a simplex (X-SIM).

    Under add/remove that body is the l1 ball, and the noise `LaplaceCells`. Under replace-one, of r
    = cells - 1 dimensions, the variance is 4 (2 r + 1) / (r + 2) against 8: half as much for two
    cells, and nearly as much for many.
    """

    def variance(self, cells: int, adjacency: Adjacency) -> float:
        """4 (2 r + 1) / (r + 2), r = cells - 1; 2 under add/remove."""
        if adjacency is Adjacency.ADD_REMOVE:
            return LaplaceCells().variance(cells, adjacency)
        # (r + 1)(r + 2) times E ||U||^2 / r = 4 (2 r + 1) / ((r + 1)(r + 2)^2), see the body.
        return 4 * (2 * cells - 1) / (cells + 1)

    def noise(self, cells: int, epsilon: float, adjacency: Adjacency) -> Noise:
        """K-norm noise on the hyperplane of sum 0."""
        if adjacency is Adjacency.ADD_REMOVE:
            return LaplaceCells().noise(cells, epsilon, adjacency)
        body = SimplexDifference(np.eye(cells))
        return KNormNoise(body, epsilon, ExactSampler(body))


def _l1_change(adjacency: Adjacency) -> float:
    """Largest l1 change of the counts of a partition between neighbours."""
    return 2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0
