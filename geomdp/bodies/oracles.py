"""Arguments, results and errors of the verbs (methods) of bodies."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import batch, finite_array, real_number, vector


class MissingOracle(TypeError):  # noqa: N818 (a name given by the design)
    """A body was asked for a verb that it does not implement and that cannot be derived.

    Examples
    --------
    >>> import geomdp as gd
    >>> try:
    ...     gd.bodies.LpBall(exponent=3, dimension=2).project([[1.0, 1.0]])
    ... except gd.MissingOracle as error:
    ...     print(error)
    LpBall has no project: it would need a closed form (see geomdp.project)
    """

    def __init__(self, body: object, verb: str, needed: str) -> None:
        super().__init__(f"{type(body).__name__} has no {verb}: it would need {needed}")


@dataclass(frozen=True)
class Halfspace:
    """The set {x : <normal, x> <= offset} in R^m.

    Parameters
    ----------
    normal : (m,) array
        Any vector but 0; its length is not normalised.
    offset : float
        Largest inner product of `normal` with points of the halfspace.

    Examples
    --------
    >>> import geomdp as gd
    >>> found = gd.bodies.Ball(2).separate([3.0, 4.0])
    >>> found.normal.round(6).tolist(), round(found.offset, 6)
    ([2.4, 3.2], 4.0)
    """

    normal: FloatArray
    offset: float


@dataclass(frozen=True)
class Facets:
    """Where rays from 0 through points leave a body K, with a supporting halfspace at each exit."""

    gauges: FloatArray
    normals: FloatArray


#: A method of `Body`, such as `Body.chord`.
Verb = Callable[..., Any]

#: A function that maps directions (b, m) to values (b,) of a support function.
SupportFunction = Callable[[FloatArray], FloatArray]
#: Generous bound on the rounding error of a few float64 operations on numbers of modulus 1. It is
#: thousands of units in the last place (2e-16).
ROUNDING = 1e-12


def freeze(body: object, name: str, ndim: int) -> FloatArray:
    """Replace the field `name` of a dataclass by a read-only copy, checked to be finite."""
    array = finite_array(getattr(body, name), name, ndim).copy()
    array.setflags(write=False)
    object.__setattr__(body, name, array)
    return array


def check_all_above_0(values: FloatArray, name: str) -> None:
    if not values.size:
        raise ValueError(f"{name} must hold at least one number above 0, got none")
    if (values <= 0).any():
        first = int(np.argmax(values <= 0))
        raise ValueError(f"{name} must be above 0, got {values[first]} at index {first}")


def off_span(vectors: FloatArray, basis: FloatArray, scale: float = 0.0) -> BoolArray:
    """Whether each row of `vectors` is off the span of the orthonormal `basis` by 1e-9 of its norm
    and `ROUNDING` times `scale`, the size of the numbers it was computed from.
    """
    if basis.shape[0] == basis.shape[1]:
        return np.zeros(len(vectors), dtype=bool)
    residual = np.linalg.norm(vectors - (vectors @ basis) @ basis.T, axis=1)
    slack = np.maximum(RANK_TOLERANCE * np.linalg.norm(vectors, axis=1), ROUNDING * scale)
    return np.asarray(residual > slack)


def off_hull(points: FloatArray, hull: AffineHull, slack: float) -> BoolArray:
    """Whether each row of `points` is farther than `slack` from the affine subspace `hull`."""
    if hull.ambient == hull.dimension:
        return np.zeros(len(points), dtype=bool)
    return np.asarray(hull.residual(points) > slack)


def holds_origin(hull: AffineHull, scale: float) -> bool:
    """Whether the affine subspace `hull` contains 0, up to rounding relative to `scale`."""
    residual = float(hull.residual(np.zeros((1, hull.ambient)))[0])
    return residual <= RANK_TOLERANCE * scale


def facets_of_rows(points: FloatArray, rows: FloatArray, outside: BoolArray) -> Facets:
    """Facets at `points` of {x : rows @ x <= 1}, with the gauge inf where `outside`."""
    if len(rows) == 0:  # a single point
        rows = np.zeros((1, points.shape[1]))
    ratios = points @ rows.T
    gauges = np.where(outside, np.inf, np.maximum(ratios.max(axis=1), 0.0))
    return Facets(gauges, rows[ratios.argmax(axis=1)])


def ratio_test(
    room: FloatArray, slopes: FloatArray, outside: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Ends lo, hi (b,) of {t : t slopes <= room} for `room` >= 0 (b, F); both 0 if `outside`."""
    ends = []
    for way in (-slopes, slopes):
        times = np.full(room.shape, np.inf)
        np.divide(room, way, out=times, where=way > 0)
        ends.append(np.where(outside, 0.0, times.min(axis=1, initial=np.inf)))
    return -ends[0], ends[1]


# Exits from {y : sum_i max(y_i, 0) <= level}, and projections on simplices, by sorting.


