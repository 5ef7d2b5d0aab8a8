"""Smooth queries: release Chebyshev moments once, and answer all smooth queries from them."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import ClassVar, Self, TypeAlias

import numpy as np

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import positive, require_type, whole
from geomdp.data import Schema
from geomdp.mechanisms.additive_noise.certify import SLACK
from geomdp.mechanisms.base import (
    Prediction,
    PredictionKind,
    RecordChunks,
    pure_only,
    release_once,
    source_and_record,
)
from geomdp.mechanisms.smooth_release import SmoothRelease, check_schema
from geomdp.noise.points import scaled_variables
from geomdp.noise.rounding import Computable, Numbers, Rounded, gaussians, grid_for, laplaces
from geomdp.privacy import Adjacency, Exact, Guarantee, Ledger, Privacy, PureDP
from geomdp.privacy.definitions import check_range, checked_adjacency, gaussian_scale, laplace_scale
from geomdp.privacy.guarantees import FLOAT64_CAVEAT, SamplerStatus, rounded_arithmetic
from geomdp.workloads.smooth.moments import MomentTransform, moment_transform
from geomdp.workloads.smooth.smooth_queries import SmoothQueries

# Noise on the sums of moments.


@dataclass(frozen=True, eq=False)
class ScaledLaplace:
    """Independent Laplace noise with scales b = `scales` (m,), in units of sums."""

    scales: FloatArray
    sampler: ClassVar[SamplerStatus] = Exact()

    @property
    def deviations(self) -> FloatArray:
        return math.sqrt(2) * self.scales

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Independent draws (size, m)."""
        return rng.laplace(0.0, self.scales, (size, len(self.scales)))

    def larger(self, share: float) -> Self:
        """The same noise times 1 + `share`."""
        return type(self)(self.scales * (1 + share))

    def computable(self) -> Computable:
        """The noise as a function of uniform numbers, for correctly rounded draws."""
        return scaled_variables(laplaces, self.scales)


@dataclass(frozen=True, eq=False)
class ScaledGaussian:
    """Independent Gaussian noise with standard deviations `deviations` (m,), in units of sums."""

    deviations: FloatArray
    sampler: ClassVar[SamplerStatus] = Exact()

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return rng.normal(0.0, self.deviations, (size, len(self.deviations)))

    def larger(self, share: float) -> Self:
        return type(self)(self.deviations * (1 + share))

    def computable(self) -> Computable:
        return scaled_variables(gaussians, self.deviations)


#: A slack for each moment (m,), or one for all.
Slack: TypeAlias = "FloatArray | float"


class MomentNoise(abc.ABC):
    """A family of noise on the sums of the m = t^d - 1 moments, calibrated to a guarantee."""

    @abc.abstractmethod
    def calibrate(
        self, workload: SmoothQueries, privacy: Privacy, adjacency: Adjacency, slack: Slack = 0.0
    ) -> ScaledLaplace | ScaledGaussian:
        """The noise that gives `privacy`; `slack` (m,) adds to the change of computed sums."""


class MomentLaplace(MomentNoise):
    """Laplace noise with scales proportional to a shape s (m,) > 0, which the subclass defines."""

    @abc.abstractmethod
    def shape(self, workload: SmoothQueries) -> FloatArray:
        """The shape s (m,)."""

    @abc.abstractmethod
    def sensitivity(self, workload: SmoothQueries, adjacency: Adjacency) -> float:
        """Largest total over j of |change of moment j| / s_j between neighbours, for exact sums."""

    def calibrate(
        self, workload: SmoothQueries, privacy: Privacy, adjacency: Adjacency, slack: Slack = 0.0
    ) -> ScaledLaplace:
        """Scales s_j (sensitivity + sum_i slack_i / s_i) / epsilon."""
        pure, shape = pure_only(privacy, type(self).__name__), self.shape(workload)
        more = float((slack / shape).sum())
        return ScaledLaplace(
            shape * laplace_scale(self.sensitivity(workload, adjacency) + more, pure)
        )


