"""Two statements that do not follow as printed: on composition, and on projected queries.

Theorem 2.10 of Blum and Roth is printed for every delta below 1, but it is false for delta near 1
(DISC-5 of the formula sheet).
Their Corollary 4.7 follows from Lemma 4.6 for logarithms of base 2, not of base e (DISC-4).
"""

from __future__ import annotations

import math

import geomdp as gd
from experiments.privacy.corrected.statement import Measured, Version
from experiments.shared.composition_rules import exact_epsilon
from geomdp.bounds.upper import coefficient_bound
from geomdp.mechanisms.printed import printed_shortcut_step

#: Number of steps that are composed, large enough for a nearly normal total loss.
STEPS = 1000
#: Sparsity m of the queries, number T of rows of the projection, and number k of queries.
SPARSITY, ROWS, QUERIES = 16, 1024, 100


def composed(version: Version, odds: float, *_: object) -> Measured:
    """Exact epsilon of `STEPS` steps of Theorem 2.10 at delta = odds / (1 + odds); 1 is promised.

    The steps are randomised responses, which the theorem allows. The corrected statement holds for
    delta at most 1/2.
    """
    delta = odds / (1 + odds)
    if version is Version.PRINTED:
        return Measured(exact_epsilon(printed_shortcut_step(1.0, delta, STEPS), STEPS, delta), 1.0)
    step = gd.privacy.shortcut_step_epsilon(gd.ApproxDP(1.0, delta), STEPS)
    return Measured(exact_epsilon(step, STEPS, delta), 1.0)


def lemma(failures: float) -> float:
    """Least bound X^(1/r) 2 (m r / T)^(1/2) of Lemma 4.6 over even r, with X = `failures`."""
    logs = math.log(failures)
    # Over real r the least bound is at r = 2 ln X, so the best even r is next to this value.
    near = 2 * max(1, math.floor(logs))
    return min(
        math.exp(logs / r) * 2 * math.sqrt(SPARSITY * r / ROWS) for r in (near, near + 2, near + 4)
    )


def flat(version: Version, failures: float, *_: object) -> Measured:
    """Bounds on entries of projected queries by Lemma 4.6 and by Corollary 4.7.

    `failures` is k T / (2 beta), where k is `QUERIES`, T is `ROWS`, and each bound holds with
    probability 1 - beta.
    """
    if version is Version.PRINTED:
        return Measured(lemma(failures), 4 * math.sqrt(SPARSITY * math.log(failures) / ROWS))
    beta = QUERIES * ROWS / (2 * failures)
    stated = coefficient_bound(sparsity=SPARSITY, rows=ROWS, queries=QUERIES, beta=beta)
    return Measured(lemma(failures), stated)
