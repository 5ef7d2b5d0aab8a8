"""How many records a volume packing could exclude at most, under pure differential privacy.

A volume packing (Hardt and Talwar 2010) uses data sets of n records, any two of which differ in at
most t n records. Let A be the set of their answers, projected on i dimensions, and let K be the
hull of all answers. All differences of points of A are in t (K - K). So by the Brunn-Minkowski
inequality the volume radius of A is at most t vr_i((K - K) / 2). It is also at most vr_i(K). Here
vr_i(K) is the largest volume radius of a projection of K on i dimensions. If all these data sets
share (1 - t) n records, A is in t K up to a shift. The volume radius of A is then at most
t vr_i(K), which is no larger than the first bound. Answers may be projected, because a projection
does not increase errors.

Take a uniform prior on A. By group privacy, the density of any output changes by at most a factor
R = e^(epsilon t n) between two points of A. So the posterior has a density between m and R m for
some m. Among all such densities on bodies with the volume of A, the mean p-th power of the distance
to a fixed point is least for a ball around this point, with density R m in a smaller ball and m
outside. The power p is 2 for root mean squared errors and 1 for other errors. Let rho be the volume
radius of A in units of the error alpha. Divide the mean p-th power of the distance by
rho^p i / (i + p), its value for R = 1. If the smaller ball has a share u of the volume, then the
quotient is

    (1 + (R - 1) u^(1 + p/i)) / (1 + (R - 1) u).

It is least where it equals (1 + p/i) u^(p/i). An error of alpha is excluded if this least value is
above y = (1 + p/i) rho^-p. Solved for R, this is

    R - 1  <  (1 - y) (i/p) ((1 + p/i) / y)^(1 + i/p),     for y < 1.

Only the volume of A and group privacy for the largest distance enter. So no argument from these two
facts and a uniform prior excludes more records: Markov's inequality, as in JL-L6, only loses. The
largest n over t and i is a **ceiling**, not a bound: the answers of data sets of n records need not
fill a body of this volume, and the volume radii are replaced by upper bounds.

For k queries and a Euclidean norm, an error of alpha per query is a distance of alpha sqrt(k). For
the largest error, the unit ball is the projection of the cube [-1, 1]^k, which has at least the
volume 2^i (Vaaler 1979). This makes the ceiling cruder, because the same projection need not be the
best for K and the worst for the cube.

The upper bounds on vr_i are the least of three:

* half the diameter, by the isodiametric inequality.
* Urysohn's bound w(T K) / mu_i, times the geometric mean of the i largest singular values of T^-1,
  for linear maps T that make K rounder. Here w is the Gaussian width, and mu_i is the mean norm of
  a standard Gaussian vector in R^i. A projection of K is a linear image of a projection of T K.
  The bodies K and (K - K) / 2 have the same width w, so the bound holds for both.
* for K = conv(v_1, ..., v_N): each point of a projection of K, but for a set of volume 0, is in at
  least N - i of the simplices of i + 1 projected points. By the formula of Cauchy and Binet, the
  squared volumes of all these simplices add up to N det(P S P^T) / i!^2. Here P is the projection
  and S the sum of (v_j - mean)(v_j - mean)^T. The determinant is at most the product of the i
  largest eigenvalues of S. So vol(P K) <= (C(N, i + 1) N det(P S P^T))^(1/2) / (i! (N - i)), with
  equality for a simplex. For (K - K) / 2 multiply by C(2i, i) / 2^i (Rogers and Shephard 1957).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

import geomdp as gd
from experiments.engine.cells import Row
from experiments.lower_bounds.principal_axes import principal_coordinates

FloatArray = npt.NDArray[np.float64]

#: The map T divides each principal axis by a power of the standard deviation of the points along
#: it. These are the powers.
POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
#: Largest probability that, for any of the powers, the upper limit of a simulated width is too low.
LEVEL = 1e-6
#: Shares t that are tried.
SHARES = np.geomspace(1e-4, 1.0, 1000)[:, None]
#: Largest size of a universe whose elements are listed.
MOST_ELEMENTS = 1 << 11


@dataclass(frozen=True)
class Radii:
    """Upper bounds on volume radii for K of dimension r. Entry i - 1 is for i dimensions.

    Parameters
    ----------
    body : (r,) array
        Upper bounds on vr_i(K).
    half_difference : (r,) array
        Upper bounds on vr_i((K - K) / 2).
    """

    body: FloatArray
    half_difference: FloatArray

    def ceiling(
        self, *, epsilon: float, alpha: float, metric: gd.bounds.Metric, queries: int
    ) -> float:
        """The largest n, not rounded, for which an error `alpha` per query could be excluded."""
        dimensions = np.arange(1, len(self.body) + 1)
        unit: float | FloatArray = math.sqrt(queries)
        if isinstance(metric, gd.bounds.WorstCase):
            unit = np.array([2 / gd.geometry.unit_ball_volume(i) ** (1 / i) for i in dimensions])
        radii = np.minimum(SHARES * self.half_difference, self.body) / (alpha * unit)
        shares = (1 + metric.moment / dimensions) * radii**-metric.moment
        return float((log_ratio(shares, dimensions, metric.moment) / (epsilon * SHARES)).max())


def log_ratio(shares: FloatArray, dimensions: npt.NDArray[np.int_], moment: int) -> FloatArray:
    """ln R for y = `shares`, in `dimensions` i with the `moment` p; 0 for y >= 1."""
    below = np.minimum(shares, 1.0)
    with np.errstate(divide="ignore"):
        gained = np.log1p(-below) + np.log(dimensions / moment)
    powers = (1 + dimensions / moment) * (np.log1p(moment / dimensions) - np.log(below))
    return np.asarray(np.logaddexp(0.0, gained + powers))


def volume_columns(
    Q: gd.workloads.Workload, *, epsilon: float, alpha: float, metric: gd.bounds.Metric
) -> Row:
    """Column `volume`: how many records a volume packing could exclude at most, not rounded."""
    found = radii(Q).ceiling(epsilon=epsilon, alpha=alpha, metric=metric, queries=Q.n_queries)
    return {"volume": found}


@lru_cache(maxsize=16)
def radii(Q: gd.workloads.Workload) -> Radii:
    """Upper bounds on the volume radii for the hull K of the answers of a workload."""
    size, half = Q.universe.size, Q.l2_diameter() / 2
    if size is None or size > MOST_ELEMENTS:
        K = gd.sensitivity_polytope(Q)
        bound = np.minimum(half, urysohn(K, np.ones(Q.affine_hull().dimension)))
        return Radii(bound, bound)
    points = principal(np.unique(gd.workloads.explicit_answers(Q).round(12), axis=0))
    spread = points.std(axis=0)
    widths = [
        urysohn(gd.bodies.VPolytope(points / spread**power), spread**power) for power in POWERS
    ]
    bound = np.minimum(half, np.min(widths, axis=0))
    hull = hull_radii(points)
    doubled = [(math.comb(2 * i, i) / 2**i) ** (1 / i) for i in range(1, len(hull) + 1)]
    return Radii(np.minimum(bound, hull), np.minimum(bound, hull * doubled))


def principal(points: FloatArray) -> FloatArray:
    """Coordinates (N, r) of `points` (N, k) along their r principal axes, from the mean.

    The axes are in decreasing order of the standard deviation.
    """
    return principal_coordinates(points - points.mean(axis=0))


def urysohn(body: gd.bodies.Body, stretch: FloatArray) -> FloatArray:
    """Urysohn's upper bounds (r,) on the volume radii of T^-1 `body`, for T^-1 = diag(`stretch`).

    The entries of `stretch` are in decreasing order.
    """
    width = gd.gaussian_width(body, rng=0, level=LEVEL / len(POWERS)).interval[1]
    dimensions = np.arange(1, len(stretch) + 1)
    norms = [gd.geometry.mean_gaussian_norm(i) for i in dimensions.tolist()]
    return np.asarray(np.exp(np.log(stretch).cumsum() / dimensions) * width / norms)


def hull_radii(points: FloatArray) -> FloatArray:
    """Upper bounds (r,) by simplices on the volume radii of the hull of `points` (N, r).

    The points are in `principal` coordinates.
    """
    count, rank = points.shape
    logs = np.log((points**2).sum(axis=0)).cumsum()
    found = []
    for i in range(1, rank + 1):
        squares = math.log(math.comb(count, i + 1)) + math.log(count) + logs[i - 1]
        volume = squares / 2 - math.lgamma(i + 1) - math.log(count - i)
        found.append(math.exp((volume - math.log(gd.geometry.unit_ball_volume(i))) / i))
    return np.array(found)
