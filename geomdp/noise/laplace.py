"""Independent Laplace noise on every coordinate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import batch, positive, whole
from geomdp.geometry.results import Estimate
from geomdp.privacy import Exact


@dataclass(frozen=True)
class LaplaceNoise:
    """Independent Lap(b) in each of m coordinates: density (2b)^-m exp(-||z||_1 / b).

    This is K-norm noise of the l1 ball of radius b epsilon, for any epsilon > 0 (JL-L14). If sums
    of neighbours differ by at most D in the l1 norm, the sums plus this noise are
    D/b-differentially private (GEN-3).

    Parameters
    ----------
    dimension : int
        Number of coordinates m, at least 1.
    scale : float
        Scale b > 0 of each coordinate, in units of sums; the variance is 2 b^2.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> noise = gd.noise.LaplaceNoise(dimension=3, scale=2.0)
    >>> noise.variances().tolist()
    [8.0, 8.0, 8.0]
    >>> noise.log_density([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]]).round(3)
    array([-4.159, -5.159])

    Draws from a seeded generator are a simulation, not a private release:

    >>> simulation = noise.sample(np.random.default_rng(0), 1000)
    >>> simulation.shape, bool(abs(simulation.var() - 8.0) < 1.0)
    ((1000, 3), True)
    """

    dimension: int
    scale: float

    sampler = Exact()

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", whole(self.dimension, "dimension"))
        object.__setattr__(self, "scale", positive(self.scale, "scale"))

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Each draw costs O(m)."""
        return rng.laplace(0.0, self.scale, (size, self.dimension))

    def covariance(self) -> FloatArray:
        return 2 * self.scale**2 * np.eye(self.dimension)

    def variances(self) -> FloatArray:
        return np.full(self.dimension, 2 * self.scale**2)

    def second_moment(self) -> Estimate:
        """2 m b^2, exact."""
        return Estimate.exact(2 * self.dimension * self.scale**2)

    def log_density(self, points: FloatArray) -> FloatArray:
        """Log density -||z||_1 / b - m ln(2 b) at each row z of `points`."""
        points = batch(points, self.dimension, "points")
        lengths = np.abs(points).sum(axis=1)
        return np.asarray(-lengths / self.scale - self.dimension * math.log(2 * self.scale))

    def log_density_ratio(self, points: FloatArray, shifts: FloatArray) -> FloatArray:
        """log f(z) - log f(z - s) for the density f, with rows z of `points` and s of `shifts`."""
        points = batch(points, self.dimension, "points")
        shifts = batch(shifts, self.dimension, "shifts")
        moved = np.abs(points - shifts) - np.abs(points)
        return np.asarray(moved.sum(axis=1) / self.scale)
