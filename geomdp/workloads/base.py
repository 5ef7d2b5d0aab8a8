"""The workload, a list of statistical queries on one universe, and single linear queries."""

from __future__ import annotations

import abc
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import finite_array, listed, whole
from geomdp.workloads.universes import Elements, FiniteUniverse, OpenUniverse, Records, Universe

#: Number of records, or of elements of a universe, that are evaluated at a time.
CHUNK_ROWS = 8192
#: Largest number of scores <u, Q(x)> in memory, 128 MB, for directions u and elements x. A fast
#: transform computes the scores of all elements of a universe, which so are at most as many.
MAX_SCORES = 1 << 24
#: Largest number of entries of a dense matrix of all answers, or of a basis: 512 MB.
MAX_ENTRIES = 1 << 26


class WorkloadSizeError(ValueError):
    """A workload is too large for an operation. The message states the limit.

    Examples
    --------
    >>> import geomdp as gd
    >>> try:
    ...     gd.workloads.Histogram(10_000).affine_hull()
    ... except gd.workloads.WorkloadSizeError as reason:
    ...     print(reason)
    N must be at most 8192 for a basis, got 10000
    """


@dataclass(frozen=True)
class Block:
    """A subspace of the answer space, with diameter and radius of the answers projected on it."""

    basis: FloatArray = field(repr=False)
    diameter: float
    radius: float


@dataclass(frozen=True)
class Totals:
    """The number of records, and the sum of their answer vectors."""

    count: int
    sums: FloatArray = field(repr=False)


class Workload(abc.ABC):
    """A list of m queries q_1, ..., q_m: real functions of one record. Answers are means.

    Q(x) = (q_1(x), ..., q_m(x)) for one record x, and Q(X) = (1/n) sum over x in X of Q(x).
    Implementations are immutable, and refuse arguments out of range. Only `evaluate`, `totals` and
    `answers` read records; everything else is public.

    Examples
    --------
    The queries of `Prefixes(4)` are 1[x <= 0], ..., 1[x <= 3]:

    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(4)
    >>> workload.n_queries, workload.universe
    (4, FiniteUniverse(4))
    >>> workload.evaluate(np.array([1, 3]))
    array([[0., 1., 1., 1.],
           [0., 0., 0., 1.]])
    >>> workload.answers(np.array([0, 1, 3, 3]))
    array([0.25, 0.5 , 0.5 , 1.  ])
    >>> workload.l1_diameter()
    3.0
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._summary()})"

    def _summary(self) -> str:
        size = self.universe.size
        return f"{self.n_queries} queries on {'infinitely many' if size is None else size} elements"

    @property
    @abc.abstractmethod
    def universe(self) -> Universe:
        """The set from which records come."""

    @property
    @abc.abstractmethod
    def n_queries(self) -> int:
        """Number of queries m."""

    @property
    def counts_records(self) -> bool:
        """Whether each answer, without the weights of tables, is a share of the records."""
        return False

    @property
    def whole_answers(self) -> bool:
        """Whether all Q(x) and the sums of `totals` are known to be whole (exact below 2^53)."""
        return False

    @abc.abstractmethod
    def evaluate(self, records: Records) -> FloatArray:
        """Answer vectors Q(x) (n, m); ``ValueError`` for records outside the universe."""

    @abc.abstractmethod
    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """Q(x*) for each row u of `directions` (b, m), where x* maximises <u, Q(x)>: (b, m)."""

    def breadth(self, directions: FloatArray) -> FloatArray:
        """max - min over elements x of <u, Q(x)>, for each row u of `directions` (b, m): (b,)."""
        apart = self.extreme_answers(directions) - self.extreme_answers(-directions)
        return np.asarray(np.einsum("bm,bm->b", directions, apart))

    def totals(self, records: Records | Iterable[Records]) -> Totals:
        """Number of records and sum of Q(x) over all records, which are read chunk by chunk."""
        count, sums = 0, np.zeros(self.n_queries)
        for chunk in self.universe.chunks(records, CHUNK_ROWS):
            count += len(chunk)
            sums += self.evaluate(chunk).sum(axis=0)
        return Totals(count, sums)

    def answers(self, records: Records | Iterable[Records]) -> FloatArray:
        """Mean answers Q(X) (m,) over all records; ``ValueError`` if there are no records."""
        totals = self.totals(records)
        if totals.count == 0:
            raise ValueError("records must hold at least 1 record, got 0")
        return totals.sums / totals.count

    @abc.abstractmethod
    def affine_hull(self) -> AffineHull:
        """Affine hull of {Q(x)}. It is public and computed without records."""

    @abc.abstractmethod
    def l1_diameter(self) -> float:
        """A proved upper bound on max over x, x' of ||Q(x) - Q(x')||_1; exact if that is cheap."""

    @abc.abstractmethod
    def l2_diameter(self) -> float:
        """A proved upper bound on max over x, x' of ||Q(x) - Q(x')||_2; exact if that is cheap."""

    @abc.abstractmethod
    def l1_radius(self) -> float:
        """A proved upper bound on max over x of ||Q(x)||_1."""

    @abc.abstractmethod
    def l2_radius(self) -> float:
        """A proved upper bound on max over x of ||Q(x)||_2."""

    def blocks(self) -> tuple[Block, ...]:
        """Orthogonal blocks; by default one block with all directions of the affine hull."""
        return (Block(self.affine_hull().basis, self.l2_diameter(), self.l2_radius()),)

    def labels(self) -> list[str]:
        """A readable name for each query; by default q0, q1, ..."""
        return [f"q{i}" for i in range(self.n_queries)]


#: Largest number of free bits of a conjunction, whose support then lists 2^20 elements.
MAX_FREE_BITS = 20
#: A float64 is a whole number of FLOAT_BITS bits times a power of two. `exact_product` splits off
#: the lower LOW_BITS bits, and accepts fewer than MAX_RECORDS records: its sums stay below 2^63.
FLOAT_BITS, LOW_BITS, MAX_RECORDS = 53, 27, 1 << 36
#: Number of records counted at a time.
COUNT_ROWS = 1 << 16


@runtime_checkable
class LinearQuery(Protocol):
    """A query with values in [0, 1], summed over counts of the records (the `tally`)."""

    def tally(self, records: Any) -> Any:
        """Counts of the records: an input for `total` of any query of this class and universe."""

    def total(self, tally: Any) -> float:
        """Sum of the query's values over the records that `tally` counts."""

    def exact_total(self, tally: Any) -> Fraction:
        """The sum of `total` as an exact rational number, for the float64 values of the query."""


