"""Proof that a body supplied for noise holds all differences of neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch

import numpy as np

from geomdp._linalg import RANK_TOLERANCE, svec
from geomdp._typing import FloatArray
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.norm_balls.balls import Ball, CrossPolytope
from geomdp.bodies.norm_balls.boxes import Box
from geomdp.bodies.norm_balls.ellipsoids import Ellipsoid
from geomdp.bodies.norm_balls.lp_balls import LpBall
from geomdp.bodies.of_workloads.sensitivity import (
    MAX_LISTED_ENTRIES,
    neighbour_body,
    sensitivity_polytope,
)
from geomdp.bodies.operations.linear_image import LinearImage
from geomdp.bodies.operations.products import Product
from geomdp.bodies.operations.transforms import Scaled
from geomdp.bodies.polytopes.hpolytope import HPolytope
from geomdp.bodies.polytopes.slabs import SlabBody
from geomdp.bodies.polytopes.triangulated import TriangulatedPolytope
from geomdp.bodies.spectral.symmetric import NuclearBall, SpectraplexDifference
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload, explicit_answers

#: Largest relative error of a gauge in this library (that of ray shooting in V-polytopes).
GAUGE_ERROR = 1e-8
#: Most differences of answers whose gauge is computed one by one.
MAX_PAIRS = 1 << 20
#: Differences handed to a gauge at a time.
PAIR_ROWS = 1 << 14

#: Bodies of symmetric matrices invariant under M -> V M V^T.
SPECTRAL = (SpectraplexDifference, NuclearBall)

SupportFunction = Callable[[FloatArray], FloatArray]


def check_contains_neighbours(body: Body, workload: Workload, adjacency: Adjacency) -> float:
    """Prove that a symmetric body contains the neighbour body, and return by how little it may not.

    Bodies bounded by listed hyperplanes (slabs, H-polytopes, boxes, and scaled, product and
    one-to-one linear images of them) are checked exactly: the support function of the neighbour
    body along each normal against the offset. Balls of the l_p norms and ellipsoids pass if the
    workload's own bounds on norms say so. Spectral bodies are compared with the neighbour body of
    second moments at one extreme point of each orbit. Otherwise the gauge is taken of every
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
        A number t >= 1 such that t K contains the neighbour body, at most 1 + 2e-8: above 1 only
        by rounding and by the accuracy of gauges. K-norm noise of t K is private without slack.

    Raises
    ------
    ValueError
        If the body has another dimension, is not known to be symmetric, does not contain the
        neighbour body, or if containment cannot be verified.
    """
    if not isinstance(body, Body):
        raise ValueError(f"body must be a Body, got {type(body).__name__}")
    if body.dimension != workload.n_queries:
        raise ValueError(f"body must have dimension {workload.n_queries}, got {body.dimension}")
    if not body.symmetric:
        raise ValueError(f"body must be known to be symmetric, got {body!r}")
    neighbours = neighbour_body(workload, adjacency)
    hull = body.affine_hull()
    wanted = neighbours.affine_hull().basis
    missing = np.linalg.norm(wanted - hull.basis @ (hull.basis.T @ wanted), 2) if wanted.size else 0
    if missing > RANK_TOLERANCE:
        raise ValueError(
            f"body must span the differences of answers, got {body!r} of dimension "
            f"{hull.dimension}, which misses a direction of their {wanted.shape[1]} dimensions"
        )
    gauge = largest_by_support(body, neighbours.support)
    if gauge is None:
        gauge = largest_by_norm(body, *_norms(workload, adjacency))
        if gauge is None or not gauge <= 1 + MEMBERSHIP_TOLERANCE:
            gauge = largest_by_orbits(body, neighbours)
        if gauge is None:
            gauge = _largest_by_pairs(body, workload, adjacency)
    if not gauge <= 1 + 2 * GAUGE_ERROR:  # NaN, from a body's faulty gauge, proves nothing
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
    return float(
        support(np.diag(1 / body.upper[wide]) @ np.eye(body.dimension)[wide]).max(initial=0.0)
    )


@largest_by_support.register
def _(body: TriangulatedPolytope, support: SupportFunction) -> float | None:
    return float(support(body.facet_normals()).max(initial=0.0))


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


def largest_by_norm(body: Body, l1: float, l2: float) -> float | None:
    """Upper bound on the gauge in `body` of vectors in its span with norms at most l1 and l2.

    None for bodies that are not measured by one of these norms.
    """
    match body:
        case Ball():
            return l2 / body.r
        case CrossPolytope():
            return l1 / body.r
        case LpBall():
            # log ||x||_p is convex in 1/p (Littlewood), and ||x||_p falls with p.
            share = max(2 / body.p - 1, 0.0)
            return math.pow(l1, share) * math.pow(l2, 1 - share) / body.r
        case Ellipsoid():
            return l2 / body.shortest_axis if body.shortest_axis > 0 else None
        case Scaled():
            inner = largest_by_norm(body.body, l1, l2)
            return None if inner is None else inner / body.factor
    return None


def largest_by_orbits(body: Body, neighbours: Body) -> float | None:
    """Largest gauge in `body` over `neighbours`, both invariant under M -> V M V^T.

    The gauge is constant on orbits, and the extreme points of the nuclear ball are the orbits of
    +-e_1 e_1^T, those of the difference body of the spectraplex the orbits of these and of
    e_1 e_1^T - e_2 e_2^T. None if one of the two is no such body.
    """
    invariant = body
    while isinstance(invariant, Scaled):
        invariant = invariant.body
    if not isinstance(invariant, SPECTRAL) or not isinstance(neighbours, SPECTRAL):
        return None
    spectra = np.zeros((2, neighbours.d))
    spectra[:, 0] = 1.0
    if isinstance(neighbours, SpectraplexDifference):
        spectra[1, 1:2] = -1.0
    return _largest_gauge(body, svec(spectra[:, :, None] * np.eye(neighbours.d)))


def _norms(workload: Workload, adjacency: Adjacency) -> tuple[float, float]:
    """Bounds on the l1 and l2 norms of differences of sums of neighbours."""
    match adjacency:
        case Adjacency.REPLACE_ONE:
            return workload.l1_diameter(), workload.l2_diameter()
        case Adjacency.ADD_REMOVE:
            return workload.l1_radius(), workload.l2_radius()


def _largest_by_pairs(body: Body, workload: Workload, adjacency: Adjacency) -> float:
    """Upper bound on the gauge over all extreme points of the neighbour body."""
    points = _listed_answers(workload)
    if points is None or not body.implements("gauge"):
        raise ValueError(
            f"body cannot be verified to contain the differences of neighbours: {body!r} is not "
            f"bounded by listed hyperplanes, and it has no gauge or {workload!r} too many answers"
        )
    if adjacency is Adjacency.ADD_REMOVE:
        return _largest_gauge(body, points) * (1 + GAUGE_ERROR)
    count = len(points) * (len(points) - 1) // 2
    if count > MAX_PAIRS:
        raise ValueError(
            f"body cannot be verified to contain the differences of neighbours: {workload!r} has "
            f"{count} pairs of distinct answers, at most 2^20 are checked"
        )
    first, second = np.triu_indices(len(points), 1)
    blocks = (slice(start, start + PAIR_ROWS) for start in range(0, count, PAIR_ROWS))
    gauges = [_largest_gauge(body, points[first[rows]] - points[second[rows]]) for rows in blocks]
    return max(gauges, default=0.0) * (1 + GAUGE_ERROR)


def _listed_answers(workload: Workload) -> FloatArray | None:
    """Points whose hull is the sensitivity polytope, or None if there are too many to list."""
    K = sensitivity_polytope(workload)
    if K.implements("vertex_list"):
        return K.vertex_list()
    size = workload.universe.size
    if size is None or size > MAX_PAIRS or size * workload.n_queries > MAX_LISTED_ENTRIES:
        return None
    return explicit_answers(workload)


def _largest_gauge(body: Body, points: FloatArray) -> float:
    # NaN, from a body's faulty gauge, must not be lost to a comparison.
    return float(np.max(body.gauge(points)))
