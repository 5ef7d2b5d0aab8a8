"""Few large tables that contain all tables asked for.

Ten columns of five levels have 45 two-way tables. Four blocks of three or two columns have six
pairs, whose joint tables hold every two-way table as a sum. Counting six tables costs a seventh of
counting 45.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

#: Cells of a table that stays in the processor's cache while it is counted: 2^16 int64 are 512 KB.
CACHED_CELLS = 1 << 16

Table = tuple[int, ...]


def covering_tables(tables: Sequence[Table], levels: Sequence[int]) -> list[Table]:
    """Tables, by sorted column numbers, such that each of `tables` lies in one of them.

    Parameters
    ----------
    tables : sequence of tuples of int
        Column numbers of the tables asked for.
    levels : sequence of int
        Number of levels of each column.

    Returns
    -------
    list of tuples of int
        Each has at most `CACHED_CELLS` cells, or is one of `tables` itself, as all are if each of
        these has one column. The table of all columns, if asked for, comes last.
    """
    everything = tuple(range(len(levels)))
    others = [table for table in tables if tuple(sorted(table)) != everything]
    if len(others) < len(tables):
        if not others or math.prod(levels) <= CACHED_CELLS:
            return [everything]
        return [*covering_tables(others, levels), everything]
    largest = max(map(len, tables))
    if largest == 1:
        return list(dict.fromkeys(tables))  # a sum over each of the columns is as fast
    block_of = _blocks(sorted(set(chain.from_iterable(tables))), levels, largest)
    covering: dict[Table, None] = {}
    for table in tables:
        union = tuple(sorted(set(chain.from_iterable(block_of[column] for column in table))))
        small = math.prod(levels[column] for column in union) <= CACHED_CELLS
        covering[union if small else tuple(sorted(table))] = None
    return list(covering)


def _blocks(columns: Sequence[int], levels: Sequence[int], per_table: int) -> dict[int, Table]:
    """The block of each column. A union of `per_table` blocks of several columns fits the cache."""
    room = CACHED_CELLS ** (1 / per_table)
    blocks: list[list[int]] = []
    # First fit, widest columns first, packs within a small factor of the fewest blocks.
    for column in sorted(columns, key=lambda column: -levels[column]):
        for block in blocks:
            if math.prod(levels[other] for other in block) * levels[column] <= room:
                block.append(column)
                break
        else:
            blocks.append([column])
    return {column: tuple(block) for block in blocks for column in block}
