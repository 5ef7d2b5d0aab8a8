"""Gaussian mean width of a convex body, exact or with a certified interval.

Constants of Gaussian vectors and of the unit ball are public from here, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import probability, whole
from geomdp.bodies.balls import mean_gaussian_norm as mean_gaussian_norm
from geomdp.bodies.balls import mean_norm
from geomdp.bodies.balls import unit_ball_volume as unit_ball_volume
from geomdp.bodies.base import Body, checked_body
from geomdp.bodies.products import Product
from geomdp.geometry.results import Estimate

#: Entries of one batch of directions: 16 MB of float64.
BATCH_ENTRIES = 2**21


def gaussian_width(
    body: Body, rng: RandomState = None, samples: int = 4096, level: float = 1e-3
) -> Estimate:
    """Gaussian mean width w(K) = E max over x in K of <g, x>, g ~ N(0, I_m).

    The value is exact (up to a quadrature error near 1e-13) for balls, boxes, cross-polytopes,
    ellipsoids, regular simplices and segments, and for their images under scaling, shifting,
    isometric embedding, differences (w(K - K) = 2 w(K)) and products (w(K x L) = w(K) + w(L)). For
    other bodies the value is estimated from

        X_i = (h(g_i) + h(-g_i)) / 2,   h the support function,

    for independent Gaussian g_i. The mean of X_i, half the width of K along g_i, is w(K). The
    estimate is the mean of X_i - c (Y_i - E Y), with a fitted number c and the support function Y_i
    at g_i of an ellipsoid, fitted to at most 256 points of `extreme_point`, with known mean E Y. In
    measurements, this control variate divided the standard deviation by 1.3 to 3.4.

    Parameters
    ----------
    body : Body
        K in R^m, with a support function.
    rng : numpy Generator, int or None
        Randomness of the directions.
    samples : int
        Number of directions n, at least 2.
    level : float
        Bound on the probability that the interval misses w(K), in (0, 1).

    Returns
    -------
    Estimate
        The value, its standard error and an interval. X_i is a Lipschitz function of g_i with
        constant D/2 for the diameter D of K, so by Gaussian concentration the mean of the X_i
        satisfies Pr[|mean - w| >= t] <= 2 exp(-2 n t^2 / D^2). The interval is
        mean -+ D sqrt(ln(2 / level) / (2 n)), cut at 0. No interval around the value, which is
        usually more accurate than this mean, is proved.

        The code replaces D by an upper bound. It equals D for few listed vertices, and for
        symmetric bodies with an exact radius. For many listed vertices, it is twice the largest
        distance of a vertex from their mean, for most other bodies the smaller of twice
        `Body.radius` and the diagonal of the bounding box (2 m support values).

    Raises
    ------
    MissingOracle
        If K has no support function.
    ValueError
        For `samples` < 2 or `level` outside (0, 1).

    Notes
    -----
    Cost: at most 2 n support values for the X_i, and at most 256 extreme points. The length of the
    interval is proportional to 1 / sqrt(n).

    References
    ----------
    Tsirelson, Ibragimov and Sudakov (1976) for the concentration; formula sheet GEN-4, JL-14.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.gaussian_width(gd.bodies.CrossPolytope(100)).value, 4)
    2.747
    >>> triangle = gd.bodies.VPolytope([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> found = gd.gaussian_width(triangle, rng=0, samples=10_000)
    >>> round(found.value, 2), found.stderr < 0.01
    (1.05, True)
    """
    samples, level = whole(samples, "samples", minimum=2), probability(level, "level")
    generator = np.random.default_rng(rng)
    factor, inner = _reduced(checked_body(body))
    known, rest = _split(inner)
    if rest is None:
        return Estimate.exact(factor * known)
    simulated = _by_directions(rest, generator, samples, level)
    low, high = simulated.interval
    return Estimate(
        value=factor * (known + simulated.value),
        stderr=factor * simulated.stderr,
        interval=(factor * (known + low), factor * (known + high)),
        samples=samples,
    )


def _reduced(body: Body) -> tuple[float, Body]:
    """A factor c and a body L with w(K) = c w(L), found by repeated use of `Body.width_rule`."""
    factor, inner = body.width_rule()
    if inner is body:
        return 1.0, body
    deeper, innermost = _reduced(inner)
    return factor * deeper, innermost


def _split(body: Body) -> tuple[float, Body | None]:
    """The sum of the known widths, and the product of the factors left to simulate, or None."""
    closed = body.gaussian_width()
    if closed is not None:
        return closed, None
    if not isinstance(body, Product):
        return 0.0, body
    widths = [factor.gaussian_width() for factor in body.bodies]
    unknown = [part for part, width in zip(body.bodies, widths, strict=True) if width is None]
    return math.fsum(width for width in widths if width is not None), Product(unknown)


def _by_directions(body: Body, rng: np.random.Generator, samples: int, level: float) -> Estimate:
    """The mean of half the width along Gaussian directions, with a control variate."""
    # X_i has the Lipschitz constant D / 2 (Tsirelson, Ibragimov and Sudakov 1976).
    reach = body.half_diameter() * math.sqrt(2 * math.log(2 / level) / samples)
    control = EllipsoidControl.of(body, rng, samples)
    rows = max(1, BATCH_ENTRIES // body.dimension)
    parts, followers = [], []
    for start in range(0, samples, rows):
        directions = rng.standard_normal((min(rows, samples - start), body.dimension))
        parts.append(body.breadth(directions) / 2)
        followers.append(control.values(directions))
    values = np.concatenate(parts)
    mean = float(values.mean())
    better = controlled(values, np.concatenate(followers), control.mean)
    stderr = float(better.std(ddof=1)) / math.sqrt(samples)
    interval = (max(mean - reach, 0.0), mean + reach)
    return Estimate(float(better.mean()), stderr, interval, samples)


#: The ellipsoid of the control variate is fitted to about one extreme point per 8 values of the
#: sample, and to at most 256 extreme points.
MOST_PILOTS, VALUES_PER_PILOT = 256, 8


@dataclass(frozen=True)
class EllipsoidControl:
    """Y(g) = ||R g||_2 for `rows` R (p, m): the support function of an ellipsoid, of known mean."""

    rows: FloatArray

    @classmethod
    def of(cls, body: Body, rng: np.random.Generator, values: int) -> EllipsoidControl:
        """Fit the ellipsoid to at most 256 extreme points in Gaussian directions.

        They are independent of the directions at which n = `values` values are taken. Without
        `extreme_point` it is a unit ball of the space parallel to the affine hull.
        """
        if not body.implements(Body.extreme_point):
            return cls(np.ascontiguousarray(body.affine_hull().basis.T))
        pilots = min(MOST_PILOTS, 1 + values // VALUES_PER_PILOT)
        corners = body.extreme_point(rng.standard_normal((pilots, body.dimension)))
        return cls(corners - corners.mean(axis=0))

    @property
    def mean(self) -> float:
        """E Y for g standard Gaussian, by quadrature with a relative error near 1e-13."""
        if not self.rows.any():
            return 0.0
        return mean_norm(np.asarray(np.linalg.svd(self.rows, compute_uv=False), dtype=np.float64))

    def values(self, directions: FloatArray) -> FloatArray:
        """Values (b,) of Y at the rows g of `directions` (b, m)."""
        return np.asarray(np.linalg.norm(directions @ self.rows.T, axis=1))


def controlled(values: FloatArray, controls: FloatArray, mean: float) -> FloatArray:
    """The n variables X_i - c (Y_i - E Y), which have the mean E X and usually less variance.

    For each half of the sample, the number c is fitted on the other half, so the mean stays E X.
    """
    half = len(values) // 2
    result = np.array(values)
    for mine, other in ((slice(0, half), slice(half, None)), (slice(half, None), slice(0, half))):
        spread = controls[other] - controls[other].mean()
        energy = float(spread @ spread)
        slope = float(spread @ values[other]) / energy if energy > 0 else 0.0
        result[mine] -= slope * (controls[mine] - mean)
    return result
