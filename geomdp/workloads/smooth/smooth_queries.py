"""The workload that answers smooth queries: Chebyshev product moments of points of a cube.

Let Q_m(x) = prod_i T_{m_i}(x_i) for m in {0..t-1}^d, with T_r(cos a) = cos(r a). For weights
w_m >= 0, the weighted l1 diameter of {Q(x)} over x in [-1, 1]^d is

    max over x, x' of sum_m w_m |Q_m(x) - Q_m(x')| = max over x of sum_m w_m (1 - Q_m(x)).

The left-hand side is at least the right-hand side, because all Q_m are 1 at x' = (1, .., 1). Proof
that the left-hand side is not larger: Let x = cos a, x' = cos b, p = (a + b) / 2 and
q = (a - b) / 2. Q_m(x) is the mean of cos(k . a) over signs s, with k_i = s_i m_i. Also
|cos(k . a) - cos(k . b)| = 2 |sin(k . p)| |sin(k . q)|. Let F(p) be the sum over m of w_m times the
mean over s of 2 sin^2(k . p). By the Cauchy-Schwarz inequality over all (m, s), the left-hand side
is at most (F(p) F(q))^(1/2). The mean of 2 sin^2(k . p) over s is 1 - Q_m(cos 2 p). So F(p) and
F(q) are at most the right-hand side.

For w = 1 the diameter is S(t, d) = t^(d-1) S(t, 1). Indeed, sum_m Q_m(cos a) = prod_i D(a_i) with
D(a) = sum_{r<t} cos(r a) <= t. For t >= 2, the minimum of D is at most 0. The product is least if
one factor is this minimum and all other factors are t.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import scipy.fft

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray
from geomdp._validation import batch, positive, whole
from geomdp.workloads.base import Totals, Workload
from geomdp.workloads.smooth.moments import (
    MAX_MOMENTS,
    MomentTransform,
    chebyshev_polynomials,
    moment_transform,
    products,
)
from geomdp.workloads.universes import Records, SymmetricCube


@dataclass(frozen=True)
class SmoothQueries(Workload):
    """Q_m(x) = prod_i cos(m_i arccos x_i) for all m != 0 in {0..t-1}^d and x in [-1, 1]^d.

    Smooth functions of d variables are close to linear combinations of 1 and the Q_m. So the
    t^d - 1 moments approximate the means of all smooth functions. Queries are in row-major order of
    m; `table` puts answers and constant into an array of shape (t,) * d. Cost of `totals` per
    record: 5, 36 or 120 additions for d = 1, 2 or 3, and 2 t^d operations for larger d, small t, or
    d = 3 and a fine tolerance; see `moment_transform`.

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
    With degrees 0 and 1 in each variable, the answers are the means of x2, x1 and x1 x2:

    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.SmoothQueries(2, 2)
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
        return l1_diameter_of_moments(self.d, self.degree)

    def l2_diameter(self) -> float:
        """Upper bound on the l2 diameter, close to it if t is even or d = 1."""
        return l2_diameter_of_moments(self.d, self.degree)

    def l1_radius(self) -> float:
        """t^d - 1, attained at (1, ..., 1)."""
        return float(self.n_queries)

    def l2_radius(self) -> float:
        """(t^d - 1)^(1/2), attained at (1, ..., 1)."""
        return float(np.sqrt(self.n_queries))

    def weighted_l1_diameter(self, weights: FloatArray) -> float:
        """Upper bound on max sum_m w_m |Q_m(x) - Q_m(x')| for `weights` w_m >= 0 (t^d - 1,)."""
        return weighted_l1_diameter(self.table(weights, 0.0))

    def orders(self) -> FloatArray:
        """The largest degree max_i m_i of each query (t^d - 1,)."""
        return np.asarray(np.indices(self.shape).max(axis=0).ravel()[1:], dtype=np.float64)

    def labels(self) -> list[str]:
        exponents = np.indices(self.shape).reshape(self.d, -1).T[1:]
        return ["*".join(f"T{m}(x{i})" for i, m in enumerate(row) if m) for row in exponents]


# Diameters of the set of moments of single records: formulas and proved upper bounds.

