"""Polytopes given by inequalities."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull
from geomdp._typing import BoolArray, FloatArray
from geomdp.bodies.arguments import (
    SupportFunction,
    frozen_array,
    holds_origin,
    off_hull,
    off_span,
    ratio_test,
)
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.linear_programs import ConicProgram, near_rows, slack_rows, surround
from geomdp.bodies.oracles import Facets

#: If the largest distance of a hyperplane from 0 is above this number times the median distance,
#: redundant inequalities are removed before other linear programs are solved. Far hyperplanes would
#: otherwise set the scale of the solver's tolerances.
FAR = 1e3


def frozen_rows(
    rows: FloatArray, values: FloatArray, names: tuple[str, str]
) -> tuple[FloatArray, FloatArray]:
    """Read-only copies of `rows` (F, m) and `values` (F,), finite and without a row that is 0."""
    first, second = names
    rows = frozen_array(rows, first, ndim=2)
    values = frozen_array(values, second, ndim=1)
    if 0 in rows.shape or len(rows) != len(values):
        raise ValueError(
            f"{first} and {second} must have shapes (F, m) and (F,), F, m >= 1, got {rows.shape} "
            f"and {values.shape}"
        )
    zero = ~rows.any(axis=1)
    if zero.any():
        raise ValueError(f"{first} must not be 0, got 0 in row {int(np.argmax(zero))}")
    return rows, values


class ByInequalities(Body):
    """Base class of polytopes given by inequalities; linear programs give support and vertices."""

    @property
    @abc.abstractmethod
    def _program(self) -> ConicProgram:
        """The dual program of max <u, x>; each solve starts from the last basis of the solver."""

    def support(self, directions: FloatArray) -> FloatArray:
        return self._program.solve(directions)[0]

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """A vertex that attains the support function; u = 0 is replaced by e_1."""
        directions = directions.copy()
        directions[~directions.any(axis=1), 0] = 1.0
        return self._program.solve(directions)[1]


@dataclass(frozen=True, eq=False)
class HPolytope(ByInequalities):
    """The polytope {x in R^m : normals @ x <= offsets}, given by F inequalities.

    Support and extreme points solve linear programs with m rows and F columns, each started from
    the solution for the previous direction. Gauge, facets, membership and chords have closed forms,
    O(F m) per point. At first use, two linear programs check that the set is bounded and not empty,
    and find its affine hull. If a hyperplane is far from 0 (see `FAR`), further programs remove
    redundant inequalities first.

    Parameters
    ----------
    normals : (F, m) array
        Finite; no row is 0.
    offsets : (F,) array
        Finite right-hand sides.

    Raises
    ------
    ValueError
        At first use, for instance in `support` or `contains`: if the set is empty or unbounded.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> triangle = gd.bodies.HPolytope([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], [1.0, 1.0, 1.0])
    >>> triangle.support(np.array([[1.0, 0.0]])).round(6).tolist()
    [2.0]
    >>> triangle.contains(np.array([[0.0, 0.0], [1.0, 1.0]])).tolist()
    [True, False]
    """

    normals: FloatArray
    offsets: FloatArray

    def __post_init__(self) -> None:
        normals, offsets = frozen_rows(self.normals, self.offsets, ("normals", "offsets"))
        object.__setattr__(self, "normals", normals)
        object.__setattr__(self, "offsets", offsets)

    def _summary(self) -> str:
        return f"{len(self.normals)} inequalities"

    @property
    def dimension(self) -> int:
        return int(self.normals.shape[1])

    @cached_property
    def symmetric(self) -> bool:
        """Whether for each row (normal, offset) there is a row that equals (-normal, offset)."""
        ours = np.column_stack([self.normals, self.offsets]) + 0.0
        theirs = np.column_stack([-self.normals, self.offsets]) + 0.0
        return np.array_equal(np.unique(ours, axis=0), np.unique(theirs, axis=0))

    @cached_property
    def _units(self) -> tuple[FloatArray, FloatArray]:
        """Normals scaled to length 1, and their offsets; redundant rows may be left out (`FAR`)."""
        lengths = np.linalg.norm(self.normals, axis=1)
        units, offsets = self.normals / lengths[:, None], self.offsets / lengths
        distances = np.abs(offsets)
        if distances.max() > FAR * np.median(distances):
            near = near_rows(units, offsets)
            return units[near], offsets[near]
        return units, offsets

    @cached_property
    def _shape(self) -> tuple[AffineHull, BoolArray]:
        """Affine hull, and rows strict at some point; ``ValueError`` if empty or unbounded."""
        units, offsets = self._units
        if not surround(units):
            raise ValueError(
                f"{self!r} is empty or unbounded: 0 is not inside the hull of its normals"
            )
        size = float(np.abs(offsets).max()) or 1.0
        found = slack_rows(units, offsets / size)
        if found is None:
            raise ValueError(f"{self!r} is empty")
        point, slack = found
        basis = scipy.linalg.null_space(units[~slack], rcond=RANK_TOLERANCE)
        if slack.all():
            basis = np.eye(self.dimension)
        return AffineHull(point * size, np.ascontiguousarray(basis)), slack

    @cached_property
    def _scale(self) -> float:
        """Norm of an inner point, plus the largest over the hull's axes of the smaller distance to
        the boundary; at most twice the largest norm of a point, and not changed by redundant rows.
        """
        hull, slack = self._shape
        rows, offsets = self._units[0][slack], self._units[1][slack]
        slopes = np.abs(rows @ hull.basis)
        room = np.broadcast_to((offsets - rows @ hull.offset)[:, None], slopes.shape)
        times = np.full(slopes.shape, np.inf)
        np.divide(room, slopes, out=times, where=slopes > 0)
        reach = times.min(axis=0, initial=np.inf)
        return float(np.linalg.norm(hull.offset) + reach.max(initial=0.0))

    @cached_property
    def _has_gauge(self) -> bool:
        hull, slack = self._shape
        inside = (self._units[1][slack] > RANK_TOLERANCE * self._scale).all()
        return bool(inside and holds_origin(hull, self._scale))

    @cached_property
    def _program(self) -> ConicProgram:
        """The dual program: h(u) = min {offsets @ w : normals^T w = u, w >= 0}."""
        units, offsets = self._units
        self._shape  # noqa: B018 (raises for an empty or unbounded set)
        return ConicProgram(np.ascontiguousarray(units.T), offsets)

    def gauge(self, points: FloatArray) -> FloatArray:
        """Largest <a_i, x> / b_i over the rows that are no equalities; inf outside the span."""
        return self.facets(points).gauges

    def facets(self, points: FloatArray) -> Facets:
        """Gauges, and for each point the row a_i / b_i with the largest inner product."""
        hull, slack = self._shape
        rows = self._units[0][slack] / self._units[1][slack, None]
        if len(rows) == 0:
            rows = np.zeros((1, self.dimension))
        ratios = points @ rows.T
        gauges = np.maximum(ratios.max(axis=1), 0.0)
        gauges[off_span(points, hull.basis, self._scale)] = np.inf
        return Facets(gauges, rows[ratios.argmax(axis=1)])

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether each inequality, with a unit normal, holds up to `tolerance` times the scale."""
        hull, slack = self._shape
        rows, offsets = self._units[0][slack], self._units[1][slack]
        inside = (points @ rows.T <= offsets + tolerance * self._scale).all(axis=1)
        flat = max(tolerance, RANK_TOLERANCE) * self._scale
        return np.asarray(inside & ~off_hull(points, hull, flat))

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        hull, slack = self._shape
        rows, offsets = self._units[0][slack], self._units[1][slack]
        room = np.maximum(offsets - points @ rows.T, 0.0)
        return ratio_test(room, directions @ rows.T, off_span(directions, hull.basis))

    def affine_hull(self) -> AffineHull:
        """The solutions of <a_i, x> = b_i for those rows i that are equalities on the whole set."""
        return self._shape[0]

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        return [self.normals @ variable <= self.offsets]

    def largest_gauge(self, support: SupportFunction) -> float | None:
        """The largest value of `support` at a row a_i / b_i; None if some b_i is at most 0."""
        if (self.offsets <= 0).any():
            return None
        return float(support(self.normals / self.offsets[:, None]).max())
