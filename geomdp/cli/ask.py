"""The command `ask`: adaptive questions about a table, answered one by one within one budget.

A run lives in one process. Its noise is never written, so no later process can use it again: a run
that was killed is over, and a new one pays anew. The file of --state holds the public answers. It
is created for one run and locked while that lasts; each answer is on disk before it is shown.
"""

from __future__ import annotations

import enum
import fcntl
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO, TypeAlias, TypedDict

import numpy as np
import typer

from geomdp.cli import display
from geomdp.cli.options import (
    QUERIES,
    RESULT,
    AdjacencyOption,
    BudgetOption,
    ColumnsOption,
    CountOption,
    DataArgument,
    DatabaseOption,
    DeltaOption,
    EpsilonOption,
    LedgerOption,
    SampleOption,
    SchemaOption,
    SqlOption,
    check_normaliser,
    check_whole,
    real,
    whole_number,
)
from geomdp.cli.privacy_flags import AdjacencyFlag, parse_privacy
from geomdp.cli.progress import working
from geomdp.privacy import Adjacency, ApproxDP, BudgetExhausted, Exact, Guarantee, PureDP

if TYPE_CHECKING:
    from geomdp.mechanisms import AboveThreshold, NumericSparse, OnlineConstruction, Sparse
    from geomdp.mechanisms.interactive.transcript import Answer
    from geomdp.privacy import Ledger
    from geomdp.workloads.single_queries.single_query import DenseQuery

    _Mechanism: TypeAlias = OnlineConstruction[DenseQuery] | AboveThreshold | Sparse | NumericSparse

#: Largest number of level combinations: a query is a vector with an entry for each.
MAX_ELEMENTS = 1 << 20


class Technique(enum.StrEnum):
    """Values of --technique."""

    ABOVE_THRESHOLD = "above-threshold"
    SPARSE = "sparse"
    NUMERIC_SPARSE = "numeric-sparse"
    ONLINE = "online"


TechniqueOption = Annotated[
    Technique,
    typer.Option(
        "--technique",
        help="above-threshold: stop at the first share above T. sparse: find up to C of them; "
        "numeric-sparse: and their values. online: a value for each of K questions.",
        rich_help_panel=QUERIES,
    ),
]
ThresholdOption = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        parser=real,
        metavar="T",
        help="Share of records to compare with; not with online.",
        rich_help_panel=QUERIES,
    ),
]
CutoffOption = Annotated[
    int | None,
    typer.Option(
        "--cutoff",
        parser=whole_number,
        metavar="C",
        help="Stop after C shares above the threshold; for sparse and numeric-sparse.",
        rich_help_panel=QUERIES,
    ),
]
QuestionsOption = Annotated[
    int | None,
    typer.Option(
        "--questions",
        parser=whole_number,
        metavar="K",
        help="Most questions asked; for online.",
        rich_help_panel=QUERIES,
    ),
]
QueriesOption = Annotated[
    str,
    typer.Option(
        "--queries",
        metavar="FILE",
        help="One question a line, such as region=north,smoker=true: the share of records with all "
        "these levels. - reads standard input and answers line by line.",
        rich_help_panel=QUERIES,
    ),
]
StateOption = Annotated[
    Path,
    typer.Option(
        "--state",
        metavar="FILE",
        help="Created for this run, and locked by it: the questions and answers, one JSON object a "
        "line. A run cannot be continued.",
        rich_help_panel=RESULT,
    ),
]


class _Shared(TypedDict):
    privacy: PureDP | ApproxDP
    adjacency: Adjacency
    ledger: Ledger | None


