"""Workloads on the Boolean cube: monotone conjunctions (marginals) and parities of k attributes."""

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

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import batch, whole
from geomdp.workloads.base import MAX_SCORES, Block, Totals, Workload, WorkloadSizeError
from geomdp.workloads.universes import BooleanCube, Records

#: Number of records that are packed into bits at a time. One machine word holds one attribute of
#: 64 records.
PACKED_ROWS = 1 << 16
#: Number of queries evaluated at a time on packed columns: 2^10 queries of 2^16 bits are 8 MB.
PACKED_QUERIES = 1 << 10


class _SubsetQueries(Workload):
    """One query for each set S of k of the d attributes: a product with one factor for each i in S.

    The factor of attribute i is `_values[x_i]`. Every product of factors is one of the two values,
    `_values[bit]`, and `_word_operation` computes this bit from the x_i with i in S.
    """

    whole_answers: ClassVar[bool] = True
    d: int
    k: int
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
        """The answers are computed in O(n m k)."""
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
            for start in range(0, self.n_queries, PACKED_QUERIES):
                sets = self.subsets[start : start + PACKED_QUERIES]
                combined = words[sets[:, 0]]
                for column in sets[:, 1:].T:
                    self._word_operation(combined, words[column], out=combined)
                ones[start : start + len(sets)] += np.bitwise_count(combined).sum(
                    axis=1, dtype=np.int64
                )
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
        for rows in self._parts(len(directions)):
            part = directions[rows]
            if self.k == 2:
                winners[rows] = self._best_of_pairs(part)
            else:
                winners[rows] = self._scores(part).argmax(axis=1)
        return self.evaluate(self.universe.elements_at(winners))

    def breadth(self, directions: FloatArray) -> FloatArray:
        """Cost and errors are as in `extreme_answers`."""
        from geomdp.workloads import compiled_loops  # slow to import

        directions = batch(directions, self.n_queries, "directions")
        if self.k == 1:
            low, high = self._values
            return np.asarray(abs(high - low) * np.abs(directions).sum(axis=1))
        ranges = np.empty(len(directions))
        for rows in self._parts(len(directions)):
            part = directions[rows]
            if self.k == 2:
                ranges[rows] = compiled_loops.quadratic_ranges(*self._quadratic_forms(part))
            else:
                ranges[rows] = np.ptp(self._scores(part), axis=1)
        return ranges

    def _parts(self, count: int) -> Iterator[slice]:
        size = 1 << self.d
        if size > MAX_SCORES:
            raise WorkloadSizeError(
                f"d must be at most 24 for extreme answers with k > 1, got {self.d}"
            )
        rows = MAX_SCORES // size
        for start in range(0, count, rows):
            yield slice(start, start + rows)

    def _scores(self, directions: FloatArray) -> FloatArray:
        """<u, Q(x)> for all elements of the cube: (b, 2^d)."""
        scores = np.zeros((len(directions), 1 << self.d))
        scores[:, self._element_numbers] = directions
        self._transform(scores)
        return scores

    def _best_of_pairs(self, directions: FloatArray) -> IntArray:
        from geomdp.workloads import compiled_loops  # slow to import

        return np.asarray(compiled_loops.quadratic_maximisers(*self._quadratic_forms(directions)))

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

    def l1_radius(self) -> float:
        """C(d, k): at some element every answer has modulus 1."""
        return float(self.n_queries)

    def l2_radius(self) -> float:
        """sqrt(C(d, k)): at some element every answer has modulus 1."""
        return math.sqrt(self.n_queries)

    def blocks(self) -> tuple[Block, ...]:
        low, high = self._values
        diameter, radius = abs(high - low), max(abs(low), abs(high))
        eye = np.eye(self.n_queries)
        return tuple(Block(eye[:, i : i + 1], diameter, radius) for i in range(self.n_queries))


@dataclass(frozen=True)
class Marginals(_SubsetQueries):
    """Monotone conjunctions q_S(x) = prod over i in S of x_i on {0, 1}^d, for all S with |S| = k.

    Sets S are in lexicographic order.

    Parameters
    ----------
    d : int
        Number of attributes.
    k : int
        Number of attributes in a conjunction, from 1 to d.

    References
    ----------
    Nikolov 2022, equation (2): JL-MARG.

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

    d: int
    k: int
    _values: ClassVar[tuple[float, float]] = (0.0, 1.0)
    _word_operation: ClassVar[np.ufunc] = np.bitwise_and

    def _transform(self, scores: FloatArray) -> None:
        from geomdp.workloads.compiled_loops import corner_sum

        corner_sum(scores, np.full(self.d, 2, dtype=np.int64))

    def l1_diameter(self) -> float:
        """C(d, k), attained by the elements (0, ..., 0) and (1, ..., 1)."""
        return float(self.n_queries)

    def l2_diameter(self) -> float:
        """sqrt(C(d, k)), attained by the elements (0, ..., 0) and (1, ..., 1)."""
        return math.sqrt(self.n_queries)

    def labels(self) -> list[str]:
        return ["&".join(f"x{i}" for i in subset) for subset in self.subsets]


@dataclass(frozen=True)
class Parities(_SubsetQueries):
    """Parities q_S(x) = (-1)^(sum over i in S of x_i) on {0, 1}^d, for all S with |S| = k.

    Sets S are in lexicographic order.

    Parameters
    ----------
    d : int
        Number of attributes.
    k : int
        Number of attributes in a parity, from 1 to d.

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

    d: int
    k: int
    _values: ClassVar[tuple[float, float]] = (1.0, -1.0)
    _word_operation: ClassVar[np.ufunc] = np.bitwise_xor

    def _transform(self, scores: FloatArray) -> None:
        from geomdp.workloads.compiled_loops import walsh_hadamard

        walsh_hadamard(scores)

    @cached_property
    def _most_changes(self) -> int:
        d, k = self.d, self.k
        return max(
            sum(math.comb(w, j) * math.comb(d - w, k - j) for j in range(1, k + 1, 2))
            for w in range(d + 1)
        )

    def l1_diameter(self) -> float:
        """The exact diameter: 2 max over w of sum over odd j of C(w, j) C(d - w, k - j)."""
        return 2.0 * self._most_changes

    def l2_diameter(self) -> float:
        """The exact diameter: sqrt(2 `l1_diameter`), as answers differ by 0 or 2."""
        return 2.0 * math.sqrt(self._most_changes)

    def labels(self) -> list[str]:
        return [f"parity({','.join(f'x{i}' for i in subset)})" for subset in self.subsets]


def _packed_columns(bits: IntArray) -> npt.NDArray[np.uint64]:
    """Columns of 0/1 `bits` (n, d) packed into words (d, ceil(n / 64)), padded with 0."""
    packed = np.packbits(bits.T.astype(np.uint8), axis=1)
    padded = np.zeros((len(packed), -(-len(bits) // 64) * 8), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64)
