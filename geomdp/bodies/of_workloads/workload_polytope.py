"""The sensitivity polytope of a workload, from extreme answers instead of a list of all answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray
from geomdp._validation import require_type
from geomdp.bodies.arguments import Verb
from geomdp.bodies.base import Body
from geomdp.bodies.facets.gauges import PolytopeByRays, VertexGauge
from geomdp.bodies.facets.on_demand import OracleShooter, independent_points
from geomdp.bodies.facets.ray_shooting import RayShooter
from geomdp.bodies.oracles import MissingOracle
from geomdp.workloads import Workload

#: Verbs (methods of `Body`) that are computed by shooting rays at facets.
BY_FACETS = frozenset({Body.contains, Body.separate, Body.chord})


@dataclass(frozen=True, eq=False)
class WorkloadPolytope(PolytopeByRays):
    """conv{Q(x) : x in the universe} in R^m, computed by `extreme_answers` of the workload Q.

    No answers are listed, so the universe can be far too large for a list of vertices. On a finite
    universe, membership, separation and chords shoot rays at facets of the hull of the answers that
    the workload has returned so far. Further answers are added until the rays hit facets of the
    body (JL-DEF, X-RAY).

    Parameters
    ----------
    workload : Workload
        Q, with m queries.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> W = gd.workloads.Marginals(d=12, k=2)
    >>> K = gd.bodies.WorkloadPolytope(W)
    >>> K
    WorkloadPolytope(of Marginals(d=12, k=2) in R^66)
    >>> best = K.extreme_point(np.ones((1, W.n_queries)))
    >>> best.min().item(), K.support(np.ones((1, W.n_queries))).tolist()
    (1.0, [66.0])
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
        build = partial(OracleShooter, self, frame, RayShooter.hull, _height)
        return VertexGauge(frame.basis, build)

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


def _height(largest: FloatArray, smallest: FloatArray) -> FloatArray:
    """The support function at u, from the largest and smallest <u, x> over points x of the body."""
    del smallest
    return largest
