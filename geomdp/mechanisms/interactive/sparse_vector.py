"""The sparse vector technique: AboveThreshold, Sparse and NumericSparse as interactive objects."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from geomdp._numerics.randomness import NotCopied
from geomdp._typing import FloatArray, RandomState
from geomdp._validation import plural, real_number, require_type, whole
from geomdp.mechanisms.base import warn_if_weak
from geomdp.noise.scalar import ExactNumber, scalar_noise
from geomdp.privacy import Adjacency, ApproxDP, Exact, Guarantee, PureDP, shortcut_step_epsilon
from geomdp.privacy.definitions import check_privacy, check_range, checked_adjacency
from geomdp.privacy.ledger import BudgetExhausted, Ledger


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
    """

    above: bool
    value: float | None = None


# Noise scales for queries of sensitivity 1, the number c of queries that may be found above the
# threshold (`cutoff`), and `monotone` queries or others.

#: Share of epsilon that NumericSparse spends on comparisons. The rest is spent on answers.
COMPARISON_SHARE = 8 / 9
#: Factor by which scales are rounded up, so that noise spends at most epsilon. They are computed
#: with fewer than 32 roundings, of which a subtraction makes earlier ones up to 9 times as large,
#: so their relative error is below 2^-46.
ROUNDED_UP = 1 + 2.0**-46


@dataclass(frozen=True)
class Scales:
    """Laplace scales of the threshold, of each query and of each answer, per unit of sensitivity.

    `answer` is None if no value is released; `redraw`: whether the threshold noise is drawn again
    after each query found above.
    """

    threshold: float
    query: float
    answer: float | None
    redraw: bool


def above_threshold(epsilon: float, *, monotone: bool) -> Scales:
    """Lap(2/eps) on the threshold, Lap(4/eps) on each query, or Lap(2/eps) if `monotone` (SV-AT).

    Less noise on general queries is not eps-DP on long streams (DISC-12).
    """
    return Scales(2 / epsilon, (2 if monotone else 4) / epsilon, None, redraw=True)


def redrawn(privacy: PureDP | ApproxDP, cutoff: int, *, monotone: bool) -> Scales:
    """AboveThreshold at eps / c, or eps / sqrt(8 c ln(1/delta)) (SV-SP)."""
    match privacy:
        case PureDP(epsilon=epsilon):
            step = epsilon / cutoff
        case ApproxDP():
            step = shortcut_step_epsilon(privacy, cutoff)
    return above_threshold(step, monotone=monotone)


def kept(privacy: PureDP, cutoff: int, *, monotone: bool) -> Scales:
    """Scales for pure DP if threshold noise is drawn once: 1 / e1 and 2 c / e2 (SV-LSL).

    The best split of eps = e1 + e2 has e2 / e1 = (2 c)^(2/3). If `monotone`, c replaces 2 c.
    """
    reach = cutoff if monotone else 2 * cutoff
    first = privacy.epsilon / (1 + reach ** (2 / 3))
    return Scales(1 / first, reach / (privacy.epsilon - first), None, redraw=False)


def numeric(privacy: PureDP | ApproxDP, cutoff: int, *, monotone: bool) -> Scales:
    """NumericSparse: comparisons `redrawn` at 8 eps / 9, answers share eps / 9 (SV-NUM).

    For approximate DP, both parts use advanced composition at delta / 2.
    """
    share = COMPARISON_SHARE * privacy.epsilon
    match privacy:
        case PureDP(epsilon=epsilon):
            comparisons = redrawn(PureDP(share), cutoff, monotone=monotone)
            answer = 9 * cutoff / epsilon  # (eps - 8 eps / 9) shared by c answers
        case ApproxDP(epsilon=epsilon, delta=delta):
            comparisons = redrawn(ApproxDP(share, delta / 2), cutoff, monotone=monotone)
            answer = 1 / shortcut_step_epsilon(ApproxDP(epsilon - share, delta / 2), cutoff)
    return Scales(comparisons.threshold, comparisons.query, answer, redraw=True)


