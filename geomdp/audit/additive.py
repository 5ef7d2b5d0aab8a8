"""Audits of additive noise: outputs are exact sums plus noise that is independent of the sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import require_type, whole
from geomdp.audit.binomial import checked_level
from geomdp.audit.claims import definition
from geomdp.audit.events import learn_event
from geomdp.audit.neighbours import Answers, worst_changes
from geomdp.audit.refutation import Pair, tested
from geomdp.audit.result import AuditResult
from geomdp.audit.samplers import Learner, Outputs, Score
from geomdp.audit.scores import DEFAULT_LEARNERS
from geomdp.privacy import Guarantee

#: Number of candidates for the change of the sums between neighbours. They are compared on training
#: draws.
CHANGES = 6
#: Largest number of draws per input that the search for neighbours uses. The variances of the noise
#: are then known with an error of about one percent.
SEARCH_DRAWS = 20_000
#: Largest number m of queries. The principal axes of N draws of the noise take time
#: O(N m^2 + m^3) and memory O(N m + m^2): seconds and hundreds of megabytes at this number.
MOST_QUERIES = 2048
#: Log-density ratios are rounded to this many decimals. The exact ratio of Laplace noise, for
#: example, is constant on whole regions, but the last bits of the computed ratio depend on the
#: input. An event chosen by these bits would refute only the float64 simulation, which is known to
#: be inexact (SAM-6). The audit tests the law of the noise, not its rounding.
DECIMALS = 9

#: Maps two arrays, with rows z and s, to the numbers log f(z) - log f(z - s), one for each pair of
#: rows. Here f is the density of noise. The arrays have shape (b, m), and the result (b,).
LogDensityRatio: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]


@runtime_checkable
class AdditiveNoise(Protocol):
    """Noise that an audit can draw from."""

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Independent draws (size, m), in the units of sums of answers."""


@runtime_checkable
class KnownDensity(Protocol):
    """Noise with a density that is known up to a constant."""

    def log_density_ratio(self, points: FloatArray, shifts: FloatArray) -> FloatArray:
        """log f(z) - log f(z - s) for the density f; z and s are rows of `points` and `shifts`."""


@dataclass(frozen=True, eq=False, repr=False)
class DensityScore:
    """The log-ratio (trials,) of the noise density at y and at y moved back by `change` (m,)."""

    ratio: LogDensityRatio
    change: FloatArray

    def __call__(self, outputs: Outputs) -> FloatArray:
        """Scores (trials,); 0 for outputs that have density 0 on both inputs."""
        shifts = np.broadcast_to(self.change, outputs.shape)
        with np.errstate(invalid="ignore"):
            scores = self.ratio(outputs, shifts)
        rounded = np.round(np.where(np.isnan(scores), 0.0, scores), DECIMALS)
        return np.asarray(rounded, dtype=np.float64)


def density_learner(ratio: LogDensityRatio, change: FloatArray) -> Learner:
    """A learner that needs no training: its score is the log-density ratio for `change` (m,)."""
    score: Score = DensityScore(ratio, change)
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
    the sums between neighbours. The first half of the draws is for training: at most 20,000 of
    them, for each input, choose v among the vertices of the hull of all such changes, and all
    choose an event "a score of the output reaches a threshold", for the score of a learner or the
    log-density ratio. The second half tests the event, as in `audit`.

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

    Raises
    ------
    ValueError
        If a parameter is out of range, the workload has more than 2048 queries, neighbours always
        have the same sums, or draws have a wrong shape.

    Examples
    --------
    This noise has half of the scale that the claim needs:

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

    def pair_of(change: FloatArray) -> Pair:
        known = () if density is None else (density_learner(density, change),)
        return Pair(
            _in_words(change),
            lambda size, rng: _draws(noise, workload, size, rng),
            lambda size, rng: change + _draws(noise, workload, size, rng),
            (*learners, *known),
        )

    def excess(change: FloatArray) -> float:
        learned = pair_of(change).learners
        return learn_event(look_a, change + look_b, learned, privacy, level).excess

    change = max(changes, key=excess)
    pair = pair_of(change)
    event = learn_event(first, change + second, pair.learners, privacy, level)
    return tested(pair, event, privacy, trials - training, level, (rng_a, rng_b))


def _draws(
    noise: AdditiveNoise, workload: Answers, size: int, rng: np.random.Generator
) -> FloatArray:
    draws = np.asarray(noise.sample(rng, size))
    if draws.shape != (size, workload.n_queries):
        raise ValueError(
            f"noise must have draws of shape ({size}, {workload.n_queries}), got {draws.shape}"
        )
    return draws


def _in_words(change: FloatArray) -> str:
    if len(change) <= 4:
        return f"sums that differ by ({', '.join(f'{entry:zg}' for entry in change)})"
    moved = int(np.count_nonzero(change))
    return (
        f"sums that differ in {moved} of {len(change)} answers, "
        f"by {np.linalg.norm(change):.4g} in length"
    )
