"""From a workload to its convex bodies: sensitivity polytope, neighbour body, exact noise bodies.

With `workload_polytope` and `containment` the only modules of this layer that know workloads.
Everything is computed from the workload alone; no records are involved.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from geomdp._linalg import RANK_TOLERANCE, AffineHull
from geomdp._typing import FloatArray
from geomdp.bodies.balls import Ball, CrossPolytope
from geomdp.bodies.boxes import Box
from geomdp.bodies.difference import difference_body, symmetric_hull
from geomdp.bodies.ellipsoids import Ellipsoid
from geomdp.bodies.oracles import Body
from geomdp.bodies.products import Product
from geomdp.bodies.simplex import Simplex
from geomdp.bodies.spectral import Spectraplex
from geomdp.bodies.transforms import LinearImage
from geomdp.bodies.triangulated import TriangulatedPolytope
from geomdp.bodies.triangulation import can_triangulate, hull_vertices
from geomdp.bodies.vpolytope import VPolytope
from geomdp.bodies.workload_polytope import WorkloadPolytope
from geomdp.privacy import Adjacency
from geomdp.workloads import (
    Block,
    Histogram,
    LinearMap,
    Marginals,
    Parities,
    Prefixes,
    Ranges,
    SecondMoment,
    SparseQueries,
    Workload,
    explicit_answers,
)

#: Largest N m of a listed polytope: 2^24 float64 are 128 MB. Beyond it the workload's own oracle
#: serves, which for tables and marginals is also faster than a product with all vertices.
MAX_LISTED_ENTRIES = 1 << 24
#: Relative inflation of computed half-widths, far above their rounding (SAM-5).
INFLATION = 1e-9


@singledispatch
def sensitivity_polytope(workload: Workload) -> Body:
    """The body K_Q = conv{Q(x) : x in the universe} of attainable mean answers (JL-DEF).

    Boxes for one-way marginals and parities, simplices for histograms, prefixes and ranges and for
    any other small workload with affinely independent answers, the spectraplex for second moments,
    the distinct answers as a `VPolytope` for other universes with N m <= 2^24, mapped bodies for
    linear maps, and the workload's own oracle (`WorkloadPolytope`) otherwise.

    Parameters
    ----------
    workload : Workload
        Q, with m queries.

    Returns
    -------
    Body
        K_Q in R^m.
    """
    if not isinstance(workload, Workload):
        raise ValueError(f"workload must be a Workload, got {type(workload).__name__}")
    if not _can_list(workload):
        return WorkloadPolytope(workload)
    return hull_of(explicit_answers(workload))


@sensitivity_polytope.register
def _(workload: Marginals) -> Body:
    if workload.k == 1:
        return Box(np.zeros(workload.d), np.ones(workload.d))
    return sensitivity_polytope.dispatch(Workload)(workload)


@sensitivity_polytope.register
def _(workload: Parities) -> Body:
    if workload.k == 1:
        return Box.centred(np.ones(workload.d))
    return sensitivity_polytope.dispatch(Workload)(workload)


@sensitivity_polytope.register(Histogram)
@sensitivity_polytope.register(Prefixes)
@sensitivity_polytope.register(Ranges)
def _(workload: Histogram | Prefixes | Ranges) -> Body:
    if not _can_list(workload):
        return WorkloadPolytope(workload)
    return Simplex(explicit_answers(workload))


@sensitivity_polytope.register
def _(workload: SecondMoment) -> Body:
    return Spectraplex(workload.d)


@sensitivity_polytope.register
def _(workload: SparseQueries) -> Body:
    return sensitivity_polytope(workload.explicit)


@sensitivity_polytope.register
def _(workload: LinearMap) -> Body:
    inner = sensitivity_polytope(workload.workload)
    if isinstance(inner, WorkloadPolytope):
        return WorkloadPolytope(workload)
    if inner.implements("vertex_list"):
        return hull_of(inner.vertex_list() @ workload.matrix.T)
    return LinearImage(workload.matrix, inner)


def _can_list(workload: Workload) -> bool:
    size = workload.universe.size
    return size is not None and size * workload.n_queries <= MAX_LISTED_ENTRIES


def hull_of(points: FloatArray) -> Body:
    """conv of rows (N, m), without repeated rows: a `Simplex` if they are affinely independent."""
    distinct = np.unique(points, axis=0)
    small = len(distinct) <= distinct.shape[1] + 1
    if small and AffineHull.of_points(distinct).dimension == len(distinct) - 1:
        return Simplex(distinct)
    return VPolytope(distinct)


def neighbour_body(workload: Workload, adjacency: Adjacency) -> Body:
    """The symmetric body B with n (Q(X) - Q(X')) in B for all neighbours X, X', tight.

    Replace-one: B = K - K, K the sensitivity polytope. Add/remove (with means over a public,
    fixed normaliser n, so that sums change by one Q(x)): B = conv(K u -K), in the linear span.
    Scaled by 1/n it is the body for mean answers (JL-DEF).

    Parameters
    ----------
    workload : Workload
        Q, with m queries.
    adjacency : Adjacency
        The neighbour relation.

    Returns
    -------
    Body
        B in R^m, for sums of answers (not divided by n).
    """
    K = sensitivity_polytope(workload)
    match adjacency:
        case Adjacency.REPLACE_ONE:
            return difference_body(K)
        case Adjacency.ADD_REMOVE:
            return symmetric_hull(K)


@dataclass(frozen=True)
class NamedBody:
    """A symmetric body that contains the neighbour body, with the reason.

    Parameters
    ----------
    name : str
        A short name.
    body : Body
        The body in R^m, for sums of answers.
    containment : str
        Why it contains n (Q(X) - Q(X')) for all neighbours X, X'.
    """

    name: str
    body: Body
    containment: str


def exact_noise_bodies(workload: Workload, adjacency: Adjacency) -> list[NamedBody]:
    """Symmetric bodies with exact uniform samplers and closed second moments for K-norm noise.

    Each contains the neighbour body, so K-norm noise of any of them is private (SAM-5); they
    differ in error. The list holds, where they exist: the neighbour body itself; the neighbour
    body cut into simplices; the product of balls over the workload's orthogonal blocks; boxes in
    the standard and in the principal axes of a workload with listed answers; the l2 ball in the
    span; the l1 ball.

    Half-widths found by an oracle are rounded up by the factor 1 + 1e-9.

    Parameters
    ----------
    workload : Workload
        Q, with m queries.
    adjacency : Adjacency
        The neighbour relation.

    Returns
    -------
    list of NamedBody
        At least one, in no order of merit; all implement `sample_uniform` and `second_moment`.
    """
    if isinstance(workload, SparseQueries):
        workload = workload.explicit  # the same answers on a finite universe
    neighbours = neighbour_body(workload, adjacency)
    if neighbours.implements("sample_uniform") and neighbours.implements("second_moment"):
        found = [NamedBody("neighbour body", neighbours, "it is the neighbour body")]
        if neighbours.affine_hull().dimension == 0:
            return found
    else:
        found = _triangulated(workload, adjacency)
    K = sensitivity_polytope(workload)
    found += _blocks(workload, K, adjacency)
    if K.implements("vertex_list"):
        found += _boxes(neighbours, K.vertex_list(), adjacency)
    return found + _balls(workload, neighbours, adjacency)


def _triangulated(workload: Workload, adjacency: Adjacency) -> list[NamedBody]:
    """The neighbour body cut into simplices, if it is small enough."""
    K = sensitivity_polytope(workload)
    if not K.implements("vertex_list"):
        return []
    points = K.vertex_list()
    if not can_triangulate(len(points), K.affine_hull().dimension):
        return []
    points = hull_vertices(points)
    if adjacency is Adjacency.ADD_REMOVE:
        extreme = np.vstack([points, -points])
    elif points.size * len(points) <= MAX_LISTED_ENTRIES:
        extreme = (points[:, None] - points).reshape(-1, points.shape[1])
    else:
        return []
    if not can_triangulate(len(extreme), AffineHull.of_points(extreme).dimension):
        return []
    body = TriangulatedPolytope(extreme)
    return [NamedBody("triangulated neighbour body", body, "it is the neighbour body")]


def _blocks(workload: Workload, K: Body, adjacency: Adjacency) -> list[NamedBody]:
    """The product of balls over orthogonal blocks, one-dimensional ones as one box."""
    match adjacency:
        case Adjacency.REPLACE_ONE:
            parts = [(block.basis, block.diameter) for block in workload.blocks()]
            what = "diameter"
        case Adjacency.ADD_REMOVE:
            parts = [(block.basis, _radius(block, K)) for block in workload.blocks()]
            parts += _common_part(workload)
            what = "largest norm"
    parts = [(basis, reach) for basis, reach in parts if reach > 0]
    if len(parts) < 2:
        return []  # the l2 ball
    lines = [part for part in parts if part[0].shape[1] == 1]
    wide = [part for part in parts if part[0].shape[1] > 1]
    factors: list[Body] = [Ball(basis.shape[1], reach) for basis, reach in wide]
    if lines:
        factors.insert(0, Box.centred([reach for _, reach in lines]))
    axes = np.hstack([basis for basis, _ in lines + wide])
    reason = f"the radius of each factor is the {what} of the answers in an orthogonal block"
    return [NamedBody("blocks", LinearImage(axes, Product(factors)), reason)]


def _radius(block: Block, K: Body) -> float:
    """Largest ||basis^T Q(x)||_2: the block's bound, or the listed answers' if that is smaller."""
    if not K.implements("vertex_list"):
        return block.radius
    listed = float(np.linalg.norm(K.vertex_list() @ block.basis, axis=1).max())
    return min(block.radius, listed * (1 + INFLATION))


def _common_part(workload: Workload) -> list[tuple[FloatArray, float]]:
    """The direction orthogonal to the affine hull in which all answers agree."""
    hull = workload.affine_hull()
    common = hull.offset - hull.basis @ (hull.basis.T @ hull.offset)
    length = float(np.linalg.norm(common))
    if length <= RANK_TOLERANCE * workload.l2_radius():
        return []
    return [(common[:, None] / length, length * (1 + INFLATION))]


def _boxes(neighbours: Body, points: FloatArray, adjacency: Adjacency) -> list[NamedBody]:
    """Boxes in the standard axes and in the principal axes of the listed answers."""
    basis = neighbours.affine_hull().basis
    centre = points.mean(axis=0) if adjacency is Adjacency.REPLACE_ONE else 0.0
    within = (points - centre) @ basis
    axes = basis @ np.linalg.eigh(within.T @ within)[1]
    reason = "half-widths are the support function of the neighbour body along the axes"
    standard = Box.centred(neighbours.support(np.eye(len(basis))) * (1 + INFLATION))
    principal = Box.centred(neighbours.support(axes.T) * (1 + INFLATION))
    return [
        NamedBody("box", standard, reason),
        NamedBody("principal box", LinearImage(axes, principal), reason),
    ]


def _balls(workload: Workload, neighbours: Body, adjacency: Adjacency) -> list[NamedBody]:
    """The l2 ball in the span and the l1 ball, by the workload's own diameters or radii."""
    basis = neighbours.affine_hull().basis
    match adjacency:
        case Adjacency.REPLACE_ONE:
            l1, l2, what = workload.l1_diameter(), workload.l2_diameter(), "diameter"
        case Adjacency.ADD_REMOVE:
            l1, l2, what = workload.l1_radius(), workload.l2_radius(), "norm"
    return [
        NamedBody("l2 ball", Ellipsoid(l2 * basis), f"its radius is the l2 {what} of the answers"),
        NamedBody(
            "l1 ball",
            CrossPolytope(workload.n_queries, l1),
            f"its radius is the l1 {what} of the answers",
        ),
    ]
