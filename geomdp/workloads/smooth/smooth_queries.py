"""The workload that answers smooth queries: Chebyshev product moments of points of a cube."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray
from geomdp._validation import batch, positive, whole
from geomdp.workloads.base import Totals, Workload
from geomdp.workloads.smooth import moment_diameters
from geomdp.workloads.smooth.moment_sums import MomentTransform
from geomdp.workloads.smooth.moments import (
    MAX_MOMENTS,
    chebyshev_polynomials,
    moment_transform,
    products,
)
from geomdp.workloads.universe.records import Records
from geomdp.workloads.universe.universes import SymmetricCube


@dataclass(frozen=True)
class SmoothQueries(Workload):
    """Q_m(x) = prod_i cos(m_i arccos x_i) for all m != 0 in {0..t-1}^d and x in [-1, 1]^d.

    Smooth functions of d variables are close to linear combinations of 1 and the Q_m. So the
    t^d - 1 moments approximate the means of all smooth functions. Queries are in row-major order of
    m; `table` puts answers and constant into an array of shape (t,) * d. Cost of `totals` per
    record: 5, 36 or 120 additions for d = 1, 2 or 3, and 2 t^d operations for larger d or small t.
    For d = 3 and a fine tolerance, a non-uniform fast Fourier transform can take over. Its errors
    are tested, not proved, to be within `tolerance`; see `moment_transform`.

    Parameters
    ----------
    d : int
        Number of variables.
    degree : int
        t >= 2. Each variable has degrees 0..t-1 (SM-A1, DISC-16). t^d must be at most 2^22.
    tolerance : float
        Largest error of a moment of one record in `totals` and `answers`, if float64 allows it. In
        a mean, rounding can add `transform.rounding(n)`. `evaluate` has rounding errors only.

    References
    ----------
    Wang, Fan, Zhang and Wang 2013, Algorithm 1; formula sheet SM-A1, X-NUFFT.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.SmoothQueries(2, 2)
    >>> workload.n_queries
    3

    With degrees 0 and 1 in each variable, the answers are the means of x2, x1 and x1 x2:

    >>> np.round(workload.answers(np.array([[0.5, 1.0], [0.5, 0.0]])), 4)
    array([0.5 , 0.5 , 0.25])
    """

    d: int
    degree: int
    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole(self.d, "d"))
        object.__setattr__(self, "degree", whole(self.degree, "degree", minimum=2))
        object.__setattr__(self, "tolerance", positive(self.tolerance, "tolerance"))
        if self.degree**self.d > MAX_MOMENTS:
            raise ValueError(
                f"degree^d must be at most {MAX_MOMENTS}, got {self.degree}^{self.d}: choose a "
                "smaller degree"
            )

    @property
    def universe(self) -> SymmetricCube:
        return SymmetricCube(self.d)

    @property
    def n_queries(self) -> int:
        return int(self.degree**self.d - 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape (t,) * d of a table of moments."""
        return (self.degree,) * self.d

    @cached_property
    def transform(self) -> MomentTransform:
        """The method by which `totals` sums the moments."""
        return moment_transform(self.d, self.degree, self.tolerance)

    def table(self, answers: FloatArray, constant: float = 1.0) -> FloatArray:
        """Answers (t^d - 1,) as an array of shape (t,) * d, with `constant` at m = 0."""
        return np.concatenate([[constant], answers]).reshape(self.shape)

    def evaluate(self, records: Records) -> FloatArray:
        """The moments are computed by Chebyshev recurrences."""
        points = self.universe.validate(records)
        return np.asarray(products(chebyshev_polynomials(points, self.degree))[1:].T)

    def totals(self, records: Records | Iterable[Records]) -> Totals:
        """The sums do not depend on the chunks."""
        chunks = self.universe.chunks(records, self.transform.rows)
        count, sums = self.transform.sums(chunks)
        return Totals(count, np.asarray(sums.ravel()[1:]))

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """The candidates are the ends of [-1, 1] and the roots of the derivative.

        ``ValueError`` for d above 1, because maximising polynomials is hard in general.
        """
        directions = batch(directions, self.n_queries, "directions")
        if self.d > 1:
            raise ValueError(f"d must be 1 for extreme answers, got {self.d}")
        best = np.empty((len(directions), 1))
        for row, direction in enumerate(directions):
            series = np.concatenate([[0.0], direction])
            slope = np.trim_zeros(np.polynomial.chebyshev.chebder(series), "b")
            roots = np.polynomial.chebyshev.chebroots(slope) if len(slope) else np.empty(0)
            # A root can be complex or outside the interval. Move its real part into the interval:
            # every point of the interval is an allowed candidate.
            candidates = np.clip(np.concatenate([[1.0, -1.0], np.real(roots)]), -1, 1)
            values = np.polynomial.chebyshev.chebval(candidates, series)
            best[row] = candidates[np.argmax(values)]
        return self.evaluate(best)

    def affine_hull(self) -> AffineHull:
        return AffineHull.whole_space(self.n_queries)

    def l1_diameter(self) -> float:
        """Upper bound on the l1 diameter, with relative error at most 2e-6 for t <= 1024."""
        return moment_diameters.l1_diameter(self.d, self.degree)

    def l2_diameter(self) -> float:
        """Upper bound on the l2 diameter, close to it if t is even or d = 1."""
        return moment_diameters.l2_diameter(self.d, self.degree)

    def l1_radius(self) -> float:
        """t^d - 1, attained at (1, ..., 1)."""
        return float(self.n_queries)

    def l2_radius(self) -> float:
        """(t^d - 1)^(1/2), attained at (1, ..., 1)."""
        return float(np.sqrt(self.n_queries))

    def weighted_l1_diameter(self, weights: FloatArray) -> float:
        """Upper bound on max sum_m w_m |Q_m(x) - Q_m(x')| for `weights` w_m >= 0 (t^d - 1,)."""
        return moment_diameters.weighted_l1_diameter(self.table(weights, 0.0))

    def orders(self) -> FloatArray:
        """The largest degree max_i m_i of each query (t^d - 1,)."""
        return np.asarray(np.indices(self.shape).max(axis=0).ravel()[1:], dtype=np.float64)

    def labels(self) -> list[str]:
        exponents = np.indices(self.shape).reshape(self.d, -1).T[1:]
        return ["*".join(f"T{m}(x{i})" for i, m in enumerate(row) if m) for row in exponents]
