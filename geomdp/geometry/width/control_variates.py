"""Control variate for Gaussian widths: the width of an ellipsoid, whose mean is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp.bodies.base import Body
from geomdp.bodies.gaussian_vectors import mean_norm

#: The ellipsoid is fitted to at most 256 extreme points, and to no more than one per 8 values of
#: the sample it is used with.
MOST_PILOTS, VALUES_PER_PILOT = 256, 8


@dataclass(frozen=True)
class EllipsoidControl:
    """Y(g) = ||R g||, the support function of the ellipsoid R^T B, with its exact mean.

    Parameters
    ----------
    rows : (p, m) array
        R.
    """

    rows: FloatArray

    @classmethod
    def of(cls, body: Body, rng: np.random.Generator, values: int) -> EllipsoidControl:
        """The ellipsoid of the covariance of extreme points in up to 256 Gaussian directions.

        For a body without extreme points of its own it is the unit ball of the affine hull. The
        directions drawn here are independent of those the control is used with.
        """
        if not body.implements(Body.extreme_point):
            return cls(np.ascontiguousarray(body.affine_hull().basis.T))
        pilots = min(MOST_PILOTS, 1 + values // VALUES_PER_PILOT)
        corners = body.extreme_point(rng.standard_normal((pilots, body.dimension)))
        return cls(corners - corners.mean(axis=0))

    @property
    def mean(self) -> float:
        """E Y for g standard Gaussian, by one-dimensional quadrature (1e-13)."""
        if not self.rows.any():
            return 0.0
        return mean_norm(np.asarray(np.linalg.svd(self.rows, compute_uv=False), dtype=np.float64))

    def values(self, directions: FloatArray) -> FloatArray:
        """Y for directions (b, m): (b,)."""
        return np.asarray(np.linalg.norm(directions @ self.rows.T, axis=1))


def controlled(values: FloatArray, controls: FloatArray, mean: float) -> FloatArray:
    """Variables X_i - c (Y_i - E Y) of mean E X and of less variance: (n,).

    X_i and Y_i are the `values` and `controls` (n,), n at least 2, and E Y is `mean`. Each half of
    the sample uses the c fitted on the other half, which keeps the mean.
    """
    half = len(values) // 2
    result = np.array(values)
    for mine, other in ((slice(0, half), slice(half, None)), (slice(half, None), slice(0, half))):
        spread = controls[other] - controls[other].mean()
        energy = float(spread @ spread)
        slope = float(spread @ values[other]) / energy if energy > 0 else 0.0
        result[mine] -= slope * (controls[mine] - mean)
    return result
