"""Audits of a mechanism: find neighbouring data sets and compare the outputs on them.

Additive noise is audited without data sets, as it is independent of the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import require_type, whole
from geomdp.audit.claims import AuditResult, checked_level, definition
from geomdp.audit.refutation import Pair, ScoreEvent, audit_pairs, learn_event, tested
from geomdp.audit.scores import DEFAULT_LEARNERS, ROUNDING, Learner, Outputs, repeat
from geomdp.privacy import Adjacency, Guarantee

# The changes of the sums between neighbours that additive noise hides least

#: Steps of the search of `worst_changes` from each start, random starts of each kind, and the
#: largest number of axes of each kind from which it starts.
STEPS, STARTS, MOST_AXES = 8, 32, 64


@runtime_checkable
class Answers(Protocol):
    """The part of a workload that the search needs: the extreme answers of one record."""

    @property
    def n_queries(self) -> int:
        """Number of queries m."""

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """Answers (b, m) of records x that maximise <u, answers of x> for each direction u."""


def farthest_changes(workload: Answers, adjacency: Adjacency, directions: FloatArray) -> FloatArray:
    """Changes v (b, m) between neighbours that maximise <u, v>, for each row u of `directions`."""
    up, down = workload.extreme_answers(directions), workload.extreme_answers(-directions)
    if adjacency is Adjacency.REPLACE_ONE:
        return np.asarray(up - down)
    added = np.einsum("bm,bm->b", directions, up)
    removed = -np.einsum("bm,bm->b", directions, down)
    return np.where((added >= removed)[:, None], up, -down)


def worst_changes(
    workload: Answers, adjacency: Adjacency, draws: FloatArray, count: int, rng: np.random.Generator
) -> FloatArray:
    """Up to `count` nonzero changes v (c, m) that noise hides least: steps that raise <v, S^+ v>
    for the covariance S of `draws` (N, m), with changes outside the span of the noise first.
    """
    m = workload.n_queries
    # In these units, a coordinate with large noise hides nothing in the others.
    units = ROUNDING * np.maximum(np.abs(draws).max(axis=0), 1.0)
    axes, deviations = _axes(draws / units)
    varies = deviations > 1
    weights = np.where(varies, 1 / np.where(varies, deviations, 1.0), 0.0)
    still = axes[~varies]
    starts = np.concatenate(
        [
            still[:MOST_AXES],
            rng.standard_normal((STARTS if len(still) else 0, len(still))) @ still,
            # `_axes` lists the axes by decreasing noise, so start from the last axes.
            axes[varies][::-1][:MOST_AXES],
            np.eye(m)[rng.permutation(m)[:MOST_AXES]],
            (rng.standard_normal((STARTS, m)) * weights) @ axes,
        ]
    )
    found = [farthest_changes(workload, adjacency, starts / units)]
    for _ in range(STEPS):
        gradients = (((found[-1] / units) @ axes.T) * weights**2) @ axes
        found.append(farthest_changes(workload, adjacency, gradients / units))
    changes = np.concatenate([found[0], found[1], found[-1]])
    changes = changes[np.abs(changes).max(axis=1) > 0]
    # An audit tests both orders of two inputs, so only one of v and -v is kept.
    first = changes[np.arange(len(changes)), (changes != 0).argmax(axis=1)]
    changes = np.unique(changes * np.sign(first)[:, None], axis=0)
    if not len(changes):
        raise ValueError("workload must not be constant: all neighbours have the same answers")
    outside = np.linalg.norm((changes / units) @ still.T, axis=1)
    outside[outside <= 1] = 0.0
    hidden = ((((changes / units) @ axes.T) * weights) ** 2).sum(axis=1)
    order = np.lexsort((-hidden, -outside))
    return changes[order[:count]]


def _axes(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """All principal axes (m, m) of the noise, as rows, and the standard deviations along them."""
    residuals = (draws - draws.mean(axis=0)) / np.sqrt(max(len(draws) - 1, 1))
    triangle = np.linalg.qr(residuals, mode="r")
    _, deviations, axes = np.linalg.svd(triangle, full_matrices=True)
    return axes, np.concatenate([deviations, np.zeros(len(axes) - len(deviations))])


# Additive noise

#: Candidates for the change of the sums between neighbours, compared on this many training draws.
CHANGES, SEARCH_DRAWS = 6, 20_000
#: Largest number m of queries: the principal axes of draws take seconds and hundreds of megabytes.
MOST_QUERIES = 2048
#: Log-density ratios are rounded to this many decimals: an event chosen by the last bits of a ratio
#: would refute only the float64 simulation, which is known to be inexact (SAM-6).
DECIMALS = 9

#: Maps two arrays, with rows z and s, to the numbers log f(z) - log f(z - s), one for each pair of
#: rows. Here f is the density of noise. The arrays have shape (b, m), and the result (b,).
LogDensityRatio: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]


@runtime_checkable
class AdditiveNoise(Protocol):
    """Noise that an audit can draw from."""

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Independent draws (size, m), in the units of sums of answers."""


