"""Covariance of records in the unit ball, from private second moments and a private mean."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Self

import numpy as np

from geomdp._numerics.linalg import svec
from geomdp._typing import FloatArray, RandomState
from geomdp._validation import probability, whole
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism, Gaussian
from geomdp.mechanisms.additive_noise.knorm import Ball
from geomdp.mechanisms.additive_noise.sums import RealRecords
from geomdp.mechanisms.base import (
    Prediction,
    PredictionKind,
    Release,
    release_once,
    source_and_record,
)
from geomdp.mechanisms.second_moment import SecondMoment, clipped_to_ball
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Guarantee, Ledger, Privacy, PureDP
from geomdp.privacy.definitions import check_range, checked_adjacency
from geomdp.workloads import Means
from geomdp.workloads import SecondMoment as SecondMomentWorkload
from geomdp.workloads.base import CHUNK_ROWS
from geomdp.workloads.universes import Records

#: Sums of x (d,) and of svec(x x^T) (m,). svec lists the upper triangle of a matrix, see
#: `Covariance`. For correctly rounded noise, both arrays hold digits of exact sums (`RealRecords`).
Sums = tuple[FloatArray, FloatArray]


class Covariance:
    """The covariance matrix of records in the unit ball of R^d.

    S(X) is the psd matrix of trace at most 1 that is nearest to M - mu mu^T. M is the release of
    `SecondMoment` with one part of the budget. The other part pays for the private mean mu: the
    mean plus the noise of `Ball` (pure privacy) or `Gaussian`, projected on the unit ball.
    Covariances of data in the unit ball are psd with trace at most 1, so the projection adds no
    error. The answers are svec(S(X)) of length m = d (d + 1) / 2: the upper triangle, with entries
    off the diagonal multiplied by sqrt(2).

    This class is not a `Mechanism`, because a covariance is not a mean of answers of single
    records. The parameters of `SecondMoment`, except `shrink`, have the same meaning here.
    `mean_share` is the share of the budget for the mean. ``ValueError`` if this share is not above
    0 and below 1, and under add/remove: M - mu mu^T is an estimate of the covariance only if sums
    are divided by the number of records, which is private there.

    Notes
    -----
    Privacy, in real arithmetic: M and mu are released with shares of epsilon, of rho, or of epsilon
    and delta. By basic composition the shares add up to `privacy`. S(X) is a function of M and mu,
    and the guarantee covers both, also their noisy values before the projections. The samplers are
    exact.

    Error: let M_n and mu_n be the second moments and the mean of the records. Suppose that
    (E ||M - M_n||_F^2)^(1/2) <= a and (E ||mu - mu_n||^2)^(1/2) <= b. Then the root mean squared
    error of S(X) against the covariance of the records is at most a + 2 b in Frobenius norm. The
    factor 2 is there because ||x x^T - y y^T||_F <= 2 ||x - y|| in the unit ball. If the records
    are independent draws from a distribution, the mean error against the covariance of the
    distribution is at most a + 2 b + 3 / sqrt(n) (`population_bound`).

    References
    ----------
    Nikolov 2022, Theorem 3; formula sheet JL-T3, JL-L15, JL-WIS.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> mechanism = gd.mechanisms.Covariance(
    ...     gd.workloads.SecondMoment(2), n=10_000, privacy=gd.PureDP(1.0)
    ... )
    >>> print(mechanism.predicted_rmse)
    rmse at most 0.001731
    >>> records = np.random.default_rng(0).uniform(-0.5, 0.5, (10_000, 2))
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy

    >>> release.answers.round(3)
    array([ 0.083, -0.004,  0.083])
    """

    def __init__(
        self,
        workload: SecondMomentWorkload,
        *,
        n: int,
        privacy: Privacy,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        clip: bool = False,
        mean_share: float = 0.5,
    ) -> None:
        refuse_private_count(adjacency)
        check_range(privacy)
        rest, part = _shares(privacy, probability(mean_share, "mean_share"))
        self.n, self.clip = whole(n, "n"), clip
        self.second_moment = SecondMoment(workload, n=n, privacy=rest, adjacency=adjacency)
        self.workload = self.second_moment.workload
        means = Means(workload.d)
        self.mean: AdditiveMechanism
        if isinstance(part, PureDP):
            self.mean = Ball(means, n=n, privacy=part, adjacency=adjacency)
        else:
            self.mean = Gaussian(means, n=n, privacy=part, adjacency=adjacency)
        # Both samplers are exact, and both mechanisms round their noise correctly. So `sampler` and
        # `arithmetic` of `second_moment` hold for the pair.
        inner = self.second_moment.guarantee
        self.guarantee = Guarantee(privacy, adjacency, inner.sampler, inner.arithmetic)

    @property
    def _bound(self) -> tuple[float, str]:
        """The smaller of a + 2 b and the diameter of all answers, with the source of the bound."""
        moments = self.second_moment.predicted_rmse
        a = moments.value * math.sqrt(self.workload.n_queries)
        # Both means lie in the unit ball, so the error of the private mean is at most 2.
        b = min(self.mean.predicted_rmse.value * math.sqrt(self.workload.d), 2.0)
        diameter = self.workload.l2_diameter()
        if a + 2 * b > diameter:
            return diameter, "diameter of the body"
        return a + 2 * b, f"second moments, {moments.source}, and twice the mean, JL-L15 (JL-T3)"

    @property
    def predicted_rmse(self) -> Prediction:
        """Upper bound on the error per answer against the covariance of the records."""
        value, source = self._bound
        value /= math.sqrt(self.workload.n_queries)
        return Prediction(value, PredictionKind.UPPER_BOUND, source)

    @property
    def population_bound(self) -> float:
        """Upper bound on E ||S(X) - Sigma||_F for independent records of covariance Sigma.

        It is the sum of the bound for the records and 3 / sqrt(n) for sampling (JL-T3).
        """
        return 3 / math.sqrt(self.n) + self._bound[0]

    @property
    def grid(self) -> int | None:
        """Exponent of the grid to which noise is rounded; see `AdditiveMechanism.grid`."""
        return self.second_moment.grid

    def __repr__(self) -> str:
        claim = f"{self.guarantee.privacy}, {self.guarantee.adjacency.value}"
        return f"Covariance({self.workload!r}, n={self.n}, {claim})"

    def with_n(self, n: int) -> Self:
        """The same mechanism for `n` records."""
        twin = copy.copy(self)
        twin.n = whole(n, "n")
        twin.second_moment, twin.mean = self.second_moment.with_n(n), self.mean.with_n(n)
        return twin

    def set_up(self) -> None:
        """Do all work that depends on public arguments alone, so that it cannot fail later."""
        self.second_moment.set_up()
        self.mean.set_up()

    def release(
        self,
        records: Records | Iterable[Records],
        rng: RandomState = None,
        *,
        ledger: Ledger | None = None,
    ) -> Release:
        """The private covariance as svec (m,); parameters as in `Mechanism.release`.

        `noisy` of the result holds the noisy mean (d,), and then svec of the noisy second moments,
        before their projections. Without `clip`, a row of norm above 1 raises ``ValueError``.
        """
        generator, guarantee = source_and_record(rng, self.guarantee)
        rounded = rng is None and self.grid is not None
        read = self._exact_sums if rounded else self._sums

        def set_up() -> Prediction:
            self.set_up()
            return self.predicted_rmse

        def draw(predicted: Prediction, sums: Sums) -> Release:
            mean, moments = self._noisy(sums, None if rounded else generator)
            noisy = np.concatenate([mean, moments])
            return Release(self._answers(mean, moments), guarantee, predicted, noisy=noisy)

        return release_once(
            type(self).__name__,
            self.n,
            guarantee,
            ledger,
            set_up=set_up,
            read=lambda: read(records),
            draw=draw,
        )

    def _chunks(self, records: Records | Iterable[Records]) -> Iterator[FloatArray]:
        d = self.workload.d
        given = clipped_to_ball(records, d) if self.clip else records
        return self.workload.universe.chunks(given, CHUNK_ROWS)

    def _sums(self, records: Records | Iterable[Records]) -> tuple[int, Sums]:
        """Number of records, sum of x (d,) and svec of the sum of x x^T (m,), in one pass."""
        d = self.workload.d
        count, first, second = 0, np.zeros(d), np.zeros((d, d))
        for chunk in self._chunks(records):
            count += len(chunk)
            first += chunk.sum(axis=0)
            second += chunk.T @ chunk
        return count, (first, svec(second))

    def _exact_sums(self, records: Records | Iterable[Records]) -> tuple[int, Sums]:
        """Number of records, and the digits of the exact sums of x and of x x^T."""
        means, moments = _real_records(self.mean), _real_records(self.second_moment.inner)
        count, first, second = 0, means.empty(), moments.empty()
        for chunk in self._chunks(records):
            count += len(chunk)
            means.add(first, chunk)
            moments.add(second, chunk)
        return count, (first.digits(), second.digits())

    def privatise(
        self, first: FloatArray, second: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Private covariance (m,) from the sums of x (d,) and of svec(x x^T) (m,)."""
        return self._answers(*self._noisy((first, second), rng))

    def _noisy(self, sums: Sums, rng: np.random.Generator | None) -> Sums:
        """The noisy mean and the noisy second moments; all noise is drawn before any is added."""
        add_second, add_first = self.second_moment.draw(rng), self.mean.draw(rng)
        return add_first(sums[0]), add_second(sums[1])

    def _answers(self, mean: FloatArray, moments: FloatArray) -> FloatArray:
        """The covariance from the noisy mean and the noisy second moments."""
        moments, mean = self.second_moment.process(moments), self.mean.process(mean)
        mean = mean / max(1.0, float(np.linalg.norm(mean)))
        nearest = self.second_moment.body.project((moments - svec(np.outer(mean, mean)))[None])
        return np.asarray(nearest[0])


