"""Offline mechanisms: the steps of a release, its results, and what one record can change."""

from __future__ import annotations

import abc
import copy
import enum
import html
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull
from geomdp._typing import FloatArray, RandomState
from geomdp._validation import require_type, whole
from geomdp.data.tallies import CountedRecords
from geomdp.privacy import Adjacency, Guarantee, Heuristic, Ledger, PureDP
from geomdp.privacy.definitions import checked_adjacency, weakness
from geomdp.privacy.guarantees import SamplerStatus
from geomdp.workloads import MarginalTables, Workload
from geomdp.workloads.base import Totals
from geomdp.workloads.universes import Records

RecordChunks: TypeAlias = "Records | Iterable[Records]"
AnyRecords: TypeAlias = "RecordChunks | CountedRecords"
Prepared = TypeVar("Prepared")
Statistic = TypeVar("Statistic")
Output = TypeVar("Output")

#: Limits on the largest l1 norm of an answer vector, for which float64 holds fourth powers of noise
#: scales for every epsilon that mechanisms accept.
LEAST_ANSWER, LARGEST_ANSWER = 1e-60, 1e60


# The steps of an offline release.


def source_and_record(
    rng: RandomState, guarantee: Guarantee, records: object = None
) -> tuple[np.random.Generator, Guarantee]:
    """The generator and the privacy record; any `rng` but None voids the claim."""
    if isinstance(records, CountedRecords):
        guarantee = guarantee.for_persons(records.max_rows_per_person, records.person)
    return np.random.default_rng(rng), guarantee if rng is None else guarantee.as_seeded()


def warn_if_weak(guarantee: Guarantee) -> None:
    """Warn of an unseeded epsilon or rho above 10, at the line that calls the library."""
    meaning = "" if guarantee.seeded else weakness(guarantee.privacy)
    if not meaning:
        return
    level, frame = 1, sys._getframe().f_back
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("geomdp."):
        level, frame = level + 1, frame.f_back
    warnings.warn(meaning, UserWarning, stacklevel=level + 1)


def release_once(
    mechanism: Any,
    guarantee: Guarantee,
    ledger: Ledger | None,
    *,
    set_up: Callable[[], Prepared],
    read: Callable[[], tuple[int, Statistic]],
    draw: Callable[[Prepared, Statistic], Output],
) -> Output:
    """Run the steps of one release in the order that every offline mechanism must keep.

    Public work comes first. The ledger is asked before the records are read, and pays after they
    are found valid, before noise is drawn.
    """
    label, n = type(mechanism).__name__, mechanism.n
    if ledger is not None:
        require_type(ledger, Ledger, "ledger")
    prepared = set_up()
    if ledger is not None:
        ledger.require(guarantee, label)
    count, statistic = read()
    if guarantee.adjacency is Adjacency.REPLACE_ONE and count != n:
        raise ValueError(f"records must number n = {n}, got {count}")
    warn_if_weak(guarantee)
    if ledger is not None:
        ledger.spend(guarantee, label)
    return draw(prepared, statistic)


# The results.

#: How many answers a line of text and a table show. A workload makes the labels of all queries, so
#: only tables of at most `MAX_LABELLED` queries have labels.
FIRST_IN_TEXT, FIRST_IN_TABLE, MAX_LABELLED = 4, 10, 1 << 16


class PredictionKind(enum.StrEnum):
    """How a predicted error relates to the error of a mechanism.

    Examples
    --------
    >>> import geomdp as gd
    >>> laplace = gd.mechanisms.Laplace(gd.workloads.Prefixes(8), n=100, privacy=gd.PureDP(1.0))
    >>> laplace.predicted_rmse.kind.value
    'exact'
    >>> gd.mechanisms.Projected(laplace).predicted_rmse.kind.value
    'upper_bound'
    """

    #: The error on every data set, against Q(X) as in `Prediction`; it can be larger against means
    #: of another number of records than n. If it is estimated, `stderr` is above 0.
    EXACT = "exact"
    #: An upper bound for every data set (for `JL`, on average over its random map), and under
    #: add/remove, but for small parts of rounding and numerical gaps, for any number of records.
    UPPER_BOUND = "upper_bound"
    #: The error in a simulation on public data, the prior.
    PRIOR = "prior"


