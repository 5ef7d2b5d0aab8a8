"""Additive mechanisms: (exact sums + noise that does not depend on the data) / n."""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray
from geomdp._validation import whole
from geomdp.data.tallies import CountedRecords
from geomdp.mechanisms.additive_noise.real_answers import (
    CertifiedRows,
    Measurement,
    ScaledAnswers,
    Units,
    far_above_rounding,
    has_real_records,
    units_of,
)
from geomdp.mechanisms.base import (
    Mechanism,
    Privatiser,
    checked_size,
    checked_workload,
    l1_sensitivity,
    once,
    pure_only,
)
from geomdp.mechanisms.release import LARGEST_SUM, Prediction, PredictionKind, quotients
from geomdp.noise.base import Noise
from geomdp.noise.exact import RoundedNoise, public_grid
from geomdp.noise.exact.release import Rounded
from geomdp.privacy import Adjacency, Guarantee, Privacy, PureDP, SamplerStatus
from geomdp.privacy.definitions import check_range, checked_adjacency
from geomdp.privacy.guarantees import FLOAT64_CAVEAT, rounded_arithmetic
from geomdp.workloads import Workload
from geomdp.workloads.base import Totals
from geomdp.workloads.universes import Records

#: If rounding of answers changes a predicted error by less than this share, the prediction leaves
#: the rounding out.
NEGLIGIBLE = 1e-6


