"""Noise for few queries, without the geometry of a body: on one real number, or on a lattice."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from flint import arb

from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import batch, positive, whole
from geomdp.bodies.base import freeze
from geomdp.geometry.projection import Estimate
from geomdp.noise.points import ball_sum, dyadic, whole_number, whole_part
from geomdp.noise.rounding import Draw, Numbers, Vector, decided_below, exact_numbers, exponentials
from geomdp.privacy import Exact

#: Above this epsilon, exp(-epsilon) comes near the least float, which is about exp(-745), and the
#: noise is far below the rounding error of answers.
LARGEST_EPSILON = 512.0


def checked_epsilon(epsilon: float) -> float:
    """`epsilon` as a float in (0, 512]; else ``ValueError``."""
    epsilon = positive(epsilon, "epsilon")
    if epsilon > LARGEST_EPSILON:
        raise ValueError(f"epsilon must be at most {LARGEST_EPSILON:g}, got {epsilon!r}")
    return epsilon


@dataclass(frozen=True)
class StaircaseNoise:
    """The noise on one real number with the least variance under epsilon-differential privacy.

    For D = `width` and g = `share`, the density at x is proportional to exp(-epsilon k(|x|)), where
    k(r) = floor(r / D) if r mod D < g D, else k(r) = floor(r / D) + 1. For numbers at most D apart,
    the values of k differ by at most 1.
    """

    width: float
    epsilon: float

    sampler = Exact()
    #: The noise is one number.
    dimension = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", positive(self.width, "width"))
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))

    @cached_property
    def share(self) -> float:
        """g = ((b (1 + b) / 2)^(1/3) - b) / (1 - b) for b = exp(-epsilon), of least variance."""
        b = math.exp(-self.epsilon)
        # For small epsilon, c - b and 1 - b would lose all digits of g = (c - b) / (1 - b), so
        # numerator and denominator are multiplied by c^2 + c b + b^2.
        c = math.cbrt(b * (1 + b) / 2)
        return min(0.5, b * (1 + 2 * b) / (2 * (c * c + c * b + b * b)))

    @property
    def outer(self) -> float:
        """The probability (1 - g) b / (g + (1 - g) b) that |Z| mod D is at least g D."""
        rest = (1 - self.share) * math.exp(-self.epsilon)
        return rest / (self.share + rest)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draws (size, 1) of +-D (K + V), where K >= k with probability b^k.

        V is uniform on [g, 1] with probability `outer`, and uniform on [0, g] otherwise.
        """
        steps = np.floor(rng.standard_exponential(size) / self.epsilon)
        outside = rng.random(size) < self.outer
        place = rng.random(size)
        place = np.where(outside, self.share + (1 - self.share) * place, self.share * place)
        signs = np.where(rng.random(size) < 0.5, -1.0, 1.0)
        return np.asarray(signs * self.width * (steps + place))[:, None]

    def covariance(self) -> FloatArray:
        return np.diag(self.variances())

    def variances(self) -> FloatArray:
        """Array (1,) of D^2 (E K^2 + 2 E K E V + E V^2), for K and V of `sample`."""
        rest = -math.expm1(-self.epsilon)
        steps = math.exp(-self.epsilon) / rest
        squared_steps = steps * (1 + math.exp(-self.epsilon)) / rest
        g, p = self.share, self.outer
        mean = (g + p) / 2
        square = (1 - p) * g**2 / 3 + p * (1 + g + g**2) / 3
        return np.array([self.width**2 * (squared_steps + 2 * steps * mean + square)])

    def second_moment(self) -> Estimate:
        return Estimate.exact(float(self.variances()[0]))

    def mean_sizes(self) -> FloatArray:
        return np.array([self.mean_length()])

    def mean_length(self) -> float:
        """E |Z| = D (E K + E V), exact, with K and V as in `sample`."""
        steps = math.exp(-self.epsilon) / -math.expm1(-self.epsilon)
        return self.width * (steps + (self.share + self.outer) / 2)

    def log_density_ratio(self, points: FloatArray, shifts: FloatArray) -> FloatArray:
        """log f(z) - log f(z - s) for the density f; both arrays have one column."""
        points, shifts = batch(points, 1, "points"), batch(shifts, 1, "shifts")
        return np.asarray(self.epsilon * (self._steps(points - shifts) - self._steps(points)))

    def _steps(self, points: FloatArray) -> FloatArray:
        sizes = np.abs(points[:, 0]) / self.width
        whole = np.floor(sizes)
        return np.asarray(whole + (sizes - whole >= self.share))


