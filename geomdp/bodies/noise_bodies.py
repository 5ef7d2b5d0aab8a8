"""Bodies for noise: symmetric bodies that contain a neighbour body and have exact uniform samplers,
images of such bodies, and a proof that a body supplied for noise contains all differences of
neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull, svec
from geomdp._typing import FloatArray
from geomdp.bodies.balls import Ball, CrossPolytope, Ellipsoid
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body, checked_body
from geomdp.bodies.boxes import Box
from geomdp.bodies.conic.spectral import SymmetricSpectral
from geomdp.bodies.polytopes.triangulation import can_triangulate, hull_vertices
from geomdp.bodies.polytopes.vpolytope import cut_into_simplices
from geomdp.bodies.products import LinearImage, Product
from geomdp.bodies.sensitivity import (
    KEPT_WORKLOADS,
    MAX_LISTED_ENTRIES,
    neighbour_body,
    sensitivity_polytope,
)
from geomdp.bodies.symmetrised import Scaled
from geomdp.privacy import Adjacency
from geomdp.privacy.definitions import checked_adjacency
from geomdp.workloads import SparseQueries, Workload, explicit_answers
from geomdp.workloads.base import Block

#: Largest number N^2 m of entries of all differences of N vertices in R^m: 2^24 float64 are 128 MB.
MAX_PAIR_ENTRIES = 1 << 24
#: Half-widths, norms and vertices that are computed here from listed points or a support function
#: are enlarged by this share. The share is far above the relative rounding errors of these numbers
#: (SAM-5).
INFLATION = 1e-9


@dataclass(frozen=True)
class NamedBody:
    """A symmetric body with a name, and the reason why it contains the neighbour body."""

    name: str
    body: Body
    containment: str


def exact_noise_bodies(workload: Workload, adjacency: Adjacency) -> list[NamedBody]:
    """Bodies for K-norm noise that have exact uniform samplers and second moments in closed form.

    All these bodies are symmetric and contain the neighbour body, so K-norm noise of any of them is
    private (SAM-5). Their errors differ. The list, never empty and in no particular order, has each
    of the following bodies that exists for the workload:

    * the neighbour body itself, or this body cut into simplices;
    * the product of balls over the workload's orthogonal blocks;
    * boxes in the standard and in the principal axes, for a workload with listed answers;
    * the l2 ball in the span of the neighbour body;
    * the l1 ball.

    Computed half-widths, and the vertices of the body cut into simplices, are multiplied by 1 +
    1e-9, so that rounding cannot make these bodies too small. The bodies of the last two pairs of
    workload and adjacency are kept in memory, so compared mechanisms share them.
    """
    return list(_kept_noise_bodies(workload, checked_adjacency(adjacency)))


@lru_cache(maxsize=KEPT_WORKLOADS)
def _kept_noise_bodies(workload: Workload, adjacency: Adjacency) -> tuple[NamedBody, ...]:
    if isinstance(workload, SparseQueries):
        workload = workload.explicit  # the same answers, on a finite universe
    K = sensitivity_polytope(workload)
    neighbours = neighbour_body(workload, adjacency)
    if neighbours.implements(Body.sample_uniform) and neighbours.implements(Body.second_moment):
        found = [NamedBody("neighbour body", neighbours, "it is the neighbour body")]
        if neighbours.affine_hull().dimension == 0:
            return tuple(found)
    else:
        found = triangulated_neighbours(K, workload.affine_hull().dimension, adjacency)
    found += block_products(workload, K, adjacency)
    # Under replace-one, the affine hulls of the workload and of the neighbour body have the same
    # directions. The workload has a closed form of its hull, or keeps the hull from an earlier
    # computation.
    replaced = adjacency is Adjacency.REPLACE_ONE
    basis = (workload if replaced else neighbours).affine_hull().basis
    if K.implements(Body.vertex_list):
        found += axis_boxes(basis, K.vertex_list(), adjacency)
    return (*found, *norm_balls(workload, basis, adjacency))


def triangulated_neighbours(K: Body, rank: int, adjacency: Adjacency) -> list[NamedBody]:
    """The neighbour body cut into simplices, as a list; empty beyond the limits or by rounding."""
    if not K.implements(Body.vertex_list):
        return []
    points = K.vertex_list()
    dimension, fewest = rank, (rank + 1) ** 2
    if not can_triangulate(len(points), rank):
        return []
    if adjacency is Adjacency.ADD_REMOVE:
        dimension = AffineHull.of_points(np.vstack([points, -points])).dimension
        fewest = 2 * (rank + 1)
    # K has at least rank + 1 vertices. So the list `extreme` below has at least `fewest` points. If
    # these are too many, skip the search for vertices, which takes many seconds in twenty
    # dimensions.
    if not can_triangulate(fewest, dimension):
        return []
    from scipy.spatial import QhullError  # slow import

    try:
        points = hull_vertices(points)
    except QhullError:  # the points are flat up to rounding
        return []
    if adjacency is Adjacency.ADD_REMOVE:
        extreme = np.vstack([points, -points])
    elif points.size * len(points) <= MAX_PAIR_ENTRIES:
        extreme = (points[:, None] - points).reshape(-1, points.shape[1])
    else:
        return []
    if not can_triangulate(len(extreme), dimension):
        return []
    # Inflate the body, because differences and facets are rounded.
    body = cut_into_simplices(extreme * (1 + INFLATION))
    if body is None:
        return []
    return [NamedBody("triangulated neighbour body", body, "it is the neighbour body, inflated")]


def block_products(workload: Workload, K: Body, adjacency: Adjacency) -> list[NamedBody]:
    """The product of balls in at least two orthogonal subspaces, as a list of at most one body."""
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
        return []  # a single ball is the l2 ball, which `norm_balls` lists
    lines = [part for part in parts if part[0].shape[1] == 1]
    wide = [part for part in parts if part[0].shape[1] > 1]
    factors: list[Body] = [Ball(basis.shape[1], reach) for basis, reach in wide]
    if lines:
        factors.insert(0, Box.centred([reach for _, reach in lines]))
    axes = np.hstack([basis for basis, _ in lines + wide])
    reason = f"the radius of each factor is the {what} of the answers in an orthogonal block"
    return [NamedBody("blocks", LinearImage(axes, Product(factors)), reason)]


def _radius(block: Block, K: Body) -> float:
    """Bound on ||basis^T Q(x)||_2: `block.radius`, or the largest norm at a vertex if smaller."""
    if not K.implements(Body.vertex_list):
        return block.radius
    listed = float(np.linalg.norm(K.vertex_list() @ block.basis, axis=1).max())
    return min(block.radius, listed * (1 + INFLATION))


def _common_part(workload: Workload) -> list[tuple[FloatArray, float]]:
    """Direction and length of the part of the answers that is orthogonal to their affine hull."""
    hull = workload.affine_hull()
    common = hull.offset - hull.basis @ (hull.basis.T @ hull.offset)
    length = float(np.linalg.norm(common))
    if length <= RANK_TOLERANCE * workload.l2_radius():
        return []
    return [(common[:, None] / length, length * (1 + INFLATION))]


def axis_boxes(basis: FloatArray, points: FloatArray, adjacency: Adjacency) -> list[NamedBody]:
    """Boxes in the standard axes and in the principal axes of the listed answers."""
    centre = points.mean(axis=0) if adjacency is Adjacency.REPLACE_ONE else 0.0
    within = (points - centre) @ basis
    rotation = np.linalg.eigh(within.T @ within)[1]
    reason = "half-widths are the support function of the neighbour body along the axes"
    standard = Box.centred(_half_widths(points, adjacency))
    principal = Box.centred(_half_widths(within @ rotation, adjacency))
    return [
        NamedBody("box", standard, reason),
        NamedBody("principal box", LinearImage(basis @ rotation, principal), reason),
    ]


def _half_widths(coordinates: FloatArray, adjacency: Adjacency) -> FloatArray:
    """Inflated support function (r,) of the neighbour body along axes with `coordinates` (N, r)."""
    if adjacency is Adjacency.REPLACE_ONE:
        return np.asarray(np.ptp(coordinates, axis=0) * (1 + INFLATION))
    return np.asarray(np.abs(coordinates).max(axis=0) * (1 + INFLATION))


def norm_balls(workload: Workload, basis: FloatArray, adjacency: Adjacency) -> list[NamedBody]:
    """The l2 ball in the span of the neighbour body, and the l1 ball; radii from `norm_bounds`."""
    l1, l2 = norm_bounds(workload, adjacency)
    what = "diameter" if adjacency is Adjacency.REPLACE_ONE else "norm"
    return [
        NamedBody("l2 ball", Ellipsoid(l2 * basis), f"its radius is the l2 {what} of the answers"),
        NamedBody(
            "l1 ball",
            CrossPolytope(workload.n_queries, l1),
            f"its radius is the l1 {what} of the answers",
        ),
    ]


def norm_bounds(workload: Workload, adjacency: Adjacency) -> tuple[float, float]:
    """Bounds on the l1 and l2 norms of changes of the sums of answers between neighbours."""
    match checked_adjacency(adjacency):
        case Adjacency.REPLACE_ONE:
            return workload.l1_diameter(), workload.l2_diameter()
        case Adjacency.ADD_REMOVE:
            return workload.l1_radius(), workload.l2_radius()


def shadow(body: Body, rows: FloatArray) -> Body:
    """The image {rows @ x : x in K} of a body K known to be symmetric, for independent `rows` (k,
    m); a segment is lengthened by 1 + 1e-9, so that rounding cannot make it too short.
    """
    if not body.symmetric:
        raise ValueError(f"body must be symmetric, got {body!r}")
    closed = body.linear_image(rows)
    if closed is not None:
        return closed
    if len(rows) == 1:
        half_width = float(body.support(rows)[0]) * (1 + INFLATION)
        return Ball(1, half_width) if half_width > 0 else Box.centred([0.0])
    return LinearImage(rows, body)


# Proof that a supplied body contains all differences of neighbours.

#: Bound on the relative error of a gauge in this library. The largest errors are those of ray
#: shooting in V-polytopes: 1e-9 plus rounding errors.
GAUGE_ERROR = 1e-8
#: At most this many differences of answers (replace-one) are checked one by one. At most this many
#: answers (add/remove) are checked, unless the sensitivity polytope lists its vertices.
MAX_PAIRS = 1 << 20
#: Largest number of differences in one call of a gauge.
PAIR_ROWS = 1 << 14


def check_contains_neighbours(body: Body, workload: Workload, adjacency: Adjacency) -> float:
    """Prove that a multiple t K of a symmetric body K contains the neighbour body; return t >= 1.

    The neighbour body contains the differences of the sums of answers of any two neighbours. How
    containment is proved depends on the body:

    * Some bodies are bounded by listed hyperplanes (`Body.largest_gauge`): slabs, H-polytopes,
      triangulated polytopes, boxes, and their multiples, products and one-to-one linear images. The
      support function of the neighbour body along each normal is compared with the offset. This
      check is exact up to rounding.
    * Balls of l_p norms and ellipsoids (`Body.gauge_bound`) are accepted if the workload's bounds
      on the l1 and l2 norms of differences imply containment.
    * For a spectral body (a set of matrices defined by eigenvalues) and a workload of second
      moments, M, V M V^T and -V M V^T have equal gauges for all orthogonal V. One extreme point M
      of each set {V M V^T, -V M V^T} is checked.
    * For all other bodies, and if the bounds on norms do not suffice, the gauges of all differences
      of two answers (replace-one) or of all answers (add/remove) are computed. Each extreme point
      of the neighbour body is one of these points or its negative. At most 2^20 differences are
      checked. The number of answers has the same limit, and all answers together have at most 2^24
      entries, unless the sensitivity polytope lists its vertices.
    """
    checked_body(body)
    neighbours = neighbour_body(workload, adjacency)
    if body.dimension != workload.n_queries:
        raise ValueError(f"body must have dimension {workload.n_queries}, got {body.dimension}")
    if not body.symmetric:
        raise ValueError(f"body must be known to be symmetric, got {body!r}")
    hull = body.affine_hull()
    wanted = neighbours.affine_hull().basis
    missing = np.linalg.norm(wanted - hull.basis @ (hull.basis.T @ wanted), 2) if wanted.size else 0
    if missing > RANK_TOLERANCE:
        raise ValueError(
            f"body must span the differences of answers, which have dimension {wanted.shape[1]}; "
            f"got {body!r} of dimension {hull.dimension}, which leaves out one of their directions"
        )
    gauge = body.largest_gauge(neighbours.support)
    if gauge is None:
        gauge = body.gauge_bound(*norm_bounds(workload, adjacency))
        if gauge is None or not gauge <= 1 + MEMBERSHIP_TOLERANCE:
            gauge = _largest_by_orbits(body, neighbours)
        if gauge is None:
            gauge = _largest_by_pairs(body, workload, adjacency)
    if not gauge <= 1 + 2 * GAUGE_ERROR:  # also refuses NaN, which a faulty gauge can return
        raise ValueError(
            f"body must contain all differences of neighbours, so their gauges in {body!r} must be "
            f"at most 1; the largest is {gauge:.9g}"
        )
    return max(1.0, gauge)


def _largest_by_orbits(body: Body, neighbours: Body) -> float | None:
    """Bound on gauges from one point of each orbit under M -> +-V M V^T; None unless spectral."""
    invariant = body
    while isinstance(invariant, Scaled):
        invariant = invariant.body
    if not isinstance(invariant, SymmetricSpectral) or not isinstance(
        neighbours, SymmetricSpectral
    ):
        return None
    spectra = neighbours.orbits()
    return _largest_gauge(body, svec(spectra[:, :, None] * np.eye(neighbours.d))) * (
        1 + GAUGE_ERROR
    )


def _largest_by_pairs(body: Body, workload: Workload, adjacency: Adjacency) -> float:
    """Upper bound on the gauges in `body` of all extreme points of the neighbour body."""
    points = _listed_answers(workload)
    if points is None or not body.implements(Body.gauge):
        raise ValueError(
            f"body cannot be verified to contain the differences of neighbours: {body!r} lists no "
            "hyperplanes. A check of the differences one by one needs a body with a gauge, and a "
            "workload that lists the vertices of its sensitivity polytope or has at most 2^20 "
            f"elements and 2^24 answers over all elements and queries, got {workload!r}"
        )
    if adjacency is Adjacency.ADD_REMOVE:
        return _largest_gauge(body, points) * (1 + GAUGE_ERROR)
    count = len(points) * (len(points) - 1) // 2
    if count > MAX_PAIRS:
        raise ValueError(
            f"body cannot be verified to contain the differences of neighbours: {workload!r} has "
            f"{count} pairs of different answers, and at most 2^20 pairs can be checked one by one"
        )
    first, second = np.triu_indices(len(points), 1)
    blocks = (slice(start, start + PAIR_ROWS) for start in range(0, count, PAIR_ROWS))
    gauges = [_largest_gauge(body, points[first[rows]] - points[second[rows]]) for rows in blocks]
    return max(gauges, default=0.0) * (1 + GAUGE_ERROR)


def _listed_answers(workload: Workload) -> FloatArray | None:
    """Points whose convex hull is the sensitivity polytope; None if they are too many to list."""
    K = sensitivity_polytope(workload)
    if K.implements(Body.vertex_list):
        return K.vertex_list()
    size = workload.universe.size
    if size is None or size > MAX_PAIRS or size * workload.n_queries > MAX_LISTED_ENTRIES:
        return None
    return explicit_answers(workload)


def _largest_gauge(body: Body, points: FloatArray) -> float:
    # If a faulty gauge returns NaN, np.max returns NaN and the caller raises. max() could drop NaN.
    return float(np.max(body.gauge(points)))
