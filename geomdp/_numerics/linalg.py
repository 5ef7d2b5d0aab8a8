"""Linear algebra (hulls, ranks up to rounding, contrasts), farthest-point orders, bisection."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomdp._typing import BoolArray, FloatArray, IntArray
from geomdp._validation import finite_array

#: A singular value counts as zero if it is at most this share of the largest one, or of the largest
#: number from which it was computed (for 2^20 points, rounding gives up to 1e-13). It equals
#: `MEMBERSHIP_TOLERANCE`, so a body counts as flat if it is thinner than `contains` can tell.
RANK_TOLERANCE = 1e-9
#: An affine hull in R^m is found from blocks of this many points, or of 2 m points if that is more.
HULL_ROWS = 4096
#: Largest number of entries of a block of several rows of an array: 2^22 float64 are 32 MB.
BLOCK_ENTRIES = 1 << 22


def row_blocks(count: int, entries: int, limit: int | None = None) -> Iterator[slice]:
    """Slices of `count` rows with so many `entries` each, of one row or at most `limit` entries."""
    rows = max(1, (limit or BLOCK_ENTRIES) // max(1, entries))
    return (slice(start, min(start + rows, count)) for start in range(0, count, rows))


def highest_rows(rows: Any, directions: FloatArray) -> IntArray:
    """The first of the `rows` (N, m), dense or sparse, with the largest <u, row>, for each row u of
    `directions` (b, m): row numbers (b,).
    """
    winners = np.zeros(len(directions), dtype=np.int64)
    best = np.full(len(directions), -np.inf)
    for part in row_blocks(rows.shape[0], len(directions)):
        scores = np.asarray(directions @ rows[part].T)
        block = scores.argmax(axis=1)
        values = np.take_along_axis(scores, block[:, None], axis=1)[:, 0]
        better = values > best
        winners[better], best[better] = part.start + block[better], values[better]
    return winners


def rows_of_length(length: float, vectors: FloatArray) -> FloatArray:
    """The rows of `vectors` (b, m) scaled to an l2 `length`; that times e_1 for rows of 0."""
    # Squares of tiny or huge entries would underflow or overflow.
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    unit = np.divide(vectors, largest, out=np.zeros_like(vectors), where=largest > 0)
    unit[largest[:, 0] == 0, 0] = 1.0
    return np.asarray(length * unit / np.linalg.norm(unit, axis=1, keepdims=True))


def significant(singular: FloatArray, scale: float = 0.0) -> BoolArray:
    """Which singular values (r,) exceed the rounding errors of numbers up to `scale`."""
    return singular > RANK_TOLERANCE * max(float(singular.max(initial=0.0)), scale)


@dataclass(frozen=True)
class AffineHull:
    """The affine subspace {offset + basis @ c : c in R^r} of R^m."""

    offset: FloatArray  # (m,)
    basis: FloatArray  # (m, r), orthonormal columns

    @property
    def ambient(self) -> int:
        """Dimension m of the surrounding space."""
        return int(self.basis.shape[0])

    @property
    def dimension(self) -> int:
        """Dimension r of the subspace."""
        return int(self.basis.shape[1])

    @classmethod
    def whole_space(cls, dimension: int) -> AffineHull:
        return cls(np.zeros(dimension), np.eye(dimension))

    @classmethod
    def of_points(cls, points: FloatArray) -> AffineHull:
        """Affine hull of the rows of `points` (N, m), by a singular value decomposition."""
        offset = points.mean(axis=0)
        n_points, ambient = points.shape
        centred = points[:0]
        # A matrix and the triangular factor T of its QR decomposition have the same right singular
        # vectors. T is updated by blocks of at least 2 m rows: O(N m^2) in all.
        for rows in row_blocks(n_points, 1, max(HULL_ROWS, 2 * ambient)):
            centred = np.vstack([centred, points[rows] - offset])
            if len(centred) > ambient:
                centred = np.asarray(np.linalg.qr(centred, mode="r"))
        _, singular, axes = np.linalg.svd(centred, full_matrices=False)
        rank = int(significant(singular, float(np.abs(points).max(initial=0.0))).sum())
        return cls(offset, np.eye(rank) if rank == ambient else np.ascontiguousarray(axes[:rank].T))

    def coordinates(self, points: FloatArray) -> FloatArray:
        """Coordinates (b, r) of the orthogonal projections of `points` (b, m) on the subspace."""
        return (points - self.offset) @ self.basis

    def embed(self, coordinates: FloatArray) -> FloatArray:
        """Points (b, m) with the given `coordinates` (b, r)."""
        return self.offset + coordinates @ self.basis.T

    def residual(self, points: FloatArray) -> FloatArray:
        """Euclidean distances (b,) of `points` (b, m) from the subspace."""
        return np.asarray(np.linalg.norm(points - self.embed(self.coordinates(points)), axis=1))


def svec(matrices: FloatArray) -> FloatArray:
    """Upper triangles (..., d (d + 1) / 2) by rows, scaled so that <svec(A), svec(B)> = tr(A B)."""
    rows, columns = np.triu_indices(matrices.shape[-1])
    return matrices[..., rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))


def unsvec(vectors: FloatArray) -> FloatArray:
    """Symmetric matrices (..., d, d) of half-vectorisations; ``ValueError`` for wrong lengths."""
    length = vectors.shape[-1]
    size = (math.isqrt(8 * length + 1) - 1) // 2
    if size * (size + 1) // 2 != length:
        raise ValueError(f"vectors must have length d (d + 1) / 2, got {length}")
    rows, columns = np.triu_indices(size)
    entries = vectors / np.where(rows == columns, 1.0, np.sqrt(2.0))
    matrices = np.empty((*vectors.shape[:-1], size, size))
    matrices[..., rows, columns] = entries
    matrices[..., columns, rows] = entries
    return matrices


def above(matrices: FloatArray) -> FloatArray:
    """Entries (..., p (p - 1) / 2) above the diagonal of `matrices` (..., p, p), row by row."""
    rows, columns = np.triu_indices(matrices.shape[-1], 1)
    return np.asarray(matrices[..., rows, columns])


def symmetric(entries: FloatArray, diagonal: float = 0.0) -> FloatArray:
    """Symmetric matrices (..., p, p) with these `entries` above the diagonal."""
    size = (math.isqrt(8 * entries.shape[-1] + 1) + 1) // 2
    rows, columns = np.triu_indices(size, 1)
    matrices = np.zeros((*entries.shape[:-1], size, size))
    matrices[..., rows, columns] = matrices[..., columns, rows] = entries
    matrices[..., np.arange(size), np.arange(size)] = diagonal
    return matrices


def is_diagonal(matrix: FloatArray) -> bool:
    return bool(np.count_nonzero(matrix) == np.count_nonzero(np.diag(matrix)))


def conjugate_gradients(
    product: Callable[[FloatArray], FloatArray], target: FloatArray, goal: float, most: int
) -> FloatArray:
    """x (n,) with A x near `target`, for the product with a positive definite A, until the residual
    is at most `goal` long, or after `most` products.
    """
    found, residual, direction = np.zeros_like(target), target, target
    square = float(target @ target)
    for _ in range(most):
        if math.sqrt(square) <= goal:
            break
        image = product(direction)
        length = square / float(direction @ image)
        found = found + length * direction
        residual = residual - length * image
        new_square = float(residual @ residual)
        direction, square = residual + new_square / square * direction, new_square
    return found


def spread(cells: FloatArray, live: BoolArray) -> FloatArray:
    """All cells (..., m) from those that are `live` (m,); the others are 0."""
    found = np.zeros((*cells.shape[:-1], len(live)))
    found[..., live] = cells
    return found


def zero_sum_basis(size: int) -> FloatArray:
    """Orthonormal Helmert contrasts (size, size - 1): column j compares entries 0..j with j + 1."""
    j = np.arange(1.0, size)
    # Column j - 1 is (1, ..., 1, -j, 0, ...), divided by its norm (j + j^2)^(1/2).
    ones = np.triu(np.ones((size, size - 1)))
    return np.asarray((ones - np.eye(size, size - 1, -1) * j) / np.sqrt(j * (j + 1)))


#: Maps the rows of an array (b, m) of differences to an array (b,) of their norms.
Norm = Callable[[FloatArray], FloatArray]
#: Maps squared Euclidean lengths to norms, entry by entry.
Lengths = Callable[[FloatArray], FloatArray]
#: All whole numbers up to these are exact, in float64 and in float32.
LARGEST_WHOLE, LARGEST_WHOLE_32 = 2.0**53, 2.0**24


@dataclass(frozen=True)
class FarthestPoints:
    """Row numbers `order` (M,) of points, each farthest from those before it, and the distances
    `radii` (M,), which never increase; `rest` is the next, or 0 if all are listed.
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
    """Order the rows of `points` (N, m): each next row is the farthest from the rows before it, the
    first from the mean, up to `most`, or until all others are closer than `least` to a listed one.

    The longest start with distances of at least t has at least S(2t) and at most S(t) points, for
    the size S(t) of the largest subset with such distances (Gonzalez 1985; JL-L7, JL-A2).
    """
    # `of_squares`, the norm as a function of squared lengths, makes whole points cost O(N m).
    points = finite_array(points, "points", ndim=2)
    if len(points) == 0:
        raise ValueError("points must have at least one row, got none")
    limit = len(points) if most is None else min(most, len(points))
    following = int(norm(points - points.mean(axis=0)).argmax())
    distances_from, length = _squares_from(points), of_squares
    if distances_from is None or length is None:
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


