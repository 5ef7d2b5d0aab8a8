"""Symmetric bodies made of the spectraplex K: K - K and conv(K u -K), in svec coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomdp._linalg import svec
from geomdp._typing import FloatArray
from geomdp._validation import batch, whole
from geomdp.bodies.base import Body, Facets
from geomdp.bodies.norm_balls.positive_parts import nearest_in_corner
from geomdp.bodies.spectral.eigenvalues import (
    assemble,
    eigen,
    eigenvalues,
    half_vector,
    top_projector,
)
from geomdp.bodies.spectral.pfaffians import difference_moments, nuclear_moments
from geomdp.bodies.spectral.spectraplex import Spectraplex


@dataclass(frozen=True)
class SpectraplexDifference(Body):
    """K - K for the spectraplex K: {M symmetric : tr M_+ <= 1, tr M_- <= 1}, svec coordinates.

    M_+ and M_- are the positive and negative parts, M = M_+ - M_-. One eigenvalue decomposition,
    O(d^3), per point or direction; exact uniform sampler and closed moments.

    Parameters
    ----------
    d : int
        Size of the matrices; the dimension is D = d (d + 1) / 2.

    References
    ----------
    JL-COV.
    """

    d: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole(self.d, "d"))

    @property
    def dimension(self) -> int:
        """Dimension D = d (d + 1) / 2."""
        return self.d * (self.d + 1) // 2

    @property
    def symmetric(self) -> bool:
        """True."""
        return True

    def support(self, directions: FloatArray) -> FloatArray:
        """max(largest eigenvalue, 0) + max(-smallest eigenvalue, 0)."""
        values = eigenvalues(batch(directions, self.dimension, "directions"))
        return np.asarray(np.maximum(values[:, -1], 0.0) + np.maximum(-values[:, 0], 0.0))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """v v^T - w w^T, top and bottom eigenvectors, each only if its eigenvalue has its sign."""
        values, vectors = eigen(batch(directions, self.dimension, "directions"))
        bottom = top_projector(-values[:, ::-1], vectors[:, :, ::-1])
        return np.asarray(top_projector(values, vectors) - bottom)

    def gauge(self, points: FloatArray) -> FloatArray:
        """max(tr M_+, tr M_-)."""
        values = eigenvalues(batch(points, self.dimension, "points"))
        above, below = np.maximum(values, 0).sum(axis=1), np.maximum(-values, 0).sum(axis=1)
        return np.asarray(np.maximum(above, below))

    def facets(self, points: FloatArray) -> Facets:
        """The projector on the positive eigenspace, or minus that on the negative one."""
        values, vectors = eigen(batch(points, self.dimension, "points"))
        above, below = np.maximum(values, 0).sum(axis=1), np.maximum(-values, 0).sum(axis=1)
        signs = np.where(
            (above >= below)[:, None], (values > 0).astype(float), -(values < 0).astype(float)
        )
        return Facets(np.maximum(above, below), assemble(signs, vectors))

    def project(self, points: FloatArray) -> FloatArray:
        """Positive and negative eigenvalues projected on {x >= 0, sum x <= 1}, each apart."""
        values, vectors = eigen(batch(points, self.dimension, "points"))
        nearest = nearest_in_corner(values, 1.0) - nearest_in_corner(-values, 1.0)
        return assemble(nearest, vectors)

    def radius(self) -> float:
        """sqrt(2), at v v^T - w w^T with orthogonal unit vectors; 1 for d = 1."""
        return math.sqrt(2) if self.d > 1 else 1.0

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Haar eigenvectors, eigenvalues by coupling from the past and rejection, exact (JL-COV).

        O(d^3 log d) a draw; see `perfect_spectra`.
        """
        # Compiled code, whose import takes longer than that of all other bodies.
        from geomdp.bodies.spectral.coupling_from_the_past import difference_spectra, in_haar_frames

        return in_haar_frames(difference_spectra(n, self.d, rng), rng)

    def second_moment(self) -> FloatArray:
        """alpha I + beta svec(I) svec(I)^T, by Pfaffians of order d; E ||U||_F^2 = 109/140 at 2."""
        return difference_moments(self.d).second_moment(self.d)

    def volume(self) -> float:
        """Volume of the spectraplex times the ratio of the integrals over spectra."""
        return Spectraplex(self.d).volume() * math.exp(difference_moments(self.d).log_integral)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """Two semidefinite cones."""
        import cvxpy as cp

        above = cp.Variable((self.d, self.d), PSD=True)
        below = cp.Variable((self.d, self.d), PSD=True)
        return [
            half_vector(above - below, self.d) == variable,
            cp.trace(above) <= 1,
            cp.trace(below) <= 1,
        ]


