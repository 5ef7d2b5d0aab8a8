"""Bodies of moments: tables of categorical columns with a psd moment matrix, and Chebyshev moments
of distributions on a cube.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy
import scipy.sparse as sp

from geomdp._typing import BoolArray, FloatArray, IntArray
from geomdp._validation import batch, finite_array, listed, real_number, whole
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.conic.cvx_body import CvxBody
from geomdp.bodies.oracles import MissingOracle, Verb, check_all_above_0
from geomdp.bodies.polytopes.vpolytope import VPolytope
from geomdp.workloads.finite import zero_sum_basis

#: Largest number of matrix entries in memory while sampling: 2^23 float64 are 64 MB.
SAMPLE_ENTRIES = 1 << 23


@dataclass(frozen=True)
class TableMoments(Body):
    """One- and two-way tables m_i, M_ij of categorical columns, with a psd matrix of moments.

    Let e_i(x) be the unit vector of the level (value) that record x has in column i. The body
    contains the tables (e_i(x), e_i(x) e_j(x)^T) of every record x. A point consists of shares m_i
    (non-negative, sum 1) and tables M_ij with row sums m_i and column sums m_j, such that the
    moment matrix with the blocks M_ij and the diagonal blocks diag(m_i) is positive semidefinite
    (psd). Its order L is the total number of levels. For d columns of two levels, the body is the
    elliptope of order d + 1, up to a linear map.

    A finite `violation` cuts the body by inequalities that the tables of every record satisfy. Let
    m_a be the share of an event (a level of a column), and M_ab the joint share of events a and b
    of two columns. The inequalities are M_ab >= 0 and, for events a, b, c of three columns,

        1 - m_a - m_b - m_c + M_ab + M_ac + M_bc >= 0,      m_a - M_ab - M_ac + M_bc >= 0,

    the second one also with b and with c in the role of a. The total violation, the sum of max(0,
    -f_k) over the left sides f_k, must be at most `violation`. It is convex, so the cut body is
    convex.

    The coordinates are H_i^T m_i for all columns i, then H_i^T M_ij H_j, row by row, for i < j. H_i
    (l_i, l_i - 1) consists of the Helmert contrasts of l_i levels, an orthonormal basis of the
    vectors with sum 0. With q_i = l_i - 1 there are r = sum q_i + sum_(i < j) q_i q_j coordinates.
    At the centroid 0, the levels of each column have equal shares and the columns are independent.
    The exact sampler generalises formula sheet X-LKJ to more than two levels; a draw costs
    O(L^2 P), P = sum q_i, and if the cut leaves a share s of the volume, a point takes 1 / s draws
    on average.

    Parameters
    ----------
    levels : sequence of int
        Numbers of levels l_i, each at least 2, of at least 1 column.
    violation : float
        Largest total violation, at least 0; inf (the default) leaves the body uncut.

    Examples
    --------
    >>> import geomdp as gd
    >>> body = gd.bodies.TableMoments([2, 2])
    >>> body
    TableMoments(2 columns in R^3)
    >>> body.tables([[0.0, 0.0, 0.0]])[0, :2, 2:].tolist()
    [[0.25, 0.25], [0.25, 0.25]]
    """

    levels: Sequence[int]
    violation: float = math.inf

    def __post_init__(self) -> None:
        levels = [whole(count, "levels", minimum=2) for count in listed(self.levels, "levels")]
        if not levels:
            raise ValueError("levels must hold at least 1 column, got none")
        violation = real_number(self.violation)  # NaN for values that are not numbers
        if not violation >= 0:
            raise ValueError(f"violation must be at least 0, got {self.violation!r}")
        object.__setattr__(self, "levels", tuple(levels))
        object.__setattr__(self, "violation", violation)

    def _summary(self) -> str:
        return f"{len(self.levels)} columns"

    @property
    def _order(self) -> int:
        """Number P of contrasts of single columns: the sum of q_i."""
        return sum(self.levels) - len(self.levels)

    @property
    def dimension(self) -> int:
        squares = sum((count - 1) ** 2 for count in self.levels)
        return self._order + (self._order**2 - squares) // 2

    @property
    def cut(self) -> bool:
        """Whether the total violation is limited."""
        return self.violation < math.inf

    def implements(self, verb: Verb) -> bool:
        """A cut body has no closed form of its volume or second moment."""
        return super().implements(verb) and not (
            self.cut and verb in (Body.volume, Body.second_moment)
        )

    @cached_property
    def _starts(self) -> IntArray:
        """Index of the first event of each column; the last entry is the number L of events."""
        return np.cumsum([0, *self.levels]).astype(np.int64)

    @cached_property
    def _contrasts(self) -> FloatArray:
        """Block diagonal matrix H (L, P) of the contrasts H_i of all columns."""
        return np.asarray(sp.block_diag([*map(zero_sum_basis, self.levels)]).toarray())

    @property
    def _columns(self) -> IntArray:
        return np.repeat(np.arange(len(self.levels)), np.array(self.levels) - 1)

    @cached_property
    def _places(self) -> tuple[IntArray, IntArray]:
        """Indices of the two contrasts for each coordinate of a two-way table."""
        column = self._columns
        rows, columns = np.nonzero(column[:, None] < column)
        order = np.lexsort((columns, rows, column[columns], column[rows]))
        return rows[order], columns[order]

    def tables(self, points: FloatArray) -> FloatArray:
        """Moment matrices (b, L, L) of points (b, r): blocks M_ij, diagonal blocks diag(m_i)."""
        points = batch(points, self.dimension, "points")
        rows, columns = self._places
        inner = np.zeros((len(points), self._order, self._order))
        inner[:, rows, columns] = points[:, self._order :]
        even = np.repeat(1 / np.array(self.levels), self.levels)
        shares = even + points[:, : self._order] @ self._contrasts.T
        crossed = self._contrasts @ inner @ self._contrasts.T
        crossed += np.swapaxes(crossed, 1, 2)
        # M_ij = m_i 1^T / l_j + 1 m_j^T / l_i - 1 1^T / (l_i l_j) + H_i (H_i^T M_ij H_j) H_j^T.
        products = shares[:, :, None] * even + even[:, None] * shares[:, None, :]
        found = crossed + products - np.outer(even, even)
        column = np.repeat(np.arange(len(self.levels)), self.levels)
        found[:, column[:, None] == column] = 0.0
        events = np.arange(len(even))
        found[:, events, events] = shares
        return np.asarray(found)

    def points(self, tables: FloatArray) -> FloatArray:
        """Coordinates (b, r) of moment matrices (b, L, L)."""
        rows, columns = self._places
        shares = np.diagonal(tables, axis1=1, axis2=2) @ self._contrasts
        inner = self._contrasts.T @ tables @ self._contrasts
        return np.hstack([shares, inner[:, rows, columns]])

    def violations(self, points: FloatArray) -> FloatArray:
        """Total violation (b,) of the cell and triangle inequalities at points (b, r)."""
        return self._violations(self.tables(points))

    def _violations(self, tables: FloatArray) -> FloatArray:
        from geomdp.bodies.conic.compiled import violations  # slow to import

        return np.asarray(violations(tables, self._starts))

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Eigenvalues may be as low as -`tolerance` times the number of columns, and the total
        violation may exceed its limit by `tolerance`.
        """
        tables = self.tables(points)
        # The indicators of a column's events add up to the constant 1, so matrices of order L are
        # singular. The form is tested on a basis of the span of all indicators: 1 and contrasts.
        frame = np.column_stack([self._starts[1] > np.arange(self._starts[-1]), self._contrasts])
        lowest = np.linalg.eigvalsh(frame.T @ tables @ frame)[:, 0]
        inside = lowest >= -tolerance * len(self.levels)
        if self.cut:
            inside &= self._violations(tables) <= self.violation + tolerance
        return np.asarray(inside)

    def radius(self) -> float:
        """An upper bound: (sum of (1 - 1 / l_i) + d (d - 1) / 2)^(1/2)."""
        # ||H_i^T m_i||^2 = ||m_i||^2 - 1 / l_i, and H_i^T M_ij H_j = D_i^(1/2) R D_j^(1/2) with
        # ||R|| <= 1 and D_i = H_i^T diag(m_i) H_i of trace at most 1.
        shares = sum(1 - 1 / count for count in self.levels)
        pairs = len(self.levels) * (len(self.levels) - 1) / 2
        return math.sqrt(shares + pairs)

    def centroid(self) -> FloatArray:
        """0, the only point that stays fixed when the levels of columns are permuted."""
        return np.zeros(self.dimension)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Exact: Dirichlet shares and random orthonormal rows, with rejection if the body is cut.

        Let S_i = H_i^T (diag(m_i) - m_i m_i^T) H_i. The moment matrix is psd if and only if the
        Schur complement of the constant 1 is, with diagonal blocks S_i and other blocks H_i^T M_ij
        H_j - (H_i^T m_i)(H_j^T m_j)^T = S_i^(1/2) R_ij S_j^(1/2), so if and only if R is, with R_ii
        = I. The Jacobian from R to M is the product of det(S_i)^((P - q_i) / 2), and det S_i is l_i
        times the product of the entries of m_i. Hence R and all m_i are independent, m_i is
        Dirichlet with all parameters (P - q_i) / 2 + 1, and R is uniform. A Wishart matrix W of
        order P with P + 1 degrees of freedom has density proportional to e^(-tr W / 2), which does
        not depend on W_ij, i != j. So R_ij = W_ii^(-1/2) W_ij W_jj^(-1/2) is uniform, or R_ij = Q_i
        Q_j^T for independent Q_i (q_i, P + 1) with uniform orthonormal rows.
        """
        return np.concatenate([self.points(tables) for tables in self._drawn(n, rng)])

    def sample_violations(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Total violations (n,) of the points that `sample_uniform` returns for the same `rng`."""
        return np.concatenate([self._violations(tables) for tables in self._drawn(n, rng)])

    def _drawn(self, n: int, rng: np.random.Generator) -> Iterator[FloatArray]:
        from geomdp.bodies.conic.compiled import draw_tables  # slow to import

        size = int(self._starts[-1])
        step = max(1, SAMPLE_ENTRIES // size**2)
        for start in range(0, max(n, 1), step):
            tables = np.empty((min(step, n - start), size, size))
            draw_tables(rng, tables, self._starts, self.violation)
            yield tables

    def entry_variances(self) -> FloatArray:
        """Variances (r,) of the uncorrelated coordinates of uniform points of the uncut body: u_i =
        1 / (l_i (l_i a_i + 1)) for H_i^T m_i, with the Dirichlet parameter a_i = (P - q_i) / 2 + 1,
        and u_i u_j + s_i s_j / (P + 1) for H_i^T M_ij H_j, with s_i = a_i / (l_i a_i + 1) = E tr
        S_i / q_i.
        """
        levels = np.array(self.levels, dtype=float)
        a = (self._order - levels + 1) / 2 + 1
        shares, spread = 1 / (levels * (levels * a + 1)), a / (levels * a + 1)
        column = self._columns
        rows, columns = column[self._places[0]], column[self._places[1]]
        pairs = shares[rows] * shares[columns]
        pairs += spread[rows] * spread[columns] / (self._order + 1)
        return np.concatenate([shares[column], pairs])

    def block_means(self, values: FloatArray) -> FloatArray:
        """Average `values` (.., r), one per coordinate, over each column and each pair of columns.

        Under the uniform distribution, even on a cut body, the coordinates of one column or pair
        have the same variance: permutations of the levels map the body to itself, and the blocks
        are irreducible representations of them, no two isomorphic, so Schur's lemma applies.
        """
        own = [count - 1 for count in self.levels]
        sizes = np.array(own + [a * b for a, b in itertools.combinations(own, 2)])
        starts = np.cumsum(sizes) - sizes
        return np.repeat(np.add.reduceat(values, starts, axis=-1) / sizes, sizes, axis=-1)

    def second_moment(self) -> FloatArray:
        """The diagonal matrix (r, r) of `entry_variances`; `MissingOracle` for a cut body."""
        if self.cut:
            raise MissingOracle(self, "second_moment", "a closed form")
        return np.diag(self.entry_variances())

    def volume(self) -> float:
        """Gamma_P(f / 2) times prod l_i^((P - q_i + 1) / 2) B_i / Gamma_(q_i)(f / 2), f = P + 1,
        with multivariate gamma functions Gamma_q and B_i = Gamma(a_i)^(l_i) / Gamma(l_i a_i), a_i
        as in `entry_variances`; `MissingOracle` for a cut body.
        """
        if self.cut:
            raise MissingOracle(self, "volume", "a closed form")
        half = (self._order + 1) / 2
        log = float(scipy.special.multigammaln(half, self._order))
        for count in self.levels:
            a = (self._order - count + 1) / 2 + 1
            log -= float(scipy.special.multigammaln(half, count - 1))
            log += count * math.lgamma(a) - math.lgamma(count * a)
            log += (a - 0.5) * math.log(count)
        return math.exp(log)


# Chebyshev product moments M_m = E prod_i T_{m_i}(x_i), m in {0..t-1}^d in row-major order, without
# M_0 = 1. Coordinates are M_m / s_m, so projection is least squares in M with weights 1 / s_m^2.

#: Largest value of (number of grid points) x (number of moments): 2^25 float64 are 256 MB.
MAX_ENTRIES = 1 << 25


def cosine_moment_body(scales: npt.ArrayLike) -> CvxBody:
    """All vectors (t - 1,) of M_m / s_m of distributions on [-1, 1], by two psd constraints."""
    import cvxpy as cp

    # For x = cos(a), M_k is E cos(k a). These are moments if and only if the Toeplitz matrix
    # (M_|i-j|) of order t is psd (Caratheodory 1911, Toeplitz 1911). It does not change if rows and
    # columns are reversed, so it is psd if and only if two blocks are, with the entries
    # E cos(i a) cos(j a) and E sin(i a) sin(j a); i and j run over {0, 1, ..} for odd t and over
    # {1/2, 3/2, ..} for even t, up to (t - 1) / 2.
    scales = finite_array(scales, "scales", ndim=1)
    check_all_above_0(scales, "scales")
    # Both blocks are singular on the moment curve, where Clarabel often stops too early.
    return CvxBody(len(scales), partial(_semidefinite, scales), cp.SCS)


def _semidefinite(scales: FloatArray, variable: Any) -> list[Any]:
    """The semidefinite constraints on `variable`, the vector (t - 1,) of M_m / s_m."""
    import cvxpy as cp

    size = len(scales) + 1
    constraints = []
    for sign in (1.0, -1.0):
        entries, order = _products(size, sign)
        if order:
            affine = entries[:, 0] + (entries[:, 1:] * scales) @ variable
            constraints.append(cp.reshape(affine, (order, order), order="C") >> 0)
    return constraints


def _products(size: int, sign: float) -> tuple[FloatArray, int]:
    """Coefficients of M_0..M_{t-1} in twice each entry of the block of `sign`, and its order."""
    # `doubled` holds the numbers 2 i; the row of sin(0 a) would be 0, so it is left out.
    doubled = np.arange((size - 1) % 2, size, 2)
    if sign < 0:
        doubled = doubled[doubled > 0]
    first, second = np.meshgrid(doubled, doubled, indexing="ij")
    rows = np.arange(first.size)
    entries = np.zeros((first.size, size))
    np.add.at(entries, (rows, np.abs(first - second).ravel() // 2), 1.0)
    np.add.at(entries, (rows, (first + second).ravel() // 2), sign)
    return entries, len(doubled)


def grid_moment_body(scales: npt.ArrayLike, per_axis: int) -> VPolytope:
    """Moment vectors of distributions on a grid of equally spaced angles.

    Grid points have coordinates cos(pi j / (G - 1)), j = 0..G-1. The body lies inside the body of
    the moments of all distributions on the cube. For each of these moment vectors, it has a vector
    with entries for m that differ by at most (h^2 / 8) sum_i m_i^2, where h = pi / (G - 1), by
    linear interpolation between grid angles.

    Parameters
    ----------
    scales : (t,) * d array
        s_m > 0 for m != 0, t >= 2; s_0 must be finite, but is not used. The coordinates are M_m /
        s_m, with Chebyshev moments M_m = E prod_i T_{m_i}(x_i).
    per_axis : int
        G >= 2, the number of grid angles in each variable. The body is the hull of G^d points.

    Returns
    -------
    VPolytope
        The body in R^(t^d - 1).

    Raises
    ------
    ValueError
        If the moments of all grid points are more than 2^25 numbers.

    Examples
    --------
    >>> import geomdp as gd
    >>> body = gd.bodies.grid_moment_body([1.0, 1.0, 1.0], per_axis=3)
    >>> body
    VPolytope(3 points in R^2)
    >>> body.vertices.round(6).tolist()
    [[1.0, 1.0], [0.0, -1.0], [-1.0, 1.0]]
    """
    scales = finite_array(scales, "scales", np.ndim(scales))
    if scales.ndim == 0 or len(scales) < 2 or set(scales.shape) != {len(scales)}:
        raise ValueError(f"scales must have shape (t,) * d, t >= 2, got {scales.shape}")
    check_all_above_0(scales.ravel()[1:], "scales after the first")
    per_axis = whole(per_axis, "per_axis", minimum=2)
    size, dimension = len(scales), scales.ndim
    if scales.size * per_axis**dimension > MAX_ENTRIES:
        raise ValueError(
            f"per_axis^d times the number of moments must be at most {MAX_ENTRIES}, got "
            f"{per_axis}^{dimension} times {scales.size}"
        )
    angles = np.linspace(0, math.pi, per_axis)
    waves = np.cos(np.multiply.outer(angles, np.arange(size)))
    products = reduce(np.kron, [waves] * dimension)
    return VPolytope(products[:, 1:] / scales.ravel()[1:])