@dataclass(frozen=True)
class Prediction:
    """Root mean squared error per query, (E ||M(X) - Q(X)||_2^2 / m)^(1/2), predicted without data.

    M(X) holds the released answers to the m queries, and Q(X) the sum of the true answers over the
    records, divided by n. Under add/remove, this is the mean only if there are exactly n records.

    Parameters
    ----------
    value : float
        The predicted error, in the units of the answers (means).
    kind : PredictionKind
        How the value relates to the error.
    source : str
        A formula, in most cases with its id in the formula sheet, and what was estimated.
    stderr : float
        Standard error of `value`; 0 if it is not estimated, or holds upper confidence limits.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(3)
    >>> gd.mechanisms.Laplace(workload, n=100, privacy=gd.PureDP(1.0)).predicted_rmse.source
    'E||Z||^2 of the noise (JL-L14)'
    """

    value: float
    kind: PredictionKind
    source: str
    stderr: float = 0.0

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        kind = "at most " if self.kind is PredictionKind.UPPER_BOUND else ""
        prior = " on a prior" if self.kind is PredictionKind.PRIOR else ""
        return f"rmse {kind}{self.value:.4g}{prior}"

    def to_dict(self) -> dict[str, object]:
        """The prediction as plain values, ready for JSON."""
        return asdict(self) | {"kind": self.kind.value}


def short_claim(guarantee: Guarantee) -> str:
    """The claim and the neighbour relation, without caveats."""
    if guarantee.seeded or guarantee.withdrawn:
        return str(guarantee)
    if isinstance(guarantee.sampler, Heuristic):
        return f"heuristic, target {guarantee.privacy}, {guarantee.adjacency.value}"
    return f"{guarantee.effective}, {guarantee.adjacency.value}"


@dataclass(frozen=True, repr=False)
class Release:
    """Private answers, with a privacy record and the predicted error.

    Parameters
    ----------
    answers : (m,) array
        Private mean answers, in the order of the workload's queries.
    guarantee : Guarantee
        The privacy record.
    predicted_rmse : Prediction
        The error that was predicted before the data were seen.
    workload : Workload, optional
        The queries, which label the answers in the table of a notebook.
    noisy : array, optional
        The noisy values from which the answers were computed, such as the (m,) answers before a
        projection, for confidence intervals. `guarantee` covers them, too.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(3)
    >>> mechanism = gd.mechanisms.Laplace(workload, n=100, privacy=gd.PureDP(1.0))
    >>> records = np.array([0] * 50 + [1] * 30 + [2] * 20)
    >>> mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    Release(3 answers: 0.5064, 0.2877, 0.15; seeded: no privacy claim; predicted rmse 0.02828)
    """

    answers: FloatArray
    guarantee: Guarantee
    predicted_rmse: Prediction
    workload: Workload | None = None
    noisy: FloatArray | None = None

    def to_json(self) -> str:
        """Answers, privacy record and prediction as one JSON object."""
        record = {
            "answers": self.answers.tolist(),
            "guarantee": self.guarantee.to_dict(),
            "predicted_rmse": self.predicted_rmse.to_dict(),
        }
        return json.dumps(record, indent=2)

    def __repr__(self) -> str:
        first = [f"{answer:.4g}" for answer in self.answers[:FIRST_IN_TEXT]]
        if len(self.answers) > FIRST_IN_TEXT:
            first.append("...")
        return (
            f"Release({len(self.answers)} answers: {', '.join(first)}; "
            f"{short_claim(self.guarantee)}; predicted {self.predicted_rmse})"
        )

    def _repr_html_(self) -> str:
        """A table of the first answers with their labels, for notebooks."""
        count = min(len(self.answers), FIRST_IN_TABLE)
        labels: Sequence[object] = range(count)
        if self.workload is not None and len(self.answers) <= MAX_LABELLED:
            labels = self.workload.labels()[:count]
        rows = "".join(
            f"<tr><td>{html.escape(str(label))}</td><td>{answer:.4g}</td></tr>"
            for label, answer in zip(labels, self.answers, strict=False)
        )
        more = len(self.answers) - count
        rest = f"<p>and {more} more answers</p>" if more else ""
        return (
            f"<p><b>{html.escape(str(self.guarantee))}</b><br>"
            f"predicted {html.escape(str(self.predicted_rmse))}</p>"
            f"<table><tr><th>query</th><th>answer</th></tr>{rows}</table>{rest}"
        )


