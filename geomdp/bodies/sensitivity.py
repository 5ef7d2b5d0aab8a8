"""Sensitivity polytope and neighbour body of a workload, bodies for noise that contain the
neighbour body, and a proof that a body supplied for noise contains it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull, row_blocks
from geomdp._typing import FloatArray
from geomdp._validation import require_type
from geomdp.bodies.balls import Ball, CrossPolytope, Ellipsoid
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body, checked_body
from geomdp.bodies.boxes import Box
from geomdp.bodies.point_sets import can_triangulate, hull_vertices
from geomdp.bodies.products import LinearImage, Product
from geomdp.bodies.simplices import Simplex
from geomdp.bodies.spectral import Spectraplex, SymmetricSpectral
from geomdp.bodies.symmetrised import Scaled, SearchedPolytope, difference_body, symmetric_hull
from geomdp.bodies.vpolytope import VPolytope, cut_into_simplices
from geomdp.privacy import Adjacency
from geomdp.privacy.definitions import checked_adjacency
from geomdp.workloads import (
    Histogram,
    LinearMap,
    Marginals,
    MarginalTables,
    Means,
    Parities,
    Prefixes,
    Ranges,
    SecondMoment,
    SparseQueries,
    Workload,
    explicit_answers,
)
from geomdp.workloads.base import Block
from geomdp.workloads.explicit import Coarsened

#: Answers on all elements of a universe are listed if they are at most this many numbers, 128 MB.
#: For more, the workload's own search for extreme answers is also faster.
MAX_LISTED_ENTRIES = 1 << 24
#: Workloads (with an adjacency, for noise bodies) whose bodies are kept. The mechanism `JL` needs
#: two: the current workload and its image under a linear map.
KEPT_WORKLOADS = 2


def sensitivity_polytope(workload: Workload) -> Body:
    """The body K_Q = conv{Q(x) : x in the universe} in R^m of attainable mean answers (JL-DEF).

    The type of the body depends on the workload:

    * one-way marginals and parities of single columns: a box;
    * one-way tables of at least two columns: a product of simplices, one per column;
    * means of points of the unit ball: this ball;
    * second moments: the spectraplex;
    * a linear map of another workload: the image of its body (an ellipsoid if the body is a ball);
    * `SparseQueries`: the body of its workload `explicit`, which has the same answer vectors;
    * any other workload on N elements with N m <= 2^24, and `Coarsened` of any size: a `Simplex` if
      the distinct answer vectors are affinely independent, and a `VPolytope` if they are dependent;
    * for larger N m and other infinite universes: a polytope whose vertices the workload finds.

    Parameters
    ----------
    workload : Workload
        Q, with m queries; ``ValueError`` for another type.

    Returns
    -------
    Body
        K_Q in R^m, for means of answers.

    Examples
    --------
    >>> import geomdp as gd
    >>> W = gd.workloads.Marginals(d=3, k=2)
    >>> K = gd.sensitivity_polytope(W)
    >>> K
    VPolytope(5 points in R^3)
    >>> K.contains([W.answers([[1, 1, 0], [1, 1, 1]])]).tolist()
    [True]
    """
    require_type(workload, Workload, "workload")
    match workload:
        case Marginals(k=1):
            return Box(np.zeros(workload.d), np.ones(workload.d))
        case Parities(k=1):
            return Box(-np.ones(workload.d), np.ones(workload.d))
        case MarginalTables(k=1) if len(workload.levels) > 1:
            return Product([Simplex(np.eye(count)) for count in workload.levels])
        case Means():
            return Ball(workload.d, 1.0)
        case SecondMoment():
            return Spectraplex(workload.d)
        case SparseQueries():
            return sensitivity_polytope(workload.explicit)
        case Coarsened():
            return hull_of(workload.centres)
        case LinearMap():
            return _image_of_polytope(workload)
    size = workload.universe.size
    if size is None or size * workload.n_queries > MAX_LISTED_ENTRIES:
        return WorkloadPolytope(workload)
    if isinstance(workload, Histogram | Prefixes | Ranges):
        return Simplex(explicit_answers(workload))
    return _kept_polytope(workload)


@lru_cache(maxsize=KEPT_WORKLOADS)
def _image_of_polytope(workload: LinearMap) -> Body:
    inner = sensitivity_polytope(workload.workload)
    if isinstance(inner, WorkloadPolytope):
        return WorkloadPolytope(workload)
    if inner.implements(Body.vertex_list):
        return hull_of(inner.vertex_list() @ workload.matrix.T)
    if isinstance(inner, Ball | Ellipsoid):
        # Ellipsoids have an exact sampler, so return an ellipsoid for every map.
        return inner.linear_image(workload.matrix)
    return LinearImage(workload.matrix, inner)


@lru_cache(maxsize=KEPT_WORKLOADS)
def _kept_polytope(workload: Workload) -> Body:
    """The hull of all answers, kept in memory for all mechanisms of a comparison."""
    return hull_of(explicit_answers(workload))


def hull_of(points: FloatArray) -> Body:
    """The hull of `points` (N, m): a `Simplex` if affinely independent, else a `VPolytope`."""
    distinct = _distinct(points)
    small = len(distinct) <= distinct.shape[1] + 1
    if small and AffineHull.of_points(distinct).dimension == len(distinct) - 1:
        return Simplex(distinct)
    return VPolytope(distinct)


def _distinct(points: FloatArray) -> FloatArray:
    """The different rows in increasing order. Cells of tables are in decreasing order already."""
    ascending = points[::-1]
    steps = np.diff(ascending, axis=0)
    first = (steps != 0).argmax(axis=1)
    sorted_already = bool((steps[np.arange(len(steps)), first] > 0).all())
    return ascending if sorted_already else np.unique(points, axis=0)


def neighbour_body(workload: Workload, adjacency: Adjacency) -> Body:
    """The smallest convex body B with n (Q(X) - Q(X')) in B for all neighbours X, X' (JL-DEF).

    Q(X) is the sum of the answers on the records X, divided by a public, fixed number n. Let K be
    the sensitivity polytope. Under replace-one, B = K - K. Under add/remove, the sums of two
    neighbours differ by one answer vector Q(x), so B is the hull of K and -K, in the linear span of
    K. B is for sums of answers; scaled by 1/n, it is the body for means.

    Parameters
    ----------
    workload : Workload
        Q, with m queries; ``ValueError`` for another type.
    adjacency : Adjacency
        The neighbour relation; ``ValueError`` for another type.

    Examples
    --------
    >>> import geomdp as gd
    >>> W = gd.workloads.Histogram(3)
    >>> replaced = gd.bodies.neighbour_body(W, gd.Adjacency.REPLACE_ONE)
    >>> added = gd.bodies.neighbour_body(W, gd.Adjacency.ADD_REMOVE)
    >>> change = [[1.0, -1.0, 0.0]]
    >>> replaced.gauge(change).round(6).tolist(), added.gauge(change).round(6).tolist()
    ([1.0], [2.0])
    """
    K = sensitivity_polytope(workload)
    match checked_adjacency(adjacency):
        case Adjacency.REPLACE_ONE:
            return difference_body(K)
        case Adjacency.ADD_REMOVE:
            return symmetric_hull(K)


@dataclass(frozen=True, eq=False)
class WorkloadPolytope(SearchedPolytope):
    """conv{Q(x) : x in the universe} in R^m, from `extreme_answers` of the workload Q (JL-DEF)."""

    workload: Workload

    def __post_init__(self) -> None:
        require_type(self.workload, Workload, "workload")

    @property
    def dimension(self) -> int:
        return self.workload.n_queries

    def _summary(self) -> str:
        return f"of {self.workload!r}"

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return self.workload.extreme_answers(directions)

    def breadth(self, directions: FloatArray) -> FloatArray:
        return self.workload.breadth(directions)

    def radius(self) -> float:
        return self.workload.l2_radius()

    def affine_hull(self) -> AffineHull:
        return self.workload.affine_hull()

    def half_diameter(self) -> float:
        """Half the workload's l2 diameter, or the radius if that is smaller."""
        return min(self.workload.l2_diameter() / 2, self.radius())


# Bodies for noise: symmetric bodies that contain a neighbour body and have exact uniform samplers.

#: Largest number N^2 m of entries of all differences of N vertices in R^m: 2^24 float64 are 128 MB.
MAX_PAIR_ENTRIES = 1 << 24
#: Half-widths, norms and vertices that are computed here are enlarged by this share, far above
#: their relative rounding errors, so that no body is too small (SAM-5).
INFLATION = 1e-9


class NamedBody(NamedTuple):
    """A symmetric body that contains the neighbour body, and its name."""

    name: str
    body: Body


@lru_cache(maxsize=KEPT_WORKLOADS)  # compared mechanisms share the bodies
def exact_noise_bodies(workload: Workload, adjacency: Adjacency) -> tuple[NamedBody, ...]:
    """The symmetric bodies, at least one, in no order, that contain the neighbour body and have an
    exact sampler and second moment, so that their K-norm noise is private (SAM-5).
    """
    if isinstance(workload, SparseQueries):
        workload = workload.explicit  # the same answers, on a finite universe
    K = sensitivity_polytope(workload)
    neighbours = neighbour_body(workload, adjacency)
    found: dict[str, Body | None] = {}
    if neighbours.implements(Body.sample_uniform) and neighbours.implements(Body.second_moment):
        found["neighbour body"] = neighbours
        if neighbours.affine_hull().dimension == 0:
            return (NamedBody("neighbour body", neighbours),)
    else:
        rank = workload.affine_hull().dimension
        found["triangulated neighbour body"] = triangulated_neighbours(K, rank, adjacency)
    found["blocks"] = block_product(workload, K, adjacency)
    # Under replace-one, the hulls of both have the same directions; the workload has a closed form.
    replaced = adjacency is Adjacency.REPLACE_ONE
    basis = (workload if replaced else neighbours).affine_hull().basis
    if K.implements(Body.vertex_list):
        found["box"], found["principal box"] = axis_boxes(basis, K.vertex_list(), adjacency)
    l1, l2 = norm_bounds(workload, adjacency)
    found["l2 ball"] = Ellipsoid(l2 * basis)  # in the span of the neighbour body
    found["l1 ball"] = CrossPolytope(workload.n_queries, l1)
    return tuple(NamedBody(name, body) for name, body in found.items() if body is not None)


def triangulated_neighbours(K: Body, rank: int, adjacency: Adjacency) -> Body | None:
    """The neighbour body, inflated and cut into simplices; None beyond limits or by rounding."""
    if not K.implements(Body.vertex_list):
        return None
    points = K.vertex_list()
    dimension, fewest = rank, (rank + 1) ** 2
    if not can_triangulate(len(points), rank):
        return None
    if adjacency is Adjacency.ADD_REMOVE:
        dimension = AffineHull.of_points(np.vstack([points, -points])).dimension
        fewest = 2 * (rank + 1)
    # K has at least rank + 1 vertices, so the list `extreme` below has at least `fewest` points.
    # The search for vertices takes many seconds in twenty dimensions.
    if not can_triangulate(fewest, dimension):
        return None
    try:
        points = hull_vertices(points)
    except scipy.spatial.QhullError:  # the points are flat up to rounding
        return None
    if adjacency is Adjacency.ADD_REMOVE:
        extreme = np.vstack([points, -points])
    elif points.size * len(points) <= MAX_PAIR_ENTRIES:
        extreme = (points[:, None] - points).reshape(-1, points.shape[1])
    else:
        return None
    if not can_triangulate(len(extreme), dimension):
        return None
    return cut_into_simplices(extreme * (1 + INFLATION))  # differences and facets are rounded


def block_product(workload: Workload, K: Body, adjacency: Adjacency) -> Body | None:
    """The product of balls that hold the answers' parts, or differences, in orthogonal subspaces;
    None for fewer than two.
    """
    match adjacency:
        case Adjacency.REPLACE_ONE:
            parts = [(block.basis, block.diameter) for block in workload.blocks()]
        case Adjacency.ADD_REMOVE:
            parts = [(block.basis, _radius(block, K)) for block in workload.blocks()]
            parts += _common_part(workload)
    parts = [(basis, reach) for basis, reach in parts if reach > 0]
    if len(parts) < 2:
        return None
    lines = [part for part in parts if part[0].shape[1] == 1]
    wide = [part for part in parts if part[0].shape[1] > 1]
    factors: list[Body] = [Ball(basis.shape[1], reach) for basis, reach in wide]
    if lines:
        factors.insert(0, Box.centred([reach for _, reach in lines]))
    axes = np.hstack([basis for basis, _ in lines + wide])
    return LinearImage(axes, Product(factors))


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


def axis_boxes(basis: FloatArray, points: FloatArray, adjacency: Adjacency) -> tuple[Body, Body]:
    """Boxes in the standard axes and in the principal axes of the listed answers."""
    centre = points.mean(axis=0) if adjacency is Adjacency.REPLACE_ONE else 0.0
    within = (points - centre) @ basis
    rotation = np.linalg.eigh(within.T @ within)[1]
    standard = Box.centred(_half_widths(points, adjacency))
    principal = Box.centred(_half_widths(within @ rotation, adjacency))
    return standard, LinearImage(basis @ rotation, principal)


def _half_widths(coordinates: FloatArray, adjacency: Adjacency) -> FloatArray:
    """Inflated support function (r,) of the neighbour body along axes with `coordinates` (N, r)."""
    if adjacency is Adjacency.REPLACE_ONE:
        return np.asarray(np.ptp(coordinates, axis=0) * (1 + INFLATION))
    return np.asarray(np.abs(coordinates).max(axis=0) * (1 + INFLATION))


def norm_bounds(workload: Workload, adjacency: Adjacency) -> tuple[float, float]:
    """Bounds on the l1 and l2 norms of changes of the sums of answers between neighbours."""
    match checked_adjacency(adjacency):
        case Adjacency.REPLACE_ONE:
            return workload.l1_diameter(), workload.l2_diameter()
        case Adjacency.ADD_REMOVE:
            return workload.l1_radius(), workload.l2_radius()


def shadow(body: Body, rows: FloatArray) -> Body:
    """The image {rows @ x : x in K} of a body K known to be symmetric, for independent `rows` (k,
    m); segments are longer by 1 + 1e-9.
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
#: At most this many differences (replace-one) or unlisted answers (add/remove) are checked.
MAX_PAIRS = 1 << 20
#: Largest number of differences in one call of a gauge.
PAIR_ROWS = 1 << 14


def check_contains_neighbours(body: Body, workload: Workload, adjacency: Adjacency) -> float:
    """Prove that a multiple t K of a symmetric body K contains the neighbour body, whose
    differences of sums between neighbours the noise must hide; return t >= 1, or raise
    ``ValueError``.
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
    # Listed hyperplanes decide exactly, up to rounding. Bounds on norms may suffice for balls. Of
    # a spectral body and second moments, V M V^T and -V M V^T have equal gauges for orthogonal V.
    # Else all extreme points are compared: differences of two answers, or answers, or negatives.
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
    if not (isinstance(invariant, SymmetricSpectral) and isinstance(neighbours, SymmetricSpectral)):
        return None
    return _largest_gauge(body, neighbours.orbits()) * (1 + GAUGE_ERROR)


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
    gauges = [
        _largest_gauge(body, points[first[rows]] - points[second[rows]])
        for rows in row_blocks(count, 1, PAIR_ROWS)
    ]
    # The maximum of numpy is NaN if one of them is, unlike that of Python.
    return float(np.max(gauges, initial=0.0)) * (1 + GAUGE_ERROR)


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
    # np.max keeps a NaN of a faulty gauge, and the caller raises; max() could drop it.
    return float(np.max(body.gauge(points)))