def exit_time(values: FloatArray, slopes: FloatArray, level: float) -> FloatArray:
    """Largest t with sum_i (y_i + t w_i)_+ <= level, or inf, for rows y, w (b, k), by sorting."""
    active = (values > 0) | ((values == 0) & (slopes > 0))
    moving = np.where(values > 0, slopes < 0, (values < 0) & (slopes > 0))
    times = np.full(values.shape, np.inf)
    np.divide(-values, slopes, out=times, where=moving)
    order = np.argsort(times, axis=1)
    times = np.take_along_axis(times, order, axis=1)
    jumps = np.take_along_axis(np.where(moving, np.abs(slopes), 0.0), order, axis=1)
    reached = np.isfinite(times)
    times = np.where(reached, times, 0.0)
    # At a breakpoint t, some y_i + t w_i changes its sign. The piece after breakpoint j is the sum
    # of the y_i + t w_i that are positive there: its slope is in `rises`, its value at t = 0 in
    # `heights`.
    slope = np.where(active, slopes, 0.0).sum(axis=1, keepdims=True)
    rises = np.hstack([slope, slope + np.cumsum(jumps, axis=1)])
    height = np.where(active, values, 0.0).sum(axis=1, keepdims=True)
    heights = np.hstack([height, height - np.cumsum(jumps * times, axis=1)])
    usable = np.hstack([np.ones((len(values), 1), dtype=bool), reached]) & (rises > 0)
    bounds = np.full(rises.shape, np.inf)
    np.divide(level - heights, rises, out=bounds, where=usable)
    return np.asarray(np.maximum(bounds.min(axis=1), 0.0))


def nearest_in_corner(values: FloatArray, level: float) -> FloatArray:
    """The points of {x >= 0, sum x <= level} nearest to the rows of `values` (b, k)."""
    nearest = np.maximum(values, 0.0)
    outside = nearest.sum(axis=1) > level
    if outside.any():
        nearest[outside] = nearest_in_simplex(values[outside], level)
    return nearest


def nearest_in_simplex(values: FloatArray, level: float) -> FloatArray:
    """The points of {x >= 0, sum x = level} nearest to `values` (b, k), at O(k log k) a row."""
    ordered = -np.sort(-values, axis=1)
    counts = np.arange(1, values.shape[1] + 1)
    shifts = (np.cumsum(ordered, axis=1) - level) / counts
    kept = (ordered > shifts).sum(axis=1)
    tau = np.take_along_axis(shifts, kept[:, None] - 1, axis=1)
    return np.asarray(np.maximum(values - tau, 0.0))


def check_arguments(cls: type) -> None:
    """Wrap the methods that `cls` itself defines, so that a call checks its arguments first."""
    for name in _ARGUMENTS:
        if name in vars(cls):
            setattr(cls, name, _checked(vars(cls)[name], name))


def _checked(verb: Verb, name: str) -> Verb:
    signature = inspect.signature(verb)

    @functools.wraps(verb)
    def call(body: Any, *arguments: Any, **named: Any) -> Any:
        if named:
            # Put named arguments into the order of the parameters, so that they are checked too.
            arguments = signature.bind(body, *arguments, **named).args[1:]
        checks = zip(_ARGUMENTS[name], arguments, strict=False)
        checked = [_CHECKS[kind](value, body.dimension, kind) for kind, value in checks]
        if name in ("gauge", "facets") and not body._has_gauge:
            raise ValueError(f"{body!r} has no gauge, because 0 is not in its relative interior")
        if name == "chord":
            _check_rays(*checked)
        return verb(body, *checked, *arguments[len(checked) :])

    return call


def _tolerance(value: float, _: int, name: str) -> float:
    if not 0 <= real_number(value) < math.inf:  # also refuses NaN
        raise ValueError(f"{name} must be finite and at least 0, got {value!r}")
    return value


def _check_rays(points: FloatArray, directions: FloatArray) -> None:
    if points.shape != directions.shape:
        raise ValueError(
            f"points and directions must have the same shape, got {points.shape} and "
            f"{directions.shape}"
        )
    zero = ~directions.any(axis=1)
    if zero.any():
        raise ValueError(f"directions must not be 0, got 0 in row {int(np.argmax(zero))}")


#: For each method of `Body` whose arguments are checked, what they are.
_ARGUMENTS = {
    "support": ("directions",),
    "breadth": ("directions",),
    "extreme_point": ("directions",),
    "gauge": ("points",),
    "facets": ("points",),
    "contains": ("points", "tolerance"),
    "project": ("points",),
    "separate": ("point",),
    "chord": ("points", "directions"),
}
#: The check of each kind of argument.
_CHECKS: dict[str, Callable[[Any, int, str], Any]] = {
    "points": batch,
    "directions": batch,
    "point": vector,
    "tolerance": _tolerance,
}