@dataclass(frozen=True, eq=False)
class DenseQuery:
    """The query q(x) = values[x] on {0, ..., N - 1}, for N >= 1 `values` in [0, 1]: (N,).

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> query = gd.workloads.DenseQuery([0.0, 0.5, 1.0])
    >>> query.total(query.tally(np.array([0, 1, 1, 2])))
    2.0
    """

    values: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _unit_values(self.values))

    def __repr__(self) -> str:
        return f"DenseQuery({len(self.values)} values)"

    def tally(self, records: Records) -> IntArray:
        """Histogram (N,) of `records` (n,); ``ValueError`` for records other than 0..N-1."""
        codes = FiniteUniverse(len(self.values)).validate(records)
        return np.bincount(codes, minlength=len(self.values))

    def total(self, tally: IntArray) -> float:
        """Sum of values[x] tally[x] over x; ``ValueError`` if `tally` is no array of length N."""
        return float(self.values @ self._checked(tally))

    def exact_total(self, tally: IntArray) -> Fraction:
        """The sum of `total` as an exact rational number, in O(N)."""
        return exact_product(self.values, self._checked(tally))

    def _checked(self, tally: IntArray) -> IntArray:
        if not isinstance(tally, np.ndarray) or tally.shape != self.values.shape:
            # The message does not state the length of the tally, which can depend on the records.
            raise ValueError(
                f"a query with {len(self.values)} values must be summed over a histogram with "
                "one count for each value, from `tally`"
            )
        return tally


@dataclass(frozen=True, eq=False)
class SparseQuery:
    """A query on hashable elements. It is `values` (m,) on the `support`, and 0 elsewhere.

    ``ValueError`` for an empty or repeated support, and for values outside [0, 1].

    Examples
    --------
    >>> import geomdp as gd
    >>> query = gd.workloads.SparseQuery.from_mapping({"north": 1.0, "south": 0.5})
    >>> query.total(query.tally(["north", "south", "west", "north"]))
    2.5
    """

    support: tuple[Hashable, ...]
    values: FloatArray

    def __post_init__(self) -> None:
        support = listed(self.support, "support")
        values = _unit_values(self.values)
        if len(support) != len(values):
            raise ValueError(
                f"support and values must have equal length, got {len(support)} and {len(values)}"
            )
        try:
            distinct = set(support)
        except TypeError as error:
            raise ValueError(f"support must list hashable elements, got {support!r}") from error
        if len(distinct) < len(support):
            twice = next(x for x, times in Counter(support).items() if times > 1)
            raise ValueError(f"support must list each element once, got {twice!r} more than once")
        object.__setattr__(self, "support", support)
        object.__setattr__(self, "values", values)

    def __repr__(self) -> str:
        return f"SparseQuery({self.sparsity} elements)"

    @classmethod
    def from_mapping(cls, values: Mapping[Hashable, float]) -> SparseQuery:
        """The query with the given `values`, a mapping from elements to numbers."""
        return cls(tuple(values), np.array(list(values.values()), dtype=np.float64))

    @classmethod
    def counting(cls, support: Iterable[Hashable]) -> SparseQuery:
        """The query that is 1 on `support`. Its answer is the share of records in `support`."""
        elements = listed(support, "support")
        return cls(elements, np.ones(len(elements)))

    @property
    def sparsity(self) -> int:
        """Number m of listed elements."""
        return len(self.support)

    @cached_property
    def by_element(self) -> dict[Hashable, float]:
        """A dictionary from listed elements to values."""
        return dict(zip(self.support, self.values.tolist(), strict=True))

    def tally(self, records: Elements) -> Counter[Hashable]:
        """Number of times that each element occurs in `records`; see `OpenUniverse`."""
        counts: Counter[Hashable] = Counter()
        for chunk in OpenUniverse().chunks(records, COUNT_ROWS):
            counts.update(chunk.tolist())
        return counts

    def total(self, tally: Mapping[Hashable, int]) -> float:
        """Sum of value times count over listed elements, O(m); ``ValueError`` for an array."""
        counts = self._checked(tally)
        return math.fsum(value * counts.get(x, 0) for x, value in self.by_element.items())

    def exact_total(self, tally: Mapping[Hashable, int]) -> Fraction:
        """The sum of `total` as an exact rational number, in O(m)."""
        counts = self._checked(tally)
        found = [(value, counts[x]) for x, value in self.by_element.items() if x in counts]
        values = np.array([value for value, _ in found], dtype=np.float64)
        return exact_product(values, np.array([count for _, count in found], dtype=np.int64))

    def _checked(self, tally: Mapping[Hashable, int]) -> Mapping[Hashable, int]:
        if not isinstance(tally, Mapping):
            raise ValueError("a sparse query must be summed over counts by element, from `tally`")
        return tally


