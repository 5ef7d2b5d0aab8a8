"""Build the candidate mechanisms for a setting, cheap ones first, and rank them by prediction."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from geomdp.advice.candidate import Candidate
from geomdp.advice.candidates import CANDIDATES
from geomdp.advice.costs import (
    breadth_work,
    draw_seconds,
    projection_work,
    support_draws,
)
from geomdp.advice.known_moments import predicted
from geomdp.advice.projection_floor import projection_floor
from geomdp.advice.setting import OPERATIONS_A_SECOND, InapplicableError, Setting, UntriedError
from geomdp.advice.steps import PROJECTED, SHRUNK, Step
from geomdp.bodies import MissingOracle
from geomdp.mechanisms import AdditiveMechanism, Mechanism, Prediction, Projected
from geomdp.mechanisms.additive_noise.base import additive_within
from geomdp.mechanisms.post_processed.projected import reachable_body, tried_projector
from geomdp.mechanisms.post_processed.support_bound import MAX_DRAWS, MIN_DRAWS
from geomdp.noise import GaussianNoise
from geomdp.privacy import Exact, SamplerStatus
from geomdp.workloads import WorkloadSizeError

#: Two predictions tie if they differ by at most the share `TIE` of the smaller one plus
#: `TIE_STANDARD_ERRORS` standard errors of the difference. `TIE` covers the duality gap that
#: predictions of projections include, a millionth of the squared error.
TIE, TIE_STANDARD_ERRORS = 1e-5, 3.0
#: Shrinking is advised only if it lowers the prediction by this share. Shrinking has a bias, so its
#: error is near the predicted bound for many data sets. The error of a projection is below its
#: bound for most data sets.
WORTHWHILE = 0.01
#: Largest universe for which a projection is tried after every additive mechanism. For a larger
#: universe support functions are slow, and only the best noise is projected.
MAX_PROJECTED_UNIVERSE = 1 << 14
#: Seconds that the public draws that estimate the bound of a projection may take.
MAX_DRAWING_SECONDS = 2.5
#: The bound of a projection is computed up to this many operations (about a second) even if the
#: projection provably cannot be the best, so that the table can show the bound.
SMALL_WORK = 1 << 30


#: Reason given for a candidate that is left out because its set-up runs out of memory.
TOO_LARGE = "its set-up does not fit into the memory of this machine"


@dataclass(frozen=True, repr=False)
class Built:
    """A candidate that applies, with its prediction.

    Parameters
    ----------
    candidate : Candidate
        The row of the table of candidates.
    step : Step or None
        The post-processing after the noise; None for none.
    mechanism : Mechanism
        The mechanism. Its geometry is computed, unless the prediction was read from the cache.
    prediction : Prediction
        Its predicted error.
    sampler : Exact, Approximate or Heuristic
        Status of its sampler.
    seconds : float
        Time that the prediction took.
    """

    candidate: Candidate
    step: Step | None
    mechanism: Mechanism
    prediction: Prediction
    sampler: SamplerStatus
    seconds: float

    def __repr__(self) -> str:
        """Name and prediction."""
        return f"Built({self.name}, {self.prediction.value:.4g})"

    @property
    def name(self) -> str:
        """Its name in tables, such as Projected(Laplace)."""
        return _name(self.candidate, self.step)

    @property
    def exact(self) -> bool:
        """Whether the sampler is exact."""
        return self.sampler == Exact()

    @property
    def noise(self) -> AdditiveMechanism | None:
        """The mechanism itself if additive, or the one it wraps on the same queries; else None."""
        return additive_within(self.mechanism)


def _name(candidate: Candidate, step: Step | None) -> str:
    return candidate.name if step is None else f"{step.name}({candidate.name})"


@dataclass(repr=False)
class Trials:
    """Candidates that apply to a setting, and why others do not.

    Parameters
    ----------
    setting : Setting
        What is asked for.
    built : list of Built
        Candidates that apply, in the order in which they were tried. The order breaks ties.
    refused : dict of str to str
        Names of the candidates that are left out, with the reason for each.
    untried : set of str
        Names in `refused` of candidates that would apply, but cost too much to set up.
    """

    setting: Setting
    built: list[Built] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    untried: set[str] = field(default_factory=set)

    def __repr__(self) -> str:
        """How many candidates apply, and how many are left out."""
        return f"Trials({len(self.built)} built, {len(self.refused)} left out)"

    @property
    def least(self) -> float:
        """The least prediction so far; inf if there is none."""
        return min((trial.prediction.value for trial in self.built), default=math.inf)

    def attempt(self, candidate: Candidate) -> None:
        """Build a candidate without any step after it."""
        setting = (
            replace(self.setting, least=self.least) if candidate.depends_on_n else self.setting
        )
        self._attempt(candidate, None, partial(candidate.compared, setting))

    def attempt_after(self, noisy: Built, step: Step, build: Callable[[], Mechanism]) -> None:
        """Build and set up `step` after the noise of `noisy`, so that it is known to work."""

        def ready() -> Mechanism:
            mechanism = build()
            mechanism.set_up()
            return mechanism

        self._attempt(noisy.candidate, step, ready)

    def drop(self, trial: Built, reason: str) -> None:
        """Move a candidate that cannot be set up to those left out."""
        self.built.remove(trial)
        self.refused[trial.name] = reason

    def _attempt(
        self, candidate: Candidate, step: Step | None, build: Callable[[], Mechanism]
    ) -> None:
        start, name = time.perf_counter(), _name(candidate, step)
        try:
            mechanism = build()
            if step is None:
                prediction, sampler = predicted(name, mechanism)
            else:
                prediction, sampler = mechanism.predicted_rmse, mechanism.guarantee.sampler
        except (InapplicableError, WorkloadSizeError, MissingOracle) as reason:
            self.refused[name] = str(reason)
            if isinstance(reason, UntriedError):
                self.untried.add(name)
            return
        except MemoryError:
            # Estimates of cost do not cover everything, and advice must not end in a crash.
            self.refused[name] = TOO_LARGE
            self.untried.add(name)
            return
        seconds = time.perf_counter() - start
        self.built.append(Built(candidate, step, mechanism, prediction, sampler, seconds))


def try_for_every_n(setting: Setting) -> Trials:
    """Candidates whose geometry serves every n: noise by itself, shrunk, projected, and others.

    Only the best noise is also shrunk: the prediction of shrunk noise grows with that of the noise.
    """
    return _try_noise(setting, use_least=False)


def try_all(setting: Setting) -> Trials:
    """All candidates, except slow ones that provably cannot be better than the rest."""
    trials = _try_noise(setting, use_least=True)
    for candidate in CANDIDATES:
        if candidate.depends_on_n:
            trials.attempt(candidate)
    return trials


def _try_noise(setting: Setting, *, use_least: bool) -> Trials:
    """Noise, shrunk and projected; `use_least` leaves out what cannot be the best at this n."""
    trials = Trials(setting)
    for candidate in CANDIDATES:
        if not candidate.depends_on_n:
            trials.attempt(candidate)
    noises = [trial for trial in rank(trials.built) if PROJECTED in trial.candidate.steps]
    for noisy in noises[:1]:
        trials.attempt_after(noisy, SHRUNK, partial(_shrunk, noisy, setting))
    size = setting.workload.universe.size or 0
    large = size > MAX_PROJECTED_UNIVERSE and breadth_work(setting.workload) > 0
    for noisy in noises:
        best = noisy is noises[0]
        # The best noise is always projected: that helps even where the bound is no smaller.
        least = trials.least if use_least and not best else math.inf
        known = replace(setting, least=least)
        build = partial(_projected, noisy, known, wanted=best or not large)
        trials.attempt_after(noisy, PROJECTED, build)
    return trials


def _shrunk(noisy: Built, setting: Setting) -> Mechanism:
    """Shrunk noise; `UntriedError` if each release would take long."""
    assert isinstance(noisy.mechanism, AdditiveMechanism)
    _check_projection(noisy, setting)
    return SHRUNK.kind(noisy.mechanism)


def _projected(noisy: Built, setting: Setting, *, wanted: bool) -> Mechanism:
    """Projected noise.

    `UntriedError` if its bound takes long to compute; `InapplicableError` if it cannot be the best.
    """
    inner = noisy.mechanism
    assert isinstance(inner, AdditiveMechanism)
    if not wanted:
        raise UntriedError(
            f"with more than {MAX_PROJECTED_UNIVERSE} kinds of records, bounds on projections take "
            "long: only the best noise is projected"
        )
    _check_projection(noisy, setting)
    seconds = draw_seconds(inner.noise)
    if seconds * MAX_DRAWS > MAX_DRAWING_SECONDS:
        raise UntriedError(
            f"each of the many draws behind its bound would take about {seconds:.2g} s"
        )
    per_draw = breadth_work(setting.workload) + seconds * OPERATIONS_A_SECOND
    draws = support_draws(inner.noise)
    if draws * per_draw > SMALL_WORK and noisy.candidate.log_concave:
        setting.check_floor("bound", projection_floor(inner))
    affordable = draws if per_draw == 0 else int(setting.budget.work / per_draw)
    if affordable < draws and isinstance(inner.noise, GaussianNoise):
        affordable = 0  # a Gaussian width takes a fixed number of directions
    setting.check_cost("bound", work=max(MIN_DRAWS, min(draws, affordable)) * per_draw)
    return Projected(inner, draws=max(MIN_DRAWS, min(MAX_DRAWS, affordable)))


def _check_projection(noisy: Built, setting: Setting) -> None:
    """Raise `UntriedError` if the projection of one release would take long.

    ``WorkloadSizeError`` if the universe is too large for the oracle of the workload, so that
    nothing can be projected.
    """
    workload = setting.workload
    tried_projector(reachable_body(workload))
    spread = noisy.prediction.value * math.sqrt(workload.n_queries) / workload.l2_diameter()
    setting.check_cost("projection in each release", work=projection_work(workload, spread))


def ready_to_release(trials: Trials) -> list[Built]:
    """The ranked candidates. The first is set up: to release, it needs nothing but the records.

    A first candidate that cannot be set up is moved to those left out, and the next one is tried.
    """
    while ranked := rank(trials.built):
        leader = ranked[0]
        try:
            leader.mechanism.set_up()
        except (WorkloadSizeError, MissingOracle) as reason:
            trials.drop(leader, str(reason))
        except MemoryError:
            trials.drop(leader, TOO_LARGE)
        else:
            # Once set up, the mechanism computes its own prediction. The prediction used for the
            # ranking may come from the cache and differ by rounding.
            return [replace(leader, prediction=leader.mechanism.predicted_rmse), *ranked[1:]]
    return []


def rank(built: list[Built]) -> list[Built]:
    """Candidates by prediction, the advised one first.

    Among candidates that tie for the least prediction, one with an exact sampler is advised; among
    several, the simplest. Shrunk noise that gains less than `WORTHWHILE` is replaced by the noise
    alone. Noise alone is replaced by the same noise projected, if that was built: projected noise
    never has a larger error, even where the bound on its error is no smaller.
    """
    if not built:
        return []
    first = min((trial.prediction for trial in built), key=lambda prediction: prediction.value)
    tied = [trial for trial in built if _ties(trial.prediction, first)]
    # `min` returns the first of equals, the simplest: `built` is in order of simplicity.
    leader = min(tied, key=lambda trial: not trial.exact)
    noise = _with_step(built, leader, None)
    limit = leader.prediction.value * (1 + WORTHWHILE)
    if leader.step is SHRUNK and noise is not None and noise.prediction.value <= limit:
        leader = noise
    if leader.step is None:
        # Of noises that tie, take the one with the lowest bound on its projection.
        equal = [leader, *(t for t in tied if t.step is None and t.exact == leader.exact)]
        projected = [found for t in equal if (found := _with_step(built, t, PROJECTED))]
        leader = min(projected, key=lambda trial: trial.prediction.value, default=leader)
    rest = sorted(built, key=lambda trial: trial.prediction.value)
    return [leader, *(trial for trial in rest if trial is not leader)]


def _with_step(built: list[Built], trial: Built, step: Step | None) -> Built | None:
    """The candidate with the noise of `trial` and `step` after it, if it was built."""
    same = (other for other in built if other.candidate is trial.candidate)
    return next((other for other in same if other.step is step), None)


def _ties(prediction: Prediction, least: Prediction) -> bool:
    stderr = math.hypot(prediction.stderr, least.stderr)
    return prediction.value <= least.value * (1 + TIE) + TIE_STANDARD_ERRORS * stderr
