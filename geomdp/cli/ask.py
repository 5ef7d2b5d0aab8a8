"""The command `ask`: answers to adaptive questions about a table, within one budget."""

from __future__ import annotations

import enum
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeAlias

import numpy as np

import geomdp as gd
from geomdp._typing import IntArray
from geomdp.cli import display, flags
from geomdp.cli.display import naming_flags, working
from geomdp.cli.flags import options, reader, real, whole_number
from geomdp.cli.outputs import Payment, record_room
from geomdp.cli.release import privacy_record
from geomdp.privacy import Adjacency, ApproxDP, BudgetExhausted, Exact, Guarantee, PureDP

if TYPE_CHECKING:
    from geomdp.workloads.base import DenseQuery

    Interactive: TypeAlias = (
        gd.OnlineConstruction[DenseQuery] | gd.AboveThreshold | gd.Sparse | gd.NumericSparse
    )


# One run: the questions, the answers, and the file of --state: a privacy record, then questions
# with their private answers. Each is on disk before it is printed, unless the disk is full.

#: Largest number of combinations of levels. A query is a vector with one entry per combination.
MAX_ELEMENTS = 1 << 20


class Table:
    """The combinations of the columns' levels, and the queries that select some combinations."""

    def __init__(self, labels: Mapping[str, Sequence[str]]) -> None:
        self.labels = labels
        self.size = math.prod(map(len, labels.values()))
        if self.size > MAX_ELEMENTS:
            raise ValueError(
                f"the columns must have at most 2^20 combinations of levels, got {self.size}: "
                "choose fewer columns with --columns"
            )

    def query(self, text: str) -> DenseQuery:
        from geomdp.workloads.base import DenseQuery

        chosen: dict[str, str] = {}
        for part in text.split(","):
            name, equals, level = part.strip().partition("=")
            if not equals or name not in self.labels or name in chosen:
                raise ValueError(
                    "a question must be COLUMN=LEVEL,... with each column once, and columns must "
                    f"be among {', '.join(self.labels)}; got {text!r}"
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


#: Questions, each as the text of its line and as a query.
Lines: TypeAlias = "Iterable[tuple[str, DenseQuery]]"


def questions_of(place: str, table: Table) -> Lines:
    """The questions in the file `place`, all checked first, or on standard input if it is ``-``."""
    if place == "-":
        return _streamed(sys.stdin, table)
    parsed = []
    for number, line in enumerate(Path(place).read_text(encoding="utf-8").splitlines(), start=1):
        try:
            parsed.append((line, table.query(line)))
        except ValueError as error:
            raise ValueError(f"--queries {place}, line {number}: {error}") from error
    return parsed


def _streamed(stream: TextIO, table: Table) -> Lines:
    """Questions from a stream. A malformed question gives a warning and is not answered."""
    for line in map(str.strip, stream):
        try:
            query = table.query(line)
        except ValueError as error:
            display.warn(str(error))
        else:
            yield line, query


@contextmanager
def exclusive(state: Path, room: int) -> Iterator[FileIO]:
    """Create the new state file with `room` bytes, and remove it if no line is added."""
    try:
        file = state.open("xb", buffering=0)
    except FileExistsError as error:
        raise ValueError(
            f"--state {state} belongs to another run, and a run cannot be continued, because its "
            "noise was never written to a file; give the name of a new file"
        ) from error
    with file:
        try:
            _write(file, bytes(room), "nothing was charged")
            file.seek(0)  # the first line replaces these bytes
            yield file
        finally:
            if file.tell() == 0:
                state.unlink()


def answer_all(
    lines: Lines, mechanism: Interactive, histogram: IntArray, n: int, file: FileIO, charged: str
) -> None:
    """Answer questions to the end of the budget; write each answer, then print it."""
    said = f"{charged}, and the answers are in {file.name!s}"
    for number, (text, query) in enumerate(lines):
        try:
            answer, shown = _asked(mechanism, query, histogram, n)
        except BudgetExhausted as error:
            display.warn(f"no more answers: {error}")
            return
        try:
            line = {"index": number, "query": text, **answer._asdict()}
            add_line(file, line, f"{said}, but for the last one, which is on standard output")
        finally:
            with display.printing(said):
                print(f"{display.visible(text)}\t{shown}")


def _asked(
    mechanism: Interactive, query: DenseQuery, histogram: IntArray, n: int
) -> tuple[gd.mechanisms.Answer, str]:
    """The answer, and how it is printed."""
    # Whole numbers below 2^53 are added without rounding, so the count is exact.
    count = int(query.total(histogram))
    if isinstance(mechanism, gd.OnlineConstruction):
        answer = mechanism.ask_truth(query, Fraction(count, n))
        return answer, f"{answer.value:.6g}"
    answer = mechanism.ask(count)
    side = "above" if answer.above else "below"
    if answer.value is None:
        return answer, side
    share = answer.value / n
    return answer._replace(value=share), f"{side}\t{share:.6g}"


def add_line(file: FileIO, line: Mapping[str, object], said: str) -> None:
    """Write a line to the state file on disk, or leave no part of it and raise ``OSError``."""
    _write(file, display.visible(json.dumps(line)).encode() + b"\n", said)


def _write(file: FileIO, content: bytes, said: str) -> None:
    place, left = file.tell(), content
    try:
        while left:
            left = left[file.write(left) :]
        file.truncate()
        os.fsync(file.fileno())
    except OSError as error:
        file.truncate(file.seek(place))
        raise OSError(error.errno, f"{error.strerror}; {said}", str(file.name)) from error


# The mechanism that answers the questions, and the flags that describe it


class Technique(enum.StrEnum):
    """Values of --technique."""

    ABOVE_THRESHOLD = "above-threshold"
    SPARSE = "sparse"
    NUMERIC_SPARSE = "numeric-sparse"
    ONLINE = "online"


technique_of = reader(Technique, f"one of {', '.join(Technique)}")


@dataclass(frozen=True)
class Setting:
    """The flags of the mechanism; ``ValueError`` for a missing, superfluous or invalid flag."""

    technique: Technique
    threshold: float | None
    cutoff: int | None
    questions: int | None
    alpha: float | None
    privacy: PureDP | ApproxDP
    adjacency: Adjacency

    def __post_init__(self) -> None:
        online = self.technique is Technique.ONLINE
        first_only = self.technique is Technique.ABOVE_THRESHOLD
        for flag, value, needed, allowed in (
            ("--threshold", self.threshold, not online, not online),
            ("--cutoff", self.cutoff, not online and not first_only, not online and not first_only),
            ("--questions", self.questions, online, online),
            ("--alpha", self.alpha, False, online),
            ("--delta", getattr(self.privacy, "delta", None), False, not first_only),
        ):
            if (needed and value is None) or (value is not None and not allowed):
                verb = "needs" if needed else "does not take"
                raise ValueError(f"--technique {self.technique} {verb} {flag}")
        flags.check_whole("--cutoff", self.cutoff, minimum=1)
        flags.check_whole("--questions", self.questions, minimum=1)

    def record(self, mechanism: Interactive) -> dict[str, object]:
        """What the privacy record says about the mechanism, which `mechanism` has built."""
        own = {"name": type(mechanism).__name__, "technique": self.technique}
        stated = {"threshold": self.threshold, "cutoff": self.cutoff, "questions": self.questions}
        stated["alpha"] = getattr(mechanism, "alpha", None)
        return own | {name: value for name, value in stated.items() if value is not None}

    def mechanism(self, size: int, n: int, ledger: gd.Ledger | None) -> Interactive:
        """The mechanism, paid when it is built, for `size` combinations of levels."""
        shared: Any = {"privacy": self.privacy, "adjacency": self.adjacency, "ledger": ledger}
        if self.questions is not None:
            rule = gd.mechanisms.MultiplicativeWeights(size)
            queries, alpha = self.questions, self.alpha
            return gd.OnlineConstruction(rule, n=n, queries=queries, alpha=alpha, **shared)
        assert self.threshold is not None
        # Counts are whole: no rounding depends on the records, and the sensitivity is exactly 1.
        level = self.threshold * n
        if self.cutoff is None:
            return gd.AboveThreshold(level, sensitivity=1.0, **shared)
        kind = gd.Sparse if self.technique is Technique.SPARSE else gd.NumericSparse
        return kind(level, cutoff=self.cutoff, sensitivity=1.0, **shared)


# The command

_option = options("""
Queries:
--technique NAME  above-threshold: stop at the first share above T. sparse: find up to C shares
    above T. numeric-sparse: also print the values of these shares. online: print a value for each
    of K questions.
--threshold T  Share of records to compare with; for all techniques but online.
--cutoff C  Stop after C shares above the threshold; for sparse and numeric-sparse.
--questions K  Largest number of questions; for online.
--alpha A  Answers from public guesses may be off by about 3 A; for online. By default the least A
    with proved accuracy. With few records there is none, and A must be given.
--queries FILE  A file with one question per line. region=north,smoker=true asks for the share of
    records with both levels. With -, questions come from standard input, one by one.
Result:
--state FILE  A new file for the questions and answers of this run, one JSON object per line. A run
    cannot be continued.
""")


def ask(
    data: flags.Data = None,
    *,
    sample: flags.Sample = None,
    sql: flags.Sql = None,
    database: flags.Database = None,
    schema: flags.SchemaFile = None,
    n: flags.Count = None,
    columns: flags.Columns = None,
    queries: Annotated[str, _option("--queries FILE")],
    technique: Annotated[Technique, _option("--technique NAME", technique_of)],
    threshold: Annotated[float | None, _option("--threshold T", real)] = None,
    cutoff: Annotated[int | None, _option("--cutoff C", whole_number)] = None,
    questions: Annotated[int | None, _option("--questions K", whole_number)] = None,
    alpha: Annotated[float | None, _option("--alpha A", real)] = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    epsilon_above_10: flags.Above10 = False,
    adjacency: flags.Neighbours = flags.AdjacencyFlag.REPLACE_ONE,
    ledger: flags.LedgerFile = None,
    budget: flags.Budget = None,
    state: Annotated[Path, _option("--state FILE")],
) -> None:
    """Answer adaptive questions about the records in DATA, one by one, within one budget.

    For tables that are known beforehand, `geomdp budget` finds the least epsilon.
    """
    relation = adjacency.relation()
    privacy = flags.parse_released(epsilon, delta, None, epsilon_above_10)
    assert isinstance(privacy, PureDP | ApproxDP)  # the command has no --rho
    flags.check_normaliser(n, relation)
    payment = Payment(ledger, budget)
    payment.check(provable=True)
    setting = Setting(technique, threshold, cutoff, questions, alpha, privacy, relation)
    # Imported here: this module imports most of the library, and refusals should come at once.
    from geomdp.cli.inputs import record_source, warn_of
    from geomdp.tabulation.tasks import chosen_columns

    names = None if columns is None else flags.split_columns(columns)
    source = record_source(names, data, sample, schema, False, sql, database)
    with naming_flags("columns"):
        declared = source.schema.select(list(chosen_columns(source.schema, names)))
    table, caveat = Table(declared.labels), declared.caveat
    warn_of(caveat)
    lines = questions_of(queries, table)
    with (
        exclusive(state, record_room(declared)) as file,
        payment.opened(Guarantee(privacy, relation, Exact(), withdrawn=caveat), "ask") as account,
    ):
        with working("reading records"):
            workload = gd.workloads.Histogram(table.size)
            counted = gd.data.count_records(source.table, declared.confirm(), workload)
        if relation is Adjacency.REPLACE_ONE and n not in (None, counted.count):
            raise ValueError(f"--n must be the number of records, {counted.count}, got {n}")
        assert n is not None or relation is Adjacency.REPLACE_ONE  # by `check_normaliser`
        number = counted.count if n is None else n
        if number == 0:
            raise ValueError("DATA must hold at least 1 record, got 0")
        from geomdp.data.tallies import CountedRecords

        assert isinstance(counted, CountedRecords)
        histogram = counted.totals(workload).sums.astype(np.int64)
        with naming_flags("alpha"):
            mechanism = setting.mechanism(table.size, number, account)
        claim = mechanism.guarantee.without_claim(caveat)
        own = {"mechanism": setting.record(mechanism)}
        record = privacy_record(claim, privacy, own, declared, source.origin, number, n)
        charged = payment.charged(claim)
        add_line(file, record, f"{charged}, and no question was answered")
        answer_all(lines, mechanism, histogram, number, file, charged)
