"""The median update rule: halving a net of candidate databases (BR-MED)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import finite_array, positive, whole
from geomdp.mechanisms.interactive.updates.base import UnfollowedAnswerError
from geomdp.workloads.single_queries.single_query import DenseQuery

#: Largest number of entries of a net: 2^26 float64 are 512 MB.
MAX_NET_ENTRIES = 1 << 26


def net_size(n_queries: int, alpha: float) -> int:
    """Number l of records per candidate that makes `net` an alpha-net for q queries (BR-MED).

    A candidate is a row of `net`: the distribution of l records. The function returns
    l = ceil(ln(2 q) / (2 alpha^2)) + 1 with q = `n_queries`. Then for every data set, some
    candidate answers all q queries with errors of at most alpha.

    Examples
    --------
    >>> from geomdp.mechanisms.interactive.updates import net_size
    >>> net_size(n_queries=10, alpha=0.5)
    7
    """
    n_queries, alpha = whole(n_queries, "n_queries"), positive(alpha, "alpha")
    return math.ceil(math.log(2 * n_queries) / (2 * alpha**2)) + 1


def net(size: int, records: int) -> FloatArray:
    """All distributions of `records` records on {0, ..., size - 1}, one in each row.

    With M = `size` and l = `records` the array has shape (C(M + l - 1, l), M).

    Raises
    ------
    ValueError
        If the array would have more than 2^26 entries.

    Examples
    --------
    >>> from geomdp.mechanisms.interactive.updates import net
    >>> net(size=2, records=2)
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """
    size, records = whole(size, "size"), whole(records, "records")
    count = math.comb(size + records - 1, records)
    if count * size > MAX_NET_ENTRIES:
        raise ValueError(f"a net of {count} candidates on {size} elements has over 2^26 entries")
    candidates = np.zeros((count, size))
    for row, members in enumerate(combinations_with_replacement(range(size), records)):
        np.add.at(candidates[row], list(members), 1 / records)
    return candidates


@dataclass(frozen=True, eq=False)
class Median:
    """The update rule of the median mechanism: at most B(alpha) = log2 |net| updates.

    The net is the set of candidates. The hypothesis answers with the median of the candidates'
    answers. If the noisy answer is below the median, an update keeps only candidates with answers
    below the median. If not, an update keeps only candidates with answers above the median. At
    least half of the candidates are deleted. The net must be strictly finer than alpha. This means:
    for every data set, some candidate answers all queries with errors below alpha. An alpha/2-net
    has this property. In a coarser net, the candidate nearest to the data can have the median
    answer and be deleted (DISC-20). The source is Dwork-Roth, Algorithm 9 and Theorem 5.8; BR-MED.

    Parameters
    ----------
    candidates : (K, M) array
        Distributions on {0, ..., M - 1}, one in each row. These rows are the net.

    Raises
    ------
    ValueError
        If a row has a negative entry, or a sum that differs from 1 by more than 1e-9.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.interactive.updates import net
    >>> rule = gd.mechanisms.Median(net(size=2, records=4))
    >>> round(rule.bound(0.5), 2)
    2.32
    >>> hypothesis = rule.start(0.5)
    >>> hypothesis.update(gd.workloads.DenseQuery([1.0, 0.0]), answer=0.9)
    >>> hypothesis
    MedianHypothesis(2 of 5 candidates left)
    """

    candidates: FloatArray

    def __post_init__(self) -> None:
        candidates = finite_array(self.candidates, "candidates", ndim=2)
        if candidates.size == 0 or (candidates < 0).any():
            raise ValueError("candidates must be non-empty rows of numbers that are at least 0")
        sums = candidates.sum(axis=1)
        if (np.abs(sums - 1) > 1e-9).any():
            row = int(np.argmax(np.abs(sums - 1)))
            raise ValueError(f"candidates must sum to 1, row {row} sums to {sums[row]}")
        object.__setattr__(self, "candidates", candidates)

    def __repr__(self) -> str:
        count, size = self.candidates.shape
        return f"Median({count} candidates on {size} elements)"

    def bound(self, alpha: float) -> float:
        """B(alpha) = log2 |net|, valid if the net is strictly finer than alpha."""
        positive(alpha, "alpha")
        return math.log2(len(self.candidates))

    def start(self, alpha: float) -> MedianHypothesis:
        """The hypothesis that still has all candidates."""
        positive(alpha, "alpha")
        return MedianHypothesis(self.candidates)


class MedianHypothesis:
    """The rows of `candidates` (K, M) that no update has deleted.

    The answer to a query is the lower median of their answers.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.interactive.updates import MedianHypothesis, net
    >>> hypothesis = MedianHypothesis(net(size=2, records=4))
    >>> query = gd.workloads.DenseQuery([1.0, 0.0])
    >>> hypothesis.evaluate(query)
    0.5
    >>> hypothesis.update(query, answer=0.9)
    >>> hypothesis.remaining, hypothesis.evaluate(query)
    (2, 0.75)
    """

    def __init__(self, candidates: FloatArray) -> None:
        self._candidates = candidates
        self._alive: BoolArray = np.ones(len(candidates), dtype=bool)

    def __repr__(self) -> str:
        return f"MedianHypothesis({self.remaining} of {len(self._candidates)} candidates left)"

    @property
    def remaining(self) -> int:
        """Number of candidates left."""
        return int(self._alive.sum())

    def evaluate(self, query: DenseQuery) -> float:
        """Lower median of the candidates' answers."""
        answers = self._candidates[self._alive] @ query.values
        middle = (len(answers) - 1) // 2
        return float(np.partition(answers, middle)[middle])

    def update(self, query: DenseQuery, answer: float) -> None:
        """Keep only candidates with answers on the same side of the median as `answer`.

        Candidates that answer with the median itself are deleted, too.

        Raises
        ------
        UnfollowedAnswerError
            If no candidate would be left, because the net is not fine enough for these answers.
        """
        median = self.evaluate(query)
        answers = self._candidates @ query.values
        keep = answers < median if answer < median else answers > median
        if not (self._alive & keep).any():
            raise UnfollowedAnswerError(
                "no candidate is left: the net must be strictly finer than alpha"
            )
        self._alive &= keep
