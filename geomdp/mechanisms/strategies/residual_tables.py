"""A bound on the cost of noisy residuals, for workloads of a few tables with many columns each."""

from __future__ import annotations

import math

import numpy as np

from geomdp._typing import FloatArray
from geomdp.mechanisms.strategies.residual_costs import SUM_ERROR, UNIT, shares_of
from geomdp.workloads.structure.column_sets import SameShape, Within
from geomdp.workloads.structure.residuals import Residuals

#: Largest sum over tables of 4^(number of columns). Each set of columns within a table is compared
#: with every set within the table. The matrix products for 2^26 pairs take a tenth of a second.
#: `_changes` takes much longer if a table has many columns.
MAX_COMPARED = 1 << 26


class TableCost:
    """A bound on the cost under replace-one: the sum of the largest changes of the tables.

    The precision s_A of a set A is divided among the tables T that contain A, in proportion to
    w_T^2 / product over T - A of l_j, for the weight w_T and the levels l_j. With shares h_AT, and
    c_A(D) of `CappedCost`, records that differ in the columns D cost

        sum over A of s_A c_A(D) = sum over T of (sum over A in T of h_AT s_A c_A(D & T)).

    The bound is the sum over T of the largest value in brackets. For equal noise on all answers it
    is the squared l2 sensitivity, so its best precisions are never worse than equal noise.
    """

    def __init__(self, residuals: Residuals) -> None:
        self.residuals = residuals
        self._shares = shares_of(residuals)
        self._shares[0] = 0.0  # the number of records is public
        #: The precisions (sets,) of the residuals if all answers have noise of variance 1.
        self.equal = np.zeros(residuals.count)
        for tables in residuals.tables:
            for own in tables.within:
                numbers = own.group.first + own.rows
                self.equal += np.bincount(numbers, self._part(tables, own), residuals.count)
        self.equal[0] = 0.0
        self._changes = {tables.shape: _changes(tables) for tables in residuals.tables}

    def _part(self, tables: SameShape, own: Within) -> FloatArray:
        """w_T^2 / product over T - A of l_j for each table T."""
        rest = math.prod(n for i, n in enumerate(tables.shape) if i not in own.axes)
        weights = self.residuals.workload.table_weights[tables.numbers]
        return np.asarray(weights**2 / rest)

    def at_most(self, precisions: FloatArray) -> float:
        found: list[float] = []
        for tables in self.residuals.tables:
            changes = self._changes[tables.shape]
            held = np.zeros((len(tables.numbers), len(changes)))
            for place, own in enumerate(tables.within):
                if own.axes:
                    numbers = own.group.first + own.rows
                    share = self._part(tables, own) / self.equal[numbers]
                    held[:, place] = precisions[numbers] * share
            found += (held @ changes).max(axis=1).tolist()
        # The shares of a set add up to 1, up to a rounding for each table. The rounding error of
        # c_A(D) is a tiny share of the mean of c_A over all D. So the rounding error of the sum of
        # a table is a tiny share of the mean of this sum over all D. The mean is at most the
        # largest value.
        operations = len(self.residuals.workload.tables) + max(map(_subsets, self.residuals.tables))
        return math.fsum(found) * (1 + SUM_ERROR + 4 * operations * UNIT)

    def average(self) -> FloatArray:
        """Mean of c_A(D) for two uniform records: 2 prod over A of (1 - 1 / l_j); 0 for empty A."""
        return 2 * self._shares


def table_cost(residuals: Residuals) -> TableCost | None:
    """The bound `TableCost`; None if it compares more than 2^26 pairs of sets of columns."""
    compared = sum(4 ** len(table) for table in residuals.workload.tables)
    return TableCost(residuals) if compared <= MAX_COMPARED else None


def _subsets(tables: SameShape) -> int:
    return len(tables.within)


def _changes(tables: SameShape) -> FloatArray:
    """An array (sets, sets): c_A(D) for all sets A and D of columns of one table."""
    found = np.empty((len(tables.within), len(tables.within)))
    for a, own in enumerate(tables.within):
        p = math.prod(1 - 1 / tables.shape[i] for i in own.axes)
        for d, other in enumerate(tables.within):
            signs = ((i not in other.axes) - 1 / tables.shape[i] for i in own.axes)
            found[a, d] = 2 * (p - math.prod(signs))
    return np.maximum(found, 0.0)
