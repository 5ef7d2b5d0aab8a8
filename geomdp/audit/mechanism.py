"""Audits of a mechanism: find neighbouring data sets and compare the outputs on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import require_type
from geomdp.audit.additive import AdditiveNoise, KnownDensity, LogDensityRatio, audit_noise
from geomdp.audit.neighbours import Answers
from geomdp.audit.refutation import Pair, audit_pairs
from geomdp.audit.result import AuditResult
from geomdp.audit.samplers import Learner, repeat
from geomdp.audit.scores import DEFAULT_LEARNERS
from geomdp.privacy import Adjacency, Guarantee

#: Two data sets differ in one record. At most this many elements of the universe are tried as this
#: record.
POOL = 48
#: Largest number of pairs of neighbouring data sets that are compared. It is small, because every
#: output takes a full run of the mechanism.
PAIRS = 4


class Universe(Protocol):
    """The set that records come from."""

    @property
    def size(self) -> int | None:
        """Number of elements; None if there are infinitely many."""

    def elements(self) -> npt.NDArray[Any]:
        """All elements."""

    def sample(self, n: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """`n` random elements."""


class Workload(Answers, Protocol):
    """The queries of a mechanism."""

    @property
    def universe(self) -> Universe:
        """The set that records come from."""


class Totals(Protocol):
    """Sums over records."""

    @property
    def sums(self) -> FloatArray:
        """The sums (p,) that a mechanism adds noise to."""


@runtime_checkable
class PrivateSums(Protocol):
    """A mechanism that uses only exact sums over the records."""

    @property
    def workload(self) -> Workload:
        """The queries of the mechanism."""

    @property
    def n(self) -> int:
        """Number of records, or the public number by which sums are divided."""

    @property
    def guarantee(self) -> Guarantee:
        """The privacy claim of the mechanism."""

    def totals(self, records: npt.NDArray[Any]) -> Totals:
        """The exact sums over `records`."""

    def privatise(self, sums: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Private answers (m,) from exact sums (p,)."""


@runtime_checkable
class Additive(PrivateSums, Protocol):
    """A mechanism that releases (sums of the records' answers + noise) / n."""

    @property
    def noise(self) -> AdditiveNoise:
        """The noise on sums."""


def audit_mechanism(
    mechanism: PrivateSums,
    *,
    trials: int,
    learners: Sequence[Learner] = DEFAULT_LEARNERS,
    without_density: Sequence[Learner] = (),
    level: float = 1e-6,
    rng: RandomState = None,
) -> AuditResult:
    """Try to refute the privacy claim of a mechanism on the worst neighbours found.

    For an additive mechanism, draws of its noise are tested (`audit_noise`). The log-density ratio
    is used if the noise has one. Any other mechanism is run on data sets (`audit_runs`).

    Parameters
    ----------
    mechanism : PrivateSums
        Any offline mechanism of `geomdp.mechanisms`, or an object with the same methods and
        properties.
    trials : int
        For an additive mechanism, number of draws of its noise for each of two neighbouring data
        sets, at least 16. For any other mechanism, number of outputs as in `audit_pairs`, at least
        16 for each pair of data sets.
    learners : sequence of Learner
        Each learns, from outputs for both data sets, a score that tells the data sets apart. The
        score that refutes the claim best on these outputs is used.
    without_density : sequence of Learner
        Further learners, used if no log-density ratio is used. `CLASSIFIER` makes such an audit
        much more powerful. It needs scikit-learn, which the extra ``audit`` installs.
    level, rng : float, random state
        As for `audit`.

    Raises
    ------
    ValueError
        If a parameter is out of range, the sums are the same for all neighbours tried, or an
        additive mechanism has more than 2048 queries.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(3)
    >>> mechanism = gd.mechanisms.Laplace(workload, n=10, privacy=gd.PureDP(1.0))
    >>> result = gd.audit.audit_mechanism(mechanism, trials=20_000, rng=0)
    >>> result.refuted, result.epsilon_lower_bound <= 1.0
    (False, True)
    """
    if isinstance(mechanism, Additive):
        density = stated_density(mechanism.noise)
        return audit_noise(
            mechanism.noise,
            mechanism.workload,
            mechanism.guarantee,
            trials=trials,
            learners=(*learners, *without_density) if density is None else learners,
            density=density,
            level=level,
            rng=rng,
        )
    return audit_runs(
        mechanism, trials=trials, learners=(*learners, *without_density), level=level, rng=rng
    )


