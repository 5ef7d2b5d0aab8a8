"""The results of a mechanism: a prediction before it sees data, and a release afterwards."""

from __future__ import annotations

import enum
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass

from geomdp._typing import FloatArray
from geomdp.privacy import Guarantee, Heuristic
from geomdp.workloads import Workload

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