#: Whole numbers below 2^53 are exact in float64, and so is a sum of two below 2^52.
LARGEST_SUM, SMALL = 2**53, 2**52


def quotients(
    sums: FloatArray, multiples: list[int], unit: int, n: int, step: int = 1
) -> FloatArray:
    """(sums + multiples / unit) / n for whole `multiples` (m,): the exact quotient, rounded once.

    `step` is a power of two that divides `unit`, and `sums` (m,) are multiples of 1 / step. In
    float64 the rounding error of a sum plus large noise would depend on the records.
    """
    # A product with a power of two is exact.
    scaled = sums * step
    if (np.abs(scaled) >= LARGEST_SUM).any() or (scaled != np.rint(scaled)).any() or unit % step:
        raise ArithmeticError(f"sums times {step} must be whole numbers below 2^53")
    size, each = n * unit, unit // step
    if len(scaled) != len(multiples):
        raise ValueError(f"{len(scaled)} sums must have as many multiples, got {len(multiples)}")
    small = max(map(abs, multiples), default=0) < SMALL
    if small and size < LARGEST_SUM and np.abs(scaled).max(initial=0.0) * each < SMALL:
        # Numerators below 2^53 are exact in float64, so only the quotient is rounded.
        numerators = scaled.astype(np.int64) * each + np.array(multiples, dtype=np.int64)
        return np.asarray(numerators / size)
    pairs = zip(scaled.tolist(), multiples, strict=True)
    return np.array([(int(total) * each + j) / size for total, j in pairs])


# What one record can change.


def checked_workload(workload: object) -> Workload:
    if not isinstance(workload, Workload):
        raise ValueError(f"workload must be a Workload, got {type(workload).__name__}")
    return workload


def checked_size(workload: Workload) -> Workload:
    """Return `workload`; ``ValueError`` if its l1 radius is neither 0 nor from 1e-60 to 1e60."""
    with np.errstate(over="ignore"):
        radius = workload.l1_radius()
    if radius != 0 and not LEAST_ANSWER <= radius <= LARGEST_ANSWER:
        raise ValueError(
            f"workload must have answers with a largest l1 norm from {LEAST_ANSWER:g} to "
            f"{LARGEST_ANSWER:g}, got {radius:g}: choose another unit"
        )
    return workload


def pure_only(privacy: object, mechanism: str) -> PureDP:
    if not isinstance(privacy, PureDP):
        raise ValueError(f"privacy must be PureDP for {mechanism}, got {privacy!r}")
    return privacy


def l1_sensitivity(workload: Workload, adjacency: Adjacency) -> float:
    """Upper bound on the l1 change of sums of answers (GEN-1); ``ValueError`` if 0 or infinite."""
    checked_workload(workload)
    replace_one = checked_adjacency(adjacency) is Adjacency.REPLACE_ONE
    return _not_constant(workload.l1_diameter() if replace_one else workload.l1_radius())


def l2_sensitivity(workload: Workload, adjacency: Adjacency) -> float:
    """Upper bound on the l2 change of the sum of answer vectors, as `l1_sensitivity`."""
    checked_workload(workload)
    replace_one = checked_adjacency(adjacency) is Adjacency.REPLACE_ONE
    return _not_constant(workload.l2_diameter() if replace_one else workload.l2_radius())


