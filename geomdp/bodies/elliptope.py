"""Positive semidefinite matrices with a given or bounded diagonal: correlation matrices, second
moments of data in a cube, and moments of one- and two-way tables.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp

from geomdp._numerics.linalg import above, row_blocks, svec, symmetric, unsvec, zero_sum_basis
from geomdp._typing import BoolArray, FloatArray, IntArray
from geomdp._validation import batch, listed, real_number, whole
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body, Facets, MissingOracle, Verb, cp
from geomdp.bodies.spectral import MatrixBody, half_vector


@dataclass(frozen=True)
class Elliptope(Body):
    """The correlation matrices {R psd, R_ii = 1} of order p, by their entries above the diagonal.

    The coordinates are the m = p (p - 1) / 2 entries R_ij with i < j, in row-major order. The point
    0 is the identity matrix. The body contains (s_i s_j)_(i < j) for all signs s in {-1, 1}^p. psd
    stands for positive semidefinite. Gauges and facets cost O(p^3), an exact draw O(p^3) (X-LKJ),
    and a projection some ten eigendecompositions.

    Parameters
    ----------
    order : int
        p, at least 2.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bodies.Elliptope(3).matrices([[0.5, -0.5, 0.0]]).tolist()
    [[[1.0, 0.5, -0.5], [0.5, 1.0, 0.0], [-0.5, 0.0, 1.0]]]
    """

    order: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", whole(self.order, "order", minimum=2))

    def _summary(self) -> str:
        return f"order {self.order}"

    @property
    def dimension(self) -> int:
        return self.order * (self.order - 1) // 2

    def matrices(self, points: FloatArray) -> FloatArray:
        """Symmetric matrices (b, p, p) with unit diagonal, one for each row of `points` (b, m)."""
        return symmetric(batch(points, self.dimension, "points"), 1.0)

    def support(self, directions: FloatArray) -> FloatArray:
        """Upper bounds h(u) on the largest <u, R>, from the dual of the MaxCut relaxation: the
        halfspaces {x : <u, x> <= h(u)} contain the body up to rounding, and h(u) is nearly always
        within a relative 1e-9 of the maximum.
        """
        return self._highest(directions)[1]

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """For each row u, an R with <u, R> nearly always within a relative 1e-9 of the maximum."""
        return above(self._highest(directions)[0])

    def _highest(self, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Matrices R with about the largest <u, R> for each row u, and upper bounds."""
        from geomdp.bodies.compiled import highest_correlation  # slow to import

        return highest_correlation(symmetric(directions))

    def project(self, points: FloatArray) -> FloatArray:
        ones = np.ones(self.order)
        found = [above(nearest_with_diagonal(each, ones)) for each in self.matrices(points)]
        return np.array(found).reshape(-1, self.dimension)

    def gauge(self, points: FloatArray) -> FloatArray:
        """-lambda_min(X) for X = R - I, since I + X / t is psd iff t >= -lambda_min(X)."""
        return np.asarray(np.maximum(1 - np.linalg.eigvalsh(self.matrices(points))[:, 0], 0.0))

    def facets(self, points: FloatArray) -> Facets:
        """Halfspaces {R : v^T R v >= 0}, v an eigenvector of lambda_min."""
        values, vectors = np.linalg.eigh(self.matrices(points))
        lowest = vectors[:, :, 0]
        normals = -2 * above(lowest[:, :, None] * lowest[:, None, :])
        return Facets(np.maximum(1 - values[:, 0], 0.0), normals)

    def radius(self) -> float:
        """sqrt(m), attained at the matrices s s^T for signs s."""
        return math.sqrt(self.dimension)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Inner products of p uniform unit vectors in R^(p+1), of constant density (X-LKJ)."""
        # For p Gaussian vectors in R^v, the density is ~ det(R)^((v - p - 1) / 2).
        points = np.empty((n, self.dimension))
        for part in row_blocks(n, self.order * (self.order + 1)):
            count = part.stop - part.start
            vectors = rng.standard_normal((count, self.order, self.order + 1))
            vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
            points[part] = above(vectors @ np.swapaxes(vectors, 1, 2))
        return points

    def centroid(self) -> FloatArray:
        """0: flipping the signs of row and column i maps the body to itself and negates R_ij."""
        return np.zeros(self.dimension)

    def entry_variances(self) -> FloatArray:
        """1 / (p + 1): the variance of <v, w> for independent uniform unit vectors in R^(p+1)."""
        return np.full(self.dimension, 1 / (self.order + 1))

    def second_moment(self) -> FloatArray:
        """The diagonal matrix of `entry_variances`; sign flips show that covariances are 0."""
        return np.diag(self.entry_variances())

    def volume(self) -> float:
        """prod (2^k B((k + 1)/2, (k + 1)/2))^k, 0 < k < p, with the beta function B (Joe 2006)."""
        sides = np.arange(1, self.order)
        halves = (sides + 1) / 2
        logs = sides * (sides * math.log(2) + scipy.special.betaln(halves, halves))
        return math.exp(float(logs.sum()))

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        matrix = cp.Variable((self.order, self.order), PSD=True)
        rows, columns = np.triu_indices(self.order, 1)
        return [cp.diag(matrix) == 1, matrix[rows, columns] == variable]


@dataclass(frozen=True)
class PsdBox(MatrixBody):
    """The matrices {M psd : M_ii <= 1} of order d in svec coordinates.

    The svec coordinates are the d (d + 1) / 2 entries of the upper triangle, row by row, with
    entries off the diagonal times sqrt(2). The body contains x x^T for all x in [-1, 1]^d, and
    therefore the second moment of any data in this cube. For d >= 3 it is larger than the hull of
    the x x^T, just as the elliptope is larger than the cut polytope (X-PSDBOX, X-LKJ).

    Parameters
    ----------
    d : int
        Order of the matrices, at least 1.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bodies.PsdBox(2).contains([[1.0, 2**-0.5, 1.0], [2.0, 0.0, 1.0]]).tolist()
    [True, False]
    """

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether all eigenvalues are >= -d * `tolerance` and all M_ii are <= 1 + `tolerance`."""
        matrices = unsvec(points)
        lowest = np.linalg.eigvalsh(matrices)[:, 0]
        largest = np.diagonal(matrices, axis1=1, axis2=2).max(axis=1)
        # Matrices in the body have eigenvalues of up to d, with rounding errors proportional to d.
        return np.asarray((lowest >= -tolerance * self.d) & (largest <= 1 + tolerance))

    def radius(self) -> float:
        """d, the norm of the matrices s s^T for sign vectors s."""
        return float(self.d)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Exact draws of S R S, R uniform on the elliptope and S_ii = U_i^(1/(d+1)) (X-PSDBOX)."""
        # The Jacobian of M = D^(1/2) R D^(1/2), D the diagonal of M, is prod D_ii^((d - 1) / 2).
        scales = rng.random((n, self.d)) ** (1 / (self.d + 1))
        rows, columns = np.triu_indices(self.d)
        points = scales[:, rows] * scales[:, columns]
        if self.d > 1:
            above = rows != columns
            points[:, above] *= math.sqrt(2) * Elliptope(self.d).sample_uniform(n, rng)
        return points

    def centroid(self) -> FloatArray:
        """svec(I) times E S_ii^2 = (d + 1) / (d + 3), with S as in `sample_uniform`."""
        return np.asarray((self.d + 1) / (self.d + 3) * svec(np.eye(self.d)))

    def second_moment(self) -> FloatArray:
        """E[M_ii M_jj] = a^2, E[M_ii^2] = (d + 1)/(d + 5) and E[2 M_ij^2] = 2 a^2 / (d + 1) for i
        != j, a = E S_ii^2 = (d + 1) / (d + 3); all other entries are 0.
        """
        a = (self.d + 1) / (self.d + 3)
        rows, columns = np.triu_indices(self.d)
        on = (rows == columns).astype(float)
        moment = a**2 * np.outer(on, on)
        own = np.where(on > 0, (self.d + 1) / (self.d + 5), 2 * a**2 / (self.d + 1))
        np.fill_diagonal(moment, own)
        return np.asarray(moment)

    def volume(self) -> float:
        """2^(d (d - 1) / 4) vol(E_d) (2 / (d + 1))^d, where E_d is the elliptope."""
        d = self.d
        elliptope = Elliptope(d).volume() if d > 1 else 1.0
        return float(2 ** (d * (d - 1) / 4) * elliptope * (2 / (d + 1)) ** d)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        matrix = cp.Variable((self.d, self.d), PSD=True)
        return [half_vector(matrix, self.d) == variable, cp.diag(matrix) <= 1]


@dataclass(frozen=True)
class TableMoments(Body):
    """One- and two-way tables m_i, M_ij of categorical columns, with a psd matrix of moments.

    The body contains the one- and two-way tables of every record. A point consists of shares m_i
    (non-negative, sum 1) and tables M_ij with row sums m_i and column sums m_j, such that the
    moment matrix with the blocks M_ij and the diagonal blocks diag(m_i) is positive semidefinite
    (psd). Its order L is the total number of levels. For d columns of two levels, the body is the
    elliptope of order d + 1, up to a linear map.

    A finite `violation` cuts the body by inequalities that the tables of every record satisfy. Let
    m_a be the share of an event (a level of a column), and M_ab the joint share of events a and b
    of two columns. The inequalities are M_ab >= 0 and, for events a, b, c of three columns,

        1 - m_a - m_b - m_c + M_ab + M_ac + M_bc >= 0,      m_a - M_ab - M_ac + M_bc >= 0,

    the second one also with b and with c in the role of a. The total violation, the sum of max(0,
    -f_k) over the left sides f_k, is convex, and must be at most `violation`.

    The coordinates are H_i^T m_i for all columns i, then H_i^T M_ij H_j, row by row, for i < j. H_i
    (l_i, l_i - 1) consists of the Helmert contrasts of l_i levels, an orthonormal basis of the
    vectors with sum 0. With q_i = l_i - 1 there are r = sum q_i + sum_(i < j) q_i q_j coordinates.
    At the centroid 0, the levels of each column have equal shares and the columns are independent.
    An exact draw (X-LKJ) costs O(L^2 P), P = sum q_i; if the cut leaves a share s of the volume, a
    point takes 1 / s draws on average.

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
        lost = self.cut and verb in (Body.volume, Body.second_moment)
        return super().implements(verb) and not lost

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
        from geomdp.bodies.compiled import violations  # slow to import

        return np.asarray(violations(tables, self._starts))

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Eigenvalues and the total violation may exceed limits by multiples of `tolerance`."""
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

    def sample_shares(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Shares (n, d, d) of one event of each column and of each pair, for uniform points.

        Only for a body that is not cut. In the notation of `sample_uniform`, the vector of an event
        has the share m, with a Beta law, and (m (1 - m))^(1/2) times a uniform direction. Inner
        products of the vectors are joint shares. The law is the same for all events of a column.
        """
        levels = np.array(self.levels, dtype=float)
        a = (self._order - levels + 1) / 2 + 1
        shares = rng.beta(a, (levels - 1) * a, (n, len(levels)))
        vectors = rng.standard_normal((n, len(levels), self._order + 1))
        vectors *= np.sqrt(shares * (1 - shares) / (vectors**2).sum(axis=2))[:, :, None]
        found = vectors @ np.swapaxes(vectors, 1, 2) + shares[:, :, None] * shares[:, None]
        columns = np.arange(len(levels))
        found[:, columns, columns] = shares
        return np.asarray(found)

    def sample_violations(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Total violations (n,) of the points that `sample_uniform` returns for the same `rng`."""
        return np.concatenate([self._violations(tables) for tables in self._drawn(n, rng)])

    def _drawn(self, n: int, rng: np.random.Generator) -> Iterator[FloatArray]:
        from geomdp.bodies.compiled import draw_tables  # slow to import

        size = int(self._starts[-1])
        for part in row_blocks(n, size**2) if n else (slice(0, 0),):
            tables = np.empty((part.stop - part.start, size, size))
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


# Nearest positive semidefinite matrices with a given diagonal, by a semismooth Newton method. The
# problem min { ||X - G||_F : X psd, X_ii = b_i } has the dual
#
#     min over y of  theta(y) = ||(G + Diag y)_+||_F^2 / 2 - <b, y>,
#
# where (.)_+ sets negative eigenvalues to 0. At the optimum, X = (G + Diag y)_+. The gradient of
# theta is diag((G + Diag y)_+) - b. Newton's method converges quadratically; each step solves a
# linear system with the generalised Hessian by conjugate gradients (Qi and Sun 2006).

#: Newton's method stops at this error of the diagonal, as a share of the largest entry of b.
DIAGONAL_ERROR = 1e-13
#: Largest number of Newton steps; 5 to 10 are usual.
MOST_STEPS = 200
#: `DECREASE`: a step is accepted if theta falls by this share of the predicted decrease (Armijo's
#: rule). `REGULAR`: this multiple of the identity is added to the Hessian, which may be singular.
DECREASE, REGULAR = 1e-4, 1e-10
#: Newton's method stops if rounding makes a line search shorter than this share of the step.
SHORTEST = 1e-10


def nearest_with_diagonal(matrix: FloatArray, diagonal: FloatArray) -> FloatArray:
    """The psd X (p, p) nearest to a symmetric G, with diagonal exactly b > 0; O(p^3) per step."""
    # A change of the diagonal of G only shifts y, because the problem depends on G + Diag y.
    target = matrix - np.diag(np.diag(matrix)) + np.diag(diagonal)
    shift = np.zeros(len(diagonal))
    value, gradient, parts = _dual(target, shift, diagonal)
    for _ in range(MOST_STEPS):
        if np.abs(gradient).max() <= DIAGONAL_ERROR * diagonal.max():
            break
        step = _newton_step(parts, gradient, float(diagonal.max()))
        slope, length = float(gradient @ step), 1.0
        trial = _dual(target, shift + step, diagonal)
        # Near the optimum, changes of theta are below its rounding error, about 1e-16 |theta|.
        slack = 1e-15 * abs(value)
        while trial[0] > value + DECREASE * length * slope + slack and length > SHORTEST:
            length /= 2
            trial = _dual(target, shift + length * step, diagonal)
        if length <= SHORTEST:
            break
        shift = shift + length * step
        value, gradient, parts = trial
    values, vectors = parts
    nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
    scale = np.sqrt(diagonal / np.diag(nearest))
    nearest *= np.outer(scale, scale)
    np.fill_diagonal(nearest, diagonal)
    return np.asarray((nearest + nearest.T) / 2)


def _dual(
    target: FloatArray, shift: FloatArray, diagonal: FloatArray
) -> tuple[float, FloatArray, tuple[FloatArray, FloatArray]]:
    """theta(y), its gradient, and the eigenvalues and eigenvectors of G + Diag y."""
    values, vectors = np.linalg.eigh(target + np.diag(shift))
    positive = np.maximum(values, 0.0)
    gradient = (vectors**2) @ positive - diagonal
    return float(positive @ positive / 2 - diagonal @ shift), gradient, (values, vectors)


def _newton_step(
    parts: tuple[FloatArray, FloatArray], gradient: FloatArray, size: float
) -> FloatArray:
    """The solution h of (V + REGULAR I) h = -gradient, for a V in the generalised Hessian."""
    from scipy.sparse.linalg import LinearOperator, cg  # slow import

    values, vectors = parts
    positive = np.maximum(values, 0.0)
    gaps = values[:, None] - values[None, :]
    # Eigenvalues that differ only by rounding errors count as equal.
    same = np.abs(gaps) <= 1e-14 * float(np.abs(values).max())
    slopes = np.where(
        same,
        ((values[:, None] > 0) | (values[None, :] > 0)).astype(np.float64),
        (positive[:, None] - positive[None, :]) / np.where(same, 1.0, gaps),
    )

    def product(direction: FloatArray) -> FloatArray:
        inner = slopes * (vectors.T @ (direction[:, None] * vectors))
        return np.asarray(((vectors @ inner) * vectors).sum(axis=1) + REGULAR * direction)

    p = len(gradient)
    operator = LinearOperator((p, p), matvec=product, dtype=np.float64)
    # Quadratic convergence needs more accurate steps as the gradient falls.
    accuracy = min(1e-2, float(np.linalg.norm(gradient)) / size)
    step, _ = cg(operator, -gradient, rtol=max(accuracy, 1e-12), maxiter=4 * p)
    return np.asarray(step)
