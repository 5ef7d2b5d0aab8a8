"""Symmetric bodies of the scripts on volumes: hulls of answers and their negatives, and boxes."""

import itertools

import numpy as np

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared.workloads import Kind, workload

#: Ratio of each half-width of the long box to the half-width before.
RATIO = 0.5


class Family(ex.Curve):
    """Hulls of all Q(x) and -Q(x) of a workload; boxes with half-width 1 or 2^-i on axis i."""

    MEANS = "means in a ball", "C0", "o"
    CUBE = "cube", "C5", "s"
    MARGINALS = "1-way marginals", "C2", "v"
    MOMENTS = "second moments in a ball", "C4", "D", ex.HOLLOW
    HISTOGRAM = "histogram: cross-polytope", "C6", "^"
    SIGNS = "random signs, 4k elements", ex.GREY, "X"
    PREFIXES = "prefixes", "C6", "P", ex.HOLLOW
    LONG = "long box", "C4", "h", ex.HOLLOW


KINDS: dict[Family, Kind] = {
    Family.MEANS: Kind.MEANS,
    Family.MARGINALS: Kind.MARGINALS_1,
    Family.MOMENTS: Kind.MOMENTS,
    Family.HISTOGRAM: Kind.HISTOGRAM,
    Family.SIGNS: Kind.SIGNS,
    Family.PREFIXES: Kind.PREFIXES,
}
LOOKS = Family.looks()
#: Round bodies, whose widths in two directions differ by a factor of order sqrt(k) at most, and
#: stretched bodies, with larger factors. The figures draw them in different panels.
EVEN = (Family.MEANS, Family.CUBE, Family.MARGINALS, Family.MOMENTS, Family.HISTOGRAM, Family.SIGNS)
STRETCHED = (Family.PREFIXES, Family.LONG)


def short(family: Family) -> str:
    """The name of a body, in lines that fit beside a panel."""
    return family.partition(":")[0].replace(", ", ",\n").replace(" in", "\nin")


def asked(family: Family, k: int) -> gd.workloads.Workload:
    """The workload of k queries; for second moments, k is the dimension of the records instead."""
    sizes = (k, 4 * k) if family is Family.SIGNS else (k,)
    return workload(KINDS[family], *sizes)


def symmetric_body(family: Family, k: int) -> gd.bodies.Body:
    """The body in R^k; for second moments, k is the dimension of the records instead."""
    if family is Family.SIGNS:
        return gd.bodies.TriangulatedPolytope(vertices(family, k))
    if family in KINDS:
        return gd.bodies.neighbour_body(asked(family, k), gd.Adjacency.ADD_REMOVE)
    return gd.bodies.Box.centred((1.0 if family is Family.CUBE else RATIO) ** np.arange(k))


def vertices(family: Family, k: int) -> ex.FloatArray:
    """Rows whose convex hull is the body; not for balls, second moments and the long box."""
    if family in (Family.CUBE, Family.MARGINALS):
        points = np.array([*itertools.product((0.0, 1.0), repeat=k)])
        return 2 * points - 1 if family is Family.CUBE else np.vstack([points, -points])
    answers = gd.sensitivity_polytope(asked(family, k)).vertex_list()
    return np.vstack([answers, -answers])
