"""Workloads with closed forms on finite universes: codes 0..N-1, and the Boolean cube."""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from geomdp._numerics.linalg import AffineHull, row_blocks, zero_sum_basis
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import batch, whole
from geomdp.workloads.base import (
    MAX_ENTRIES,
    MAX_SCORES,
    Block,
    Totals,
    Workload,
    WorkloadSizeError,
)
from geomdp.workloads.universes import BooleanCube, FiniteUniverse, Records

# Histogram, prefixes and ranges: queries with values 0 and 1, so squared Euclidean lengths of
# answers and of their differences are l1 lengths. The N answer vectors of each workload are
# linearly independent. So the sensitivity polytope, their convex hull, is a simplex.

#: Number of records counted at a time, 8 MB of integers: a chunk of c records costs O(N + c).
COUNT_ROWS = 1 << 20


class FiniteWorkload(Workload):
    """A workload on {0, ..., N - 1}, with totals from the count of each element."""

    @property
    @abc.abstractmethod
    def universe(self) -> FiniteUniverse: ...

    @abc.abstractmethod
    def _weighted_sum(self, counts: FloatArray) -> FloatArray:
        """Sum over elements x of counts[x] Q(x), as an array (m,)."""

    def totals(self, records: Records | Iterable[Records]) -> Totals:
        counts = np.zeros(self.universe.size, dtype=np.int64)
        for chunk in self.universe.chunks(records, COUNT_ROWS):
            counts += np.bincount(chunk, minlength=len(counts))
        return Totals(int(counts.sum()), self._weighted_sum(counts.astype(np.float64)))


@dataclass(frozen=True)
class _OnCodes(FiniteWorkload):
    """Queries with values 0 and 1 on N elements; by default N of them."""

    N: int
    whole_answers: ClassVar[bool] = True
    counts_records: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "N", whole(self.N, "N"))

    @property
    def universe(self) -> FiniteUniverse:
        return FiniteUniverse(self.N)

    @property
    def n_queries(self) -> int:
        return self.N

    def _check_basis(self) -> None:
        if self.N**2 > MAX_ENTRIES:
            raise WorkloadSizeError(f"N must be at most 8192 for a basis, got {self.N}")

    def l2_diameter(self) -> float:
        return math.sqrt(self.l1_diameter())

    def l2_radius(self) -> float:
        return math.sqrt(self.l1_radius())


@dataclass(frozen=True)
class Histogram(_OnCodes):
    """The N point queries q_t(x) = 1[x = t] on {0, ..., N - 1}; Q(x) is the unit vector e_x.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> gd.workloads.Histogram(4).answers(np.array([0, 2, 2, 3]))
    array([0.25, 0.  , 0.5 , 0.25])
    """

    def evaluate(self, records: Records) -> FloatArray:
        codes = self.universe.validate(records)
        answers = np.zeros((len(codes), self.N))
        answers[np.arange(len(codes)), codes] = 1
        return answers

    def _weighted_sum(self, counts: FloatArray) -> FloatArray:
        return counts

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """The first x with the largest u_x wins a tie."""
        directions = batch(directions, self.N, "directions")
        return self.evaluate(directions.argmax(axis=1))

    def affine_hull(self) -> AffineHull:
        """The hyperplane {y : sum of y = 1}, with a basis N x (N - 1) of at most 2^26 entries."""
        self._check_basis()
        return AffineHull(np.full(self.N, 1 / self.N), zero_sum_basis(self.N))

    def l1_diameter(self) -> float:
        return 2.0 if self.N > 1 else 0.0

    def l1_radius(self) -> float:
        return 1.0

    def labels(self) -> list[str]:
        return [f"x={t}" for t in range(self.N)]


