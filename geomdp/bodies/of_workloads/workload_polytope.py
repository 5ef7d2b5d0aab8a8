"""The sensitivity polytope of a workload, known only through the workload's own oracle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import BoolArray, FloatArray
from geomdp.bodies.arguments import Verb
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.facets.gauges import CentredGauge, VertexGauge
from geomdp.bodies.facets.on_demand import OracleShooter, independent_points
from geomdp.bodies.facets.ray_shooting import RayShooter
from geomdp.bodies.oracles import Halfspace, MissingOracle
from geomdp.workloads import Workload

#: Verbs that shoot rays at facets.
BY_FACETS = frozenset({Body.contains, Body.separate, Body.chord})


@dataclass(frozen=True, eq=False)
class WorkloadPolytope(Body):
    """conv{Q(x) : x in the universe}, by the workload's `extreme_answers` alone.

    No answers are listed, so the universe may be far larger than a list of vertices. On a finite
    universe membership, separation and chords come from rays shot at facets, with column generation
    over the answers that the oracle returned so far (X-RAY).

    Parameters
    ----------
    workload : Workload
        Q, with m queries.

    References
    ----------
    JL-DEF, X-RAY.
    """

    workload: Workload

    @property
    def dimension(self) -> int:
        """Number of queries m."""
        return self.workload.n_queries

    def _summary(self) -> str:
        return f"of {self.workload!r}"

    @property
    def finitely_generated(self) -> bool:
        """Whether the universe is finite."""
        return self.workload.universe.size is not None

    def implements(self, verb: Verb) -> bool:
        """Membership, separation and chords on finite universes only."""
        own = super().implements(verb)
        return own and (verb not in BY_FACETS or self.finitely_generated)

    @cached_property
    def _centred(self) -> CentredGauge:
        """Gauge about the mean of independent extreme points, which is in the relative interior."""
        if not self.finitely_generated:
            raise MissingOracle(self, "chord", "a finite universe")
        hull, centre = self.affine_hull(), independent_points(self).mean(axis=0)
        shooter = None
        if hull.dimension:
            frame = AffineHull(centre, hull.basis)
            shooter = OracleShooter(self, frame, RayShooter.hull, _height)
        return CentredGauge(self, hull, centre, VertexGauge(hull.basis, shooter))

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether the gauge about the centre is at most 1 + `tolerance`."""
        return self._centred.contains(points, tolerance)

    def separate(self, point: FloatArray) -> Halfspace | None:
        """The facet that a ray from the centre to the point leaves through."""
        return self._centred.separate(point)

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends where the line leaves through a facet; 0 outside the span."""
        return self._centred.chord(points, directions)

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """Q(x*) for an element x* that maximises <u, Q(x)>."""
        return self.workload.extreme_answers(directions)

    def breadth(self, directions: FloatArray) -> FloatArray:
        """The workload's own, in one pass over the universe where it can."""
        return self.workload.breadth(directions)

    def radius(self) -> float:
        """The workload's bound on ||Q(x)||_2."""
        return self.workload.l2_radius()

    def affine_hull(self) -> AffineHull:
        """The workload's affine hull."""
        return self.workload.affine_hull()

    def half_diameter(self) -> float:
        """Half the workload's l2 diameter, or the radius if that is smaller."""
        return min(self.workload.l2_diameter() / 2, self.radius())


def _height(largest: FloatArray, smallest: FloatArray) -> FloatArray:
    """Support function from the largest and smallest products with points of the body."""
    del smallest
    return largest
