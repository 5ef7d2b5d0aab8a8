"""Answers of interactive mechanisms, the transcript of a run, and the replay of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, overload

from geomdp._numerics.single_use import NotCopied
from geomdp.mechanisms.interactive.updates.base import Hypothesis, Query, UpdateRule, follow


class Answer(NamedTuple):
    """One public answer of an interactive mechanism.

    Parameters
    ----------
    above : bool
        Whether the query was found above the threshold, or its answer updated the hypothesis.
    value : float or None
        The released number; None if only the result of the comparison is released.

    Examples
    --------
    >>> import geomdp as gd
    >>> mechanism = gd.NumericSparse(threshold=100.0, cutoff=1, privacy=gd.PureDP(1.0), rng=0)
    >>> mechanism.ask(10.0)
    Answer(above=False, value=None)
    >>> answer = mechanism.ask(200.0)
    >>> answer.above, round(answer.value, 1)
    (True, 169.3)
    """

    above: bool
    value: float | None = None


class Transcript(NotCopied, Sequence[Answer]):
    """The answers given so far, in order. They are public: all use of them is post-processing.

    It cannot be copied or pickled; copy or pickle ``list(transcript)`` instead.

    Examples
    --------
    >>> import geomdp as gd
    >>> mechanism = gd.Sparse(threshold=100.0, cutoff=2, privacy=gd.PureDP(1.0), rng=0)
    >>> answers = mechanism.ask_many([10.0, 200.0, 20.0])
    >>> mechanism.transcript
    Transcript(3 answers, 1 above)
    >>> [answer.above for answer in mechanism.transcript]
    [False, True, False]
    """

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


def replay(
    rule: UpdateRule[Query], alpha: float, exchanges: Iterable[tuple[Query, Answer]]
) -> Hypothesis[Query]:
    """The hypothesis of a run, rebuilt from its public queries and answers (post-processing).

    `alpha` is that of an online construction, or half that of an iterative construction.
    """
    hypothesis = rule.start(alpha)
    for query, answer in exchanges:
        if answer.above:
            if answer.value is None:
                raise ValueError("an answer that updated the hypothesis must have a value")
            follow(hypothesis, query, answer.value)
    return hypothesis