@exact_numbers.register
def _exact_staircase(noise: StaircaseNoise) -> Numbers:
    width, epsilon, share = arb(noise.width), arb(noise.epsilon), arb(noise.share)

    def balls(draw: Draw) -> Vector:
        steps = whole_part(exponentials(1, draw)[0] / epsilon)
        part, place = draw.uniforms(2)
        outer_weight = (1 - share) * (-epsilon).exp()
        if decided_below(part * (share + outer_weight), outer_weight):
            size = steps + share + (1 - share) * place
        else:
            size = steps + share * place
        return [width * (size if whole_number(2, draw) else -size)]

    return Numbers(balls)


# Noise on a lattice

#: An entry of a point or a shift counts as a multiple of its unit if its distance from a multiple
#: is at most this share of the sum of the moduli of the numbers from which it was computed.
ROUNDING = 1e-13


class LatticeNoise(abc.ABC):
    """Noise with uncorrelated coordinates on whole multiples of `units` (m,)."""

    units: FloatArray

    sampler = Exact()

    @property
    def dimension(self) -> int:
        return len(self.units)

    @abc.abstractmethod
    def variances(self) -> FloatArray:
        """Variance of each coordinate (m,)."""

    def covariance(self) -> FloatArray:
        return np.diag(self.variances())

    def second_moment(self) -> Estimate:
        return Estimate.exact(float(self.variances().sum()))

    @abc.abstractmethod
    def _log_ratio(self, points: FloatArray, shifts: FloatArray) -> FloatArray:
        """The result of `log_density_ratio` for shifts in the lattice."""

    def log_density_ratio(self, points: FloatArray, shifts: FloatArray) -> FloatArray:
        """log P(Z = z) - log P(Z = z - s), (b,), for rows of `points` and `shifts` (b, m).

        For s in the lattice, all z are taken as lattice points, as float64 sums may have rounding
        errors. Else it is inf if z is in the lattice, -inf if z - s is, and nan if neither is.
        """
        points = batch(points, self.dimension, "points")
        shifts = batch(shifts, self.dimension, "shifts")
        sizes = np.abs(points) + np.abs(shifts)
        cases = [
            self._inside(shifts, np.abs(shifts)),
            self._inside(points, sizes),
            self._inside(points - shifts, sizes),
        ]
        infinite = np.full(len(points), np.inf)
        return np.select(cases, [self._log_ratio(points, shifts), infinite, -infinite], np.nan)

    def _inside(self, values: FloatArray, sizes: FloatArray) -> BoolArray:
        """Whether rows of `values` (b, m), from numbers of total modulus `sizes`, are possible."""
        off = np.abs(values - self.units * np.rint(values / self.units))
        return np.asarray((off <= ROUNDING * sizes).all(axis=1))


@dataclass(frozen=True, eq=False)
class GeometricNoise(LatticeNoise):
    """Independent two-sided geometric noise on whole multiples of a unit in every coordinate.

    Z_i = u_i G_i with P(G_i = j) = q_i^|j| (1 - q_i) / (1 + q_i) for all whole numbers j, with
    q_i = exp(-u_i / b). So P(Z = z) is proportional to exp(-||z||_1 / b) on the lattice of all z
    whose coordinate i is a whole multiple of the unit u_i.
    """

    units: FloatArray = field(repr=False)
    scale: float

    def __post_init__(self) -> None:
        units = freeze(self, "units", ndim=1)
        if not units.size or not (units > 0).all():
            raise ValueError(f"units must be a vector of numbers above 0, got {units!r}")
        object.__setattr__(self, "scale", positive(self.scale, "scale"))

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """O(m) per draw: G is a difference of floors of exponential variables of mean b / u."""
        means = self.scale / self.units
        shape = (2, size, self.dimension)
        first, second = np.floor(means * rng.standard_exponential(shape))
        return np.asarray(self.units * (first - second))

    def variances(self) -> FloatArray:
        rates = self.units / self.scale
        # exp(-x) / (1 - exp(-x))^2, written so that it is accurate for small x and 0 for large x.
        return np.asarray(2 * np.exp(-rates) * (self.units / np.expm1(-rates)) ** 2)

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

    def _log_ratio(self, points: FloatArray, shifts: FloatArray) -> FloatArray:
        moved = (np.abs(points - shifts) - np.abs(points)).sum(axis=1)
        return np.asarray(moved / self.scale)


