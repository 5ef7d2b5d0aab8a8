"""The way of an offline release: its steps, and its results.

The steps are: set up, ask the ledger, read, pay, draw. The results are a prediction before a
mechanism sees data, and a release afterwards.
"""

from __future__ import annotations

import enum
import html
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import require_type
from geomdp.privacy import Adjacency, Guarantee, Heuristic, Ledger
from geomdp.privacy.definitions import weakness
from geomdp.workloads import Workload

Prepared = TypeVar("Prepared")
Statistic = TypeVar("Statistic")
Output = TypeVar("Output")


def source_and_record(
    rng: RandomState, guarantee: Guarantee
) -> tuple[np.random.Generator, Guarantee]:
    """The generator and the privacy record of one release; any `rng` but None voids the claim."""
    generator = np.random.default_rng(rng)
    return generator, guarantee if rng is None else guarantee.as_seeded()


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
    label: str,
    n: int,
    guarantee: Guarantee,
    ledger: Ledger | None,
    *,
    set_up: Callable[[], Prepared],
    read: Callable[[], tuple[int, Statistic]],
    draw: Callable[[Prepared, Statistic], Output],
) -> Output:
    """Run the steps of one release in the order that every offline mechanism must keep.

    Public work comes first, so that it cannot fail after the ledger has paid. The ledger is asked
    before the records are read, and pays after they are found valid, before noise is drawn. A
    failure before `draw` leaves the ledger unchanged, and nothing has been released.
    """
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

#: How many of the first answers are shown in a line of text, and in the table of a notebook.
FIRST_IN_TEXT, FIRST_IN_TABLE = 4, 10
#: Largest number of queries for which the table of a notebook has labels. A workload makes the
#: labels of all queries, even if only ten are shown.
MAX_LABELLED = 1 << 16


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

    #: The error on every data set, measured against the true answers. Under add/remove the true
    #: answers are the sums over the records, divided by the declared n. For another number of
    #: records, the error against their means can be larger. If the error is estimated, `stderr` is
    #: above 0.
    EXACT = "exact"
    #: An upper bound on the error for every data set (for `JL`, on average over its random map),
    #: measured as for `EXACT`. Under add/remove it holds for any number of records. Only small
    #: parts, for rounded answers or a numerical gap, are for n records.
    UPPER_BOUND = "upper_bound"
    #: The error in a simulation on public data, the prior.
    PRIOR = "prior"


@dataclass(frozen=True)
class Prediction:
    """Root mean squared error per query, (E ||M(X) - Q(X)||_2^2 / m)^(1/2), predicted without data.

    M(X) holds the released answers to the m queries. Q(X) is the sum of the true answers over the
    records, divided by n, for any number of records. Under replace-one, Q(X) is the mean. Under
    add/remove, n is a declared number, and Q(X) is the mean only if there are exactly n records.

    Parameters
    ----------
    value : float
        The predicted error, in the units of the answers (means).
    kind : PredictionKind
        Whether the value is the error itself, an upper bound, or simulated on a prior.
    source : str
        A formula, in most cases with its id in the formula sheet, and what was estimated.
    stderr : float
        Standard error of `value`. It is 0 if nothing was estimated, or if `value` is computed from
        upper confidence limits.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(3)
    >>> prediction = gd.mechanisms.Laplace(workload, n=100, privacy=gd.PureDP(1.0)).predicted_rmse
    >>> print(prediction)
    rmse 0.02828
    >>> prediction.kind.value, prediction.source, prediction.stderr
    ('exact', 'E||Z||^2 of the noise (JL-L14)', 0.0)
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
        return {
            "value": self.value,
            "kind": self.kind.value,
            "source": self.source,
            "stderr": self.stderr,
        }


def short_claim(guarantee: Guarantee) -> str:
    """A privacy record in a few words: the claim and the neighbour relation, without caveats."""
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
        The privacy record of this release.
    predicted_rmse : Prediction
        The error that was predicted before the data were seen.
    workload : Workload, optional
        The queries, which label the answers in the table of a notebook.
    noisy : array, optional
        The noisy values from which the answers were computed, such as the (m,) answers before a
        projection. `guarantee` covers them, too. Confidence intervals can be computed around them.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(3)
    >>> mechanism = gd.mechanisms.Laplace(workload, n=100, privacy=gd.PureDP(1.0))
    >>> records = np.array([0] * 50 + [1] * 30 + [2] * 20)
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> release
    Release(3 answers: 0.5064, 0.2877, 0.15; seeded: no privacy claim; predicted rmse 0.02828)
    >>> release.answers.round(3)
    array([0.506, 0.288, 0.15 ])
    >>> print(release.guarantee)
    seeded: no privacy claim
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


# Noisy sums divided by n: sums and noise are added exactly, and only the quotient is rounded.

#: Whole numbers below 2^53 are exact in float64.
LARGEST_SUM = 2**53
#: The sum of two whole numbers below 2^52 is exact in float64.
SMALL = 2**52


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
        raise ValueError(
            f"there must be one multiple for each of {len(scaled)} sums, got {len(multiples)}"
        )
    small = max(map(abs, multiples), default=0) < SMALL
    if small and size < LARGEST_SUM and np.abs(scaled).max(initial=0.0) * each < SMALL:
        # Numerators below 2^53 are exact in float64, so only the quotient is rounded.
        numerators = scaled.astype(np.int64) * each + np.array(multiples, dtype=np.int64)
        return np.asarray(numerators / size)
    pairs = zip(scaled.tolist(), multiples, strict=True)
    return np.array([(int(total) * each + j) / size for total, j in pairs])
