"""Nearest point of a hull by column generation: an active-set method on a small table of points.

For a target b and the current point x, the gain of a point p is <b - x, p - x>. A round improves
the active set on a table of points with large gains, until all gains there are a small share of the
largest gain g of all points, and then computes all gains anew (a pricing).

If g is within the tolerance of `search`, the search ends once g is below half of the squared
distance (a hyperplane separates the target from the hull), the target is reached up to rounding, or
`DECIDING_ROUNDS` more pricings are done. It also ends if rounding stalls g and the distance.

The active-set method is that of Wolfe (1976), "Finding the nearest point in a polytope" (X-MNP). It
keeps a set of points, the members, and x, the point nearest to b in their hull, with positive
weights. In an exchange, a point with positive gain joins. While the nearest point of the new affine
hull has a negative weight, x moves towards it until the first weight vanishes, and this member
leaves. The distance falls with every exchange, so no set of members occurs twice. A sweep computes
the gains of the table once, and tries the points with the largest first.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from geomdp._numerics.compilation import copy_into, numba
from geomdp._typing import FloatArray, IntArray
from geomdp.bodies.compiled import short_product
from geomdp.bodies.point_sets import Columns, VertexColumns

# QR factors of an affinely independent set of points of norm about 1, updated when a point joins or
# leaves. The columns of M = Q R (d+1, k) are the lifted points (p_j, 1). The point of the affine
# hull nearest to a target b in R^d is sum_j w_j p_j, where
#
#     R w = Q^T (b, 0) + nu Q^T e,   e = (0, .., 0, 1),
#
# and nu makes sum_j w_j = e^T M w = 1. Without normal equations, the nearest point is accurate even
# if some points are nearly equal.

#: A lifted point nearer than this to the span of the others counts as dependent. It is just above
#: the rounding error of one orthogonalisation pass, 45 machine epsilons.
DEPENDENT = 1e-14
#: If a pass shortens a vector to this share of its length or less, another pass follows. A share
#: near 1/sqrt 2 keeps Q orthonormal to machine precision (Daniel, Gragg, Kaufman and Stewart 1976).
CANCELLATION = 0.7
#: Largest number of passes, after which a vector counts as dependent; two suffice for others.
PASSES = 3


class Factor(NamedTuple):
    """The factors Q and R, the members p_1..p_k and their convex weights, k = `size[0]`."""

    basis: FloatArray  # (capacity, d+1): rows are the columns of Q
    triangle: FloatArray  # (capacity, capacity): R
    image: FloatArray  # (capacity,): Q^T (b, 0)
    target: FloatArray  # (d+1,): (b, 0)
    members: IntArray  # (capacity,): row of each point in the table
    weights: FloatArray  # (capacity,)
    size: IntArray  # (1,): number of points k


def empty_factor(target: FloatArray, capacity: int) -> Factor:
    """Factors of no points, with room for `capacity` points and with the `target` b (d,)."""
    return Factor(
        basis=np.zeros((capacity, len(target) + 1)),
        triangle=np.zeros((capacity, capacity)),
        image=np.zeros(capacity),
        target=np.append(target, 0.0),
        members=np.zeros(capacity, dtype=np.int64),
        weights=np.zeros(capacity),
        size=np.zeros(1, dtype=np.int64),
    )


def with_capacity(factor: Factor, capacity: int) -> Factor:
    """Return `factor`, or a larger copy if `factor` has no room for `capacity` points."""
    old = len(factor.members)
    if capacity <= old:
        return factor
    grown = empty_factor(factor.target[:-1], max(capacity, 2 * old))
    grown.basis[:old] = factor.basis
    grown.triangle[:old, :old] = factor.triangle
    for name in ("image", "members", "weights"):
        getattr(grown, name)[:old] = getattr(factor, name)
    grown.size[0] = factor.size[0]
    return grown


def load(factor: Factor, points: FloatArray, weights: FloatArray) -> None:
    """Make independent rows of `points` (n, d+1) the members, with `weights` scaled to sum 1."""
    factor.size[0] = 0
    for row in range(len(points)):
        insert(factor, points, row)
    kept = weights[factor.members[: factor.size[0]]]
    factor.weights[: factor.size[0]] = kept / kept.sum()


@numba.njit(cache=True)
def insert(factor: Factor, points: FloatArray, row: int) -> bool:
    """Append the lifted point points[row] with weight 0; False if dependent or without room."""
    k = factor.size[0]
    if k == factor.basis.shape[0]:
        return False
    basis = factor.basis[:k]
    rest = points[row].copy()
    length = np.sqrt(np.dot(rest, rest))
    coefficients = np.zeros(k)
    settled = False
    for _ in range(PASSES):
        part = np.dot(basis, rest)
        rest -= np.dot(part, basis)
        coefficients += part
        shorter = np.sqrt(np.dot(rest, rest))
        settled = shorter > CANCELLATION * length
        length = shorter
        if settled or length <= DEPENDENT:
            break
    if not settled or length <= DEPENDENT:
        return False
    copy_into(factor.triangle[:k, k], coefficients)
    factor.triangle[k, k] = length
    copy_into(factor.basis[k], rest / length)
    factor.image[k] = np.dot(factor.basis[k], factor.target)
    factor.members[k] = row
    factor.weights[k] = 0.0
    factor.size[0] = k + 1
    return True


@numba.njit(cache=True)
def delete(factor: Factor, position: int) -> None:
    """Drop the point at `position`; Givens rotations make R triangular again."""
    k = factor.size[0]
    triangle, basis, image = factor.triangle, factor.basis, factor.image
    for j in range(position, k - 1):
        factor.members[j] = factor.members[j + 1]
        factor.weights[j] = factor.weights[j + 1]
    for i in range(k):
        for j in range(max(position, i - 1), k - 1):
            triangle[i, j] = triangle[i, j + 1]
    for i in range(position, k - 1):
        radius = np.hypot(triangle[i, i], triangle[i + 1, i])
        cosine, sine = triangle[i, i] / radius, triangle[i + 1, i] / radius
        _rotate(triangle[i, i : k - 1], triangle[i + 1, i : k - 1], cosine, sine)
        _rotate(basis[i], basis[i + 1], cosine, sine)
        _rotate(image[i : i + 1], image[i + 1 : i + 2], cosine, sine)
    factor.size[0] = k - 1


@numba.njit(cache=True)
def _rotate(first, second, cosine, sine):  # type: ignore[no-untyped-def]
    """Rotate two rows in place; a function of two rows is compiled to vector instructions."""
    for j in range(len(first)):
        upper, lower = first[j], second[j]
        first[j] = cosine * upper + sine * lower
        second[j] = cosine * lower - sine * upper


@numba.njit(cache=True)
def affine_weights(factor: Factor) -> FloatArray:
    """Weights (k,) of the point of the affine hull nearest to the target, which sum to 1 up to a
    rounding error proportional to the largest weight.
    """
    k = factor.size[0]
    last = factor.basis[:k, -1].copy()
    image = factor.image[:k]
    shift = (1.0 - np.dot(last, image)) / np.dot(last, last)
    result: FloatArray = image + shift * last
    for i in range(k - 1, -1, -1):
        row = factor.triangle[i]
        result[i] = (result[i] - short_product(row[i + 1 : k], result[i + 1 : k])) / row[i]
    return result


# Wolfe's method.

#: Weights up to this value count as zero, because rounding errors move x by more.
ZERO_WEIGHT = 1e-15
#: The search gives up after this number of stalled sweeps (or rounds) in a row.
PATIENCE = 2
#: A sweep makes progress if its largest gain is below this share of that of the last such sweep, or
#: if the squared distance falls by more than this share, some five machine epsilons.
GAIN_DROP, DISTANCE_DROP = 0.9, 1e-15
#: A point joins in a sweep only if its gain is above this share of the largest.
JOINING_SHARE = 0.3
#: Exchanges per dimension after which a call returns the current point; most need 2 to 4.
EXCHANGES_PER_DIMENSION = 50


@numba.njit(cache=True)
def nearest_of_members(factor: Factor, points: FloatArray) -> FloatArray:
    """The current point x = sum_j w_j p_j of the members p_j, as a lifted point (d+1,)."""
    result = np.zeros(points.shape[1])
    for position in range(factor.size[0]):
        weight = factor.weights[position]
        row = points[factor.members[position]]
        for j in range(len(result)):
            result[j] += weight * row[j]
    return result


@numba.njit(cache=True)
def residual_at(factor: Factor, x: FloatArray) -> FloatArray:
    residual = factor.target - x
    residual[-1] = 0.0
    return residual


@numba.njit(cache=True)
def settle(factor: Factor) -> bool:
    """Move x to the nearest point of the affine hull, dropping members; return whether x moved."""
    moved = False
    while True:
        k = factor.size[0]
        goal = affine_weights(factor)
        step, blocking = 1.0, -1
        for i in range(k):
            if goal[i] <= ZERO_WEIGHT:
                fall = factor.weights[i] - goal[i]
                share = min(factor.weights[i] / fall, 1.0) if fall > 0.0 else 0.0
                if blocking < 0 or share < step:
                    step, blocking = share, i
        moved = moved or step > 0.0
        for i in range(k):
            factor.weights[i] += step * (goal[i] - factor.weights[i])
        if blocking >= 0:
            factor.weights[blocking] = 0.0
            for i in range(k - 1, -1, -1):
                if factor.weights[i] <= ZERO_WEIGHT and goal[i] <= ZERO_WEIGHT:
                    delete(factor, i)
        total = factor.weights[: factor.size[0]].sum()
        for i in range(factor.size[0]):
            factor.weights[i] /= total
        if blocking < 0:
            return moved


@numba.njit(cache=True)
def improve(factor: Factor, points: FloatArray, tolerance: float) -> int:
    """Exchange members until no gain is above `tolerance` or the search ends; count exchanges."""
    limit = EXCHANGES_PER_DIMENSION * points.shape[1]
    exchanges, stalled = 0, 0
    lowest_gain, lowest_distance = np.inf, np.inf
    while stalled < PATIENCE and exchanges < limit:
        x = nearest_of_members(factor, points)
        residual = residual_at(factor, x)
        gains = np.dot(points, residual) - np.dot(x, residual)
        largest, distance = gains.max(), np.dot(residual, residual)
        if largest <= tolerance:
            break
        stalled += 1
        if largest < GAIN_DROP * lowest_gain:
            lowest_gain, stalled = largest, 0
        if distance < (1.0 - DISTANCE_DROP) * lowest_distance:
            lowest_distance, stalled = distance, 0
        threshold, moved = max(tolerance, JOINING_SHARE * largest), False
        for row in np.argsort(-gains):
            if gains[row] <= threshold:
                break
            if np.dot(points[row] - x, residual) > threshold and insert(factor, points, row):
                exchanges += 1
                if settle(factor):
                    moved = True
                    x = nearest_of_members(factor, points)
                    residual = residual_at(factor, x)
        if not moved:
            break
    return exchanges


# Column generation.

#: Points taken into the table per pricing: the dimension divided by the first number, but at least
#: the second.
DIMENSIONS_PER_POINT, SMALLEST_TABLE = 4, 32
#: The active set is improved until gains on the table are at most this share of the largest gain.
INNER_SHARE = 0.03
#: Largest number of rounds, within the tolerance, that decide whether the target is inside.
DECIDING_ROUNDS = 50
#: If the largest gain is below this share of the squared distance, the target is outside. In exact
#: arithmetic any share of at most 1 would prove this; for a vertex, rounding can make it 1.
SEPARATED = 0.5
#: The target counts as reached at a distance of REACHED * (s + t) + ROUNDING * c: s is the scale of
#: the `Columns`, t the distance of the target from their centre, and c the norm of the centre.
#: These are the rounding errors of a sum of a few hundred terms, and of the centre's coordinates.
REACHED, ROUNDING = 1e-14, 4.4e-16
#: The unit of length of a table is reset if the scale exceeds it by this factor.
OUTGROWN = 4.0


#: Keys of points in `Columns`, with the weights of a convex combination of these points.
Combination = tuple[IntArray, FloatArray]


@dataclass(frozen=True)
class Found:
    """The nearest point, as convex `weights` of `keys`; `reached` if it is the target."""

    keys: IntArray
    weights: FloatArray
    priced: IntArray
    reached: bool
    rounds: int


class Table:
    """A table of points, in lifted coordinates ((p - centre) / unit, 1), and its active set."""

    def __init__(self, columns: Columns, target: FloatArray) -> None:
        self._columns, self._target = columns, target
        self._keys = np.zeros(0, dtype=np.int64)
        self._points = np.zeros((0, len(target) + 1))
        self._set_unit(columns.scale)

    def _set_unit(self, unit: float) -> None:
        self._unit = unit
        self._factor: Factor = empty_factor((self._target - self._columns.centre) / unit, 1)

    def _lift(self, keys: IntArray) -> FloatArray:
        points = np.ones((len(keys), len(self._target) + 1))
        points[:, :-1] = self._columns.offsets(keys) / self._unit
        return points

    def load(self, keys: IntArray, weights: FloatArray) -> None:
        """Start from the points `keys` with convex `weights`; dependent points are dropped."""
        self._keys, self._points = keys, self._lift(keys)
        room = min(len(keys), len(self._target) + 1)
        self._factor = with_capacity(self._factor, room)
        load(self._factor, self._points, weights)
        settle(self._factor)

    def begin(self, keys: IntArray) -> None:
        """Start from the point among `keys` nearest to the target, and improve with the others."""
        offsets = self._columns.offsets(keys)
        residuals = self._target - self._columns.centre - offsets
        nearest = int(np.argmin(np.einsum("nd,nd->n", residuals, residuals)))
        self.load(keys[[nearest]], np.ones(1))
        gain = float(((offsets - offsets[nearest]) @ residuals[nearest]).max())
        if gain > 0:
            self.take(keys, offsets, INNER_SHARE * gain)

    def members(self) -> Combination:
        size = self._factor.size[0]
        return self._keys[self._factor.members[:size]], self._factor.weights[:size].copy()

    def point(self) -> FloatArray:
        return np.asarray(nearest_of_members(self._factor, self._points)[:-1] * self._unit)

    def take(self, keys: IntArray, offsets: FloatArray, tolerance: float) -> None:
        """Tabulate the members and the points `keys`, and improve the members up to `tolerance`."""
        members, weights = self.members()
        if self._columns.scale > OUTGROWN * self._unit:
            self._set_unit(self._columns.scale)
            self.load(members, weights)
            members, weights = self.members()
        new = (keys[:, None] != members).all(axis=1)  # faster than np.isin on short lists
        points = np.ones((len(members) + np.count_nonzero(new), self._points.shape[1]))
        points[: len(members)] = self._points[self._factor.members[: len(members)]]
        points[len(members) :, :-1] = offsets[new] / self._unit
        self._keys, self._points = np.concatenate([members, keys[new]]), points
        room = min(len(points), points.shape[1])
        self._factor = with_capacity(self._factor, room)
        self._factor.members[: len(members)] = np.arange(len(members))
        improve(self._factor, self._points, tolerance / self._unit**2)


def search(
    columns: Columns, target: FloatArray, tol: float, start: Combination | None = None
) -> Found:
    """The point of the hull of `columns` nearest to `target` (d,), to a gain of tol * scale^2."""
    rounds = _rounds(columns, target, tol, start)
    residual = next(rounds)
    while True:
        try:
            residual = rounds.send(columns.price(residual, _table_size(target)))
        except StopIteration as end:
            return cast(Found, end.value)


def search_many(columns: VertexColumns, targets: FloatArray, tol: float) -> list[Found]:
    """`search` for each row of `targets` (b, d), with one matrix product per pricing."""
    searches = [_rounds(columns, target, tol, None) for target in targets]
    residuals = {row: next(rounds) for row, rounds in enumerate(searches)}
    found: dict[int, Found] = {}
    while residuals:
        waiting = list(residuals)
        priced = columns.price_many(np.stack(list(residuals.values())), _table_size(targets[0]))
        for row, candidates in zip(waiting, priced, strict=True):
            try:
                residuals[row] = searches[row].send(candidates)
            except StopIteration as end:
                found[row] = end.value
                del residuals[row]
    return [found[row] for row in range(len(targets))]


def _table_size(target: FloatArray) -> int:
    return max(SMALLEST_TABLE, len(target) // DIMENSIONS_PER_POINT)


def _rounds(
    columns: Columns, target: FloatArray, tol: float, start: Combination | None
) -> Generator[FloatArray, IntArray, Found]:
    """A search that yields residuals, and is sent keys of points with large products with them."""
    table = Table(columns, target)
    offset = target - columns.centre
    far, size = float(np.linalg.norm(offset)), float(np.linalg.norm(columns.centre))
    lowest_gain, lowest_distance = np.inf, np.inf
    stalled, deciding, rounds = 0, 0, 0
    if start is None:
        # Many of the points that are farthest in the direction of the target would join the active
        # set later in any case.
        table.begin((yield offset))
        rounds = 1
    else:
        table.load(*start)
    while True:
        point = table.point()
        residual = offset - point
        candidates = yield residual
        offsets = columns.offsets(candidates)
        gains = offsets @ residual - point @ residual
        rounds += 1
        gain, distance = float(gains.max()), float(residual @ residual)
        reached = distance <= (REACHED * (columns.scale + far) + ROUNDING * size) ** 2
        if gain <= tol * columns.scale**2:
            deciding += 1
            if gain < SEPARATED * distance or reached or deciding > DECIDING_ROUNDS:
                break
        stalled += 1
        if gain < GAIN_DROP * lowest_gain:
            lowest_gain, stalled = gain, 0
        if distance < (1 - DISTANCE_DROP) * lowest_distance:
            lowest_distance, stalled = distance, 0
        if stalled >= PATIENCE or gain <= 0:
            break
        chosen = gains > INNER_SHARE * gain
        table.take(candidates[chosen], offsets[chosen], INNER_SHARE * gain)
    found, shares = table.members()
    return Found(found, shares, candidates, reached, rounds)
