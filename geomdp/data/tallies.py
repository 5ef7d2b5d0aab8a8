"""Read, check and count the records of a source, and compute answers from the counts."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from itertools import chain
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from geomdp._typing import IntArray
from geomdp._validation import require_type, whole
from geomdp.data.encoding import Read, columns_for, encoded
from geomdp.data.files import File, Files, record_files
from geomdp.data.frames import (
    CHUNK_ROWS,
    Frame,
    Partition,
    Partitions,
    RecordsError,
    Source,
    is_dask,
    is_frame,
    quiet,
)
from geomdp.data.queries import opened
from geomdp.data.schema import Schema
from geomdp.workloads import Marginals, Parities
from geomdp.workloads.base import Totals, Workload
from geomdp.workloads.finite import FiniteWorkload
from geomdp.workloads.tables import ProductQueries, TableQueries
from geomdp.workloads.universes import (
    BooleanCube,
    CategoricalProduct,
    FiniteUniverse,
    Universe,
)

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from distributed import Client, Future

Codes: TypeAlias = npt.NDArray[np.integer]
#: Largest number of `Tallies` that one task of a cluster adds up.
FAN_IN = 8
#: Number of elements of a universe at which queries are evaluated together.
ELEMENTS = 1 << 12


@dataclass(frozen=True, eq=False)
class Tallies:
    """Numbers of records in the cells of tables, in row-major order by sorted column numbers."""

    levels: tuple[int, ...]
    count: int
    cells: dict[Table, IntArray] = field(repr=False)

    @classmethod
    def empty(cls, levels: Sequence[int], tables: Sequence[Table]) -> Tallies:
        """Counts of 0 records in the tables that `covering_tables` chooses for `tables`."""
        cells = {
            table: np.zeros(math.prod(levels[column] for column in table), dtype=np.int64)
            for table in covering_tables(tables, levels)
        }
        return cls(tuple(levels), 0, cells)

    def with_records(self, columns: Sequence[Codes]) -> Tallies:
        """Counts with n more records, by codes (n,) per column. `self` is changed in place."""
        for table, counts in self.cells.items():
            numbers = self._numbers(columns, table, len(counts))
            if len(counts) > len(numbers):
                np.add.at(counts, numbers, 1)
            else:
                counts += np.bincount(numbers, minlength=len(counts))
        return Tallies(self.levels, self.count + len(columns[0]), self.cells)

    def _numbers(self, columns: Sequence[Codes], table: Table, n_cells: int) -> Codes:
        """The cell number (n,) of each record in `table`."""
        kind: type[np.integer] = np.uint16 if n_cells <= 1 << 16 else np.int64
        numbers = columns[table[0]].astype(kind)
        for column in table[1:]:
            numbers *= kind(self.levels[column])
            numbers += columns[column].astype(kind, copy=False)
        return numbers

    def __add__(self, other: Tallies) -> Tallies:
        cells = {table: counts + other.cells[table] for table, counts in self.cells.items()}
        return Tallies(self.levels, self.count + other.count, cells)

    def tables(self, wanted: Sequence[Table]) -> list[IntArray]:
        """Counts of tables, one axis per column; ``ValueError`` if no counted table has them."""
        by_holder: dict[Table, dict[Table, None]] = {}
        for columns in wanted:
            holder = self.holder(columns)
            if holder is None:
                counted = ", ".join(map(str, self.cells))
                raise ValueError(
                    f"the table of columns {columns} was not counted and cannot be summed from the "
                    f"tables that were counted: {counted}"
                )
            by_holder.setdefault(holder, {})[tuple(sorted(columns))] = None
        summed: dict[Table, IntArray] = {}
        for holder, inside in by_holder.items():
            counts = self.cells[holder].reshape([self.levels[column] for column in holder])
            _add_sums(counts, holder, 0, list(inside), summed)
        found = []
        for columns in wanted:
            kept = tuple(sorted(columns))
            order = [kept.index(column) for column in columns]
            found.append(np.asarray(summed[kept].transpose(order)))
        return found

    def holder(self, columns: Table) -> Table | None:
        """The first counted table that contains all `columns`; None if there is none."""
        every = set(range(len(self.cells)))
        places = every.intersection(*(self._holders[c] for c in columns))
        return list(self.cells)[min(places)] if places else None

    @cached_property
    def _holders(self) -> list[set[int]]:
        """For each column, the places of the counted tables that contain it."""
        return [
            {place for place, table in enumerate(self.cells) if column in table}
            for column in range(len(self.levels))
        ]


@dataclass(frozen=True, eq=False)
class CountedRecords:
    """Counts, at most `max_rows_per_person` of a `person`, that mechanisms take for the records."""

    universe: Universe
    tallies: Tallies = field(repr=False)
    recount: Callable[[Sequence[Table]], Tallies] | None = field(default=None, repr=False)
    max_rows_per_person: int | None = None
    person: str | None = None

    @property
    def count(self) -> int:
        return self.tallies.count

    def table(self, columns: Sequence[int]) -> IntArray:
        return self.tables([tuple(columns)])[0]

    def with_tables(self, tables: Sequence[Table]) -> CountedRecords:
        """Counts from which all `tables` follow, counted again if necessary and possible."""
        missing = [table for table in tables if self.tallies.holder(table) is None]
        if not missing:
            return self
        if self.recount is None:
            raise ValueError(
                f"counts must include the table of columns {missing[0]}, which this mechanism "
                "measures; give the mechanism the records instead"
            )
        tallies = self.recount([table for table in tables if table])
        if tallies.count != self.count:
            raise ValueError(
                f"records must not change between two scans: {self.count} were counted first, then "
                f"{tallies.count}"
            )
        return replace(self, tallies=tallies)

    def tables(self, wanted: Sequence[Table]) -> list[IntArray]:
        """As `table` for several tables, which is faster than a call for each."""
        return self.tallies.tables(wanted)

    def histogram(self) -> IntArray:
        return self.table(range(len(self.tallies.levels))).ravel()

    def totals(self, workload: Workload) -> Totals:
        """Number of records, and sum of their answers; ``ValueError`` if it does not follow."""
        self.require(workload.universe)
        return Totals(self.count, self._sums(workload))

    def cell_counts(self, workload: TableQueries) -> Totals:
        """Numbers of records, all and in each cell of the tables of `workload`, without weights."""
        self.require(workload.universe)
        cells = [counts.ravel() for counts in self.tables(workload.tables)]
        return Totals(self.count, np.concatenate(cells).astype(np.float64))

    def require(self, universe: Universe) -> None:
        """Raise ``ValueError`` if the records were counted for another universe."""
        if universe != self.universe:
            raise ValueError(f"records were counted for {self.universe!r}, not for {universe!r}")

    def _sums(self, workload: Workload) -> npt.NDArray[np.float64]:
        match workload:
            case TableQueries():
                return self.cell_counts(workload).sums * workload.weights
            case ProductQueries():
                cells = self._sums(workload.workload)
                return np.asarray(workload.of_cells(cells[None])[0])
            case Marginals() | Parities():
                ones = np.array([_ones(workload, self.table(s)) for s in workload.subsets])
                low, high = workload._values
                return low * self.count + (high - low) * ones.astype(np.float64)
        counts = self.histogram()
        if isinstance(workload, FiniteWorkload):
            return workload._weighted_sum(counts.astype(np.float64))
        sums = np.zeros(workload.n_queries)
        present = np.flatnonzero(counts)
        for start in range(0, len(present), ELEMENTS):
            part = present[start : start + ELEMENTS]
            sums += counts[part] @ workload.evaluate(workload.universe.elements_at(part))
        return sums


def _ones(workload: Marginals | Parities, counts: IntArray) -> int:
    """Number of records with answer 1 (`Marginals`) or -1 (`Parities`), from a table of counts."""
    if isinstance(workload, Marginals):
        return int(counts[(1,) * counts.ndim])
    return int(counts[np.indices(counts.shape).sum(axis=0) % 2 == 1].sum())


@dataclass(frozen=True, eq=False)
class RecordCounts:
    """Counts of valid records that are in memory, in the encoding of the universe."""

    universe: Universe
    records: npt.NDArray[Any] = field(repr=False)

    @property
    def count(self) -> int:
        return len(self.records)

    def table(self, columns: Sequence[int]) -> IntArray:
        assert isinstance(self.universe, CategoricalProduct)
        shape = tuple(self.universe.levels[column] for column in columns)
        if not shape:
            return np.array(self.count)
        cells = np.ravel_multi_index(tuple(self.records[:, list(columns)].T), shape)
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)

    def histogram(self) -> IntArray:
        size = self.universe.size
        assert size is not None
        return np.bincount(self.universe.numbers(self.records), minlength=size)


#: Counts of records, of whichever the tables are asked: the input of private measurements.
Counts: TypeAlias = CountedRecords | RecordCounts


def _add_sums(
    counts: IntArray,
    columns: Table,
    axis: int,
    wanted: Sequence[Table],
    found: dict[Table, IntArray],
) -> None:
    """Add the tables `wanted`, which have all `columns` before `axis`, to `found` from `counts`."""
    if axis == len(columns):
        found[columns] = counts
        return
    column = columns[axis]
    kept = [table for table in wanted if column in table]
    if kept:
        _add_sums(counts, columns, axis + 1, kept, found)
    if len(kept) < len(wanted):
        rest = [table for table in wanted if column not in table]
        smaller = (*columns[:axis], *columns[axis + 1 :])
        _add_sums(counts.sum(axis=axis), smaller, axis, rest, found)


# The tables that determine the answers to a workload, and a few large tables that give them


#: Tables of at most this many cells (512 KB) stay in the processor's cache while counted.
CACHED_CELLS = 1 << 16
#: Largest number of levels of a column: codes fit uint16, whose 65,535 marks unknown values.
MAX_LEVELS = (1 << 16) - 2
#: Largest number of cells of one table: 2^26 int64 are 512 MB.
MAX_CELLS = 1 << 26
#: The table of all columns, from which all others follow, is counted up to this many cells (8 MB).
MAX_WHOLE = 1 << 20

Table = tuple[int, ...]


def tables_of(workload: Workload, levels: Sequence[int]) -> list[Table] | None:
    """The tables that determine the answers to `workload`, with that of all columns if it has at
    most 2^20 cells; None if one has more than 2^26 cells or a column more than 65,534 levels.
    """
    match workload, workload.universe:
        case (TableQueries() as cells, _) | (ProductQueries(workload=cells), _):
            tables: list[Table] = list(cells.tables)
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
    """Sorted tables whose sums give all of `tables`; that of all columns comes last."""
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
    """The block of each column; `per_table` have at most `CACHED_CELLS` cells, if possible."""
    room = CACHED_CELLS ** (1 / per_table)
    blocks: list[list[int]] = []
    # Each column, the largest first, joins the first block that stays small: nearly the fewest.
    for column in sorted(columns, key=lambda column: -levels[column]):
        for block in blocks:
            if math.prod(levels[other] for other in block) * levels[column] <= room:
                block.append(column)
                break
        else:
            blocks.append([column])
    return {column: tuple(block) for block in blocks for column in block}


# One scan of a source, in this process or on a cluster


@dataclass(frozen=True, eq=False)
class EncodedRecords:
    """Records that were checked and counted; each iteration reads the records again."""

    count: int
    source: Source
    schema: Schema
    universe: Universe

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return encode_source(self.source, self.schema, self.universe)


def source_of(
    records: str
    | os.PathLike[str]
    | pd.DataFrame
    | pl.DataFrame
    | pa.Table
    | dd.DataFrame
    | Source,
) -> Source:
    """The source that reads `records`.

    ``FileNotFoundError`` if there is no such file; ``ValueError`` for another type, or a file whose
    name does not end in .csv, .csv.gz or .parquet.

    Parameters
    ----------
    records : path, DataFrame, Table or Source
        The path of a CSV or Parquet file, or of a folder of such files, or a pattern with ``*``,
        ``?`` or ``**`` such as ``a/*.parquet``. Files in a folder are read at any depth, in the
        order of their paths, but no file or subfolder whose name starts with a dot or an
        underscore. A DataFrame of pandas, polars or Dask, or an Arrow table. A source, such as
        `Query`, is returned unchanged.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> records = pd.DataFrame({"age": [30, 40, 50]})
    >>> gd.data.source_of(records)
    Frame(DataFrame of 3 rows)
    >>> records.to_csv("survey.csv", index=False)
    >>> gd.data.source_of("survey.csv")
    File(survey.csv)
    """
    if isinstance(records, Source):
        return records
    if isinstance(records, str | os.PathLike):
        files = record_files(records)
        return File(files[0]) if files == (Path(records),) else Files(os.fspath(records), files)
    if is_dask(records):
        return Partitions(records)
    if is_frame(records):
        return Frame(records)
    raise ValueError(
        f"records must be a DataFrame, a table, a path or a source, got {type(records).__name__}"
    )


def count_records(
    source: Source,
    schema: Schema,
    workload: Workload,
    *,
    client: Client | None = None,
    person: str | None = None,
    max_rows_per_person: int | None = None,
) -> CountedRecords | EncodedRecords:
    """Check and count the records of a source, usually in one scan.

    Parameters
    ----------
    source, schema : Source, Schema
        The source, from `source_of`, and the columns that make up a record, in order.
    workload : Workload
        The queries. If the answers follow from tables of counts, only these tables are kept. If
        not, the records are encoded in chunks each time a mechanism iterates over the result.
    client : distributed.Client, optional
        A Dask cluster that counts the parts of the source. The result does not depend on the parts.
    person, max_rows_per_person : str and int, optional
        A column, no part of a record, that names the person of each row, as a text, and how many
        rows of a person are counted at most: those with the least SHA-256 of the person, the record
        and its number among equal ones. So the choice depends on the rows of this person alone, in
        any order, and over many persons takes all rows equally often. DuckDB sorts the rows, on
        disk if needed.

    Returns
    -------
    CountedRecords or EncodedRecords
        Both have `count`, the number of records. A mechanism accepts either in place of records.

    Raises
    ------
    ValueError
        If the schema does not fit the workload, or a record (with part, row and column) does not
        fit the schema; if `client` or `person` is given, but the answers do not follow from tables
        of counts; if both are given, or a row has no person.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> schema = gd.data.Schema.from_dict({"region": ["north", "south"], "smoker": bool})
    >>> frame = pd.DataFrame({"region": ["north", "south", "south"], "smoker": [True, False, True]})
    >>> workload = schema.workload("marginals", k=1)
    >>> counted = gd.data.count_records(gd.data.source_of(frame), schema, workload)
    >>> mechanism = gd.mechanisms.Laplace(workload, n=counted.count, privacy=gd.PureDP(1.0))
    >>> len(mechanism.release(counted).answers)
    4
    """
    require_type(source, Source, "source")
    require_type(workload, Workload, "workload")
    require_type(schema, Schema, "schema")
    source = source.written_as(schema.csv)
    if (person is None) != (max_rows_per_person is None):
        raise ValueError(
            f"person and max_rows_per_person belong together, got {(person, max_rows_per_person)}"
        )
    if person in schema.names:
        raise ValueError(f"person must be no column of the queries, got {person!r}")
    if person is not None and client is not None:
        raise ValueError("person needs all rows in one place: leave out the cluster")
    if max_rows_per_person is not None:
        whole(max_rows_per_person, "max_rows_per_person")
    columns = columns_for(workload.universe, schema)
    read = Read(schema, columns)
    tables = tables_of(workload, read.levels) if len(read.levels) == len(columns) else None
    if tables is None:
        if client is not None:
            raise ValueError(f"a cluster counts tables only, and {workload!r} needs the records")
        if person is not None:
            raise ValueError(f"person is for tables only, and {workload!r} needs the records")
        n = sum(len(chunk) for chunk in encode_source(source, schema, workload.universe))
        return EncodedRecords(n, source, schema, workload.universe)

    recount = partial(_count, source, read, client, person, max_rows_per_person)
    return CountedRecords(workload.universe, recount(tables), recount, max_rows_per_person, person)


def _count(
    source: Source,
    read: Read,
    client: Client | None,
    person: str | None,
    most: int | None,
    tables: Sequence[Table],
) -> Tallies:
    if client is not None:
        return _count_on_cluster(source, read, tables, client)
    if person is None or most is None:
        return _tallied(_codes(read, source), read, tables)
    return _tallied(_kept_codes(source, read, person, most), read, tables)


def _codes(
    read: Read, source: Source, person: str | None = None
) -> Iterator[list[npt.NDArray[Any]]]:
    """`Read.codes` of all parts of a source; if it has several, an error names the part."""
    for part in source.parts:
        try:
            yield from read.codes(part.chunks, person)
            continue
        except RecordsError as error:
            named = len(source.parts) == 1 or part.name in str(error)
            message = str(error) if named else f"{part.name}: {error}"
        raise RecordsError(message)


def _tallied(chunks: Iterator[list[Codes]], read: Read, tables: Sequence[Table]) -> Tallies:
    return reduce(Tallies.with_records, chunks, Tallies.empty(read.levels, tables))


#: The rows that are kept of each person. Equal records of a person are numbered, in any order.
KEPT = """
SELECT record
FROM (SELECT *, row_number() OVER (PARTITION BY person, record) AS copy FROM people)
QUALIFY ? >= row_number() OVER (PARTITION BY person
    ORDER BY sha256(concat_ws(' ', person, hex(record), copy)), record, copy)
"""


def _kept_codes(source: Source, read: Read, person: str, most: int) -> Iterator[list[Codes]]:
    """The codes (n,) of each column for chunks of the rows that are kept, of all parts together."""
    kept = _kept_records(source, read, person, most)
    for batch in quiet(kept, f"{source.name} cannot be counted"):
        records = np.frombuffer(b"".join(batch.column(0).to_pylist()), dtype=np.uint16)
        yield list(records.reshape(-1, len(read.columns)).astype(np.int64).T)


def _kept_records(source: Source, read: Read, person: str, most: int) -> Iterator[pa.RecordBatch]:
    """Records as bytes, two for each code."""
    import pyarrow as pa

    with opened(None) as connection:
        connection.execute("CREATE TABLE people (person VARCHAR, record BLOB)")
        for *codes, persons in _codes(read, source, person):
            records = np.stack(codes, axis=1).astype(np.uint16)
            width, own = pa.binary(2 * len(codes)), pa.py_buffer(records.tobytes())
            packed = pa.FixedSizeBinaryArray.from_buffers(width, len(records), [None, own])
            chunk = pa.table({"person": persons.tolist(), "record": packed})
            connection.register("chunk", chunk).execute("INSERT INTO people FROM chunk")
        yield from connection.sql(KEPT, params=[most]).to_arrow_reader(CHUNK_ROWS)


def encode_source(source: Source, schema: Schema, universe: Universe) -> Iterator[npt.NDArray[Any]]:
    """Encode all parts of a source. If the source has several parts, an error names the part."""
    columns = columns_for(universe, schema)
    codes = _codes(Read(schema, columns), source.written_as(schema.csv))
    return encoded(codes, columns, universe)


def _count_on_cluster(
    source: Source, read: Read, tables: Sequence[Table], client: Client
) -> Tallies:
    """Counts on a Dask cluster: one task per part counts, and a tree of tasks adds the counts."""
    counts: list[Future] = []
    for part in source.parts:
        # A worker computes a partition; a task reads any other source.
        sent = client.compute(part.delayed) if isinstance(part, Partition) else part
        counts.append(client.submit(_tally_task, sent, part.name, read, tables, pure=False))
    while len(counts) > 1:
        counts = [
            client.submit(_sum, counts[start : start + FAN_IN], pure=False)
            for start in range(0, len(counts), FAN_IN)
        ]
    result: Tallies | str = counts[0].result()
    if isinstance(result, str):
        raise RecordsError(result)
    return result


def _tally_task(
    part: Source | pd.DataFrame, name: str, read: Read, tables: Sequence[Table]
) -> Tallies | str:
    """The counts of one part, or the message of an error: raised, Dask would log the records."""
    source = part if isinstance(part, Source) else Frame(part)
    try:
        return _tallied(_codes(read, source), read, tables)
    except RecordsError as error:
        return f"{name}: {error}"


def _sum(parts: Sequence[Tallies | str]) -> Tallies | str:
    """The sum of some counts, as one task, or the first message of an error."""
    counts = [part for part in parts if not isinstance(part, str)]
    if len(counts) < len(parts):
        return next(part for part in parts if isinstance(part, str))
    return reduce(add, counts)
