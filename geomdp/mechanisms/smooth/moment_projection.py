"""Replace noisy Chebyshev moments by the nearest moments of a distribution on the cube."""

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
from geomdp.bodies.operand import checked_body
from geomdp.geometry.projection import Projector


@dataclass(frozen=True, eq=False)
class MomentProjection:
    """Least squares over the moments of distributions on [-1, 1]^d, weighted by the noise.

    The moment m = (m_1, ..., m_d) is the mean of T_{m_1}(x_1) ... T_{m_d}(x_d), where T_i is the
    Chebyshev polynomial of degree i. Let Y_m be noisy moments, and s_m the standard deviations of
    the noise. The moment m = 0 is the constant 1. The result is

        argmin sum_{m != 0} ((M_m - Y_m) / s_m)^2   over moment vectors M.

    It is computed from public numbers and a released summary, so it is post-processing and costs no
    privacy. If the true moments are the moments of a distribution, the projection of `semidefinite`
    does not increase the error in the weighted norm, up to the accuracy of the solver. The
    projection of `on_grid` can increase this error, but at most by the distance, in this norm, of
    the true moments from the moments of distributions on the grid. Both projections can increase
    the errors of single queries.

    Parameters
    ----------
    deviations : (t,) * d array
        The s_m > 0 for t degrees in each of d variables, up to a common factor. The first entry,
        for the constant moment, is not used.
    body : Body
        The set of moment vectors in the coordinates M_m / s_m; made by `semidefinite` or `on_grid`.

    Examples
    --------
    No distribution on [-1, 1] has a first moment of 1.1. The projection on the moments of
    distributions on 41 points changes the noisy moments:

    >>> import numpy as np
    >>> import geomdp as gd
    >>> noisy = np.array([1.0, 1.1, -0.5])
    >>> projection = gd.mechanisms.MomentProjection.on_grid([0.0, 0.2, 0.2], per_axis=41)
    >>> projection(noisy).round(2)
    array([ 1.  ,  0.59, -0.3 ])
    """

    deviations: FloatArray
    body: Body

    def __post_init__(self) -> None:
        checked_body(self.body)

    @classmethod
    def semidefinite(cls, deviations: npt.ArrayLike) -> Self:
        """Projection on the moments of all distributions on [-1, 1] (d = 1); `deviations` (t,).

        Each projection solves a semidefinite program.
        """
        scales = _relative(deviations)
        if scales.ndim != 1:
            raise ValueError(f"deviations must have shape (t,), got {scales.shape}")
        return cls(scales, cosine_moment_body(scales[1:]))

    @classmethod
    def on_grid(cls, deviations: npt.ArrayLike, per_axis: int) -> Self:
        """Projection on the moments of distributions on a grid of `per_axis`^d points, for any d.

        The body is the convex hull of the moments of the points. `per_axis` is at least 2. If it is
        several times as large as t, the moments of every distribution are close to the moments of a
        distribution on the grid. `deviations` has shape (t,) * d.
        """
        scales = _relative(deviations)
        return cls(scales, grid_moment_body(scales, per_axis))

    def __repr__(self) -> str:
        return f"MomentProjection({self.deviations.shape} moments on {self.body!r})"

    @cached_property
    def _projector(self) -> Projector:
        return Projector(self.body)

    def __call__(self, noisy: npt.ArrayLike) -> FloatArray:
        """The moment vector of the body nearest to `noisy`, in an array of the same shape."""
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
    """`deviations` divided by the largest s_m with m != 0: a common factor has no effect."""
    array = finite_array(deviations, "deviations", np.ndim(deviations))
    varying = array.ravel()[1:]
    if not (varying.size and (varying > 0).all()):
        raise ValueError("deviations must be above 0 for every moment but the constant")
    return np.asarray(array / varying.max())
