"""Noise on fewer numbers: answers in few dimensions (`JL`), or on a small net (`Coarse`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from geomdp._numerics.linalg import farthest_points
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray, RandomState
from geomdp._validation import positive, require_type, whole
from geomdp.bodies import LinearImage, sensitivity_polytope
from geomdp.bodies.base import Body
from geomdp.geometry.jl import GaussianMap, JLLaw
from geomdp.geometry.projection import Projector
from geomdp.geometry.volumes import gaussian_width
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.mechanisms.base import (
    AnyRecords,
    Mechanism,
    PostProcessed,
    Prediction,
    PredictionKind,
    Privatiser,
)
from geomdp.mechanisms.projected import (
    PostProcessedNoise,
    SupportBound,
    allowed_gap,
    expected_support_bound,
    relative_tolerance,
    squared_noise_limit,
)
from geomdp.workloads import LinearMap, Workload, explicit_answers
from geomdp.workloads.base import Totals
from geomdp.workloads.explicit import Coarsened

# The Johnson-Lindenstrauss mechanism.


@dataclass(frozen=True)
class AutoDimension:
    """Choose the number of rows of a `JL` map by its predicted error.

    Let r be the dimension of the affine hull of the answer vectors (the effective dimension). One
    trial map is drawn for each k = 1, 2, 4, ... below r, and one for r - 1. The least predicted
    error gives k, at no cost of privacy. Then a new map with k rows is drawn, so that the error
    bound for a fixed k holds.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(8)
    >>> inner = gd.mechanisms.Ball(workload, n=50, privacy=gd.PureDP(1.0))
    >>> mechanism = gd.mechanisms.JL(inner, gd.mechanisms.AutoDimension(), rng=0)
    >>> mechanism.matrix.shape
    (6, 8)
    """

    def tried(self, effective: int) -> list[int]:
        """Numbers of rows to try, below `effective`; ``ValueError`` if `effective` is below 2."""
        if effective < 2:
            raise ValueError(
                f"dimension must be at least 1 and below the effective dimension {effective} of "
                "the workload, which is impossible; use Projected(inner) instead"
            )
        return sorted({effective - 1, *(1 << i for i in range((effective - 1).bit_length()))})


_GAUSSIAN = GaussianMap()


class JL(PostProcessedNoise):
    """Answer A Q for a public random A with few rows, then solve least squares over K_Q.

    M(X) = argmin over y in K_Q of ||A y - (A Q(X) + Z / n)||_2. Q(X) in R^m holds the true answers
    and K_Q is the sensitivity polytope. The (k, m) matrix A, the attribute `matrix`, is drawn from
    `law`. Z is the noise of a mechanism of the same kind as `inner` for the workload A Q, which is
    the attribute `inner`. ``ValueError`` under add/remove: the distortion of sums grows with the
    private number of records.

    Parameters
    ----------
    inner : AdditiveMechanism
        A mechanism for Q (``ValueError`` if it is not additive), whose noise is not used.
    dimension : int or AutoDimension
        Number k of rows of A, at least 1 and below the effective dimension of the workload (else
        use `Projected(inner)`, which has A = I).
    rng : Generator, int or None
        Source of A, which is public: a seed here costs no privacy. The error bounds assume that A
        is not redrawn after a look at a release.
    law : JLLaw
        Distribution of A: `GaussianMap()`, `RademacherMap()` or `SparseMap(density)` of
        `geomdp.geometry`. `AutoDimension` needs a Gaussian map, whose distortion is known.

    Notes
    -----
    Privacy: the guarantee of `inner` for the workload A Q. The noise is calibrated to the drawn A,
    so its distortion does not matter. Least squares is post-processing.

    Error: let delta(A) = max over x, y in K_Q of ||x - y|| - ||A (x - y)||. E is the expectation
    over Z, and E_A over A. h is the support function and w the Gaussian width of a body. For every
    A and all data of n records,

        (E ||M(X) - Q(X)||^2)^(1/2)
            <= min{E ||Z||^2 / n^2, E h_{A K_Q}(Z) / n}^(1/2) + delta(A),
        E_A delta(A) <= (2 w(K_Q) + (8^(-1/2) + 1/(4 sqrt(k))) diam(K_Q)) / sqrt(k).

    The first bound follows from Minkowski's inequality with JL-L13 and JL-L13b, the second from
    JL-T9 for Gaussian maps. Let s be the noise term for the drawn A plus the bound on E_A delta(A).
    `predicted_rmse` is the smaller of s and diam(K_Q), divided by sqrt(m), and for other laws the
    latter. For a fixed k, the error averaged over A is at most s averaged over A; a single A can
    err more.

    References
    ----------
    Nikolov 2022, Algorithm 1 and Lemma 13; formula sheet JL-A1, JL-T9, JL-L13, JL-L13b.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(16)
    >>> inner = gd.mechanisms.Ball(workload, n=50, privacy=gd.PureDP(1.0))
    >>> mechanism = gd.mechanisms.JL(inner, 4, rng=0)
    >>> mechanism.matrix.shape
    (4, 16)
    >>> records = np.arange(50) % 16
    >>> release = mechanism.release(records, rng=1)  # a simulation: the seed voids privacy
    >>> release.answers[[3, 7, 11, 15]].round(3)
    array([0.103, 0.562, 0.726, 1.   ])
    """

    matrix: FloatArray

    def __init__(
        self,
        inner: AdditiveMechanism,
        dimension: int | AutoDimension,
        rng: RandomState = None,
        *,
        law: JLLaw = _GAUSSIAN,
    ) -> None:
        super().__init__(inner)
        self._require_replace_one("its map distorts larger sums more")
        effective = inner.workload.affine_hull().dimension
        self._rng, self._dimension = np.random.default_rng(rng), dimension
        require_type(law, JLLaw, "law")
        self.law = law
        if isinstance(dimension, AutoDimension):
            if not isinstance(law, GaussianMap):
                raise ValueError(
                    f"dimension must be a number for {law!r}: AutoDimension compares predicted "
                    "errors, which depend on the dimension for Gaussian maps only"
                )
            sizes = dimension.tried(effective)
            trials = zip(sizes, self._rng.spawn(len(sizes)), strict=True)
            errors = {k: JL(inner, k, source).predicted_rmse.value for k, source in trials}
            rows = min(sizes, key=errors.__getitem__)
        else:
            rows = whole(dimension, "dimension")
        if rows >= effective:
            raise ValueError(
                f"dimension must be below the effective dimension {effective} of the workload, "
                f"got {dimension}; use Projected(inner) instead"
            )
        self.matrix = law.draw(rows, self.workload.n_queries, self._rng)
        self.inner = inner.with_workload(LinearMap(self.workload, self.matrix))

    @cached_property
    def body(self) -> Body:
        """The sensitivity polytope K_Q."""
        return sensitivity_polytope(self.workload)

    @cached_property
    def _projector(self) -> Projector:
        return Projector(self.body, self.matrix)

    @cached_property
    def _support(self) -> SupportBound:
        return expected_support_bound(self.inner.noise, LinearImage(self.matrix, self.body))

    @cached_property
    def _diameter(self) -> float:
        return self.workload.l2_diameter()

    @cached_property
    def mean_distortion(self) -> float:
        """Upper bound on E_A delta(A), in units of the answers: diam(K_Q) if A is not Gaussian."""
        if not isinstance(self.law, GaussianMap):
            return self._diameter
        return distortion_bound(width_limit(self.body), self._diameter, len(self.matrix))

    @property
    def predicted_rmse(self) -> Prediction:
        additive = squared_noise_limit(self.inner)
        gap = allowed_gap(additive, self.inner.workload.l2_diameter())
        noise = min(additive + 2 * gap, self._support.value / self.n + gap)
        error = min(math.sqrt(noise) + self.mean_distortion, self._diameter)
        source = f"diameter of K_Q, as the distortion of {self.law!r} has no explicit bound"
        if isinstance(self.law, GaussianMap):
            source = (
                "E over Z of ||A(M(X) - Q(X))|| for the drawn A (JL-L13, JL-L13b; "
                f"{self._support.source}) + E over A of the distortion (JL-T9)"
            )
        value = error / math.sqrt(self.workload.n_queries)
        return Prediction(value, PredictionKind.UPPER_BOUND, source)

    def with_workload(self, workload: Workload) -> Self:
        """The same kind and dimension for another workload, with a new A."""
        template = self.inner.with_workload(workload)
        return type(self)(template, self._dimension, self._rng.spawn(1)[0], law=self.law)

    def set_up(self) -> None:
        super().set_up()
        self._projector.prepare()
        _ = self._support, self.mean_distortion

    def draw(self, rng: np.random.Generator | None) -> Privatiser:
        inner = self.inner.private(rng)
        if rng is None and self.grid is not None:
            return inner  # its argument comes from `measured`, which returns the sums of A Q
        return lambda sums: inner(self.matrix @ sums)

    def process(self, noisy: FloatArray) -> FloatArray:
        scale = self.inner.workload.l2_diameter()
        tolerance = relative_tolerance(squared_noise_limit(self.inner), scale)
        return self._projector.nearest(noisy, tol=tolerance).point


def width_limit(body: Body) -> float:
    """Upper confidence limit of the Gaussian width of a body."""
    return gaussian_width(body, rng=PUBLIC_SEED).interval[1]


def distortion_bound(width: float, diameter: float, rows: int) -> float:
    """Upper bound on E_A delta(A) of `JL` for a map with k = `rows` rows. It decreases in k."""
    drift = 1 / (4 * math.sqrt(rows)) + math.sqrt(1 / 2) / 2
    # By Gordon's inequality, sqrt(k) E_A delta(A) <= 2 w + E max(0, sqrt(k) - ||g||) diam for g
    # standard Gaussian in R^k. E ||g|| >= sqrt(k) - 1/(4 sqrt(k)) and Var ||g|| < 1/2 bound the
    # expectation.
    return (2 * width + drift * diameter) / math.sqrt(rows)


# The coarse mechanism.


class Coarse(PostProcessed):
    """Round every answer vector to a net, then answer the rounded queries.

    Q(x) in R^m holds the answers to the m queries on record x. The net S (attribute `net`, (s, m))
    is a set of answer vectors, each the farthest from all earlier ones. Any two points of S are at
    least `radius` sqrt(m) apart, and every other Q(x) is closer than this to a point of S. pi(x) is
    the point of S nearest to Q(x). M(X) is the release of a mechanism of the same kind as `inner`
    for the workload Q' = pi, which is the attribute `inner`.

    ``ValueError`` if `inner` is not a mechanism or cannot answer Q', if the universe is infinite,
    or if there are more than 2^26 answers over all elements. Also under add/remove: the rounding
    error of sums grows with the private number of records.

    Parameters
    ----------
    inner : Mechanism
        A mechanism for Q. Its kind, workload, n, privacy and adjacency are used, but not its noise.
    radius : float
        Lower bound on the distance of two points of the net, divided by sqrt(m): above 0, and so
        small that the net has at least two points.

    Notes
    -----
    Privacy: the guarantee of `inner` for the workload Q', which is a public function of one record.

    Error: let e' be the predicted error of `inner` for Q'. For all data of n records (for `JL` on
    average over its random map), by Minkowski's inequality,

        (E ||M(X) - Q(X)||^2 / m)^(1/2) <= max over x of ||Q(x) - pi(x)||_2 / sqrt(m) + e'.

    The first term is less than `radius` and limits the accuracy for large n. For a net of few
    points, of small width and few dimensions, e' can be small for small n.

    Cost: for N elements of the universe, each point of the net takes O(N m).

    References
    ----------
    Nikolov 2022, Algorithm 2 and Lemma 26; formula sheet JL-A2, JL-L26.

    Examples
    --------
    >>> import geomdp as gd
    >>> ball = gd.mechanisms.Ball(gd.workloads.Prefixes(32), n=10, privacy=gd.PureDP(1.0))
    >>> round(ball.predicted_rmse.value, 1)
    3.1
    >>> mechanism = gd.mechanisms.Coarse(gd.mechanisms.Projected(ball), radius=0.35)
    >>> len(mechanism.net), round(mechanism.predicted_rmse.value, 1)
    (8, 0.7)
    """

    def __init__(self, inner: Mechanism, radius: float) -> None:
        if not isinstance(inner, Mechanism):
            raise ValueError(f"inner must be a mechanism, got {type(inner).__name__}")
        self._radius = positive(radius, "radius")
        super().__init__(inner)
        self._require_replace_one("rounding errors grow with the number of records")
        answers = explicit_answers(self.workload)
        separation = self._radius * math.sqrt(self.workload.n_queries)
        found = farthest_points(
            answers, lambda rows: np.asarray(np.linalg.norm(rows, axis=1)), least=separation
        )
        if len(found.order) < 2:
            # The net has a second point if any point is at least `separation` from the first one.
            widest = found.rest / math.sqrt(self.workload.n_queries)
            raise ValueError(
                "radius must leave two points in the net: it must be at most about "
                f"{widest:g}, got {radius!r}"
            )
        self.net = answers[found.order]
        self._coarsened = Coarsened(self.workload, self.net)
        self.inner = inner.with_workload(self._coarsened)

    @property
    def rounding(self) -> float:
        """Largest ||Q(x) - pi(x)||_2 / sqrt(m), less than the radius."""
        return self._coarsened.distance / math.sqrt(self.workload.n_queries)

    @property
    def predicted_rmse(self) -> Prediction:
        inner = self.inner.predicted_rmse
        source = f"rounding {self.rounding:.4g} (JL-A2) + {inner.source}"
        value = self.rounding + inner.value
        return Prediction(value, PredictionKind.UPPER_BOUND, source, inner.stderr)

    def with_workload(self, workload: Workload) -> Self:
        return type(self)(self.inner.with_workload(workload), self._radius)

    def totals(self, records: AnyRecords) -> Totals:
        """Number of records and the sums of the rounded answers, to which `inner` adds noise.

        If `inner` is a `Coarse`, answers are rounded twice, and its noise hides changes of these.
        """
        return self.inner.totals(records)
