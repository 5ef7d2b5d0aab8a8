"""The sensitivity polytope of a workload, seen through the workload's own oracle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomdp._linalg import AffineHull
from geomdp._typing import FloatArray
from geomdp._validation import batch
from geomdp.bodies.oracles import Body
from geomdp.workloads import Workload


@dataclass(frozen=True, eq=False)
class WorkloadPolytope(Body):
    """conv{Q(x) : x in the universe}, by the workload's `extreme_answers` alone.

    Nothing is enumerated or stored here, so it serves universes far larger than a list of
    vertices could.

    Parameters
    ----------
    workload : Workload
        Q, with m queries.

    References
    ----------
    JL-DEF.
    """

    workload: Workload

    @property
    def dimension(self) -> int:
        """Number of queries m."""
        return self.workload.n_queries

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """Q(x*) for an element x* that maximises <u, Q(x)>."""
        return self.workload.extreme_answers(batch(directions, self.dimension, "directions"))

    def support(self, directions: FloatArray) -> FloatArray:
        """<u, Q(x*)>."""
        directions = batch(directions, self.dimension, "directions")
        return np.asarray(np.einsum("bm,bm->b", directions, self.extreme_point(directions)))

    def radius(self) -> float:
        """The workload's bound on ||Q(x)||_2."""
        return self.workload.l2_radius()

    def affine_hull(self) -> AffineHull:
        """The workload's affine hull."""
        return self.workload.affine_hull()
