"""Points for projections on their hull, with integer keys: listed vertices, or found on demand."""

from __future__ import annotations

import abc

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp.bodies.base import Body

#: Largest number of inner products in a block of two or more directions: 2^22 float64 numbers
#: take 32 MB.
BLOCK_ENTRIES = 1 << 22


class Columns(abc.ABC):
    """Images p_j = A s_j of points s_j of a body K, with hull A K, listed or found on demand."""

    centre: FloatArray  # (d,): a point of the affine hull of the images
    scale: float  # largest distance from `centre` to an image known so far
    _originals: FloatArray  # (N, m): the points s_j
    _images: FloatArray  # (N, d): the points p_j

    @abc.abstractmethod
    def price(self, direction: FloatArray, count: int) -> IntArray:
        """Keys of `count` images with large <direction, p_j>, a maximiser over A K among them."""

    def offsets(self, keys: IntArray) -> FloatArray:
        """The differences p_j - centre (b, d) for the given keys j."""
        return np.asarray(self._images[keys] - self.centre)

    def originals(self, keys: IntArray) -> FloatArray:
        """The points s_j (b, m) for the given keys j."""
        return np.asarray(self._originals[keys])


class VertexColumns(Columns):
    """A body with listed vertices s_j (N, m); `matrix` is A (d, m), or None for the identity."""

    def __init__(self, vertices: FloatArray, matrix: FloatArray | None = None) -> None:
        # Compiled code is slow to import.
        from geomdp.bodies.compiled import mean_and_squares

        self._originals = np.ascontiguousarray(vertices)
        self._images = self._originals
        if matrix is not None:
            self._images = np.ascontiguousarray(vertices @ matrix.T)
        self.centre, squares = mean_and_squares(self._images)
        farthest = int(np.argmax(squares - 2 * (self._images @ self.centre)))
        self.scale = float(np.linalg.norm(self._images[farthest] - self.centre))

    def __len__(self) -> int:
        return len(self._originals)

    def price(self, direction: FloatArray, count: int) -> IntArray:
        if count >= len(self):
            return np.arange(len(self))
        return _smallest(self._images @ -direction, count)

    def price_many(self, directions: FloatArray, count: int) -> IntArray:
        """The keys (b, min(count, N)) that `price` finds for the rows of `directions` (b, d)."""
        if count >= len(self):
            return np.tile(np.arange(len(self)), (len(directions), 1))
        found = np.empty((len(directions), count), dtype=np.int64)
        height = max(1, BLOCK_ENTRIES // len(self))
        for start in range(0, len(directions), height):
            rows = slice(start, start + height)
            found[rows] = _smallest(-directions[rows] @ self._images.T, count)
        return found


def _smallest(scores: FloatArray, count: int) -> IntArray:
    """Indices of the `count` smallest entries along the last axis, which are not all entries."""
    if count == 1:
        return np.asarray(scores.argmin(axis=-1, keepdims=True))
    return np.argpartition(scores, count, axis=-1)[..., :count]


class OracleColumns(Columns):
    """Extreme points of a body, found on demand; `seeds` (b, m), or None, have the keys 0..b-1."""

    def __init__(self, body: Body, matrix: FloatArray | None, seeds: FloatArray | None) -> None:
        self._body, self._matrix = body, matrix
        self._originals = np.empty((0, body.dimension))
        self._images = np.empty((0, body.dimension if matrix is None else len(matrix)))
        self._count = 0
        self.calls = 0
        self.scale = 0.0
        if seeds is not None:
            self._append(seeds)
        # The extreme points in a random direction and in the opposite direction give the centre.
        # These points and the seeds give a first scale. If A K is more than one point, the images
        # of the two extreme points almost surely differ.
        width = int(self._images.shape[1])
        probe = self._pull_back(np.random.default_rng(0).standard_normal(width))
        self._append(self._ask(np.stack([probe, -probe])))
        self.centre = self._images[self._count - 2 : self._count].mean(axis=0)
        self._measure(0)

    def _ask(self, directions: FloatArray) -> FloatArray:
        self.calls += len(directions)
        return self._body.extreme_point(directions)

    def _pull_back(self, direction: FloatArray) -> FloatArray:
        return direction if self._matrix is None else direction @ self._matrix

    def _append(self, points: FloatArray) -> None:
        end = self._count + len(points)
        if end > len(self._originals):
            room = max(end, 2 * len(self._originals)) - self._count
            self._originals, self._images = (
                np.concatenate([table[: self._count], np.empty((room, table.shape[1]))])
                for table in (self._originals, self._images)
            )
        self._originals[self._count : end] = points
        self._images[self._count : end] = (
            points if self._matrix is None else points @ self._matrix.T
        )
        self._count = end

    def _measure(self, first: int) -> None:
        offsets = self._images[first : self._count] - self.centre
        self.scale = max(self.scale, float(np.linalg.norm(offsets, axis=1).max()))

    def price(self, direction: FloatArray, count: int) -> IntArray:
        """Keys of the best known images, after the extreme point in this direction is added."""
        self._append(self._ask(self._pull_back(direction)[None]))
        self._measure(self._count - 1)
        if count >= self._count:
            return np.arange(self._count)
        return np.argpartition(self._images[: self._count] @ -direction, count)[:count]
