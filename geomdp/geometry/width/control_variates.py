"""Control variate for Gaussian widths: the support function of an ellipsoid, with known mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp.bodies.base import Body
from geomdp.bodies.gaussian_vectors import mean_norm

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
