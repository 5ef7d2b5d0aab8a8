"""Read, check and count the records of a source, for a mechanism."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from geomdp._validation import require_type
from geomdp.data.columns import DiscreteColumn, RealColumn
from geomdp.data.encoding import column_codes, columns_for, encode
from geomdp.data.frames import Frame, Partition, RecordsError, Source
from geomdp.data.schema import Schema
from geomdp.data.tallies import CountedRecords, Table, Tallies, tables_of
from geomdp.workloads.base import Workload
from geomdp.workloads.universes import Universe

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client, Future


#: Largest number of `Tallies` that one task of a cluster adds up.
FAN_IN = 8


@dataclass(frozen=True, eq=False)
class EncodedRecords:
    """Records that were checked and counted. Each iteration reads the records again.

    Parameters
    ----------
    count : int
        Number of records.
    source, schema, universe : Source, Schema, Universe
        The source of the records, their columns, and the universe for which they are encoded.

    Examples
    --------
    Records with real columns are not counted in tables. They are checked now and read again later:

    >>> import pandas as pd
    >>> import geomdp as gd
    >>> schema = gd.data.Schema([gd.data.RealColumn("income", bounds=(0, 100))])
    >>> source = gd.data.source_of(pd.DataFrame({"income": [0.0, 25.0, 100.0]}))
    >>> records = gd.data.count_records(source, schema, gd.workloads.SmoothQueries(1, 3))
    >>> records.count
    3
    >>> next(iter(records)).ravel()
    array([-1. , -0.5,  1. ])
    """

    count: int
    source: Source
    schema: Schema
    universe: Universe

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return encode_source(self.source, self.schema, self.universe)


def count_records(
    source: Source, schema: Schema, workload: Workload, *, client: Client | None = None
) -> CountedRecords | EncodedRecords:
    """Check and count the records of a source, usually in one scan.

    Parameters
    ----------
    source : Source
        The source, from `source_of`.
    schema : Schema
        The columns that make up a record, in order.
    workload : Workload
        The queries. If the answers follow from tables of counts, only these tables are kept. If
        not, the records are encoded in chunks each time a mechanism iterates over the result.
    client : distributed.Client, optional
        A Dask cluster that counts the parts of the source. The result does not depend on the parts.

    Returns
    -------
    CountedRecords or EncodedRecords
        Both have `count`, the number of records. A mechanism accepts either in place of records.

    Raises
    ------
    ValueError
        If the schema does not fit the workload, or a record does not fit the schema. For a record,
        the error names row and column, and also the part if the source has several. Also if
        `client` is given, but the answers do not follow from tables of counts.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> schema = gd.data.Schema.from_dict({"region": ["north", "south"], "smoker": bool})
    >>> source = gd.data.source_of(
    ...     pd.DataFrame({"region": ["north", "south", "south"], "smoker": [True, False, True]})
    ... )
    >>> workload = schema.workload("marginals", k=1)
    >>> counted = gd.data.count_records(source, schema, workload)
    >>> counted.count
    3

    A mechanism takes the counts in place of the records:

    >>> mechanism = gd.mechanisms.Laplace(workload, n=counted.count, privacy=gd.PureDP(1.0))
    >>> len(mechanism.release(counted).answers)
    4
    """
    require_type(source, Source, "source")
    require_type(workload, Workload, "workload")
    require_type(schema, Schema, "schema")
    source = source.written_as(schema.csv)
    columns = columns_for(workload.universe, schema)
    discrete = [column for column in columns if not isinstance(column, RealColumn)]
    levels = [len(column.labels) for column in discrete]
    tables = tables_of(workload, levels) if len(discrete) == len(columns) else None
    if tables is None:
        if client is not None:
            raise ValueError(f"a cluster counts tables only, and {workload!r} needs the records")
        n = sum(len(chunk) for chunk in encode_source(source, schema, workload.universe))
        return EncodedRecords(n, source, schema, workload.universe)
    recount = partial(_count_tables, source, discrete, client=client)
    return CountedRecords(workload.universe, recount(tables), recount)


def _count_tables(
    source: Source,
    columns: Sequence[DiscreteColumn],
    tables: Sequence[Table],
    *,
    client: Client | None,
) -> Tallies:
    if client is not None:
        return _count_on_cluster(source, columns, tables, client)
    parts = (_tally_of(source, part, columns, tables) for part in source.parts)
    start = Tallies.empty([len(column.labels) for column in columns], tables)
    return reduce(add, parts, start)


def _tally_of(
    source: Source, part: Source, columns: Sequence[DiscreteColumn], tables: Sequence[Table]
) -> Tallies:
    """The counts of one part. If the source has several parts, an error names the part."""
    tallies = Tallies.empty([len(column.labels) for column in columns], tables)
    try:
        for codes in column_codes(part.chunks([column.name for column in columns]), columns):
            tallies = tallies.with_records([np.asarray(code, dtype=np.int64) for code in codes])
    except RecordsError as error:
        message = _named(error, source, part)
    else:
        return tallies
    raise RecordsError(message)


def encode_source(source: Source, schema: Schema, universe: Universe) -> Iterator[npt.NDArray[Any]]:
    """Encode all parts of a source. If the source has several parts, an error names the part."""
    for part in source.written_as(schema.csv).parts:
        try:
            yield from encode(part.chunks(schema.names), schema, universe)
            continue
        except RecordsError as error:
            message = _named(error, source, part)
        raise RecordsError(message)


def _named(error: RecordsError, source: Source, part: Source) -> str:
    """The message of `error`, led by the name of the part if the source has several parts."""
    named = len(source.parts) == 1 or part.name in str(error)
    return str(error) if named else f"{part.name}: {error}"


def _count_on_cluster(
    source: Source, columns: Sequence[DiscreteColumn], tables: Sequence[Table], client: Client
) -> Tallies:
    """Counts on a Dask cluster: one task per part counts, and a tree of tasks adds the counts."""
    levels: list[Future] = [
        client.submit(_tally_task, _shipped(part, client), part.name, columns, tables, pure=False)
        for part in source.parts
    ]
    while len(levels) > 1:
        levels = [
            client.submit(_sum, levels[start : start + FAN_IN], pure=False)
            for start in range(0, len(levels), FAN_IN)
        ]
    result: Tallies | str = levels[0].result()
    if isinstance(result, str):
        raise RecordsError(result)
    return result


def _shipped(part: Source, client: Client) -> Source | Future:
    """The input of a task: a frame that a worker computes, or a source that the task reads."""
    return client.compute(part.delayed) if isinstance(part, Partition) else part


def _tally_task(
    part: Source | pd.DataFrame,
    name: str,
    columns: Sequence[DiscreteColumn],
    tables: Sequence[Table],
) -> Tallies | str:
    """The counts of one part, or the message of an error, which must not be raised here.

    Dask would log a task that raises together with its arguments, which are records.
    """
    source = part if isinstance(part, Source) else Frame(part)
    try:
        return _tally_of(source, source, columns, tables)
    except RecordsError as error:
        return f"{name}: {error}"


def _sum(parts: Sequence[Tallies | str]) -> Tallies | str:
    """The sum of some counts, as one task, or the first message of an error."""
    counts = [part for part in parts if not isinstance(part, str)]
    if len(counts) < len(parts):
        return next(part for part in parts if isinstance(part, str))
    return reduce(add, counts)
