"""Workloads of means and of second moments (uncentred covariance) of real records."""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from geomdp._numerics.linalg import AffineHull, rows_of_length, svec, unsvec
from geomdp._typing import FloatArray
from geomdp._validation import batch, whole
from geomdp.workloads.base import CHUNK_ROWS, Totals, Workload
from geomdp.workloads.universes import Records, SymmetricCube, UnitBall


@dataclass(frozen=True)
class _OnReals(Workload):
    """A workload with one parameter, the dimension d of the records."""

    d: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole(self.d, "d"))

    def affine_hull(self) -> AffineHull:
        return AffineHull.whole_space(self.n_queries)


@dataclass(frozen=True)
class Means(_OnReals):
    """Q(x) = x for x in the unit ball of R^d: the d coordinates of the mean.

    The convex hull of {Q(x)} is the unit ball. Under pure privacy, the ball mechanism answers these
    queries (JL-L15 with Delta = 2, the largest change of the sum).

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> gd.workloads.Means(2).answers(np.array([[0.6, 0.8], [0.0, -1.0]]))
    array([ 0.3, -0.1])
    """

    @property
    def universe(self) -> UnitBall:
        return UnitBall(self.d)

    @property
    def n_queries(self) -> int:
        return self.d

    def evaluate(self, records: Records) -> FloatArray:
        return np.array(self.universe.validate(records), dtype=np.float64)

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """u / ||u||_2 for each row u of `directions`; for u = 0, the first unit vector."""
        return rows_of_length(1.0, batch(directions, self.d, "directions"))

    def l1_diameter(self) -> float:
        return 2 * math.sqrt(self.d)

    def l2_diameter(self) -> float:
        return 2.0

    def l1_radius(self) -> float:
        """sqrt(d), attained by (1, ..., 1) / sqrt(d)."""
        return math.sqrt(self.d)

    def l2_radius(self) -> float:
        return 1.0

    def labels(self) -> list[str]:
        return [f"x{i}" for i in range(self.d)]


class OuterProducts(_OnReals):
    """Q(x) = svec(x x^T) for records x of d reals; `SecondMoment` defines svec."""

    @property
    def n_queries(self) -> int:
        return self.d * (self.d + 1) // 2

    def matrix(self, answers: FloatArray) -> FloatArray:
        """Symmetric matrices from answer vectors along the last axis: (..., m) to (..., d, d)."""
        return unsvec(answers)

    def evaluate(self, records: Records) -> FloatArray:
        return _outer_products(self.universe.validate(records))

    def totals(self, records: Records | Iterable[Records]) -> Totals:
        """One matrix product for each chunk."""
        count, total = 0, np.zeros((self.d, self.d))
        for chunk in self.universe.chunks(records, CHUNK_ROWS):
            count += len(chunk)
            total += chunk.T @ chunk
        return Totals(count, svec(total))

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        directions = batch(directions, self.n_queries, "directions")
        return _outer_products(self._maximisers(unsvec(directions)))

    @abc.abstractmethod
    def _maximisers(self, matrices: FloatArray) -> FloatArray:
        """A maximiser of <x, G x> over the universe for each G of `matrices` (b, d, d): (b, d)."""

    def labels(self) -> list[str]:
        rows, columns = np.triu_indices(self.d)
        return [
            f"x{i}^2" if i == j else f"sqrt(2)*x{i}*x{j}"
            for i, j in zip(rows, columns, strict=True)
        ]


def _outer_products(points: FloatArray) -> FloatArray:
    """svec(x x^T) for each row x of `points` (n, d): (n, m)."""
    return svec(points[:, :, None] * points[:, None, :])


@dataclass(frozen=True)
class SecondMoment(OuterProducts):
    """Q(x) = svec(x x^T) for x in the unit ball of R^d: the m = d (d + 1) / 2 second moments.

    svec lists the upper triangle of a matrix row by row and multiplies off-diagonal entries by
    sqrt(2), so its norm is the Frobenius norm. `matrix` converts answers back to matrices. The
    convex hull of {Q(x)} is {svec(M) : M psd, tr M <= 1}. Nikolov 2022, Lemma 22: JL-COV.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.SecondMoment(2)
    >>> answers = workload.answers(np.array([[0.6, 0.8], [1.0, 0.0]]))
    >>> np.round(workload.matrix(answers), 4)
    array([[0.68, 0.24],
           [0.24, 0.32]])
    """

    @property
    def universe(self) -> UnitBall:
        return UnitBall(self.d)

    def _maximisers(self, matrices: FloatArray) -> FloatArray:
        # If the largest eigenvalue is above 0, its unit eigenvector is a maximiser. Otherwise 0 is
        # a maximiser.
        values, vectors = np.linalg.eigh(matrices)
        return np.asarray(vectors[:, :, -1] * (values[:, -1:] > 0))

    def l1_diameter(self) -> float:
        """sqrt(d (d + 1)) for d > 1, and 1 for d = 1. For d >= 3, this is only an upper bound.

        It follows from ||v||_1 <= sqrt(m) ||v||_2. For d = 3, 4 and 5, enumeration of sign patterns
        gives 0.972, 0.991 and 0.983 times the bound.
        """
        return math.sqrt(self.d * (self.d + 1)) if self.d > 1 else 1.0

    def l2_diameter(self) -> float:
        """sqrt(2), as ||x x^T - y y^T||_F^2 = ||x||^4 + ||y||^4 - 2 <x, y>^2; 1 for d = 1."""
        return math.sqrt(2) if self.d > 1 else 1.0

    def l1_radius(self) -> float:
        """1 + (d - 1) / sqrt(2), attained at x = (1, ..., 1) / sqrt(d)."""
        return 1 + (self.d - 1) / math.sqrt(2)

    def l2_radius(self) -> float:
        """1, attained by every unit vector."""
        return 1.0


