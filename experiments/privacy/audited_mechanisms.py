"""The mechanisms whose audits are measured: their noise, claims, and laws where these are known."""

import enum
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

import experiments.engine.tools as ex
import geomdp as gd
from experiments.privacy.best_events import Laws, normal_laws, planar_laws
from geomdp._numerics.linalg import svec

PRIVACY = gd.PureDP(1.0)
#: Number of queries of a stream.
QUERIES = 6


class Discrete(Protocol):
    """A mechanism on two neighbouring inputs."""

    @property
    def learners(self) -> Sequence[gd.audit.Learner]:
        """Learners of the scores that an audit tries. They may know the laws for unscaled noise."""

    def outcomes(self, factor: float) -> tuple[npt.NDArray[np.int64], Laws]:
        """The k possible outputs, and their laws on both inputs, with noise scaled by `factor`."""


@dataclass(frozen=True)
class Scales:
    """Laplace scales of a sparse vector mechanism."""

    threshold: float  # Scale of the noise on the threshold
    query: float  # Scale of the noise on each query
    redraw: bool  # Whether each query found above the threshold redraws the threshold noise


@dataclass(frozen=True)
class Stream:
    """A run of the sparse vector technique on six queries whose true answers equal the threshold.

    At the neighbour, the last `cutoff` answers are lower by 1, and all others are higher by 1.
    Streams of 1 to 8 queries at two distances from the threshold were compared. With 10^5 draws,
    the largest noise factor that an audit can refute (`best_factor`) is largest on this stream.
    """

    build: Callable[[], gd.AboveThreshold | gd.Sparse]  # The mechanism
    cutoff: int  # The run halts after this many queries found above the threshold

    def laws(self, factor: float) -> list[gd.audit.SparseVectorLaw]:
        """The laws of the transcript on the two inputs, with noise scaled by `factor`."""
        stated = self.build().scales
        scales = Scales(factor * stated.threshold, factor * stated.query, stated.redraw)
        moved = np.concatenate([np.ones(QUERIES - self.cutoff), -np.ones(self.cutoff)])
        return [
            gd.audit.SparseVectorLaw(truths, scales, self.cutoff)
            for truths in (np.zeros(QUERIES), moved)
        ]

    @property
    def learners(self) -> Sequence[gd.audit.Learner]:
        """The log-ratio of the laws, and learned scores."""
        return (gd.audit.law_learner(*self.laws(1.0)), *gd.audit.DEFAULT_LEARNERS)

    def outcomes(self, factor: float) -> tuple[npt.NDArray[np.int64], Laws]:
        """All transcripts with their laws."""
        first, second = self.laws(factor)
        return first.transcripts, Laws(first.probabilities, second.probabilities)


@dataclass(frozen=True)
class Selected:
    """The choice between two counts. At the neighbour one count is larger by 1, the other smaller.

    With a larger gap between the counts, one choice is rarer, but its privacy loss is larger. Of
    the gaps 0, 1, 2, 3, 4 and 6, those in `DISCRETE` are the best for an audit with 10^4 draws.
    """

    kind: Callable[..., gd.mechanisms.Selection]  # The mechanism
    gap: int  # By how much the first count is smaller than the second

    @property
    def learners(self) -> Sequence[gd.audit.Learner]:
        """The default learners, which learn scores of the two outputs from draws."""
        return gd.audit.DEFAULT_LEARNERS

    def outcomes(self, factor: float) -> tuple[npt.NDArray[np.int64], Laws]:
        """The two choices with their laws."""
        privacy = gd.PureDP(PRIVACY.epsilon / factor)
        M = self.kind(gd.workloads.Marginals(2, 1), n=RECORDS, privacy=privacy)
        counts = np.array([RECORDS / 2 - self.gap, RECORDS / 2])
        neighbour = counts + np.array([1.0, -1.0])
        laws = Laws(*(M.probabilities(each / RECORDS) for each in (counts, neighbour)))
        return np.arange(2)[:, None], laws


