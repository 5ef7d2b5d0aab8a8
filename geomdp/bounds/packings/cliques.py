"""Largest cliques of small graphs, by branch and bound."""

from __future__ import annotations

import numpy as np

from geomdp._typing import BoolArray, IntArray

#: Largest number of vertices accepted; the search may be exponential.
MAX_VERTICES = 256


def largest_clique(adjacency: BoolArray) -> IntArray:
    """Vertices of a clique of the largest size, ascending.

    `adjacency` (n, n) is symmetric, and its diagonal is not read. Branch and bound: the number of
    colours of a greedy colouring bounds the clique that the candidates can still add (Tomita and
    Seki 2003). Exact, exponential in the worst case; ``ValueError`` for more than 256 vertices.
    """
    if len(adjacency) > MAX_VERTICES:
        raise ValueError(f"a graph must have at most {MAX_VERTICES} vertices, got {len(adjacency)}")
    # Vertices of large degree first: the colouring is then tighter.
    order = np.argsort(-adjacency.sum(axis=1), kind="stable")
    matrix = adjacency[np.ix_(order, order)]
    np.fill_diagonal(matrix, False)
    # Bit v of masks[u] says whether u and v are adjacent.
    masks = [sum(1 << int(v) for v in np.flatnonzero(row)) for row in matrix]
    best = _expand(masks, [], (1 << len(masks)) - 1, [])
    return np.sort(order[best]) if best else np.zeros(0, dtype=np.int64)


def _expand(masks: list[int], chosen: list[int], candidates: int, best: list[int]) -> list[int]:
    """The larger of `best` and the largest clique that extends `chosen` by `candidates`."""
    if not candidates:
        return chosen if len(chosen) > len(best) else best
    for vertex, colours in reversed(_colouring(masks, candidates)):
        # The vertices up to this one have `colours` colours, and a clique has one of each at most.
        if len(chosen) + colours <= len(best):
            break
        best = _expand(masks, [*chosen, vertex], candidates & masks[vertex], best)
        candidates &= ~(1 << vertex)
    return best


def _colouring(masks: list[int], candidates: int) -> list[tuple[int, int]]:
    """Candidates in order of a greedy colouring, each with its colour from 1."""
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