def density_learner(ratio: LogDensityRatio, change: FloatArray) -> Learner:
    """The log-density ratio for `change` (m,); 0 where the density is 0 on both inputs."""

    def score(outputs: Outputs) -> FloatArray:
        with np.errstate(invalid="ignore"):
            scores = ratio(outputs, np.broadcast_to(change, outputs.shape))
        rounded = np.round(np.where(np.isnan(scores), 0.0, scores), DECIMALS)
        return np.asarray(rounded, dtype=np.float64)

    return Learner("log-density ratio", lambda _a, _b: score)


def audit_noise(
    noise: AdditiveNoise,
    workload: Answers,
    guarantee: Guarantee,
    *,
    trials: int,
    learners: Sequence[Learner] = DEFAULT_LEARNERS,
    density: LogDensityRatio | None = None,
    level: float = 1e-6,
    rng: RandomState = None,
) -> AuditResult:
    """Try to refute the privacy claim of noise added to the sums of a workload.

    The outputs on two neighbouring inputs are Z and v + Z, where Z is the noise and v a change of
    the sums between neighbours. The first half of the draws chooses v among the vertices of the
    hull of all such changes (at most 20,000 draws for each input), and an event "a score of the
    output reaches a threshold", for the score of a learner or the log-density ratio. The second
    half tests the event, as in `audit`.
    ``ValueError`` if a parameter is out of range, neighbours always have the same sums, or draws
    have a wrong shape.

    Parameters
    ----------
    noise : AdditiveNoise
        The noise, in units of sums of answers.
    workload : Answers
        At most 2048 queries. The noise is added to their sums.
    guarantee : Guarantee
        The claim, with the neighbour relation.
    trials : int
        Draws of the noise per input, at least 16; half of them test the event.
    learners : sequence of Learner
        As for `audit_mechanism`.
    density : callable (points, shifts) -> (b,), optional
        log f(z) - log f(z - s) for the density f that the noise should have; z and s are rows of
        `points` and `shifts`, both (b, m).
    level, rng : float, random state
        As for `audit`.

    Examples
    --------
    Noise of half the scale that the claim needs:

    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(3)
    >>> mechanism = gd.mechanisms.Laplace(workload, n=10, privacy=gd.PureDP(1.0))
    >>> half = gd.noise.LaplaceNoise(3, mechanism.noise.scale / 2)
    >>> result = gd.audit.audit_noise(half, workload, mechanism.guarantee, trials=20_000, rng=0)
    >>> result.refuted
    True
    """
    require_type(noise, AdditiveNoise, "noise")
    require_type(workload, Answers, "workload")
    require_type(guarantee, Guarantee, "guarantee")
    trials, level = whole(trials, "trials", minimum=16), checked_level(level)
    whole(workload.n_queries, "number of queries", maximum=MOST_QUERIES)
    rng_a, rng_b, searching = np.random.default_rng(rng).spawn(3)
    privacy, training = definition(guarantee), trials // 2
    first = _draws(noise, workload, training, rng_a)
    second = _draws(noise, workload, training, rng_b)
    look_a, look_b = first[:SEARCH_DRAWS], second[:SEARCH_DRAWS]
    changes = worst_changes(workload, guarantee.adjacency, look_a, CHANGES, searching)

    def event_for(change: FloatArray, a: FloatArray, b: FloatArray) -> ScoreEvent:
        known = () if density is None else (density_learner(density, change),)
        return learn_event(a, change + b, (*learners, *known), privacy, level)

    change = max(changes, key=lambda change: event_for(change, look_a, look_b).excess)
    event = event_for(change, first, second)
    pair = Pair(
        _in_words(change),
        lambda size, rng: _draws(noise, workload, size, rng),
        lambda size, rng: change + _draws(noise, workload, size, rng),
    )
    return tested(pair, event, privacy, trials - training, level, (rng_a, rng_b))