#: The mechanisms by their names in the figure.
DISCRETE: dict[str, Discrete] = {
    "AboveThreshold": Stream(lambda: gd.AboveThreshold(0.0, privacy=PRIVACY), 1),
    "Sparse": Stream(lambda: gd.Sparse(0.0, cutoff=2, privacy=PRIVACY), 2),
    "ExponentialMechanism": Selected(gd.mechanisms.ExponentialMechanism, 4),
    "ReportNoisyMax": Selected(gd.mechanisms.ReportNoisyMax, 4),
    "PermuteAndFlip": Selected(gd.mechanisms.PermuteAndFlip, 0),
}


def audited_outputs(
    audited: Discrete, factor: float, trials: int, seed: int
) -> gd.audit.AuditResult:
    """One audit of a mechanism whose noise is scaled by `factor`."""
    outputs, laws = audited.outcomes(factor)
    samplers = [drawn_from(outputs, law) for law in (laws.first, laws.second)]
    pair = gd.audit.Pair("two inputs", samplers[0], samplers[1], audited.learners)
    return gd.audit.audit_pairs([pair], PRIVACY, trials=trials, level=ex.LEVEL, rng=seed)


def drawn_from(outputs: npt.NDArray[np.int64], law: npt.NDArray[np.float64]) -> gd.audit.Sampler:
    """A sampler that draws entries of `outputs` with the probabilities `law`."""
    masses = law / law.sum()

    def sample(trials: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        return outputs[rng.choice(len(masses), size=trials, p=masses)]

    return sample


FloatArray = npt.NDArray[np.float64]
PURE, CONCENTRATED = gd.PureDP(1.0), gd.ZCDP(0.5)
#: Number of records of the mechanisms; the noise on sums does not depend on it.
RECORDS = 100


class Family(enum.StrEnum):
    """Mechanisms, from the top of the figure to the bottom."""

    GAUSSIAN = "Gaussian"
    RESIDUAL = "ResidualGaussian"
    LAPLACE = "Laplace"
    BALL = "Ball"
    ELLIPSOID = "Ellipsoid"
    KNORM = "KNorm"
    RECURSIVE = "Recursive"
    CONE = "Cone"
    TIGHT_CONE = "TightCone"
    SPECTRAL = "Spectral"
    MATRIX = "Matrix"
    HIERARCHICAL = "Hierarchical"
    SECOND_MOMENT = "SecondMoment"
    PAIR_MARGINALS = "PairMarginals"
    COVARIANCE = "Covariance"
    SMOOTH = "SmoothSummary"
    ABOVE_THRESHOLD = "AboveThreshold"
    SPARSE = "Sparse"
    EXPONENTIAL = "ExponentialMechanism"
    NOISY_MAX = "ReportNoisyMax"
    PERMUTE = "PermuteAndFlip"


#: Mechanisms whose noise on two queries has a known density that is not normal.
PLANAR = (
    Family.LAPLACE, Family.BALL, Family.ELLIPSOID, Family.KNORM, Family.RECURSIVE, Family.SMOOTH,
)  # fmt: skip
NORMAL = (Family.GAUSSIAN, Family.RESIDUAL)
#: Mechanisms with few possible outputs, whose probabilities are computed exactly.
FINITE = tuple(family for family in Family if family in DISCRETE)
#: Mechanisms for which the best event of an audit is known.
KNOWN = (*NORMAL, *PLANAR, *FINITE)
#: Mechanisms for the two counting queries on two bits.
SQUARE: dict[Family, Callable[..., gd.mechanisms.AdditiveMechanism]] = {
    Family.GAUSSIAN: gd.mechanisms.Gaussian,
    Family.LAPLACE: gd.mechanisms.Laplace,
    Family.BALL: gd.mechanisms.Ball,
    Family.ELLIPSOID: gd.mechanisms.Ellipsoid,
    Family.KNORM: functools.partial(gd.mechanisms.KNorm, exact=True),
    Family.RECURSIVE: gd.mechanisms.Recursive,
    Family.CONE: gd.mechanisms.Cone,
    Family.TIGHT_CONE: gd.mechanisms.TightCone,
    Family.SPECTRAL: gd.mechanisms.Spectral,
    Family.MATRIX: gd.mechanisms.Matrix,
    Family.HIERARCHICAL: gd.mechanisms.Hierarchical,
}
#: Changes of the sums between neighbours, from which the best event is found. All other changes
#: differ from these by a symmetry of the noise. On two bits, one answer or both change. The moments
#: of x are x and 2 x^2 - 1, for x in {-1, 0, 1}.
ON_BITS = np.array([[1.0, 0.0], [1.0, 1.0]])
OF_MOMENTS = np.array([[2.0, 0.0], [1.0, 2.0]])


@dataclass(frozen=True, eq=False)
class Subject:
    """Additive noise, with the workload and the guarantee of its privacy claim."""

    noise: gd.audit.AdditiveNoise  # Noise on sums
    workload: gd.workloads.Workload  # The answers whose sums get the noise
    guarantee: gd.privacy.Guarantee  # The claim

    @property
    def density(self) -> Callable[[FloatArray, FloatArray], FloatArray] | None:
        """The log-density ratio of the noise, if it is known in closed form."""
        return gd.audit.stated_density(self.noise)


@functools.cache
def subject(family: Family) -> Subject:
    """The noise of a mechanism with additive noise; ``KeyError`` for any other mechanism."""
    square = gd.workloads.Marginals(2, 1)
    if family in SQUARE:
        M = SQUARE[family](square, n=RECORDS, privacy=claim(family))
        return Subject(M.noise, M.workload, M.guarantee)
    others: dict[Family, Callable[[], Subject]] = {
        Family.RESIDUAL: residual_gaussian,
        Family.SECOND_MOMENT: second_moment,
        Family.PAIR_MARGINALS: pair_marginals,
        Family.COVARIANCE: covariance,
        Family.SMOOTH: smooth_summary,
    }
    return others[family]()


def claim(family: Family) -> gd.PureDP | gd.ZCDP:
    """The privacy that the mechanism claims."""
    return CONCENTRATED if family in NORMAL else PURE


def residual_gaussian() -> Subject:
    """Noise on the 1-way tables of two bits."""
    tables = gd.workloads.MarginalTables([2, 2], k=1)
    M = gd.mechanisms.ResidualGaussian(tables, n=RECORDS, privacy=CONCENTRATED)
    return Subject(M.noise, M.workload, M.guarantee)


def second_moment() -> Subject:
    """Noise on the second moments of records in the unit disc, before the projection."""
    M = gd.mechanisms.SecondMoment(gd.workloads.SecondMoment(2), n=RECORDS, privacy=PURE)
    return Subject(M.inner.noise, M.inner.workload, M.guarantee)


def pair_marginals() -> Subject:
    """Noise on the second moments of records of two bits, where each bit is divided by sqrt(2)."""
    M = gd.mechanisms.PairMarginals(gd.workloads.Marginals(2, 2), n=RECORDS, privacy=PURE)
    bits = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    return Subject(M.inner.inner.noise, listed(moments(bits / np.sqrt(2))), M.guarantee)


def covariance() -> Subject:
    """Noise on the second moments of lifted records (c, x) for x in the unit disc."""
    M = gd.mechanisms.Covariance(gd.workloads.SecondMoment(2), n=RECORDS, privacy=PURE)
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    disc = np.concatenate([np.zeros((1, 2)), np.column_stack([np.cos(angles), np.sin(angles)])])
    lifted = np.column_stack([np.full(len(disc), M.corner), disc])
    noise = Faulty(M.inner.noise, lambda draws: (1 + M.corner**2) * draws)
    return Subject(noise, listed(moments(lifted)), M.guarantee)


def smooth_summary() -> Subject:
    """Laplace noise on the Chebyshev moments of degrees 1 and 2 of one column."""
    M = gd.mechanisms.SmoothSummary(1, n=RECORDS, smoothness=2, privacy=PURE, degree=3)
    degrees = gd.workloads.Explicit(np.array([[-1.0, 0.0, 1.0], [1.0, -1.0, 1.0]]))
    scales = np.asarray(M.noise.deviations) / np.sqrt(2)
    return Subject(IndependentLaplace(scales), degrees, M.guarantee)


def moments(records: FloatArray) -> FloatArray:
    """svec(x x^T) for each row x of `records` (N, d)."""
    return svec(records[:, :, None] * records[:, None, :])


def listed(answers: FloatArray) -> gd.workloads.Explicit:
    """The workload whose answers on the N possible records are the rows of `answers` (N, m)."""
    return gd.workloads.Explicit(answers.T)


@dataclass(frozen=True, eq=False)
class IndependentLaplace:
    """Independent Laplace noise with its own scale on each coordinate."""

    scales: FloatArray  # (m,)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Independent draws (size, m)."""
        return rng.laplace(0.0, self.scales, (size, len(self.scales)))

    def log_density_ratio(self, points: FloatArray, shifts: FloatArray) -> FloatArray:
        """log f(z) - log f(z - s) for the density f of the noise, one value for each row.

        z is a row of `points`, and s is the same row of `shifts`. Both arrays have shape (b, m).
        """
        lost = (np.abs(points - shifts) - np.abs(points)) / self.scales
        return np.asarray(lost.sum(axis=1))


def laws(family: Family, factor: float) -> list[Laws]:
    """Laws of a `KNOWN` mechanism's outputs on neighbours, with noise scaled by `factor`."""
    if family in NORMAL:
        # The length of the change over the standard deviation is sqrt(2 rho).
        return [normal_laws(float(np.sqrt(2 * CONCENTRATED.rho)), factor)]
    if family in FINITE:
        return [DISCRETE[family].outcomes(factor)[1]]
    found = subject(family)
    assert found.density is not None
    changes = OF_MOMENTS if family is Family.SMOOTH else ON_BITS
    return planar_laws(found.density, _deviation(family), changes, factor)


@functools.cache
def _deviation(family: Family) -> float:
    """The largest standard deviation of a coordinate of the noise, up to a few percent."""
    draws = subject(family).noise.sample(np.random.default_rng(0), 10_000)
    return float(draws.std(axis=0).max())


class Fault(enum.StrEnum):
    """What is wrong with the noise, in the order of the legend."""

    CORRECT = "correct"
    SCALED = "scaled"
    NONE = "no noise"
    DEAD = "a dead coordinate"
    SHARED = "one draw for both"
    SUBSPACE = "wrong subspace"
    HALF = "half the noise"


#: Faults that an audit of any kind of noise can refute with few draws, and all planted faults.
UNHIDDEN = (Fault.NONE, Fault.DEAD, Fault.SHARED, Fault.SUBSPACE)
PLANTED = (*UNHIDDEN, Fault.HALF)


@dataclass(frozen=True)
class Faulty:
    """Noise whose draws are changed."""

    noise: gd.audit.AdditiveNoise  # The correct noise
    change: Callable[[FloatArray], FloatArray]  # A map from draws (b, m) to faulty draws (b, m)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Faulty draws (size, m)."""
        return self.change(self.noise.sample(rng, size))


#: A direction in which neighbours differ, but in which noise with `Fault.SUBSPACE` does not vary.
MISSED = np.array([0.6, 0.8])
CHANGES: dict[Fault, Callable[[FloatArray], FloatArray]] = {
    Fault.CORRECT: lambda draws: draws,
    Fault.NONE: lambda draws: 0 * draws,
    Fault.DEAD: lambda draws: draws * [1.0, 0.0],
    Fault.SHARED: lambda draws: draws[:, [0, 0]],
    Fault.SUBSPACE: lambda draws: draws - np.outer(draws @ MISSED, MISSED),
    Fault.HALF: lambda draws: draws / 2,
}


def audited(
    family: Family, change: Callable[[FloatArray], FloatArray], trials: int, seed: int
) -> gd.audit.AuditResult:
    """One audit of a mechanism whose draws are changed."""
    found = subject(family)
    default = gd.audit.DEFAULT_LEARNERS
    return gd.audit.audit_noise(
        Faulty(found.noise, change),
        found.workload,
        found.guarantee,
        trials=trials,
        learners=default if found.density else (*default, gd.audit.CLASSIFIER),
        density=found.density,
        level=ex.LEVEL,
        rng=seed,
    )


def audited_scaled(family: Family, factor: float, trials: int, seed: int) -> gd.audit.AuditResult:
    """One audit of a mechanism whose noise is scaled by `factor`."""
    if family in FINITE:
        return audited_outputs(DISCRETE[family], factor, trials, seed)
    return audited(family, lambda draws: factor * draws, trials, seed)
