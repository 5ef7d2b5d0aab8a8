"""Count on a Dask cluster: one task per part counts, and a tree of tasks adds the counts.

If a worker fails, Dask runs its tasks again on other workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from geomdp.data.columns import DiscreteColumn
from geomdp.data.counting.covering import Table
from geomdp.data.counting.scan import tally
from geomdp.data.counting.tallies import Tallies
from geomdp.data.sources.frames import Frame
from geomdp.data.sources.partitions import Partition
from geomdp.data.sources.source import Source

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client, Future

#: Largest number of `Tallies` that one task adds up.
FAN_IN = 8


def tally_on_cluster(
    source: Source, columns: Sequence[DiscreteColumn], tables: Sequence[Table], client: Client
) -> Tallies:
    """Counts of `tables` over all parts of `source`; see `geomdp.data.counting.scan.tally`."""
    levels: list[Future] = [
        client.submit(_tally_named, _shipped(part, client), part.name, columns, tables, pure=False)
        for part in source.parts
    ]
    while len(levels) > 1:
        levels = [
            client.submit(_sum, levels[start : start + FAN_IN], pure=False)
            for start in range(0, len(levels), FAN_IN)
        ]
    result: Tallies = levels[0].result()
    return result


def _shipped(part: Source, client: Client) -> Source | Future:
    """The input of a task: a frame that a worker computes, or a source that the task reads."""
    return client.compute(part.delayed) if isinstance(part, Partition) else part


def _tally_named(
    part: Source | pd.DataFrame,
    name: str,
    columns: Sequence[DiscreteColumn],
    tables: Sequence[Table],
) -> Tallies:
    """The counts of one part, as one task. A ``ValueError`` names the part."""
    try:
        return tally(part if isinstance(part, Source) else Frame(part), columns, tables)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _sum(parts: Sequence[Tallies]) -> Tallies:
    """The sum of some counts, as one task."""
    first, *rest = parts
    return sum(rest, start=first)
