"""Sensitivity polytope and neighbour body of a workload, without records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray
from geomdp._validation import require_type
from geomdp.bodies.balls import Ball, Ellipsoid
from geomdp.bodies.base import Body
from geomdp.bodies.boxes import Box
from geomdp.bodies.conic.spectral import Spectraplex
from geomdp.bodies.oracles import MissingOracle, Verb
from geomdp.bodies.polytopes.simplices import Simplex
from geomdp.bodies.polytopes.vpolytope import VPolytope
from geomdp.bodies.products import LinearImage, Product
from geomdp.bodies.ray_shooting import (
    OracleShooter,
    PolytopeByRays,
    RayShooter,
    VertexGauge,
    independent_points,
)
from geomdp.bodies.symmetrised import difference_body, symmetric_hull
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
from geomdp.workloads.explicit import Coarsened

#: The m answers on all N elements of a universe are listed if they are at most this many numbers:
#: 2^24 float64 numbers take 128 MB. If N m is larger, the workload's own search finds extreme
#: answers. This saves time, too: for tables and marginals, the search is faster than a matrix
#: product with all vertices.
MAX_LISTED_ENTRIES = 1 << 24
#: Caches keep the polytopes of this many workloads, and the noise bodies of this many pairs of
#: workload and adjacency. The mechanism `JL` needs two: the current workload and the image of this
#: workload under a linear map.
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
    * for larger N m and other infinite universes: a `WorkloadPolytope`.

    Parameters
    ----------
    workload : Workload
        Q, with m queries.

    Returns
    -------
    Body
        K_Q in R^m, for means of answers.

    Raises
    ------
    ValueError
        If `workload` is not a `Workload`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> W = gd.workloads.Marginals(d=3, k=2)
    >>> K = gd.sensitivity_polytope(W)
    >>> K
    VPolytope(5 points in R^3)
    >>> records = np.array([[1, 1, 0], [1, 1, 1]])
    >>> K.contains(W.answers(records)[None]).tolist()
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
    if not _can_list(workload):
        return WorkloadPolytope(workload)
    if isinstance(workload, Histogram | Prefixes | Ranges):
        return Simplex(explicit_answers(workload))
    return _kept_polytope(workload)


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


def _can_list(workload: Workload) -> bool:
    size = workload.universe.size
    return size is not None and size * workload.n_queries <= MAX_LISTED_ENTRIES


def hull_of(points: FloatArray) -> Body:
    """The hull of `points` (N, m): a `Simplex` if affinely independent, else a `VPolytope`."""
    distinct = np.unique(points, axis=0)
    small = len(distinct) <= distinct.shape[1] + 1
    if small and AffineHull.of_points(distinct).dimension == len(distinct) - 1:
        return Simplex(distinct)
    return VPolytope(distinct)


def neighbour_body(workload: Workload, adjacency: Adjacency) -> Body:
    """The smallest convex body B with n (Q(X) - Q(X')) in B for all neighbours X, X' (JL-DEF).

    Q(X) is the sum of the answers on the records X, divided by a public, fixed number n. Let K be
    the sensitivity polytope. Under replace-one, B = K - K. Under add/remove, the sums of two
    neighbours differ by one answer vector Q(x), so B is the hull of K and -K, in the linear span of
    K. B is for sums of answers; scaled by 1/n, it is the body for means.

    Parameters
    ----------
    workload : Workload
        Q, with m queries.
    adjacency : Adjacency
        The neighbour relation.

    Returns
    -------
    Body
        B in R^m, for sums of answers.

    Raises
    ------
    ValueError
        If `workload` is not a `Workload`, or `adjacency` is not an `Adjacency`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> W = gd.workloads.Histogram(3)
    >>> replaced = gd.bodies.neighbour_body(W, gd.Adjacency.REPLACE_ONE)
    >>> added = gd.bodies.neighbour_body(W, gd.Adjacency.ADD_REMOVE)
    >>> change = np.array([[1.0, -1.0, 0.0]])
    >>> replaced.gauge(change).round(6).tolist(), added.gauge(change).round(6).tolist()
    ([1.0], [2.0])
    """
    K = sensitivity_polytope(workload)
    match checked_adjacency(adjacency):
        case Adjacency.REPLACE_ONE:
            return difference_body(K)
        case Adjacency.ADD_REMOVE:
            return symmetric_hull(K)


# The sensitivity polytope from extreme answers, instead of a list of all answers.

#: Verbs (methods of `Body`) that are computed by shooting rays at facets.
BY_FACETS = frozenset({Body.contains, Body.separate, Body.chord})


@dataclass(frozen=True, eq=False)
class WorkloadPolytope(PolytopeByRays):
    """conv{Q(x) : x in the universe} in R^m, computed by `extreme_answers` of the workload Q.

    No answers are listed, so the universe can be far too large for a list of vertices. On a finite
    universe, membership, separation and chords shoot rays at facets of the hull of the answers that
    the workload has returned so far. Further answers are added until the rays hit facets of the
    body (JL-DEF, X-RAY).
    """

    workload: Workload

    def __post_init__(self) -> None:
        require_type(self.workload, Workload, "workload")

    @property
    def dimension(self) -> int:
        return self.workload.n_queries

    def _summary(self) -> str:
        return f"of {self.workload!r}"

    @property
    def finitely_generated(self) -> bool:
        return self.workload.universe.size is not None

    def implements(self, verb: Verb) -> bool:
        """Membership, separation and chords need a finite universe."""
        own = super().implements(verb)
        return own and (verb not in BY_FACETS or self.finitely_generated)

    @cached_property
    def _centre(self) -> FloatArray:
        """The mean of r + 1 affinely independent extreme points, so a relative inner point."""
        if not self.finitely_generated:
            raise MissingOracle(self, "chord", "a finite universe")
        return np.asarray(independent_points(self).mean(axis=0))

    @cached_property
    def _about_centre(self) -> VertexGauge:
        frame = AffineHull(self._centre, self.affine_hull().basis)
        return VertexGauge(frame.basis, lambda: OracleShooter(self, frame, RayShooter.hull))

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
