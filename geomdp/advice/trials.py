"""Building the candidates for a question, and ranking them by prediction."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from geomdp.advice.bounded_candidates import coarse, jl
from geomdp.advice.candidates import (
    ADDITIVE,
    SPECIAL,
    InapplicableError,
    Question,
    UntriedError,
)
from geomdp.advice.slow_draws import draw_seconds
from geomdp.mechanisms import AdditiveMechanism, Mechanism, Prediction, Projected, Shrunk
from geomdp.mechanisms.post_processed.support_bound import MAX_DRAWS
from geomdp.privacy import Exact
from geomdp.workloads import WorkloadSizeError

#: Predictions closer than this share are equal: projection mechanisms count a duality gap of a
#: millionth of the squared error on top of the error itself. So are those within this many
#: standard errors of each other, where one is estimated.
TIE, TIE_STANDARD_ERRORS = 1e-5, 3.0
#: What follows noise must lower its prediction by this share to be advised: less is not worth a
#: projection for every release.
WORTHWHILE = 0.01
#: Largest universe for which a projection is tried after every additive mechanism. For larger
#: ones, whose support function is slow, only after the best of them.
MAX_PROJECTED_UNIVERSE = 1 << 14
#: Seconds that the public draws behind the bound of a projection may take.
MAX_DRAWING_SECONDS = 2.5


@dataclass(frozen=True)
class Built:
    """A candidate that applies, with its prediction.

    Parameters
    ----------
    name : str
        The mechanism in words.
    mechanism : Mechanism
        Built, with all geometry done.
    prediction : Prediction
        Its predicted error.
    seconds : float
        Set-up time.
    """

    name: str
    mechanism: Mechanism
    prediction: Prediction
    seconds: float

    @property
    def exact(self) -> bool:
        """Whether the sampler is exact."""
        return self.mechanism.guarantee.sampler == Exact()


@dataclass
class Trials:
    """Candidates that apply to a question, in order of simplicity, and why others do not.

    Parameters
    ----------
    built : list of Built
        Those that apply.
    refused : dict of str to str
        Why not, by name.
    untried : set of str
        Names among the refused that would apply, but take too long to set up.
    """

    built: list[Built] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    untried: set[str] = field(default_factory=set)

    def attempt(self, name: str, build: Callable[[], Mechanism]) -> None:
        """Build one candidate and take its prediction."""
        start = time.perf_counter()
        try:
            mechanism = build()
            prediction = mechanism.predicted_rmse
        except (InapplicableError, WorkloadSizeError) as reason:
            self.refused[name] = str(reason)
            if isinstance(reason, UntriedError):
                self.untried.add(name)
        else:
            seconds = time.perf_counter() - start
            self.built.append(Built(name, mechanism, prediction, seconds))


def try_for_every_n(question: Question) -> Trials:
    """Candidates whose geometry serves every n: noise by itself, projected, shrunk, and others.

    Of shrunk noise only the least: its prediction grows with that of the noise.
    """
    trials = Trials()
    for name, build in ADDITIVE.items():
        trials.attempt(name, partial(build, question))
    noises = [(trial.name, trial.mechanism) for trial in rank(trials.built)]
    for name, special in SPECIAL.items():
        trials.attempt(name, partial(special, question))
    size, tried = question.workload.universe.size, 0
    most = 1 if size is not None and size > MAX_PROJECTED_UNIVERSE else len(noises)
    for name, noisy in noises:
        assert isinstance(noisy, AdditiveMechanism)
        after = partial(_projected, noisy, wanted=tried < most)
        trials.attempt(f"Projected({name})", after)
        tried += f"Projected({name})" not in trials.refused
    for name, noisy in noises[:1]:
        assert isinstance(noisy, AdditiveMechanism)
        trials.attempt(f"Shrunk({name})", partial(Shrunk, noisy))
    return trials


def _projected(noisy: AdditiveMechanism, wanted: bool) -> Mechanism:
    """Noise with a projection, unless the bound on its error would take long."""
    seconds = draw_seconds(noisy.noise)
    if seconds * MAX_DRAWS > MAX_DRAWING_SECONDS:
        raise UntriedError(
            f"each of the many draws behind its bound would take about {seconds:.2g} s"
        )
    if not wanted:
        raise UntriedError(
            f"with more than {MAX_PROJECTED_UNIVERSE} kinds of records, bounds on projections take "
            "long: only the best noise is projected"
        )
    return Projected(noisy)


def try_all(question: Question) -> Trials:
    """All candidates; those that cannot be better than what is known come last."""
    trials = try_for_every_n(question)
    least = min((trial.prediction.value for trial in trials.built), default=math.inf)
    trials.attempt("JL(KNorm(exact=True), AutoDimension())", lambda: jl(question, least))
    trials.attempt("Coarse(Projected)", lambda: coarse(question, least))
    return trials


def rank(built: list[Built]) -> list[Built]:
    """By prediction, but for the first place: among those tied for it the exact, then the simplest.

    Noise by itself takes that place from what follows it if its prediction is about as good.
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
    after, plain = leader.mechanism, trial.mechanism
    # Copies for another n share the noise.
    own = (
        isinstance(after, Projected | Shrunk)
        and isinstance(plain, AdditiveMechanism)
        and after.inner.noise is plain.noise
    )
    return own and trial.prediction.value <= leader.prediction.value * (1 + WORTHWHILE)