#: Number of points of the finest grids on which polynomials are evaluated, in 0.03 seconds.
GRID_POINTS = 1 << 20
#: Largest and least number of intervals in each variable, times the degree of the polynomial. The
#: bound then has a relative error of at most 2e-6 in one variable, or is at most 1.09^d times the
#: maximum over the grid. With fewer intervals the grid is not used.
FINEST, COARSEST = 1024, 4
#: Factor by which bounds are rounded up. It exceeds the relative rounding errors of the transforms.
ROUND_UP = 1 + 1e-11


def weighted_l1_diameter(weights: FloatArray) -> float:
    """Upper bound on the weighted l1 diameter for `weights` w_m >= 0, (t,) * d.

    It is the maximum of sum_m w_m (1 - Q_m(x)) over a grid of N + 1 Chebyshev points in each
    variable, times 1 / cos(pi (t - 1) / (2 N))^d (Ehlich and Zeller 1964), or twice the sum of w_m
    over m != 0.
    """
    d, degree = weights.ndim, len(weights) - 1
    spread = weights.copy()
    spread[(0,) * d] = 0
    total = float(spread.sum())
    crude = 2 * total
    intervals = min(FINEST * degree, math.floor(GRID_POINTS ** (1 / d)) - 1)
    if intervals < COARSEST * degree:
        return crude
    lowest = float(values_on_grid(spread, intervals).min())
    return min(crude, (total - lowest) * grid_factor(degree, intervals) ** d * ROUND_UP)


@cache
def l1_diameter_of_moments(d: int, size: int) -> float:
    """Upper bound on S(t, d), with relative error at most 2e-6 for t = `size` <= 1024."""
    return float(size ** (d - 1)) * weighted_l1_diameter(np.ones(size))


@cache
def l2_diameter_of_moments(d: int, size: int) -> float:
    """Upper bound on max ||Q(x) - Q(x')||_2; relative error <= 1e-6 for t <= 512 even, or d = 1.

    In one variable, the square is D^2 = max_a sum_{r<t} (1 - cos(r a))^2, by the proof of the
    module with squares. In d > 1 variables, it is at most t^(d-1) max(2 t, D^2): let q(x_i) hold
    the T_r(x_i), r < t, A_i = |q(x_i)|^2, B_i = |q(x'_i)|^2 and G_i = <q(x_i), q(x'_i)>, all at
    most t in modulus. The square is prod A_i + prod B_i - 2 prod G_i. It is at most 2 t^d if prod
    G_i >= 0. Else some G_i < 0, and it is at most t^(d-1) (A_i + B_i - 2 G_i) <= t^(d-1) D^2.
    """
    # (1 - cos)^2 = 3/2 - 2 cos(r a) + cos(2 r a) / 2.
    series = np.zeros(2 * size - 1)
    series[0] = 1.5 * (size - 1)
    series[1:size] -= 2.0
    series[2 : 2 * size - 1 : 2] += 0.5
    degree = len(series) - 1
    intervals = max(COARSEST * degree, min(FINEST * degree, GRID_POINTS))
    highest = float(values_on_grid(series, intervals).max())
    square = highest * grid_factor(degree, intervals) * ROUND_UP
    if d > 1:
        square = size ** (d - 1) * max(2.0 * size, square)
    return math.sqrt(min(square, 4.0 * (size**d - 1)))


def grid_factor(degree: int, intervals: int) -> float:
    """max |p| over [-1, 1] is at most this times max |p| over cos(pi j / N), if deg p = k < N."""
    return 1 / math.cos(math.pi * degree / (2 * intervals))


def values_on_grid(coefficients: FloatArray, intervals: int) -> FloatArray:
    """Values of sum_m c_m Q_m on the grid with coordinates cos(pi j / N), N = `intervals`."""
    padded = np.zeros((intervals + 1,) * coefficients.ndim)
    padded[tuple(slice(length) for length in coefficients.shape)] = coefficients
    for axis in range(coefficients.ndim):
        # A transform of type 1 counts all terms twice, except terms 0 and N. Term N is 0, because
        # N is above the degree.
        padded[(slice(None),) * axis + (slice(1, None),)] /= 2
    return np.asarray(scipy.fft.dctn(padded, type=1))
