"""Matrices of moments of signs, and bounds on linear functions of them by semidefinite programs.

For signs s in {-1, 1}^d and sets A, B of attributes, s_A s_B = s_T with T the symmetric difference
of A and B. The mean of v v^T over records, v = (s_A1, ..., s_Ap), is psd, has ones on its diagonal,
and has equal entries wherever T is the same. It is a matrix M(z) with z_T the mean of s_T. The
programs here are solved in the dual, over psd S, where <S, M(z)> >= 0 gives certificates.
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
from geomdp.bodies.conic.support import highest_correlation

#: Largest order p of a moment matrix: an interior point method takes O(p^4) memory.
MAX_ORDER = 200
#: Residuals allowed where Clarabel makes no progress; the certificates account for them.
REDUCED = 1e-6


class HighestMoments(NamedTuple):
    """Moments z (b, q) with M(z) psd that maximise <w, z>, and upper bounds (b,) on the maxima."""

    moments: FloatArray
    bounds: FloatArray


class Multiplied(NamedTuple):
    """A variable of a program and the constraint on the sums of S, whose multipliers are z."""

    variable: Any
    sums: Any

    @property
    def value(self) -> tuple[FloatArray, FloatArray]:
        """The variable and the multipliers, once the program is solved."""
        return np.asarray(self.variable.value), np.asarray(self.sums.dual_value)


@dataclass(frozen=True, eq=False)
class MomentMatrix:
    """M(z)_ab = z_T for T the symmetric difference of A_a and A_b, 1 for a = b."""

    sets: Sequence[tuple[int, ...]]  # the distinct sets A_1..A_p of attribute numbers, 2 to 200

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
        """Place in z of each T that occurs, in ascending order of (size, elements)."""
        found = sorted(set(self._differences), key=lambda T: (len(T), T))
        return {T: number for number, T in enumerate(found)}

    @cached_property
    def _entries(self) -> IntArray:
        """Number of the moment at each entry above the diagonal."""
        return np.array([self.numbers[T] for T in self._differences])

    @cached_property
    def _upper(self) -> tuple[IntArray, IntArray]:
        rows, columns = np.triu_indices(self.order, 1)
        return rows.astype(np.int64), columns.astype(np.int64)

    @cached_property
    def _sums(self) -> sp.csr_array:
        """Sums the entries above the diagonal by moment: (q, p (p - 1) / 2)."""
        count = len(self._entries)
        shape = (len(self.numbers), count)
        return sp.csr_array((np.ones(count), (self._entries, np.arange(count))), shape=shape)

    @cached_property
    def _program(self) -> KeptProblem:
        """Minimise tr S over psd S whose entries for each T add up to -w_T; parameter w.

        Then <S, M(z)> >= 0 means <w, z> <= tr S. The multipliers of the sums are the best z.
        """
        import cvxpy as cp

        weights = cp.Parameter(len(self.numbers))
        slack = cp.Variable((self.order, self.order), PSD=True)
        sums = 2 * self._sums @ slack[self._upper] == -weights
        goal, found = cp.Minimize(cp.trace(slack)), Multiplied(slack, sums)
        return KeptProblem(goal, [sums], [weights], found, cp.CLARABEL, REDUCED)

    def highest(self, weights: FloatArray) -> HighestMoments:
        """Largest <w, z> over M(z) psd for rows w (b, q), with bounds that hold to rounding.

        If every T occurs once above the diagonal, M(z) is any correlation matrix, and the bound is
        within a relative 1e-9. Otherwise it is within about 1e-8, by one conic program per row.
        """
        if len(self.numbers) < len(self._entries):
            found = [self._programmed(each) for each in weights]
            moments = np.array([z for z, _ in found]).reshape(weights.shape)
            return HighestMoments(moments, np.array([bound for _, bound in found]))
        rows, columns = self._upper
        matrices = np.zeros((len(weights), self.order, self.order))
        matrices[:, rows, columns] = matrices[:, columns, rows] = weights[:, self._entries]
        best = highest_correlation(matrices)
        moments = np.empty(weights.shape)
        moments[:, self._entries] = best.matrices[:, rows, columns]
        return HighestMoments(moments, best.bounds)

    def _programmed(self, weights: FloatArray) -> tuple[FloatArray, float]:
        """The same for one row.

        S + delta I is psd for delta = max(0, -lambda_min(S)), and <S, M(z)> = tr S - <w, z> +
        <r, z> with r the residual of the sums and |z_T| <= 1, so <w, z> <= tr S + p delta +
        ||r||_1.
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
        """z / (1 + delta), delta = max(0, -lambda_min(M(z))), for which M is psd."""
        matrix = np.eye(self.order)
        rows, columns = self._upper
        matrix[rows, columns] = matrix[columns, rows] = moments[self._entries]
        return moments / (1 + max(0.0, -float(np.linalg.eigvalsh(matrix)[0])))

    def __getstate__(self) -> dict[str, Any]:
        """The description alone: kept problems contain solver state."""
        return {"sets": self.sets}
