"""The mean workload on the unit ball."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray
from geomdp._validation import batch, whole
from geomdp.workloads.base import Workload
from geomdp.workloads.universe.universes import Records, UnitBall


@dataclass(frozen=True)
class Means(Workload):
    """Q(x) = x for x in the unit ball of R^d: the d coordinates of the mean.

    The convex hull of {Q(x)} is the unit ball. Under pure privacy, covariance estimation releases
    the mean by the ball mechanism (JL-T3, and JL-L15 with Delta = 2, the largest change of the
    sum).

    Parameters
    ----------
    d : int
        Dimension of the records.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Means(2)
    >>> workload.answers(np.array([[0.6, 0.8], [0.0, -1.0]]))
    array([ 0.3, -0.1])
    >>> workload.l2_diameter()
    2.0
    """

    d: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole(self.d, "d"))

    @property
    def universe(self) -> UnitBall:
        return UnitBall(self.d)

    @property
    def n_queries(self) -> int:
        return self.d

    def evaluate(self, records: Records) -> FloatArray:
        return np.array(self.universe.validate(records), dtype=np.float64)

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """u / ||u||_2 for each row u of `directions`; for u = 0, the first unit vector."""
        directions = batch(directions, self.d, "directions")
        # Divide by the largest entry first, because squares of tiny or huge entries are outside the
        # range of float64.
        largest = np.abs(directions).max(axis=1, keepdims=True, initial=0.0)
        unit = np.divide(directions, largest, out=np.zeros_like(directions), where=largest > 0)
        unit[largest[:, 0] == 0, 0] = 1.0
        return np.asarray(unit / np.linalg.norm(unit, axis=1, keepdims=True))

    def affine_hull(self) -> AffineHull:
        return AffineHull.whole_space(self.d)

    def l1_diameter(self) -> float:
        """2 sqrt(d), attained by (1, ..., 1) / sqrt(d) and its negative."""
        return 2 * math.sqrt(self.d)

    def l2_diameter(self) -> float:
        """2, attained by every unit vector and its negative."""
        return 2.0

    def l1_radius(self) -> float:
        """sqrt(d), attained by (1, ..., 1) / sqrt(d)."""
        return math.sqrt(self.d)

    def l2_radius(self) -> float:
        """1, attained by every unit vector."""
        return 1.0

    def labels(self) -> list[str]:
        return [f"x{i}" for i in range(self.d)]
