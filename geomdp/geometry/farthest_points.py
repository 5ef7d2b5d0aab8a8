"""Farthest-point order of a finite set: the first points of the order are far from each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import finite_array

#: Maps the rows of an array (b, m) of differences to an array (b,) of their norms.
Norm = Callable[[FloatArray], FloatArray]
#: Maps squared Euclidean lengths to norms, entry by entry.
Lengths = Callable[[FloatArray], FloatArray]
#: All whole numbers up to 2^53 are exact in float64. All whole numbers up to 2^24 are exact in
#: float32.
LARGEST_WHOLE, LARGEST_WHOLE_32 = 2.0**53, 2.0**24


@dataclass(frozen=True)
class FarthestPoints:
    """M points of a finite set: each one after the first is farthest from the points before it.

    `order` (M,) holds row numbers, and `radii` (M,) the distance of each from the nearest point
    before it (infinity first), which never increase; `rest` is the next, or 0 if all are listed.
    """

    order: IntArray
    radii: FloatArray
    rest: float

    def count(self, separation: float) -> int:
        """Largest N for which the first N points are at least `separation` > `rest` apart."""
        return int(np.count_nonzero(self.radii >= separation))


def farthest_points(
    points: FloatArray,
    norm: Norm,
    *,
    least: float = 0.0,
    most: int | None = None,
    of_squares: Lengths | None = None,
) -> FarthestPoints:
    """Order the rows of `points` (N, m): each next row is the farthest from the rows before it.

    The first is the point farthest from the mean. The order ends after `most` points, or when all
    others are closer than `least` to a listed point. The longest start with distances of at least t
    has at least S(2t) and at most S(t) points, for the size S(t) of the largest subset with such
    distances (Gonzalez 1985; JL-L7, JL-A2).
    """
    # `of_squares`, the norm as an increasing function of the squared Euclidean length, makes a
    # point cost O(N m) if coordinates are whole numbers.
    points = finite_array(points, "points", ndim=2)
    if len(points) == 0:
        raise ValueError("points must have at least one row, got none")
    limit = len(points) if most is None else min(most, len(points))
    following = int(norm(points - points.mean(axis=0)).argmax())
    if of_squares is not None and _is_whole(points):
        distances_from, length = _squares_from(points), of_squares
    else:
        distances_from, length = lambda row: norm(points - points[row]), np.asarray
    distances = np.full(len(points), math.inf)
    order: list[int] = []
    radii: list[float] = []
    reach = math.inf
    while len(order) < limit and reach >= least and reach > 0:
        order.append(following)
        radii.append(reach)
        np.minimum(distances, distances_from(following), out=distances)
        distances[following] = 0.0
        following = int(distances.argmax())
        reach = float(length(distances[following]))
    return FarthestPoints(np.array(order, dtype=np.int64), np.array(radii), reach)


def _is_whole(points: FloatArray) -> bool:
    """Whether coordinates are whole and so small that float64 computes exact squared distances."""
    largest = float(np.abs(points).max())
    return 4 * largest**2 * points.shape[1] < LARGEST_WHOLE and bool((points % 1 == 0).all())


def _squares_from(points: FloatArray) -> Callable[[int], FloatArray]:
    """A function from a row number to the squared distances (N,) of all points from that row."""
    largest = float(np.abs(points).max())
    if 4 * largest**2 * points.shape[1] < LARGEST_WHOLE_32:
        points = points.astype(np.float32)
    squares = np.einsum("nm,nm->n", points, points)

    def squares_from(row: int) -> FloatArray:
        products = points @ points[row]
        products *= -2
        products += squares
        products += squares[row]
        return np.asarray(products)

    return squares_from
