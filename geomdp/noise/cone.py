"""Cone noise: the difference of two exponential vectors on the cone over a body."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp

from geomdp._typing import FloatArray
from geomdp._validation import positive, vector
from geomdp.bodies.base import Body
from geomdp.bodies.operand import checked_body
from geomdp.geometry.results import Estimate
from geomdp.noise.estimates import scaled
from geomdp.noise.image_moments import ImageMoments, check_map
from geomdp.privacy import Exact


class ConeNoise:
    """Z = T (r_1 (U_1 - a) - r_2 (U_2 - a)), U_i uniform on K, r_i ~ Gamma(r + 1, 1/rate).

    r is the dimension of K. Each r_i (U_i, 1) has density proportional to e^(-rate * last
    coordinate) on the cone over {(q, 1) : q in K}. A shift by (q, 1) with q in K multiplies it by
    at most e^rate, as the shifted cone lies within the cone. So the first vector hides shifts by
    (q, 1), and the second shifts by -(q, 1). Added to the sum of (q, 1) over records, the
    difference is rate-DP for one record added or removed, and (2 rate)-DP for one record replaced.
    If the number of records is public, subtracting a * (last coordinate) is post-processing; a = 0
    subtracts nothing (X-CONE).

    Parameters
    ----------
    body : Body
        K in R^k, with an exact uniform sampler and a centroid in closed form.
    rate : float
        Rate of the exponential weight, finite and above 0.
    centre : (k,) array
        The point a; the centroid of K gives the least noise.
    matrix : (m, k) sparse array, optional
        The map T from the coordinates of K to the answers; by default the identity.
    constant : (m,) array, optional
        The vector c, for answers c + T q. Z then contains the noise (r_1 - r_2) c, and the centre
        must be 0. Leave it out if the number of records is public, or if c = 0.

    References
    ----------
    Formula sheet X-CONE, X-LKJ; for the spectraplex as K and centre 0, Z is the difference of two
    Wishart matrices (JL-WIS).

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> K = gd.bodies.Box([0.0, 0.0], [1.0, 1.0])
    >>> noise = gd.noise.ConeNoise(K, rate=0.5, centre=K.centroid())
    >>> noise.variances().round(6).tolist()
    [8.0, 8.0]

    Without a public number of records, the centre is 0 and there is more noise:

    >>> around_0 = gd.noise.ConeNoise(K, rate=0.5, centre=[0.0, 0.0])
    >>> around_0.variances().round(6).tolist()
    [14.0, 14.0]

    A simulation, from a seed:

    >>> noise.sample(np.random.default_rng(0), 5).shape
    (5, 2)
    """

    sampler = Exact()

    def __init__(
        self,
        body: Body,
        rate: float,
        centre: FloatArray,
        matrix: sp.csr_array | None = None,
        constant: FloatArray | None = None,
    ) -> None:
        if not checked_body(body).implements(Body.sample_uniform):
            raise ValueError(f"body must have an exact uniform sampler, got {body!r}")
        if matrix is not None:
            check_map(matrix, body.dimension)
        self.body = body
        self.rate = positive(rate, "rate")
        self.centre = vector(centre, body.dimension, "centre")
        self.matrix = matrix
        self.constant = None if constant is None else vector(constant, self.dimension, "constant")
        if self.constant is not None and self.centre.any():
            raise ValueError(
                "centre must be 0 if there is a constant, because the number of records is then "
                f"not public; got centre {self.centre}"
            )
        self.effective_dimension = body.effective_dimension

    def __repr__(self) -> str:
        return f"ConeNoise({self.body!r}, rate={self.rate:g})"

    @property
    def dimension(self) -> int:
        return self.body.dimension if self.matrix is None else int(self.matrix.shape[0])

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Each draw takes two uniform points of K."""
        radii = self._radii(rng, size)
        return self._at(radii, self.body.sample_uniform(2 * size, rng))

    def sample_at(self, rng: np.random.Generator, points: FloatArray) -> FloatArray:
        """Draws (b, m) with new radii and the given uniform points (2 b, k) of K."""
        return self._at(self._radii(rng, len(points) // 2), points)

    def _radii(self, rng: np.random.Generator, size: int) -> FloatArray:
        return rng.gamma(self.effective_dimension + 1, 1 / self.rate, (2, size, 1))

    def _at(self, radii: FloatArray, points: FloatArray) -> FloatArray:
        size, points = radii.shape[1], points - self.centre
        draws = radii[0] * points[:size] - radii[1] * points[size:]
        if self.matrix is not None:
            draws = np.asarray((self.matrix @ draws.T).T)
        if self.constant is not None:
            draws = draws + (radii[0] - radii[1]) * self.constant
        return np.asarray(draws)

    @cached_property
    def moments(self) -> ImageMoments:
        """Moments of U and T U, with the public points from which unknown moments are estimated."""
        return ImageMoments(self.body, self.matrix)

    def _covariance_in_body(self) -> FloatArray:
        """2 (E r_1^2 E[(U - a)(U - a)^T] - (E r_1)^2 E[U - a] E[U - a]^T), (k, k)."""
        drift = self.body.centroid() - self.centre
        # For each of the two vectors, drift drift^T is multiplied by
        # E r_1^2 - (E r_1)^2 = (r + 1) / rate^2, and the covariance of U by
        # E r_1^2 = (r + 1)(r + 2) / rate^2.
        factor = self.effective_dimension + 2
        return self._count_variance * (factor * self.moments.scatter() + np.outer(drift, drift))

    def covariance(self) -> FloatArray:
        """Estimated if K has no second moment in closed form."""
        covariance, mean = self._covariance_in_body(), self._mapped(self.body.centroid())
        if self.matrix is not None:
            covariance = np.asarray(self.matrix @ (self.matrix @ covariance).T)
        if self.constant is None:
            return covariance
        # Z = W + s c, where W is the noise without a constant and s = r_1 - r_2. Here
        # Var(s) = 2 (r + 1) / rate^2 and E[s W] = Var(s) T E U.
        mixed = np.outer(mean, self.constant)
        own = np.outer(self.constant, self.constant)
        return covariance + self._count_variance * (mixed + mixed.T + own)

    def variances(self) -> FloatArray:
        factor = self.effective_dimension + 2
        return self._count_variance * (factor * self.moments.variances() + self._drift**2)

    @property
    def _count_variance(self) -> float:
        """Var(r_1 - r_2) = 2 (r + 1) / rate^2."""
        return 2 * (self.effective_dimension + 1) / self.rate**2

    def _mapped(self, point: FloatArray) -> FloatArray:
        return point if self.matrix is None else np.asarray(self.matrix @ point)

    @property
    def _drift(self) -> FloatArray:
        """T (E U - a) + c, (m,). Given r_1 and r_2, Z has mean (r_1 - r_2) times this vector."""
        moved = self._mapped(self.body.centroid() - self.centre)
        return moved if self.constant is None else moved + self.constant

    @cached_property
    def _energy(self) -> Estimate:
        along = self._count_variance * float((self._drift**2).sum())
        factor = self._count_variance * (self.effective_dimension + 2)
        return scaled(self.moments.energy, factor, along)

    def second_moment(self) -> Estimate:
        """The trace, exact with a closed second moment of K; else from 1024 public draws.

        For a = E U and no constant, it is (2 (r + 1)(r + 2) / rate^2) E ||T (U - a)||_2^2.
        """
        return self._energy
