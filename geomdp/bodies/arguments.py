"""Checks on what bodies are built from and called with."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import batch, finite_array, vector

#: A method of `Body`, such as `Body.chord`.
Verb = Callable[..., Any]

#: Generous bound on the rounding error of a few float64 operations on numbers of modulus 1:
#: thousands of units in the last place (2e-16).
ROUNDING = 1e-12


def frozen_array(values: npt.ArrayLike, name: str, ndim: int) -> FloatArray:
    """Return a read-only float64 copy of `values` with `ndim` axes, all entries finite."""
    array = finite_array(values, name, ndim).copy()
    array.setflags(write=False)
    return array


def rays(
    points: npt.ArrayLike, directions: npt.ArrayLike, dimension: int
) -> tuple[FloatArray, FloatArray]:
    """Return points and nonzero directions as float64 arrays, both (b, dimension)."""
    points = batch(points, dimension, "points")
    directions = batch(directions, dimension, "directions")
    if points.shape != directions.shape:
        raise ValueError(
            f"points and directions must have one shape, got {points.shape} and {directions.shape}"
        )
    zero = ~directions.any(axis=1)
    if zero.any():
        raise ValueError(f"directions must not be 0, got 0 in row {int(np.argmax(zero))}")
    return points, directions


def off_span(vectors: FloatArray, basis: FloatArray, scale: float = 0.0) -> BoolArray:
    """Whether rows of (b, m) are outside the span of the orthonormal columns `basis`.

    A residual counts from a share of 1e-9 of the row's norm. For points, `scale` is the size of the
    numbers they were computed from, whose rounding is allowed too.
    """
    if basis.shape[0] == basis.shape[1]:
        return np.zeros(len(vectors), dtype=bool)
    residual = np.linalg.norm(vectors - (vectors @ basis) @ basis.T, axis=1)
    slack = np.maximum(RANK_TOLERANCE * np.linalg.norm(vectors, axis=1), ROUNDING * scale)
    return np.asarray(residual > slack)


def off_hull(points: FloatArray, hull: AffineHull, slack: float) -> BoolArray:
    """Whether rows of (b, m) are further than `slack` from the affine subspace `hull`."""
    if hull.ambient == hull.dimension:
        return np.zeros(len(points), dtype=bool)
    return np.asarray(hull.residual(points) > slack)


def holds_origin(hull: AffineHull, scale: float) -> bool:
    """Whether the affine subspace passes through 0, up to rounding relative to `scale`."""
    residual = float(hull.residual(np.zeros((1, hull.ambient)))[0])
    return residual <= RANK_TOLERANCE * scale


def ratio_test(
    room: FloatArray, slopes: FloatArray, outside: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Ends (lo, hi) of {t : t slopes <= room} for rows (b, F), room >= 0; 0 for rows `outside`."""
    ends = []
    for way in (-slopes, slopes):
        times = np.full(room.shape, np.inf)
        np.divide(room, way, out=times, where=way > 0)
        ends.append(np.where(outside, 0.0, times.min(axis=1, initial=np.inf)))
    return -ends[0], ends[1]


def _on_rows(name: str) -> Callable[[Verb], Verb]:
    """Check of a verb whose first argument is a batch (b, m) called `name`."""

    def checked(verb: Verb) -> Verb:
        @functools.wraps(verb)
        def call(body: Any, rows: FloatArray, *more: float, **named: float) -> Any:
            return verb(body, batch(rows, body.dimension, name), *more, **named)

        return call

    return checked


def _on_point(verb: Verb) -> Verb:
    @functools.wraps(verb)
    def call(body: Any, point: FloatArray) -> Any:
        return verb(body, vector(point, body.dimension, "point"))

    return call


def _on_rays(verb: Verb) -> Verb:
    @functools.wraps(verb)
    def call(body: Any, points: FloatArray, directions: FloatArray) -> Any:
        return verb(body, *rays(points, directions, body.dimension))

    return call


#: How the arguments of a body's own verbs are checked, by the names of the verbs.
CHECKS: dict[str, Callable[[Verb], Verb]] = {
    "support": _on_rows("directions"),
    "breadth": _on_rows("directions"),
    "extreme_point": _on_rows("directions"),
    "gauge": _on_rows("points"),
    "facets": _on_rows("points"),
    "contains": _on_rows("points"),
    "project": _on_rows("points"),
    "separate": _on_point,
    "chord": _on_rays,
}
