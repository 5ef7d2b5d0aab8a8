"""Two-way marginals by reduction to the second moment of scaled records (JL-T23)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np

from geomdp._numerics.linalg import svec, unsvec
from geomdp._typing import FloatArray
from geomdp.data.counting.tallies import CountedRecords
from geomdp.mechanisms.additive_noise.real_records import RealRecords
from geomdp.mechanisms.base import Privatiser, once
from geomdp.mechanisms.post_processed.base import PostProcessed
from geomdp.mechanisms.quotients import LARGEST_SUM, quotients
from geomdp.mechanisms.results import Prediction, PredictionKind
from geomdp.mechanisms.second_moments.second_moment import SecondMoment
from geomdp.noise.exact import RoundedVector, grid_for, times
from geomdp.privacy import Adjacency, Guarantee, Privacy
from geomdp.privacy.guarantees import FLOAT64_CAVEAT, rounded_arithmetic
from geomdp.workloads import Marginals, Workload
from geomdp.workloads import SecondMoment as SecondMomentWorkload
from geomdp.workloads.base import CHUNK_ROWS, Totals
from geomdp.workloads.universe.universes import Records


class PairMarginals(PostProcessed):
    """Two-way marginals of {0, 1}^d from the private second moment of x / sqrt(d).

    The scaled records x / sqrt(d) lie in the unit ball. Let N be the release of `SecondMoment` on
    the scaled records. Then M(X)_ij = d N_ij, clipped to [0, 1], estimates the fraction of records
    with x_i = x_j = 1. Under add/remove, where there can be more than n records, it is clipped at 0
    only.

    The parameters of `SecondMoment`, except `clip` and `shrink`, have the same meaning here. The
    workload is `Marginals(d, 2)`; ``ValueError`` for any other. The attribute `inner` is the
    `SecondMoment` that releases N.

    Notes
    -----
    Privacy: the guarantee of `SecondMoment` on the unit ball holds, because the scaling of a record
    does not depend on other records, and M is a function of the release N. The sampler is exact.

    Error: let S be the second moment of the scaled records. With m = d (d - 1) / 2 queries, the sum
    over i < j of the squared errors of N_ij is at most half of ||N - S||_F^2. So the error per
    query is at most d / sqrt(2 m) times the bound of `SecondMoment` on (E ||N - S||_F^2)^(1/2). For
    pure privacy and replace-one, this product is at most
    (d / (d - 1))^(1/2) min{(d + 1) sqrt(2 d) / (n epsilon), ((4 d + 3) / (n epsilon))^(1/2)}. The
    error is also at most 1. Under add/remove, only the bound by E ||Z||_F^2 is left.

    This is the published mechanism, with polynomial time and the rate d^(3/2) / (epsilon n). `Cone`
    has the same rate with a smaller constant, because it writes the entries of a record as signs:
    all matrices in its body then have unit diagonal.

    References
    ----------
    Nikolov 2022, Theorem 23; formula sheet JL-T23, JL-WIS.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Marginals(d=3, k=2)
    >>> mechanism = gd.mechanisms.PairMarginals(workload, n=1000, privacy=gd.PureDP(1.0))
    >>> print(mechanism.predicted_rmse)
    rmse at most 0.01111
    >>> records = np.ones((1000, 3), dtype=int)
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> release.answers.round(3)
    array([0.995, 1.   , 1.   ])
    """

    workload: Marginals
    inner: SecondMoment

    def __init__(
        self,
        workload: Marginals,
        *,
        n: int,
        privacy: Privacy,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
    ) -> None:
        if not isinstance(workload, Marginals) or workload.k != 2:
            raise ValueError(f"workload must be Marginals(d, 2), got {workload!r}")
        moments = SecondMomentWorkload(workload.d)
        super().__init__(SecondMoment(moments, n=n, privacy=privacy, adjacency=adjacency))
        self.workload = workload

    @property
    def predicted_rmse(self) -> Prediction:
        inner = self.inner.predicted_rmse
        whole_norm = inner.value * math.sqrt(self.inner.workload.n_queries)
        value = whole_norm * self.workload.d / math.sqrt(2 * self.workload.n_queries)
        # Answers and truths lie between 0 and the largest answer, so no error exceeds it.
        value = min(value, self._largest)
        return Prediction(value, PredictionKind.UPPER_BOUND, f"JL-T23 from {inner.source}")

    @property
    def _largest(self) -> float:
        return 1.0 if self.adjacency is Adjacency.REPLACE_ONE else math.inf

    @property
    def guarantee(self) -> Guarantee:  # type: ignore[override]
        """The guarantee of `inner`, with the grid to which this mechanism rounds noise."""
        arithmetic = FLOAT64_CAVEAT if self.grid is None else rounded_arithmetic(self.grid)
        return replace(self.inner.guarantee, arithmetic=arithmetic)

    @property
    def grid(self) -> int | None:
        """Exponent of the grid of the noise on the sum of x x^T; None for n of 2^53 or more."""
        # For larger n the counts might not be exact in float64.
        return self._on_counts.grid if self.n < LARGEST_SUM else None

    @cached_property
    def _on_counts(self) -> RoundedVector:
        """Noise on the upper triangle of the sum of x x^T: d times the noise of `inner`."""
        d, inner = self.workload.d, self.inner.inner
        assert isinstance(inner.measurement, RealRecords)
        # The function `svec` lists the upper triangle of a matrix and multiplies entries off the
        # diagonal by sqrt(2). So the variance of such an entry is half the variance of the number
        # in the list.
        deviation = d * math.sqrt(float(inner.noise.variances().min()) / 2)
        return RoundedVector(times(d, inner.measurement.vector), grid_for(deviation))

    def with_workload(self, workload: Workload) -> Self:
        if not isinstance(workload, Marginals):
            raise ValueError(f"workload must be Marginals(d, 2), got {workload!r}")
        return type(self)(
            workload,
            n=self.n,
            privacy=self.guarantee.privacy,
            adjacency=self.guarantee.adjacency,
        )

    def totals(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        """Number of records and svec of the sum of x x^T / d."""
        count, total = self._pairs(records)
        return Totals(count, svec(total) / self.workload.d)

    def _pairs(
        self, records: Records | Iterable[Records] | CountedRecords
    ) -> tuple[int, FloatArray]:
        """Number of records and the sum of x x^T, a matrix (d, d) of whole numbers."""
        d = self.workload.d
        if isinstance(records, CountedRecords):
            pairs = records.totals(self.workload).sums
            total = np.zeros((d, d))
            total[np.triu_indices(d, 1)] = pairs
            total += total.T
            np.fill_diagonal(total, records.totals(Marginals(d, 1)).sums)
            return records.count, total
        count, total = 0, np.zeros((d, d))
        for chunk in self.workload.universe.chunks(records, CHUNK_ROWS):
            count += len(chunk)
            rows = chunk.astype(np.float64)
            total += rows.T @ rows
        return count, total

    def measured(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        """Number of records, and for each i <= j the number of records with x_i = x_j = 1."""
        count, total = self._pairs(records)
        return Totals(count, total[np.triu_indices(self.workload.d)])

    def set_up(self) -> None:
        super().set_up()
        _ = self._on_counts

    def draw(self, rng: np.random.Generator | None) -> Privatiser:
        """Draw noise; the returned function maps sums to second moments (svec) of x / sqrt(d)."""
        if rng is not None or self.grid is None:
            return super().draw(rng)
        multiples, unit, n = self._on_counts.draw(), 1 << self.grid, self.n

        def noisy(sums: FloatArray) -> FloatArray:
            means = np.zeros((self.workload.d, self.workload.d))
            means[np.triu_indices(self.workload.d)] = quotients(sums, multiples, unit, n)
            return self.inner.process(svec(means) / self.workload.d)

        return once(noisy)

    def process(self, noisy: FloatArray) -> FloatArray:
        matrix = unsvec(noisy)
        pairs = matrix[np.triu_indices(self.workload.d, 1)]
        return np.asarray(np.clip(self.workload.d * pairs, 0.0, self._largest))
