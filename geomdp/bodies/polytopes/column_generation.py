"""Nearest point of a hull by column generation: an active-set method on a small table of points.

For a target b and the current point x, the gain of a point p is <b - x, p - x>. The table holds the
members of the active set and the points with the largest gains. Let g be the largest gain among all
points. A round improves the active set until all gains on the table are at most a small share of g,
or the improvement stalls. Then it computes the gains of all points (a pricing).

If g is within the tolerance of `search`, the search ends if g is below half of the squared distance
(a hyperplane separates the target from the hull), if the target is reached up to rounding, or after
`DECIDING_ROUNDS` more pricings. It also ends if no gain is positive, or if g and the distance stop
falling, even above the tolerance.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import cast

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp.bodies.polytopes.active_set import (
    DISTANCE_DROP,
    GAIN_DROP,
    PATIENCE,
    Factor,
    empty_factor,
    improve,
    load,
    nearest_of_members,
    settle,
    with_capacity,
)
from geomdp.bodies.polytopes.point_sets import Columns, VertexColumns

#: Points taken into the table per pricing: the dimension divided by the first number, but at least
#: the second. More points did not make the search faster, in dimensions 50 to 500.
DIMENSIONS_PER_POINT, SMALLEST_TABLE = 4, 32
#: The active set is improved until gains on the table are at most this share of the largest gain. A
#: share of 0.1 needed a fifth more pricings, and 0.01 more exchanges.
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