@dataclass(frozen=True)
class Prefixes(_OnCodes):
    """The N prefix (threshold) queries q_t(x) = 1[x <= t] on {0, ..., N - 1}; the last is 1.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> gd.workloads.Prefixes(4).answers(np.array([0, 2, 2, 3]))
    array([0.25, 0.25, 0.75, 1.  ])
    """

    def evaluate(self, records: Records) -> FloatArray:
        codes = self.universe.validate(records)
        return (codes[:, None] <= np.arange(self.N)).astype(np.float64)

    def _weighted_sum(self, counts: FloatArray) -> FloatArray:
        return np.cumsum(counts)

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """Q(x), where x has the largest sum of u_t over t >= x, for each row u of `directions`."""
        directions = batch(directions, self.N, "directions")
        suffix_sums = np.cumsum(directions[:, ::-1], axis=1)[:, ::-1]
        return self.evaluate(suffix_sums.argmax(axis=1))

    def affine_hull(self) -> AffineHull:
        """The hyperplane {y : y_(N-1) = 1}, with the first N - 1 axes as basis."""
        self._check_basis()
        offset = np.arange(1, self.N + 1) / self.N
        return AffineHull(offset, np.eye(self.N, self.N - 1))

    def l1_diameter(self) -> float:
        """N - 1, between the first and the last element."""
        return float(self.N - 1)

    def l1_radius(self) -> float:
        """N, at element 0, because every query is 1 there."""
        return float(self.N)

    def labels(self) -> list[str]:
        return [f"x<={t}" for t in range(self.N)]


