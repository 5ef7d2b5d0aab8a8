"""The fitting mechanism: additive noise, then the nearest answers in the norm of the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import scipy.sparse as sp

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.bodies.relaxations import MappedElliptope
from geomdp.geometry.projection import ConeProjector, Projection, Projector
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.mechanisms.base import Prediction, PredictionKind, answer_hull
from geomdp.mechanisms.projected import (
    PostProcessedNoise,
    Projected,
    is_relaxed,
    reachable_body,
    tried_projector,
)
from geomdp.noise import Noise
from geomdp.noise.few_queries import GeometricNoise
from geomdp.privacy import Adjacency
from geomdp.workloads.base import MAX_SCORES
from geomdp.workloads.structure import SignProducts, sign_products

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
    """Least squares over attainable answers y for observations A y, A = `whitening` (k, m).

    k is the dimension of the public subspace. For the noise Z, the k entries of A Z are
    uncorrelated, with equal variances, except where `LEAST_SHARE` raised a variance.
    """

    whitening: FloatArray
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
        """The norm for `inner`, whose workload is all 2-way tables of two-level columns."""
        signs = sign_products(inner.workload)
        assert signs is not None
        single, pair = _variances(inner.noise, signs)
        weights = np.ones(signs.order)
        weights[0] = pair / single
        rows, columns = np.triu_indices(signs.order, 1)
        stretch = sp.csr_array(sp.diags_array(np.sqrt(weights[rows] * weights[columns])))
        return cls(signs, MappedElliptope(stretch, weights, np.zeros(len(rows))))

    def prepare(self) -> None:
        """Do nothing: everything is computed when the norm is built."""

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
        # A few draws of this noise can all be 0, so the variances are computed without draws, as
        # weighted sums of the variances of the coordinates, which are independent.
        parts = signs.matrix.multiply(signs.matrix).T
        lengths = np.asarray(parts.sum(axis=1)).ravel()
        squares = np.asarray(parts @ noise.variances() / lengths**2)[None]
    else:
        draws = noise.sample(np.random.default_rng(PUBLIC_SEED), DRAWS)
        squares = np.array([_products(draw, signs) ** 2 for draw in draws])
    singles = signs.order - 1
    return float(squares[:, :singles].mean()), float(squares[:, singles:].mean())


class Fitted(PostProcessedNoise):
    """An additive mechanism followed by generalised least squares over the attainable answers.

    Let y = Q(X) + Z / n, where Z is the noise of `inner` and has covariance S. Let C be the set of
    attainable answers on which `Projected` projects, made from the body K. Then

        f = argmin over p in C of (p - y)^T S^-1 (p - y),
        g = argmin over p in C of ||p - y||_2,
        M(X) = g + min(1, b / ||f - g||_2) (f - g),

    where b is the bound of `Projected` on the square root of E ||g - Q(X)||^2. The norm in the
    definition of f gives more weight to directions in which the noise is small. The last line keeps
    M(X) within distance b of g. Nearly always f itself is this close to g, and M(X) = f.

    ``ValueError`` if `inner` is not an additive mechanism, or is one for add/remove and K is a
    relaxation: the norm is known for the relaxation only, not for the cone over it.

    Notes
    -----
    Privacy: the guarantee of `inner`, unchanged (post-processing, GEN-2). C, S and b are public. S
    can be estimated from public draws, or approximated (see `noise_norm`); privacy and the bound
    hold for any norm.

    Error, for the data sets for which the bound of `Projected` holds: in the norm that defines f,
    the error of f is at most the size of the noise Z / n. In the Euclidean norm, by Minkowski's
    inequality,

        (E ||M(X) - Q(X)||^2)^(1/2) <= (E ||g - Q(X)||^2)^(1/2) + (E ||M(X) - g||^2)^(1/2) <= 2 b,

    and under replace-one this error is at most the diameter of K. The ratio of the error to the
    error of `Projected` was measured for tables, ranges, random signs and prefix sums, with copies
    of one record, mixes of ten records, and uniform data. It is 0.5 to 0.97, and 1 if noisy answers
    stay in K. There are two exceptions. For prefix sums, if all records are the first element or
    all are the last element, it is 1.1 to 1.2. For tables of independent columns with unequal
    shares, it is 0.92 to 1.06; for mixtures of two or more such distributions it is 0.85 to 0.98.

    Cost: two projections per release. The second starts from the result of the first.

    References
    ----------
    Aitken 1935 (generalised least squares); Nikolov-Talwar-Zhang 2016; formula sheet JL-L13,
    JL-L13b, GEN-2.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(4)
    >>> noisy = gd.mechanisms.Matrix(workload, n=8, privacy=gd.PureDP(0.5))
    >>> mechanism = gd.mechanisms.Fitted(noisy)
    >>> records = np.repeat(np.arange(4), 2)
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> release.noisy.round(3)
    array([1.186, 1.904, 1.679, 1.   ])
    >>> release.answers.round(3)
    array([0.734, 1.   , 1.   , 1.   ])
    """

    def __init__(self, inner: AdditiveMechanism) -> None:
        super().__init__(inner)
        if inner.adjacency is Adjacency.ADD_REMOVE and is_relaxed(inner.workload):
            raise ValueError(
                "inner must be a mechanism for replace-one if the workload has more than "
                f"{MAX_SCORES} elements, got add/remove; use Projected"
            )
        self._projected = Projected(inner)

    @classmethod
    def after(cls, projected: Projected) -> Self:
        """The fit for the noise of `projected`; both share the bound and the geometry."""
        fitted = cls(projected.inner)
        fitted._projected = projected
        return fitted

    @cached_property
    def _norm(self) -> Projector | ConeProjector | WhitenedNorm | SignNorm:
        return noise_norm(self.inner)

    @property
    def predicted_rmse(self) -> Prediction:
        nearest = self._projected.predicted_rmse
        diameter = self._projected.diameter / math.sqrt(self.workload.n_queries)
        if self.inner.adjacency is Adjacency.REPLACE_ONE and diameter <= 2 * nearest.value:
            return Prediction(diameter, PredictionKind.UPPER_BOUND, "diameter of K")
        source = f"twice the bound of the nearest point, {nearest.source}"
        return Prediction(2 * nearest.value, PredictionKind.UPPER_BOUND, source)

    def with_n(self, n: int) -> Self:
        twin = super().with_n(n)
        twin._projected = self._projected.with_n(n)
        return twin

    def set_up(self) -> None:
        self._projected.set_up()
        self._norm.prepare()

    def process(self, noisy: FloatArray) -> FloatArray:
        fitted = self._norm.nearest(noisy)
        nearest = self._projected.nearest(noisy, warm_start=fitted).point
        reach = self._projected.predicted_rmse.value * math.sqrt(self.workload.n_queries)
        return moved_towards(nearest, fitted.point, reach)


def moved_towards(start: FloatArray, end: FloatArray, reach: float) -> FloatArray:
    """The point at distance `reach` from `start` towards `end`; `end` itself if it is closer."""
    distance = float(np.linalg.norm(end - start))
    share = 1.0 if distance <= reach else reach / distance
    return np.asarray(start + share * (end - start))
