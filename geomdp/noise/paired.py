"""Paired noise: the difference of two uniform points of a body, times one common random radius."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from geomdp._typing import FloatArray
from geomdp._validation import positive
from geomdp.bodies.base import Body
from geomdp.bodies.operand import checked_body
from geomdp.geometry.results import Estimate
from geomdp.noise.estimates import scaled
from geomdp.noise.image_moments import ImageMoments, check_map
from geomdp.privacy import Exact


class PairedNoise:
    """Z = R T (U_1 - U_2): independent U_i uniform on K in R^k, R ~ Gamma(2 k + 1, 1 / epsilon).

    On the cone over {(q, q', 1) : q, q' in K}, R (U_1, U_2, 1) has density proportional to
    e^(-epsilon t), where t is the last coordinate. A shift by (q, q', 1) maps this cone into itself
    and multiplies the density by at most e^epsilon. Replacing a record changes the sum of answers
    by T (q - q'), the image of such a shift. So the sum plus Z is epsilon-DP. The squared error is
    (k + 1/2) / (k + 2) times that of `ConeNoise` of rate epsilon / 2 around the centroid of K,
    which has the same guarantee.

    Parameters
    ----------
    body : Body
        K, full-dimensional, with an exact uniform sampler and a centroid in closed form.
    epsilon : float
        Privacy loss of one replaced record, finite and above 0.
    matrix : (m, k) sparse array
        The map T from the coordinates of K to the answers.

    References
    ----------
    Formula sheet X-CONE, JL-L14.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> import geomdp as gd
    >>> K = gd.bodies.Box([0.0, 0.0], [1.0, 1.0])
    >>> noise = gd.noise.PairedNoise(K, epsilon=1.0, matrix=sp.eye_array(2, format="csr"))
    >>> noise.variances().round(6).tolist()
    [5.0, 5.0]

    Cone noise with the same guarantee has a larger squared error:

    >>> cone = gd.noise.ConeNoise(K, rate=0.5, centre=K.centroid())
    >>> round(noise.second_moment().value / cone.second_moment().value, 6)
    0.625
    """

    sampler = Exact()

    def __init__(self, body: Body, epsilon: float, matrix: sp.csr_array) -> None:
        if not checked_body(body).implements(Body.sample_uniform):
            raise ValueError(f"body must have an exact uniform sampler, got {body!r}")
        if body.effective_dimension < body.dimension:
            raise ValueError(f"body must be full-dimensional, got {body!r}")
        check_map(matrix, body.dimension)
        self.body = body
        self.epsilon = positive(epsilon, "epsilon")
        self.matrix = matrix
        #: Moments of U and T U for U uniform on K, with the public points from which unknown
        #: moments are estimated.
        self.moments = ImageMoments(body, matrix)

    def __repr__(self) -> str:
        return f"PairedNoise({self.body!r}, epsilon={self.epsilon:g})"

    @property
    def dimension(self) -> int:
        return int(self.matrix.shape[0])

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Two uniform points of K for each draw."""
        radii = self._radii(rng, size)
        return self._at(radii, self.body.sample_uniform(2 * size, rng))

    def sample_at(self, rng: np.random.Generator, points: FloatArray) -> FloatArray:
        """Draws (b, m) with new radii, from the given `points` (2 b, k), which are uniform on K."""
        return self._at(self._radii(rng, len(points) // 2), points)

    def _radii(self, rng: np.random.Generator, size: int) -> FloatArray:
        return rng.gamma(2 * self.body.dimension + 1, 1 / self.epsilon, (size, 1))

    def _at(self, radii: FloatArray, points: FloatArray) -> FloatArray:
        first, second = points[: len(radii)], points[len(radii) :]
        return np.asarray((self.matrix @ (radii * (first - second)).T).T)

    @property
    def _factor(self) -> float:
        """2 E R^2 = 2 (2 k + 1)(2 k + 2) / epsilon^2."""
        k = self.body.dimension
        return 2 * (2 * k + 1) * (2 * k + 2) / self.epsilon**2

    def covariance(self) -> FloatArray:
        """2 E R^2 T Cov(U) T^T (m, m); estimated if K has no second moment in closed form."""
        scatter = self.moments.scatter()
        return self._factor * np.asarray(self.matrix @ (self.matrix @ scatter).T)

    def variances(self) -> FloatArray:
        return self._factor * self.moments.variances()

    def second_moment(self) -> Estimate:
        """2 (2 k + 1)(2 k + 2) / epsilon^2 E ||T (U - E U)||_2^2; estimated as in `ConeNoise`."""
        return scaled(self.moments.energy, self._factor)
