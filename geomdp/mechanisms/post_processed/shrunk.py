"""The shrinking mechanism: it moves noisy answers towards a public centre, then projects them."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from geomdp._typing import FloatArray
from geomdp.geometry.projection.projector import ConeProjector, Projector
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.mechanisms.post_processed.base import PostProcessedNoise, require_replace_one
from geomdp.mechanisms.post_processed.projected import (
    allowed_gap,
    noise_limit_source,
    reachable_body,
    relative_tolerance,
    squared_noise_limit,
    tried_projector,
)
from geomdp.mechanisms.results import Prediction, PredictionKind
from geomdp.workloads import MarginalTables, Workload, explicit_answers
from geomdp.workloads.base import MAX_SCORES


class Shrunk(PostProcessedNoise):
    """Move noisy answers towards a public point, then project them; useful for very few records.

    M(X) = argmin over p in K of ||p - (c + s (y - c))||_2. Here y = Q(X) + Z / n with the noise Z
    of `inner`, K is the body of attainable answers as in `Projected`, and

        s = r^2 / (r^2 + v),  v = E ||Z||^2 / n^2.

    c is a public point, such as the answers for uniform data, and r >= ||Q(x) - c|| for every
    record x (see `centre_and_radius`). If E ||Z||^2 is estimated, v is an upper confidence limit.
    This s minimises the error bound that the notes prove.

    ``ValueError`` if `inner` is not an additive mechanism, or is one for add/remove: the answers
    of any number of records can be arbitrarily far from c.

    Notes
    -----
    Privacy: the guarantee of `inner`, unchanged (post-processing, GEN-2). c, r, v and K are public.

    Error: Z has mean 0. Because Q(X) is in K, a projection on K moves no point further away from
    Q(X). So for all data of n records

        E ||M(X) - Q(X)||^2 <= (1 - s)^2 ||Q(X) - c||^2 + s^2 v <= r^2 v / (r^2 + v).

    This bound is below v, the squared error of the noise, and below r^2, a bound on the squared
    error of the answer c. If E h_K(Z) / n exceeds r^2 v / (r^2 + v), with h_K the support function
    of K, it is also below the bound min{v, E h_K(Z) / n} of `Projected`; then the point of K
    nearest to y says little about the data. For data far from c, such as copies of one record, the
    error can be nearly as large as the bound.

    References
    ----------
    Donoho-Liu-MacGibbon 1990 (linear minimax estimates); formula sheet JL-L13, GEN-2.

    Examples
    --------
    With very few records the noise is larger than all differences of answers:

    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(4)
    >>> laplace = gd.mechanisms.Laplace(workload, n=4, privacy=gd.PureDP(0.5))
    >>> mechanism = gd.mechanisms.Shrunk(laplace)
    >>> round(mechanism.factor, 3)
    0.046
    >>> print(mechanism.predicted_rmse)
    rmse at most 0.4567
    >>> print(gd.mechanisms.Projected(laplace).predicted_rmse)
    rmse at most 0.7134
    >>> release = mechanism.release(np.arange(4), rng=0)  # a simulation: the seed voids privacy
    >>> release.answers.round(3)
    array([0.272, 0.457, 0.576, 1.   ])
    """

    def __init__(self, inner: AdditiveMechanism) -> None:
        super().__init__(inner)
        require_replace_one(self, "answers can be far from every public centre")

    @cached_property
    def _ball(self) -> tuple[FloatArray, float]:
        return centre_and_radius(self.workload)

    @cached_property
    def _projector(self) -> Projector | ConeProjector:
        return tried_projector(reachable_body(self.workload), self.inner.adjacency)

    @property
    def factor(self) -> float:
        """The factor s."""
        square, noise = self._ball[1] ** 2, squared_noise_limit(self.inner)
        return square / (square + noise)

    @property
    def _squared_bound(self) -> float:
        return self.factor * squared_noise_limit(self.inner)

    @property
    def predicted_rmse(self) -> Prediction:
        # If the projection stops at a duality gap eta, the squared error grows by at most 2 eta.
        square = self._squared_bound
        square += 2 * allowed_gap(square, 2 * self._ball[1])
        value = math.sqrt(square / self.workload.n_queries)
        source = f"r^2 v / (r^2 + v), linear minimax, r = {self._ball[1]:.4g}"
        source += noise_limit_source(self.inner)
        return Prediction(value, PredictionKind.UPPER_BOUND, source)

    def set_up(self) -> None:
        """Set up `inner` and the geometry; ``WorkloadSizeError`` if no projection is possible."""
        super().set_up()
        self._projector.prepare()
        _ = self._ball

    def process(self, noisy: FloatArray) -> FloatArray:
        centre, radius = self._ball
        shrunk = centre + self.factor * (noisy - centre)
        tolerance = relative_tolerance(self._squared_bound, 2 * radius)
        return self._projector.nearest(shrunk, tol=tolerance).point


def centre_and_radius(workload: Workload) -> tuple[FloatArray, float]:
    """A public point c (m,), and a proved r with r >= ||Q(x) - c||_2 for all answers Q(x)."""
    # c holds the tables of uniform data. ||Q(x) - c||^2 is the same for every element x: the sum
    # over tables of 1 - 1 / (number of cells).
    if isinstance(workload, MarginalTables):
        cells = np.array([place.stop - place.start for place in workload.slices])
        return np.repeat(1 / cells, cells), math.sqrt(float((1 - 1 / cells).sum()))
    size, m = workload.universe.size, workload.n_queries
    if size is not None and size * m <= MAX_SCORES:
        answers = explicit_answers(workload)
        centre = answers.mean(axis=0)
        return centre, float(np.linalg.norm(answers - centre, axis=1).max())
    # c is the point nearest to 0 in the affine hull, so ||Q(x) - c||^2 = ||Q(x)||^2 - ||c||^2.
    hull = workload.affine_hull()
    centre = hull.offset - hull.basis @ (hull.basis.T @ hull.offset)
    return centre, math.sqrt(workload.l2_radius() ** 2 - float(centre @ centre))
