"""Projection of noisy Chebyshev moments on the moments of distributions on the cube."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray
from geomdp._validation import finite_array
from geomdp.bodies.base import Body
from geomdp.bodies.conic.chebyshev_moments import cosine_moment_body, grid_moment_body
from geomdp.geometry.projection import Projector


@dataclass(frozen=True, eq=False)
class MomentProjection:
    """Least squares over the moments of distributions on [-1, 1]^d, weighted by the noise.

    For noisy moments Y_m with noise of standard deviations s_m, the result is

        argmin sum_{m != 0} ((M_m - Y_m) / s_m)^2   over moment vectors M.

    It reads only public numbers and a released summary, so it is post-processing and costs no
    privacy. The error in the weighted norm does not grow; for the moments of a grid it grows by at
    most twice the distance of the true moments from them. Errors of single queries may grow.

    Parameters
    ----------
    deviations : (t,) * d array
        s_m > 0 up to a common factor; the first entry, that of the constant moment, is not used.
    body : Body
        The moment vectors in the coordinates M_m / s_m; see `semidefinite` and `on_grid`.
    """

    deviations: FloatArray
    body: Body

    @classmethod
    def semidefinite(cls, deviations: npt.ArrayLike) -> Self:
        """All distributions on [-1, 1]: one semidefinite program for each projection, d = 1.

        `deviations` (t,) are the s_m, above 0 but for m = 0.
        """
        scales = _relative(deviations)
        if scales.ndim != 1:
            raise ValueError(f"deviations must have shape (t,), got {scales.shape}")
        return cls(scales, cosine_moment_body(scales[1:]))

    @classmethod
    def on_grid(cls, deviations: npt.ArrayLike, per_axis: int) -> Self:
        """Distributions on a grid of `per_axis`^d points, for any d, as a hull of listed points.

        `deviations` (t,) * d are the s_m, above 0 but for m = 0. `per_axis`, at least 2, should be
        several times t.
        """
        scales = _relative(deviations)
        return cls(scales, grid_moment_body(scales, per_axis))

    def __repr__(self) -> str:
        return f"MomentProjection({self.deviations.shape} moments on {self.body!r})"

    @cached_property
    def _projector(self) -> Projector:
        return Projector(self.body)

    def __call__(self, noisy: npt.ArrayLike) -> FloatArray:
        """The nearest moments (t,) * d to noisy ones; the constant moment becomes 1."""
        noisy = finite_array(noisy, "noisy", self.deviations.ndim)
        if noisy.shape != self.deviations.shape:
            raise ValueError(f"noisy must have shape {self.deviations.shape}, got {noisy.shape}")
        scales = self.deviations.ravel()[1:]
        target = noisy.ravel()[1:] / scales
        if self.body.implements(Body.project):
            nearest = self.body.project(target[None])[0]
        else:
            nearest = self._projector.nearest(target).point
        return np.concatenate([[1.0], nearest * scales]).reshape(noisy.shape)


def _relative(deviations: npt.ArrayLike) -> FloatArray:
    """Deviations divided by the largest, so that M_m / s_m has the order of magnitude of M_m."""
    array = finite_array(deviations, "deviations", np.ndim(deviations))
    varying = array.ravel()[1:]
    if not (varying.size and (varying > 0).all()):
        raise ValueError("deviations must be above 0 for every moment but the constant")
    return np.asarray(array / varying.max())
