"""Runs of the sparse vector mechanisms on queries around a threshold, and their exact laws."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

import geomdp as gd
from experiments.interactive import sparse_vector_laws as laws
from experiments.interactive.sparse_vector_laws import Law
from geomdp.bounds.upper import interactive as accuracy

BETA = 0.05
PURE = gd.PureDP(1.0)
APPROX = gd.ApproxDP(1.0, 1e-6)
CUTOFF = 10
BELOW = gd.mechanisms.Answer(above=False)


class Family(enum.StrEnum):
    """Mechanisms; each has its own theorem on accuracy."""

    ABOVE = "AboveThreshold"
    KEPT = "Sparse, threshold kept"
    REDRAWN = "Sparse, threshold redrawn"
    NUMERIC = "NumericSparse, corrected"
    PRINTED = "NumericSparse, printed"


#: Mechanisms of panel (a), pure DP and varying distance, and of panel (b), approximate DP and
#: varying k.
PURE_FAMILIES = (Family.ABOVE, Family.KEPT, Family.REDRAWN, Family.NUMERIC)
APPROX_FAMILIES = (Family.NUMERIC, Family.PRINTED)


@dataclass(frozen=True)
class Config:
    """One point of the figure."""

    family: Family  # Mechanism
    approximate: bool  # Whether the privacy is (1, 1e-6)-DP instead of 1-DP
    queries: int  # Number k of queries
    gap: float  # Distance of every query from the threshold, in units of the theorem's alpha
    runs: int  # Independent runs in one cell


def cutoff(config: Config) -> int:
    """Number of queries above the threshold."""
    return 1 if config.family is Family.ABOVE else CUTOFF


def stated_accuracy(config: Config) -> float:
    """The alpha of the mechanism's theorem at failure probability BETA."""
    k, c = config.queries, cutoff(config)
    match config.family:
        case Family.ABOVE:
            return accuracy.above_threshold(PURE.epsilon, queries=k, beta=BETA)
        case Family.KEPT:
            # The scales come from the law. If the mechanism drew too little noise, scales taken
            # from it would shrink the distance at which it is tested.
            kept = laws.kept(k, c, BETA)
            return accuracy.sparse_kept(
                threshold=kept.threshold, query=kept.query, queries=k, beta=BETA
            )
        case Family.REDRAWN:
            privacy = APPROX if config.approximate else PURE
            return accuracy.sparse(privacy, cutoff=c, queries=k, beta=BETA)
        case Family.NUMERIC:
            privacy = APPROX if config.approximate else PURE
            return accuracy.numeric_sparse(privacy, cutoff=c, queries=k, beta=BETA)
        case Family.PRINTED:
            return accuracy.numeric_sparse_printed(APPROX, cutoff=c, queries=k, beta=BETA)


def ask(config: Config, truths: np.ndarray, rng: np.random.Generator) -> list[gd.mechanisms.Answer]:
    """Answers of one run of the mechanism, with threshold 0."""
    match config.family:
        case Family.ABOVE:
            return gd.AboveThreshold(0.0, privacy=PURE, rng=rng).ask_many(truths)
        case Family.KEPT | Family.REDRAWN:
            redraw = config.family is Family.REDRAWN
            privacy = APPROX if config.approximate else PURE
            return gd.Sparse(
                0.0, cutoff=CUTOFF, privacy=privacy, redraw=redraw, rng=rng
            ).ask_many(truths)  # fmt: skip
        case Family.NUMERIC:
            privacy = APPROX if config.approximate else PURE
            return gd.NumericSparse(0.0, cutoff=CUTOFF, privacy=privacy, rng=rng).ask_many(truths)
        case Family.PRINTED:
            return gd.mechanisms.PrintedNumericSparse(
                0.0, cutoff=CUTOFF, privacy=APPROX, rng=rng
            ).ask_many(truths)  # fmt: skip


def fails(truths: np.ndarray, answers: list[gd.mechanisms.Answer], alpha: float) -> bool:
    """Whether an answer is on the wrong side, missing, or further than alpha from the truth.

    The first truths are below the threshold, all others above.
    """
    below = int(np.count_nonzero(truths < 0))
    last = answers[below:]
    if answers[:below].count(BELOW) != below or len(answers) != len(truths):
        return True
    return any(
        not answer.above or (answer.value is not None and abs(answer.value - truth) > alpha)
        for answer, truth in zip(last, truths[below:], strict=True)
    )


def law(family: str, approximate: bool, queries: int) -> Law:
    """The law of a mechanism, with the alpha of its theorem."""
    delta = APPROX.delta if approximate else None
    match family:
        case Family.ABOVE:
            return laws.above_threshold(queries, BETA)
        case Family.KEPT:
            return laws.kept(queries, CUTOFF, BETA)
        case Family.REDRAWN:
            return laws.redrawn(queries, CUTOFF, BETA, delta)
        case Family.PRINTED:
            return laws.numeric_printed(queries, CUTOFF, BETA, APPROX.delta)
        case _:
            return laws.numeric(queries, CUTOFF, BETA, delta)


def exact_failure(family: str, approximate: bool, queries: int, gap: float) -> float:
    """Probability that a run fails if all queries are `gap` times alpha from the threshold."""
    found = law(family, approximate, queries)
    c = 1 if family == Family.ABOVE else CUTOFF
    return found.failure(queries, c, gap * found.alpha)