@dataclass(frozen=True)
class UniformLaplace(MomentLaplace):
    """Laplace noise of one scale on all moments, as in Wang et al. 2013, but at the correct scale.

    The scale on sums is b = S(t, d) / epsilon under replace-one, for the l1 diameter
    S(t, d) = t^(d-1) S(t, 1) of the moments, and b = (t^d - 1) / epsilon under add/remove. The
    paper's scale t^d / epsilon is too small under replace-one for t >= 3: S / t^d is 1.042 at t = 3
    and increases to 1.217 as t grows (DISC-15).

    Examples
    --------
    >>> import geomdp as gd
    >>> summary = gd.SmoothSummary(
    ...     1, n=10_000, smoothness=2, privacy=gd.PureDP(1.0), degree=4,
    ...     noise=gd.mechanisms.UniformLaplace(),
    ... )
    >>> summary.noise_std.round(5)
    array([0.     , 0.00061, 0.00061, 0.00061])
    """

    def shape(self, workload: SmoothQueries) -> FloatArray:
        return np.ones(workload.n_queries)

    def sensitivity(self, workload: SmoothQueries, adjacency: Adjacency) -> float:
        replace_one = checked_adjacency(adjacency) is Adjacency.REPLACE_ONE
        return workload.l1_diameter() if replace_one else workload.l1_radius()


@dataclass(frozen=True)
class WeightedLaplace(MomentLaplace):
    """Laplace noise that grows with the degree, because smooth queries weigh high degrees less.

    In this class m is the vector of the d degrees of a moment Q_m. ||m|| is the largest degree. The
    scale on sums is b_m = c ||m||^(2 K / 3). A query with K bounded derivatives has coefficients
    a_m of about ||m||^-K. For these a_m, the scales b_m minimise the sum of a_m^2 b_m^2 among all
    scales with the same sum of 1 / b_m (SM-X1).

    Privacy: let w_m = 1 / b_m. The log-density of the noise changes between neighbours by at most
    the sum of w_m times the change of the sum of Q_m. Under replace-one this is at most

        max over x, x' of sum_m w_m |Q_m(x) - Q_m(x')| = max over x of sum_m w_m (1 - Q_m(x)),

    the weighted l1 diameter (`workloads.smooth.smooth_queries` proves the equality), and under
    add/remove sum_m w_m. The constant c makes this bound equal to epsilon; it is smaller than that
    of the formula sheet, which bounds every change by 2.

    Parameters
    ----------
    smoothness : float
        K > 0, the number of bounded derivatives.

    Examples
    --------
    >>> import geomdp as gd
    >>> summary = gd.SmoothSummary(
    ...     1, n=10_000, smoothness=2, privacy=gd.PureDP(1.0), degree=4,
    ...     noise=gd.mechanisms.WeightedLaplace(2.0),
    ... )
    >>> summary.noise_std.round(5)
    array([0.     , 0.00035, 0.00088, 0.00151])
    """

    smoothness: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "smoothness", positive(self.smoothness, "smoothness"))

    def shape(self, workload: SmoothQueries) -> FloatArray:
        """||m||^(2 K / 3); ``ValueError`` if it is above 1e60 for the largest degree."""
        with np.errstate(over="ignore"):
            shape = workload.orders() ** (2 * self.smoothness / 3)
        if shape.max() > 1e60:  # up to this limit, squares of scales are in the range of float64
            raise ValueError(
                f"smoothness must be smaller for degree {workload.degree}, got {self.smoothness:g}"
            )
        return shape

    def sensitivity(self, workload: SmoothQueries, adjacency: Adjacency) -> float:
        weights = 1 / self.shape(workload)
        if checked_adjacency(adjacency) is Adjacency.REPLACE_ONE:
            return workload.weighted_l1_diameter(weights)
        return float(weights.sum())


@dataclass(frozen=True)
class UniformGaussian(MomentNoise):
    """Gaussian noise of one scale on all moments, calibrated to their l2 diameter or radius."""

    def calibrate(
        self, workload: SmoothQueries, privacy: Privacy, adjacency: Adjacency, slack: Slack = 0.0
    ) -> ScaledGaussian:
        if isinstance(privacy, PureDP):
            raise ValueError(f"privacy must be ZCDP or ApproxDP for UniformGaussian, got {privacy}")
        replace_one = checked_adjacency(adjacency) is Adjacency.REPLACE_ONE
        sensitivity = workload.l2_diameter() if replace_one else workload.l2_radius()
        more = float(np.linalg.norm(np.broadcast_to(slack, workload.n_queries)))
        scale = gaussian_scale(sensitivity + more, privacy)
        return ScaledGaussian(np.full(workload.n_queries, scale))


