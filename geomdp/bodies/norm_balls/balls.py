"""The Euclidean ball and the cross-polytope, centred at 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp.bodies.base import Body
from geomdp.bodies.gaussian_vectors import mean_gaussian_modulus, mean_gaussian_norm
from geomdp.bodies.norm_balls.boxes import axes_of
from geomdp.bodies.norm_balls.ellipsoids import Ellipsoid
from geomdp.bodies.norm_balls.lp_balls import NormBall, lp_ball_points
from geomdp.bodies.norm_balls.positive_parts import exit_time, nearest_in_corner
from geomdp.bodies.norm_balls.unit_ball import ball_chord, unit_ball_points


@dataclass(frozen=True, init=False)
class Ball(NormBall):
    """The Euclidean ball {x in R^m : ||x||_2 <= r}.

    Its verbs (methods of `Body`) are closed forms that cost O(m) per point. It implements neither
    `facets` nor `vertex_list`.

    Parameters
    ----------
    dimension : int
        m, at least 1.
    radius : float
        r, finite and above 0.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> ball = gd.bodies.Ball(dimension=2, radius=5.0)
    >>> ball.gauge(np.array([[3.0, 4.0]])).tolist()
    [1.0]
    >>> ball.project(np.array([[6.0, 8.0]])).round(6).tolist()
    [[3.0, 4.0]]
    >>> round(ball.volume(), 3)
    78.54
    """

    def __init__(self, dimension: int, radius: float = 1.0) -> None:
        super().__init__(2.0, dimension, radius)

    def support(self, directions: FloatArray) -> FloatArray:
        """r ||u||_2."""
        return np.asarray(self.r * np.linalg.norm(directions, axis=1))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """r u / ||u||_2, or r e_1 for u = 0."""
        # First divide by the largest entry, because the squares of tiny or huge entries underflow
        # or overflow.
        largest = np.abs(directions).max(axis=1, keepdims=True, initial=0.0)
        unit = np.divide(directions, largest, out=np.zeros_like(directions), where=largest > 0)
        unit[largest[:, 0] == 0, 0] = 1.0
        return np.asarray(self.r * unit / np.linalg.norm(unit, axis=1, keepdims=True))

    def gauge(self, points: FloatArray) -> FloatArray:
        """||x||_2 / r."""
        return np.asarray(np.linalg.norm(points, axis=1) / self.r)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Roots t of ||x + t u||^2 = r^2; points outside by rounding count as boundary points."""
        return ball_chord(points / self.r, directions / self.r)

    def project(self, points: FloatArray) -> FloatArray:
        """x for points x inside the ball, and r x / ||x||_2 for points outside."""
        norms = np.linalg.norm(points, axis=1, keepdims=True)
        return np.asarray(points * (self.r / np.maximum(norms, self.r)))

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """r U^(1/m) times a uniform direction, with U uniform on [0, 1]; exact (SAM-4)."""
        return self.r * unit_ball_points(n, self.m, rng)

    def second_moment(self) -> FloatArray:
        """r^2 / (m + 2) times the identity (JL-L14)."""
        return self.r**2 / (self.m + 2) * np.eye(self.m)

    def difference(self) -> Body:
        return Ball(self.m, 2 * self.r)

    def linear_image(self, matrix: FloatArray) -> Body:
        return Ellipsoid(self.r * matrix)

    def gaussian_width(self) -> float:
        """r E ||g||_2 for a standard Gaussian vector g."""
        return mean_gaussian_norm(self.m) * self.r


@dataclass(frozen=True, init=False)
class CrossPolytope(NormBall):
    """The l1 ball {x in R^m : ||x||_1 <= r}, the hull of the points +-r e_i.

    Its verbs are closed forms that cost at most O(m log m) per point, except the quadrature
    `gaussian_width`. It implements neither `facets` nor `vertex_list`.

    Parameters
    ----------
    dimension : int
        m, at least 1.
    radius : float
        r, finite and above 0.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> octahedron = gd.bodies.CrossPolytope(3)
    >>> octahedron.gauge(np.array([[0.5, -0.5, 0.0]])).tolist()
    [1.0]
    >>> octahedron.extreme_point(np.array([[1.0, -3.0, 2.0]])).tolist()
    [[0.0, -1.0, 0.0]]
    >>> round(octahedron.volume(), 6)
    1.333333
    """

    def __init__(self, dimension: int, radius: float = 1.0) -> None:
        super().__init__(1.0, dimension, radius)

    def support(self, directions: FloatArray) -> FloatArray:
        """r ||u||_inf."""
        return np.asarray(self.r * np.abs(directions).max(axis=1))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """sign(u_i) r e_i, where u_i is the first entry of u of largest modulus."""
        winners = np.abs(directions).argmax(axis=1)
        rows = np.arange(len(directions))
        points = np.zeros_like(directions)
        points[rows, winners] = np.copysign(self.r, directions[rows, winners])
        return points

    def gauge(self, points: FloatArray) -> FloatArray:
        """||x||_1 / r."""
        return np.asarray(np.abs(points).sum(axis=1) / self.r)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends of {t : ||x + t u||_1 <= r}, by sorting the t at which entries change sign."""
        both = np.hstack([points, -points])
        ways = np.hstack([directions, -directions])
        return -exit_time(both, -ways, self.r), exit_time(both, ways, self.r)

    def project(self, points: FloatArray) -> FloatArray:
        """Points outside are soft-thresholded to l1 norm r."""
        return np.asarray(np.copysign(nearest_in_corner(np.abs(points), self.r), points))

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """r x / (||x||_1 + E) for Laplace entries of x and exponential E; exact (SAM-4, p = 1)."""
        return self.r * lp_ball_points(n, self.m, 1.0, rng)

    def second_moment(self) -> FloatArray:
        """2 r^2 / ((m + 1) (m + 2)) times the identity (JL-L14)."""
        return 2 * self.r**2 / ((self.m + 1) * (self.m + 2)) * np.eye(self.m)

    def difference(self) -> Body:
        return CrossPolytope(self.m, 2 * self.r)

    def linear_image(self, matrix: FloatArray) -> Body | None:
        """A cross-polytope if the rows of `matrix` are distinct e_j times c or -c; else None."""
        columns = axes_of(matrix)
        if columns is None:
            return None
        lengths = np.abs(matrix[np.arange(len(matrix)), columns])
        return CrossPolytope(len(matrix), self.r * lengths[0]) if np.ptp(lengths) == 0 else None

    def gaussian_width(self) -> float:
        """r E ||g||_inf for a standard Gaussian vector g."""
        return mean_gaussian_modulus(self.m) * self.r
