"""Covering designs: blocks of columns such that every set of t columns lies in some block."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray, IntArray

#: Largest number of blocks of a design. Each block is measured as a table. A table has one cell for
#: each combination of levels (values) of the columns. The error of the answers grows like the
#: number of blocks times the root of the number of cells per block. So a design with very many
#: small blocks usually has a larger error than a design with few large blocks.
MAX_BLOCKS = 400
#: Largest number of groups into which the columns are divided. The limit keeps the number of
#: searches small, because each number of groups needs several searches. The division with one
#: column in each group is tried even beyond this limit.
MAX_GROUPS = 12
#: A search runs only if (number of sets of t groups) x (number of groups) is at most this. Finding
#: a block then takes milliseconds.
MAX_COVERED = 300_000
#: The weight of an uncovered set of groups in `_greedy_cover` is `LOOK_AHEAD`^k, where k is the
#: number of groups of the set that are not in the block yet.
LOOK_AHEAD = 0.25
#: Largest number of designs that `covering_designs` returns.
KEPT = 16

Columns = tuple[int, ...]
Blocks = tuple[Columns, ...]


def covering_designs(levels: Sequence[int], strength: int, max_cells: int) -> list[Blocks]:
    """Designs that cover all sets of `strength` columns by blocks of at most `max_cells` cells.

    Groups of columns are covered greedily (Gordon-Kuperberg-Patashnik 1995), without randomness.
    The first designs have the least number of blocks times root of the cells of the largest block:
    the error grows like this product.
    """
    found: dict[Blocks, float] = {}
    counts = {*range(strength + 1, min(len(levels), MAX_GROUPS) + 1), len(levels)}
    for count in sorted(counts):
        if math.comb(count, strength) * count > MAX_COVERED:
            continue
        groups = _groups(levels, count)
        bits = np.array([sum(math.log2(levels[i]) for i in group) for group in groups])
        largest = np.sort(bits)[::-1][:strength].sum()
        for limit in range(math.ceil(largest), math.floor(math.log2(max_cells)) + 1):
            cover = _greedy_cover(bits, strength, limit + 1e-9)
            if cover is None:
                continue
            blocks = tuple(
                sorted({tuple(sorted(itertools.chain(*(groups[g] for g in b)))) for b in cover})
            )
            cells = max(math.prod(levels[i] for i in block) for block in blocks)
            found[blocks] = len(blocks) * math.sqrt(cells)
            if len(blocks) == 1:
                break
    return sorted(found, key=lambda blocks: found[blocks])[:KEPT]


def _groups(levels: Sequence[int], count: int) -> list[Columns]:
    """Divide the columns into `count` groups with nearly equal numbers of cells."""
    groups: list[list[int]] = [[] for _ in range(count)]
    bits = [0.0] * count
    for column in sorted(range(len(levels)), key=lambda i: -levels[i]):
        least = min(range(count), key=lambda g: (bits[g], g))
        groups[least].append(column)
        bits[least] += math.log2(levels[column])
    return [tuple(group) for group in groups]


def _greedy_cover(bits: FloatArray, strength: int, limit: float) -> list[IntArray] | None:
    """Blocks of points that cover every set of `strength` points; None above `MAX_BLOCKS` blocks.

    A point is a group of columns. The `bits` of the points of a block add up to at most `limit`.
    """
    count = len(bits)
    sets = np.array(list(itertools.combinations(range(count), strength)))
    member = np.zeros((len(sets), count))
    np.put_along_axis(member, sets, 1, axis=1)
    rng = np.random.default_rng(PUBLIC_SEED)
    blocks: list[IntArray] = []
    while len(member):
        # Each new block covers at least one more set, so the loop ends.
        if len(blocks) == MAX_BLOCKS:
            return None
        block = member[rng.integers(len(member))] > 0
        weights = LOOK_AHEAD ** (strength - member @ block.astype(np.float64))
        while (room := limit - bits[block].sum()) > 0:
            free = ~block & (bits <= room)
            if not free.any():
                break
            gains = np.where(free, (weights @ member) / bits, -1.0)
            point = int(np.argmax(gains))
            block[point] = True
            weights *= np.where(member[:, point] > 0, 1 / LOOK_AHEAD, 1.0)
        blocks.append(np.flatnonzero(block))
        member = member[member @ block.astype(np.float64) < strength]
    return blocks
