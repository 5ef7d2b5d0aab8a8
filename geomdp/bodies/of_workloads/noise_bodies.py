"""Symmetric bodies that contain a neighbour body and have exact uniform samplers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull
from geomdp._typing import FloatArray
from geomdp.bodies.base import Body
from geomdp.bodies.norm_balls.balls import Ball, CrossPolytope
from geomdp.bodies.norm_balls.boxes import Box
from geomdp.bodies.norm_balls.ellipsoids import Ellipsoid
from geomdp.bodies.operations.linear_image import LinearImage
from geomdp.bodies.operations.products import Product
from geomdp.bodies.polytopes.triangulated import cut_into_simplices
from geomdp.bodies.polytopes.triangulation import can_triangulate, hull_vertices
from geomdp.privacy import Adjacency
from geomdp.privacy.definitions import checked_adjacency
from geomdp.workloads import Block, Workload

#: Largest number N^2 m of entries of all differences of N vertices in R^m: 2^24 float64 are 128 MB.
MAX_PAIR_ENTRIES = 1 << 24
#: Half-widths, norms and vertices that are computed here from listed points are enlarged by this
#: share. The share is far above the relative rounding errors of these numbers (SAM-5).
INFLATION = 1e-9


@dataclass(frozen=True)
class NamedBody:
    """A symmetric body with a name, and the reason why it contains the neighbour body.

    Parameters
    ----------
    name : str
        The body in a few words.
    body : Body
        A body in R^m, for sums of answers (not divided by n).
    containment : str
        Why the body contains every change of the sums of answers between neighbours.

    Examples
    --------
    >>> import geomdp as gd
    >>> W = gd.workloads.Marginals(d=4, k=1)
    >>> found = gd.bodies.exact_noise_bodies(W, gd.Adjacency.REPLACE_ONE)
    >>> [named.name for named in found]
    ['neighbour body', 'blocks', 'l2 ball', 'l1 ball']
    >>> found[0].containment
    'it is the neighbour body'
    """

    name: str
    body: Body
    containment: str


def triangulated_neighbours(K: Body, rank: int, adjacency: Adjacency) -> list[NamedBody]:
    """A list of the neighbour body cut into simplices, for K of dimension `rank`; empty if K lists
    no vertices, if the body is beyond the limits, or if rounding prevents it.
    """
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