def whole_square(sensitivity: float) -> int:
    """Upper bound on the square, which is whole, of the l2 sensitivity of whole answers."""
    return math.floor(sensitivity**2 * (1 + 1e-9))  # its relative error is far below 1e-9


def _not_constant(sensitivity: float) -> float:
    if not (math.isfinite(sensitivity) and sensitivity > 0):
        raise ValueError(
            f"workload must have a sensitivity that is finite and above 0, got {sensitivity!r}; "
            "a workload that is constant (under add-remove: that is 0) needs no mechanism"
        )
    return sensitivity


def answer_hull(workload: Workload, adjacency: Adjacency) -> AffineHull:
    """The affine hull of answers, under add/remove its linear span (JL-DEF), of dimension r >= 1.

    This public subspace contains the mean answers of every data set. ``ValueError`` if r is 0.
    """
    hull = checked_workload(workload).affine_hull()
    if checked_adjacency(adjacency) is Adjacency.ADD_REMOVE:
        hull = _linear_span(hull)
    if hull.dimension == 0:
        raise ValueError("workload must have answers that vary over its universe, got a constant")
    return hull


def _linear_span(hull: AffineHull) -> AffineHull:
    """Linear span of an affine subspace, as an affine subspace through 0."""
    normal = hull.offset - hull.basis @ (hull.basis.T @ hull.offset)
    # Repeat, because the first pass leaves a rounding error along the basis.
    normal = normal - hull.basis @ (hull.basis.T @ normal)
    length = float(np.linalg.norm(normal))
    origin = np.zeros_like(hull.offset)
    if length <= RANK_TOLERANCE * float(np.linalg.norm(hull.offset)):
        return AffineHull(origin, hull.basis)
    return AffineHull(origin, np.column_stack([hull.basis, normal / length]))


#: The `repr` of a mechanism has the class of a workload whose own `repr` is longer than this.
LONGEST = 60

#: A function that maps exact sums to private means (m,), with noise that is drawn already.
Privatiser = Callable[[FloatArray], FloatArray]


def once(privatiser: Privatiser) -> Privatiser:
    """Let `privatiser` run once, as the same noise on two sums would reveal their difference."""
    unused = [privatiser]

    def first_call(sums: FloatArray) -> FloatArray:
        if not unused:
            raise RuntimeError("noise is used once: draw new noise for another release")
        return unused.pop()(sums)

    return first_call


