"""Private distinguishers find a query whose answers on data and on a hypothesis differ widely."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import listed, positive, require_type, whole
from geomdp.mechanisms.interactive.budgets import ROUNDED_UP
from geomdp.mechanisms.interactive.updates import Hypothesis, WeightedHypothesis
from geomdp.noise.scalar import ExactNoise, ScalarNoise
from geomdp.workloads.single_queries import DenseQuery, LinearQuery
from geomdp.workloads.universes import FiniteUniverse


@dataclass(frozen=True)
class ExactTruths:
    """The means `totals` / `n` of k queries, as exact rational numbers."""

    totals: FloatArray | Sequence[Fraction]
    n: int

    def __len__(self) -> int:
        return len(self.totals)

    def __getitem__(self, index: int) -> Fraction:
        return Fraction(self.totals[index]) / self.n

    def near(self) -> FloatArray:
        """The true answers in float64 (k,), each with a relative error of at most 2^-51."""
        return np.array(self.totals, dtype=np.float64) / self.n

    def gap(self, index: int, estimate: float) -> Fraction:
        return abs(self[index] - Fraction(estimate))


AnyQuery = TypeVar("AnyQuery", bound=LinearQuery)

#: Largest number of bits of `AllParities`: 2^24 scores are 128 MB.
MAX_BITS = 24


class Distinguisher(abc.ABC, Generic[AnyQuery]):
    """A finite class C of queries, chosen by the gap |Q(D) - Q(H)| of data D and hypothesis H.

    Queries have values in [0, 1], so a gap has sensitivity 1/n.
    """

    @property
    @abc.abstractmethod
    def size(self) -> int: ...

    @abc.abstractmethod
    def query(self, index: int) -> AnyQuery: ...

    @abc.abstractmethod
    def truths(self, records: Any, n: int) -> FloatArray:
        """The sum of each query over `records`, divided by `n`; an array (|C|,)."""

    @abc.abstractmethod
    def exact_truths(self, records: Any, n: int) -> ExactTruths:
        """The values of `truths` as exact rational numbers."""

    @abc.abstractmethod
    def estimates(self, hypothesis: Any) -> FloatArray:
        """The hypothesis' answer to each query: (|C|,)."""

    def loss(self, epsilon: float, gamma: float, n: int) -> float:
        """The bound F = 2 ln(|C| / gamma) / (n eps) on the largest gap minus the chosen gap.

        It holds with probability at least 1 - `gamma` (IC-DIST).
        """
        log = math.log(self.size / positive(gamma, "gamma"))
        return 2 * log / (n * positive(epsilon, "epsilon"))

    def choose(
        self, truths: FloatArray, hypothesis: Any, *, epsilon: float, n: int, noise: ScalarNoise
    ) -> int:
        """Choose a nearly largest gap by the exponential mechanism: eps-DP in real arithmetic."""
        gaps = np.abs(truths - self.estimates(hypothesis))
        return noise.noisy_argmax(gaps, 2 / (n * epsilon) * ROUNDED_UP)

    def choose_exactly(
        self, truths: ExactTruths, hypothesis: Any, *, epsilon: float, noise: ExactNoise
    ) -> int:
        """Choose as in `choose`, exactly, with scales rounded up: eps-DP on the computer."""
        near, estimates = truths.near(), self.estimates(hypothesis)
        gaps = np.abs(near - estimates)
        # `near` has a relative error of at most 2^-51. The difference is rounded by at most half a
        # unit in its last place.
        errors = 2.0**-50 * (np.abs(near) + np.abs(estimates))

        def gap(index: int) -> Fraction:
            return truths.gap(index, float(estimates[index]))

        scale = 2 / (truths.n * epsilon) * ROUNDED_UP
        return noise.exact_argmax(gaps, errors, gap, scale)


