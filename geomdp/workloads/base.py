"""The workload: a finite list of statistical queries on one universe. Answers are means."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray
from geomdp.workloads.universes import Records, Universe

#: Number of records, or of elements of a universe, that are evaluated at a time.
CHUNK_ROWS = 8192
#: Largest number of scores <u, Q(x)> in memory, for directions u and elements x: 2^24 float64 are
#: 128 MB. A fast transform computes the scores of all elements of the universe together. So no fast
#: transform is used on a universe of more than 2^24 elements.
MAX_SCORES = 1 << 24
#: Largest number of entries of a dense matrix of all answers, or of a basis: 2^26 float64 are
#: 512 MB.
MAX_ENTRIES = 1 << 26


class WorkloadSizeError(ValueError):
    """A workload is too large for an operation. The message states the limit.

    Examples
    --------
    >>> import textwrap
    >>> import geomdp as gd
    >>> try:
    ...     gd.workloads.explicit_answers(gd.workloads.Marginals(30, 2))
    ... except gd.workloads.WorkloadSizeError as reason:
    ...     print(textwrap.fill(str(reason), 80))
    workload must have at most 2^26 answers over all elements, got Marginals(d=30,
    k=2) with 435 queries on 1073741824 elements
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
    Implementations are immutable. Their constructors raise ``ValueError`` for arguments out of
    range. Only `evaluate`, `totals` and `answers` read records; everything else is public.

    Examples
    --------
    All workloads have these methods. The queries of `Prefixes(4)` are 1[x <= 0], ..., 1[x <= 3]:

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
