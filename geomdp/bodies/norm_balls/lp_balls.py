"""Balls of l_p norms: their base class, and the ball for any finite exponent p."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import positive, real_number, whole
from geomdp.bodies.base import Body
from geomdp.bodies.oracles import Facets


@dataclass(frozen=True, init=False)
class NormBall(Body):
    """Base class of the balls {x in R^m : ||x||_p <= r} for 1 <= p < infinity."""

    m: int
    r: float
    p: float

    symmetric = True

    def __init__(self, exponent: float, dimension: int, radius: float = 1.0) -> None:
        number = real_number(exponent)
        if not (math.isfinite(number) and number >= 1):
            raise ValueError(f"exponent must be finite and at least 1, got {exponent!r}")
        object.__setattr__(self, "m", whole(dimension, "dimension"))
        object.__setattr__(self, "r", positive(radius, "radius"))
        object.__setattr__(self, "p", number)

    def _summary(self) -> str:
        return f"radius {self.r:g}"

    @property
    def dimension(self) -> int:
        return self.m

    def radius(self) -> float:
        """r for p <= 2, attained on the axes; m^(1/2 - 1/p) r for p above 2, on the diagonals."""
        return float(self.r * self.m ** max(0.0, 1 / 2 - 1 / self.p))

    def volume(self) -> float:
        """(2 Gamma(1 + 1/p) r)^m / Gamma(1 + m/p)."""
        return math.exp(log_lp_ball_volume(self.m, self.p) + self.m * math.log(self.r))

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """CVXPY replaces p by a fraction of denominator at most 1024."""
        import cvxpy as cp

        return [cp.pnorm(variable, self.p) <= self.r]

    def gauge_bound(self, l1: float, l2: float) -> float:
        """l1^s l2^(1 - s) / r, s = max(2 / p - 1, 0), by Littlewood's inequality for p < 2."""
        share = max(2 / self.p - 1, 0.0)
        return math.pow(l1, share) * math.pow(l2, 1 - share) / self.r


@dataclass(frozen=True, init=False)
class LpBall(NormBall):
    """The ball {x in R^m : ||x||_p <= r}, ||x||_p = (sum |x_i|^p)^(1/p), 1 <= p < infinity.

    Support function, extreme points, gauge, facets and exactly uniform points have closed forms and
    cost O(m) per point. Volume and second moment have closed forms, too. Chords are found by
    bisection. `project` is not implemented. For p = 1, p = 2 and infinite p use `CrossPolytope`,
    `Ball` and `Box.centred`, which have more closed forms. The sampler is SAM-4, from Barthe,
    Guedon, Mendelson and Naor (2005).

    Parameters
    ----------
    exponent : float
        p, at least 1 and finite.
    dimension : int
        m, at least 1.
    radius : float
        r, finite and above 0.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> ball = gd.bodies.LpBall(exponent=4, dimension=2)
    >>> ball.gauge(np.array([[1.0, 1.0]])).round(6).tolist()
    [1.189207]
    >>> round(ball.dual_exponent, 6), round(ball.radius(), 6)
    (1.333333, 1.189207)
    >>> ball.sample_uniform(5, np.random.default_rng(0)).shape
    (5, 2)
    """

    def _summary(self) -> str:
        return f"p {self.p:g}, radius {self.r:g}"

    @property
    def dual_exponent(self) -> float:
        """The q with 1/p + 1/q = 1; infinite for p = 1."""
        return self.p / (self.p - 1) if self.p > 1 else math.inf

    def support(self, directions: FloatArray) -> FloatArray:
        """r ||u||_q with the dual exponent q."""
        return self.r * lp_norms(directions, self.dual_exponent)

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """r sign(u_i) (|u_i| / ||u||_q)^(q - 1); r e_1 for u = 0, and a vertex for p = 1."""
        directions = directions.copy()
        directions[~directions.any(axis=1), 0] = 1.0
        return self.r * _polar(directions, self.dual_exponent)

    def gauge(self, points: FloatArray) -> FloatArray:
        """||x||_p / r."""
        return lp_norms(points, self.p) / self.r

    def facets(self, points: FloatArray) -> Facets:
        """Gauges, and normals sign(x_i) (|x_i| / ||x||_p)^(p - 1) / r; for x = 0 that of e_1."""
        away = points.copy()
        away[~away.any(axis=1), 0] = 1.0
        return Facets(self.gauge(points), _polar(away, self.p) / self.r)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        return self.r * lp_ball_points(n, self.m, self.p, rng)

    def second_moment(self) -> FloatArray:
        """r^2 E x_1^2 times the identity; see `lp_ball_variance`."""
        return self.r**2 * lp_ball_variance(self.m, self.p) * np.eye(self.m)

    def difference(self) -> Body:
        return LpBall(self.p, self.m, 2 * self.r)


def lp_norms(points: FloatArray, exponent: float) -> FloatArray:
    """The norms ||x||_p (b,) of rows of `points` (b, m) for p = `exponent`, without overflow."""
    sizes = np.abs(points)
    largest = sizes.max(axis=1, initial=0.0)
    if math.isinf(exponent):
        return np.asarray(largest)
    shares = np.divide(sizes, largest[:, None], out=np.zeros_like(sizes), where=sizes > 0)
    return np.asarray(largest * (shares**exponent).sum(axis=1) ** (1 / exponent))


def _polar(vectors: FloatArray, exponent: float) -> FloatArray:
    """Vectors y (b, m) with ||y||_q = 1, <y, x> = ||x||_p, for rows x != 0, 1/p + 1/q = 1."""
    if math.isinf(exponent):
        places = np.abs(vectors).argmax(axis=1)
        unit = np.zeros_like(vectors)
        rows = np.arange(len(vectors))
        unit[rows, places] = np.sign(vectors[rows, places])
        return unit
    shares = np.abs(vectors) / lp_norms(vectors, exponent)[:, None]
    return np.asarray(np.sign(vectors) * shares ** (exponent - 1))


def lp_ball_points(n: int, dimension: int, exponent: float, rng: np.random.Generator) -> FloatArray:
    """Uniform points g / (sum |g_i|^p + X)^(1/p) (n, m) of the unit l_p ball, for g_i with density
    proportional to e^(-|g|^p) and X ~ Exp(1) (SAM-4).

    Each g_i is G^(1/p) U with G ~ Gamma(1 + 1/p) and U uniform on [-1, 1], because the simpler draw
    of |g_i|^p from Gamma(1/p) would underflow for large p.
    """
    gammas = rng.standard_gamma(1 + 1 / exponent, (n, dimension))
    points = rng.uniform(-1, 1, (n, dimension)) * gammas ** (1 / exponent)
    powers = (np.abs(points) ** exponent).sum(axis=1) + rng.standard_exponential(n)
    return np.asarray(points / powers[:, None] ** (1 / exponent))


def lp_ball_variance(dimension: int, exponent: float) -> float:
    """E x_1^2 on the unit ball: Gamma(3/p) Gamma(m/p + 1) / (Gamma(1/p) Gamma((m + 2)/p + 1))."""
    p, m = exponent, dimension
    logs = math.lgamma(3 / p) - math.lgamma(1 / p) + math.lgamma(m / p + 1)
    return math.exp(logs - math.lgamma((m + 2) / p + 1))


def log_lp_ball_volume(dimension: int, exponent: float) -> float:
    """Logarithm of (2 Gamma(1 + 1/p))^m / Gamma(1 + m/p), the volume of the unit ball."""
    side = math.log(2) + math.lgamma(1 + 1 / exponent)
    return dimension * side - math.lgamma(1 + dimension / exponent)