class EnumeratedQueries(Distinguisher[AnyQuery]):
    """A class C of queries given as a list, dense or sparse. A choice takes O(|C|) evaluations.

    Parameters
    ----------
    queries : sequence of queries
        At least one, all sparse or all dense with equally many values; otherwise ``ValueError``.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> queries = gd.mechanisms.EnumeratedQueries(
    ...     [gd.workloads.DenseQuery([1.0, 0.0, 0.0]), gd.workloads.DenseQuery([1.0, 1.0, 0.0])]
    ... )
    >>> queries.truths(np.array([0, 1, 1, 2]), 4)
    array([0.25, 0.75])
    >>> queries.estimates(gd.mechanisms.MultiplicativeWeights(3).start(0.1)).round(3)
    array([0.333, 0.667])
    """

    def __init__(self, queries: Sequence[AnyQuery]) -> None:
        queries = listed(queries, "queries")
        if len(queries) == 0:
            raise ValueError("queries must hold at least 1 query, got 0")
        for query in queries:
            require_type(query, LinearQuery, "every query")
        first = _kind(queries[0])
        for position, query in enumerate(queries):
            if _kind(query) != first:
                raise ValueError(
                    "queries must all be sparse, or all be dense with the same number of values: "
                    f"query {position} differs from query 0"
                )
        self._queries = queries

    def __repr__(self) -> str:
        return f"EnumeratedQueries({self.size} of type {type(self._queries[0]).__name__})"

    @property
    def size(self) -> int:
        return len(self._queries)

    def query(self, index: int) -> AnyQuery:
        return self._queries[index]

    def truths(self, records: Any, n: int) -> FloatArray:
        tally = self._queries[0].tally(records)
        return np.array([query.total(tally) for query in self._queries]) / n

    def exact_truths(self, records: Any, n: int) -> ExactTruths:
        tally = self._queries[0].tally(records)
        return ExactTruths([query.exact_total(tally) for query in self._queries], n)

    def estimates(self, hypothesis: Hypothesis[AnyQuery]) -> FloatArray:
        return np.array([hypothesis.evaluate(query) for query in self._queries])


def _kind(query: LinearQuery) -> tuple[type, int | None]:
    """Type and number of values of a query. Queries of the same kind can use the same tally."""
    return type(query), len(query.values) if isinstance(query, DenseQuery) else None


class AllParities(Distinguisher[DenseQuery]):
    """All 2^d parities x -> (1 + (-1)^<S, x>) / 2 on {0, 1}^d, by fast Walsh-Hadamard transforms.

    Elements x and sets S are whole numbers below 2^d. Their bits are the coordinates. A choice
    takes O(d 2^d) time. The hypothesis must come from `MultiplicativeWeights`.

    Parameters
    ----------
    d : int
        Number of bits, at most 24.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> parities = gd.mechanisms.AllParities(2)
    >>> parities.size
    4
    >>> parities.query(0b11).values
    array([1., 0., 0., 1.])
    >>> parities.truths(np.array([0b00, 0b01, 0b11, 0b11]), 4)
    array([1.  , 0.25, 0.5 , 0.75])
    """

    def __init__(self, d: int) -> None:
        self._d = whole(d, "d", maximum=MAX_BITS)

    def __repr__(self) -> str:
        return f"AllParities({self._d})"

    @property
    def size(self) -> int:
        return 1 << self._d

    def query(self, index: int) -> DenseQuery:
        """The parity of the set S. The places of the 1 bits of `index` are the elements of S."""
        common = np.arange(self.size) & whole(index, "index", minimum=0, maximum=self.size - 1)
        return DenseQuery((np.bitwise_count(common) % 2 == 0).astype(np.float64))

    def truths(self, records: IntArray, n: int) -> FloatArray:
        codes = FiniteUniverse(self.size).validate(records)
        counts = np.bincount(codes, minlength=self.size).astype(np.float64)
        return self._means(counts / n, len(codes) / n)

    def exact_truths(self, records: IntArray, n: int) -> ExactTruths:
        codes = FiniteUniverse(self.size).validate(records)
        counts = np.bincount(codes, minlength=self.size).astype(np.float64)
        # Sums and differences of counts are whole numbers, which are exact in float64.
        return ExactTruths(self._means(counts, float(len(codes))), n)

    def estimates(self, hypothesis: WeightedHypothesis) -> FloatArray:
        return self._means(hypothesis.distribution, 1.0)

    def _means(self, weights: FloatArray, total: float) -> FloatArray:
        from geomdp.workloads.compiled_loops import walsh_hadamard  # compiled: slow import

        signed = weights[None].copy()
        walsh_hadamard(signed)
        return np.asarray((total + signed[0]) / 2)
