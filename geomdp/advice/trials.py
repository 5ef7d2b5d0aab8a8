"""Building the candidates for a setting, cheap ones first, and ranking them by prediction."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from geomdp.advice.candidate import Candidate
from geomdp.advice.candidates import CANDIDATES
from geomdp.advice.costs import OPERATIONS_A_SECOND, breadth_work, draw_seconds, support_draws
from geomdp.advice.projection_floor import projection_floor
from geomdp.advice.setting import InapplicableError, Setting, UntriedError
from geomdp.advice.steps import PROJECTED, SHRUNK, Step
from geomdp.bodies import MissingOracle
from geomdp.mechanisms import AdditiveMechanism, Mechanism, Prediction
from geomdp.mechanisms.additive_noise.base import additive_within
from geomdp.mechanisms.post_processed.support_bound import MAX_DRAWS
from geomdp.privacy import Exact
from geomdp.workloads import WorkloadSizeError

#: Two predictions tie if they differ by less than this share, as those of projections include a
#: duality gap of a millionth of the squared error, or by less than this many standard errors.
TIE, TIE_STANDARD_ERRORS = 1e-5, 3.0
#: A step after noise is advised only if it lowers the prediction by this share: each release then
#: takes a projection, which a smaller gain is not worth.
WORTHWHILE = 0.01
#: Largest universe for which a projection is tried after every additive mechanism. In larger ones
#: support functions are slow, and only the best noise is projected.
MAX_PROJECTED_UNIVERSE = 1 << 14
#: Seconds that the public draws behind the bound of a projection may take.
MAX_DRAWING_SECONDS = 2.5
#: Operations, about a second, up to which the bound of a projection is computed even where it
#: provably cannot matter: the table then has its value.
SMALL_WORK = 1 << 30


@dataclass(frozen=True, repr=False)
class Built:
    """A candidate that applies, with its prediction.

    Parameters
    ----------
    candidate : Candidate
        The row it is from.
    step : Step or None
        What follows its noise.
    mechanism : Mechanism
        Built, with all geometry done.
    prediction : Prediction
        Its predicted error.
    seconds : float
        Set-up time.
    """

    candidate: Candidate
    step: Step | None
    mechanism: Mechanism
    prediction: Prediction
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
        return self.mechanism.guarantee.sampler == Exact()

    @property
    def noise(self) -> AdditiveMechanism | None:
        """The additive mechanism itself, or within; None if there is none on the same queries."""
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
        Those that apply, in the order in which they were tried, which breaks ties.
    refused : dict of str to str
        Why not, by name.
    untried : set of str
        Names among the refused that would apply, but cost too much to set up.
    """

    setting: Setting
    built: list[Built] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    untried: set[str] = field(default_factory=set)

    def __repr__(self) -> str:
        """How many candidates apply."""
        return f"Trials({len(self.built)} built, {len(self.refused)} left out)"

    @property
    def least(self) -> float:
        """The least prediction so far."""
        return min((trial.prediction.value for trial in self.built), default=math.inf)

    def attempt(self, candidate: Candidate) -> None:
        """Build a candidate without any step after it."""
        setting = (
            replace(self.setting, least=self.least) if candidate.depends_on_n else self.setting
        )
        self._attempt(candidate, None, partial(candidate.compared, setting))

    def attempt_after(self, noisy: Built, step: Step, check: Callable[[], None]) -> bool:
        """Build a step after noise, if a check raises no error; returns whether it was built."""

        def build() -> Mechanism:
            check()
            assert isinstance(noisy.mechanism, AdditiveMechanism)
            return step.kind(noisy.mechanism)

        return self._attempt(noisy.candidate, step, build)

    def _attempt(
        self, candidate: Candidate, step: Step | None, build: Callable[[], Mechanism]
    ) -> bool:
        start, name = time.perf_counter(), _name(candidate, step)
        try:
            mechanism = build()
            prediction = mechanism.predicted_rmse
        except (InapplicableError, WorkloadSizeError, MissingOracle) as reason:
            self.refused[name] = str(reason)
            if isinstance(reason, UntriedError):
                self.untried.add(name)
            return False
        except MemoryError:
            # The estimates of cost are not of everything; advice must not end in a crash.
            self.refused[name] = "its set-up does not fit into the memory of this machine"
            self.untried.add(name)
            return False
        seconds = time.perf_counter() - start
        self.built.append(Built(candidate, step, mechanism, prediction, seconds))
        return True


