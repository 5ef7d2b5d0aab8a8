"""Symmetric bodies that the scripts on volumes share: hulls of the answers and their negatives."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

import geomdp as gd
from experiments.engine.drawing import Look

FloatArray = npt.NDArray[np.float64]
#: Ratio of one half-width of the long box to the one before.
RATIO = 0.5


class Family(enum.StrEnum):
    """Bodies conv(Q(x), -Q(x)) of workloads, and boxes of half-widths 1 and 2^-i (long)."""

    MEANS = "means in a ball"
    CUBE = "cube"
    MARGINALS = "1-way marginals"
    MOMENTS = "second moments in a ball"
    HISTOGRAM = "histogram: cross-polytope"
    SIGNS = "random signs, 4k elements"
    PREFIXES = "prefixes"
    LONG = "long box"


WORKLOADS: dict[Family, Callable[[int], gd.workloads.Workload]] = {
    Family.MEANS: gd.workloads.Means,
    Family.MARGINALS: lambda k: gd.workloads.Marginals(k, 1),
    Family.MOMENTS: gd.workloads.SecondMoment,
    Family.HISTOGRAM: gd.workloads.Histogram,
    # Which random signs is part of the problem, so their seed is fixed.
    Family.SIGNS: lambda k: gd.workloads.RandomSigns(k, 4 * k, rng=0),
    Family.PREFIXES: gd.workloads.Prefixes,
}
LOOKS = {
    Family.MEANS: Look("C0", "o"),
    Family.CUBE: Look("C1", "s"),
    Family.MARGINALS: Look("C2", "v"),
    Family.MOMENTS: Look("C4", "D", filled=False),
    Family.HISTOGRAM: Look("C3", "^"),
    Family.SIGNS: Look("C5", "X"),
    Family.PREFIXES: Look("C6", "P", filled=False),
    Family.LONG: Look("C1", "h", filled=False),
}


def symmetric_body(family: Family, k: int) -> gd.bodies.Body:
    """The body of k queries; for second moments k is the dimension of the records."""
    if family is Family.SIGNS:
        return gd.bodies.TriangulatedPolytope(vertices(family, k))
    if family in WORKLOADS:
        return gd.bodies.neighbour_body(WORKLOADS[family](k), gd.Adjacency.ADD_REMOVE)
    return gd.bodies.Box.centred((1.0 if family is Family.CUBE else RATIO) ** np.arange(k))


def vertices(family: Family, k: int) -> FloatArray:
    """Points whose hull the body is (N, k); not for balls and second moments."""
    if family in (Family.CUBE, Family.MARGINALS):
        points = np.array([*itertools.product((0.0, 1.0), repeat=k)])
        return 2 * points - 1 if family is Family.CUBE else np.vstack([points, -points])
    answers = gd.sensitivity_polytope(WORKLOADS[family](k)).vertex_list()
    return np.vstack([answers, -answers])
