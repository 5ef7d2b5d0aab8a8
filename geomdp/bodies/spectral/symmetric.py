"""Symmetric bodies defined by eigenvalues, and the nuclear-norm ball, in svec coordinates."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomdp._numerics.linalg import svec
from geomdp._typing import FloatArray
from geomdp.bodies.norm_balls.positive_parts import nearest_in_corner
from geomdp.bodies.oracles import Facets
from geomdp.bodies.spectral.eigenvalues import (
    MatrixBody,
    assemble,
    eigen,
    eigenvalues,
    half_vector,
    spectraplex_volume,
)
from geomdp.bodies.spectral.pfaffians import SpectralMoments, nuclear_moments


class SymmetricSpectral(MatrixBody):
    """A symmetric body {M : lambda(M) in S} of symmetric d x d matrices, for a set S of spectra.

    Membership, gauge, support and projection need one eigenvalue decomposition per point or
    direction: O(d^3); a chord needs many. Uniform points have Haar-distributed eigenvectors, and
    eigenvalues drawn by coupling from the past: O(d^3 log d) per draw for d up to about 30
    (JL-COV). Moments and volume are computed from Pfaffians of matrices of order d or d + 1.
    """

    symmetric = True

    @abc.abstractmethod
    def _height(self, values: FloatArray) -> FloatArray:
        """Support function (b,) at matrices with the ascending eigenvalues `values` (b, d)."""

    @abc.abstractmethod
    def _norm(self, values: FloatArray) -> FloatArray:
        """Gauge (b,) of matrices with the ascending eigenvalues `values` (b, d)."""

    @abc.abstractmethod
    def _gradient(self, values: FloatArray) -> FloatArray:
        """A subgradient (b, d) of the gauge as a function of the eigenvalues `values` (b, d)."""

    @abc.abstractmethod
    def _nearest(self, values: FloatArray) -> FloatArray:
        """The spectra (b, d) in S nearest to the eigenvalues `values` (b, d)."""

    @abc.abstractmethod
    def _spectra(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Eigenvalues (n, d) of uniform points."""

    @abc.abstractmethod
    def _moments(self) -> SpectralMoments: ...

    @abc.abstractmethod
    def _bounds(self, above: Any, below: Any) -> list[Any]:
        """CVXPY constraints on the traces `above` and `below` of psd matrices with difference M."""

    @abc.abstractmethod
    def orbits(self) -> FloatArray:
        """Spectra (k, d), one for each orbit of extreme points under M -> V M V^T and M -> -M."""

    def support(self, directions: FloatArray) -> FloatArray:
        return self._height(eigenvalues(directions))

    def gauge(self, points: FloatArray) -> FloatArray:
        return self._norm(eigenvalues(points))

    def facets(self, points: FloatArray) -> Facets:
        values, vectors = eigen(points)
        return Facets(self._norm(values), assemble(self._gradient(values), vectors))

    def project(self, points: FloatArray) -> FloatArray:
        values, vectors = eigen(points)
        return assemble(self._nearest(values), vectors)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        # Compiled code is slow to import.
        from geomdp.bodies.spectral.coupling_from_the_past import in_haar_frames

        return in_haar_frames(self._spectra(n, rng), rng)

    def second_moment(self) -> FloatArray:
        """alpha I_D + beta svec(I_d) svec(I_d)^T for D = d (d + 1) / 2, see `SpectralMoments`."""
        return self._moments().second_moment(self.d)

    def volume(self) -> float:
        """Volume of the spectraplex times the ratio given by `SpectralMoments.log_integral`."""
        return spectraplex_volume(self.d) * math.exp(self._moments().log_integral)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        import cvxpy as cp

        above = cp.Variable((self.d, self.d), PSD=True)
        below = cp.Variable((self.d, self.d), PSD=True)
        difference = half_vector(above - below, self.d) == variable
        return [difference, *self._bounds(cp.trace(above), cp.trace(below))]


@dataclass(frozen=True)
class NuclearBall(SymmetricSpectral):
    """The ball {M symmetric : ||M||_* <= 1} of the nuclear norm, in svec coordinates.

    The nuclear norm is the sum of the absolute values of the eigenvalues. The ball is the convex
    hull of K and -K for the spectraplex K (JL-COV). Its matrices are d x d; svec lists the d (d +
    1) / 2 entries of the upper triangle, with those off the diagonal times sqrt(2). See
    `SymmetricSpectral` for the cost of each method.

    Parameters
    ----------
    d : int
        Number of rows of the matrices, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> ball = gd.bodies.NuclearBall(2)
    >>> ball.gauge(np.array([[0.5, 0.0, -0.5], [1.0, 0.0, -1.0]])).round(6).tolist()
    [1.0, 2.0]
    >>> ball.project(np.array([[3.0, 0.0, 0.0]])).round(6).tolist()
    [[1.0, 0.0, 0.0]]
    """

    def _height(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(values[:, -1], -values[:, 0]))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """sign(lambda) v v^T for a unit eigenvector v with the largest |lambda|; sign(0) = 1."""
        values, vectors = eigen(directions)
        above = (values[:, -1] >= -values[:, 0])[:, None]
        best = np.where(above, vectors[:, :, -1], vectors[:, :, 0])
        return np.where(above, 1.0, -1.0) * svec(best[:, :, None] * best[:, None, :])

    def _norm(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.abs(values).sum(axis=1))

    def _gradient(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.sign(values))

    def _nearest(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.copysign(nearest_in_corner(np.abs(values), 1.0), values))

    def _spectra(self, n: int, rng: np.random.Generator) -> FloatArray:
        from geomdp.bodies.spectral.coupling_from_the_past import nuclear_spectra

        return nuclear_spectra(n, self.d, rng)

    def _moments(self) -> SpectralMoments:
        return nuclear_moments(self.d)

    def orbits(self) -> FloatArray:
        """Eigenvalues of e_1 e_1^T: up to sign, its orbit is the set of all extreme points."""
        return np.eye(1, self.d)

    def radius(self) -> float:
        """1, attained at every x x^T with ||x|| = 1."""
        return 1.0

    def _bounds(self, above: Any, below: Any) -> list[Any]:
        return [above + below <= 1]
