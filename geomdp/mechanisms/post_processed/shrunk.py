"""The shrinking mechanism: additive noise, then a step towards the centre of the answers' body."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from geomdp._typing import FloatArray
from geomdp.geometry.projection.projector import Projector
from geomdp.mechanisms.post_processed.base import PostProcessedNoise
from geomdp.mechanisms.post_processed.projected import (
    GAP_SHARE,
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
    """An additive mechanism shrunk towards a public point, then projected: for very few records.

    M(X) = argmin over p in K of ||p - (c + s (y - c))||_2 with y = Q(X) + Z / n, Z the noise of
    `inner`, K as in `Projected`, and

        s = r^2 / (r^2 + v),  v = E ||Z||^2 / n^2,

    or an upper limit of v where it is estimated, c the answers for uniform data (see
    `centre_and_radius`) and r >= ||Q(x) - c|| for every record x. This s has the least bound on the
    error.

    `inner` must be an additive mechanism, ``ValueError`` otherwise.

    Notes
    -----
    Privacy: the guarantee of `inner`, unchanged. c, r, v and K are public, and everything else
    reads the noisy answers only (post-processing, GEN-2).

    Error: for all data of n records, as Z has mean 0 and a projection moves no point further away,

        E ||M(X) - Q(X)||^2 <= (1 - s)^2 ||Q(X) - c||^2 + s^2 v <= r^2 v / (r^2 + v),

    below both the error of the noise and that of the best constant answer. The bound is below that
    of `Projected` where the noise is so large that E h_K(Z) / n exceeds r^2 v / (r^2 + v): the
    nearest point then says little about the data. Data far from c, such as copies of one record,
    have nearly the error of the bound.

    References
    ----------
    Donoho-Liu-MacGibbon 1990 (linear minimax estimates); formula sheet JL-L13, GEN-2.
    """

    @cached_property
    def _ball(self) -> tuple[FloatArray, float]:
        return centre_and_radius(self.workload)

    @cached_property
    def _projector(self) -> Projector:
        return tried_projector(reachable_body(self.workload))

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
        """Upper bound for every data set of n records; see the class."""
        # A duality gap eta of the projection adds at most 2 eta.
        square = self._squared_bound * (1 + 2 * GAP_SHARE)
        value = math.sqrt(square / self.workload.n_queries)
        source = f"r^2 v / (r^2 + v), linear minimax, r = {self._ball[1]:.4g}"
        source += noise_limit_source(self.inner)
        return Prediction(value, PredictionKind.UPPER_BOUND, source)

    def set_up(self) -> None:
        """Set up `inner` and the geometry; ``WorkloadSizeError`` if no projection is possible."""
        super().set_up()
        _ = self._ball, self._projector

    def process(self, noisy: FloatArray) -> FloatArray:
        """The nearest point of K to the noisy answers, shrunk towards the centre."""
        centre, radius = self._ball
        shrunk = centre + self.factor * (noisy - centre)
        tolerance = relative_tolerance(self._squared_bound, 2 * radius)
        return self._projector.nearest(shrunk, tol=tolerance).point


def centre_and_radius(workload: Workload) -> tuple[FloatArray, float]:
    """A public point c (m,) and a proved r >= ||Q(x) - c||_2 for every element x.

    * `MarginalTables`: c the uniform tables, r^2 the sum of 1 - 1 / (number of cells) over tables,
      which every element attains;
    * at most 2^24 answers of all elements: c their mean, r the largest distance;
    * any other workload: c the point of the affine hull nearest to 0, r^2 = R^2 - ||c||^2 with R
      the largest norm of an answer vector.
    """
    if isinstance(workload, MarginalTables):
        cells = np.array([place.stop - place.start for place in workload.slices])
        return np.repeat(1 / cells, cells), math.sqrt(float((1 - 1 / cells).sum()))
    size, m = workload.universe.size, workload.n_queries
    if size is not None and size * m <= MAX_SCORES:
        answers = explicit_answers(workload)
        centre = answers.mean(axis=0)
        return centre, float(np.linalg.norm(answers - centre, axis=1).max())
    hull = workload.affine_hull()
    centre = hull.offset - hull.basis @ (hull.basis.T @ hull.offset)
    return centre, math.sqrt(workload.l2_radius() ** 2 - float(centre @ centre))