def refuse_private_count(adjacency: Adjacency) -> None:
    if checked_adjacency(adjacency) is Adjacency.ADD_REMOVE:
        raise ValueError(
            "a covariance needs replace-one, got add/remove, where the number of records is "
            "private: sums divided by another number give another matrix"
        )


def _real_records(inner: AdditiveMechanism) -> RealRecords:
    """The exact sums over the real entries of records, to which `inner` adds rounded noise."""
    assert inner.exact_path is not None
    assert isinstance(inner.exact_path.sums, RealRecords)
    return inner.exact_path.sums


def _shares(privacy: Privacy, share: float) -> tuple[Privacy, Privacy]:
    """Two guarantees that compose to `privacy`; the second has the share `share` of the budget."""
    match privacy:
        case PureDP(epsilon=epsilon):
            return PureDP(_rest(epsilon, share)), PureDP(share * epsilon)
        case ZCDP(rho=rho):
            return ZCDP(_rest(rho, share)), ZCDP(share * rho)
        case ApproxDP(epsilon=epsilon, delta=delta):
            rest = ApproxDP(_rest(epsilon, share), _rest(delta, share))
            return rest, ApproxDP(share * epsilon, share * delta)
    raise ValueError(f"privacy must be PureDP, ApproxDP or ZCDP, got {privacy!r}")


def _rest(total: float, share: float) -> float:
    """(1 - share) * total, rounded down until the sum with share * total is at most `total`."""
    spent, left = share * total, (1 - share) * total
    while Fraction(spent) + Fraction(left) > Fraction(total):
        left = math.nextafter(left, 0.0)
    return left
