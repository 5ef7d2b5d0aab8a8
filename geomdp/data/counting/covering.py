"""The tables that determine the answers to a workload, and a few large tables that give them.

Sums over cells of nine tables of blocks of columns give the 45 two-way tables of ten columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

from geomdp.workloads import Marginals, Parities
from geomdp.workloads.base import Workload
from geomdp.workloads.table_queries import TableQueries
from geomdp.workloads.universe.universes import BooleanCube, CategoricalProduct, FiniteUniverse

#: A table with at most this many cells stays in the processor's cache while it is counted: 2^16
#: int64 are 512 KB.
CACHED_CELLS = 1 << 16
#: Largest number of levels of a column. The codes then fit uint16, and the number 65,535 is left to
#: mark unknown values.
MAX_LEVELS = (1 << 16) - 2
#: Largest number of cells of one table: 2^26 int64 are 512 MB.
MAX_CELLS = 1 << 26
#: If the table of all columns has at most this number of cells, it is always counted. All other
#: tables follow from it, so a mechanism can measure tables that are not in the workload. 2^20 int64
#: are 8 MB.
MAX_WHOLE = 1 << 20

Table = tuple[int, ...]


def tables_of(workload: Workload, levels: Sequence[int]) -> list[Table] | None:
    """The tables that determine the answers to `workload`; None if they cannot be counted.

    A table with more than 2^26 cells or a column with more than 65,534 levels cannot be counted.
    The table of all columns is included if it has at most 2^20 cells.
    """
    match workload, workload.universe:
        case TableQueries(), _:
            tables: list[Table] = list(workload.tables)
        case ((Marginals() | Parities()), _):
            tables = [tuple(map(int, subset)) for subset in workload.subsets]
        case _, FiniteUniverse() | BooleanCube() | CategoricalProduct():
            tables = [tuple(range(len(levels)))]
        case _:
            return None
    everything = tuple(range(len(levels)))
    if everything not in tables and math.prod(levels) <= MAX_WHOLE:
        tables.append(everything)
    largest = max(math.prod(levels[column] for column in table) for table in tables)
    return tables if largest <= MAX_CELLS and max(levels) <= MAX_LEVELS else None


def covering_tables(tables: Sequence[Table], levels: Sequence[int]) -> list[Table]:
    """Sorted tables to count, so that each of `tables` is a sum over cells of one of them.

    A table of more than `CACHED_CELLS` cells is counted only if `tables` contains it. The table of
    all columns, if `tables` contains it, comes last.
    """
    everything = tuple(range(len(levels)))
    others = [table for table in tables if tuple(sorted(table)) != everything]
    if len(others) < len(tables):
        if not others or math.prod(levels) <= CACHED_CELLS:
            return [everything]
        return [*covering_tables(others, levels), everything]
    largest = max(map(len, tables))
    if largest == 1:
        return list(dict.fromkeys(tables))  # joint tables of single columns would not be faster
    block_of = _blocks(sorted(set(chain.from_iterable(tables))), levels, largest)
    covering: dict[Table, None] = {}
    for table in tables:
        union = tuple(sorted(set(chain.from_iterable(block_of[column] for column in table))))
        small = math.prod(levels[column] for column in union) <= CACHED_CELLS
        covering[union if small else tuple(sorted(table))] = None
    return list(covering)


def _blocks(columns: Sequence[int], levels: Sequence[int], per_table: int) -> dict[int, Table]:
    """The block of each column.

    `per_table` blocks have at most `CACHED_CELLS` cells together, unless one column has too many
    levels.
    """
    room = CACHED_CELLS ** (1 / per_table)
    blocks: list[list[int]] = []
    # Columns with many levels come first, and each column joins the first block that stays small
    # enough. The number of blocks is then close to the smallest possible number.
    for column in sorted(columns, key=lambda column: -levels[column]):
        for block in blocks:
            if math.prod(levels[other] for other in block) * levels[column] <= room:
                block.append(column)
                break
        else:
            blocks.append([column])
    return {column: tuple(block) for block in blocks for column in block}
