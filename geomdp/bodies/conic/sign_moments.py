"""Moment matrices of signs, and bounds on linear functions of moments by semidefinite programs.

For signs s in {-1, 1}^d, let s_A be the product of the s_i for i in a set A of attributes. Then s_A
s_B = s_T, where T is the symmetric difference of A and B. Let v = (s_A1, ..., s_Ap) for fixed sets
A_1..A_p. The mean of v v^T over records is positive semidefinite (psd), with diagonal entries 1.
Its entry for A_a and A_b is z_T, the mean of s_T. This matrix is called M(z), where z lists the z_T
of the q different sets T. The programs here are solved in the dual, over psd matrices S. Each S
proves a bound, because <S, M(z)> >= 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import whole
from geomdp.bodies.conic.conic_programs import KeptProblem

#: Largest order p of a moment matrix: an interior point method takes O(p^4) memory.
MAX_ORDER = 200
#: Largest residuals at which the solver Clarabel may stop if it makes no further progress. The
#: residuals are added to the bounds, so the bounds stay valid.
REDUCED = 1e-6


class HighestMoments(NamedTuple):
    """For b vectors w: moments z (b, q) that maximise <w, z> over psd M(z), and upper bounds (b,).

    The bounds are on the maxima.
    """

    moments: FloatArray
    bounds: FloatArray


class Multiplied(NamedTuple):
    """The variable S of a program, and a constraint on the entries of S with multipliers z."""

    variable: Any
    sums: Any

    @property
    def value(self) -> tuple[FloatArray, FloatArray]:
        """S and z of the solved program."""
        return np.asarray(self.variable.value), np.asarray(self.sums.dual_value)


@dataclass(frozen=True, eq=False)
class MomentMatrix:
    """The matrix M(z)_ab = z_T with T the symmetric difference of A_a and A_b; M(z)_aa = 1."""

    sets: Sequence[tuple[int, ...]]  # 2 to 200 distinct sets A_1..A_p of attribute numbers

    def __post_init__(self) -> None:
        order = whole(len(self.sets), "number of sets", minimum=2, maximum=MAX_ORDER)
        if len({frozenset(each) for each in self.sets}) != order:
            raise ValueError(f"sets must be distinct, got {self.sets!r}")

    @property
    def order(self) -> int:
        """Number of sets p."""
        return len(self.sets)

    @cached_property
    def _differences(self) -> list[tuple[int, ...]]:
        """The set T of each entry above the diagonal, in row-major order."""
        return [
            tuple(sorted(set(first) ^ set(second)))
            for first, second in itertools.combinations(self.sets, 2)
        ]

    @cached_property
    def numbers(self) -> dict[tuple[int, ...], int]:
        """Index in z of each T that occurs; sets are ordered by size, then by elements."""
        found = sorted(set(self._differences), key=lambda T: (len(T), T))
        return {T: number for number, T in enumerate(found)}

    @cached_property
    def _entries(self) -> IntArray:
        """Index in z of each entry above the diagonal, in row-major order."""
        return np.array([self.numbers[T] for T in self._differences])

    @cached_property
    def _upper(self) -> tuple[IntArray, IntArray]:
        rows, columns = np.triu_indices(self.order, 1)
        return rows.astype(np.int64), columns.astype(np.int64)

    @cached_property
    def _sums(self) -> sp.csr_array:
        """Matrix (q, p (p - 1) / 2) that adds up the entries above the diagonal with the same T."""
        count = len(self._entries)
        shape = (len(self.numbers), count)
        return sp.csr_array((np.ones(count), (self._entries, np.arange(count))), shape=shape)

    @cached_property
    def _program(self) -> KeptProblem:
        """Minimise tr S over psd S. The entries of S for each T add up to -w_T, a parameter.

        By the constraints, <S, M(z)> = tr S - <w, z>. Since <S, M(z)> >= 0 for psd M(z), tr S is an
        upper bound on <w, z>. The multipliers of the constraints are a maximiser z.
        """
        import cvxpy as cp

        weights = cp.Parameter(len(self.numbers))
        slack = cp.Variable((self.order, self.order), PSD=True)
        sums = 2 * self._sums @ slack[self._upper] == -weights
        goal, found = cp.Minimize(cp.trace(slack)), Multiplied(slack, sums)
        return KeptProblem(goal, [sums], [weights], found, cp.CLARABEL, REDUCED)

    def highest(self, weights: FloatArray) -> HighestMoments:
        """Largest <w, z> over psd M(z), for each row w of `weights` (b, q), with upper bounds.

        The bounds are valid up to rounding. If every T occurs only once above the diagonal, M(z)
        ranges over all correlation matrices. The bound is then nearly always at most a relative
        1e-9 above the maximum (see `highest_correlation`). Otherwise one conic program is solved
        for each row, and the bound is about a relative 1e-8 above the maximum.
        """
        if len(self.numbers) < len(self._entries):
            found = [self._programmed(each) for each in weights]
            moments = np.array([z for z, _ in found]).reshape(weights.shape)
            return HighestMoments(moments, np.array([bound for _, bound in found]))
        from geomdp.bodies.conic.support import highest_correlation  # compiled, so slow to import

        rows, columns = self._upper
        matrices = np.zeros((len(weights), self.order, self.order))
        matrices[:, rows, columns] = matrices[:, columns, rows] = weights[:, self._entries]
        best = highest_correlation(matrices)
        moments = np.empty(weights.shape)
        moments[:, self._entries] = best.matrices[:, rows, columns]
        return HighestMoments(moments, best.bounds)

    def _programmed(self, weights: FloatArray) -> tuple[FloatArray, float]:
        """`highest` for one row w (q,), by a conic program: z (q,) and the bound.

        The S found violates the constraints slightly. The bound takes the violation into account.
        Let r be the residual of the sums, and delta = max(0, -lambda_min(S)), so that S + delta I
        is psd. Then <S + delta I, M(z)> >= 0, <S, M(z)> = tr S - <w, z> + <r, z> and |z_T| <= 1.
        Together they give <w, z> <= tr S + p delta + ||r||_1.
        """
        length = float(np.linalg.norm(weights))
        if length == 0:
            return np.zeros(len(weights)), 0.0
        _, (slack, multipliers) = self._program.solve(weights / length)
        residual = weights / length + 2 * (self._sums @ slack[self._upper])
        deficit = max(0.0, -float(np.linalg.eigvalsh(slack)[0]))
        bound = float(np.trace(slack)) + self.order * deficit + float(np.abs(residual).sum())
        return self.repaired(multipliers), length * bound

    def repaired(self, moments: FloatArray) -> FloatArray:
        """z / (1 + delta) with delta = max(0, -lambda_min(M(z))); its moment matrix is psd."""
        matrix = np.eye(self.order)
        rows, columns = self._upper
        matrix[rows, columns] = matrix[columns, rows] = moments[self._entries]
        return moments / (1 + max(0.0, -float(np.linalg.eigvalsh(matrix)[0])))

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the sets alone, because the kept program contains the state of a solver."""
        return {"sets": self.sets}
