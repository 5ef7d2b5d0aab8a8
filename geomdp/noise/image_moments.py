"""Moments of U and T U for a uniform point U of a body, in closed form or from public draws."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import scipy.sparse as sp

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp._validation import require_type
from geomdp.bodies.base import Body
from geomdp.bodies.conic.elliptope import Elliptope
from geomdp.bodies.conic.table_moments import TableMoments
from geomdp.bodies.polytopes.simplex import Simplex
from geomdp.geometry.results import Estimate
from geomdp.noise.estimates import mean_estimate

#: Number of public draws from which a moment is estimated. For tables of 10 columns, the standard
#: deviation of ||T U||^2 (see `ImageMoments`) is about 15% of its mean. The mean of 1024 draws then
#: has a relative error of 0.5%. The root of this mean is the error of a mechanism, so its relative
#: error is 0.25%.
DRAWS = 1024
#: Number of table bodies whose draws are kept in memory. No draws are kept on disk: they decide
#: stated errors, and only drawing again could show whether someone changed the file.
KEPT = 8


def _uniform(body: Body) -> FloatArray:
    return body.sample_uniform(DRAWS, np.random.default_rng(PUBLIC_SEED))


@lru_cache(maxsize=KEPT)
def _uniform_tables(body: TableMoments) -> FloatArray:
    """The same draws (1024, k) for all mechanisms on a body; one can take a hundred tries."""
    draws = _uniform(body)
    draws.setflags(write=False)
    return draws


def check_map(matrix: sp.csr_array, dimension: int) -> None:
    """``ValueError`` unless `matrix` is finite, sparse, and maps from R^`dimension`."""
    require_type(matrix, sp.csr_array, "matrix")
    if matrix.ndim != 2 or matrix.shape[1] != dimension:
        raise ValueError(f"matrix must have {dimension} columns, got {matrix.shape}")
    if not np.isfinite(matrix.data).all():
        raise ValueError("matrix must be finite, got NaN or an infinity")


@dataclass(frozen=True, eq=False)
class ImageMoments:
    """Moments of U and T U for a uniform point U; the body has a sampler and a centroid."""

    #: The body, in R^k.
    body: Body
    #: The matrix T (m, k); None for the identity.
    matrix: sp.csr_array | None

    @property
    def closed(self) -> bool:
        return self.body.implements(Body.second_moment)

    @cached_property
    def draws(self) -> FloatArray:
        """Points U - E U (1024, k) for estimates, drawn from the public seed."""
        if isinstance(self.body, TableMoments):
            return _uniform_tables(self.body)  # its centroid is 0
        return np.asarray(_uniform(self.body) - self.body.centroid())

    def scatter(self) -> FloatArray:
        """Cov U (k, k), exact or from 1024 public draws; diagonal for `TableMoments`."""
        if not self.closed:
            if isinstance(self.body, TableMoments):
                return np.diag(self.body.block_means((self.draws**2).mean(axis=0)))
            return np.asarray(self.draws.T @ self.draws / len(self.draws))
        if isinstance(self.body, Simplex):
            return self.body.covariance()
        mean = self.body.centroid()
        return np.asarray(self.body.second_moment() - np.outer(mean, mean))

    def variances(self) -> FloatArray:
        """Variance of each coordinate of T U, (m,), computed without the covariance of T U."""
        if self.matrix is None:
            return np.diag(self.scatter()).copy()
        if self.closed and isinstance(self.body, Elliptope | TableMoments):
            # The coordinates of U that T uses are uncorrelated.
            return np.asarray(self.matrix.multiply(self.matrix) @ self.body.entry_variances())
        scatter = self.scatter()
        return np.asarray(self.matrix.multiply(self.matrix @ scatter).sum(axis=1)).ravel()

    @cached_property
    def energy(self) -> Estimate:
        """E ||T (U - E U)||_2^2, exact, or estimated from 1024 public draws with a 95% interval."""
        if not self.closed:
            return mean_estimate(self._squares)
        return Estimate.exact(float(self.variances().sum()))

    @property
    def _squares(self) -> FloatArray:
        """One number for each draw, (1024,). Their mean estimates E ||T (U - E U)||_2^2."""
        if self.matrix is None:
            return np.asarray((self.draws**2).sum(axis=1))
        if isinstance(self.body, TableMoments):
            # The coordinates U_j are uncorrelated (see `scatter`). So E ||T (U - E U)||_2^2 is the
            # sum over j of Var(U_j) times the squared length of column j of T. Averaging lengths
            # over a block changes nothing, because all variances of a block are equal.
            lengths = np.asarray(self.matrix.multiply(self.matrix).sum(axis=0)).ravel()
            return np.asarray(self.draws**2 @ self.body.block_means(lengths))
        return np.asarray(((self.matrix @ self.draws.T) ** 2).sum(axis=0))