class AdditiveMechanism(Mechanism):
    """M(X) = (sum over x in X of Q(x) + Z) / n, with noise Z that does not depend on X.

    X is the data set, Q(x) in R^m holds the answers to the m queries on record x, and Z in R^m is
    random noise. The error is Z / n for all data, unless releases round answers, so it can be
    predicted without data. The law of Z does not depend on n, so copies for another n share it.

    A subclass defines `noise` and a constructor, which makes the privacy claim. Subclasses share
    the parameters and errors below, and this notation. The differences between sums of neighbours
    span the public subspace, whose dimension is r. D_1 and D_2 are the l1 and l2 sensitivity of the
    sum: `workload.l1_diameter()` and `workload.l2_diameter()` for replace-one,
    `workload.l1_radius()` and `workload.l2_radius()` for add/remove.

    Parameters
    ----------
    workload : Workload
        m queries; answers are means.
    n : int
        Number of records; under add/remove, a declared public number by which sums are divided.
    privacy : PureDP, ZCDP or ApproxDP
        The guarantee of one release; epsilon or rho is from 1e-12 to 1e12.
    adjacency : Adjacency
        Neighbour relation.

    Raises
    ------
    ValueError
        For parameters of a wrong type or out of range, a definition of privacy that the noise does
        not satisfy, or a workload that is constant or not supported, or whose largest l1 norm of an
        answer vector is outside 1e-60 to 1e60.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(16)
    >>> for kind in (gd.mechanisms.Laplace, gd.mechanisms.Ball, gd.mechanisms.Hierarchical):
    ...     mechanism = kind(workload, n=1000, privacy=gd.PureDP(1.0))
    ...     print(kind.__name__, round(mechanism.predicted_rmse.value, 4))
    Laplace 0.0212
    Ball 0.015
    Hierarchical 0.0044
    """

    #: The public subspace that contains all released means; None if the noise fills R^m.
    _span: AffineHull | None = None

    def __init__(
        self, workload: Workload, *, n: int, privacy: Privacy, adjacency: Adjacency
    ) -> None:
        self.workload, self.n = checked_size(checked_workload(workload)), whole(n, "n")
        check_range(privacy)
        self.privacy, self.adjacency = privacy, checked_adjacency(adjacency)

    @property
    @abc.abstractmethod
    def noise(self) -> Noise:
        """Distribution of the noise Z on sums of answer vectors."""

    # `guarantee` is an attribute in the base class. Here it is a property, because the noise may
    # need a set-up.
    @cached_property
    def guarantee(self) -> Guarantee:  # type: ignore[override]
        """The claim of the constructor, with the status of the noise's sampler."""
        exact = self._rows if self.measurement is None else self.measurement
        slack = 0.0 if exact is None else exact.slack
        arithmetic = FLOAT64_CAVEAT if self.grid is None else rounded_arithmetic(self.grid, slack)
        return Guarantee(self.privacy, self.adjacency, self.sampler, arithmetic)

    @property
    def sampler(self) -> SamplerStatus:
        return self.noise.sampler

    def _proved_as_computed(self) -> bool:
        """Whether the parameters of `noise` are exact, or rounded to more noise (X-GRID)."""
        return False

    @cached_property
    def grid(self) -> int | None:
        """As in `Mechanism`; None if sums are not exact, or rounded noise is not proved private."""
        if not self._sums_are_exact:
            return None
        if self.measurement is not None:
            return self.measurement.grid
        if self._rows is not None:
            return public_grid(self._rows.noise)
        proved = self._proved_as_computed() and self.workload.whole_answers
        return public_grid(self.noise) if proved else None

    @cached_property
    def _rows(self) -> CertifiedRows | None:
        """Noise on a few answers that determine all others; None if all answers get noise."""
        return None

    @cached_property
    def measurement(self) -> Measurement | None:
        """The rounded answers that unseeded releases measure if not all answers are whole numbers.

        None if all answers are whole, or if no noise is proved private for rounded answers.
        """
        if self.workload.whole_answers:
            return None
        if has_real_records(self.workload):
            return self._on_real_records()
        units = units_of(self.workload)
        return None if units is None else self._in_units(units)

    def _on_real_records(self) -> Measurement | None:
        """The measurement if records are real vectors; None without a proof of its privacy."""
        return None

    def _in_units(self, units: Units) -> ScaledAnswers | None:
        """The measurement of answers in whole units; None without a proof of its privacy."""
        del units
        return None

    @cached_property
    def answer_rounding(self) -> FloatArray:
        """Largest change (m,) that rounding of answers makes to each mean in an unseeded release.

        It is 0 without rounding, and holds for up to n records. Widen confidence intervals by it.
        """
        if self.measurement is None or self.grid is None:
            return np.zeros(self.workload.n_queries)
        return self.measurement.rounding(self._hull)

    @property
    def _sums_are_exact(self) -> bool:
        return self.n <= self._capacity

    @property
    def _capacity(self) -> int:
        """Largest number of records with exact sums. Sums of whole numbers are exact below 2^53."""
        if self.measurement is not None:
            return self.measurement.capacity
        return math.ceil(LARGEST_SUM / Fraction(self.workload.l1_radius())) - 1

    def with_n(self, n: int) -> Self:
        twin = super().with_n(n)
        if twin._sums_are_exact != self._sums_are_exact:
            for name in ("grid", "_rounded", "guarantee", "answer_rounding"):
                vars(twin).pop(name, None)
            twin.set_up()
        return twin

    @cached_property
    def _rounded(self) -> Rounded | None:
        if self.grid is None or self.measurement is not None:
            return None
        noise = self.noise if self._rows is None else self._rows.noise
        return RoundedNoise(noise, self.grid)

    def measured(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        """Sums of answers or rounded answers; ``ValueError`` if they must be exact and are not."""
        if self.grid is None:
            return self.totals(records)
        source = self if self.measurement is None else self.measurement
        return self._within_capacity(source.totals(records))

    def _within_capacity(self, totals: Totals) -> Totals:
        """Return `totals`; ``ValueError`` for inexact sums, whose differences may be too large."""
        if totals.count > self._capacity:
            raise ValueError(
                f"records must number at most {self._capacity}: sums over more records are not "
                "exact in float64"
            )
        return totals

    def _claim(self) -> str:
        if "noise" in vars(self):
            return super()._claim()
        # Before the set-up it may not be known whether the sampler is exact.
        return f"target {self.privacy}, {self.adjacency.value}; not set up"

    @property
    def _hull(self) -> AffineHull | None:
        """The public subspace onto which releases are projected; None for all of R^m."""
        return self._span

    @property
    def predicted_rmse(self) -> Prediction:
        """(E ||Z||_2^2 / m)^(1/2) / n: the error of M(X) as an estimate of (sum of Q(x)) / n.

        It has a standard error above 0 if E ||Z||^2 is estimated by simulation. If rounding of
        answers can change the error by more than a millionth, it is an upper bound.
        """
        moment = self.noise.second_moment()
        value = math.sqrt(moment.value / self.workload.n_queries) / self.n
        # By the derivative of the square root: d sqrt(x) / sqrt(x) = dx / (2 x).
        stderr = value * moment.stderr / (2 * moment.value)
        estimated = "" if moment.samples == 0 else f"; E||Z||^2 from {moment.samples} public draws"
        source = f"E||Z||^2 of the noise (JL-L14){estimated}"
        rounding = self._rounding_rmse(value)
        # Z has mean 0 and is independent of the rounding error, so the squares add up.
        total = math.hypot(value, rounding)
        if total <= value * (1 + NEGLIGIBLE):
            return Prediction(value, PredictionKind.EXACT, source, stderr)
        source += f" and rounding of answers, at most {rounding:.4g}"
        return Prediction(total, PredictionKind.UPPER_BOUND, source, stderr * value / total)

    def _rounding_rmse(self, noise: float) -> float:
        """Root mean square of `answer_rounding`; 0 if it is far below the error `noise`."""
        if far_above_rounding(self.workload, noise):
            return 0.0
        return math.sqrt(float(np.mean(self.answer_rounding**2)))

    def with_workload(self, workload: Workload) -> Self:
        return type(self)(workload, n=self.n, privacy=self.privacy, adjacency=self.adjacency)

    def set_up(self) -> None:
        _ = self.noise, self._hull, self.measurement, self.grid, self._rounded

    def draw(self, rng: np.random.Generator | None) -> Privatiser:
        """Draw Z, and return a function that maps sums to (sums + Z) / n in the public subspace."""
        measurement = self.measurement
        if rng is None and measurement is not None and self.grid is not None:
            drawn, n = measurement.draw(), self.n
            return once(lambda sums: self._restored(measurement.answers(sums, drawn, n)))
        if rng is None and self._rounded is not None:
            multiples, unit = self._rounded.draw(), 1 << self._rounded.grid
            return once(lambda sums: self._restored(self._from_rounded(sums, multiples, unit)))
        noise = self.noise.sample(np.random.default_rng(rng), 1)[0]
        return once(lambda sums: self._restored((sums + noise) / self.n))

    def _from_rounded(self, sums: FloatArray, multiples: list[int], unit: int) -> FloatArray:
        """Noisy means, from the sums that `measured` returns and noise in multiples of 1 / unit."""
        if self._rows is None:
            return quotients(sums, multiples, unit, self.n)
        return self._rows.answers(quotients(sums[self._rows.places], multiples, unit, self.n))

    def _restored(self, answers: FloatArray) -> FloatArray:
        if self._hull is None:
            return answers
        # All noise is in the subspace. Sums may have rounding errors outside the subspace, where no
        # noise hides them. The projection on the subspace removes these errors.
        return np.asarray(self._hull.embed(self._hull.coordinates(answers[None]))[0])


def additive_within(mechanism: Mechanism) -> AdditiveMechanism | None:
    """`mechanism.inner` or `mechanism` itself; None if not additive or for another workload."""
    inner = getattr(mechanism, "inner", mechanism)
    if isinstance(inner, AdditiveMechanism) and inner.workload is mechanism.workload:
        return inner
    return None


class PureMechanism(AdditiveMechanism):
    """An additive mechanism with an epsilon-DP claim. Any other `privacy` raises ``ValueError``."""

    privacy: PureDP

    def __init__(
        self,
        workload: Workload,
        *,
        n: int,
        privacy: PureDP,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
    ) -> None:
        pure = pure_only(privacy, type(self).__name__)
        super().__init__(workload, n=n, privacy=pure, adjacency=adjacency)
        self._prepare()

    def _prepare(self) -> None:
        """Compute quick parameters; ``ValueError`` for a workload that is not supported."""
        l1_sensitivity(self.workload, self.adjacency)
