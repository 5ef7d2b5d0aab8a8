"""What the flags name: records with their schema, and the mechanism."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import geomdp as gd
from geomdp._validation import positive
from geomdp.advice import Plan
from geomdp.advice.candidates import CANDIDATES, STEPS, Candidate, Step, candidate_named
from geomdp.advice.setting import DEFAULT_EFFORT, UNLIMITED, InapplicableError, Setting
from geomdp.cli import display
from geomdp.cli.flags import AUTO, Question
from geomdp.data import Query, Schema, fair_affairs, infer_schema, rand_health_insurance, source_of
from geomdp.data.frames import Source
from geomdp.data.samples import Sample
from geomdp.mechanisms import Mechanism
from geomdp.privacy import Exact
from geomdp.tabulation.tasks import Task
from geomdp.workloads import Workload

if TYPE_CHECKING:
    from distributed import Client

#: Seconds to wait for the scheduler of a cluster.
CONNECT_SECONDS = 10
#: Functions that load the bundled tables, by the values of --sample.
SAMPLES: dict[str, Callable[[], Sample]] = {"rand": rand_health_insurance, "affairs": fair_affairs}


@dataclass(frozen=True)
class RecordSource:
    """Records that can be read more than once, with their schema and the origin of the schema."""

    schema: Schema
    origin: str
    name: str
    table: Source


def record_source(
    columns: Sequence[str] | None,
    data: Path | None,
    sample: str | None,
    schema: Path | None,
    infer: bool = False,
    sql: str | None = None,
    database: str | None = None,
) -> RecordSource:
    """The records and the schema, maybe inferred for `columns`, that the flags name."""
    places = {"DATA": data, "--sample": sample, "--sql": sql}
    given = [flag for flag, value in places.items() if value is not None]
    if len(given) != 1:
        said = " and ".join(given) or "none of them"
        raise ValueError(f"give either a DATA file, --sample or --sql, got {said}")
    if database is not None and sql is None:
        raise ValueError(f"--database needs --sql, got {given[0]}")
    if infer and (data is None or schema is not None):
        raise ValueError("--infer-schema needs a DATA file, and excludes --schema")
    if sample is not None:
        described = described_schema(sample, schema)
        return RecordSource(*described, f"sample {sample}", source_of(_sample(sample).path))
    table = Query(sql, database) if sql is not None else source_of(data or "")
    if data is not None and infer:
        origin = "inferred from the records (not private)"
        return RecordSource(infer_schema(data, columns).schema, origin, table.name, table)
    return RecordSource(*described_schema(None, schema), table.name, table)


def planned_task(
    question: Question, sample: str | None, schema: Path | None, *, declared: bool = False
) -> Task:
    """The queries on a declared table; unless `declared`, all records count as possible."""
    given = described_schema(sample, schema)[0]
    task = question.task(given if declared else undeclared(given))
    warn_of(task.caveat)
    return task


def undeclared(schema: Schema) -> Schema:
    """The schema as if all combinations of levels were possible, with a warning if some are not."""
    if schema.forbidden:
        display.warn(
            "what the schema declares impossible is not used here: all combinations of levels "
            "count as possible; `geomdp advise` and `geomdp release` use it, and mostly err less"
        )
    return replace(schema, impossible=(), refines=())


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
        extra = 'the extra "cluster": pip install "geomdp[cluster]"'
        raise ValueError(f"--scheduler needs {extra}") from error
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


def _sample(name: str) -> Sample:
    if name not in SAMPLES:
        raise ValueError(f"--sample must be one of {', '.join(SAMPLES)}, got {name!r}")
    try:
        return SAMPLES[name]()
    except ImportError as error:
        raise ValueError(f"--sample {name}: {error}") from error


# The mechanism: by least predicted error, by name, or by a saved plan


@dataclass(frozen=True)
class Choice:
    """A rule that chooses the mechanism: in words, and as a function for `geomdp.release`."""

    by: str
    rule: Callable[..., Mechanism]
    #: Whether the user named a step of post-processing, such as a projection.
    has_step: bool = False
    #: The weight of each table, from a plan; None for those of the flags.
    weights: Sequence[float] | None = None


def choice_of(mechanism: str, exact: bool, effort: float | None) -> Choice:
    """The choice by --mechanism, --exact and --effort; ``ValueError`` if they are wrong."""
    if mechanism == AUTO:
        seconds = checked_effort(effort)

        def least_error(workload: Workload, **asked: Any) -> Mechanism:
            return gd.advise(workload, **asked, exact_only=exact, effort=seconds).best

        return Choice("least predicted error", least_error)
    if effort is not None:
        raise ValueError(f"--effort needs --mechanism {AUTO}, got --mechanism {mechanism}")
    step, _ = _parsed(mechanism)

    def named(workload: Workload, **asked: Any) -> Mechanism:
        return build_mechanism(mechanism, Setting(workload, **asked, exact_only=exact))

    return Choice("the user", named, step is not None)


def planned_choice(path: Path, plan: Plan, exact: bool, max_rows: int | None) -> Choice:
    """The mechanism, and the weights of tables, that --save-plan has saved in the file `path`."""
    if (planned_rows := plan.max_rows_per_person) != max_rows:
        said = f"{planned_rows or 'none'}, got {max_rows or 'none'}"
        raise ValueError(f"--max-rows-per-person must be that of --plan {path}, {said}")

    def planned(workload: Workload, **asked: Any) -> Mechanism:
        try:
            with warnings.catch_warnings(record=True, action="always") as caught:
                mechanism = plan(workload, **asked)
        except ValueError as error:
            raise ValueError(f"--plan {path}: {error}") from error
        for each in caught:
            display.warn(f"--plan {path}: {each.message}")
        _check_sampler(mechanism, exact, f"--plan {path}")
        return mechanism

    return Choice(f"the plan in {path}", planned, weights=plan.weights)


def checked_effort(effort: float | None) -> float:
    """The seconds of --effort; ``ValueError`` if they are not above 0."""
    return DEFAULT_EFFORT if effort is None else positive(effort, "--effort")


def build_mechanism(flag: str, setting: Setting) -> Mechanism:
    """The mechanism named `flag`, at any cost; ``ValueError`` if unknown or not applicable."""
    step, row = _parsed(flag)
    try:
        # `_check_sampler` below checks exactness, because its message names the flag.
        mechanism = row.built(replace(setting, exact_only=False, budget=UNLIMITED), step)
    except InapplicableError as error:
        raise ValueError(f"--mechanism {flag} does not apply: {error}") from error
    _check_sampler(mechanism, setting.exact_only, f"--mechanism {flag}")
    return mechanism


def _check_sampler(mechanism: Mechanism, exact: bool, flag: str) -> None:
    """If `exact` is true and the sampler is not exact, raise a ``ValueError`` that names `flag`."""
    sampler = mechanism.guarantee.sampler
    if exact and not isinstance(sampler, Exact):
        raise ValueError(f"{flag} needs --allow-heuristic here: its sampler is {sampler}")


def _parsed(flag: str) -> tuple[Step | None, Candidate]:
    """The post-processing step that the prefix of `flag` names (or None), and the candidate."""
    step, row = candidate_named(flag)
    if row is None:
        known = ", ".join(row.flag for row in CANDIDATES)
        *some, last = (each.prefix for each in STEPS)
        raise ValueError(
            f"--mechanism must be {AUTO} or one of {known}, or {', '.join(some)} or {last} before "
            f"one of them; got {flag!r}"
        )
    if step is not None and step not in row.steps:
        raise ValueError(f"--mechanism {row.flag} projects its answers already, got {flag!r}")
    return step, row
