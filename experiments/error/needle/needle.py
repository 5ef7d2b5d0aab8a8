"""A body, and worst-case data, for which the error of the JL mechanism has the rate of its theorem.

The body K is an ellipsoid in R^k with one semi-axis 1 and all others k^(-1/2): a needle in a thin
ball. Its Gaussian width w(K) is at most 2^(1/2), and about 1.35 for large k. Theorem 21 of
Nikolov 2022 (formula sheet JL-T21) uses K-norm noise. Images of the body under linear maps are
ellipsoids, for which this noise has an exact sampler. After a map with m rows, the noise on mean
answers has a root mean square length of about 2 m^(1/2) w(K) / (eps n).
"""

from __future__ import annotations

import enum
import math
from functools import cache

import numpy as np
import numpy.typing as npt

import geomdp as gd

#: Records are scaled by this factor, so that rounding cannot take them out of the unit ball.
INSIDE = 1 - 1e-12


class Route(enum.StrEnum):
    """How the queries are answered, in the order of the legend."""

    GAUSSIAN = "Gaussian map"
    RADEMACHER = "sign map"
    SPARSE = "sparse map"
    BALL = "Gaussian map, ball noise"
    UNMAPPED = "no map, projected"
    ADDITIVE = "no map, not projected"


LAWS: dict[Route, gd.geometry.JLLaw] = {
    Route.GAUSSIAN: gd.geometry.GaussianMap(),
    Route.RADEMACHER: gd.geometry.RademacherMap(),
    Route.SPARSE: gd.geometry.SparseMap(1 / 3),
}


def axes_of(k: int) -> npt.NDArray[np.float64]:
    """Semi-axes of the needle, shape (k,)."""
    return np.where(np.arange(k) < 1, 1.0, k**-0.5)


@cache
def needle(k: int) -> gd.workloads.LinearMap:
    """Means of k coordinates on the unit ball, where all but the first are divided by k^(1/2)."""
    return gd.workloads.LinearMap(gd.workloads.Means(k), np.diag(axes_of(k)))


@cache
def width(k: int) -> float:
    """Gaussian width of the needle, in closed form."""
    return gd.gaussian_width(gd.sensitivity_polytope(needle(k))).value


@cache
def knorm(k: int, n: int, epsilon: float) -> gd.mechanisms.KNorm:
    """K-norm noise of the needle, which is the same for all maps."""
    return gd.mechanisms.KNorm(needle(k), n=n, privacy=gd.PureDP(epsilon), exact=True)


def mechanism(
    route: Route, k: int, n: int, epsilon: float, rows: int, rng: np.random.Generator
) -> gd.mechanisms.Mechanism:
    """The mechanism of a route; `rng` draws the public map of a route that has one."""
    if route is Route.BALL:
        ball = gd.mechanisms.Ball(needle(k), n=n, privacy=gd.PureDP(epsilon))
        return gd.mechanisms.JL(ball, rows, rng=rng)
    inner = knorm(k, n, epsilon)
    match route:
        case Route.UNMAPPED:
            return gd.mechanisms.Projected(inner)
        case Route.ADDITIVE:
            return inner
        case _:
            return gd.mechanisms.JL(inner, rows, rng=rng, law=LAWS[route])


def worst_points(M: gd.mechanisms.Mechanism, k: int) -> npt.NDArray[np.float64]:
    """Two points of the unit ball with answers that the map hardly tells apart, shape (2, k).

    The image of a point is the map applied to its answers. Let a be the image of e_1, an end of the
    needle. The first point is the unit vector orthogonal to e_1 whose image has the largest inner
    product with -a. The second point is the multiple of e_1 in the unit ball whose image is nearest
    to the image of the first point. Without a map, the points are e_2 and 0. A sparse map can have
    a = 0; the points are then -e_1 and e_1.
    """
    points = np.zeros((2, k))
    if not isinstance(M, gd.mechanisms.JL):
        points[0, 1] = 1
        return points * INSIDE
    mapped = M.matrix * axes_of(k)
    end, thin = mapped[:, 0], mapped[:, 1:]
    if not end.any():
        points[:, 0] = [-1, 1]
        return points * INSIDE
    against = thin.T @ end
    points[0, 1:] = -against / np.linalg.norm(against)
    points[1, 0] = max(-1.0, (thin @ points[0, 1:]) @ end / (end @ end))
    return points * INSIDE


def squared_errors(
    M: gd.mechanisms.Mechanism, k: int, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """||M(X) - Q(X)||^2 of one release for data at each of the two points, shape (2,)."""
    found = []
    for point in worst_points(M, k):
        records = np.repeat(point[None], M.n, axis=0)
        error = M.release(records, rng=rng).answers - M.workload.answers(records)
        found.append(float(error @ error))
    return np.array(found)


def noise_factor(M: gd.mechanisms.JL, k: int, epsilon: float) -> float:
    """c2 of Theorem 21 for one map: (E||Z||^2)^(1/2) eps / (m^(1/2) w(K)) for noise Z on sums."""
    moment = M.inner.noise.second_moment().value
    return math.sqrt(moment / len(M.matrix)) * epsilon / width(k)
