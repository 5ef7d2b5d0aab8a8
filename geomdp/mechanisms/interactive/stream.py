"""The base class of all sparse vector mechanisms: it compares queries with a noisy threshold."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._numerics.single_use import NotCopied
from geomdp._typing import FloatArray, RandomState
from geomdp._validation import positive, real_number, require_type, whole
from geomdp.mechanisms.interactive.scales import ROUNDED_UP, Scales
from geomdp.mechanisms.interactive.transcript import Answer, Transcript
from geomdp.mechanisms.protocol import warn_if_weak
from geomdp.noise.exact.laplace_numbers import ExactNumber
from geomdp.noise.scalar import scalar_noise
from geomdp.privacy import Adjacency, ApproxDP, Exact, Guarantee, PureDP
from geomdp.privacy.definitions import checked_adjacency
from geomdp.privacy.ledger import BudgetExhausted, Ledger
from geomdp.privacy.parameter_range import check_range

#: If the mechanism holds the records, a query is given as a function of the records. If not, it is
#: given as its true answer.
StreamQuery = ExactNumber | Callable[[Any], ExactNumber]

#: Limits on the sensitivity. Far outside of them, float64 would round scales of the noise to 0 or
#: to infinity. Noise of scale 0 gives no privacy.
LEAST_SENSITIVITY, LARGEST_SENSITIVITY = 1e-100, 1e100

BELOW = Answer(above=False)
ABOVE = Answer(above=True)


@dataclass(eq=False, repr=False)
class SparseVectorStream(NotCopied, abc.ABC):
    """Compare queries with a noisy threshold until `cutoff` queries are found above it.

    A query with true answer x is found above the threshold T if x + Lap(D s_query) >= T + Lap(D
    s_threshold), for the sensitivity D and the `scales` s. Noise is fresh, but noise on T is kept;
    if `scales.redraw`, it is drawn again after each query found above.
    """

    threshold: float
    _: KW_ONLY
    cutoff: int
    privacy: PureDP | ApproxDP
    sensitivity: float = 1.0
    monotone: bool = False
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    records: InitVar[object | None] = None
    rng: InitVar[RandomState] = None
    ledger: InitVar[Ledger | None] = None

    def __post_init__(
        self, records: object | None, rng: RandomState, ledger: Ledger | None
    ) -> None:
        threshold = real_number(self.threshold)
        if not math.isfinite(threshold):
            raise ValueError(f"threshold must be a finite number, got {self.threshold!r}")
        self.threshold = threshold
        self.cutoff = whole(self.cutoff, "cutoff")
        self.sensitivity = positive(self.sensitivity, "sensitivity")
        if not LEAST_SENSITIVITY <= self.sensitivity <= LARGEST_SENSITIVITY:
            raise ValueError(
                f"sensitivity must be from {LEAST_SENSITIVITY:g} to {LARGEST_SENSITIVITY:g}, got "
                f"{self.sensitivity!r}: choose another unit for the queries"
            )
        if not isinstance(self.privacy, PureDP | ApproxDP):
            raise ValueError(f"privacy must be PureDP or ApproxDP, got {self.privacy}")
        check_range(self.privacy)
        checked_adjacency(self.adjacency)
        require_type(self.monotone, bool, "monotone")
        if self.monotone and self.adjacency is not Adjacency.ADD_REMOVE:
            raise ValueError(
                "monotone must be False under replace-one: replacing a record can raise one "
                "counting query and lower another; only under Adjacency.ADD_REMOVE can all queries "
                "change in the same direction"
            )
        self.scales = self._calibrate()
        self.transcript = Transcript()
        self._noise = scalar_noise(rng)
        self._records = records
        self.guarantee = Guarantee(
            self.privacy, self.adjacency, Exact(), self._noise.arithmetic, seeded=rng is not None
        )
        self._found = 0
        warn_if_weak(self.guarantee)
        if ledger is not None:
            require_type(ledger, Ledger, "ledger")
            ledger.spend(self.guarantee, type(self).__name__)
        self._noisy_threshold = self._draw_threshold()

    @abc.abstractmethod
    def _calibrate(self) -> Scales:
        """Noise scales with which the run has the guarantee `privacy`, or ``ValueError``."""

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(threshold={self.threshold:g}, {self.privacy}, "
            f"{self.adjacency.value}: {len(self.transcript)} asked, "
            f"{self.found} of at most {self.cutoff} found above)"
        )

    @property
    def found(self) -> int:
        """Number of queries found above the threshold so far."""
        return self._found

    @property
    def halted(self) -> bool:
        """Whether `cutoff` queries were found above the threshold. If so, `ask` raises an error."""
        return self._found >= self.cutoff

    def ask(self, query: StreamQuery) -> Answer:
        """Compare one query with the threshold.

        Parameters
        ----------
        query : float or callable
            The true answer, or a function that computes it if the mechanism holds the records.

        Returns
        -------
        Answer
            Whether the query was found above, and then its noisy value if values are released.

        Raises
        ------
        BudgetExhausted
            If the mechanism has halted. The records are not read.
        ValueError
            If records are held and the query is not a function, or if the true answer is not a
            whole number, fraction or exact float of modulus below 2^1024. Nothing is compared.
        RuntimeError
            In a forked process, which would use the same noise again. Also if a query asks again
            while it is evaluated. Other threads wait for their turn.
        """
        with self._alone():
            self._require_running()
            truth = self._truth(query)
            self._require_running()  # the query is code of the caller
            if self._noise.reaches(truth, self._scaled(self.scales.query), self._noisy_threshold):
                return self._answer_above(truth)
            return self.transcript.record(BELOW)

    def ask_many(self, queries: Sequence[StreamQuery] | FloatArray) -> list[Answer]:
        """Ask `queries` until they end or the mechanism halts.

        If the true answer to one of them is refused, none is compared.
        """
        with self._alone():
            self._require_running()
            truths = self._truths(queries)
            noisy = self._noise.values(truths, self._scaled(self.scales.query))
            start, begin = len(self.transcript), 0
            while begin < len(truths) and not self.halted:
                first = noisy.first_reaching(begin, self._noisy_threshold)
                self.transcript.extend_with(BELOW, first - begin)
                if first < len(truths):
                    self._answer_above(_plain(truths[first]))
                begin = first + 1
            return self.transcript[start:]

    def _scaled(self, scale: float) -> float:
        """`scale` times the sensitivity, rounded up."""
        return self.sensitivity * scale * ROUNDED_UP

    def _answer_above(self, truth: ExactNumber) -> Answer:
        self._found += 1
        if self.scales.redraw and not self.halted:
            self._noisy_threshold = self._draw_threshold()
        if self.scales.answer is None:
            return self.transcript.record(ABOVE)
        value = self._noise.laplace(truth, self._scaled(self.scales.answer))
        return self.transcript.record(Answer(True, value))

    def _draw_threshold(self) -> Any:
        return self._noise.threshold(self.threshold, self._scaled(self.scales.threshold))

    def _require_running(self) -> None:
        if self.halted:
            raise BudgetExhausted(
                f"{type(self).__name__} found {self.cutoff} queries above its threshold and halted"
            )

    def _truth(self, query: StreamQuery) -> ExactNumber:
        truth: Any  # a caller without type checks may pass anything
        if self._records is None:
            truth = query
        elif callable(query):
            truth = query(self._records)
        else:
            raise ValueError("query must be a function of the records that the mechanism holds")
        if not isinstance(truth, Real):
            raise ValueError(
                "a query's true answer must be a number, and a query can be a function only where "
                f"the mechanism holds records; got {type(truth).__name__}"
            )
        plain = _plain(truth)
        # A rounded answer could change by more than the sensitivity between neighbours.
        if plain != truth and truth == truth:  # NaN is not equal to itself
            raise ValueError(
                "a query's true answer must be a whole number, a fraction or exact in float64, got "
                f"{type(truth).__name__}"
            )
        try:
            finite = math.isfinite(plain)
        except OverflowError:  # a whole number or fraction beyond float64
            finite = False
        if not finite:
            raise ValueError("a query's true answer must be a finite number below 2^1024")
        return plain

    def _truths(
        self, queries: Sequence[StreamQuery] | FloatArray
    ) -> Sequence[ExactNumber] | npt.NDArray[Any]:
        if isinstance(queries, np.ndarray) and self._records is None:
            kind, size = queries.dtype.kind, queries.dtype.itemsize
            if kind not in "biuf" or size > 8 or queries.ndim != 1:
                raise ValueError(
                    "queries must be a one-dimensional array of numbers of at most 64 bits, got "
                    f"{queries.dtype} of shape {queries.shape}"
                )
            if not np.isfinite(queries).all():
                raise ValueError("a query's true answer must be a finite number")
            return queries
        return [self._truth(query) for query in queries]


def _plain(number: Any) -> ExactNumber:
    """Convert a number to int, Fraction or float. Only the conversion to float can round it."""
    if isinstance(number, Integral):
        return int(number)
    if isinstance(number, Rational):
        return Fraction(int(number.numerator), int(number.denominator))
    return float(number)
