"""A pool of candidate slabs, and a greedy choice of slabs that cut off many states of chains."""

from __future__ import annotations

import numpy as np

from geomdp._typing import BoolArray, FloatArray, IntArray

#: Largest number of candidates kept from one round to the next. The candidates that cut off the
#: most states are kept.
POOL_LIMIT = 4096
#: Number of candidates scored together. Each candidate needs one float of memory per state.
BLOCK = 512
#: Each normal is divided by its entry of largest absolute value. Two normals count as parallel if
#: the results agree in this number of decimal places. Normals are scaled so that each slab touches
#: the body, so parallel normals give the same slab.
DIGITS = 9


class CutPool:
    """Slabs {x : |<z, x>| <= 1} with normals z in R^r that were added, but not taken or dropped."""

    def __init__(self, dimension: int) -> None:
        self._normals: FloatArray = np.zeros((0, dimension))
        self._seen: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._normals)

    def add(self, normals: FloatArray) -> None:
        """Add the candidates `normals` (k, r), except multiples of normals added before."""
        fresh = []
        for normal, key in zip(normals, _keys(normals), strict=True):
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(normal)
        if fresh:
            self._normals = np.vstack([self._normals, np.array(fresh)])

    def take(self, states: FloatArray, count: int) -> tuple[FloatArray, float]:
        """Remove up to `count` candidates that together cut off many of `states` (s, r), greedily.

        Returns them (k, r), and the share of states that they cut off. Of the others, the pool
        keeps the `POOL_LIMIT` that cut off the most.
        """
        if len(self._normals) == 0:
            return self._normals, 0.0
        outside = np.empty((len(states), len(self._normals)), dtype=bool)
        for first in range(0, len(self._normals), BLOCK):
            heights = states @ self._normals[first : first + BLOCK].T
            outside[:, first : first + BLOCK] = np.abs(heights) > 1
        totals = outside.sum(axis=0)
        chosen, covered = greedy_cover(outside, count)
        taken = self._normals[chosen]
        totals[chosen] = -1
        kept = np.argsort(-totals, kind="stable")[: min(POOL_LIMIT, len(totals) - len(chosen))]
        self._normals = self._normals[kept]
        return taken, covered / len(states)


def greedy_cover(outside: BoolArray, count: int) -> tuple[IntArray, int]:
    """At most `count` columns of `outside` (s, k, overwritten), which greedily cover many rows.

    Returns the columns and the number of covered rows. Any other choice covers at most e / (e - 1)
    times as many (Nemhauser, Wolsey, Fisher 1978).
    """
    gains = outside.sum(axis=0)
    chosen: list[int] = []
    covered = 0
    while len(chosen) < count:
        best = int(np.argmax(gains))
        if gains[best] == 0:
            break
        rows = np.flatnonzero(outside[:, best])
        chosen.append(best)
        covered += len(rows)
        gains -= outside[rows].sum(axis=0)
        outside[rows] = False
    return np.array(chosen, dtype=np.int64), covered


def _keys(normals: FloatArray) -> list[bytes]:
    """One key per slab: the normal, divided by its entry of largest absolute value, and rounded."""
    largest = np.abs(normals).argmax(axis=1)
    # Several entries may have nearly the largest absolute value. Rounding errors would then decide
    # which entry is the divisor, and also the sign of the key. Therefore the first such entry is
    # the divisor.
    sizes = np.abs(np.take_along_axis(normals, largest[:, None], axis=1))
    first = (np.abs(normals) > (1 - 10.0**-DIGITS) * sizes).argmax(axis=1)
    scaled = normals / np.take_along_axis(normals, first[:, None], axis=1)
    # Add 0 to turn -0 into 0, because the two have different bits.
    return [row.tobytes() for row in np.round(scaled, DIGITS) + 0.0]