def ask(
    data: DataArgument = None,
    *,
    sample: SampleOption = None,
    sql: SqlOption = None,
    database: DatabaseOption = None,
    schema: SchemaOption = None,
    n: CountOption = None,
    columns: ColumnsOption = None,
    queries: QueriesOption,
    technique: TechniqueOption,
    threshold: ThresholdOption = None,
    cutoff: CutoffOption = None,
    questions: QuestionsOption = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    adjacency: AdjacencyOption = AdjacencyFlag.REPLACE_ONE,
    ledger: LedgerOption = None,
    budget: BudgetOption = None,
    state: StateOption,
) -> None:
    """Answer adaptive questions about the records in DATA, one by one, within one budget."""
    from geomdp.cli.inputs import record_source, sql_query
    from geomdp.cli.ledger_flags import check_payment, opened_ledger
    from geomdp.cli.questions import split_columns
    from geomdp.data import CountedRecords, count_records
    from geomdp.workloads import Histogram

    relation, privacy = adjacency.relation(), parse_privacy(epsilon, delta, None)
    assert isinstance(privacy, PureDP | ApproxDP)  # without --rho
    check_normaliser(n, relation)
    check_payment(ledger, budget, provable=True)
    setting = _Setting(technique, threshold, cutoff, questions, privacy, relation)
    names = None if columns is None else split_columns(columns)
    source = record_source(data, sample, schema, False, names, sql_query(sql, database))
    declared = source.described.schema
    declared = declared.select(list(declared.levels) if names is None else names)
    table = _Table(declared.labels)
    with (
        _lines(queries, table) as lines,
        opened_ledger(ledger, budget, relation) as account,
        _exclusive(state) as record,
    ):
        if account is not None:
            account.require(Guarantee(privacy, relation, Exact()), "ask")
        with working("reading records"):
            workload = Histogram(table.size)
            counted = count_records(source.table, declared, workload)
        if relation is Adjacency.REPLACE_ONE:
            if n not in (None, counted.count):
                raise ValueError(f"--n must be the number of records, {counted.count}, got {n}")
            n = counted.count
        assert n is not None
        if n == 0:
            raise ValueError(f"{source.name} must hold at least 1 record, got 0")
        assert isinstance(counted, CountedRecords)
        histogram = counted.totals(workload).sums.astype(np.int64)
        mechanism = setting.mechanism(table.size, n, account)

        # Whole numbers below 2^53 add up exactly, so a share of all records is at most 1.
        def truth(query: DenseQuery) -> float:
            return query.total(histogram) / n

        _answer_all(lines, mechanism, truth, record)


@dataclass(frozen=True)
class _Setting:
    """The flags that describe the mechanism; contradictions raise ``ValueError``."""

    technique: Technique
    threshold: float | None
    cutoff: int | None
    questions: int | None
    privacy: PureDP | ApproxDP
    adjacency: Adjacency

    def __post_init__(self) -> None:
        online = self.technique is Technique.ONLINE
        several = self.technique in (Technique.SPARSE, Technique.NUMERIC_SPARSE)
        for flag, value, wanted in (
            ("--threshold", self.threshold, not online),
            ("--cutoff", self.cutoff, several),
            ("--questions", self.questions, online),
        ):
            if (value is not None) != wanted:
                verb = "needs" if wanted else "does not take"
                raise ValueError(f"--technique {self.technique} {verb} {flag}")
        first_only = self.technique is Technique.ABOVE_THRESHOLD
        if first_only and not isinstance(self.privacy, PureDP):
            raise ValueError("--technique above-threshold does not take --delta")
        check_whole("--cutoff", self.cutoff, minimum=1)
        check_whole("--questions", self.questions, minimum=1)

    def mechanism(self, size: int, n: int, ledger: Ledger | None) -> _Mechanism:
        """The mechanism for `n` records on `size` elements; the ledger pays when it is built."""
        from geomdp.mechanisms import (
            AboveThreshold,
            MultiplicativeWeights,
            NumericSparse,
            OnlineConstruction,
            Sparse,
        )

        shared: _Shared = {"privacy": self.privacy, "adjacency": self.adjacency, "ledger": ledger}
        if self.questions is not None:
            rule = MultiplicativeWeights(size)
            return OnlineConstruction(rule, n=n, queries=self.questions, **shared)
        assert self.threshold is not None
        if self.cutoff is None:
            assert isinstance(self.privacy, PureDP)  # checked above
            return AboveThreshold(
                self.threshold,
                sensitivity=1 / n,
                privacy=self.privacy,
                adjacency=self.adjacency,
                ledger=ledger,
            )
        kind = Sparse if self.technique is Technique.SPARSE else NumericSparse
        return kind(self.threshold, cutoff=self.cutoff, sensitivity=1 / n, **shared)


