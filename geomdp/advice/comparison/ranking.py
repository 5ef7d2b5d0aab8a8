"""The ranking of candidates by predicted error, with the rules for candidates that tie."""

from __future__ import annotations

import math
from dataclasses import replace

from geomdp.advice.comparison.trials import TOO_LARGE, Built, Trials
from geomdp.advice.steps import PROJECTED, SHRUNK, Step
from geomdp.bodies import MissingOracle
from geomdp.mechanisms import Mechanism, Prediction
from geomdp.workloads import WorkloadSizeError

#: Two predictions tie if their difference is at most the share `TIE` of the smaller prediction plus
#: `TIE_STANDARD_ERRORS` standard errors of the difference. Because of its duality gap, a projection
#: that gains nothing has a prediction a millionth above the prediction of its noise. `TIE` covers
#: this.
TIE, TIE_STANDARD_ERRORS = 1e-5, 3.0
#: Shrinking is advised only if the prediction falls by more than this share. Shrinking has a bias,
#: so its error is near the predicted bound for many data sets. By contrast, the error of a
#: projection is below its bound for most data sets.
WORTHWHILE = 0.01


def ready_to_release(trials: Trials) -> list[Built]:
    """The ranking, without candidates that cannot release; the first candidate is set up."""
    while ranked := rank(trials.built):
        leader = ranked[0]
        try:
            leader.mechanism.set_up()
        except (WorkloadSizeError, MissingOracle) as reason:
            why = str(reason)
        except MemoryError:
            why = TOO_LARGE
        else:
            # The ranking may have used a prediction and a sampler status from the cache. After
            # set-up, the mechanism itself gives both. The two predictions can differ by rounding.
            own = leader.mechanism.predicted_rmse
            ready = replace(leader, prediction=own, sampler=leader.mechanism.sampler)
            return [ready, *ranked[1:]]
        trials.built.remove(leader)
        trials.refused[leader.name] = why
    return []


def rank(built: list[Built]) -> list[Built]:
    """The candidates, sorted by prediction, but with the advised candidate first.

    The rules are those of `advise`; a rule that no candidate satisfies is skipped.
    """
    if not built:
        return []
    first = min((trial.prediction for trial in built), key=lambda prediction: prediction.value)
    tied = [trial for trial in built if _ties(trial.prediction, first)]
    # If several candidates are equal, `min` returns the first. `built` lists the simplest
    # mechanisms first.
    leader = min(tied, key=lambda trial: not trial.exact)
    rivals = [trial for trial in tied if trial.exact == leader.exact]
    if len(rivals) > 1:
        # If some rivals round their noise correctly, drop the others.
        rounded = [trial for trial in rivals if _is_rounded(trial.mechanism)]
        rivals = rounded or rivals
        leader = rivals[0]
    noise = _with_step(built, leader, None)
    limit = leader.prediction.value * (1 + WORTHWHILE)
    if leader.step is SHRUNK and noise is not None and noise.prediction.value <= limit:
        leader = noise
    if leader.step is None:
        # If several noises tie, choose the noise with the lowest error bound after a projection.
        equal = [leader, *(t for t in rivals if t.step is None)]
        projected = [found for t in equal if (found := _with_step(built, t, PROJECTED))]
        leader = min(projected, key=lambda trial: trial.prediction.value, default=leader)
    rest = sorted(built, key=lambda trial: trial.prediction.value)
    return [leader, *(trial for trial in rest if trial is not leader)]


def _with_step(built: list[Built], trial: Built, step: Step | None) -> Built | None:
    """The built candidate, if any, that applies `step` after the noise of `trial`."""
    same = (other for other in built if other.candidate is trial.candidate)
    return next((other for other in same if other.step is step), None)


def _ties(prediction: Prediction, least: Prediction) -> bool:
    stderr = math.hypot(prediction.stderr, least.stderr)
    return prediction.value <= least.value * (1 + TIE) + TIE_STANDARD_ERRORS * stderr


def _is_rounded(mechanism: Mechanism) -> bool:
    """Whether unseeded releases round noise correctly; False if the mechanism cannot be set up."""
    try:
        return mechanism.grid is not None
    except (WorkloadSizeError, MissingOracle, MemoryError):
        return False
