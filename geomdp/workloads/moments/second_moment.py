"""The second-moment (uncentred covariance) workload on the unit ball."""

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

    svec lists the upper triangle row by row with off-diagonal entries times sqrt(2), so that the
    Euclidean norm of answers is the Frobenius norm of matrices; `matrix` converts back.
    conv {Q(x)} is {M psd, tr M <= 1}.

    Parameters
    ----------
    d : int
        Dimension of the records.

    References
    ----------
    Nikolov 2022, Lemma 22: JL-COV.
    """

    d: int

    @property
    def universe(self) -> UnitBall:
        """The unit ball of R^d."""
        return UnitBall(self.d)

    def _maximisers(self, matrices: FloatArray) -> FloatArray:
        # The top eigenvector, or 0 if no eigenvalue is above 0.
        values, vectors = np.linalg.eigh(matrices)
        return np.asarray(vectors[:, :, -1] * (values[:, -1:] > 0))

    def l1_diameter(self) -> float:
        """sqrt(d (d + 1)), or 1 for d = 1; attained for d = 2, an upper bound from d = 3 on.

        ||.||_1 <= sqrt(m) ||.||_2 in R^m, m = d (d + 1) / 2, and the l2 diameter is sqrt(2). The
        maximum, found by enumerating sign patterns, is 0.972, 0.991 and 0.983 of the bound for
        d = 3, 4 and 5.
        """
        return math.sqrt(self.d * (self.d + 1)) if self.d > 1 else 1.0

    def l2_diameter(self) -> float:
        """sqrt(2), attained by orthogonal unit vectors; 1 for d = 1.

        ||x x^T - y y^T||_F^2 = |x|^4 + |y|^4 - 2 <x, y>^2.
        """
        return math.sqrt(2) if self.d > 1 else 1.0

    def l1_radius(self) -> float:
        """1 + (d - 1) / sqrt(2), attained at x = (1, ..., 1) / sqrt(d).

        ||svec(x x^T)||_1 = |x|^T A |x| where A has diagonal 1 and other entries 1 / sqrt(2).
        """
        return 1 + (self.d - 1) / math.sqrt(2)

    def l2_radius(self) -> float:
        """1, attained by every unit vector."""
        return 1.0
