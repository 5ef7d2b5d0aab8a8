"""Isotropic Gaussian noise in a subspace."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import batch, finite_array, positive
from geomdp.bodies.arguments import off_span
from geomdp.geometry.results import Estimate
from geomdp.privacy import Exact

#: Columns count as orthonormal if no entry of basis^T basis - I has a modulus above this number.
#: For a basis from a singular value decomposition in float64, rounding gives entries near 1e-15.
ORTHONORMALITY_TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class GaussianNoise:
    """Z = B g, g ~ N(0, sigma^2 I_r): density on span(B) proportional to e^(-||z||^2/(2 sigma^2)).

    If sums of neighbours differ by vectors of span(B) of Euclidean length at most D, the sums plus
    Z are D^2/(2 sigma^2)-zCDP (GEN-2).

    Parameters
    ----------
    basis : (m, r) array
        Orthonormal columns B. They span the public subspace that contains the noise.
    scale : float
        Standard deviation sigma > 0 along every direction of the subspace, in units of sums.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> basis = np.array([[1.0], [-1.0]]) / np.sqrt(2)
    >>> noise = gd.noise.GaussianNoise(basis, scale=3.0)
    >>> noise.covariance().round(6).tolist()
    [[4.5, -4.5], [-4.5, 4.5]]

    Simulated draws, from a seed, lie in the span of the basis:

    >>> simulation = noise.sample(np.random.default_rng(0), 4)
    >>> bool(np.allclose(simulation.sum(axis=1), 0.0))
    True
    """

    basis: FloatArray
    scale: float

    sampler = Exact()

    def __post_init__(self) -> None:
        basis = finite_array(self.basis, "basis", ndim=2)
        if basis.shape[1] == 0:
            raise ValueError(f"basis must have at least 1 column, got shape {basis.shape}")
        with np.errstate(over="ignore", invalid="ignore"):
            error = float(np.abs(basis.T @ basis - np.eye(basis.shape[1])).max())
        if not error <= ORTHONORMALITY_TOLERANCE:  # the error is NaN if products overflow
            raise ValueError(
                "basis must have orthonormal columns, got an entry of modulus "
                f"{error:g} in basis^T basis - I"
            )
        object.__setattr__(self, "basis", basis)
        object.__setattr__(self, "scale", positive(self.scale, "scale"))

    def __repr__(self) -> str:
        rank = self.effective_dimension
        return f"GaussianNoise(scale={self.scale:g}, dimension {rank} in R^{self.dimension})"

    @property
    def dimension(self) -> int:
        return int(self.basis.shape[0])

    @property
    def effective_dimension(self) -> int:
        """Dimension r of the subspace that contains the noise."""
        return int(self.basis.shape[1])

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Each draw costs O(m r)."""
        return rng.normal(0.0, self.scale, (size, self.effective_dimension)) @ self.basis.T

    def covariance(self) -> FloatArray:
        """sigma^2 B B^T, (m, m)."""
        return self.scale**2 * (self.basis @ self.basis.T)

    def variances(self) -> FloatArray:
        """Entry j is sigma^2 times the squared length of row j of B."""
        return np.asarray(self.scale**2 * (self.basis**2).sum(axis=1))

    def second_moment(self) -> Estimate:
        """r sigma^2, exact."""
        return Estimate.exact(self.effective_dimension * self.scale**2)

    def log_density(self, points: FloatArray) -> FloatArray:
        """log f(z) (b,) for rows z of `points` (b, m); -inf outside of span(B).

        f(z) = (2 pi sigma^2)^(-r/2) e^(-||z||^2 / (2 sigma^2)) on span(B).
        """
        points = batch(points, self.dimension, "points")
        squares = ((points @ self.basis) ** 2).sum(axis=1)
        constant = self.effective_dimension / 2 * math.log(2 * math.pi * self.scale**2)
        found = -squares / (2 * self.scale**2) - constant
        return np.where(off_span(points, self.basis), -np.inf, found)

    def log_density_ratio(self, points: FloatArray, shifts: FloatArray) -> FloatArray:
        """log f(z) - log f(z - s), (b,), for rows in span(B) of `points` and `shifts` (b, m)."""
        points = batch(points, self.dimension, "points") @ self.basis
        shifts = batch(shifts, self.dimension, "shifts") @ self.basis
        squares = ((points - shifts) ** 2 - points**2).sum(axis=1)
        return np.asarray(squares / (2 * self.scale**2))
