"""Noise on the values that NumericSparse releases, against the accuracies of two theorems.

DISC-11 of the formula sheet is about Theorem 3.28 of Dwork and Roth, and DISC-21 about their
Theorem 4.14. The proof of Theorem 4.14 needs all released values to be within alpha0 of the truth
with probability 1 - beta.
"""

from __future__ import annotations

import math

import numpy as np

import geomdp as gd
from experiments.privacy.corrected.statement import Measured, Version
from geomdp.bounds.upper import numeric_sparse, numeric_sparse_printed
from geomdp.mechanisms.interactive import sparse_vector
from geomdp.mechanisms.interactive.online import solve_accuracy


def chance_of_a_large_value(deviation: float, scale: float, count: int) -> float:
    """Chance that at least one of `count` independent Laplace noises exceeds `deviation` in size.

    The noises have scale `scale`, and `deviation` is above 0. The probability is
    1 - (1 - e^(-deviation / scale))^count. Small values are computed without cancellation.
    """
    relative = deviation / scale
    # ln(1 - e^-x). For small x, 1 - e^-x is small, and for large x, it is near 1.
    log_small = (
        math.log(-math.expm1(-relative)) if relative < 0.5 else math.log1p(-math.exp(-relative))
    )
    return -math.expm1(count * log_small)


#: NumericSparse: its guarantee, the number of values released, and the failure probability.
APPROX, CUTOFF, BETA = gd.ApproxDP(1.0, 1e-6), 10, 0.05
#: The true answers exceed the threshold by this many times the stated accuracy, so that all are
#: reported.
FAR = 100.0

#: Online multiplicative weights: privacy, numbers of elements and of queries, and the accuracy
#: alpha0. The union bounds have little slack for such small numbers. At this alpha0 at most three
#: updates are needed.
PURE, ELEMENTS, ASKED, ALPHA = gd.PureDP(1.0), 2, 3, 0.96
#: The factor that is printed in Theorem 4.14. Its proof gives 9 * 4 = 36 instead; see `updated`.
PRINTED_FACTOR = 32


def released(version: Version, queries: float, runs: int, rng: np.random.Generator) -> Measured:
    """Probability that at least one released value errs by more than alpha, and its bound beta."""
    k = round(queries)
    stated, build = (
        (numeric_sparse_printed, gd.mechanisms.PrintedNumericSparse)
        if version is Version.PRINTED
        else (numeric_sparse, gd.NumericSparse)
    )
    alpha = stated(APPROX, cutoff=CUTOFF, queries=k, beta=BETA)
    truths = np.full(CUTOFF, FAR * alpha)
    mechanisms = [build(0.0, cutoff=CUTOFF, privacy=APPROX, rng=child) for child in rng.spawn(runs)]
    failures = sum(
        any(abs(float(answer.value) - FAR * alpha) > alpha for answer in M.ask_many(truths))
        for M in mechanisms
    )
    scale = mechanisms[0].scales.answer
    exact = chance_of_a_large_value(alpha, scale, CUTOFF)
    return Measured(exact, BETA, drawn=failures / runs)


def updated(version: Version, beta: float, *_: object) -> Measured:
    """Probability that at least one value of an update errs by more than alpha0, and its bound.

    n is as small as the stated alpha0 allows: 32 (printed) or 36 (corrected) times
    ln |X| (ln k + ln(8 c / beta)) / (alpha0^3 eps). There are |X| elements, k queries and at most
    c = 4 ln |X| / alpha0^2 updates. For the corrected version, this n then determines alpha0.
    """
    rule = gd.mechanisms.MultiplicativeWeights(ELEMENTS)
    updates = rule.bound(ALPHA)
    logs = math.log(2 * ASKED) + math.log(4 * updates / beta)
    factor = PRINTED_FACTOR / 4 if version is Version.PRINTED else 9
    n = math.ceil(factor * updates * logs / (ALPHA * PURE.epsilon))
    alpha = (
        ALPHA
        if version is Version.PRINTED
        else solve_accuracy(rule, privacy=PURE, n=n, queries=ASKED, beta=beta)
    )
    count = math.floor(rule.bound(alpha))
    scale = sparse_vector.numeric(PURE, count, monotone=False).answer
    assert scale is not None
    return Measured(chance_of_a_large_value(alpha, scale / n, count), beta)
