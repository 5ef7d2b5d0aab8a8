"""Noise on a lattice: a uniform lattice point of a box with a random radius."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import batch, finite_array, whole
from geomdp.geometry.results import Estimate
from geomdp.noise.few_queries.lattice import ROUNDING, near_multiples, ratio_or_infinite
from geomdp.noise.few_queries.staircase import checked_epsilon
from geomdp.privacy import Exact

#: Largest number m of coordinates. With k(z) and c_i as in `LatticeBoxNoise`, at least 3^m - 1
#: vectors z have k(z) = 1 if all c_i are above 0. For m > 64, Z is then rarely 0 unless epsilon is
#: above 70, so the noise is not useful.
MOST_COORDINATES = 64


@dataclass(frozen=True, eq=False)
class LatticeBoxNoise:
    """K-norm noise of a box on a lattice: P(Z = z) is proportional to exp(-epsilon k(z)).

    Coordinate i of z is a whole multiple of the unit u_i, and k(z) is the largest of the
    ceil(|z_i| / (c_i u_i)), the least number of lattice vectors in the box {v: |v_i| <= c_i u_i}
    that add up to z. A shift by such a vector changes k by at most 1. So if sums of neighbours
    differ by such vectors, the sums plus Z are epsilon-differentially private.

    Z is 0 with probability 1 / s, where s is the sum of exp(-epsilon k(z)) over all z. For large
    epsilon, s - 1 is near a constant times exp(-epsilon), so the root mean squared error falls like
    exp(-epsilon / 2) for any m. For small epsilon the noise is close to `KNormNoise` of the box.

    Parameters
    ----------
    units : (m,) array
        The numbers u_i above 0, on the scale of sums of answers; m is at most 64.
    counts : sequence of m int
        The whole numbers c_i >= 0, not all 0. Coordinates with c_i = 0 get no noise.
    epsilon : float
        Privacy parameter, above 0 and at most 512.

    Notes
    -----
    With q = exp(-epsilon), exp(-epsilon k(z)) is the sum of (1 - q) q^r over all r >= k(z). So Z is
    uniform on the V(r) lattice points with k(z) <= r, where V(r) is the product of the 2 r c_i + 1,
    and a random r has probability proportional to q^r V(r). V(r) is the sum over j of a_j C(r, j)
    with whole a_j >= 0. The sum of C(r, j) q^r over r is t^j / (1 - q) with t = q / (1 - q). So j
    is drawn with a probability proportional to a_j t^j, and r is j plus a sum of j + 1 independent
    geometric numbers, each equal to g with probability (1 - q) q^g for g = 0, 1, ...

    References
    ----------
    Hardt-Talwar 2010 (K-norm noise); formula sheet JL-KN.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> noise = gd.noise.LatticeBoxNoise(units=[1.0, 1.0], counts=[1, 1], epsilon=3.0)
    >>> noise.log_density([[0.0, 0.0], [1.0, -1.0], [2.0, 0.0], [0.5, 0.0]]).round(4)
    array([-0.3654, -3.3654, -6.3654,    -inf])
    >>> noise.variances().round(4)
    array([0.2971, 0.2971])

    Draws from a seeded generator are a simulation, not a private release:

    >>> noise.sample(np.random.default_rng(0), 1000).shape
    (1000, 2)
    """

    units: FloatArray = field(repr=False)
    counts: Sequence[int] = field(repr=False)
    epsilon: float

    sampler = Exact()

    def __post_init__(self) -> None:
        units = np.array(finite_array(self.units, "units", 1), dtype=np.float64)
        if not 0 < len(units) <= MOST_COORDINATES or not (units > 0).all():
            raise ValueError(
                f"units must be 1 to {MOST_COORDINATES} numbers above 0, got {self.units!r}"
            )
        units.flags.writeable = False
        counts = tuple(whole(count, "counts", minimum=0) for count in self.counts)
        if len(counts) != len(units) or not any(counts):
            raise ValueError(
                f"counts must be {len(units)} whole numbers, not all 0, got {self.counts!r}"
            )
        object.__setattr__(self, "units", units)
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))

    @property
    def dimension(self) -> int:
        return len(self.units)

    @cached_property
    def coefficients(self) -> list[int]:
        """The whole numbers a_0, ..., a_m: V(r) is the sum of a_j C(r, j)."""
        values = [math.prod(2 * r * c + 1 for c in self.counts) for r in range(self.dimension + 1)]
        found = []
        while values:
            found.append(values[0])
            values = [after - before for before, after in pairwise(values)]
        return found

    @cached_property
    def _log_weights(self) -> FloatArray:
        log_t = -self.epsilon - math.log(-math.expm1(-self.epsilon))
        return np.array(
            [math.log(a) + j * log_t if a else -math.inf for j, a in enumerate(self.coefficients)]
        )

    @cached_property
    def _shares(self) -> FloatArray:
        """Probability of each j: (m + 1,)."""
        return np.asarray(np.exp(self._log_weights - np.logaddexp.reduce(self._log_weights)))

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Each draw costs O(m)."""
        terms = rng.choice(self.dimension + 1, size=size, p=self._shares)
        steps = np.floor(rng.standard_exponential((size, self.dimension + 1)) / self.epsilon)
        used = np.arange(self.dimension + 1) <= terms[:, None]
        radii = terms + np.where(used, steps, 0.0).sum(axis=1)
        reach = radii[:, None] * np.array(self.counts, dtype=np.float64)
        places = np.floor(rng.random((size, self.dimension)) * (2 * reach + 1)) - reach
        return np.asarray(self.units * places)

    def covariance(self) -> FloatArray:
        return np.diag(self.variances())

    def variances(self) -> FloatArray:
        """u_i^2 E[c_i r (c_i r + 1)] / 3 of each coordinate: (m,)."""
        q, rest = math.exp(-self.epsilon), -math.expm1(-self.epsilon)
        j = np.arange(self.dimension + 1)
        # For given j, r - j is a sum of j + 1 geometric numbers of mean q / rest and variance
        # q / rest^2.
        mean = j + (j + 1) * q / rest
        square = mean**2 + (j + 1) * q / rest**2
        counts = np.array(self.counts, dtype=np.float64)
        expected = counts**2 * (self._shares @ square) + counts * (self._shares @ mean)
        return np.asarray(self.units**2 * expected / 3)

    def second_moment(self) -> Estimate:
        return Estimate.exact(float(self.variances().sum()))

    def mean_length(self) -> float:
        """An upper bound on E ||Z||_2: (P(Z is not 0) E ||Z||_2^2)^(1/2), by Cauchy-Schwarz."""
        return math.sqrt(self._moving * self.second_moment().value)

    def mean_sizes(self) -> FloatArray:
        """Array (m,) of upper bounds on E |Z_i|, found in the same way as `mean_length`."""
        return np.asarray(np.sqrt(self._moving * self.variances()))

    @property
    def _moving(self) -> float:
        """The probability that Z is not 0: x / (1 + x), with x the sum of a_j t^j over j >= 1."""
        return 1 / (1 + math.exp(-np.logaddexp.reduce(self._log_weights[1:])))

    def log_density(self, points: FloatArray) -> FloatArray:
        """Array (b,) of log P(Z = z) for rows z of `points` (b, m); -inf if P(Z = z) = 0."""
        points = batch(points, self.dimension, "points")
        multiples = np.rint(points / self.units)
        inside = (points == self.units * multiples) & (
            (multiples == 0) | (np.array(self.counts) > 0)
        )
        at_zero = -np.logaddexp.reduce(self._log_weights)
        return np.where(inside.all(axis=1), at_zero - self.epsilon * self._norms(points), -np.inf)

    def log_density_ratio(self, points: FloatArray, shifts: FloatArray) -> FloatArray:
        """Array (b,) of log P(Z = z) - log P(Z = z - s), as in `GeometricNoise`."""
        points = batch(points, self.dimension, "points")
        shifts = batch(shifts, self.dimension, "shifts")
        ratio = self.epsilon * (self._norms(points - shifts) - self._norms(points))
        return ratio_or_infinite(ratio, self._inside, points, shifts)

    def _inside(self, values: FloatArray, sizes: FloatArray) -> BoolArray:
        near = near_multiples(values, self.units, sizes)
        # Coordinates with c_i = 0 get no noise.
        still = (np.array(self.counts) == 0) & (np.abs(values) > ROUNDING * sizes)
        return np.asarray((near & ~still).all(axis=1))

    def _norms(self, points: FloatArray) -> FloatArray:
        """Array (b,) of k(z), where z is the lattice point nearest to a row of `points` (b, m)."""
        counts = np.array(self.counts, dtype=np.float64)
        moving = counts > 0
        multiples = np.abs(np.rint(points / self.units))[:, moving]
        return np.asarray(np.ceil(multiples / counts[moving]).max(axis=1))
