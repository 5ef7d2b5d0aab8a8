"""Proof that a body supplied for noise holds all differences of neighbours."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

import numpy as np

from geomdp._typing import FloatArray
from geomdp.bodies.arguments import off_span
from geomdp.bodies.boxes import Box
from geomdp.bodies.hpolytope import HPolytope
from geomdp.bodies.linear_image import LinearImage
from geomdp.bodies.oracles import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.products import Product
from geomdp.bodies.sensitivity import neighbour_body, sensitivity_polytope
from geomdp.bodies.slabs import SlabBody
from geomdp.bodies.transforms import Scaled
from geomdp.bodies.triangulated import TriangulatedPolytope
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload

#: Most differences of answers whose gauge is computed one by one.
MAX_PAIRS = 1 << 20
#: Differences handed to a gauge at a time.
PAIR_ROWS = 1 << 14

SupportFunction = Callable[[FloatArray], FloatArray]


def check_contains_neighbours(body: Body, workload: Workload, adjacency: Adjacency) -> float:
    """Prove that a symmetric body contains the neighbour body, and return by how little it may not.

    Bodies bounded by listed hyperplanes (slabs, H-polytopes, boxes, and scaled, product and
    one-to-one linear images of them) are checked exactly: the support function of the neighbour
    body along each normal against the offset. Other bodies with a gauge are checked on every
    difference of two answers (replace-one) or every answer (add/remove), which are the extreme
    points of the neighbour body, for up to 2^20 of them.

    Parameters
    ----------
    body : Body
        K in R^m, for sums of answers (not divided by n); must be known to be symmetric.
    workload : Workload
        Q, with m queries.
    adjacency : Adjacency
        The neighbour relation.

    Returns
    -------
    float
        The smallest t >= 1 found such that t K contains the neighbour body; at most 1 + 1e-9, and
        1 unless rounding matters. K-norm noise of t K is private without any slack.

    Raises
    ------
    ValueError
        If the body has another dimension, is not known to be symmetric, does not contain the
        neighbour body, or if containment cannot be verified.
    """
    if body.dimension != workload.n_queries:
        raise ValueError(f"body must have dimension {workload.n_queries}, got {body.dimension}")
    if not body.symmetric:
        raise ValueError(f"body must be known to be symmetric, got {body!r}")
    neighbours = neighbour_body(workload, adjacency)
    hull = body.affine_hull()
    outside = off_span(neighbours.affine_hull().basis.T, hull.basis)
    if outside.any():
        raise ValueError(
            f"body must span the differences of answers, got {body!r}, which misses "
            f"{int(outside.sum())} of their dimensions"
        )
    gauge = largest_by_support(body, neighbours.support)
    if gauge is None:
        gauge = _largest_by_pairs(body, workload, adjacency)
    if gauge > 1 + MEMBERSHIP_TOLERANCE:
        raise ValueError(
            f"body must contain all differences of neighbours, got {body!r}, outside of which "
            f"one lies by a factor of {gauge:.6g}"
        )
    return max(1.0, gauge)


@singledispatch
def largest_by_support(body: Body, support: SupportFunction) -> float | None:
    """Largest gauge in `body` over a symmetric set with the given support function.

    Exact for bodies bounded by listed hyperplanes; None for all others. The set must lie in the
    span of the body.
    """
    del body, support
    return None


@largest_by_support.register
def _(body: SlabBody, support: SupportFunction) -> float | None:
    return float(support(np.array(body.normals)).max())


@largest_by_support.register
def _(body: HPolytope, support: SupportFunction) -> float | None:
    inside = body.offsets > 0
    if not inside.all():
        return None  # lower-dimensional: the slab by slab ratio is not defined
    return float(support(body.normals / body.offsets[:, None]).max())


@largest_by_support.register
def _(body: Box, support: SupportFunction) -> float | None:
    wide = body.upper > 0
    return float(support(np.diag(1 / body.upper[wide]) @ np.eye(body.dimension)[wide]).max())


@largest_by_support.register
def _(body: TriangulatedPolytope, support: SupportFunction) -> float | None:
    return float(support(body.facet_normals()).max())


@largest_by_support.register
def _(body: Scaled, support: SupportFunction) -> float | None:
    inner = largest_by_support(body.body, support)
    return None if inner is None else inner / body.factor


@largest_by_support.register
def _(body: Product, support: SupportFunction) -> float | None:
    """Exact: a product contains a set iff each factor contains its projection."""
    largest = 0.0
    for factor, part in zip(body.bodies, body.slices, strict=True):
        inner = largest_by_support(factor, _seen_in(support, np.eye(body.dimension)[part]))
        if inner is None:
            return None
        largest = max(largest, inner)
    return largest


@largest_by_support.register
def _(body: LinearImage, support: SupportFunction) -> float | None:
    if not body.one_to_one:
        return None
    return largest_by_support(body.body, _seen_in(support, body.inverse))


def _seen_in(support: SupportFunction, rows: FloatArray) -> SupportFunction:
    """Support function of {rows @ x}, for `rows` (k, m), from that of the set of x."""
    return lambda directions: support(directions @ rows)


def _largest_by_pairs(body: Body, workload: Workload, adjacency: Adjacency) -> float:
    """Largest gauge over all extreme points of the neighbour body."""
    K = sensitivity_polytope(workload)
    if not (body.implements("gauge") and K.implements("vertex_list")):
        raise ValueError(
            f"body cannot be verified to contain the differences of neighbours: {body!r} is not "
            f"bounded by listed hyperplanes, and it has no gauge or {workload!r} too many answers"
        )
    points = K.vertex_list()
    if adjacency is Adjacency.ADD_REMOVE:
        return float(body.gauge(points).max())
    count = len(points) * (len(points) - 1) // 2
    if count > MAX_PAIRS:
        raise ValueError(
            f"body cannot be verified to contain the differences of neighbours: {workload!r} has "
            f"{count} pairs of distinct answers, at most 2^20 are checked"
        )
    first, second = np.triu_indices(len(points), 1)
    largest = 0.0
    for start in range(0, count, PAIR_ROWS):
        rows = slice(start, start + PAIR_ROWS)
        gauges = body.gauge(points[first[rows]] - points[second[rows]])
        largest = max(largest, float(gauges.max()))
    return largest
