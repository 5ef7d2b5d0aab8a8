"""Additive mechanisms: (exact sums + noise that does not depend on the data) / n."""

from __future__ import annotations

import abc
import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray
from geomdp._validation import whole
from geomdp.geometry.projection import Estimate
from geomdp.mechanisms.additive_noise.certify import Origin, proved
from geomdp.mechanisms.additive_noise.sums import (
    FAR_ABOVE_UNITS,
    MAX_ANSWERS,
    Change,
    ExactPath,
    ExactSums,
    exact_sums,
    has_real_records,
)
from geomdp.mechanisms.base import (
    LARGEST_SUM,
    AnyRecords,
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
from geomdp.noise.few_queries import (
    MOST_COORDINATES,
    GeometricNoise,
    LatticeBoxNoise,
    StaircaseNoise,
)
from geomdp.noise.gaussian import proved_gaussian_scale
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Guarantee, Privacy, PureDP
from geomdp.privacy.definitions import (
    calibrated_epsilon,
    check_privacy,
    check_range,
    checked_adjacency,
    gaussian_scale,
    laplace_scale,
)
from geomdp.privacy.guarantees import FLOAT64_CAVEAT, SamplerStatus, rounded_arithmetic
from geomdp.workloads import Workload
from geomdp.workloads.base import Totals

#: Predictions leave out rounding of answers if it changes the error by less than this share.
NEGLIGIBLE = 1e-6


@dataclass(eq=False, repr=False)
class AdditiveMechanism(Mechanism):
    """M(X) = (sum over x in X of Q(x) + Z) / n, with noise Z that does not depend on X.

    Q(x) in R^m holds the answers to the m queries on record x. The error is Z / n for all data,
    unless releases round answers. The law of Z does not depend on n.

    A subclass says which definitions of privacy its noise satisfies (`accepts`), gives the noise
    for what one record can change (`law`; a proof may ask it for other noise), and proves the claim
    in its docstring. Unseeded releases add correctly rounded noise to exact sums if `proved` has a
    proof for the floats of the noise.

    Subclasses share the parameters and errors below, and this notation. The differences between
    sums of neighbours span the public subspace, of dimension r. D_1 and D_2 are the l1 and l2
    sensitivity of the sum: the diameter of `workload` for replace-one, its radius for add/remove.

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
        For bad parameters, a definition of privacy that the noise does not satisfy, or a workload
        that is constant, not supported, or has its largest l1 norm of answers outside 1e-60 to
        1e60.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(16)
    >>> for kind in (gd.mechanisms.Laplace, gd.mechanisms.Hierarchical):
    ...     print(kind(workload, n=1000, privacy=gd.PureDP(1.0)).predicted_rmse)
    rmse 0.02121
    rmse 0.004402
    """

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
        check_privacy(self.privacy, *self.accepts, user=type(self).__name__)
        checked_size(checked_workload(self.workload))
        self.n = whole(self.n, "n")
        check_range(self.privacy)
        self.change = Change(self.workload, checked_adjacency(self.adjacency))
        self._prepare()
        if self.at_once:
            self.set_up()

    def _prepare(self) -> None:
        """Check the workload; ``ValueError`` if it is constant or not supported."""
        _ = self.change.hull if self.in_span else self.change.l1

    @property
    @abc.abstractmethod
    def accepts(self) -> tuple[type[PureDP | ZCDP | ApproxDP], ...]:
        """The definitions of privacy that the noise satisfies. Others are refused."""

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

    # A property, because the noise may need a set-up first.
    @property
    def guarantee(self) -> Guarantee:  # type: ignore[override]
        """The claim of the constructor, with the status of the noise's sampler."""
        path = self._used
        arithmetic = FLOAT64_CAVEAT if path is None else rounded_arithmetic(path.grid, path.slack)
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
        path = self.exact_path
        assert path is not None
        found = path.sums.rounding(path.rows, self._hull)
        found.flags.writeable = False
        return found

    def measured(self, records: AnyRecords) -> Totals:
        """The sums that `draw` takes; ``ValueError`` if they must be exact and are not."""
        path = self._used
        if path is None:
            return self.totals(records)
        totals = path.sums.totals(records)
        if totals.count > path.sums.capacity:
            raise ValueError(
                f"records must number at most {path.sums.capacity}: sums over more records are not "
                "exact in float64"
            )
        return totals

    def _claim(self) -> str:
        if "noise" in vars(self):  # before, it may not be known whether the sampler is exact
            return super()._claim()
        return f"target {self.privacy}, {self.adjacency.value}; not set up"

    @property
    def _hull(self) -> AffineHull | None:
        """The subspace onto which releases are projected; None for R^m."""
        return self.change.hull if self.in_span else None

    @property
    def predicted_rmse(self) -> Prediction:
        """(E ||Z||_2^2 / m)^(1/2) / n; an upper bound if rounding of answers is not negligible."""
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
        # Outside of the subspace, no noise hides the rounding errors of sums.
        return np.asarray(self._hull.embed(self._hull.coordinates(answers[None]))[0])


def predicted_error(moment: Estimate, n: int, rounding: FloatArray, noise: str) -> Prediction:
    """(E ||Z||^2 / m)^(1/2) / n; it includes `rounding` (m,) of answers unless negligible."""
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
    `AdditiveMechanism`. `privacy` is a `PureDP`, or a `ZCDP` with rho = epsilon + e^-epsilon - 1.

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
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(3)
    >>> mechanism = gd.mechanisms.Laplace(workload, n=100, privacy=gd.PureDP(1.0))
    >>> release = mechanism.release([0] * 50 + [1] * 30 + [2] * 20, rng=0)  # the seed voids privacy
    >>> release.answers.round(3)
    array([0.506, 0.288, 0.15 ])
    """

    accepts, origin, at_once = (PureDP, ZCDP), Origin.FORMULA, True
    privacy: PureDP | ZCDP

    def law(self, change: Change) -> LaplaceNoise:
        pure = PureDP(calibrated_epsilon(self.privacy, 0.0))
        return LaplaceNoise(self.workload.n_queries, laplace_scale(change.l1, pure))


class Gaussian(AdditiveMechanism):
    """Isotropic Gaussian noise in the subspace of the differences between neighbours.

    Z = B g with g ~ N(0, sigma^2 I_r). The columns of B (m, r) are an orthonormal basis of the
    public subspace. Up to rounding, sigma is the least scale that gives the guarantee for D_2:
    D_2 / sqrt(2 rho) for rho-zCDP, and `gaussian_scale` for (epsilon, delta)-DP. Notation and
    parameters are those of `AdditiveMechanism`. `privacy` is a `ZCDP` or `ApproxDP`, as Gaussian
    noise is never epsilon-DP.

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

    def law(self, change: Change) -> GaussianNoise:
        # The squared sensitivity is whole for real records in a ball or cube of R^d, too: 1, 2, 4,
        # d^2 or 2 d^2.
        if change.workload.whole_answers or has_real_records(change.workload):
            scale = proved_gaussian_scale(whole_square(change.l2), self.privacy)
        else:
            scale = gaussian_scale(change.l2, self.privacy)
        return GaussianNoise(change.hull.basis, scale)


# Few queries: noise on a lattice, or staircase noise on one query.


class InexactSumsError(ValueError):
    """Sums of answers, or their changes between neighbours, are not exact in float64."""


class LatticeMechanism(AdditiveMechanism):
    """Noise on a lattice that contains all changes; sums are below 2^53, so exact and on it."""

    origin, at_once = Origin.FORMULA, True

    def _prepare(self) -> None:
        if self.change.l1 >= LARGEST_SUM:
            raise InexactSumsError(
                f"workload must have an l1 sensitivity below 2^53 for {type(self).__name__}, got "
                f"{self.change.l1:g}: choose a larger unit for the answers"
            )
        self._require_exact_sums()

    def with_n(self, n: int) -> Self:
        twin = super().with_n(n)
        twin._require_exact_sums()
        return twin

    def _require_exact_sums(self) -> None:
        capacity = ExactSums(self.workload).capacity
        if self.n > capacity:
            raise InexactSumsError(
                f"n must be at most {capacity} for {type(self).__name__} and this workload: "
                f"sums over more records are not exact in float64, got {self.n}"
            )


#: The scale of the noise is at least the least unit over this number. Variances of much smaller
#: scales are 0 in float64.
LARGEST_RATE = 128.0


class Geometric(LatticeMechanism):
    """Independent geometric noise on every query, for queries whose answers are whole numbers.

    Z_i is a multiple of a whole number u_i, and Pr[Z = z] is proportional to
    exp(-epsilon ||z||_1 / D_1). D_1 may be an upper bound on the l1 sensitivity. u_i is the largest
    whole number of which all changes of sum i are multiples. It is 1 if sum i never changes, for
    more than 2^22 answers, or for an answer of modulus 2^52 or more.

    Notation and parameters are those of `AdditiveMechanism`. `privacy` is a `PureDP`, or a `ZCDP`
    with rho = epsilon - t / sinh(t) (1 - e^-epsilon) for t = epsilon max u_i / D_1. ``ValueError``
    also if answers are not known to be whole, or if D_1, or a sum over n records, can reach 2^53.

    Notes
    -----
    Privacy: epsilon-DP or rho-zCDP in real arithmetic. Sums of neighbours differ by a possible
    value v of Z with ||v||_1 <= D_1. A shift by v changes the probability of a value of Z by at
    most the factor exp(epsilon ||v||_1 / D_1). For rho, let x_i = epsilon |v_i| / D_1 and
    t_i = epsilon u_i / D_1. The Renyi divergence of order a is at most a times the sum of
    x_i - t_i / sinh(t_i) (1 - e^-x_i), so at most a rho, as t / sinh(t) falls (X-TANH). The sampler
    is exact, and a noisy sum is a whole number.

    Error: exactly sqrt(2 q) u / ((1 - q) n) for a query of unit u, with q = exp(-epsilon u / D_1),
    less than that of `Laplace`. An epsilon above 128 D_1 / min u_i gets the noise for this value.
    For a counting query no noise has a smaller error.

    References
    ----------
    Ghosh-Roughgarden-Sundararajan 2009; Geng-Viswanath 2014; formula sheet GEN-3, X-TANH.

    Examples
    --------
    >>> import geomdp as gd
    >>> query = gd.workloads.Explicit([[0, 0, 1, 1]])
    >>> for kind in (gd.mechanisms.Geometric, gd.mechanisms.Laplace):
    ...     print(kind(query, n=100, privacy=gd.PureDP(10.0)).predicted_rmse)
    rmse 9.529e-05
    rmse 0.001414
    """

    accepts = (PureDP, ZCDP)
    privacy: PureDP | ZCDP

    def law(self, change: Change) -> GeometricNoise:
        lattice = change.lattice
        # Every whole number is a multiple of 1.
        units = np.ones(self.workload.n_queries) if lattice is None else lattice.units
        least = float(units.min()) / LARGEST_RATE
        # Rounded up. A step of 1 holds for all epsilon-DP noise.
        step = min(1.0, math.nextafter(float(units.max()) / change.l1, 1.0))
        pure = PureDP(calibrated_epsilon(self.privacy, step))
        return GeometricNoise(units, max(laplace_scale(change.l1, pure), least))


#: Above this epsilon the noise for 128 is drawn, with a stronger guarantee than stated.
MOST_EPSILON = 128.0


class Staircase(PureMechanism):
    """Staircase noise on one query: the least variance of all epsilon-DP noise on a real number.

    The density of Z is constant on steps of width D_1 (the step around 0 is narrower), and falls by
    the factor e^epsilon from step to step. Notation and parameters are those of
    `AdditiveMechanism`. More than one query raises ``ValueError``, too.

    Notes
    -----
    Privacy: epsilon-DP in real arithmetic. Sums of neighbours differ by at most D_1, and densities
    at most D_1 apart differ by at most the factor e^epsilon. The sampler is exact.

    Error: exactly D_1 (2^(-2/3) b^(2/3) (1 + b)^(2/3) + b)^(1/2) / ((1 - b) n) with
    b = exp(-epsilon), the least of all epsilon-DP noise on a real number. A larger epsilon than 128
    has the error of 128. For whole-number answers, `Geometric` can be better.

    References
    ----------
    Geng-Viswanath 2014, "The optimal mechanism in differential privacy"; formula sheet GEN-3.

    Examples
    --------
    >>> import geomdp as gd
    >>> query = gd.workloads.Explicit([[0.0, 0.25, 0.6, 1.0]])
    >>> for kind in (gd.mechanisms.Staircase, gd.mechanisms.Laplace):
    ...     print(kind(query, n=100, privacy=gd.PureDP(10.0)).predicted_rmse)
    rmse 0.0002911
    rmse 0.001414
    """

    origin, at_once = Origin.FORMULA, True

    def _prepare(self) -> None:
        if self.workload.n_queries != 1:
            raise ValueError(
                f"workload must have 1 query for Staircase, got {self.workload.n_queries}"
            )
        super()._prepare()

    def law(self, change: Change) -> StaircaseNoise:
        return StaircaseNoise(change.l1, min(self.privacy.epsilon, MOST_EPSILON))


class LatticeBox(LatticeMechanism):
    """Whole-number K-norm noise where K is a box, for few queries and a large epsilon.

    Coordinate i of Z is a multiple of a whole number u_i, and Pr[Z = z] is proportional to
    exp(-epsilon k(z)), where k(z) is the largest of the ceil(|z_i| / w_i). Here w_i is the largest
    change of sum i between neighbours, and u_i is the greatest common divisor of all changes of
    sum i. If w_i is 0, Z_i is 0.

    Notation and parameters are those of `AdditiveMechanism`. ``ValueError`` as in `Geometric`, and
    for more than 64 queries, more than 2^22 answers (elements times queries), or an answer of
    modulus 2^52 or more.

    Notes
    -----
    Privacy: epsilon-DP. Sums of neighbours differ by a possible value v of Z with |v_i| <= w_i for
    all i, and k(z + v) <= k(z) + 1. The sampler is exact, and a noisy sum is a whole number.

    Error: exact in closed form. For large epsilon up to 128 it falls like exp(-epsilon / 2), where
    that of `Geometric` can fall like exp(-epsilon / (2 m)), and that of `KNorm` like 1 / epsilon. A
    larger epsilon gets the noise for 128.

    References
    ----------
    Hardt-Talwar 2010 (K-norm noise); formula sheet JL-KN.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Marginals(3, 1)
    >>> for kind in (gd.mechanisms.LatticeBox, gd.mechanisms.KNorm):
    ...     print(kind(workload, n=100, privacy=gd.PureDP(10.0)).predicted_rmse)
    rmse 0.0002858
    rmse 0.002582
    """

    def _prepare(self) -> None:
        queries = self.workload.n_queries
        if queries > MOST_COORDINATES:
            raise ValueError(
                f"workload must have 1 to {MOST_COORDINATES} queries for LatticeBox, got {queries}"
            )
        super()._prepare()
        if self.change.lattice is None:
            raise ValueError(
                f"workload must have at most {MAX_ANSWERS} answers for LatticeBox, all below 2^52, "
                f"got {self.workload!r}"
            )

    noise: LatticeBoxNoise
    accepts = (PureDP,)
    privacy: PureDP

    def law(self, change: Change) -> LatticeBoxNoise:
        lattice = change.lattice
        assert lattice is not None
        epsilon = min(self.privacy.epsilon, MOST_EPSILON)
        return LatticeBoxNoise(lattice.units, lattice.counts.tolist(), epsilon)