def numeric_printed(privacy: ApproxDP, cutoff: int) -> Scales:
    """Scales sqrt(32 c ln(2/delta)) / e of NumericSparse as printed (DISC-11).

    e is sqrt(512) eps / (sqrt(512) + 1) for the threshold, half of it for queries, and
    2 eps / (sqrt(512) + 1) for answers.
    """
    if privacy.epsilon > 1:  # the range of the shortcut composition behind the scales (GEN-2b)
        raise ValueError(f"epsilon must be at most 1, got {privacy.epsilon!r}")
    root = math.sqrt(512)
    first, second = (part * privacy.epsilon / (root + 1) for part in (root, 2))
    spread = math.sqrt(32 * cutoff * math.log(2 / privacy.delta))
    return Scales(spread / first, 2 * spread / first, spread / second, redraw=True)


# Comparisons with a noisy threshold: the base class of all sparse vector mechanisms.

#: A query is a function of the records if the mechanism holds them, else its true answer.
StreamQuery = ExactNumber | Callable[[Any], ExactNumber]

#: Limits on the sensitivity. Far outside of them, float64 rounds scales to 0 or to infinity.
LEAST_SENSITIVITY, LARGEST_SENSITIVITY = 1e-100, 1e100

BELOW = Answer(above=False)
ABOVE = Answer(above=True)


