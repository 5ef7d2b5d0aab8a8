"""Semidefinite outer bodies of marginals and parities, from matrices of moments of signs.

Each binary attribute is coded as a sign, -1 or 1. The moments, means of products of signs over
records, are the entries of a positive semidefinite (psd) matrix, and answers are affine in them.
The outer body, the answers for all moments with a psd matrix, contains the sensitivity polytope. A
linear function over it takes one semidefinite program instead of 2^d answers. Projections use
these bodies; lower bounds never do, because one for a larger body need not hold for the polytope.

References
----------
Lasserre 2001 (moment matrices); Grothendieck 1953 and Alon and Naor 2006 (how loose the
relaxation of products of two signs is); Nikolov 2022, section 5 (2-way marginals): JL-T23.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull, above, symmetric
from geomdp._typing import BoolArray, FloatArray, IntArray
from geomdp._validation import whole
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body, cp
from geomdp.bodies.cvx_body import KeptProblem
from geomdp.bodies.elliptope import Elliptope, nearest_with_diagonal
from geomdp.bodies.sensitivity import sensitivity_polytope
from geomdp.workloads import Marginals, MarginalTables, Parities, Workload
from geomdp.workloads.structure import sign_products

# For signs s, let s_A be the product of the s_i for i in a set A of attributes. Then s_A s_B = s_T
# for the symmetric difference T. For sets A_1..A_p, the mean of v v^T, v = (s_A1, ..., s_Ap), over
# records is a psd matrix M(z) with diagonal 1 and entries z_T, the means of s_T; z lists those of
# the q different sets T. The programs are solved in the dual, over psd S, each of which proves a
# bound, because <S, M(z)> >= 0.

#: Largest order p of a moment matrix: an interior point method takes O(p^4) memory.
MAX_ORDER = 200
#: Largest residuals at which Clarabel may stop; they are added to the bounds, which stay valid.
REDUCED = 1e-6


@dataclass(frozen=True, eq=False)
class MomentRelaxation(Body):
    """The body {c + L z : M(z) psd} of affine functions of moments z of signs."""

    sets: Sequence[tuple[int, ...]]  # 2 to 200 distinct sets A_1..A_p of attribute numbers
    terms: Sequence[dict[tuple[int, ...], float]]  # for each coordinate, coefficients of the z_T

    def __post_init__(self) -> None:
        whole(len(self.sets), "number of sets", minimum=2, maximum=MAX_ORDER)

    def _summary(self) -> str:
        return f"moment matrix of order {len(self.sets)}"

    @property
    def dimension(self) -> int:
        return len(self.terms)

    @cached_property
    def _places(self) -> tuple[dict[tuple[int, ...], int], IntArray]:
        """Index in z of each T that occurs, by size, then by elements; and of each entry above the
        diagonal, in row-major order.
        """
        pairs = itertools.combinations(self.sets, 2)
        differences = [tuple(sorted(set(first) ^ set(second))) for first, second in pairs]
        found = sorted(set(differences), key=lambda T: (len(T), T))
        numbers = {T: number for number, T in enumerate(found)}
        return numbers, np.array([numbers[T] for T in differences])

    @cached_property
    def _map(self) -> tuple[sp.csr_array, FloatArray]:
        """L (m, q) and c (m,)."""
        numbers, _ = self._places
        linear, constant = sp.lil_array((self.dimension, len(numbers))), np.zeros(self.dimension)
        for row, term in enumerate(self.terms):
            for T, coefficient in term.items():
                if T:
                    linear[row, numbers[T]] = coefficient
                else:
                    constant[row] = coefficient
        return linear.tocsr(), constant

    @cached_property
    def _sums(self) -> sp.csr_array:
        """Matrix (q, p (p - 1) / 2) that adds up the entries above the diagonal with the same T."""
        numbers, entries = self._places
        places = entries, np.arange(len(entries))
        return sp.csr_array((np.ones(len(entries)), places), shape=(len(numbers), len(entries)))

    @cached_property
    def _program(self) -> KeptProblem:
        """Minimise tr S >= <w, z> over psd S with entries that add up to -w_T for each T."""
        order = len(self.sets)
        weights, slack = cp.Parameter(self._sums.shape[0]), cp.Variable((order, order), PSD=True)
        sums = 2 * self._sums @ slack[np.triu_indices(order, 1)] == -weights
        wanted = [weights], lambda: (slack.value, sums.dual_value)
        return KeptProblem(cp.Minimize(cp.trace(slack)), [sums], *wanted, cp.CLARABEL, REDUCED)

    def _highest(self, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Moments z (b, q) that maximise <u, L z> over psd M(z), and valid upper bounds (b,)."""
        weights, entries = (self._map[0].T @ directions.T).T, self._places[1]
        if weights.shape[1] < len(entries):
            found = [self._programmed(each) for each in weights]
            moments = np.array([z for z, _ in found]).reshape(weights.shape)
            return moments, np.array([bound for _, bound in found])
        from geomdp.bodies.compiled import highest_correlation  # slow to import

        best, bounds = highest_correlation(symmetric(weights[:, entries]))
        moments = np.empty(weights.shape)
        moments[:, entries] = above(best)
        return moments, bounds

    def _programmed(self, weights: FloatArray) -> tuple[FloatArray, float]:
        """z (q,) and the bound <w, z> <= tr S + p delta + ||r||_1 for one row w, where r is the
        residual of the sums, S + delta I is psd, and |z_T| <= 1.
        """
        length = float(np.linalg.norm(weights))
        if length == 0:
            return np.zeros(len(weights)), 0.0
        _, (slack, multipliers) = self._program.solve(weights / length)
        residual = weights / length + 2 * (self._sums @ above(slack))
        deficit = max(0.0, -float(np.linalg.eigvalsh(slack)[0]))
        bound = float(np.trace(slack)) + len(slack) * deficit + float(np.abs(residual).sum())
        # z / (1 + delta) with delta = max(0, -lambda_min(M(z))) has a psd moment matrix.
        matrix = symmetric(multipliers[self._places[1]], 1.0)
        lowest = float(np.linalg.eigvalsh(matrix)[0])
        return multipliers / (1 + max(0.0, -lowest)), length * bound

    def support(self, directions: FloatArray) -> FloatArray:
        """Upper bounds from dual matrices, valid up to rounding; nearly always too large by a
        relative 1e-9 at most for 2-way marginals, and by about 1e-8 for others, with a semidefinite
        program each.
        """
        return np.asarray(self._highest(directions)[1] + directions @ self._map[1])

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        linear, constant = self._map
        return np.asarray((linear @ self._highest(directions)[0].T).T + constant)

    def radius(self) -> float:
        """Upper bound, as |z_T| <= 1."""
        linear, constant = self._map
        return float(np.linalg.norm(abs(linear).sum(axis=1) + np.abs(constant)))

    def __getstate__(self) -> dict[str, Any]:
        """Without the kept program, which contains the state of a solver."""
        return {"sets": self.sets, "terms": self.terms}