@exact_numbers.register
def _exact_geometric(noise: GeometricNoise) -> Numbers:
    """The units times differences of floor(E b / u), with exponential variables E."""
    scale, units = arb(noise.scale), dyadic(noise.units)

    def balls(draw: Draw) -> Vector:
        pairs = exponentials(2 * len(units), draw)
        firsts, seconds = pairs[: len(units)], pairs[len(units) :]
        found = []
        for unit, first, second in zip(units, firsts, seconds, strict=True):
            mean = scale / unit  # rounded, so it is computed again at every precision
            found.append(unit * (whole_part(mean * first) - whole_part(mean * second)))
        return found

    return Numbers(balls)


#: Largest number of coordinates: of more, one is nearly always moved unless epsilon is above 70.
MOST_COORDINATES = 64


@dataclass(frozen=True, eq=False)
class LatticeBoxNoise(LatticeNoise):
    """K-norm noise of a box on a lattice: P(Z = z) is proportional to exp(-epsilon k(z)).

    Coordinate i of z is a whole multiple of the unit u_i, and k(z) is the largest of the
    ceil(|z_i| / (c_i u_i)), the least number of lattice vectors in the box {v: |v_i| <= c_i u_i}
    that add up to z. A shift by such a vector changes k by at most 1.
    """

    units: FloatArray = field(repr=False)
    counts: Sequence[int] = field(repr=False)
    epsilon: float

    def __post_init__(self) -> None:
        units = freeze(self, "units", ndim=1)
        if not 0 < len(units) <= MOST_COORDINATES or not (units > 0).all():
            raise ValueError(f"units must be 1 to {MOST_COORDINATES} numbers above 0, got {units}")
        counts = tuple(whole(count, "counts", minimum=0) for count in self.counts)
        if len(counts) != len(units) or not any(counts):
            raise ValueError(f"counts must be {len(units)} numbers, not all 0, got {self.counts!r}")
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))

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
        terms = rng.choice(self.dimension + 1, size=size, p=self._shares)
        steps = np.floor(rng.standard_exponential((size, self.dimension + 1)) / self.epsilon)
        used = np.arange(self.dimension + 1) <= terms[:, None]
        radii = terms + np.where(used, steps, 0.0).sum(axis=1)
        reach = radii[:, None] * np.array(self.counts, dtype=np.float64)
        places = np.floor(rng.random((size, self.dimension)) * (2 * reach + 1)) - reach
        return np.asarray(self.units * places)

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

    def _log_ratio(self, points: FloatArray, shifts: FloatArray) -> FloatArray:
        return self.epsilon * (self._norms(points - shifts) - self._norms(points))

    def _inside(self, values: FloatArray, sizes: FloatArray) -> BoolArray:
        # Coordinates with c_i = 0 get no noise.
        still = (np.array(self.counts) == 0) & (np.abs(values) > ROUNDING * sizes)
        return np.asarray(super()._inside(values, sizes) & ~still.any(axis=1))

    def _norms(self, points: FloatArray) -> FloatArray:
        """Array (b,) of k(z), where z is the lattice point nearest to a row of `points` (b, m)."""
        counts = np.array(self.counts, dtype=np.float64)
        moving = counts > 0
        multiples = np.abs(np.rint(points / self.units))[:, moving]
        return np.asarray(np.ceil(multiples / counts[moving]).max(axis=1))


@exact_numbers.register
def _exact_lattice_box(noise: LatticeBoxNoise) -> Numbers:
    coefficients, units, epsilon = noise.coefficients, dyadic(noise.units), arb(noise.epsilon)

    def balls(draw: Draw) -> Vector:
        odds = 1 / (epsilon.exp() - 1)
        weights = [a * odds**j for j, a in enumerate(coefficients)]
        mark, passed, term = draw.uniform() * ball_sum(weights), weights[0], 0
        while term + 1 < len(weights) and not decided_below(mark, passed):
            term += 1
            passed += weights[term]
        steps = [whole_part(x / epsilon) for x in exponentials(term + 1, draw)]
        radius = term + sum(steps)
        places = [whole_number(2 * radius * c + 1, draw) - radius * c for c in noise.counts]
        return [unit * place for unit, place in zip(units, places, strict=True)]

    return Numbers(balls)
