"""The Euclidean ball and the cross-polytope, centred at 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import batch, positive, whole
from geomdp.bodies.arguments import rays
from geomdp.bodies.base import Body
from geomdp.bodies.norm_balls.lp_balls import log_lp_ball_volume, lp_ball_points
from geomdp.bodies.norm_balls.positive_parts import exit_time, nearest_in_corner


@dataclass(frozen=True, init=False, repr=False)
class Ball(Body):
    """The Euclidean ball {x in R^m : ||x||_2 <= r}. Every verb in closed form, O(m) per point.

    Parameters
    ----------
    dimension : int
        m, at least 1.
    radius : float
        r, finite and above 0.
    """

    m: int
    r: float

    def __init__(self, dimension: int, radius: float = 1.0) -> None:
        object.__setattr__(self, "m", whole(dimension, "dimension"))
        object.__setattr__(self, "r", positive(radius, "radius"))

    def __repr__(self) -> str:
        return f"Ball({self.m}, radius={self.r:g})"

    @property
    def dimension(self) -> int:
        """Dimension m."""
        return self.m

    @property
    def symmetric(self) -> bool:
        """True."""
        return True

    def support(self, directions: FloatArray) -> FloatArray:
        """r ||u||_2."""
        directions = batch(directions, self.m, "directions")
        return np.asarray(self.r * np.linalg.norm(directions, axis=1))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """r u / ||u||_2; the first axis point for u = 0."""
        directions = batch(directions, self.m, "directions")
        # Scaling by the largest entry first keeps tiny and huge directions from losing their norm.
        largest = np.abs(directions).max(axis=1, keepdims=True, initial=0.0)
        unit = np.divide(directions, largest, out=np.zeros_like(directions), where=largest > 0)
        unit[largest[:, 0] == 0, 0] = 1.0
        return np.asarray(self.r * unit / np.linalg.norm(unit, axis=1, keepdims=True))

    def gauge(self, points: FloatArray) -> FloatArray:
        """||x||_2 / r."""
        points = batch(points, self.m, "points")
        return np.asarray(np.linalg.norm(points, axis=1) / self.r)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Roots t of ||x + t u||^2 = r^2, clipped at 0 for points outside by rounding."""
        points, directions = rays(points, directions, self.m)
        return ball_chord(points / self.r, directions / self.r)

    def project(self, points: FloatArray) -> FloatArray:
        """Points outside are scaled to norm r."""
        points = batch(points, self.m, "points")
        norms = np.linalg.norm(points, axis=1, keepdims=True)
        return np.asarray(points * (self.r / np.maximum(norms, self.r)))

    def radius(self) -> float:
        """Radius r."""
        return self.r

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Uniform directions times U^(1/m), exact (SAM-4)."""
        return self.r * unit_ball_points(n, self.m, rng)

    def second_moment(self) -> FloatArray:
        """r^2 / (m + 2) times the identity (JL-L14)."""
        return self.r**2 / (self.m + 2) * np.eye(self.m)

    def volume(self) -> float:
        """pi^(m/2) r^m / Gamma(m/2 + 1) (GEN-4)."""
        return math.exp(log_unit_ball_volume(self.m) + self.m * math.log(self.r))

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """One second-order cone."""
        import cvxpy as cp

        return [cp.norm(variable, 2) <= self.r]


@dataclass(frozen=True, init=False, repr=False)
class CrossPolytope(Body):
    """The l1 ball {x in R^m : ||x||_1 <= r}, the hull of +-r e_i. Every verb in closed form.

    Parameters
    ----------
    dimension : int
        m, at least 1.
    radius : float
        r, finite and above 0.
    """

    m: int
    r: float

    def __init__(self, dimension: int, radius: float = 1.0) -> None:
        object.__setattr__(self, "m", whole(dimension, "dimension"))
        object.__setattr__(self, "r", positive(radius, "radius"))

    def __repr__(self) -> str:
        return f"CrossPolytope({self.m}, radius={self.r:g})"

    @property
    def dimension(self) -> int:
        """Dimension m."""
        return self.m

    @property
    def symmetric(self) -> bool:
        """True."""
        return True

    def support(self, directions: FloatArray) -> FloatArray:
        """r ||u||_inf."""
        directions = batch(directions, self.m, "directions")
        return np.asarray(self.r * np.abs(directions).max(axis=1))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """+-r e_i at the first entry of largest modulus."""
        directions = batch(directions, self.m, "directions")
        winners = np.abs(directions).argmax(axis=1)
        rows = np.arange(len(directions))
        points = np.zeros_like(directions)
        points[rows, winners] = np.copysign(self.r, directions[rows, winners])
        return points

    def gauge(self, points: FloatArray) -> FloatArray:
        """||x||_1 / r."""
        points = batch(points, self.m, "points")
        return np.asarray(np.abs(points).sum(axis=1) / self.r)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends of {t : ||x + t u||_1 <= r} by sorting the sign changes, O(m log m)."""
        points, directions = rays(points, directions, self.m)
        both = np.hstack([points, -points])
        ways = np.hstack([directions, -directions])
        return -exit_time(both, -ways, self.r), exit_time(both, ways, self.r)

    def project(self, points: FloatArray) -> FloatArray:
        """Soft thresholding at the level that gives norm r, by sorting."""
        points = batch(points, self.m, "points")
        return np.asarray(np.copysign(nearest_in_corner(np.abs(points), self.r), points))

    def radius(self) -> float:
        """Radius r."""
        return self.r

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Signed exponentials over their sum and one more exponential, exact (SAM-4 with p = 1)."""
        return self.r * lp_ball_points(n, self.m, 1.0, rng)

    def second_moment(self) -> FloatArray:
        """2 r^2 / ((m + 1) (m + 2)) times the identity (JL-L14)."""
        return 2 * self.r**2 / ((self.m + 1) * (self.m + 2)) * np.eye(self.m)

    def volume(self) -> float:
        """(2 r)^m / m!."""
        return math.exp(log_lp_ball_volume(self.m, 1.0) + self.m * math.log(self.r))

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """One l1 norm, linear after reduction."""
        import cvxpy as cp

        return [cp.norm1(variable) <= self.r]


def log_unit_ball_volume(dimension: int) -> float:
    """Logarithm of kappa_m = pi^(m/2) / Gamma(m/2 + 1), the volume of the unit ball (GEN-4)."""
    return log_lp_ball_volume(dimension, 2.0)


def unit_ball_points(n: int, dimension: int, rng: np.random.Generator) -> FloatArray:
    """Independent uniform points (n, dimension) of the unit ball: P(norm <= s) = s^dimension."""
    points = rng.standard_normal((n, dimension))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points * rng.random((n, 1)) ** (1 / dimension))


def ball_chord(points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends (lo, hi) of {t : ||x + t u||_2 <= 1} for rows x in the unit ball, u != 0.

    The root of larger modulus comes from the formula without cancellation, the other from the
    product of the roots.
    """
    square = np.einsum("bm,bm->b", directions, directions)
    slope = np.einsum("bm,bm->b", points, directions)
    below = np.minimum(np.einsum("bm,bm->b", points, points) - 1, 0.0)
    far = -(slope + np.copysign(np.sqrt(slope**2 - square * below), slope))
    first = far / square
    second = np.divide(below, far, out=np.zeros_like(far), where=far != 0)
    return np.minimum(first, second), np.maximum(first, second)