class _Table:
    """The level combinations of the columns, and the queries that select some of them."""

    def __init__(self, labels: Mapping[str, Sequence[str]]) -> None:
        self.labels = labels
        self.size = math.prod(map(len, labels.values()))
        if self.size > MAX_ELEMENTS:
            raise ValueError(
                f"the columns must have at most 2^20 combinations of levels, got {self.size}: "
                "choose some with --columns"
            )

    def query(self, text: str) -> DenseQuery:
        """The query of one line, such as ``region=north,smoker=true``."""
        from geomdp.workloads.single_queries.single_query import DenseQuery

        chosen: dict[str, str] = {}
        for part in text.split(","):
            name, equals, level = part.strip().partition("=")
            if not equals or name not in self.labels or name in chosen:
                raise ValueError(
                    "a question must be COLUMN=LEVEL,... with each column once, of "
                    f"{', '.join(self.labels)}; got {text!r}"
                )
            if level not in self.labels[name]:
                known = ", ".join(self.labels[name])
                raise ValueError(f"level of {name} must be one of {known}; got {level!r}")
            chosen[name] = level
        values = np.ones(())
        for name, levels in self.labels.items():
            allowed = [name not in chosen or level == chosen[name] for level in levels]
            values = np.multiply.outer(values, np.array(allowed, dtype=np.float64))
        return DenseQuery(values.ravel())


#: A question as it was written, and as a query; None where it was no question.
Lines: TypeAlias = "Iterable[tuple[str, DenseQuery]]"


@contextmanager
def _lines(place: str, table: _Table) -> Iterator[Lines]:
    """The questions: of a file, all read and checked at once; of standard input, one by one.

    Yields
    ------
    iterable of (str, DenseQuery)
        Questions as written and as queries.
    """
    if place == "-":
        yield _streamed(sys.stdin, table)
        return
    parsed = []
    for number, line in enumerate(Path(place).read_text(encoding="utf-8").splitlines(), start=1):
        try:
            parsed.append((line, table.query(line)))
        except ValueError as error:
            raise ValueError(f"--queries {place}, line {number}: {error}") from error
    yield parsed


def _streamed(stream: TextIO, table: _Table) -> Lines:
    """Questions as they come. A wrong one is reported and costs nothing: the run goes on."""
    for line in map(str.strip, stream):
        try:
            query = table.query(line)
        except ValueError as error:
            display.warn(str(error))
        else:
            yield line, query


@contextmanager
def _exclusive(state: Path) -> Iterator[TextIO]:
    """The state file, new and locked for this process.

    A file that is there belongs to another run, which is going on or over: it is refused. If
    nothing was answered, for instance because the ledger could not pay, it is removed again.

    Yields
    ------
    TextIO
        The open file.
    """
    try:
        record = state.open("x", encoding="utf-8")
    except FileExistsError as error:
        raise ValueError(
            f"--state {state} belongs to another run, and a run cannot be continued: its noise is "
            "gone with its process; give the name of a new file"
        ) from error
    with record:
        fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            yield record
        finally:
            if record.tell() == 0:
                state.unlink()


def _answer_all(
    lines: Lines, mechanism: _Mechanism, truth: Callable[[DenseQuery], float], record: TextIO
) -> None:
    """Answer the questions until they end or the mechanism does."""
    started: dict[str, object] = {
        "claim": str(mechanism.guarantee),
        "mechanism": type(mechanism).__name__,
    }
    _written(record, started)
    for number, (text, query) in enumerate(lines):
        try:
            answer = _asked(mechanism, query, truth(query))
        except BudgetExhausted as error:
            display.warn(f"no more answers: {error}")
            return
        _written(record, {"index": number, "query": text, **answer._asdict()})
        print(f"{text}\t{_in_words(mechanism, answer)}", flush=True)


def _asked(mechanism: _Mechanism, query: DenseQuery, truth: float) -> Answer:
    from geomdp.mechanisms import OnlineConstruction

    if isinstance(mechanism, OnlineConstruction):
        return mechanism.ask_truth(query, truth)
    return mechanism.ask(truth)


def _in_words(mechanism: _Mechanism, answer: Answer) -> str:
    """One answer as it is shown."""
    from geomdp.mechanisms import OnlineConstruction

    value = "" if answer.value is None else f"{answer.value:.6g}"
    if isinstance(mechanism, OnlineConstruction):
        return value
    return "\t".join(filter(None, ["above" if answer.above else "below", value]))


def _written(record: TextIO, line: dict[str, object]) -> None:
    """Add a line to the state file; on disk when this returns."""
    record.write(json.dumps(line) + "\n")
    record.flush()
    os.fsync(record.fileno())
