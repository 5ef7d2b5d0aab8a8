"""Violations of cell and triangle inequalities by many matrices of tables, in float64.

An event is a level of a column, and a cell is the share of records in two events. Cells must be at
least 0, and triangle inequalities relate the shares of three events and of their pairs.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

from geomdp._typing import FloatArray, IntArray

#: Largest number of pairs (triple of events, matrix) that are evaluated in one step, unless there
#: are more matrices than this. A step with this number of pairs needs ten arrays of 256 KiB of
#: float64.
BLOCK = 1 << 15


def total_violation(cells: FloatArray, starts: IntArray) -> FloatArray:
    """Total violation (b,) of the cell and triangle inequalities by matrices `cells` (b, L, L).

    Block (i, j) of the L events is a two-way table, and the diagonal holds their shares; the rest
    of diagonal blocks is not read. `starts` holds the first event of each column, and then L.
    """
    bounds = tuple(np.asarray(starts).tolist())
    # Store the b values of each entry next to each other in memory, so that reading them is fast.
    entries = np.ascontiguousarray(cells.transpose(1, 2, 0))
    first, second = _pairs(bounds)
    total = np.maximum(-entries[first, second], 0.0).sum(axis=0)
    triples = _triples(bounds)
    step = max(1, BLOCK // max(1, len(cells)))
    for start in range(0, triples.shape[1], step):
        total += _triangles(entries, triples[:, start : start + step])
    return np.asarray(total)


def inequality_count(starts: IntArray) -> int:
    """Number of cell and triangle inequalities; `starts` is as for `total_violation`."""
    bounds = tuple(np.asarray(starts).tolist())
    return int(_pairs(bounds)[0].size + 4 * _triples(bounds).shape[1])


def _triangles(entries: FloatArray, triples: IntArray) -> FloatArray:
    """Total violation (b,) of the triangles `triples` (3, t) by `entries` (L, L, b)."""
    a, b, c = triples
    ab, ac, bc = entries[a, b], entries[a, c], entries[b, c]
    aa, bb, cc = entries[a, a], entries[b, b], entries[c, c]
    both = ab + ac + bc
    amounts = np.maximum(aa + bb + cc - 1 - both, 0.0)
    amounts += np.maximum(both - 2 * bc - aa, 0.0)
    amounts += np.maximum(both - 2 * ac - bb, 0.0)
    amounts += np.maximum(both - 2 * ab - cc, 0.0)
    return np.asarray(amounts.sum(axis=0))


@functools.lru_cache(maxsize=16)
def _pairs(bounds: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    column = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    first, second = np.nonzero(column[:, None] < column)
    return first, second


@functools.lru_cache(maxsize=16)
def _triples(bounds: tuple[int, ...]) -> IntArray:
    """Triples (3, t) of events of three columns; of two levels, only the first event is needed."""
    events = [
        range(low, low + 1 if high - low == 2 else high) for low, high in itertools.pairwise(bounds)
    ]
    blocks = [
        np.stack(np.meshgrid(*chosen, indexing="ij")).reshape(3, -1)
        for chosen in itertools.combinations(events, 3)
    ]
    return np.concatenate([np.empty((3, 0), dtype=np.int64), *blocks], axis=1)
