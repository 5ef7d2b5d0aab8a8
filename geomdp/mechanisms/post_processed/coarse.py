"""The coarse mechanism: it rounds answers to a net of few points, so that less noise suffices."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Self

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import positive
from geomdp.data.counting.tallies import CountedRecords
from geomdp.geometry.farthest_points import farthest_points
from geomdp.mechanisms.base import Mechanism
from geomdp.mechanisms.post_processed.base import PostProcessed, require_replace_one
from geomdp.mechanisms.results import Prediction, PredictionKind
from geomdp.workloads import Coarsened, Workload, explicit_answers
from geomdp.workloads.base import Totals
from geomdp.workloads.universe.universes import Records


class Coarse(PostProcessed):
    """Round every answer vector to a net, then answer the rounded queries.

    Q(x) in R^m holds the answers to the m queries on record x. The net S is a set of answer vectors
    Q(x). Any two points of S are at least `radius` sqrt(m) apart, and every other Q(x) is closer
    than this to a point of S. pi(x) is the point of S nearest to Q(x). M(X) is the release of a
    mechanism of the same kind as `inner` for the workload Q' = pi.

    Parameters
    ----------
    inner : Mechanism
        A mechanism for Q. Its kind, workload, n, privacy and adjacency are used, but not its noise.
    radius : float
        Lower bound on the distance of two points of the net, divided by sqrt(m). `radius` must be
        above 0, and so small that the net has at least two points.

    Attributes
    ----------
    inner : Mechanism
        The mechanism for Q'.
    net : (s, m) array
        S, in the order of choice: each new point has the largest distance from the nearest earlier
        point.

    Raises
    ------
    ValueError
        If `inner` is not a mechanism or cannot answer Q', if the universe is infinite, if there are
        more than 2^26 answers over all elements, or if the radius is out of range. Also under
        add/remove: the rounding error of sums grows with the private number of records.

    Notes
    -----
    Privacy: the guarantee of `inner` for the workload Q', unchanged. Q' is a public function of one
    record, as Q is, because the net depends only on Q and `radius`.

    Error: let e' be the predicted error of `inner` for Q'. For all data of n records (for `JL` on
    average over its random map),

        (E ||M(X) - Q(X)||^2 / m)^(1/2) <= max over x of ||Q(x) - pi(x)||_2 / sqrt(m) + e',

    by Minkowski's inequality. The first term is less than `radius` and does not depend on n, so it
    limits the accuracy for large n. A net of few points has a small width and few dimensions, so e'
    can be small even if n is small.

    Cost: for N elements of the universe, each point of the net takes O(N m).

    References
    ----------
    Nikolov 2022, Algorithm 2 and Lemma 26; formula sheet JL-A2, JL-L26.

    Examples
    --------
    With ten records, the noise on all answers is large. Answers rounded to the eight points of the
    net need less noise:

    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(32)
    >>> ball = gd.mechanisms.Ball(workload, n=10, privacy=gd.PureDP(1.0))
    >>> round(ball.predicted_rmse.value, 1)
    3.1
    >>> mechanism = gd.mechanisms.Coarse(gd.mechanisms.Projected(ball), radius=0.35)
    >>> len(mechanism.net)
    8
    >>> round(mechanism.predicted_rmse.value, 1)
    0.7
    """

    def __init__(self, inner: Mechanism, radius: float) -> None:
        if not isinstance(inner, Mechanism):
            raise ValueError(f"inner must be a mechanism, got {type(inner).__name__}")
        self._radius = positive(radius, "radius")
        super().__init__(inner)
        require_replace_one(self, "rounding errors grow with the number of records")
        answers = explicit_answers(self.workload)
        separation = self._radius * math.sqrt(self.workload.n_queries)
        found = farthest_points(answers, _lengths, least=separation)
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

    def totals(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        """Number of records and the sums to which `inner` adds noise: sums of the rounded answers.

        If `inner` is a `Coarse`, it rounds these answers again. Its noise hides changes of the sums
        of the answers that were rounded twice, but no other changes.
        """
        return self.inner.totals(records)


def _lengths(rows: FloatArray) -> FloatArray:
    """Euclidean norm of each row of `rows` (b, m)."""
    return np.asarray(np.linalg.norm(rows, axis=1))
