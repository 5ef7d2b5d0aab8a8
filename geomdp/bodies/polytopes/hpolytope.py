"""Polytopes given by inequalities."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

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

#: Rows this many times farther from 0 than the median row are checked for redundancy first: if left
#: in, they would set the scale to which the solver's tolerances are relative.
FAR = 1e3


def frozen_rows(
    rows: FloatArray, values: FloatArray, names: tuple[str, str]
) -> tuple[FloatArray, FloatArray]:
    """Rows (F, m), none of them 0, and a value of each (F,), as read-only copies."""
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
    """A polytope given by inequalities: support and extreme points by linear programs."""

    @property
    @abc.abstractmethod
    def _program(self) -> ConicProgram:
        """The dual of max <u, x>, kept from one u to the next."""

    def support(self, directions: FloatArray) -> FloatArray:
        """Largest <u, x>, one linear program each."""
        return self._program.solve(directions)[0]

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """A vertex that attains the support function; for u = 0 one for the first axis."""
        directions = directions.copy()
        directions[~directions.any(axis=1), 0] = 1.0
        return self._program.solve(directions)[1]


@dataclass(frozen=True, eq=False)
class HPolytope(ByInequalities):
    """The polytope {x in R^m : normals @ x <= offsets}.

    Support and extreme points solve linear programs with m rows and F columns, warm-started from
    one direction to the next; everything else is in closed form, O(F m) per point. Emptiness,
    boundedness and the affine hull are found at first use by two linear programs.

    Parameters
    ----------
    normals : (F, m) array
        No row is 0.
    offsets : (F,) array
        Right-hand sides.

    Raises
    ------
    ValueError
        At construction for bad shapes, NaN, infinite entries or a row that is 0; at first use if
        the set is empty or unbounded.
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
        """Dimension m of the surrounding space."""
        return int(self.normals.shape[1])

    @cached_property
    def symmetric(self) -> bool:
        """Whether the list of inequalities is closed under negation, entry for entry."""
        ours = np.column_stack([self.normals, self.offsets]) + 0.0
        theirs = np.column_stack([-self.normals, self.offsets]) + 0.0
        return np.array_equal(np.unique(ours, axis=0), np.unique(theirs, axis=0))

    @cached_property
    def _units(self) -> tuple[FloatArray, FloatArray]:
        """Normals scaled to length 1 with their offsets, without far redundant rows."""
        lengths = np.linalg.norm(self.normals, axis=1)
        units, offsets = self.normals / lengths[:, None], self.offsets / lengths
        distances = np.abs(offsets)
        if distances.max() > FAR * np.median(distances):
            near = near_rows(units, offsets)
            return units[near], offsets[near]
        return units, offsets

    @cached_property
    def _shape(self) -> tuple[AffineHull, BoolArray]:
        """Affine hull, and the rows that some point satisfies strictly.

        Raises
        ------
        ValueError
            If the set is empty or unbounded.
        """
        units, offsets = self._units
        if not surround(units):
            raise ValueError(f"{self!r} is empty or unbounded: its normals do not surround 0")
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
        """Norm of an inner point plus the longest chord from it along an axis of the hull.

        At most a few times the radius and far cheaper; redundant rows do not change it.
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
        """Polar program: h(u) = min {offsets @ w : normals^T w = u, w >= 0}."""
        units, offsets = self._units
        self._shape  # noqa: B018 (raises for an empty or unbounded set)
        return ConicProgram(np.ascontiguousarray(units.T), offsets)

    def gauge(self, points: FloatArray) -> FloatArray:
        """Largest <a_i, x> / b_i over rows that are strict at some point; inf outside the span."""
        return self.facets(points).gauges

    def facets(self, points: FloatArray) -> Facets:
        """The scaled row a_i / b_i of the largest ratio."""
        hull, slack = self._shape
        rows = self._units[0][slack] / self._units[1][slack, None]
        if len(rows) == 0:
            rows = np.zeros((1, self.dimension))
        ratios = points @ rows.T
        gauges = np.maximum(ratios.max(axis=1), 0.0)
        gauges[off_span(points, hull.basis, self._scale)] = np.inf
        return Facets(gauges, rows[ratios.argmax(axis=1)])

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether no row is exceeded by more than `tolerance` times the size of the body."""
        hull, slack = self._shape
        rows, offsets = self._units[0][slack], self._units[1][slack]
        inside = (points @ rows.T <= offsets + tolerance * self._scale).all(axis=1)
        flat = max(tolerance, RANK_TOLERANCE) * self._scale
        return np.asarray(inside & ~off_hull(points, hull, flat))

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Largest t each way before an inequality fails; 0 outside the span."""
        hull, slack = self._shape
        rows, offsets = self._units[0][slack], self._units[1][slack]
        room = np.maximum(offsets - points @ rows.T, 0.0)
        return ratio_test(room, directions @ rows.T, off_span(directions, hull.basis))

    def affine_hull(self) -> AffineHull:
        """The solutions of the rows that hold with equality on the whole set."""
        return self._shape[0]

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """The inequalities."""
        return [self.normals @ variable <= self.offsets]

    def largest_gauge(self, support: SupportFunction) -> float | None:
        """Largest support value of a scaled row a_i / b_i; None for lower-dimensional polytopes."""
        if (self.offsets <= 0).any():
            return None
        return float(support(self.normals / self.offsets[:, None]).max())
