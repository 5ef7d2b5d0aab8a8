"""Moment matrices of signs, and bounds on linear functions of moments by semidefinite programs.

For signs s in {-1, 1}^d, let s_A be the product of the s_i for i in a set A of attributes. Then s_A
s_B = s_T, where T is the symmetric difference of A and B. For fixed sets A_1..A_p and v = (s_A1,
..., s_Ap), the mean of v v^T over records is a positive semidefinite (psd) matrix M(z) with
diagonal 1. Its entry for A_a and A_b is z_T, the mean of s_T; z lists the z_T of the q different
sets T. The programs are solved in the dual, over psd matrices S. Each S proves a bound, because <S,
M(z)> >= 0.
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
    """For b vectors w: moments z (b, q) that maximise <w, z> over psd M(z), and bounds (b,)."""

    moments: FloatArray
    bounds: FloatArray


class Multiplied(NamedTuple):
    """The variable S of a program, and a constraint on the entries of S with multipliers z."""

    variable: Any
    sums: Any

    @property
    def value(self) -> tuple[FloatArray, FloatArray]:
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
        return len(self.sets)

    @cached_property
    def _differences(self) -> list[tuple[int, ...]]:
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
        """Minimise tr S >= <w, z> over psd S with entries that add up to -w_T for each T."""
        import cvxpy as cp

        weights = cp.Parameter(len(self.numbers))
        slack = cp.Variable((self.order, self.order), PSD=True)
        sums = 2 * self._sums @ slack[self._upper] == -weights
        goal, found = cp.Minimize(cp.trace(slack)), Multiplied(slack, sums)
        return KeptProblem(goal, [sums], [weights], found, cp.CLARABEL, REDUCED)

    def highest(self, weights: FloatArray) -> HighestMoments:
        """Largest <w, z> over psd M(z) for rows w of `weights` (b, q), with valid upper bounds."""
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
        """z (q,) and the bound <w, z> <= tr S + p delta + ||r||_1 for one row w, where r is the
        residual of the sums, S + delta I is psd, and |z_T| <= 1.
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