def audit_runs(
    mechanism: PrivateSums,
    *,
    trials: int,
    learners: Sequence[Learner] = DEFAULT_LEARNERS,
    level: float = 1e-6,
    rng: RandomState = None,
) -> AuditResult:
    """Try to refute the privacy claim of a mechanism by running it on neighbouring data sets.

    At most 4 pairs of data sets are compared, which differ in one record. Of the pairs tried, those
    with the largest changes of the sums are chosen. All other records are random. All steps from
    the sums to the answers are audited, so this audit also detects faults outside the noise. It is
    much slower than `audit_noise`. It tests draws in float64 from a generator of NumPy, not the
    noise of releases without a seed. Parameters, result and errors are as for `audit_mechanism`.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(3)
    >>> laplace = gd.mechanisms.Laplace(workload, n=10, privacy=gd.PureDP(1.0))
    >>> mechanism = gd.mechanisms.Projected(laplace)
    >>> gd.audit.audit_runs(mechanism, trials=200, rng=0).refuted
    False
    """
    require_type(mechanism, PrivateSums, "mechanism")
    generator = np.random.default_rng(rng)
    pairs = neighbouring_pairs(mechanism, learners, generator)
    return audit_pairs(pairs, mechanism.guarantee, trials=trials, level=level, rng=generator)


def stated_density(noise: AdditiveNoise) -> LogDensityRatio | None:
    """The log-density ratio that the noise states; None if it has none in closed form.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> ratio = gd.audit.stated_density(gd.noise.LaplaceNoise(2, 0.5))
    >>> ratio(np.zeros((1, 2)), np.array([[1.0, 0.0]]))
    array([2.])
    """
    if not isinstance(noise, KnownDensity):
        return None
    draws = np.asarray(noise.sample(np.random.default_rng(0), 2))
    try:
        noise.log_density_ratio(draws, draws)
    except (ValueError, TypeError):
        # Recursive noise with projected levels has no density in closed form (ValueError). Some
        # bodies of K-norm noise have no gauge (`MissingOracle`, a TypeError).
        return None
    return noise.log_density_ratio


def neighbouring_pairs(
    mechanism: PrivateSums, learners: Sequence[Learner], rng: np.random.Generator
) -> list[Pair]:
    """Pairs of neighbouring data sets whose sums differ most; ``ValueError`` if no sums differ."""
    universe, adjacency = mechanism.workload.universe, mechanism.guarantee.adjacency
    small = universe.size is not None and universe.size <= POOL
    pool = universe.elements() if small else universe.sample(POOL, rng)
    single = np.stack([mechanism.totals(pool[i : i + 1]).sums for i in range(len(pool))])
    replaced = adjacency is Adjacency.REPLACE_ONE
    others = mechanism.totals(universe.sample(mechanism.n, rng)[1:]).sums
    if replaced:
        first, second = np.triu_indices(len(pool), 1)
        changes = single[second] - single[first]
    else:
        first = second = np.arange(len(pool))
        changes = single
    lengths = np.linalg.norm(changes, axis=1)
    chosen = [int(k) for k in np.argsort(-lengths, kind="stable")[:PAIRS] if lengths[k] > 0]
    if not chosen:
        raise ValueError("workload must not be constant: all records have the same sums")

    def privatised(sums: FloatArray, rng: np.random.Generator) -> FloatArray:
        return mechanism.privatise(sums, rng)

    return [
        Pair(
            f"records {pool[first[k]]} and {pool[second[k]]}"
            if replaced
            else f"record {pool[first[k]]} and none",
            repeat(privatised, others + single[first[k]] if replaced else others),
            repeat(privatised, others + single[second[k]]),
            learners,
        )
        for k in chosen
    ]
