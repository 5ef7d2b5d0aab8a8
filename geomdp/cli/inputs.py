"""The source of records and of their schema: files, a database or a bundled sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from geomdp.cli import display
from geomdp.cli.flags import Question
from geomdp.data import (
    Query,
    Sample,
    Schema,
    Source,
    fair_affairs,
    infer_schema,
    rand_health_insurance,
    source_of,
)
from geomdp.data.counting import encode_source
from geomdp.tabulation.tasks import Task

if TYPE_CHECKING:
    from distributed import Client

#: Seconds to wait for the scheduler of a cluster.
CONNECT_SECONDS = 10
#: Functions that load the bundled tables, by the values of --sample.
SAMPLES: dict[str, Callable[[], Sample]] = {"rand": rand_health_insurance, "affairs": fair_affairs}


@dataclass(frozen=True, repr=False)
class RecordSource:
    """Records that can be read more than once, with their schema and the origin of the schema."""

    schema: Schema
    origin: str
    name: str
    table: Source

    def __repr__(self) -> str:
        return f"RecordSource({self.name}, {self.schema!r})"

    def records(self, task: Task) -> Iterator[npt.NDArray[Any]]:
        """Records in chunks, encoded for the universe of `task`; errors name row and column."""
        schema = self.schema.select(task.columns).confirm()
        return encode_source(self.table, schema, task.workload.universe)


@dataclass(frozen=True)
class RecordFlags:
    """The flags of a command that name the records and the schema."""

    data: Path | None
    sample: str | None
    schema: Path | None
    infer: bool = False
    sql: str | None = None
    database: str | None = None

    def source(self, columns: Sequence[str] | None) -> RecordSource:
        """The records and their schema, inferred for `columns`; ``ValueError`` for wrong flags."""
        if self.sql is not None:
            return self._queried(self.sql)
        if self.database is not None:
            raise ValueError("--database needs --sql, got --database alone")
        if self.sample is not None:
            return self._bundled(self.sample)
        if self.data is None:
            raise ValueError("give either a DATA file or --sample, got neither")
        table = source_of(self.data)
        schema, origin = _schema_of_file(self.data, self.schema, self.infer, columns)
        return RecordSource(schema, origin, table.name, table)

    def _queried(self, sql: str) -> RecordSource:
        if self.infer or self.data is not None or self.sample is not None:
            raise ValueError("--sql needs --schema, and excludes DATA, --sample and --infer-schema")
        query = Query(sql, self.database)
        return RecordSource(*described_schema(None, self.schema), query.name, query)

    def _bundled(self, sample: str) -> RecordSource:
        if self.data is not None:
            raise ValueError("give either a DATA file or --sample, got both")
        if self.infer:
            raise ValueError("--infer-schema excludes --sample, because a sample has a schema")
        schema, origin = described_schema(sample, self.schema)
        name, table = f"sample {sample}", source_of(_sample(sample).path)
        return RecordSource(schema, origin, name, table)


def planned_task(question: Question, sample: str | None, schema: Path | None) -> Task:
    """The queries of `question` on the columns of a sample or schema, with a warning if drafted."""
    task = question.task(described_schema(sample, schema)[0])
    warn_of(task.caveat)
    return task


def warn_of(caveat: str) -> None:
    """Print that there is no privacy claim, and how to get one; nothing if there is no caveat."""
    if caveat:
        display.warn(
            f"no privacy claim: {caveat}; `geomdp schema confirm FILE` states that they are known "
            "without the records, and brings the claim back (edit what is not)"
        )


@contextmanager
def connected(scheduler: str | None) -> Iterator[Client | None]:
    """Yield a client of the cluster that --scheduler names, or None without --scheduler."""
    if scheduler is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError(
            '--scheduler needs the extra "cluster": pip install "geomdp[cluster]"'
        ) from error
    try:
        client = Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise ValueError(f"--scheduler {scheduler} does not answer: {error}") from error
    with client:
        yield client


def described_schema(sample: str | None, schema: Path | None) -> tuple[Schema, str]:
    """The declared schema that --sample or --schema names, and its origin in words."""
    if (sample is None) == (schema is None):
        given = "neither" if sample is None else "both"
        raise ValueError(f"give either --schema or --sample, got {given}")
    if sample is not None:
        return _sample(sample).schema, f"declared with sample {sample}"
    assert schema is not None
    return read_schema(schema, f"--schema {schema}"), f"declared in {schema}"


def read_schema(path: Path, shown: str) -> Schema:
    """The schema in a file; one ``ValueError`` for each fault, after the text `shown`."""
    try:
        return Schema.from_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        faults = [ValueError(f"{shown}: {fault}") for fault in str(error).split("\n")]
        if len(faults) > 1:
            raise ExceptionGroup("bad schema", faults) from error
        raise faults[0] from error


def _schema_of_file(
    data: Path, schema: Path | None, infer: bool, columns: Sequence[str] | None
) -> tuple[Schema, str]:
    if (schema is not None) == infer:
        given = "both" if infer else "neither"
        raise ValueError(f"give either --schema FILE or --infer-schema with DATA, got {given}")
    if schema is not None:
        return described_schema(None, schema)
    return infer_schema(data, columns).schema, "inferred from the records (not private)"


def _sample(name: str) -> Sample:
    if name not in SAMPLES:
        raise ValueError(f"--sample must be one of {', '.join(SAMPLES)}, got {name!r}")
    try:
        return SAMPLES[name]()
    except ImportError as error:
        raise ValueError(f"--sample {name}: {error}") from error