@functools.singledispatch
def moment_relaxation(workload: Workload) -> Body:
    """A semidefinite body that contains the sensitivity polytope of a workload on the Boolean cube.

    =====================  ========================================================================
    workload               sets of attributes that index the rows of the matrix of moments
    =====================  ========================================================================
    Marginals, Parities    k = 1: no matrix; the sensitivity polytope is a box and is returned
    Marginals, k >= 2      all sets of up to ceil(k / 2) attributes
    Parities, k = 2 < d    single attributes: the body is the `Elliptope` of order d
    Parities, 2 < k < d    sets of k / 2 attributes, or of (k - 1) / 2 and (k + 1) / 2 for odd k
    Parities, k = d        no matrix; the sensitivity polytope is a segment and is returned
    MarginalTables, k = 2  for columns of two levels: the empty set and single attributes; the body
                           is an image of the elliptope of order d + 1, and has its own projection
    =====================  ========================================================================

    Parameters
    ----------
    workload : Workload
        One of the workloads in the table above.

    Returns
    -------
    Body
        The body in R^m, with coordinates in the order of the workload's m queries.

    Raises
    ------
    ValueError
        For other workloads, and for matrices of order above 200. The limit does not apply to
        `Parities` with k = 2 and to `MarginalTables`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> W = gd.workloads.Parities(d=5, k=2)
    >>> K = gd.bodies.moment_relaxation(W)
    >>> K
    Elliptope(order 5 in R^10)
    >>> u = -np.ones((1, W.n_queries))
    >>> gd.sensitivity_polytope(W).support(u).tolist(), K.support(u).round(4).tolist()
    ([2.0], [2.5])
    """
    raise ValueError(
        "workload must be Marginals, Parities or 2-way MarginalTables of two-level columns to have "
        f"a moment relaxation, got {type(workload).__name__}"
    )