def _draws(
    noise: AdditiveNoise, workload: Answers, size: int, rng: np.random.Generator
) -> FloatArray:
    draws, shape = np.asarray(noise.sample(rng, size)), (size, workload.n_queries)
    if draws.shape != shape:
        raise ValueError(f"noise must have draws of shape {shape}, got {draws.shape}")
    return draws


def _in_words(change: FloatArray) -> str:
    if len(change) <= 4:
        return f"sums that differ by ({', '.join(f'{entry:zg}' for entry in change)})"
    moved = int(np.count_nonzero(change))
    return (
        f"sums that differ in {moved} of {len(change)} answers, "
        f"by {np.linalg.norm(change):.4g} in length"
    )


# Whole mechanisms

#: At most this many elements are tried as the record in which data sets differ, and this many pairs
#: of data sets are compared, as every output takes a full run.
POOL, PAIRS = 48, 4


@runtime_checkable
class PrivateSums(Protocol):
    """A mechanism that uses only exact sums over the records."""

    @property
    def workload(self) -> Any:
        """The queries of the mechanism, on a universe."""

    @property
    def n(self) -> int:
        """Number of records, or the public number by which sums are divided."""

    @property
    def guarantee(self) -> Guarantee:
        """The privacy claim of the mechanism."""

    def totals(self, records: npt.NDArray[Any]) -> Any:
        """The exact `sums` (p,) over `records`."""

    def privatise(self, sums: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Private answers (m,) from exact sums (p,)."""


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
    is used if the noise has one. Any other mechanism is run on at most 4 pairs of neighbouring data
    sets, those with the largest changes of the sums.
    ``ValueError`` if a parameter is out of range, the sums are the same for all neighbours tried,
    or an additive mechanism has more than 2048 queries.

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
        Each learns a score that tells the data sets apart; the one that refutes the claim best is
        used.
    without_density : sequence of Learner
        Further learners, used if no log-density ratio is used. `CLASSIFIER` makes such an audit
        much more powerful. It needs scikit-learn, which the extra ``audit`` installs.
    level, rng : float, random state
        As for `audit`.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(3)
    >>> mechanism = gd.mechanisms.Laplace(workload, n=10, privacy=gd.PureDP(1.0))
    >>> result = gd.audit.audit_mechanism(mechanism, trials=20_000, rng=0)
    >>> result.refuted, result.epsilon_lower_bound <= 1.0
    (False, True)
    """
    require_type(mechanism, PrivateSums, "mechanism")
    noise = getattr(mechanism, "noise", None)
    density = None if noise is None else stated_density(noise)
    learners = (*learners, *without_density) if density is None else learners
    claim = mechanism.guarantee
    settings: Any = {"trials": trials, "level": level}
    if noise is None:
        generator = np.random.default_rng(rng)
        pairs = neighbouring_pairs(mechanism, learners, generator)
        return audit_pairs(pairs, claim, **settings, rng=generator)
    settings |= {"learners": learners, "density": density, "rng": rng}
    return audit_noise(noise, mechanism.workload, claim, **settings)


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
    ratio: LogDensityRatio | None = getattr(noise, "log_density_ratio", None)
    if ratio is None:
        return None
    draws = np.asarray(noise.sample(np.random.default_rng(0), 2))
    try:
        ratio(draws, draws)
    except (ValueError, TypeError):  # no closed form, or a body without a gauge (`MissingOracle`)
        return None
    return ratio


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

    return [
        Pair(
            f"records {pool[first[k]]} and {pool[second[k]]}"
            if replaced
            else f"record {pool[first[k]]} and none",
            repeat(mechanism.privatise, others + single[first[k]] if replaced else others),
            repeat(mechanism.privatise, others + single[second[k]]),
            learners,
        )
        for k in chosen
    ]
