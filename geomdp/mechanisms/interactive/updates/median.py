"""The median update rule: each update deletes at least half of the candidates left (BR-MED)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import finite_array, positive, real_number, whole
from geomdp.mechanisms.interactive.updates.finite_universe import UnfollowedAnswerError
from geomdp.workloads.single_queries import DenseQuery

#: Largest number of entries of a net: 2^26 float64 are 512 MB.
MAX_NET_ENTRIES = 1 << 26


def net_fineness(size: int, records: int, n_queries: int) -> float:
    """Fineness of the net `net(size, records)` for q = `n_queries` queries with values in [0, 1].

    For every data set, some row of the net answers all q queries with errors of at most the
    fineness. With M = `size` and l = `records`, the result is the smaller of two bounds:

    * sqrt(ln(2 q) / (2 l)), by Hoeffding's inequality for l records drawn from the data set.
    * floor(M / 2) ceil(M / 2) / (M l), for any number of queries: the largest total variation
      distance between a distribution and the nearest row.

    Examples
    --------
    >>> from geomdp.mechanisms.interactive.updates import net_fineness
    >>> net_fineness(size=2, records=4, n_queries=10)
    0.125
    """
    size, records = whole(size, "size"), whole(records, "records")
    n_queries = whole(n_queries, "n_queries")
    drawn = math.sqrt(math.log(2 * n_queries) / (2 * records))
    rounded = (size // 2) * (size - size // 2) / (size * records)
    return min(drawn, rounded)


def net_size(n_queries: int, alpha: float) -> int:
    """Number l of records per candidate that makes `net` an alpha-net for q queries (BR-MED).

    The result is l = ceil(ln(2 q) / (2 alpha^2)) + 1 with q = `n_queries`. Then for every data set,
    some row of `net` answers all q queries with values in [0, 1] with errors of at most alpha.

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

    With M = `size` and l = `records` the array has shape (C(M + l - 1, l), M). ``ValueError`` if it
    would have more than 2^26 entries.

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
    answers. An update keeps only candidates with answers on the side of the noisy answer, and so
    deletes at least half of them (Dwork-Roth, Algorithm 9 and Theorem 5.8; BR-MED). The bound holds
    if `fineness` is strictly below alpha. Otherwise, the candidate nearest to the data can have the
    median answer and be deleted (DISC-20).

    Parameters
    ----------
    candidates : (K, M) array
        Distributions on {0, ..., M - 1}, one in each row. These rows are the net.
    fineness : float
        For every data set, some candidate answers all queries of the class with errors of at most
        this number. The caller vouches for it, or takes `net_fineness`. If it is too small, the
        stated accuracy can be false; privacy does not depend on it.

    Raises
    ------
    ValueError
        For no candidates, a row that is no distribution up to 1e-9, or `fineness` below 0 or
        infinite.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.interactive.updates import net
    >>> rule = gd.mechanisms.Median(net(size=2, records=4), fineness=1 / 8)
    >>> round(rule.bound(0.5), 2), rule.bound(1 / 8)
    (2.32, inf)
    >>> hypothesis = rule.start(0.5)
    >>> hypothesis.update(gd.workloads.DenseQuery([1.0, 0.0]), answer=0.9)
    >>> hypothesis
    MedianHypothesis(2 of 5 candidates left)
    """

    candidates: FloatArray
    fineness: float

    def __post_init__(self) -> None:
        candidates = finite_array(self.candidates, "candidates", ndim=2)
        if candidates.size == 0 or (candidates < 0).any():
            raise ValueError("candidates must be non-empty rows of numbers that are at least 0")
        with np.errstate(over="ignore"):
            sums = candidates.sum(axis=1)
        if (np.abs(sums - 1) > 1e-9).any():
            row = int(np.argmax(np.abs(sums - 1)))
            raise ValueError(f"rows of candidates must sum to 1, row {row} sums to {sums[row]}")
        object.__setattr__(self, "candidates", candidates)
        fineness = real_number(self.fineness)
        if not 0 <= fineness < math.inf:
            raise ValueError(f"fineness must be a finite number of at least 0, got {fineness}")
        object.__setattr__(self, "fineness", fineness)

    def __repr__(self) -> str:
        count, size = self.candidates.shape
        return f"Median({count} candidates on {size} elements, fineness {self.fineness:g})"

    def bound(self, alpha: float) -> float:
        """B(alpha) = log2 |net|; infinity if `fineness` is not below alpha."""
        positive(alpha, "alpha")
        return math.log2(len(self.candidates)) if self.fineness < alpha else math.inf

    def start(self, alpha: float) -> MedianHypothesis:
        """The hypothesis that still has all candidates."""
        positive(alpha, "alpha")
        return MedianHypothesis(self.candidates)


class MedianHypothesis:
    """The rows of `candidates` (K, M) left; it answers with the lower median of their answers.

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

        If `answer` is the median, candidates with larger answers are kept. Those that answer with
        the median are deleted. ``UnfollowedAnswerError`` if none would be left.
        """
        median = self.evaluate(query)
        answers = self._candidates @ query.values
        keep = answers < median if answer < median else answers > median
        if not (self._alive & keep).any():
            raise UnfollowedAnswerError(
                "no candidate is left: the net must be strictly finer than alpha, and the noise on "
                "answers must be smaller than alpha"
            )
        self._alive &= keep
