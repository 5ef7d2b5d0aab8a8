"""Answers of interactive mechanisms, and the public record of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, overload

from geomdp.workloads.single_queries.query_json import query_from_record, query_to_record


class Answer(NamedTuple):
    """One public answer of an interactive mechanism.

    Parameters
    ----------
    above : bool
        For sparse vector: whether the query was found above the threshold. For online release:
        whether the answer was computed from the data and updated the public hypothesis; if False,
        the hypothesis gave it.
    value : float or None
        The released number; None where the mechanism releases only the comparison.
    """

    above: bool
    value: float | None = None


class Transcript(Sequence[Answer]):
    """The answers given so far, in order; public, so anything computed from it is private too."""

    def __init__(self) -> None:
        self._answers: list[Answer] = []

    def __repr__(self) -> str:
        above = sum(answer.above for answer in self._answers)
        return f"Transcript({len(self)} answers, {above} above)"

    def record(self, answer: Answer) -> Answer:
        """Append `answer` and return it."""
        self._answers.append(answer)
        return answer

    def extend_with(self, answer: Answer, times: int) -> None:
        """Append `answer` `times` times."""
        self._answers.extend([answer] * times)

    @overload
    def __getitem__(self, index: int) -> Answer: ...
    @overload
    def __getitem__(self, index: slice) -> list[Answer]: ...
    def __getitem__(self, index: int | slice) -> Answer | list[Answer]:
        return self._answers[index]

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers)

    def to_json_lines(self) -> str:
        """One JSON object a line: index, above, value. The true answers asked are not public."""
        return _json_lines(({}, answer) for answer in self._answers)


def exchanges_to_json_lines(exchanges: Iterable[tuple[object, Answer]]) -> str:
    """Queries with their answers, one JSON object a line: index, query, above, value.

    Parameters
    ----------
    exchanges : iterable of (query, Answer)
        In the order they were made.

    Raises
    ------
    ValueError
        For a query that JSON cannot hold; see `query_to_record`.
    """
    return _json_lines(({"query": query_to_record(query)}, answer) for query, answer in exchanges)


def _json_lines(asked: Iterable[tuple[dict[str, Any], Answer]]) -> str:
    """What was asked and answered, one JSON object a line."""
    lines = (
        json.dumps({"index": index, **fields, **answer._asdict()})
        for index, (fields, answer) in enumerate(asked)
    )
    return "".join(line + "\n" for line in lines)


def exchanges_from_json_lines(text: str) -> list[tuple[Any, Answer]]:
    """The (query, Answer) pairs that `exchanges_to_json_lines` wrote.

    Raises
    ------
    ValueError
        If a line is not one of its records; names the line.
    """
    exchanges: list[tuple[Any, Answer]] = []
    for number, line in enumerate(text.splitlines()):
        try:
            record = json.loads(line)
            if record["index"] != number:
                raise ValueError(f"index must be {number}, got {record['index']!r}")
            answer = Answer(bool(record["above"]), record["value"])
            exchanges.append((query_from_record(record["query"]), answer))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"line {number + 1} is not an exchange: {error}") from error
    return exchanges
