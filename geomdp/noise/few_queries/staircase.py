"""Staircase noise on one number: a density of constant steps, with the least variance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import batch, positive
from geomdp.geometry.results import Estimate
from geomdp.privacy import Exact

#: Above this epsilon, exp(-epsilon) comes near the least float, which is about exp(-745).
LARGEST_EPSILON = 512.0


def checked_epsilon(epsilon: float) -> float:
    """`epsilon` as a float in (0, 512]; else ``ValueError``."""
    epsilon = positive(epsilon, "epsilon")
    if epsilon > LARGEST_EPSILON:
        raise ValueError(
            f"epsilon must be at most {LARGEST_EPSILON:g}, got {epsilon!r}: at the limit, the "
            "noise is already far below the rounding error of answers"
        )
    return epsilon


@dataclass(frozen=True)
class StaircaseNoise:
    """The noise on one real number with the least variance under epsilon-differential privacy.

    Let D = `width`, and let g be the share below. The density at x is proportional to
    exp(-epsilon k(|x|)), where k(r) = floor(r / D) if r mod D < g D, else k(r) = floor(r / D) + 1.
    For numbers at most D apart, the values of k differ by at most 1. So if a number s changes by at
    most D between neighbours, s + Z is epsilon-differentially private.

    With b = exp(-epsilon), the share is

        g = ((b (1 + b) / 2)^(1/3) - b) / (1 - b).

    This g minimises the variance. For large epsilon the standard deviation is near D (b / 2)^(1/3),
    and that of Laplace noise is 2^(1/2) D / epsilon.

    Parameters
    ----------
    width : float
        Largest change D > 0 of the number, a sum over records, between neighbours.
    epsilon : float
        Privacy parameter, above 0 and at most 512.

    References
    ----------
    Geng-Viswanath 2014, "The optimal mechanism in differential privacy"; formula sheet GEN-3.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> noise = gd.noise.StaircaseNoise(width=1.0, epsilon=3.0)
    >>> round(noise.share, 4), noise.variances().round(4)
    (0.2599, array([0.1527]))

    Laplace noise with the same guarantee has variance 2 / 9. Draws from a seeded generator are a
    simulation, not a private release:

    >>> noise.sample(np.random.default_rng(0), 3).shape
    (3, 1)
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
        """The share g of a step, between 0 and 1/2."""
        b = math.exp(-self.epsilon)
        # With c = (b (1 + b) / 2)^(1/3), g is (c - b) / (1 - b). Numerator and denominator are
        # multiplied by c^2 + c b + b^2, because for small epsilon c - b and 1 - b would lose all
        # digits.
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

    def log_density(self, points: FloatArray) -> FloatArray:
        """log f(z) for the density f, for each row z of `points`, an array with one column."""
        b = math.exp(-self.epsilon)
        highest = -math.expm1(-self.epsilon) / (
            2 * self.width * (self.share + b * (1 - self.share))
        )
        return np.asarray(math.log(highest) - self.epsilon * self._steps(points, "points"))

    def log_density_ratio(self, points: FloatArray, shifts: FloatArray) -> FloatArray:
        """log f(z) - log f(z - s) for the density f; both arrays have one column."""
        points, shifts = batch(points, 1, "points"), batch(shifts, 1, "shifts")
        falls = self._steps(points - shifts, "points") - self._steps(points, "points")
        return np.asarray(self.epsilon * falls)

    def _steps(self, points: FloatArray, name: str) -> FloatArray:
        sizes = np.abs(batch(points, 1, name)[:, 0]) / self.width
        whole = np.floor(sizes)
        return np.asarray(whole + (sizes - whole >= self.share))
