"""Farthest-point order of a finite set: the first points of the order are far from each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import finite_array, whole

#: Maps the rows of an array (b, m) of differences to an array (b,) of their norms.
Norm = Callable[[FloatArray], FloatArray]
#: Maps squared Euclidean lengths to norms, entry by entry.
Lengths = Callable[[FloatArray], FloatArray]
#: All whole numbers up to 2^53 are exact in float64. All whole numbers up to 2^24 are exact in
#: float32.
LARGEST_WHOLE, LARGEST_WHOLE_32 = 2.0**53, 2.0**24


@dataclass(frozen=True)
class FarthestPoints:
    """M points of a finite set in farthest-point order.

    Among all points of the set, each point after the first is the farthest from the points before
    it.

    Parameters
    ----------
    order : (M,) array of int
        Row numbers of the points, in this order.
    radii : (M,) array
        Distance of each point from the nearest point before it; infinity for the first point. These
        numbers never increase.
    rest : float
        Largest distance of any point of the set from the nearest of the M points; 0 if all points
        are listed.

    Notes
    -----
    The first N points are pairwise at least `radii[N - 1]` apart. Every point of the set is within
    `radii[N]` of one of these N points; for N = M, read `rest` in place of `radii[N]`. For any t
    with radii[N] < t <= radii[N - 1], the first N points are therefore a maximal subset with
    pairwise distances of at least t.
    """

    order: IntArray
    radii: FloatArray
    rest: float

    def count(self, separation: float) -> int:
        """Largest N for which the first N points are at least `separation` > 0 apart.

        Raises
        ------
        ValueError
            If `separation` is not above 0. If the order ended before the distances fell below
            `separation`.
        """
        if not separation > 0 or separation <= self.rest:
            raise ValueError(
                f"separation must be above {max(self.rest, 0.0):g}, the distance at which the "
                f"order ends, got {separation!r}"
            )
        return int(np.count_nonzero(self.radii >= separation))


def farthest_points(
    points: FloatArray,
    norm: Norm,
    *,
    least: float = 0.0,
    most: int | None = None,
    of_squares: Lengths | None = None,
) -> FarthestPoints:
    """Order the rows of `points`: each next row has the largest distance from the rows before it.

    The order starts with the point farthest from the mean. Call a set t-separated if its points are
    pairwise at least t apart. Let S(t) be the size of the largest t-separated subset of the rows.
    The longest t-separated start of the complete order has at least S(2t) and at most S(t) points.

    Parameters
    ----------
    points : (N, m) array
        The set.
    norm : callable
        Maps the rows of an array (b, m) of differences to an array (b,) of their norms.
    least : float
        The order ends when each point that is not listed has a listed point at distance 0, or at a
        distance below this number.
    most : int, optional
        Largest number of points listed.
    of_squares : callable, optional
        The norm as an increasing function of the squared Euclidean length, if there is such a
        function. The function saves time if all coordinates are whole numbers small enough for
        exact products: each listed point then costs one product of a matrix with a vector. Up to
        rounding of norms, the result is the same.

    Returns
    -------
    FarthestPoints

    Raises
    ------
    ValueError
        If there are no points, a point is not finite, or `most` is not a whole number above 0.

    Notes
    -----
    Cost for each point listed: one call of `norm` for N differences. If `of_squares` is used, the
    cost is O(N m).

    References
    ----------
    Gonzalez 1985; formula sheet JL-L7, JL-A2.
    """
    points = finite_array(points, "points", ndim=2)
    if len(points) == 0:
        raise ValueError("points must have at least one row, got none")
    limit = len(points) if most is None else min(whole(most, "most"), len(points))
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
    """A function that maps a row number to the squared distances (N,) of all points from that row.

    A call computes one product of the matrix of points with a vector.
    """
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