def _squares_from(points: FloatArray) -> Callable[[int], FloatArray] | None:
    """A function from a row number to the exact squared distances (N,) of all points from that row;
    None unless coordinates are whole, and so small that float64 is exact.
    """
    largest = 4 * float(np.abs(points).max()) ** 2 * points.shape[1]
    if largest >= LARGEST_WHOLE or (points % 1).any():
        return None
    if largest < LARGEST_WHOLE_32:
        points = points.astype(np.float32)
    squares = np.einsum("nm,nm->n", points, points)

    def squares_from(row: int) -> FloatArray:
        products = points @ points[row]
        products *= -2
        products += squares
        products += squares[row]
        return np.asarray(products)

    return squares_from


# Bisection for the largest or smallest parameter, real or whole, that satisfies an inequality, as
# computed, in spite of rounding: it was tested there, but for an end returned by `least_whole`.

#: `smallest_accuracy` stops if the length of the interval is at most this share of the upper end.
ACCURACY_TOLERANCE = 1e-12


def largest_at_most(
    function: Callable[[float], float], target: float, low: float, high: float
) -> float:
    """Largest x in [low, high] with f(x) <= target; f never decreases; ``ValueError`` for none."""
    if function(low) > target:
        raise ValueError(f"function({low!r}) must be at most {target!r}, got {function(low)!r}")
    if function(high) <= target:
        return high
    return bracket(lambda x: function(x) > target, low, high)[0]


def smallest_accuracy(enough: Callable[[float], bool]) -> float | None:
    """The smallest alpha in (0, 1] with enough(alpha), too large by at most a relative 1e-12; None
    if there is none. `enough` must not change from true to false.
    """
    return bracket(enough, 0.0, 1.0, ACCURACY_TOLERANCE)[1] if enough(1.0) else None


def least_whole(enough: Callable[[int], bool], low: int, high: int) -> int:
    """The least whole number in (low, high] for which `enough`, which is called at neither end, is
    true; it must be true at `high`, and not change from true to false.
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def bracket(
    above: Callable[[float], bool], low: float, high: float, tolerance: float = 0.0
) -> tuple[float, float]:
    """Halve [low, high] until its ends are adjacent floats, or `tolerance` * |high| apart, so that
    `above` stays false at the low end and true at the high end.
    """
    while high - low > tolerance * abs(high) and low < (middle := low + (high - low) / 2) < high:
        low, high = (low, middle) if above(middle) else (middle, high)
    return low, high
