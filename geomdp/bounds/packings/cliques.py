"""A largest clique of a small graph, by branch and bound."""

from __future__ import annotations

import numpy as np

from geomdp._typing import BoolArray, IntArray

#: Largest number of vertices accepted, because the search can take exponential time.
MAX_VERTICES = 256


def largest_clique(adjacency: BoolArray) -> IntArray:
    """Vertices of a largest clique of at most 256 vertices, in ascending order; exact."""
    if len(adjacency) > MAX_VERTICES:
        raise ValueError(f"a graph must have at most {MAX_VERTICES} vertices, got {len(adjacency)}")
    # Vertices of large degree come first: a greedy colouring then usually needs fewer colours.
    order = np.argsort(-adjacency.sum(axis=1), kind="stable")
    matrix = adjacency[np.ix_(order, order)]
    np.fill_diagonal(matrix, False)
    # Bit v of masks[u] says whether u and v are adjacent.
    masks = [sum(1 << int(v) for v in np.flatnonzero(row)) for row in matrix]
    # A branch and bound: at most c of the vertices in a greedy colouring with c colours can join a
    # clique (Tomita and Seki 2003).
    best = _expand(masks, [], (1 << len(masks)) - 1, [])
    return np.sort(order[best]) if best else np.zeros(0, dtype=np.int64)


def _expand(masks: list[int], chosen: list[int], candidates: int, best: list[int]) -> list[int]:
    """A largest clique of `chosen` and some `candidates`, or `best` if no such clique is larger."""
    if not candidates:
        return chosen if len(chosen) > len(best) else best
    for vertex, colours in reversed(_colouring(masks, candidates)):
        # The loop runs from the last vertex of the colouring to the first. `vertex` and the
        # vertices that the loop has not reached have `colours` colours. A clique has at most one
        # vertex of each colour. So if the condition holds, no clique that can still be found is
        # larger than `best`.
        if len(chosen) + colours <= len(best):
            break
        best = _expand(masks, [*chosen, vertex], candidates & masks[vertex], best)
        candidates &= ~(1 << vertex)
    return best


def _colouring(masks: list[int], candidates: int) -> list[tuple[int, int]]:
    """The candidates in the order of a greedy colouring, each with its colour 1, 2, ..."""
    coloured: list[tuple[int, int]] = []
    colour = 0
    while candidates:
        colour += 1
        free = candidates
        while free:
            vertex = (free & -free).bit_length() - 1
            coloured.append((vertex, colour))
            candidates &= ~(1 << vertex)
            free &= ~(1 << vertex) & ~masks[vertex]
    return coloured
