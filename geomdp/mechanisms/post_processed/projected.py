"""The projection mechanism: additive noise, then the nearest point of the sensitivity polytope."""

from __future__ import annotations

import math
from functools import cached_property

from geomdp._typing import FloatArray
from geomdp.bodies import MappedElliptope, moment_relaxation, sensitivity_polytope
from geomdp.bodies.base import Body
from geomdp.geometry.projection.projector import Projector
from geomdp.geometry.results import Projection
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.mechanisms.post_processed.base import PostProcessedNoise
from geomdp.mechanisms.post_processed.support_bound import SupportBound, expected_support_bound
from geomdp.mechanisms.results import Prediction, PredictionKind
from geomdp.workloads import MarginalTables, Workload
from geomdp.workloads.base import MAX_SCORES
from geomdp.workloads.structure.sign_products import sign_products

#: Duality gap asked of the projection, as a share of the mean squared noise: it then adds at most
#: one part in a million to the bound on the squared error.
GAP_SHARE = 1e-6
#: Relative tolerances below this one are at the rounding of squared distances in float64.
LEAST_TOLERANCE = 1e-14
#: Columns up to which a relaxation is projected on: its error bound takes 12 s at 100 of them.
MAX_RELAXED_COLUMNS = 128
#: Standard errors added to an estimated mean squared noise before it enters an upper bound; a
#: normal variable exceeds them with probability 1e-6.
STANDARD_ERRORS = 4.76


class Projected(PostProcessedNoise):
    """An additive mechanism followed by the Euclidean projection onto the sensitivity polytope.

    M(X) = argmin over y in K of ||y - (Q(X) + Z / n)||_2, Z the noise of `inner` and K = K_Q the
    sensitivity polytope. For all 2-way tables of 25 to 128 two-level columns, whose polytope is out
    of reach, K is the larger `moment_relaxation`, an image of the elliptope.

    `inner` must be an additive mechanism, ``ValueError`` otherwise.

    Notes
    -----
    Privacy: that of `inner`, word for word; K is public, and the projection reads the noisy
    answers only (post-processing, GEN-2).

    Error: for all data of n records, with E over Z,

        E ||M(X) - Q(X)||^2 <= min{E ||Z||^2 / n^2, E h_K(Z) / n},

    so it never exceeds the error of `inner`. `predicted_rmse` includes the duality gap of the
    numerical projection, a millionth of E ||Z||^2 / n^2. Under add/remove the bound holds for data
    sets of exactly n records; for others only the privacy statement holds.

    References
    ----------
    Nikolov-Talwar-Zhang 2016; Nikolov 2022, Algorithm 1 with A = I and Lemma 13; formula sheet
    JL-A1, JL-L13, JL-L13b.
    """

    @cached_property
    def body(self) -> Body:
        """K: the sensitivity polytope, or a relaxation where that is out of reach."""
        return reachable_body(self.workload)

    @cached_property
    def _projector(self) -> Projector:
        return Projector(self.body)

    @cached_property
    def _support(self) -> SupportBound:
        return expected_support_bound(self.inner.noise, self.body)

    @cached_property
    def diameter(self) -> float:
        """An upper bound on the diameter of K."""
        if isinstance(self.body, MappedElliptope):
            return 2 * self.body.half_diameter()
        return self.workload.l2_diameter()

    @property
    def predicted_rmse(self) -> Prediction:
        """Upper bound for every data set of n records; see the class."""
        m = self.workload.n_queries
        additive = squared_noise_limit(self.inner)
        gap = GAP_SHARE * additive
        bounds = {
            f"E||Z||^2 / n^2 (JL-L13){noise_limit_source(self.inner)}": additive + 2 * gap,
            f"E h_K(Z) / n (JL-L13b), {self._support.source}": self._support.value / self.n + gap,
            "diameter of K": self.diameter**2,
        }
        source = min(bounds, key=bounds.__getitem__)
        return Prediction(math.sqrt(bounds[source] / m), PredictionKind.UPPER_BOUND, source)

    def set_up(self) -> None:
        """Set up `inner` and the geometry."""
        super().set_up()
        _ = self._projector, self._support, self.diameter

    def process(self, noisy: FloatArray) -> FloatArray:
        """The nearest point of K to the noisy answers."""
        return self.nearest(noisy).point

    def nearest(self, noisy: FloatArray, warm_start: Projection | None = None) -> Projection:
        """The nearest point of K to noisy means (m,), to the gap that `predicted_rmse` counts.

        `warm_start` is a point of K found before, as for `Projector.nearest`.
        """
        tolerance = relative_tolerance(squared_noise_limit(self.inner), self.diameter)
        return self._projector.nearest(noisy, tol=tolerance, warm_start=warm_start)


def is_relaxed(workload: Workload) -> bool:
    """Whether no search over elements is possible, but a relaxation of the polytope is at hand."""
    size = workload.universe.size
    pairs = isinstance(workload, MarginalTables) and workload.k == 2
    large = size is not None and MAX_SCORES < size <= 1 << MAX_RELAXED_COLUMNS
    return pairs and large and sign_products(workload) is not None


def reachable_body(workload: Workload) -> Body:
    """The sensitivity polytope, or a relaxation that holds it where that is out of reach."""
    return (moment_relaxation if is_relaxed(workload) else sensitivity_polytope)(workload)


def squared_noise_limit(inner: AdditiveMechanism) -> float:
    """E ||Z||_2^2 / n^2 of an additive mechanism, as an upper limit where it is estimated."""
    predicted = inner.predicted_rmse
    limit = predicted.value + STANDARD_ERRORS * predicted.stderr
    return limit**2 * inner.workload.n_queries


def noise_limit_source(inner: AdditiveMechanism) -> str:
    """What `squared_noise_limit` estimates, to be added to a source; empty where nothing is."""
    estimated = inner.predicted_rmse.stderr > 0
    return "; E||Z||^2 by an upper limit from public draws" if estimated else ""


def relative_tolerance(energy: float, scale: float) -> float:
    """Tolerance of a projection at which its gap is `GAP_SHARE` of the mean squared noise `energy`.

    With a gap eta, <y - p, x - p> <= eta for all x in K; at x = Q(X) this is
    e^2 <= <Z, p - Q(X)> + eta for the error e, hence e^2 <= ||Z||^2 + 2 eta and
    E e^2 <= E h_K(Z) + eta.
    """
    return min(max(GAP_SHARE * energy / scale**2, LEAST_TOLERANCE), 1e-8)
