"""Read, check and count the records of a source, for a mechanism."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from geomdp._validation import require_type
from geomdp.data.columns import DiscreteColumn, RealColumn
from geomdp.data.counting.covering import Table, tables_of
from geomdp.data.counting.scan import tally
from geomdp.data.counting.tallies import CountedRecords, Tallies
from geomdp.data.encoding import columns_for, encode
from geomdp.data.schema import Schema
from geomdp.data.sources.source import Source
from geomdp.workloads.base import Workload
from geomdp.workloads.universe.universes import Universe

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True, eq=False)
class EncodedRecords:
    """Records that were checked and counted. Each iteration reads the records again.

    Parameters
    ----------
    count : int
        Number of records.
    source : Source
        The source of the records.
    schema : Schema
        Declares the columns of the records.
    universe : Universe
        The universe for which the records are encoded.

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
        """Chunks of records in the encoding of the universe."""
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
        A Dask cluster that counts the parts of the source. The counts do not depend on how the
        records are divided into parts, because sums of whole numbers are exact.

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
    """Counts of `tables` from one scan of a source."""
    if client is None:
        start = Tallies.empty([len(column.labels) for column in columns], tables)
        parts = (_tally_of_part(source, part, columns, tables) for part in source.parts)
        return reduce(add, parts, start)
    from geomdp.data.counting.cluster import tally_on_cluster

    return tally_on_cluster(source, columns, tables, client)


def encode_source(source: Source, schema: Schema, universe: Universe) -> Iterator[npt.NDArray[Any]]:
    """Encode all parts of a source. If the source has several parts, errors name the part."""
    for part in source.parts:
        try:
            yield from encode(part.chunks(schema.names), schema, universe)
        except ValueError as error:
            raise _named(error, source, part) from error


def _tally_of_part(
    source: Source, part: Source, columns: Sequence[DiscreteColumn], tables: Sequence[Table]
) -> Tallies:
    try:
        return tally(part, columns, tables)
    except ValueError as error:
        raise _named(error, source, part) from error


def _named(error: ValueError, source: Source, part: Source) -> ValueError:
    """`error`, with the name of the part in front.

    The name is not added if the source has only one part, or if the error has the name already.
    """
    named = len(source.parts) == 1 or part.name in str(error)
    return error if named else ValueError(f"{part.name}: {error}")