def try_for_every_n(setting: Setting) -> Trials:
    """Candidates whose geometry serves every n: noise by itself, shrunk, projected, and others.

    Of shrunk noise only the least: its prediction grows with that of the noise.
    """
    return _try_noise(setting, use_least=False)


def try_all(setting: Setting) -> Trials:
    """All candidates; what provably cannot be better than the rest is left out where it is slow."""
    trials = _try_noise(setting, use_least=True)
    for candidate in CANDIDATES:
        if candidate.depends_on_n:
            trials.attempt(candidate)
    return trials


def _try_noise(setting: Setting, *, use_least: bool) -> Trials:
    """Noise and what follows it; `use_least` leaves out what cannot be the best at this n."""
    trials = Trials(setting)
    for candidate in CANDIDATES:
        if not candidate.depends_on_n:
            trials.attempt(candidate)
    noises = [trial for trial in rank(trials.built) if PROJECTED in trial.candidate.steps]
    for noisy in noises[:1]:
        trials.attempt_after(noisy, SHRUNK, lambda: None)
    size, tried = setting.workload.universe.size, 0
    most = 1 if size is not None and size > MAX_PROJECTED_UNIVERSE else len(noises)
    for noisy in noises:
        least = trials.least if use_least else math.inf
        check = partial(_check_projection, noisy, replace(setting, least=least), tried < most)
        tried += trials.attempt_after(noisy, PROJECTED, check)
    return trials


def _check_projection(noisy: Built, setting: Setting, wanted: bool) -> None:
    """Raise `InapplicableError` if the bound of a projection takes long or cannot matter."""
    assert isinstance(noisy.mechanism, AdditiveMechanism)
    seconds = draw_seconds(noisy.mechanism.noise)
    if seconds * MAX_DRAWS > MAX_DRAWING_SECONDS:
        raise UntriedError(
            f"each of the many draws behind its bound would take about {seconds:.2g} s"
        )
    if not wanted:
        raise UntriedError(
            f"with more than {MAX_PROJECTED_UNIVERSE} kinds of records, bounds on projections take "
            "long: only the best noise is projected"
        )
    per_draw = breadth_work(setting.workload) + seconds * OPERATIONS_A_SECOND
    work = support_draws(noisy.mechanism.noise) * per_draw
    if work > SMALL_WORK and noisy.candidate.log_concave:
        setting.check_floor("bound", projection_floor(noisy.mechanism))
    setting.check_cost("bound", work=work)


def rank(built: list[Built]) -> list[Built]:
    """Candidates by prediction, the advised one first.

    Among those that tie for the least prediction it is the one with an exact sampler, then the
    simplest. If it is a step after noise and gains less than `WORTHWHILE`, it is the noise alone.
    """
    if not built:
        return []
    first = min((trial.prediction for trial in built), key=lambda prediction: prediction.value)
    tied = [trial for trial in built if _ties(trial.prediction, first)]
    # Stable: `built` is in order of simplicity.
    leader = min(tied, key=lambda trial: not trial.exact)
    leader = next((trial for trial in built if _is_noise_of(trial, leader)), leader)
    rest = sorted(built, key=lambda trial: trial.prediction.value)
    return [leader, *(trial for trial in rest if trial is not leader)]


def _ties(prediction: Prediction, least: Prediction) -> bool:
    stderr = math.hypot(prediction.stderr, least.stderr)
    return prediction.value <= least.value * (1 + TIE) + TIE_STANDARD_ERRORS * stderr


def _is_noise_of(trial: Built, leader: Built) -> bool:
    """Whether `leader` post-processes the noise of `trial` for a gain that is not worth it."""
    own = leader.step is not None and trial.step is None and trial.candidate is leader.candidate
    return own and trial.prediction.value <= leader.prediction.value * (1 + WORTHWHILE)
