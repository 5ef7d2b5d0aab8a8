"""The workload of second moments of records in the cube [-1, 1]^d."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp.workloads.moments.outer_products import OuterProducts
from geomdp.workloads.universe.universes import SymmetricCube

#: Largest d for which the 3^d faces of the cube are searched: 6561 faces take a few milliseconds.
MAX_FACE_DIMENSION = 8


@dataclass(frozen=True)
class BoxSecondMoment(OuterProducts):
    """Q(x) = svec(x x^T) for x in [-1, 1]^d: the m = d (d + 1) / 2 second moments.

    `SecondMoment` defines svec, and `matrix` converts answers back to matrices. All matrices x x^T
    lie in {M psd, M_ii <= 1}.

    Parameters
    ----------
    d : int
        Dimension of the records.

    References
    ----------
    Formula sheet X-PSDBOX.

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

    d: int

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
    for pattern in itertools.product((False, True), repeat=d):
        free = np.array(pattern)
        if free.any() and np.linalg.eigvalsh(matrix[np.ix_(free, free)])[-1] >= 0:
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
