"""Additive mechanisms: (exact sums + noise that does not depend on the data) / n.

The Laplace and the Gaussian mechanism are the plainest of them.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray
from geomdp._validation import whole
from geomdp.geometry.projection import Estimate
from geomdp.mechanisms.additive_noise.certify import Origin, proved_body, proved_on_real_records
from geomdp.mechanisms.additive_noise.sums import (
    FAR_ABOVE_UNITS,
    AnyRecords,
    Change,
    ExactPath,
    ExactSums,
    MeasuredSums,
    RealRecords,
    ResidualSums,
    Units,
    exact_sums,
    has_real_records,
)
from geomdp.mechanisms.base import (
    LARGEST_SUM,
    Mechanism,
    Prediction,
    PredictionKind,
    Privatiser,
    checked_size,
    checked_workload,
    once,
    whole_square,
)
from geomdp.noise import GaussianNoise, LaplaceNoise, Noise
from geomdp.noise.few_queries import GeometricNoise, LatticeBoxNoise, StaircaseNoise
from geomdp.noise.gaussian import isotropic, proved_gaussian_scale
from geomdp.noise.rounding import Rounded, grid_for, public_grid
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Guarantee, Privacy, PureDP
from geomdp.privacy.definitions import (
    calibrated_epsilon,
    check_range,
    checked_adjacency,
    gaussian_scale,
    laplace_scale,
)
from geomdp.privacy.guarantees import FLOAT64_CAVEAT, SamplerStatus, rounded_arithmetic
from geomdp.workloads import Workload
from geomdp.workloads.base import Totals

#: If rounding of answers changes a predicted error by less than this share, the prediction leaves
#: the rounding out.
NEGLIGIBLE = 1e-6


@dataclass(eq=False, repr=False)
class AdditiveMechanism(Mechanism):
    """M(X) = (sum over x in X of Q(x) + Z) / n, with noise Z that does not depend on X.

    X is the data set, Q(x) in R^m holds the answers to the m queries on record x, and Z in R^m is
    random noise. The error is Z / n for all data, unless releases round answers, so it can be
    predicted without data. The law of Z does not depend on n, so copies for another n share it.

    A subclass says which definitions of privacy its noise satisfies (`accepts`), gives the noise
    for what one record can change (`law`), and proves the claim in its docstring. It overrides
    `law` and not `noise`, because a proof may ask `law` for another noise. Unseeded releases add
    correctly rounded noise to exact sums if `proved` has a proof for the floats of the noise.

    Subclasses share the parameters and errors below, and this notation. The differences between
    sums of neighbours span the public subspace, whose dimension is r. D_1 and D_2 are the l1 and l2
    sensitivity of the sum: `workload.l1_diameter()` and `workload.l2_diameter()` for replace-one,
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

    #: The definitions of privacy that the noise satisfies; empty for all. Others are refused.
    accepts: ClassVar[tuple[type, ...]] = ()
    #: Whether the proof is for whole answers only, and not for rounded ones.
    whole_only: ClassVar[bool] = False
    #: Whether the noise is confined to the public subspace. Releases are then projected onto it.
    in_span: ClassVar[bool] = False
    #: Whether the constructor sets up, because it is quick. Otherwise the first use does.
    at_once: ClassVar[bool] = False

    workload: Workload
    _: KW_ONLY
    n: int
    privacy: Privacy
    adjacency: Adjacency = Adjacency.REPLACE_ONE

    def __post_init__(self) -> None:
        privacy = self.privacy
        if self.accepts and not isinstance(privacy, self.accepts):
            names = " or ".join(kind.__name__ for kind in self.accepts)
            raise ValueError(f"privacy must be {names} for {type(self).__name__}, got {privacy!r}")
        checked_size(checked_workload(self.workload))
        self.n = whole(self.n, "n")
        check_range(privacy)
        self.change = Change(self.workload, checked_adjacency(self.adjacency))
        self._prepare()
        if self.at_once:
            self.set_up()

    def _prepare(self) -> None:
        """Check the workload; ``ValueError`` if it is constant or not supported."""
        _ = self.change.hull if self.in_span else self.change.l1

    @property
    def origin(self) -> Origin | None:
        """Where `law` takes the parameters of its noise from; None if no proof is known."""
        return None

    @abc.abstractmethod
    def law(self, change: Change) -> Noise:
        """Noise that is private for sums which one record changes as `change` says."""

    @cached_property
    def noise(self) -> Noise:
        """Distribution of the noise Z on sums of answer vectors."""
        return self.law(self.change)

    def _sums(self) -> ExactSums | None:
        """The exact sums to which unseeded releases add noise, if there are any."""
        return exact_sums(self.workload)

    @cached_property
    def exact_path(self) -> ExactPath | None:
        """How unseeded releases are rounded correctly; None without a proof for their noise."""
        sums = self._sums()
        if sums is None or (self.whole_only and not self.workload.whole_answers):
            return None
        return proved(self.noise, sums, self.change, self.law, self.origin)

    @property
    def _used(self) -> ExactPath | None:
        """The exact path, if sums over n records are exact."""
        path = self.exact_path
        return None if path is None or self.n > path.sums.capacity else path

    # `guarantee` is an attribute in the base class. Here it is a property, because the noise may
    # need a set-up.
    @property
    def guarantee(self) -> Guarantee:  # type: ignore[override]
        """The claim of the constructor, with the status of the noise's sampler."""
        path = self._used
        arithmetic = FLOAT64_CAVEAT
        if path is not None:
            arithmetic = rounded_arithmetic(path.grid, path.slack)
        return Guarantee(self.privacy, self.adjacency, self.sampler, arithmetic)

    @property
    def sampler(self) -> SamplerStatus:
        return self.noise.sampler

    @property
    def grid(self) -> int | None:
        """As in `Mechanism`; None if sums are not exact, or rounded noise is not proved private."""
        path = self._used
        return None if path is None else path.grid

    @property
    def answer_rounding(self) -> FloatArray:
        """Largest change (m,) that rounding of answers makes to each mean in an unseeded release.

        It is 0 without rounding, and holds for up to n records. Widen confidence intervals by it.
        """
        return np.zeros(self.workload.n_queries) if self._used is None else self._rounding

    @cached_property
    def _rounding(self) -> FloatArray:
        """`answer_rounding` for any n with exact sums, read-only, because all copies share it."""
        assert self.exact_path is not None
        found = self.exact_path.rounding(self._hull)
        found.flags.writeable = False
        return found

    def measured(self, records: AnyRecords) -> Totals:
        """The sums that `draw` takes; ``ValueError`` if they must be exact and are not."""
        path = self._used
        if path is None:
            return self.totals(records)
        totals = path.sums.totals(records)
        # Sums that are not exact may have too large differences.
        if totals.count > path.sums.capacity:
            raise ValueError(
                f"records must number at most {path.sums.capacity}: sums over more records are not "
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
        return self.change.hull if self.in_span else None

    @property
    def predicted_rmse(self) -> Prediction:
        """(E ||Z||_2^2 / m)^(1/2) / n: the error of M(X) as an estimate of (sum of Q(x)) / n.

        It has a standard error above 0 if E ||Z||^2 is estimated by simulation. If rounding of
        answers can change the error by more than a millionth, it is an upper bound.
        """
        moment, rounding = self.noise.second_moment(), np.zeros(self.workload.n_queries)
        value = math.sqrt(moment.value / len(rounding)) / self.n
        if not self.workload.whole_answers and value < FAR_ABOVE_UNITS * self.workload.l1_radius():
            rounding = self.answer_rounding
        return predicted_error(moment, self.n, rounding, "the noise")

    def with_workload(self, workload: Workload) -> Self:
        return replace(self, workload=workload)

    def set_up(self) -> None:
        _ = self.noise, self._hull, self.exact_path

    def draw(self, rng: np.random.Generator | None) -> Privatiser:
        """Draw Z, and return a function that maps sums to (sums + Z) / n in the public subspace."""
        path, n = self._used, self.n
        if rng is None and path is not None:
            multiples = path.rounded.draw()
            return once(lambda sums: self._restored(path.means(sums, multiples, n)))
        noise = self.noise.sample(np.random.default_rng(rng), 1)[0]
        return once(lambda sums: self._restored((sums + noise) / n))

    def _restored(self, answers: FloatArray) -> FloatArray:
        if self._hull is None:
            return answers
        # All noise is in the subspace. Sums may have rounding errors outside the subspace, where no
        # noise hides them. The projection on the subspace removes these errors.
        return np.asarray(self._hull.embed(self._hull.coordinates(answers[None]))[0])


def predicted_error(moment: Estimate, n: int, rounding: FloatArray, noise: str) -> Prediction:
    """(E ||Z||^2 / m)^(1/2) / n, with at most `rounding` (m,) of each answer, which counts only if
    it is not negligible.
    """
    value = math.sqrt(moment.value / len(rounding)) / n
    # By the derivative of the square root: d sqrt(x) / sqrt(x) = dx / (2 x).
    stderr = value * moment.stderr / (2 * moment.value)
    estimated = "" if moment.samples == 0 else f"; E||Z||^2 from {moment.samples} public draws"
    source = f"E||Z||^2 of {noise} (JL-L14){estimated}"
    rounded = math.sqrt(float(np.mean(rounding**2)))
    # Z has mean 0 and is independent of the rounding error, so the squares add up.
    total = math.hypot(value, rounded)
    if total <= value * (1 + NEGLIGIBLE):
        return Prediction(value, PredictionKind.EXACT, source, stderr)
    source += f" and rounding of answers, at most {rounded:.4g}"
    return Prediction(total, PredictionKind.UPPER_BOUND, source, stderr * value / total)


def proved(
    noise: Noise,
    sums: ExactSums,
    change: Change,
    law: Callable[[Change], Noise],
    origin: Origin | None,
) -> ExactPath | None:
    """Exact sums with the noise that unseeded releases add; None without a proof for its floats.

    `law` gave `noise` for `change`: what one record can change in the answers. `origin` is that of
    its parameters; None if no proof for them is known.
    """
    if origin is None:
        return None
    match sums:
        case MeasuredSums() | ResidualSums():
            # The scales were proved in exact arithmetic, for the changes of the measurements.
            return ExactPath(sums, sums.rounded(noise))
        case RealRecords():
            return proved_on_real_records(noise, sums, change, origin)
        case Units():
            change = Change(sums.answers, change.adjacency)
    match noise:
        case LaplaceNoise() | StaircaseNoise() | GeometricNoise():
            # A whole sensitivity below 2^53 is exact, and scales are rounded up. The proof for
            # staircases holds for the floats of epsilon and of the share of a step.
            exact = change.l1.is_integer() and change.l1 < LARGEST_SUM
            return ExactPath(sums, sums.rounded(law(change))) if exact else None
        case LatticeBoxNoise():
            return ExactPath(sums, sums.rounded(noise))  # units and counts are whole
        case GaussianNoise():
            # The noise is isotropic in R^m: its projection on the span, whose basis is rounded, has
            # the law of `noise`. For squares of whole numbers, the scale of the law is proved.
            found = law(change)
            assert isinstance(found, GaussianNoise)
            grid = grid_for(found.scale) if isinstance(sums, Units) else public_grid(noise)
            return ExactPath(sums, Rounded([isotropic(noise.dimension, found.scale)], grid))
    return proved_body(noise, sums, change, origin)


class PureMechanism(AdditiveMechanism):
    """An additive mechanism with an epsilon-DP claim. Any other `privacy` raises ``ValueError``."""

    accepts = (PureDP,)
    privacy: PureDP


def additive_within(mechanism: Mechanism) -> AdditiveMechanism | None:
    """`mechanism.inner` or `mechanism` itself; None if not additive or for another workload."""
    inner = getattr(mechanism, "inner", mechanism)
    if isinstance(inner, AdditiveMechanism) and inner.workload is mechanism.workload:
        return inner
    return None


# Independent noise on each answer.


class Laplace(AdditiveMechanism):
    """Independent Laplace noise on every query.

    The Z_i are independent Lap(D_1 / epsilon). Notation and parameters are those of
    `AdditiveMechanism`. `privacy` is a `PureDP`, or a `ZCDP` with
    rho = epsilon + e^-epsilon - 1; an `ApproxDP` raises ``ValueError``.

    Notes
    -----
    Privacy: epsilon-DP or rho-zCDP in real arithmetic. Sums of neighbours differ by a vector v with
    ||v||_1 <= D_1. A shift by v changes the joint density of Z by a factor of at most
    exp(epsilon ||v||_1 / D_1). Its Renyi divergence of order a is at most a times the sum of
    x + e^-x - 1 over the x = epsilon |v_i| / D_1. This is convex and 0 at x = 0, so a rho is the
    most (X-TANH). The sampler is exact.

    Error: the root mean squared error of each query is sqrt(2) D_1 / (epsilon n), up to rounding.
    For one count it is below that of `Gaussian` for every rho from 1.635.

    References
    ----------
    Dwork-McSherry-Nissim-Smith 2006; Harrison-Manurangsi 2025 (arXiv 2510.25746); formula sheet
    GEN-3, X-TANH, section 7.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(3)
    >>> mechanism = gd.mechanisms.Laplace(workload, n=100, privacy=gd.PureDP(1.0))
    >>> records = np.array([0] * 50 + [1] * 30 + [2] * 20)
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> release.answers.round(3)
    array([0.506, 0.288, 0.15 ])
    >>> mechanism.release(records).guarantee
    Guarantee(1-DP, replace-one, exact sampler)
    """

    accepts, origin, at_once = (PureDP, ZCDP), Origin.FORMULA, True
    privacy: PureDP | ZCDP

    def law(self, change: Change) -> LaplaceNoise:
        pure = PureDP(calibrated_epsilon(self.privacy, 0.0))
        return LaplaceNoise(self.workload.n_queries, laplace_scale(change.l1, pure))


class Gaussian(AdditiveMechanism):
    """Isotropic Gaussian noise in the subspace of the differences between neighbours.

    Z = B g with g ~ N(0, sigma^2 I_r). The columns of B (m, r) are an orthonormal basis of the
    public subspace. Up to rounding, sigma is the least scale that gives the guarantee for D_2 or
    for an upper bound on it: D_2 / sqrt(2 rho) for rho-zCDP, and the value of
    `analytic_gaussian_scale` for (epsilon, delta)-DP. Notation and parameters are those of
    `AdditiveMechanism`. Gaussian noise is never epsilon-DP, so `privacy` is a `ZCDP` or `ApproxDP`.

    Notes
    -----
    Privacy: rho-zCDP or (epsilon, delta)-DP, in real arithmetic. Sums of neighbours differ by a
    vector B v with ||v||_2 <= D_2, and sigma is calibrated to this length. The sampler is exact.

    Error: the root mean squared error per query is sigma sqrt(r / m) / n, up to rounding.

    References
    ----------
    Bun-Steinke 2016, Proposition 1.6; Balle-Wang 2018, Theorem 8; formula sheet GEN-2, JL-GAUSS.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(4)
    >>> mechanism = gd.mechanisms.Gaussian(workload, n=100, privacy=gd.ApproxDP(1.0, 1e-6))
    >>> print(mechanism.predicted_rmse)
    rmse 0.06337
    """

    accepts, origin = (ZCDP, ApproxDP), Origin.FORMULA
    in_span, at_once = True, True
    privacy: ZCDP | ApproxDP

    def _prepare(self) -> None:
        _ = self.change.l2, self.change.hull

    def law(self, change: Change) -> GaussianNoise:
        # For records in the unit ball or cube of R^d, the squared sensitivity is a whole number,
        # too: 1, 2, 4, d^2 or 2 d^2.
        whole = change.workload.whole_answers or has_real_records(change.workload)
        scale = (
            proved_gaussian_scale(whole_square(change.l2), self.privacy)
            if whole
            else gaussian_scale(change.l2, self.privacy)
        )
        return GaussianNoise(change.hull.basis, scale)
