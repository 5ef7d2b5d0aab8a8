"""Proof that a body supplied for noise contains all differences of neighbours."""

from __future__ import annotations

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE, svec
from geomdp._typing import FloatArray
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.of_workloads.noise_bodies import norm_bounds
from geomdp.bodies.of_workloads.sensitivity import (
    MAX_LISTED_ENTRIES,
    neighbour_body,
    sensitivity_polytope,
)
from geomdp.bodies.operand import checked_body
from geomdp.bodies.operations.scaled import Scaled
from geomdp.bodies.spectral.symmetric import SymmetricSpectral
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload, explicit_answers

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
        The number t, from 1 to 1 + 2e-8, for which t K is proved to contain the neighbour body: the
        largest gauge found, or an upper bound on the gauges, but at least 1. A value above 1 allows
        for the errors of computed gauges. K-norm noise of t K gives the guarantee without any loss.

    Raises
    ------
    ValueError
        If `body` is not a `Body`, has another dimension than the answers, is not known to be
        symmetric, or does not contain the neighbour body, or if containment cannot be verified.

    Examples
    --------
    >>> import geomdp as gd
    >>> W = gd.workloads.Histogram(4)
    >>> ball = gd.bodies.CrossPolytope(4, radius=2.0)
    >>> gd.bodies.check_contains_neighbours(ball, W, gd.Adjacency.REPLACE_ONE)
    1.0
    >>> small = gd.bodies.CrossPolytope(4, radius=1.0)
    >>> try:
    ...     gd.bodies.check_contains_neighbours(small, W, gd.Adjacency.REPLACE_ONE)
    ... except ValueError as error:
    ...     print(str(error).partition(",")[0])
    body must contain all differences of neighbours
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
    """Upper bound on gauges in `body` of points of `neighbours`, from one point of each orbit under
    M -> V M V^T and M -> -M; None unless both are spectral.
    """
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
