"""The sentences with which the advisor explains its choice of a mechanism."""

from __future__ import annotations

import math

from geomdp.advice.comparison.ranking import TIE, WORTHWHILE
from geomdp.advice.comparison.trials import Built, Trials
from geomdp.advice.draw_times import draw_seconds
from geomdp.advice.setting import Setting
from geomdp.advice.steps import FITTED, PROJECTED
from geomdp.mechanisms import AdditiveMechanism, PredictionKind
from geomdp.workloads import WorkloadSizeError

KINDS = {
    PredictionKind.EXACT: "the same for every data set",
    PredictionKind.UPPER_BOUND: "an upper bound over all data sets",
    PredictionKind.PRIOR: "simulated on a prior",
}
#: If the noise exceeds this share of the diameter of the answers, the sentence about the gain of
#: post-processing is followed by a warning that there are few records.
DROWNED = 0.5
#: Two predictions are called the same if their relative difference is below this number. The
#: difference would be printed as 0.0%.
SAME = 5e-4
#: Untried candidates are named if there are at most this many. For more, only the number is given.
NAMED = 3


def reasons(ranked: list[Built], trials: Trials) -> list[str]:
    """The sentences about the best candidate, the first of `ranked`."""
    best = ranked[0]
    proved = _by_prediction(ranked)
    said = [_simulation(best, proved[0])] if best.step is FITTED else []
    said.append(
        f"{proved[0].name} has the least predicted error, {proved[0].prediction.value:.4g} per "
        f"query ({KINDS[proved[0].prediction.kind]}), of {len(ranked)} mechanisms that apply"
        f"{_aside(proved)}."
    )
    said.append(best.candidate.suits)
    noise = best.noise
    if noise is not None:
        said.append(_regime(best, noise, trials))
    said += _comparison(proved)
    said.append(_guarantee(best, trials.setting))
    if not best.exact:
        exact = next((trial for trial in ranked if trial.exact), None)
        if exact is not None:
            said.append(
                f"Its sampler is heuristic, so a release carries no guarantee. The best mechanism "
                f"with an exact sampler is {exact.name}, with a predicted error of "
                f"{exact.prediction.value:.4g} (ask for exact_only)."
            )
    seconds = 0.0 if noise is None else draw_seconds(noise.noise)
    if seconds >= 0.1:
        said.append(f"A release draws noise for about {seconds:.1g} s.")
    untried = sorted(trials.untried)
    if untried:
        named = ", ".join(untried) if len(untried) <= NAMED else f"{len(untried)} mechanisms"
        said.append(f"Not tried, because they would cost too much (see the table): {named}.")
    return said


def _by_prediction(ranked: list[Built]) -> list[Built]:
    """The ranking, but a best candidate with the step `FITTED` is last, and its rival is first."""
    if ranked[0].step is not FITTED:
        return ranked
    rival = next(trial for trial in ranked[1:] if not math.isnan(trial.simulated))
    return [rival, *(trial for trial in ranked[1:] if trial is not rival), ranked[0]]


def _simulation(fit: Built, rival: Built) -> str:
    return (
        f"{fit.name} is advised because it errs less than {rival.name} in simulated releases on "
        f"uniform data, {fit.simulated:.4g} per query instead of {rival.simulated:.4g}, and not "
        "clearly more on public data with one or ten different records. Its predicted error is "
        f"{fit.prediction.value:.4g} ({KINDS[fit.prediction.kind]})."
    )


def _guarantee(best: Built, setting: Setting) -> str:
    """Sentences on the guarantee, and on why it is enough if another one was asked for."""
    guarantee = best.mechanism.guarantee
    said = f"Every release will state this guarantee: {guarantee}."
    if guarantee.privacy == setting.privacy or not best.exact:
        return said
    return f"{said} It implies {setting.privacy}, which was asked for."


def _aside(ranked: list[Built]) -> str:
    """A remark on another candidate with a slightly lower prediction; empty if there is none."""
    best = ranked[0].prediction.value
    others = [trial for trial in ranked[1:] if trial.candidate is not ranked[0].candidate]
    lower = [trial for trial in others if trial.prediction.value < best * (1 - TIE)]
    if not lower:
        return ""
    gain = 1 - lower[0].prediction.value / best
    return (
        f", except for {lower[0].name}: its prediction is {gain:.1%} lower, too little to count "
        "(predictions are uncertain, and the simplest mechanism with an exact sampler is advised)"
    )


def _regime(best: Built, noise: AdditiveMechanism, trials: Trials) -> str:
    """Sentences on the noise relative to the diameter of the answers, and on post-processing."""
    setting = trials.setting
    workload = setting.workload
    widest = workload.l2_diameter() / math.sqrt(workload.n_queries)
    alone = noise.predicted_rmse.value
    dimensions = _dimensions(setting)
    sizes = f"{dimensions}With {setting.n} records the noise alone is {alone:.4g} per query"
    if widest == 0:
        # If all elements have the same answers, the workload is allowed under add/remove, where the
        # answers tell the number of records.
        return f"{sizes}; all data sets of {setting.n} records have the same answers."
    sizes += (
        f", which is {alone / widest:.2g} times the largest difference between the answers of two "
        f"data sets ({widest:.4g} per query)"
    )
    if noise is best.mechanism:
        why = trials.refused.get(f"{PROJECTED.name}({best.name})", "no projection was tried")
        return (
            f"{sizes}. Moving answers to the nearest attainable ones never adds error on "
            f"{setting.n} records, but {PROJECTED.name}({best.name}) is left out: {why}."
        )
    # A mechanism that has no `step`, but does more than add noise, projects the answers itself.
    does = (best.step or PROJECTED).does
    does = does[0].upper() + does[1:]
    if best.step is FITTED:
        return f"{sizes}. {does} removes some of the error on most data sets."
    gain = 1 - best.prediction.value / alone
    if gain < WORTHWHILE:
        return f"{sizes}. {does} never adds error, and removes some of it on most data sets."
    drowned = " There are few records for this many queries." if alone > DROWNED * widest else ""
    return f"{sizes}. {does} removes at least {gain:.0%} of the error on every data set.{drowned}"


def _dimensions(setting: Setting) -> str:
    """Sentence on the dimension of the answers; empty if the workload is too large to find it."""
    try:
        dimension = setting.workload.affine_hull().dimension
    except WorkloadSizeError:
        return ""
    return f"The {setting.workload.n_queries} answers vary in {dimension} dimensions. "


def _comparison(ranked: list[Built]) -> list[str]:
    best = ranked[0]
    others = [
        trial
        for trial in ranked[1:]
        if trial.prediction.value > 0 and trial.candidate is not best.candidate
    ]
    if not others:
        return []
    second = others[0]
    ratio = second.prediction.value / best.prediction.value
    if abs(ratio - 1) < SAME:
        more = "the same up to rounding"
    elif ratio < 2:
        more = f"{abs(ratio - 1):.1%} {'more' if ratio > 1 else 'less'}"
    else:
        more = f"{ratio:.2g} times as much"
    return [f"Next is {second.name}, with predicted error {second.prediction.value:.4g} ({more})."]
