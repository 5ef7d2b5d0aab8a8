"""Generalised least squares: the nearest point of a body in the Mahalanobis norm of the noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.bodies import MappedElliptope
from geomdp.geometry.projection.projector import ConeProjector, Projector
from geomdp.geometry.results import Projection
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.mechanisms.post_processed.projected import (
    is_relaxed,
    reachable_body,
    tried_projector,
)
from geomdp.mechanisms.sensitivity import answer_hull
from geomdp.noise import GeometricNoise, Noise
from geomdp.workloads.structure.sign_products import SignProducts, sign_products

#: Smallest variance in use, as a share of the largest variance. Smaller variances are raised to
#: this value, because estimated variances can be too small. So the weights of two directions in the
#: squared norm differ by a factor of at most 1e8.
LEAST_SHARE = 1e-8
#: If all variances agree up to this relative difference, the norm is the Euclidean norm.
EQUAL = 1e-9
#: Duality gap of a fit, relative to the squared size of the body in the norm of the noise.
TOLERANCE = 1e-8
#: Number of public draws from which the variances of products of signs are estimated. With 25
#: columns, the draws give 25 * 8 = 200 squares of noise on single signs. The mean of these squares
#: has a relative error near 10%.
DRAWS = 8


def noise_norm(inner: AdditiveMechanism) -> Projector | ConeProjector | WhitenedNorm | SignNorm:
    """The projection on the attainable answers of `inner` in the norm of its noise.

    The norm is (z^T S^-1 z)^(1/2) for coordinates z in the `answer_hull` and the covariance S of
    their noise. For a relaxation, `SignNorm` approximates S by a diagonal matrix.
    """
    if is_relaxed(inner.workload):
        return SignNorm.of(inner)
    body = reachable_body(inner.workload)
    span = answer_hull(inner.workload, inner.adjacency).basis
    values, vectors = np.linalg.eigh(span.T @ inner.noise.covariance() @ span)
    if values[0] >= (1 - EQUAL) * values[-1]:
        return tried_projector(body, inner.adjacency)
    scales = np.sqrt(values[-1] / np.maximum(values, LEAST_SHARE * values[-1]))
    whitening = np.asarray((scales * vectors).T @ span.T)
    return WhitenedNorm(whitening, tried_projector(body, inner.adjacency, whitening))


@dataclass(frozen=True, eq=False)
class WhitenedNorm:
    """Least squares over attainable answers, in coordinates in which the noise is isotropic."""

    #: The matrix A (k, m) for m answers, where k is the dimension of their public subspace. For the
    #: noise Z, the k entries of A Z are uncorrelated. They have equal variances, except where
    #: `LEAST_SHARE` raised a variance.
    whitening: FloatArray
    #: Least squares over attainable answers for observations of A y.
    projector: Projector | ConeProjector

    def prepare(self) -> None:
        self.projector.prepare()

    def nearest(self, noisy: FloatArray) -> Projection:
        """Argmin over attainable y of ||A (y - noisy)||_2."""
        return self.projector.nearest(self.whitening @ noisy, tol=TOLERANCE)


@dataclass(frozen=True, eq=False)
class SignNorm:
    """Least squares over the elliptope, with products of signs weighted by 1 / noise variance.

    Let r hold the products of any two of d + 1 signs: the constant 1, and one for each of d columns
    of two levels. All 2-way tables are c + T r. The noise on r is treated as uncorrelated, with one
    variance for all single signs and one for all other products.
    """

    #: c and T. The columns of T are orthogonal.
    signs: SignProducts
    #: The set of all diag(g) r, where r holds the entries above the diagonal of a correlation
    #: matrix. g^2 is proportional to 1 / noise variance.
    body: MappedElliptope

    @classmethod
    def of(cls, inner: AdditiveMechanism) -> SignNorm:
        """The norm for `inner`, whose workload must be all 2-way tables of two-level columns."""
        signs = sign_products(inner.workload)
        if signs is None:
            raise ValueError(f"workload must be linear in sign products, got {inner.workload!r}")
        single, pair = _variances(inner.noise, signs)
        weights = np.ones(signs.order)
        weights[0] = pair / single
        rows, columns = np.triu_indices(signs.order, 1)
        stretch = sp.csr_array(sp.diags_array(np.sqrt(weights[rows] * weights[columns])))
        return cls(signs, MappedElliptope(stretch, weights, np.zeros(len(rows))))

    def prepare(self) -> None:
        """Do nothing, because everything is computed when the norm is built."""

    def nearest(self, noisy: FloatArray) -> Projection:
        """The nearest point in the weighted norm. Cost: about ten eigendecompositions."""
        stretch = self.body.matrix
        products = _products(noisy - self.signs.constant, self.signs)
        found = self.body.project((stretch @ products)[None])[0] / stretch.diagonal()
        point = np.asarray(self.signs.matrix @ found + self.signs.constant)
        return Projection(point, 0.0, 0, True)


def _products(answers: FloatArray, signs: SignProducts) -> FloatArray:
    """The r for which T r is nearest to `answers` (m,). The caller has already subtracted c."""
    lengths = np.asarray(signs.matrix.multiply(signs.matrix).sum(axis=0)).ravel()
    return np.asarray((signs.matrix.T @ answers) / lengths)


def _variances(noise: Noise, signs: SignProducts) -> tuple[float, float]:
    """Mean variances of the noise on single signs, and on all other products of two signs."""
    if isinstance(noise, GeometricNoise):
        # A few draws of this noise can all be 0, so the variances are computed without draws. The
        # coordinates of the noise are independent. So the variance of the noise on a product of
        # signs is a weighted sum of the variances of the coordinates.
        parts = signs.matrix.multiply(signs.matrix).T
        lengths = np.asarray(parts.sum(axis=1)).ravel()
        squares = np.asarray(parts @ noise.variances() / lengths**2)[None]
    else:
        draws = noise.sample(np.random.default_rng(PUBLIC_SEED), DRAWS)
        squares = np.array([_products(draw, signs) ** 2 for draw in draws])
    singles = signs.order - 1
    return float(squares[:, :singles].mean()), float(squares[:, singles:].mean())
