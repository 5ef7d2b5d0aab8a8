"""Two-sided geometric noise: the discrete counterpart of Laplace noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import batch, finite_array, positive
from geomdp.geometry.results import Estimate
from geomdp.noise.few_queries.lattice import near_multiples, ratio_or_infinite
from geomdp.privacy import Exact


@dataclass(frozen=True, eq=False)
class GeometricNoise:
    """Independent two-sided geometric noise on whole multiples of a unit in every coordinate.

    Z_i = u_i G_i with P(G_i = j) = q_i^|j| (1 - q_i) / (1 + q_i) for all whole numbers j.

    The rates are q_i = exp(-u_i / b). So P(Z = z) is proportional to exp(-||z||_1 / b), as for
    `LaplaceNoise`, on the lattice of all z whose coordinate i is a whole multiple of the unit u_i.
    If sums of neighbours differ by a vector of the lattice with an l1 norm of at most D, the sums
    plus Z are D/b-differentially private.

    The variance of Z_i is 2 u_i^2 q_i / (1 - q_i)^2, below the 2 b^2 of Laplace noise for all u_i.
    For b far below u_i, it is near 2 u_i^2 exp(-u_i / b).

    Parameters
    ----------
    units : (m,) array
        The units u_i, all above 0, measured like the sums.
    scale : float
        Scale b above 0, measured like the sums.

    References
    ----------
    Ghosh-Roughgarden-Sundararajan 2009; formula sheet GEN-3.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> noise = gd.noise.GeometricNoise(units=[1.0, 2.0], scale=1.0)
    >>> noise.variances().round(4)
    array([1.8413, 1.4481])
    >>> noise.log_density([[0.0, 0.0], [1.0, 2.0], [1.0, 1.0]]).round(4)
    array([-1.0443, -4.0443,    -inf])

    Draws from a seeded generator are a simulation, not a private release:

    >>> noise.sample(np.random.default_rng(0), 3)
    array([[ 0.,  0.],
           [-2., -6.],
           [-3.,  0.]])
    """

    units: FloatArray = field(repr=False)
    scale: float

    sampler = Exact()

    def __post_init__(self) -> None:
        units = np.array(finite_array(self.units, "units", 1), dtype=np.float64)
        if not units.size or not (units > 0).all():
            raise ValueError(f"units must be a vector of numbers above 0, got {self.units!r}")
        units.flags.writeable = False
        object.__setattr__(self, "units", units)
        object.__setattr__(self, "scale", positive(self.scale, "scale"))

    @property
    def dimension(self) -> int:
        return len(self.units)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """O(m) per draw: G is a difference of floors of exponential variables of mean b / u."""
        means = self.scale / self.units
        shape = (2, size, self.dimension)
        first, second = np.floor(means * rng.standard_exponential(shape))
        return np.asarray(self.units * (first - second))

    def covariance(self) -> FloatArray:
        return np.diag(self.variances())

    def variances(self) -> FloatArray:
        rates = self.units / self.scale
        # exp(-x) / (1 - exp(-x))^2, written so that it is accurate for small x and 0 for large x.
        return np.asarray(2 * np.exp(-rates) * (self.units / np.expm1(-rates)) ** 2)

    def second_moment(self) -> Estimate:
        return Estimate.exact(float(self.variances().sum()))

    def mean_sizes(self) -> FloatArray:
        """E |Z_i| = 2 u_i q_i / (1 - q_i^2) of each coordinate: (m,)."""
        rates = self.units / self.scale
        return np.asarray(-2 * self.units * np.exp(-rates) / np.expm1(-2 * rates))

    def mean_length(self) -> float:
        """The smaller of (E ||Z||_2^2)^(1/2) and the sum of the E |Z_i|; exact for m = 1."""
        return min(math.sqrt(self.second_moment().value), float(self.mean_sizes().sum()))

    def half_widths(self, beta: float) -> FloatArray:
        """The least multiple c_i of u_i with P(|Z_i| > c_i) <= `beta`: (m,).

        For whole k >= 0, P(|G_i| > k) = 2 q_i^(k + 1) / (1 + q_i).
        """
        rates = self.units / self.scale
        steps = (math.log(2 / beta) - np.log1p(np.exp(-rates))) / rates - 1
        return np.asarray(self.units * np.maximum(0.0, np.ceil(steps)))

    def log_density(self, points: FloatArray) -> FloatArray:
        """log P(Z = z) for rows z of `points` (b, m); -inf outside the lattice: (b,)."""
        points = batch(points, self.dimension, "points")
        on_lattice = (points == self.units * np.rint(points / self.units)).all(axis=1)
        # (1 - q) / (1 + q) = tanh(u / (2 b)).
        at_zero = np.log(np.tanh(self.units / (2 * self.scale))).sum()
        return np.where(on_lattice, at_zero - np.abs(points).sum(axis=1) / self.scale, -np.inf)

    def log_density_ratio(self, points: FloatArray, shifts: FloatArray) -> FloatArray:
        """log P(Z = z) - log P(Z = z - s), (b,), for rows of `points` and `shifts` (b, m).

        For s in the lattice, all z are taken as lattice points, as float64 sums may have rounding
        errors. Else it is inf if z is in the lattice, -inf if z - s is, and nan if neither is.
        """
        points = batch(points, self.dimension, "points")
        shifts = batch(shifts, self.dimension, "shifts")
        moved = (np.abs(points - shifts) - np.abs(points)).sum(axis=1)
        return ratio_or_infinite(moved / self.scale, self._inside, points, shifts)

    def _inside(self, values: FloatArray, sizes: FloatArray) -> BoolArray:
        return np.asarray(near_multiples(values, self.units, sizes).all(axis=1))