# Rules for the number of Chebyshev moments.

#: More moments are used only if the predicted error falls by more than this share.
GAIN = 0.05
#: Largest number t^d of moments that `LeastPredictedError` tries, for t = 3 or more.
MOST_TRIED = 1 << 12
#: A function of a workload of degree t in d variables. It returns the standard deviations
#: (t^d - 1,) of the noise on the means of the moments.
NoiseAt = Callable[[SmoothQueries], FloatArray]


@dataclass(frozen=True)
class TheoremDegree:
    """The number of degrees nearest to n^(1 / (2 d + K)), at least 2 (Wang et al. 2013, SM-A1).

    n is the number of records, d the number of variables, and K the number of bounded derivatives.

    Examples
    --------
    >>> import geomdp as gd
    >>> summary = gd.SmoothSummary(
    ...     1, n=10_000, smoothness=2, privacy=gd.PureDP(1.0), degree=gd.mechanisms.TheoremDegree()
    ... )
    >>> summary.degree, round(10_000 ** (1 / (2 * 1 + 2)))
    (10, 10)
    """

    def choose(self, *, d: int, n: int, smoothness: int, noise_at: NoiseAt) -> int:
        """The number t of degrees in each variable; all arguments are public."""
        del noise_at
        return int(max(2, round(n ** (1 / (2 * d + smoothness)))))