def conjunction(d: int, literals: Iterable[int]) -> SparseQuery:
    """The conjunction of the bits `literals` on {0, 1}^d, as a sparse query (BR-CONJ).

    For the set S = `literals` of d - k distinct bits from 0 to d - 1, the query is the product of
    x_i over i in S. An element x is a Python integer with x_i as bit i. The support is the 2^k
    elements with all bits of S equal to 1. ``ValueError`` for k > 20, or a literal out of range or
    repeated.

    Examples
    --------
    >>> import geomdp as gd
    >>> query = gd.workloads.conjunction(4, [0, 1, 3])
    >>> query.support
    (11, 15)
    >>> query.total(query.tally([0b1011, 0b1111, 0b0001]))
    2.0
    """
    d = whole(d, "d")
    fixed = [whole(i, "literal", minimum=0, maximum=d - 1) for i in literals]
    if len(set(fixed)) < len(fixed):
        raise ValueError(f"literals must be distinct, got {fixed}")
    free = sorted(set(range(d)) - set(fixed))
    if len(free) > MAX_FREE_BITS:
        raise ValueError(
            f"literals must leave at most {MAX_FREE_BITS} bits free, got {len(free)} free bits"
        )
    support = [sum(1 << i for i in fixed)]
    for i in free:
        support += [x | 1 << i for x in support]
    return SparseQuery.counting(support)


def conjunctions(d: int, k: int) -> list[SparseQuery]:
    """All C(d, k) conjunctions of d - k out of d bits, in lexicographic order of the k free bits.

    Examples
    --------
    >>> import geomdp as gd
    >>> queries = gd.workloads.conjunctions(4, 1)
    >>> len(queries), queries[0]
    (4, SparseQuery(2 elements))
    """
    d = whole(d, "d")
    k = whole(k, "k", minimum=0, maximum=min(d, MAX_FREE_BITS))
    return [conjunction(d, sorted(set(range(d)) - set(free))) for free in combinations(range(d), k)]


def exact_product(values: FloatArray, counts: IntArray) -> Fraction:
    """Sum of values[i] counts[i] as an exact rational; ``ValueError`` for 2^36 records or more, as
    the 53 bits of values are split into 27 and 26, so that sums stay below 2^63.
    """
    if int(counts.sum()) >= MAX_RECORDS:
        raise ValueError("an exact sum of a query must be over fewer than 2^36 records")
    present = (counts > 0) & (values > 0)
    fractions, exponents = np.frexp(values[present])
    whole_parts = np.ldexp(fractions, FLOAT_BITS).astype(np.int64)
    high, low = whole_parts >> LOW_BITS, whole_parts & ((1 << LOW_BITS) - 1)
    weights = counts[present].astype(np.int64)
    total = Fraction(0)
    for exponent in np.unique(exponents).tolist():
        mine = exponents == exponent
        above, below = int(weights[mine] @ high[mine]), int(weights[mine] @ low[mine])
        total += ((above << LOW_BITS) + below) * Fraction(2) ** (exponent - FLOAT_BITS)
    return total


def _unit_values(given: npt.ArrayLike) -> FloatArray:
    """A read-only copy (m,) of the values of a query; ``ValueError`` outside [0, 1]."""
    values = finite_array(given, "values", ndim=1).copy()
    if len(values) == 0:
        raise ValueError("a query must list at least 1 value, got 0")
    outside = (values < 0) | (values > 1)
    if outside.any():
        first = int(np.argmax(outside))
        raise ValueError(f"values must lie in [0, 1], got {values[first]} at index {first}")
    values.setflags(write=False)
    return values