#: Largest d for which the 3^d faces of the cube are searched: 6561 faces take a few milliseconds.
MAX_FACE_DIMENSION = 8


@dataclass(frozen=True)
class BoxSecondMoment(OuterProducts):
    """Q(x) = svec(x x^T) for x in [-1, 1]^d: the m = d (d + 1) / 2 second moments.

    `SecondMoment` defines svec, and `matrix` converts answers back to matrices. All matrices x x^T
    lie in {M psd, M_ii <= 1}. Formula sheet X-PSDBOX.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.BoxSecondMoment(2)
    >>> answers = workload.answers(np.array([[1.0, -1.0], [0.5, 0.5]]))
    >>> workload.matrix(answers)
    array([[ 0.625, -0.375],
           [-0.375,  0.625]])
    """

    @property
    def universe(self) -> SymmetricCube:
        return SymmetricCube(self.d)

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """A search over the faces of the cube, O(3^d d^2) for each direction svec(G).

        A maximiser of <x, G x> is a corner or lies in a face on which the form is strictly concave.
        ``ValueError`` for d above 8, because the problem is hard in general.
        """
        if self.d > MAX_FACE_DIMENSION:
            raise ValueError(
                f"d must be at most {MAX_FACE_DIMENSION} for extreme answers, got {self.d}"
            )
        return super().extreme_answers(directions)

    def _maximisers(self, matrices: FloatArray) -> FloatArray:
        return np.array([_maximiser_over_cube(matrix) for matrix in matrices]).reshape(-1, self.d)

    def l1_diameter(self) -> float:
        """d + d (d - 1) / sqrt(2), attained by a corner and 0.

        For x, y in the cube, p = |x - y| and q = |x + y| entry by entry: p + q <= 2. B has entries
        1 on the diagonal and 1 / sqrt(2) elsewhere: ||Q(x) - Q(y)||_1 <= p^T B q <= p^T B (2 - p).
        This is concave in p and does not change if p becomes 2 - p, so p = (1, ..., 1) is best.
        """
        return self.l1_radius()

    def l2_diameter(self) -> float:
        """sqrt(2) d for d > 1, and 1 for d = 1.

        The value follows from ||x x^T - y y^T||_F^2 = |x|^4 + |y|^4 - 2 <x, y>^2. It is attained
        for even d (orthogonal corners) and is an upper bound for odd d > 1.
        """
        return math.sqrt(2) * self.d if self.d > 1 else 1.0

    def l1_radius(self) -> float:
        """d + d (d - 1) / sqrt(2), attained at every corner."""
        return self.d + self.d * (self.d - 1) / math.sqrt(2)

    def l2_radius(self) -> float:
        """d, attained at every corner."""
        return float(self.d)


def _maximiser_over_cube(matrix: FloatArray) -> FloatArray:
    """A maximiser (d,) of <x, G x> over [-1, 1]^d, for the symmetric matrix G = `matrix` (d, d)."""
    d = len(matrix)
    best, highest = np.zeros(d), 0.0
    rounding = 1e-14 * float(np.abs(matrix).max())  # of eigenvalues; far above what is seen
    for pattern in itertools.product((False, True), repeat=d):
        free = np.array(pattern)
        if free.any() and np.linalg.eigvalsh(matrix[np.ix_(free, free)])[-1] >= -rounding:
            continue
        points = np.zeros((1 << int(d - free.sum()), d))
        points[:, ~free] = list(itertools.product((-1.0, 1.0), repeat=int(d - free.sum())))
        if free.any():
            slopes = points[:, ~free] @ matrix[np.ix_(~free, free)]
            points[:, free] = -np.linalg.solve(matrix[np.ix_(free, free)], slopes.T).T
        points = points[np.abs(points).max(axis=1) <= 1]
        heights = np.einsum("bi,ij,bj->b", points, matrix, points)
        if len(heights) and heights.max() > highest:
            best, highest = points[heights.argmax()], float(heights.max())
    return best