class Mechanism(abc.ABC):
    """A private mechanism for one workload, one number n of records and one privacy guarantee.

    A release has three steps: `totals` (exact sums of the answers), `draw` (draw noise) and
    `process` (compute answers from noisy means).

    Notes
    -----
    `guarantee` holds for all neighbouring X, X' and measurable S. Under epsilon-DP,
    Pr[M(X) in S] <= e^epsilon Pr[M(X') in S]. Under (epsilon, delta)-DP, delta is added on the
    right. Under rho-zCDP, the Renyi divergence of order a > 1 of M(X) from M(X') is at most rho a.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(3)
    >>> mechanism = gd.mechanisms.Laplace(workload, n=100, privacy=gd.PureDP(1.0))
    >>> records = np.array([0] * 50 + [1] * 30 + [2] * 20)
    >>> ledger = gd.Ledger(gd.PureDP(1.5))
    >>> mechanism.release(records, ledger=ledger).guarantee
    Guarantee(1-DP, replace-one, exact sampler)
    >>> ledger.left()
    {'epsilon': 0.5}
    """

    workload: Workload
    n: int
    adjacency: Adjacency
    guarantee: Guarantee

    def __repr__(self) -> str:
        said = f"{_in_words(self.workload)}; {self.workload.n_queries} queries; n={self.n}"
        return f"{type(self).__name__}({said}; {self._claim()})"

    def _claim(self) -> str:
        return short_claim(self.guarantee)

    @property
    @abc.abstractmethod
    def predicted_rmse(self) -> Prediction:
        """Root mean squared error per query, predicted from public arguments alone."""

    @property
    def sampler(self) -> SamplerStatus:
        """Status of the sampler of the noise, as in `guarantee`, but without a set-up."""
        return self.guarantee.sampler

    @property
    def grid(self) -> int | None:
        """Unseeded releases round noise correctly to 2^-grid; None if the noise is in float64."""
        return None

    @abc.abstractmethod
    def with_workload(self, workload: Workload) -> Self:
        """The same kind of mechanism, with the same n and guarantee, for another `workload`."""

    def with_n(self, n: int) -> Self:
        """The same mechanism for `n` records, with the same noise and geometry."""
        n = whole(n, "n")
        self.set_up()  # before copying: the copy then has the results, too
        twin = copy.copy(self)
        twin.n = n
        return twin

    @abc.abstractmethod
    def set_up(self) -> None:
        """Do all work that depends on public arguments alone; a second call does nothing."""

    def totals(self, records: AnyRecords) -> Totals:
        """Number of records and exact sums; ``ValueError`` for records outside the universe."""
        return totals_of(self.workload, records)

    def measured(self, records: AnyRecords) -> Totals:
        """The sums, perhaps of measurements, to which correctly rounded noise is added."""
        return self.totals(records)

    @abc.abstractmethod
    def draw(self, rng: np.random.Generator | None) -> Privatiser:
        """Draw the noise, and return a function from exact sums to noisy means, for one call.

        No other step draws, and this one sees no records. If `rng` is None and there is a `grid`,
        the function takes the sums of `measured`, else those of `totals`.
        """

    def process(self, noisy: FloatArray) -> FloatArray:
        """The answers (m,), computed from the noisy means alone. By default, the noisy means."""
        return noisy

    def private(self, rng: np.random.Generator | None) -> Privatiser:
        """Draw the noise, and return the function from exact sums to answers with this noise."""
        noisy = self.draw(rng)
        return once(lambda sums: self.process(noisy(sums)))

    def privatise(self, sums: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Private mean answers (m,) from the exact sums, with fresh noise."""
        return self.private(rng)(sums)

    def release(
        self, records: AnyRecords, rng: RandomState = None, *, ledger: Ledger | None = None
    ) -> Release:
        """Private answers (m,) to the workload on `records`.

        Without a seed, an epsilon or rho above 10 gives a ``UserWarning`` before anything is paid.

        Parameters
        ----------
        records : array, DataFrame, or iterable of such chunks
            Records in the encoding of `workload.universe`, n of them under replace-one, or counts
            from `gd.data.count_records`. If these bound the rows of each person, the guarantee of
            the release is `Guarantee.for_persons`.
        rng : Generator, int or None
            None draws from the operating system; with a `grid`, the noise is correctly rounded. A
            seed or generator gives a reproducible simulation with ``seeded: no privacy claim``.
        ledger : Ledger, optional
            The privacy budget: asked before the records are read, and charged before noise is
            added.

        Raises
        ------
        ValueError
            For records outside the universe or, under replace-one, not n of them. Nothing is paid.
        BudgetExhausted
            If the ledger cannot pay. Nothing is released.
        """
        generator, guarantee = source_and_record(rng, self.guarantee, records)
        rounded = rng is None and self.grid is not None

        def set_up() -> Prediction:
            self.set_up()
            return self.predicted_rmse

        def read() -> tuple[int, FloatArray]:
            totals = self.measured(records) if rounded else self.totals(records)
            return totals.count, totals.sums

        def draw(predicted: Prediction, sums: FloatArray) -> Release:
            noisy = self.draw(None if rounded else generator)(sums)
            return Release(self.process(noisy), guarantee, predicted, self.workload, noisy)

        return release_once(self, guarantee, ledger, set_up=set_up, read=read, draw=draw)


def totals_of(workload: Workload, records: AnyRecords) -> Totals:
    """Number of records and exact sums of answers, from records or from their counts."""
    if isinstance(records, CountedRecords):
        return records.totals(workload)
    return workload.totals(records)


def _in_words(workload: Workload) -> str:
    if isinstance(workload, MarginalTables):
        return f"MarginalTables of {len(workload.levels)} columns, k={workload.k}"
    text = repr(workload)
    return text if len(text) <= LONGEST else type(workload).__name__


class PostProcessed(Mechanism):
    """A mechanism that reads records by the steps of `inner`, whose guarantee it keeps (GEN-2)."""

    inner: Mechanism

    def __init__(self, inner: Mechanism) -> None:
        self.inner = inner
        self.workload, self.n, self.adjacency = inner.workload, inner.n, inner.adjacency

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    # A property, because the guarantee of `inner` may need a set-up first.
    @property
    def guarantee(self) -> Guarantee:  # type: ignore[override]
        """The guarantee of `inner`."""
        return self.inner.guarantee

    @property
    def sampler(self) -> SamplerStatus:
        return self.inner.sampler

    @property
    def grid(self) -> int | None:
        return self.inner.grid

    def with_n(self, n: int) -> Self:
        twin = super().with_n(n)
        twin.inner = self.inner.with_n(n)
        return twin

    def with_workload(self, workload: Workload) -> Self:
        return type(self)(self.inner.with_workload(workload))

    def set_up(self) -> None:
        self.inner.set_up()

    def measured(self, records: AnyRecords) -> Totals:
        return self.inner.measured(records)

    def draw(self, rng: np.random.Generator | None) -> Privatiser:
        return self.inner.private(rng)

    def _require_replace_one(self, why: str) -> None:
        if self.adjacency is not Adjacency.REPLACE_ONE:
            raise ValueError(
                f"{type(self).__name__} needs replace-one, got add/remove, where the number of "
                f"records is private: {why}, so no error bound holds for every data set"
            )


# Predicted error on a public data set, by simulation.


class FixedDataset:
    """One public data set for all simulated releases; never use data that are to be protected."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._known: tuple[Workload, int, FloatArray] | None = None

    def sums(self, workload: Workload, n: int) -> FloatArray:
        """Sum of the answer vectors (m,) of `n` records."""
        if self._known is None or self._known[0] is not workload:
            totals = workload.totals(self._records)
            self._known = (workload, totals.count, totals.sums)
        _, count, sums = self._known
        if count != n:
            raise ValueError(f"records of the prior must number n = {n}, got {count}")
        return sums

    def inputs(self, mechanism: Mechanism) -> FloatArray:
        """The sums to which `mechanism` adds noise."""
        if type(mechanism).totals is Mechanism.totals:
            return self.sums(mechanism.workload, mechanism.n)
        return mechanism.totals(self._records).sums


def predict_on_prior(
    mechanism: Mechanism, prior: FixedDataset, trials: int, rng: RandomState = None
) -> Prediction:
    """Root mean squared error per query of `mechanism` on a public data set, by simulation."""
    require_type(mechanism, Mechanism, "mechanism")
    require_type(prior, FixedDataset, "prior")
    trials = whole(trials, "trials", minimum=2)
    generator = np.random.default_rng(rng)
    squares = np.empty(trials)
    truth = prior.sums(mechanism.workload, mechanism.n) / mechanism.n
    inputs = prior.inputs(mechanism)
    for trial in range(trials):
        error = mechanism.privatise(inputs, generator) - truth
        squares[trial] = error @ error / mechanism.workload.n_queries
    value = math.sqrt(squares.mean())  # d sqrt(x) = dx / (2 sqrt(x))
    stderr = float(squares.std(ddof=1)) / math.sqrt(trials) / (2 * value) if value > 0 else 0.0
    source = f"simulated, {trials} trials on {type(prior).__name__}"
    return Prediction(value, PredictionKind.PRIOR, source, stderr)