@dataclass(eq=False, repr=False)
class SparseVectorStream(NotCopied, abc.ABC):
    """Compare queries with a noisy threshold until `cutoff` queries are found above it.

    A query with true answer x is found above the threshold T if x + Lap(D s_query) >= T + Lap(D
    s_threshold), for the sensitivity D and the `scales` s.
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
        sensitivity = real_number(self.sensitivity)
        if not LEAST_SENSITIVITY <= sensitivity <= LARGEST_SENSITIVITY:
            raise ValueError(
                f"sensitivity must be from {LEAST_SENSITIVITY:g} to {LARGEST_SENSITIVITY:g}, got "
                f"{self.sensitivity!r}: choose another unit for the queries"
            )
        self.sensitivity = sensitivity
        check_privacy(self.privacy, PureDP, ApproxDP)
        check_range(self.privacy)
        checked_adjacency(self.adjacency)
        require_type(self.monotone, bool, "monotone")
        if self.monotone and self.adjacency is not Adjacency.ADD_REMOVE:
            raise ValueError(
                "monotone must be False under replace-one, where one query can rise and another "
                "fall: use Adjacency.ADD_REMOVE"
            )
        self.scales = self._calibrate()
        self._answers: list[Answer] = []
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
            f"{self.adjacency.value}: {len(self._answers)} asked, "
            f"{self.found} of at most {self.cutoff} found above)"
        )

    @property
    def transcript(self) -> tuple[Answer, ...]:
        """The answers given so far, in order. They are public."""
        return tuple(self._answers)

    @property
    def found(self) -> int:
        """Number of queries found above the threshold so far."""
        return self._found

    @property
    def halted(self) -> bool:
        """Whether `cutoff` queries were found above the threshold."""
        return self._found >= self.cutoff

    def ask(self, query: StreamQuery) -> Answer:
        """Compare one query with the threshold; ``BudgetExhausted`` if the mechanism has halted."""
        with self._alone():
            self._require_running()
            truth = self._truth(query)
            self._require_running()  # the query is code of the caller
            if self._noise.reaches(truth, self._scaled(self.scales.query), self._noisy_threshold):
                return self._answer_above(truth)
            return self._record(BELOW)

    def ask_many(self, queries: Sequence[StreamQuery] | FloatArray) -> list[Answer]:
        """Ask `queries` until they end or the mechanism halts; if one is refused, none is asked."""
        with self._alone():
            self._require_running()
            truths = self._truths(queries)
            noisy = self._noise.values(truths, self._scaled(self.scales.query))
            start, begin = len(self._answers), 0
            while begin < len(truths) and not self.halted:
                first = noisy.first_reaching(begin, self._noisy_threshold)
                self._answers.extend([BELOW] * (first - begin))
                if first < len(truths):
                    self._answer_above(_plain(truths[first]))
                begin = first + 1
            return self._answers[start:]

    def _scaled(self, scale: float) -> float:
        """`scale` times the sensitivity, rounded up."""
        return self.sensitivity * scale * ROUNDED_UP

    def _answer_above(self, truth: ExactNumber) -> Answer:
        self._found += 1
        if self.scales.redraw and not self.halted:
            self._noisy_threshold = self._draw_threshold()
        if self.scales.answer is None:
            return self._record(ABOVE)
        value = self._noise.laplace(truth, self._scaled(self.scales.answer))
        return self._record(Answer(True, value))

    def _record(self, answer: Answer) -> Answer:
        self._answers.append(answer)
        return answer

    def _draw_threshold(self) -> Any:
        return self._noise.threshold(self.threshold, self._scaled(self.scales.threshold))

    def _require_running(self) -> None:
        if self.halted:
            found = plural(self.cutoff, "query")
            raise BudgetExhausted(
                f"{type(self).__name__} found {found} above its threshold and halted"
            )

    def _truth(self, query: StreamQuery) -> ExactNumber:
        truth: Any  # a caller without type checks may pass anything
        if self._records is None:
            truth = query
        elif callable(query):
            truth = query(self._records)
        else:
            raise ValueError("query must be a function of the records that the mechanism holds")
        plain = _plain(truth) if isinstance(truth, Real) else math.nan
        # A rounded answer could change by more than the sensitivity between neighbours. NaN is not
        # equal to itself.
        if plain != truth or not math.isfinite(real_number(plain)):
            raise ValueError(
                "a query's true answer must be a finite number below 2^1024 that is whole, a "
                "fraction or exact in float64, and a query can be a function only where the "
                f"mechanism holds records; got {type(truth).__name__}"
            )
        return plain

    def _truths(
        self, queries: Sequence[StreamQuery] | FloatArray
    ) -> Sequence[ExactNumber] | npt.NDArray[Any]:
        if isinstance(queries, np.ndarray) and self._records is None:
            real = queries.dtype.kind in "biuf" and queries.dtype.itemsize <= 8
            if not (real and queries.ndim == 1 and np.isfinite(queries).all()):
                raise ValueError(
                    "queries must be a one-dimensional array of finite numbers of at most 64 bits, "
                    f"got {queries.dtype} of shape {queries.shape}"
                )
            return queries
        return [self._truth(query) for query in queries]


def _plain(number: Any) -> ExactNumber:
    """Convert a number to int, Fraction or float. Only the conversion to float can round it."""
    if isinstance(number, Integral):
        return int(number)
    if isinstance(number, Rational):
        return Fraction(int(number.numerator), int(number.denominator))
    return float(number)


# The mechanisms.


@dataclass(eq=False, repr=False, kw_only=True)
class AboveThreshold(SparseVectorStream):
    """Find the first query above a threshold (Dwork-Roth, Algorithm 1; SV-AT).

    For queries of sensitivity D, the mechanism adds Lap(2 D / eps) to the threshold and
    Lap(4 D / eps) to each query (Lap(2 D / eps) if `monotone`). It halts at the first query found
    above.

    Privacy: eps-DP for any adaptive sequence of queries of sensitivity D. Without a seed this also
    holds on the computer, because comparisons are exact for the given true answers, and values that
    `NumericSparse` releases are correctly rounded. It cannot be copied, pickled or used in a forked
    process, which would use the same noise again.

    ``ValueError`` for parameters of a wrong type or out of range; ``BudgetExhausted`` if the ledger
    has too little budget left.

    Parameters
    ----------
    threshold : float
        The public threshold, in the units of the queries.
    privacy : PureDP
        The guarantee for the whole run; epsilon is from 1e-12 to 1e12.
    sensitivity : float
        Bound D on the change of a query between neighbours, in its units; from 1e-100 to 1e100.
    monotone : bool
        Whether all queries change in the same direction between neighbours, as counting queries do
        under add/remove. Not allowed under replace-one, where one can rise and another fall.
    adjacency : Adjacency
        The neighbour relation for which `sensitivity` is stated.
    records : object, optional
        The records on which queries are evaluated. Without them, `ask` takes true answers.
    rng : Generator, int or None
        None uses the operating system's entropy. A seed or generator voids the privacy claim.
    ledger : Ledger, optional
        Pays for the whole run when the mechanism is built, before any record is read.

    Examples
    --------
    >>> import geomdp as gd
    >>> mechanism = gd.AboveThreshold(threshold=100.0, privacy=gd.PureDP(1.0), rng=0)
    >>> [mechanism.ask(count).above for count in (10.0, 20.0, 200.0)]  # a simulation
    [False, False, True]
    >>> mechanism.halted
    True

    With records, the mechanism evaluates the queries itself:

    >>> records = list(range(1000))
    >>> mechanism = gd.AboveThreshold(threshold=100.0, privacy=gd.PureDP(1.0), records=records)
    >>> mechanism.ask(lambda records: sum(age >= 500 for age in records)).above
    True
    """

    cutoff: int = field(init=False, default=1)
    privacy: PureDP

    def _calibrate(self) -> Scales:
        check_privacy(self.privacy, PureDP, user="AboveThreshold")
        return above_threshold(self.privacy.epsilon, monotone=self.monotone)


@dataclass(eq=False, repr=False, kw_only=True)
class Sparse(SparseVectorStream):
    """Find up to `cutoff` queries above a threshold (SV-SP, SV-LSL).

    Under pure DP the threshold noise is drawn once (Lyu-Su-Li, Algorithm 1). ``redraw=True``
    chooses Dwork-Roth's Algorithm 2, which draws it again after each query found above, and needs
    more noise. Approximate DP always uses Algorithm 2. For the rest see `AboveThreshold`.

    Privacy: eps-DP, or (eps, delta)-DP by advanced composition (eps <= 1), in real arithmetic.

    Examples
    --------
    >>> import geomdp as gd
    >>> mechanism = gd.Sparse(threshold=100.0, cutoff=2, privacy=gd.PureDP(1.0), rng=0)
    >>> [answer.above for answer in mechanism.ask_many([10.0, 200.0, 20.0, 300.0, 30.0])]
    [False, True, False, True]
    """

    redraw: bool = False

    def _calibrate(self) -> Scales:
        if isinstance(self.privacy, PureDP) and not self.redraw:
            return kept(self.privacy, self.cutoff, monotone=self.monotone)
        return redrawn(self.privacy, self.cutoff, monotone=self.monotone)


@dataclass(eq=False, repr=False, kw_only=True)
class NumericSparse(SparseVectorStream):
    """Find up to `cutoff` queries above a threshold and release their values (SV-NUM).

    This is Dwork-Roth's Algorithm 3 with 8/9 of epsilon for comparisons and 1/9 for values; for the
    printed split see `PrintedNumericSparse`, and for the rest `AboveThreshold`.

    Privacy: eps-DP, or (eps, delta)-DP by advanced composition (8 eps / 9 <= 1), in real
    arithmetic.

    Examples
    --------
    >>> import geomdp as gd
    >>> mechanism = gd.NumericSparse(threshold=100.0, cutoff=2, privacy=gd.PureDP(1.0), rng=0)
    >>> for answer in mechanism.ask_many([10.0, 400.0, 20.0]):
    ...     print(answer.above, None if answer.value is None else round(answer.value, 1))
    False None
    True 431.4
    False None
    """

    def _calibrate(self) -> Scales:
        return numeric(self.privacy, self.cutoff, monotone=self.monotone)


@dataclass(eq=False, repr=False, kw_only=True)
class PrintedNumericSparse(SparseVectorStream):
    """NumericSparse with the split printed in Dwork-Roth for delta > 0 (DISC-11).

    For few queries, the noise on values exceeds the printed accuracy
    (`bounds.upper.numeric_sparse_printed`) with a probability above the stated beta. Parameters are
    those of `NumericSparse` without `monotone`; `privacy` is an ApproxDP.

    Privacy: (eps, delta)-DP by advanced composition (eps <= 1), in real arithmetic.

    Examples
    --------
    >>> import geomdp as gd
    >>> privacy = gd.ApproxDP(1.0, 1e-6)
    >>> printed = gd.mechanisms.PrintedNumericSparse(threshold=0.0, cutoff=2, privacy=privacy)
    >>> corrected = gd.NumericSparse(threshold=0.0, cutoff=2, privacy=privacy)
    >>> round(printed.scales.answer, 1), round(corrected.scales.answer, 1)
    (360.0, 137.1)
    """

    privacy: ApproxDP
    monotone: bool = field(init=False, default=False)

    def _calibrate(self) -> Scales:
        check_privacy(self.privacy, ApproxDP, user="PrintedNumericSparse")
        return numeric_printed(self.privacy, self.cutoff)
