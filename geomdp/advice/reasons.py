"""Sentences that explain the choice among mechanisms."""

from __future__ import annotations

import math

from geomdp.advice.costs import draw_seconds
from geomdp.advice.setting import Setting
from geomdp.advice.steps import PROJECTED
from geomdp.advice.trials import TIE, WORTHWHILE, Built, Trials
from geomdp.mechanisms import AdditiveMechanism, PredictionKind
from geomdp.workloads import WorkloadSizeError

KINDS = {
    PredictionKind.EXACT: "the same for every data set",
    PredictionKind.UPPER_BOUND: "an upper bound over all data sets",
    PredictionKind.PRIOR: "simulated on a prior",
}
#: The reasons warn that records are few if the noise exceeds this share of the diameter of the
#: answers.
DROWNED = 0.5
#: Up to this many candidates that were not tried are listed by name.
NAMED = 3


def reasons(ranked: list[Built], trials: Trials) -> list[str]:
    """Sentences about the first of `ranked`.

    They state its predicted error, why it suits the workload, how large its noise is, the next best
    mechanism, its guarantee, and which candidates were not tried.
    """
    best = ranked[0]
    said = [
        f"{best.name} has the least predicted error, {best.prediction.value:.4g} per query "
        f"({KINDS[best.prediction.kind]}), of {len(ranked)} mechanisms that apply"
        f"{_aside(ranked)}."
    ]
    said.append(best.candidate.suits)
    noise = best.noise
    if noise is not None:
        said.append(_regime(best, noise, trials))
    said += _comparison(ranked)
    said.append(f"Its record will read: {best.mechanism.guarantee}.")
    if not best.exact:
        exact = next((trial for trial in ranked if trial.exact), None)
        if exact is not None:
            said.append(
                f"Its sampler carries no guarantee; the best exact one is {exact.name}, "
                f"{exact.prediction.value:.4g} (ask for exact_only)."
            )
    seconds = 0.0 if noise is None else draw_seconds(noise.noise)
    if seconds >= 0.1:
        said.append(f"A release draws noise for about {seconds:.1g} s.")
    untried = sorted(trials.untried)
    if untried:
        named = ", ".join(untried) if len(untried) <= NAMED else f"{len(untried)} more"
        said.append(f"Not tried, as they would take long (see the table): {named}.")
    return said


def _aside(ranked: list[Built]) -> str:
    """Remark on a mechanism that has a slightly lower prediction and is not advised, if any."""
    best = ranked[0].prediction.value
    others = [trial for trial in ranked[1:] if trial.candidate is not ranked[0].candidate]
    lower = [trial for trial in others if trial.prediction.value < best * (1 - TIE)]
    if not lower:
        return ""
    gain = 1 - lower[0].prediction.value / best
    return f", but for the {gain:.1%} less of {lower[0].name}, not worth its price"


def _regime(best: Built, noise: AdditiveMechanism, trials: Trials) -> str:
    """How the noise compares with the diameter of the answers, and what post-processing gains."""
    setting = trials.setting
    workload = setting.workload
    widest = workload.l2_diameter() / math.sqrt(workload.n_queries)
    alone = noise.predicted_rmse.value
    sizes = (
        f"{_dimensions(setting)}With {setting.n} records its noise alone is {alone:.4g} per "
        f"query, {alone / widest:.2g} "
        f"times what the answers of two data sets can differ by ({widest:.4g})"
    )
    if noise is best.mechanism:
        why = trials.refused.get(f"{PROJECTED.name}({best.name})", "its noise fills no body")
        return (
            f"{sizes}. Moving answers to the nearest attainable ones never adds error on "
            f"{setting.n} records, but {PROJECTED.name}({best.name}) is left out: {why}."
        )
    # A mechanism that itself projects has no `step`; it is described like `PROJECTED`.
    does = (best.step or PROJECTED).does
    gain = 1 - best.prediction.value / alone
    if gain < WORTHWHILE:
        return f"{sizes}: {does} never adds error, and takes some away on most data."
    drowned = " There are few records for this many queries." if alone > DROWNED * widest else ""
    return f"{sizes}: {does} takes {gain:.0%} of it away for certain.{drowned}"


def _dimensions(setting: Setting) -> str:
    """Sentence on the dimension of the affine hull of the answers; empty if it is out of reach."""
    try:
        dimension = setting.workload.affine_hull().dimension
    except WorkloadSizeError:
        return ""
    return f"The {setting.workload.n_queries} answers move in {dimension} dimensions. "


def _comparison(ranked: list[Built]) -> list[str]:
    """Sentence on the next mechanism with another noise, and how much larger its prediction is."""
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
    more = f"{ratio - 1:.1%} more" if ratio < 2 else f"{ratio:.2g} times as much"
    return [f"Next is {second.name}: {second.prediction.value:.4g}, {more}."]