@dataclass(frozen=True)
class NuclearBall(Body):
    """{M symmetric : ||M||_* <= 1} = conv(K u -K) for the spectraplex K, in svec coordinates.

    ||M||_* is the sum of moduli of the eigenvalues. One eigenvalue decomposition, O(d^3), per
    point or direction; exact uniform sampler and closed moments.

    Parameters
    ----------
    d : int
        Size of the matrices; the dimension is D = d (d + 1) / 2.

    References
    ----------
    JL-COV.
    """

    d: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole(self.d, "d"))

    @property
    def dimension(self) -> int:
        """Dimension D = d (d + 1) / 2."""
        return self.d * (self.d + 1) // 2

    @property
    def symmetric(self) -> bool:
        """True."""
        return True

    def support(self, directions: FloatArray) -> FloatArray:
        """Operator norm: largest modulus of an eigenvalue."""
        values = eigenvalues(batch(directions, self.dimension, "directions"))
        return np.asarray(np.maximum(values[:, -1], -values[:, 0]))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """+-v v^T for an eigenvector of an eigenvalue of largest modulus, with its sign."""
        values, vectors = eigen(batch(directions, self.dimension, "directions"))
        above = (values[:, -1] >= -values[:, 0])[:, None]
        best = np.where(above, vectors[:, :, -1], vectors[:, :, 0])
        return np.where(above, 1.0, -1.0) * svec(best[:, :, None] * best[:, None, :])

    def gauge(self, points: FloatArray) -> FloatArray:
        """Sum of moduli of the eigenvalues."""
        values = eigenvalues(batch(points, self.dimension, "points"))
        return np.asarray(np.abs(values).sum(axis=1))

    def facets(self, points: FloatArray) -> Facets:
        """The matrix sign of M."""
        values, vectors = eigen(batch(points, self.dimension, "points"))
        return Facets(np.abs(values).sum(axis=1), assemble(np.sign(values), vectors))

    def project(self, points: FloatArray) -> FloatArray:
        """Eigenvalues projected on the l1 ball."""
        values, vectors = eigen(batch(points, self.dimension, "points"))
        return assemble(np.copysign(nearest_in_corner(np.abs(values), 1.0), values), vectors)

    def radius(self) -> float:
        """1, at every x x^T with ||x|| = 1."""
        return 1.0

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Haar eigenvectors, eigenvalues by coupling from the past, exact (JL-COV).

        O(d^3 log d) a draw; see `perfect_spectra`.
        """
        # Compiled code, whose import takes longer than that of all other bodies.
        from geomdp.bodies.spectral.coupling_from_the_past import in_haar_frames, nuclear_spectra

        return in_haar_frames(nuclear_spectra(n, self.d, rng), rng)

    def second_moment(self) -> FloatArray:
        """alpha I + beta svec(I) svec(I)^T, by Pfaffians of order d; E ||U||_F^2 = 5/12 at 2."""
        return nuclear_moments(self.d).second_moment(self.d)

    def volume(self) -> float:
        """Volume of the spectraplex times the ratio of the integrals over spectra."""
        return Spectraplex(self.d).volume() * math.exp(nuclear_moments(self.d).log_integral)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """Two semidefinite cones of total trace at most 1."""
        import cvxpy as cp

        above = cp.Variable((self.d, self.d), PSD=True)
        below = cp.Variable((self.d, self.d), PSD=True)
        return [
            half_vector(above - below, self.d) == variable,
            cp.trace(above) + cp.trace(below) <= 1,
        ]
