"""The interactive run that all sparse vector mechanisms share; it makes no privacy claim itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import positive, whole
from geomdp.mechanisms.interactive.scales import Scales
from geomdp.mechanisms.interactive.transcript import Answer, Transcript
from geomdp.noise.scalar import scalar_noise
from geomdp.privacy import Adjacency, ApproxDP, Exact, Guarantee, PureDP
from geomdp.privacy.ledger import BudgetExhausted, Ledger

#: What is asked: a true answer (mechanism built without records) or a function of the records.
Question = float | Callable[[Any], float]

BELOW = Answer(above=False)
ABOVE = Answer(above=True)
#: Answers searched at first for one that is above; doubled until one is found.
FIRST_WINDOW = 64


class _SparseVectorStream:
    """A stream of comparisons with a noisy threshold, for scales that a subclass computes.

    A query x (its true answer) is found above if x + Lap(D s_query) >= T + Lap(D s_threshold),
    D the sensitivity, s the `scales`; where the scales release values, the answer to a query
    found above is x + Lap(D s_answer) with fresh noise. After `cutoff` such queries it halts.

    Private because its arguments could contradict each other: only the constructors of the
    public subclasses, which compute `scales` from `privacy`, make a claim.
    """

    def __init__(
        self,
        threshold: float,
        *,
        cutoff: int,
        scales: Scales,
        privacy: PureDP | ApproxDP,
        sensitivity: float,
        adjacency: Adjacency,
        records: object | None,
        rng: RandomState,
        secure: bool,
        ledger: Ledger | None,
    ) -> None:
        if not math.isfinite(threshold):
            raise ValueError(f"threshold must be finite, got {threshold!r}")
        self.threshold = float(threshold)
        self.cutoff = whole(cutoff, "cutoff")
        self.scales = scales
        self.sensitivity = positive(sensitivity, "sensitivity")
        self.transcript = Transcript()
        self._noise = scalar_noise(rng, secure)
        self._records = records
        self.guarantee = Guarantee(
            privacy, adjacency, Exact(), self._noise.arithmetic, seeded=rng is not None
        )
        self._found = 0
        if ledger is not None:
            ledger.spend(self.guarantee, type(self).__name__)
        self._noisy_threshold = self._draw_threshold()

    @property
    def found(self) -> int:
        """Number of queries found above so far."""
        return self._found

    @property
    def halted(self) -> bool:
        """Whether the mechanism has found `cutoff` queries above and answers no more."""
        return self._found >= self.cutoff

    def ask(self, question: Question) -> Answer:
        """Compare one query with the threshold.

        Parameters
        ----------
        question : float or callable
            The query's true answer, or, if the mechanism holds records, the query itself.

        Returns
        -------
        Answer
            Whether the query was found above, with a value where the mechanism releases one.

        Raises
        ------
        BudgetExhausted
            If the mechanism has halted; the data are not touched.
        ValueError
            If the true answer is not a finite number; nothing is spent.
        """
        self._require_running()
        truth = self._truth(question)
        noisy = self._noise.laplace(truth, self.sensitivity * self.scales.query)
        if noisy < self._noisy_threshold:
            return self.transcript.record(BELOW)
        return self._answer_above(truth)

    def ask_many(self, questions: Sequence[Question] | FloatArray) -> list[Answer]:
        """Ask `questions` in order until they end or the mechanism halts.

        Returns
        -------
        list of Answer
            One for each question asked: fewer than were given if the mechanism halted.

        Raises
        ------
        BudgetExhausted
            If the mechanism has halted before the first question.
        ValueError
            If any true answer is not a finite number; nothing is spent.
        """
        self._require_running()
        truths = self._truths(questions)
        noisy = self._noise.laplace_many(truths, self.sensitivity * self.scales.query)
        start, begin = len(self.transcript), 0
        while begin < len(truths) and not self.halted:
            first = _first_at_least(noisy, begin, self._noisy_threshold)
            self.transcript.extend_with(BELOW, first - begin)
            if first < len(truths):
                self._answer_above(float(truths[first]))
            begin = first + 1
        return self.transcript[start:]

    def _answer_above(self, truth: float) -> Answer:
        self._found += 1
        if self.scales.redraw and not self.halted:
            self._noisy_threshold = self._draw_threshold()
        if self.scales.answer is None:
            return self.transcript.record(ABOVE)
        value = self._noise.laplace(truth, self.sensitivity * self.scales.answer)
        return self.transcript.record(Answer(True, value))

    def _draw_threshold(self) -> float:
        return self._noise.laplace(self.threshold, self.sensitivity * self.scales.threshold)

    def _require_running(self) -> None:
        if self.halted:
            raise BudgetExhausted(
                f"{type(self).__name__} found {self.cutoff} queries above its threshold and halted"
            )

    def _truth(self, question: Question) -> float:
        truth: Any  # whatever a caller without type checks may send
        if self._records is None:
            truth = question
        elif callable(question):
            truth = question(self._records)
        else:
            raise ValueError("question must be a function of the records the mechanism holds")
        if not isinstance(truth, Real):
            raise ValueError(
                "a question's true answer must be a number, and a function only where the "
                f"mechanism holds records; got {type(truth).__name__}"
            )
        if not math.isfinite(truth):
            raise ValueError("a question's true answer must be a finite number")
        return float(truth)

    def _truths(self, questions: Sequence[Question] | FloatArray) -> FloatArray:
        if isinstance(questions, np.ndarray) and self._records is None:
            if questions.dtype.kind not in "biuf" or questions.ndim != 1:
                raise ValueError(
                    f"questions must be numbers (k,), got {questions.dtype} of {questions.shape}"
                )
            truths = questions.astype(np.float64)
            if not np.isfinite(truths).all():
                raise ValueError("a question's true answer must be a finite number")
            return truths
        return np.array([self._truth(question) for question in questions], dtype=np.float64)


def _first_at_least(values: FloatArray, begin: int, threshold: float) -> int:
    """Index of the first of `values` from `begin` on that is at least `threshold`, else the length.

    Windows of doubling size, so a search costs as much as the stretch it passes.
    """
    window = FIRST_WINDOW
    while begin < len(values):
        hits = values[begin : begin + window] >= threshold
        first = int(hits.argmax())
        if hits[first]:
            return begin + first
        begin, window = begin + window, 2 * window
    return len(values)
