"""The workload of second moments (uncentred covariance) of records in the unit ball."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp.workloads.moments.outer_products import OuterProducts
from geomdp.workloads.universe.universes import UnitBall


@dataclass(frozen=True)
class SecondMoment(OuterProducts):
    """Q(x) = svec(x x^T) for x in the unit ball of R^d: the m = d (d + 1) / 2 second moments.

    svec lists the upper triangle of a matrix row by row and multiplies off-diagonal entries by
    sqrt(2). So the Euclidean norm of svec(M) is the Frobenius norm of M. `matrix` converts answers
    back to matrices. The convex hull of {Q(x)} is {svec(M) : M psd, tr M <= 1}.

    Parameters
    ----------
    d : int
        Dimension of the records.

    References
    ----------
    Nikolov 2022, Lemma 22: JL-COV.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.SecondMoment(2)
    >>> answers = workload.answers(np.array([[0.6, 0.8], [1.0, 0.0]]))
    >>> answers.shape
    (3,)
    >>> np.round(workload.matrix(answers), 4)
    array([[0.68, 0.24],
           [0.24, 0.32]])
    """

    d: int

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
