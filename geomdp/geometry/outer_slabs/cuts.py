"""A pool of candidate slabs, and the choice of those that together cut off most points."""

from __future__ import annotations

import numpy as np

from geomdp._typing import BoolArray, FloatArray, IntArray

#: Largest number of candidates kept from one round to the next: those that cut off the most states.
POOL_LIMIT = 4096
#: Candidates scored at a time; memory is one float per state for each of them.
BLOCK = 512
#: Two candidates are the same if their normals, scaled to largest entry 1, agree in these digits.
DIGITS = 9


class CutPool:
    """Slabs {x : |<z, x>| <= 1} proposed so far and not yet used, with normals z in R^r."""

    def __init__(self, dimension: int) -> None:
        self._normals: FloatArray = np.zeros((0, dimension))
        self._seen: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._normals)

    def add(self, normals: FloatArray) -> None:
        """Add candidates (k, r), leaving out those seen before, with either sign."""
        fresh = []
        for normal, key in zip(normals, _keys(normals), strict=True):
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(normal)
        if fresh:
            self._normals = np.vstack([self._normals, np.array(fresh)])

    def take(self, states: FloatArray, count: int) -> tuple[FloatArray, float]:
        """Take out up to `count` candidates that together cut off most of `states` (s, r).

        Greedy cover: each candidate chosen cuts off the most states among those left by the ones
        before it. Returns the candidates (k, r) and the share of states they cut off. Candidates
        that cut off no state that is left stay in the pool.
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
    """Columns of `outside` (s, k) chosen greedily to cover rows: (up to `count`,), rows covered.

    Overwrites `outside`. Within 1 - 1/e of the best cover by as many columns (Nemhauser, Wolsey,
    Fisher 1978).
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
    """One key per slab: its normal divided by its entry of largest modulus, rounded."""
    largest = np.abs(normals).argmax(axis=1)
    # Among entries of equal modulus rounding would pick the one to divide by, and with it the sign;
    # so the first entry near the largest is taken.
    sizes = np.abs(np.take_along_axis(normals, largest[:, None], axis=1))
    first = (np.abs(normals) > (1 - 10.0**-DIGITS) * sizes).argmax(axis=1)
    scaled = normals / np.take_along_axis(normals, first[:, None], axis=1)
    # Adding 0 turns -0 into 0, which compares the same but has other bits.
    return [row.tobytes() for row in np.round(scaled, DIGITS) + 0.0]
