"""The choice among mechanisms in plain words."""

from __future__ import annotations

import math

from geomdp.advice.candidates import Question
from geomdp.advice.slow_draws import draw_seconds
from geomdp.advice.trials import TIE, Built
from geomdp.mechanisms import (
    AdditiveMechanism,
    Ball,
    Cone,
    Ellipsoid,
    Gaussian,
    Hierarchical,
    KNorm,
    Laplace,
    Matrix,
    Mechanism,
    PredictionKind,
    Recursive,
    Shrunk,
    Spectral,
    TightCone,
)
from geomdp.workloads import WorkloadSizeError

KINDS = {
    PredictionKind.EXACT: "the same for every data set",
    PredictionKind.UPPER_BOUND: "an upper bound over all data sets",
    PredictionKind.PRIOR: "simulated on a prior",
}
#: Why noise of each kind suits a workload.
SUITS: dict[type[Mechanism], str] = {
    Laplace: "It adds independent noise to every query: best where a record changes few answers.",
    Gaussian: "It adds the same Gaussian noise in every direction in which answers move.",
    Ball: "Its noise is the same in every direction in which answers move.",
    Cone: "Its noise has the shape of a body that holds all answers: answers that move together "
    "share it.",
    TightCone: "Its noise has the shape of a body that holds all answers, cut close to them by "
    "inequalities that counts satisfy.",
    Spectral: "Its noise is drawn on the matrix of all pairwise products, of which every answer is "
    "a sum: little of it is in any one entry.",
    KNorm: "Its noise has the shape of what one record can change: large only where that is.",
    Ellipsoid: "Its noise is longer in directions in which one record changes answers more.",
    Matrix: "It measures a few well-chosen sums with noise and computes the answers from them, so "
    "that queries share the noise.",
    Hierarchical: "It counts at several resolutions with noise and combines them, so that no "
    "answer adds up many noisy counts.",
    Recursive: "It spends more of the budget on the few directions in which answers move most.",
}
#: Share of the diameter of the answers above which noise drowns them.
DROWNED = 0.5
#: Most candidates that were not tried listed in a sentence.
NAMED = 3


def reasons(ranked: list[Built], untried: set[str], question: Question) -> list[str]:
    """The choice in words: how large, why, by how much, with what guarantee, and what is open."""
    best = ranked[0]
    said = [
        f"{best.name} has the least predicted error, {best.prediction.value:.4g} per query "
        f"({KINDS[best.prediction.kind]}), of {len(ranked)} mechanisms that apply"
        f"{_aside(ranked)}."
    ]
    noise = _noise_of(best.mechanism)
    if noise is not None:
        said += [SUITS[type(noise)], _regime(best, noise, question)]
    said += _comparison(ranked, noise)
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
    if untried:
        named = ", ".join(sorted(untried)) if len(untried) <= NAMED else f"{len(untried)} more"
        said.append(f"Not tried, as they would take long (see the table): {named}.")
    return said


def _aside(ranked: list[Built]) -> str:
    """What is lower by a little, yet not advised."""
    lower = [t for t in ranked[1:] if t.prediction.value < ranked[0].prediction.value * (1 - TIE)]
    if not lower:
        return ""
    gain = 1 - lower[0].prediction.value / ranked[0].prediction.value
    return f", but for the {gain:.1%} less of {lower[0].name}, not worth its price"


def _noise_of(mechanism: Mechanism) -> AdditiveMechanism | None:
    """The additive mechanism within, on the same queries; None if there is none."""
    if isinstance(mechanism, AdditiveMechanism):
        return mechanism
    inner = getattr(mechanism, "inner", None)
    same = isinstance(inner, AdditiveMechanism) and inner.workload is mechanism.workload
    return inner if same else None


def _regime(best: Built, noise: AdditiveMechanism, question: Question) -> str:
    """Noise against how far answers of two data sets can be apart, and what follows from that."""
    workload = question.workload
    widest = workload.l2_diameter() / math.sqrt(workload.n_queries)
    alone = noise.predicted_rmse.value
    sizes = (
        f"{_dimensions(question)}With {question.n} records its noise alone is {alone:.4g} per "
        f"query, {alone / widest:.2g} "
        f"times what the answers of two data sets can differ by ({widest:.4g})"
    )
    if isinstance(best.mechanism, AdditiveMechanism):
        return (
            f"{sizes}: too little for a step after it to help for certain. Moving answers to the "
            f"nearest attainable ones, Projected({best.name}), never adds error on {question.n} "
            "records, at the price of a projection per release."
        )
    step = "moving the noisy answers to the nearest attainable ones"
    if isinstance(best.mechanism, Shrunk):
        step = "moving the noisy answers towards those of uniform data, and to attainable ones,"
    gain = f"{step} takes {1 - best.prediction.value / alone:.0%} of it away for certain"
    drowned = " There are few records for this many queries." if alone > DROWNED * widest else ""
    return f"{sizes}: {gain}.{drowned}"


def _dimensions(question: Question) -> str:
    """How many queries are free to move, where the hull of the answers is within reach."""
    try:
        dimension = question.workload.affine_hull().dimension
    except WorkloadSizeError:
        return ""
    return f"The {question.workload.n_queries} answers move in {dimension} dimensions. "


def _comparison(ranked: list[Built], noise: AdditiveMechanism | None) -> list[str]:
    """The next mechanism with another noise, and by how much its prediction is larger."""
    best = ranked[0]
    others = [
        trial
        for trial in ranked[1:]
        if trial.prediction.value > 0 and (noise is None or _noise_of(trial.mechanism) is not noise)
    ]
    if not others:
        return []
    second = others[0]
    ratio = second.prediction.value / best.prediction.value
    more = f"{ratio - 1:.1%} more" if ratio < 2 else f"{ratio:.2g} times as much"
    return [f"Next is {second.name}: {second.prediction.value:.4g}, {more}."]