@dataclass(frozen=True)
class LeastPredictedError:
    """The least t tried whose predicted error is at most 5% above the least predicted error."""

    def choose(self, *, d: int, n: int, smoothness: int, noise_at: NoiseAt) -> int:
        """As for `TheoremDegree`; additional degrees of little use would cost time."""
        del n
        tried: dict[int, float] = {}
        for degree in self._candidates(d):
            workload = SmoothQueries(d, degree)
            approximation, noise = predicted_error(workload, noise_at(workload), smoothness)
            tried[degree] = approximation + noise
            # Stop if larger t cannot help: the noise alone exceeds the best error, or the
            # approximation error is small already.
            if noise > min(tried.values()) or approximation < GAIN / 2 * noise:
                break
        enough = (1 + GAIN) * min(tried.values())
        return next(degree for degree, error in tried.items() if error <= enough)

    def _candidates(self, d: int) -> Iterator[int]:
        """2, 3, 4, 5, 6, 8, 10, 13, ..., each about a third larger than the one before."""
        degree = 2
        while degree**d <= MOST_TRIED or degree == 2:
            yield degree
            degree = max(degree + 1, degree + degree // 3)


def predicted_error(
    workload: SmoothQueries, deviations: FloatArray, smoothness: int
) -> tuple[float, float]:
    """Predicted approximation and noise errors of the worst query with K bounded derivatives.

    Up to constants, they are t^-K and (sum_m ||m||^(-2 K) s_m^2)^(1/2) for the `deviations` s_m
    (t^d - 1,) of the noise on means (SM-X1).
    """
    decay = workload.orders() ** -float(smoothness)
    return workload.degree ** -float(smoothness), float(np.linalg.norm(decay * deviations))


# The mechanism.

#: Unseeded releases round sums and noise to multiples of 2^-k, for a k of `EXTRA_BITS` more than
#: `grid_for` gives for the noise. At epsilon = 1 this makes Laplace noise larger by a share of at
#: most 1.4e-9 times the number of moments.
EXTRA_BITS = 20
#: The numerical error of a moment is at most the scale of the noise divided by this number.
NUMERICAL_SHARE = 1000


class SmoothSummary:
    """Release noisy Chebyshev product moments of records in [-1, 1]^d.

    M(X) = (sum over x in X of Q(x) + Z) / n with noise Z from a `MomentNoise`. The moments are
    Q_m(x) = prod_i cos(m_i arccos x_i) for all m in {0, ..., t-1}^d except m = 0. Later, their
    combinations answer every query with K bounded derivatives (Wang et al., Algorithms 1 and 2),
    and each answer states its errors of approximation and of noise (`SmoothAnswer`).
    ``ValueError`` for parameters out of range, a noise that cannot give `privacy`, a schema without
    exactly d real columns, or n and epsilon too large for the precision of float64 sums.

    Parameters
    ----------
    d, n, smoothness : int
        Number of variables, number of records (as for `AdditiveMechanism`), and number K >= 1 of
        bounded derivatives of the queries that will be asked.
    privacy : PureDP, ApproxDP or ZCDP
        As for `AdditiveMechanism`.
    degree : TheoremDegree or int, optional
        The number t >= 2 of degrees in each variable, or a rule for it; by default the least t
        tried, with t^d up to 2^12, whose predicted error is at most 5% above the least.
    noise : MomentNoise, optional
        By default `WeightedLaplace(smoothness)` for pure privacy, else Gaussian noise of one scale,
        calibrated to the l2 diameter of the moments, about (2 t^d)^(1/2), or under add/remove to
        their l2 radius, (t^d - 1)^(1/2).
    adjacency, schema : Adjacency, Schema
        Neighbour relation; names and bounds of the d real columns that are the variables, which the
        release keeps. If the bounds were read from the records, there is no privacy claim.

    Notes
    -----
    Privacy, in real arithmetic: with Laplace noise M is epsilon-DP, and with Gaussian noise it has
    the rho-zCDP or (epsilon, delta)-DP of the Gaussian mechanism. The sensitivities are proved in
    `workloads.smooth.smooth_queries` and in the docstrings of the noises, whose samplers are exact.

    Numerical errors: the computed sums are sums of a public function Q', which differs from Q by at
    most `transform.errors`, with rounding errors of at most n r for r = `transform.rounding(n)`. So
    between neighbours a computed sum changes by at most 2 (`transform.errors` + n r) more than the
    exact sum, and the noise allows for this. The errors of the moments, `numerical_errors`, are at
    most a thousandth of the scales of the noise. Under add/remove the bounds hold for up to n
    records only.

    On a computer: unless the attribute `grid` is None, an unseeded release rounds the computed sums
    and the noise to multiples of 2^-grid. The noise allows for a change by 2^-grid more, and is
    multiplied by 1 + 1e-6 to cover the float64 errors of sensitivities and scales.

    References
    ----------
    Wang, Fan, Zhang and Wang 2013, Algorithm 1 and Theorem 3.1; formula sheet SM-A1, SM-X1,
    X-NUFFT, DISC-15, DISC-16.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> mechanism = gd.SmoothSummary(1, n=10_000, smoothness=2, privacy=gd.PureDP(1.0))
    >>> records = np.random.default_rng(0).uniform(-1, 1, (10_000, 1))
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> answer = release.answer(lambda points: np.cos(points[:, 0]))
    >>> round(answer.value, 2), round(answer.noise_std, 4), round(float(np.cos(records).mean()), 2)
    (0.84, 0.0003, 0.84)
    """

    def __init__(
        self,
        d: int,
        *,
        n: int,
        smoothness: int,
        privacy: Privacy,
        degree: TheoremDegree | LeastPredictedError | int | None = None,
        noise: MomentNoise | None = None,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        schema: Schema | None = None,
    ) -> None:
        d, self.n = whole(d, "d"), whole(n, "n")
        self.smoothness = whole(smoothness, "smoothness")
        check_range(privacy)
        checked_adjacency(adjacency)
        if schema is not None:
            check_schema(schema, d)
        self.schema = schema
        if noise is None:
            pure = isinstance(privacy, PureDP)
            noise = WeightedLaplace(self.smoothness) if pure else UniformGaussian()
        require_type(noise, MomentNoise, "noise")

        @cache
        def deviations(workload: SmoothQueries) -> FloatArray:
            return noise.calibrate(workload, privacy, adjacency).deviations / self.n

        rule = LeastPredictedError() if degree is None else degree
        if isinstance(rule, TheoremDegree | LeastPredictedError):
            rule = rule.choose(d=d, n=self.n, smoothness=self.smoothness, noise_at=deviations)
        self.workload = SmoothQueries(d, rule)
        # The standard deviation of Laplace noise is sqrt(2) times its scale.
        scales = deviations(self.workload) / math.sqrt(2)
        tolerances = self.workload.table(scales, float(scales.min())) / NUMERICAL_SHARE
        self.transform = _precise_transform(tolerances, self.n)
        rounding = self.transform.rounding(self.n)
        #: Array of shape (t,) * d: bounds on the errors of the means of the moments, before noise.
        self.numerical_errors = self.transform.errors + rounding
        slack = 2 * (self.transform.errors + self.n * rounding).ravel()[1:]
        #: Distribution of the noise Z on sums.
        self.noise = noise.calibrate(self.workload, privacy, adjacency, slack)
        #: The k of the grid; None under add/remove, because n does not bound the number of records,
        #: or without an exact sampler.
        self.grid: int | None = None
        arithmetic, sampler = FLOAT64_CAVEAT, self.noise.sampler
        if adjacency is Adjacency.REPLACE_ONE and isinstance(sampler, Exact):
            self.grid = grid_for(float(self.noise.deviations.min())) + EXTRA_BITS
            arithmetic = rounded_arithmetic(self.grid, SLACK)
            rounded = noise.calibrate(self.workload, privacy, adjacency, slack + 2.0**-self.grid)
            self._exact = rounded.larger(SLACK)
            self._rounded = Rounded([Numbers(self._exact.computable())], self.grid)
        caveat = "" if schema is None else schema.caveat
        self.guarantee = Guarantee(privacy, adjacency, sampler, arithmetic, withdrawn=caveat)

    def __repr__(self) -> str:
        return (
            f"SmoothSummary({self.workload!r}, n={self.n}, smoothness={self.smoothness}, "
            f"{self.guarantee.privacy}, {self.guarantee.adjacency.value})"
        )

    @property
    def degree(self) -> int:
        """Number t of degrees 0..t-1 in each variable."""
        return self.workload.degree

    @cached_property
    def noise_std(self) -> FloatArray:
        """Standard deviations of the noise on the moments, (t,) * d; 0 at m = 0."""
        return self.workload.table(self.noise.deviations / self.n, 0.0)

    @property
    def predicted_rmse(self) -> Prediction:
        """Root mean squared error per moment except m = 0, against sums over records divided by n.

        It is the same for every data set.
        """
        energy = float(self.noise.deviations @ self.noise.deviations)
        value = math.sqrt(energy / self.workload.n_queries) / self.n
        source = "variances of the noise (SM-A1, SM-X1)"
        return Prediction(value, PredictionKind.EXACT, source)

    def release(
        self, records: RecordChunks, rng: RandomState = None, *, ledger: Ledger | None = None
    ) -> SmoothRelease:
        """The private summary of `records`, points (n, d) of [-1, 1]^d; see `Mechanism.release`.

        `geomdp.data.encode` maps columns with bounds to the cube.
        """
        generator, guarantee = source_and_record(rng, self.guarantee)
        exact = rng is None and self.grid is not None

        def set_up() -> FloatArray:
            noise = self._exact if exact else self.noise
            return self.workload.table(noise.deviations / self.n, 0.0)

        def read() -> tuple[int, FloatArray]:
            chunks = self.workload.universe.chunks(records, self.transform.rows)
            count, sums = self.transform.sums(chunks)
            return count, sums.ravel()[1:]

        def draw(noise_std: FloatArray, sums: FloatArray) -> SmoothRelease:
            if self.grid is not None and exact:
                # Whole numbers are added, and only the quotient is rounded to float64.
                whole_sums = np.rint(np.ldexp(sums, self.grid)).tolist()
                pairs = zip(whole_sums, self._rounded.draw(), strict=True)
                noisy = np.array([(int(s) + j) / (self.n << self.grid) for s, j in pairs])
            else:
                noisy = (sums + self.noise.sample(generator, 1)[0]) / self.n
            return SmoothRelease(
                moments=self.workload.table(noisy),
                noise_std=noise_std,
                n=self.n,
                smoothness=self.smoothness,
                numerical_error=float(self.numerical_errors.max()),
                guarantee=guarantee,
                schema=self.schema,
            )

        return release_once(self, guarantee, ledger, set_up=set_up, read=read, draw=draw)


def _precise_transform(tolerances: FloatArray, n: int) -> MomentTransform:
    """A transform with errors and rounding of at most `tolerances` (t,) * d, or ``ValueError``."""
    transform = moment_transform(tolerances.ndim, len(tolerances), tolerances, n)
    errors = transform.errors + transform.rounding(n)
    if (errors > tolerances).any():
        worst = np.unravel_index(np.argmax(errors / tolerances), errors.shape)
        raise ValueError(
            "n or degree must be smaller, or privacy stronger: a moment of "
            f"{n} records is computed with an error of up to {errors[worst]:.2g}, and its noise "
            f"allows at most {tolerances[worst]:.2g}"
        )
    return transform