@dataclass(frozen=True)
class Ranges(_OnCodes):
    """The N (N + 1) / 2 interval queries q_[a,b](x) = 1[a <= x <= b] on {0, ..., N - 1}, ordered
    by a, then by b.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> gd.workloads.Ranges(3).answers(np.array([0, 1, 1, 2]))
    array([0.25, 0.75, 1.  , 0.5 , 0.75, 0.25])
    """

    @property
    def n_queries(self) -> int:
        return self.N * (self.N + 1) // 2

    @cached_property
    def ends(self) -> tuple[IntArray, IntArray]:
        """First and last element (a, b) of each interval: two arrays (m,)."""
        first, last = np.triu_indices(self.N)
        return first.astype(np.int64), last.astype(np.int64)

    def evaluate(self, records: Records) -> FloatArray:
        codes = self.universe.validate(records)[:, None]
        first, last = self.ends
        return ((first <= codes) & (codes <= last)).astype(np.float64)

    def _weighted_sum(self, counts: FloatArray) -> FloatArray:
        cumulative = np.concatenate([[0.0], np.cumsum(counts)])
        first, last = self.ends
        return np.asarray(cumulative[last + 1] - cumulative[first])

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """O(m) operations for each direction."""
        directions = batch(directions, self.n_queries, "directions")
        first, last = self.ends
        weights = np.zeros((len(directions), self.N, self.N))
        weights[:, first, last] = directions
        # The score of x is the sum of the weights of all [a, b] with a <= x <= b.
        below = np.cumsum(weights, axis=1)[:, :, ::-1]
        scores = np.cumsum(below, axis=2)[:, :, ::-1].diagonal(axis1=1, axis2=2)
        return self.evaluate(scores.argmax(axis=1))

    def affine_hull(self) -> AffineHull:
        """One QR decomposition, O(m N^2); ``ValueError`` if m N > 2^26 (N > 511)."""
        if self.n_queries * self.N > MAX_ENTRIES:
            raise WorkloadSizeError(f"N must be at most 511 for an affine hull, got {self.N}")
        elements = self.evaluate(self.universe.elements())
        offset = elements.mean(axis=0)
        basis = np.linalg.qr((elements[1:] - elements[:-1]).T)[0]
        return AffineHull(offset, np.ascontiguousarray(basis))

    def l1_diameter(self) -> float:
        """The maximum of s (N + 1 - s) over 2 <= s <= N; 0 if N = 1.

        For x < y, a = x + 1, b = N - y and s = a + b: a (N + 1 - a) intervals contain x,
        b (N + 1 - b) contain y and a b contain both, so s (N + 1 - s) contain exactly one.
        """
        best = max(2, (self.N + 1) // 2)
        return float(best * (self.N + 1 - best))  # 0 for N = 1

    def l1_radius(self) -> float:
        """Number of intervals that contain the middle element: a (N + 1 - a), a = (N + 1) // 2."""
        middle = (self.N + 1) // 2
        return float(middle * (self.N + 1 - middle))

    def labels(self) -> list[str]:
        return [f"{a}<=x<={b}" for a, b in zip(*self.ends, strict=True)]


# Marginals and parities: products of k attributes of the Boolean cube.


#: Numbers of records (64 in a word) and of queries that are evaluated at a time: 8 MB.
PACKED_ROWS, PACKED_QUERIES = 1 << 16, 1 << 10


@dataclass(frozen=True)
class _SubsetQueries(Workload):
    """One query for each set S of k of the d attributes: a product with one factor for each i in S.

    The factor of attribute i is `_values[x_i]`. Every product of factors is one of the two values,
    `_values[bit]`, and `_word_operation` computes this bit from the x_i with i in S.
    """

    d: int
    k: int
    whole_answers: ClassVar[bool] = True
    _values: ClassVar[tuple[float, float]]
    _word_operation: ClassVar[np.ufunc]

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole(self.d, "d"))
        object.__setattr__(self, "k", whole(self.k, "k", maximum=self.d))

    @property
    def universe(self) -> BooleanCube:
        return BooleanCube(self.d)

    @property
    def n_queries(self) -> int:
        return math.comb(self.d, self.k)

    @cached_property
    def subsets(self) -> IntArray:
        """The sets S in lexicographic order: rows (m, k) of ascending attribute numbers."""
        flat = itertools.chain.from_iterable(itertools.combinations(range(self.d), self.k))
        return np.fromiter(flat, np.int64, self.n_queries * self.k).reshape(-1, self.k)

    @cached_property
    def _element_numbers(self) -> IntArray:
        """Number of the element of the cube that is 1 exactly on S, for each S: (m,)."""
        return np.asarray((1 << (self.d - 1 - self.subsets)).sum(axis=1))

    def evaluate(self, records: Records) -> FloatArray:
        low, high = self._values
        factors = low + (high - low) * self.universe.validate(records)
        answers: FloatArray = factors[:, self.subsets[:, 0]]
        for column in self.subsets[:, 1:].T:
            answers *= factors[:, column]
        return answers

    def totals(self, records: Records | Iterable[Records]) -> Totals:
        """The sums come from packed bits, by n m k / 64 word operations."""
        count, ones = 0, np.zeros(self.n_queries, dtype=np.int64)
        for chunk in self.universe.chunks(records, PACKED_ROWS):
            count += len(chunk)
            words = _packed_columns(chunk)
            for part in row_blocks(self.n_queries, 1, PACKED_QUERIES):
                sets = self.subsets[part]
                combined = words[sets[:, 0]]
                for column in sets[:, 1:].T:
                    self._word_operation(combined, words[column], out=combined)
                ones[part] += np.bitwise_count(combined).sum(axis=1, dtype=np.int64)
        low, high = self._values
        return Totals(count, low * count + (high - low) * ones.astype(np.float64))

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """Costs O(d) for k = 1, O(2^d) for k = 2 and O(d 2^d) above, per direction.

        ``ValueError`` for k > 1 and d > 24. Up to rounding, the element of lowest number wins.
        """
        directions = batch(directions, self.n_queries, "directions")
        if self.k == 1:
            low, high = self._values
            return self.evaluate(((high - low) * directions > 0).astype(np.int64))
        winners = np.empty(len(directions), dtype=np.int64)
        for rows, part in self._parts(directions):
            if self.k == 2:
                from geomdp._numerics.compilation import quadratic_maximisers  # slow to import

                winners[rows] = quadratic_maximisers(*self._quadratic_forms(part))
            else:
                winners[rows] = self._scores(part).argmax(axis=1)
        return self.evaluate(self.universe.elements_at(winners))

    def breadth(self, directions: FloatArray) -> FloatArray:
        """Cost and errors are as in `extreme_answers`."""
        directions = batch(directions, self.n_queries, "directions")
        if self.k == 1:
            low, high = self._values
            return np.asarray(abs(high - low) * np.abs(directions).sum(axis=1))
        ranges = np.empty(len(directions))
        for rows, part in self._parts(directions):
            if self.k == 2:
                from geomdp._numerics.compilation import quadratic_ranges  # slow to import

                ranges[rows] = quadratic_ranges(*self._quadratic_forms(part))
            else:
                ranges[rows] = np.ptp(self._scores(part), axis=1)
        return ranges

    def _parts(self, directions: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        size = 1 << self.d
        if size > MAX_SCORES:
            raise WorkloadSizeError(
                f"d must be at most 24 for extreme answers with k > 1, got {self.d}"
            )
        for rows in row_blocks(len(directions), size, MAX_SCORES):
            yield rows, directions[rows]

    def _scores(self, directions: FloatArray) -> FloatArray:
        """<u, Q(x)> for all elements of the cube: (b, 2^d)."""
        scores = np.zeros((len(directions), 1 << self.d))
        scores[:, self._element_numbers] = directions
        self._transform(scores)
        return scores

    def _quadratic_forms(self, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For k = 2, linear (b, d) and pair coefficients (b, d, d) of scores up to a constant."""
        low, high = self._values
        rise = high - low
        pairs = np.zeros((len(directions), self.d, self.d))
        pairs[:, self.subsets[:, 0], self.subsets[:, 1]] = rise**2 * directions
        # (low + rise x_i)(low + rise x_j) has linear terms low rise (x_i + x_j).
        return low / rise * (pairs.sum(axis=1) + pairs.sum(axis=2)), pairs

    @abc.abstractmethod
    def _transform(self, scores: FloatArray) -> None:
        """From u_S at the element that is 1 exactly on S, compute rows (b, 2^d) of <u, Q(x)>."""

    def affine_hull(self) -> AffineHull:
        """All of R^m, because the constant 1 and the queries are linearly independent functions."""
        return AffineHull.whole_space(self.n_queries)

    def l2_diameter(self) -> float:
        """Answers differ by 0 or by the distance of the two values."""
        low, high = self._values
        return math.sqrt(abs(high - low) * self.l1_diameter())

    def l1_radius(self) -> float:
        """C(d, k): at some element every answer has modulus 1."""
        return float(self.n_queries)

    def l2_radius(self) -> float:
        return math.sqrt(self.n_queries)

    def blocks(self) -> tuple[Block, ...]:
        low, high = self._values
        diameter, radius = abs(high - low), max(abs(low), abs(high))
        eye = np.eye(self.n_queries)
        return tuple(Block(eye[:, i : i + 1], diameter, radius) for i in range(self.n_queries))


@dataclass(frozen=True)
class Marginals(_SubsetQueries):
    """Monotone conjunctions q_S(x) = prod over i in S of x_i on {0, 1}^d, for all S with |S| = k.

    Sets S are in lexicographic order, and k is from 1 to d. Nikolov 2022, equation (2): JL-MARG.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Marginals(3, 2)
    >>> workload.labels()
    ['x0&x1', 'x0&x2', 'x1&x2']
    >>> workload.answers(np.array([[1, 1, 0], [1, 1, 1]]))
    array([1. , 0.5, 0.5])
    """

    _values: ClassVar[tuple[float, float]] = (0.0, 1.0)
    _word_operation: ClassVar[np.ufunc] = np.bitwise_and

    def _transform(self, scores: FloatArray) -> None:
        from geomdp._numerics.compilation import corner_sum

        corner_sum(scores, np.full(self.d, 2, dtype=np.int64))

    def l1_diameter(self) -> float:
        """C(d, k), attained by the elements (0, ..., 0) and (1, ..., 1)."""
        return float(self.n_queries)

    def labels(self) -> list[str]:
        return ["&".join(f"x{i}" for i in subset) for subset in self.subsets]


@dataclass(frozen=True)
class Parities(_SubsetQueries):
    """Parities q_S(x) = (-1)^(sum over i in S of x_i) on {0, 1}^d, for all S with |S| = k.

    Sets S are in lexicographic order, and k is from 1 to d.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Parities(3, 2)
    >>> workload.labels()
    ['parity(x0,x1)', 'parity(x0,x2)', 'parity(x1,x2)']
    >>> workload.answers(np.array([[1, 1, 0], [1, 1, 1]]))
    array([1., 0., 0.])
    """

    _values: ClassVar[tuple[float, float]] = (1.0, -1.0)
    _word_operation: ClassVar[np.ufunc] = np.bitwise_xor

    def _transform(self, scores: FloatArray) -> None:
        from geomdp._numerics.compilation import walsh_hadamard

        walsh_hadamard(scores)

    def l1_diameter(self) -> float:
        """The exact diameter: 2 max over w of sum over odd j of C(w, j) C(d - w, k - j)."""
        d, k = self.d, self.k
        changes = (
            sum(math.comb(w, j) * math.comb(d - w, k - j) for j in range(1, k + 1, 2))
            for w in range(d + 1)
        )
        return 2.0 * max(changes)

    def labels(self) -> list[str]:
        return [f"parity({','.join(f'x{i}' for i in subset)})" for subset in self.subsets]


def _packed_columns(bits: IntArray) -> npt.NDArray[np.uint64]:
    """Columns of 0/1 `bits` (n, d) packed into words (d, ceil(n / 64)), padded with 0."""
    packed = np.packbits(bits.T.astype(np.uint8), axis=1)
    padded = np.zeros((len(packed), -(-len(bits) // 64) * 8), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64)
