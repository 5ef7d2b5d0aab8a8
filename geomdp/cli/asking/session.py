"""One run of `ask`: the questions, the answers, and the file of --state that records both.

The first line is a privacy record; the others hold only questions and differentially private
answers. Each answer is on disk before it is printed, unless the disk is full.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeAlias

import numpy as np

from geomdp._typing import IntArray
from geomdp.cli import display
from geomdp.privacy import BudgetExhausted

if TYPE_CHECKING:
    from geomdp.cli.asking.setting import Interactive
    from geomdp.mechanisms.interactive.transcript import Answer
    from geomdp.workloads.single_queries.single_query import DenseQuery

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
        from geomdp.workloads.single_queries.single_query import DenseQuery

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


@contextmanager
def questions_of(place: str, table: Table) -> Iterator[Lines]:
    """The questions in the file `place`, all checked first, or on standard input if it is ``-``.

    Yields
    ------
    iterable of (str, DenseQuery)
        Questions, each as the text of its line and as a query.
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
    """Create the state file, locked, with `room` bytes; remove it if no line is added.

    A file that exists already is refused, even if the run that wrote it has ended.
    """
    try:
        file = state.open("xb", buffering=0)
    except FileExistsError as error:
        raise ValueError(
            f"--state {state} belongs to another run, and a run cannot be continued, because its "
            "noise was never written to a file; give the name of a new file"
        ) from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            _write(file, bytes(room), "nothing was charged")
            file.seek(0)  # the first line replaces these bytes
            yield file
        finally:
            if file.tell() == 0:
                state.unlink()


def answer_all(
    lines: Lines,
    mechanism: Interactive,
    histogram: IntArray,
    n: int,
    file: FileIO,
    charged: str,
) -> None:
    """Answer questions, write each answer to the state file, then print it.

    The run stops after the last question, or when the budget is used up. `histogram` counts the
    records of each combination of levels. Counts are divided by `n`. An answer that cannot be
    written is printed before the run stops with an error.
    """
    said = f"{charged}, and the answers are in {file.name!s}"
    for number, (text, query) in enumerate(lines):
        try:
            answer = _asked(mechanism, query, histogram, n)
        except BudgetExhausted as error:
            display.warn(f"no more answers: {error}")
            return
        try:
            line = {"index": number, "query": text, **answer._asdict()}
            add_line(file, line, f"{said}, but for the last one, which is on standard output")
        finally:
            with display.printing(said):
                print(f"{display.visible(text)}\t{_in_words(mechanism, answer)}")


def _asked(mechanism: Interactive, query: DenseQuery, histogram: IntArray, n: int) -> Answer:
    from geomdp.mechanisms import OnlineConstruction

    # Whole numbers below 2^53 are added without rounding, so the count is exact.
    count = int(query.total(histogram))
    if isinstance(mechanism, OnlineConstruction):
        return mechanism.ask_truth(query, Fraction(count, n))
    answer = mechanism.ask(count)
    return answer if answer.value is None else answer._replace(value=answer.value / n)


def _in_words(mechanism: Interactive, answer: Answer) -> str:
    from geomdp.mechanisms import OnlineConstruction

    value = "" if answer.value is None else f"{answer.value:.6g}"
    if isinstance(mechanism, OnlineConstruction):
        return value
    return "\t".join(filter(None, ["above" if answer.above else "below", value]))


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