@moment_relaxation.register
def _(workload: Marginals) -> Body:
    if workload.k == 1:
        return sensitivity_polytope(workload)
    sizes = range((workload.k + 1) // 2 + 1)
    # The product of (1 + s_i) / 2 over i in a set S is the mean of s_T over all subsets T of S,
    # where s_i is the sign of attribute i, and s_T is the product of the signs in T.
    share = 0.5**workload.k

    def term(subset: IntArray) -> dict[tuple[int, ...], float]:
        inside = tuple(int(i) for i in subset)
        return dict.fromkeys(_subsets(inside, range(len(inside) + 1)), share)

    sets = _subsets(range(workload.d), sizes)
    return MomentRelaxation(sets, [term(subset) for subset in workload.subsets])


@moment_relaxation.register
def _(workload: Parities) -> Body:
    d, k = workload.d, workload.k
    if k in (1, d):  # a cube for k = 1, and a segment for k = d, which has a single query
        return sensitivity_polytope(workload)
    if k == 2:
        return Elliptope(d)
    sets = _subsets(range(d), sorted({k // 2, (k + 1) // 2}))
    terms = [{tuple(int(i) for i in subset): 1.0} for subset in workload.subsets]
    return MomentRelaxation(sets, terms)


@moment_relaxation.register
def _(workload: MarginalTables) -> Body:
    products = sign_products(workload)
    weights = None
    if products is not None and workload.k == 2:
        weights = stretching_weights(products.matrix, products.order)
    if products is None or weights is None:
        raise ValueError(
            "tables must be 2-way and of two-level columns to have a moment relaxation, got levels "
            f"{workload.levels}, k = {workload.k}"
        )
    return MappedElliptope(products.matrix, weights, products.constant)


def _subsets(elements: Sequence[int], sizes: Sequence[int]) -> list[tuple[int, ...]]:
    return [each for size in sizes for each in itertools.combinations(elements, size)]


# Images of the elliptope with a projection of their own.

#: Let T be the matrix of a `MappedElliptope`, and w its weights. T^T T must equal the diagonal
#: matrix of the products w_i w_j. The error of an entry may be this share of the largest product.
STRETCH_ERROR = 1e-12


@dataclass(frozen=True, eq=False)
class MappedElliptope(Body):
    """The body {c + T r : r in the elliptope of order p}, T^T T = Diag(w_i w_j for i < j), such as
    the relaxation of all two-way tables of d = p - 1 binary attributes, with w proportional to (d -
    1, 1, .., 1).
    """

    # The matrices X_ij = (w_i w_j)^(1/2) R_ij are psd with diagonal w, and the squared distance of
    # two images is half that of their X. So projection finds the nearest psd X with diagonal w.
    matrix: sp.csr_array
    weights: FloatArray
    constant: FloatArray

    def _summary(self) -> str:
        return f"order {len(self.weights)}"

    @property
    def dimension(self) -> int:
        return int(self.matrix.shape[0])

    @cached_property
    def _elliptope(self) -> Elliptope:
        return Elliptope(len(self.weights))

    @cached_property
    def _stretch(self) -> FloatArray:
        """(w_i w_j)^(1/2) for i < j, the lengths of the columns of T: (p (p - 1) / 2,)."""
        return np.sqrt(above(np.outer(self.weights, self.weights)))

    def support(self, directions: FloatArray) -> FloatArray:
        """Upper bounds."""
        return np.asarray(
            self._elliptope.support((self.matrix.T @ directions.T).T) + directions @ self.constant
        )

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        best = self._elliptope.extreme_point((self.matrix.T @ directions.T).T)
        return np.asarray((self.matrix @ best.T).T + self.constant)

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        away = points - self.constant
        # For each row, the v with T v nearest to it.
        back = (self.matrix.T @ away.T).T / self._stretch**2
        off = np.linalg.norm(away - (self.matrix @ back.T).T, axis=1)
        slack = max(tolerance, RANK_TOLERANCE) * self.radius()
        return np.asarray(self._elliptope.contains(back, tolerance) & (off <= slack))

    def project(self, points: FloatArray) -> FloatArray:
        # Coordinates of the points along the columns of T, which are orthogonal.
        stretched = (self.matrix.T @ (points - self.constant).T).T / self._stretch
        nearest = np.empty(stretched.shape)
        for i, matrix in enumerate(self._elliptope.matrices(stretched)):
            nearest[i] = above(nearest_with_diagonal(matrix, self.weights))
        return np.asarray((self.matrix @ (nearest / self._stretch).T).T + self.constant)

    def radius(self) -> float:
        """An upper bound."""
        return float(np.linalg.norm(self.constant) + np.linalg.norm(self._stretch))

    def half_diameter(self) -> float:
        """An upper bound: no point is farther from c."""
        return float(np.linalg.norm(self._stretch))

    def affine_hull(self) -> AffineHull:
        """By a dense basis (m, p (p - 1) / 2), the columns of T."""
        basis = np.asarray((self.matrix / self._stretch).toarray(), dtype=np.float64)
        return AffineHull(self.constant, basis)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        products = cp.Variable(self._elliptope.dimension)
        image = self.matrix @ products + self.constant
        return [*self._elliptope.cvxpy_constraints(products), variable == image]


def stretching_weights(matrix: sp.csr_array, order: int) -> FloatArray | None:
    """The w > 0 (p,) with T^T T = Diag(w_i w_j), T = `matrix`; None if there is none or p < 3."""
    lengths = np.asarray(matrix.multiply(matrix).sum(axis=0)).ravel()
    if order < 3 or not (lengths > 0).all():
        return None
    squares = symmetric(lengths)
    weights = np.empty(order)
    for i in range(order):
        j, k = [other for other in range(3) if other != i][:2]
        weights[i] = np.sqrt(squares[i, j] * squares[i, k] / squares[j, k])
    off = abs(matrix.T @ matrix - sp.diags_array(above(np.outer(weights, weights))))
    return None if off.max() > STRETCH_ERROR * lengths.max() else weights
