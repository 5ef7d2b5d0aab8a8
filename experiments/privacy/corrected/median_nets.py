"""The update bound of the median rule, for nets with the printed or a finer mesh (DISC-20)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from experiments.privacy.corrected.statement import Measured, Version
from geomdp.mechanisms.interactive.updates import Median, MedianHypothesis
from geomdp.workloads import DenseQuery

#: The two queries: the share of the first of two elements, and the share of the second.
QUERIES = (DenseQuery(np.array([1.0, 0.0])), DenseQuery(np.array([0.0, 1.0])))
#: For a fine net, about this many data sets are tried; for a coarse net, fewer.
TRUTHS = 64


def candidates(mesh: float) -> npt.NDArray[np.float64]:
    """A net on two elements: every distribution is within `mesh` of it, and some are no closer."""
    first = np.arange(mesh, 1, 2 * mesh)
    return np.column_stack([first, 1 - first])


def forced(version: Version, finest: float, *_: object) -> Measured:
    """Most updates that a greedy adversary forces at alpha = 1 / `finest`; the bound is log2 |net|.

    `finest` is a power of two, so that all shares are exact in float64. The net of the printed
    version has mesh alpha, and the net of the corrected version has mesh alpha / 2.
    """
    alpha = 1 / finest
    mesh = alpha if version is Version.PRINTED else alpha / 2
    rule = Median(candidates(mesh), fineness=mesh)
    truths = np.arange(0, 1 + alpha / 4, alpha / 4)
    tried = truths[:: max(1, len(truths) // TRUTHS)]
    most = max(updates(rule, alpha, float(truth)) for truth in {*tried, 0.5})
    # The printed statement allows mesh alpha. The library's bound needs a mesh below its argument.
    above = math.nextafter(alpha, 1)
    return Measured(most, math.floor(rule.bound(above)))


def updates(rule: Median, alpha: float, truth: float) -> int:
    """Length of an update sequence for data with share `truth` of the first element.

    Each update is legal: the hypothesis is off by alpha or more, and the answer is exact. If both
    queries are legal, the adversary asks the one after which more candidates are left. The sequence
    ends when no query is legal, or with the update that deletes the last candidate.
    """
    left, count = rule.candidates, 0
    while True:
        kept = []
        for query in QUERIES:
            hypothesis = MedianHypothesis(left)
            answer = float(query.values @ [truth, 1 - truth])
            median = hypothesis.evaluate(query)
            if abs(answer - median) >= alpha:
                values = left @ query.values
                kept.append(left[values < median if answer < median else values > median])
        if not kept:
            return count
        count += 1
        left = max(kept, key=len)
        if not len(left):
            return count
