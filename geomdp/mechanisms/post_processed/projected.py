"""The projection mechanism: additive noise, then the nearest attainable answers."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Self

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import whole
from geomdp.bodies import (
    MappedElliptope,
    Product,
    Simplex,
    moment_relaxation,
    sensitivity_polytope,
)
from geomdp.bodies.base import Body
from geomdp.bodies.of_workloads.workload_polytope import WorkloadPolytope
from geomdp.geometry.projection.projector import ConeProjector, Projector
from geomdp.geometry.results import Projection
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.mechanisms.post_processed.base import PostProcessedNoise
from geomdp.mechanisms.post_processed.support_bound import MAX_DRAWS, ExpectedSupport
from geomdp.mechanisms.results import Prediction, PredictionKind
from geomdp.privacy import Adjacency
from geomdp.workloads import MarginalTables, Workload
from geomdp.workloads.base import MAX_SCORES
from geomdp.workloads.structure.sign_products import sign_products

#: Duality gap that the projection must reach, as a share of the mean squared noise.
GAP_SHARE = 1e-6
#: Least tolerance for the gap, as a share of the squared diameter of K. For a smaller tolerance,
#: float64 rounds squared distances too much. This limit replaces `GAP_SHARE` if the root mean
#: squared noise is below 1e-4 of the diameter.
LEAST_TOLERANCE = 1e-14
#: Largest tolerance for the gap, as a share of the squared diameter of K. This limit replaces
#: `GAP_SHARE` if the root mean squared noise is above 10% of the diameter.
LARGEST_TOLERANCE = 1e-8
#: Largest number of columns for which the polytope of tables is replaced by a relaxation. The error
#: bound takes 12 s for 100 columns.
MAX_RELAXED_COLUMNS = 128
#: An upper bound uses an estimate of the mean squared noise plus this number of standard errors. A
#: normal variable exceeds the mean by 4.76 standard deviations with probability 1e-6.
STANDARD_ERRORS = 4.76


class Projected(PostProcessedNoise):
    """An additive mechanism followed by the Euclidean projection onto the attainable answers.

    M(X) = argmin over y in C of ||y - (Q(X) + Z / n)||_2, where Z is the noise of `inner` and C is
    the set of attainable answers. Under replace-one, C is the sensitivity polytope K = K_Q. Under
    add/remove the number of records need not be n, and C is the cone {t y : t >= 0, y in K}. For
    all 2-way tables of 25 to 128 two-level columns, it takes too long to find an extreme point of
    the polytope. K is then the `moment_relaxation`, which contains the polytope and is an image of
    the elliptope (the set of correlation matrices).

    Parameters
    ----------
    inner : AdditiveMechanism
        The mechanism that gives the noisy answers; ``ValueError`` for any other kind.
    draws : int
        Largest number of public draws from which the prediction estimates E h_K(Z), if it uses
        draws of the noise; h_K is the support function of K. Fewer draws take less time and give a
        looser bound. Releases do not depend on `draws`.

    Notes
    -----
    Privacy: the guarantee of `inner`, unchanged. K is public, and the projection reads the noisy
    answers only (post-processing, GEN-2).

    Error: for every data set of n records under replace-one, with the expectation over Z,

        E ||M(X) - Q(X)||^2 <= min{E ||Z||^2 / n^2, E h_K(Z) / n}.

    So the error is at most the error of `inner`. Under add/remove only the first term is a bound,
    for any number of records, with Q(X) the sum of the answers divided by n: the cone has points
    far from each other. `predicted_rmse` also includes the rounding of answers and the duality gap
    of the numerical projection. The gap is at most a millionth of E ||Z||^2 / n^2, or 1e-14 of the
    squared diameter of K if this is larger, and N / n times as large for N > n records.

    References
    ----------
    Nikolov-Talwar-Zhang 2016; Nikolov 2022, Algorithm 1 with A = I and Lemma 13; formula sheet
    JL-A1, JL-L13, JL-L13b.

    Examples
    --------
    Noisy prefix sums need not increase. The nearest attainable answers increase:

    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(4)
    >>> noisy = gd.mechanisms.Laplace(workload, n=20, privacy=gd.PureDP(1.0))
    >>> mechanism = gd.mechanisms.Projected(noisy)
    >>> print(mechanism.predicted_rmse)
    rmse at most 0.2121
    >>> records = np.repeat(np.arange(4), 5)
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> release.noisy.round(3)
    array([0.298, 0.407, 0.375, 0.489])
    >>> release.answers.round(3)
    array([0.298, 0.391, 0.391, 1.   ])
    """

    def __init__(self, inner: AdditiveMechanism, *, draws: int = MAX_DRAWS) -> None:
        super().__init__(inner)
        self._draws = whole(draws, "draws", minimum=2)

    def with_workload(self, workload: Workload) -> Self:
        return type(self)(self.inner.with_workload(workload), draws=self._draws)

    @cached_property
    def body(self) -> Body:
        """K: the sensitivity polytope, or a relaxation if its extreme points cost too much."""
        return reachable_body(self.workload)

    @cached_property
    def _projector(self) -> Projector | ConeProjector:
        return tried_projector(self.body, self.inner.adjacency)

    @cached_property
    def _support(self) -> ExpectedSupport:
        return ExpectedSupport(self.inner.noise, self.body, self._draws)

    @cached_property
    def diameter(self) -> float:
        """An upper bound on the diameter of K."""
        if isinstance(self.body, MappedElliptope):
            return 2 * self.body.half_diameter()
        return self.workload.l2_diameter()

    @property
    def predicted_rmse(self) -> Prediction:
        m = self.workload.n_queries
        additive = squared_noise_limit(self.inner)
        gap = allowed_gap(additive, self.diameter)
        noise = f"E||Z||^2 / n^2 (JL-L13){noise_limit_source(self.inner)}"
        bounds = {noise: additive + 2 * gap}
        if self.inner.adjacency is Adjacency.ADD_REMOVE:
            return Prediction(math.sqrt(bounds[noise] / m), PredictionKind.UPPER_BOUND, noise)
        bounds["diameter of K"] = self.diameter**2
        if not self._support.exceeds(min(bounds.values()) * self.n):
            support = self._support.bound
            # If answers are rounded by a vector r, the bound grows by at most ||r|| diam(K).
            rounding = float(np.linalg.norm(self.inner.answer_rounding)) * self.diameter
            value = support.value / self.n + gap + rounding
            bounds[f"E h_K(Z) / n (JL-L13b), {support.source}"] = value
        source = min(bounds, key=bounds.__getitem__)
        return Prediction(math.sqrt(bounds[source] / m), PredictionKind.UPPER_BOUND, source)

    def set_up(self) -> None:
        """Set up `inner` and the geometry; ``WorkloadSizeError`` if no projection is possible."""
        super().set_up()
        # The draws for the bound E h_K(Z) are taken later, when a prediction first needs them.
        self._projector.prepare()
        _ = self._support, self.diameter

    def process(self, noisy: FloatArray) -> FloatArray:
        return self.nearest(noisy).point

    def nearest(self, noisy: FloatArray, warm_start: Projection | None = None) -> Projection:
        """The point of C nearest to noisy means (m,), up to the gap of `relative_tolerance`.

        `warm_start` is an earlier projection on C, as for `Projector.nearest`.
        """
        tolerance = relative_tolerance(squared_noise_limit(self.inner), self.diameter)
        return self._projector.nearest(noisy, tol=tolerance, warm_start=warm_start)


def is_relaxed(workload: Workload) -> bool:
    """Whether the universe is too large for a search, and the polytope has a relaxation."""
    size = workload.universe.size
    pairs = isinstance(workload, MarginalTables) and workload.k == 2
    large = size is not None and MAX_SCORES < size <= 1 << MAX_RELAXED_COLUMNS
    return pairs and large and sign_products(workload) is not None


def reachable_body(workload: Workload) -> Body:
    """The sensitivity polytope; if `is_relaxed`, instead a relaxation that contains it."""
    if isinstance(workload, MarginalTables) and workload.k == 1:
        return Product([Simplex(np.eye(count)) for count in workload.levels])
    return (moment_relaxation if is_relaxed(workload) else sensitivity_polytope)(workload)


def tried_projector(
    body: Body, adjacency: Adjacency, matrix: FloatArray | None = None
) -> Projector | ConeProjector:
    """The projector on the attainable answers (a cone under add/remove), in the norm ||A y||.

    It checks that extreme points can be found, so that an error is raised before a ledger pays.
    """
    projector = Projector(body, matrix)
    if isinstance(body, WorkloadPolytope):
        # The method checks the size of the universe before it searches: no directions are needed.
        body.extreme_point(np.empty((0, body.dimension)))
    return projector if adjacency is Adjacency.REPLACE_ONE else ConeProjector(projector)


def squared_noise_limit(inner: AdditiveMechanism) -> float:
    """E ||Z||_2^2 / n^2 of an additive mechanism, or an upper limit if E ||Z||^2 is estimated."""
    predicted = inner.predicted_rmse
    limit = predicted.value + STANDARD_ERRORS * predicted.stderr
    return limit**2 * inner.workload.n_queries


def noise_limit_source(inner: AdditiveMechanism) -> str:
    """Note for the source of a prediction; empty if E ||Z||^2 is not estimated."""
    estimated = inner.predicted_rmse.stderr > 0
    return "; E||Z||^2 by an upper limit from public draws" if estimated else ""


def relative_tolerance(
    energy: float, scale: float, *, share: float = GAP_SHARE, largest: float = LARGEST_TOLERANCE
) -> float:
    """Tolerance for a gap of `share` times `energy`, the squared noise, relative to `scale`^2."""
    return min(max(share * energy / scale**2, LEAST_TOLERANCE), largest)


def allowed_gap(energy: float, scale: float) -> float:
    """The largest duality gap eta at which a search with `relative_tolerance` stops.

    For noise Z on means and the error e of the point found, e^2 <= ||Z||^2 + 2 eta and
    E e^2 <= E h_K(Z) + eta, because <y - p, Q(X) - p> <= eta for noisy answers y and the point p.
    """
    return relative_tolerance(energy, scale) * scale**2
