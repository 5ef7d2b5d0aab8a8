"""What an interactive mechanism says, one answer at a time, and the public record of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload


class Answer(NamedTuple):
    """One public answer of an interactive mechanism.

    Parameters
    ----------
    above : bool
        For sparse vector: whether the query was found above the threshold. For online release:
        whether the data were used, and the public state updated, to give this answer.
    value : float or None
        The released number; None where the mechanism releases only the comparison.
    """

    above: bool
    value: float | None = None


class Transcript(Sequence[Answer]):
    """The answers given so far, in order; public, so anything computed from it is private too."""

    def __init__(self) -> None:
        self._answers: list[Answer] = []

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
        """One JSON object a line: index, above, value."""
        lines = (
            json.dumps({"index": index, "above": answer.above, "value": answer.value})
            for index, answer in enumerate(self._answers)
        )
        return "".join(line + "\n" for line in lines)
