"""Bounds on the squared change of all residuals between neighbours, in units of their noise.

The residual of a set A of columns is a part of the table of A: the part that tables of fewer
columns do not determine (see `Residuals`). The precision of noise is 1 / variance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp.workloads.structure.column_sets import ColumnSets
from geomdp.workloads.structure.residuals import Residuals

#: Largest number of profiles (see `ProfileCost`). The costs of all profiles are computed: 2^22
#: float64 are 32 MB.
MAX_PROFILES = 1 << 22
#: Twice the largest relative error of one rounding in float64.
UNIT = 2.0**-52
#: Bound on the relative error of a sum of products that `math.fsum` rounds once. Each product is a
#: precision times a factor 1 - 1 / l for each column of a table. The column has l levels (values).
#: Each factor takes a few roundings. A table has at most 2^24 subsets of columns, so it has at most
#: 24 columns.
SUM_ERROR = 256 * UNIT


class ResidualCost(Protocol):
    """The cost of precisions: how much neighbours change all residuals, in units of the noise.

    It is the largest sum, over neighbours, of the squared change of the residual of each set A
    times its precision s_A. Gaussian noise of variances 1 / s_A is then as private as noise of
    variance 1 on one sum of l2 sensitivity sqrt(cost).
    """

    def at_most(self, precisions: FloatArray) -> float:
        """A proved upper bound on the cost for precisions s_A (sets,), rounding included."""

    def average(self) -> FloatArray:
        """The prices (sets,): `at_most` is at least s @ prices for all precisions s (sets,)."""


@dataclass(frozen=True, eq=False)
class AddRemoveCost:
    """The cost under add/remove, the same for all records: the sum over A of s_A p_A.

    `shares` (sets,) holds p_A = product over i in A of (1 - 1 / l_i), the squared length of the
    residual of one record, for l_i levels of column i.
    """

    shares: FloatArray

    def at_most(self, precisions: FloatArray) -> float:
        return math.fsum((self.shares * precisions).tolist()) * (1 + SUM_ERROR)

    def average(self) -> FloatArray:
        return self.shares


@dataclass(frozen=True, eq=False)
class CappedCost:
    """A bound under replace-one that adds up the largest change of each residual.

    If two records differ exactly in the columns D, the residual of A changes by a vector of squared
    length, with E = A & D not empty,

        c_A(D) = 2 prod over A - E of (1 - 1 / l_i)
                   (prod over E of (1 - 1 / l_i) - (-1)^|E| prod over E of 1 / l_i).

    It is below 2 p_A for even |E|, and 2 p_A (1 + prod over E of 1 / (l_i - 1)) for odd |E|. So it
    is largest, 2 p_A l / (l - 1), if E is the column of A with the fewest levels l. `caps` (sets,)
    holds l / (l - 1), and `shares` (sets,) holds p_A. For the empty set they are 1 and 0, because
    the number of records is public.
    """

    shares: FloatArray
    caps: FloatArray

    def at_most(self, precisions: FloatArray) -> float:
        terms = 2 * self.shares * self.caps * precisions
        return math.fsum(terms.tolist()) * (1 + SUM_ERROR)

    def average(self) -> FloatArray:
        return 2 * self.shares * self.caps


class ProfileCost:
    """The largest cost under replace-one over all sets D of columns in which two records differ.

    Columns are divided into classes g, with n_g columns and at most l_g levels. Sets A with a_g
    columns of each class are of one kind a, with the highest precision s_a. D has the profile d:
    d_g of its columns are in g. The result is the maximum over all profiles of

        cost(d) = 2 sum over kinds a of s_a (prod over g of K_g(0, a_g) - prod of K_g(d_g, a_g)),
        K_g(x, y) = sum over e of C(x, e) C(n_g - x, y - e) (-1)^e (l_g - 1)^(y - e) / l_g^y.

    It counts all possible sets of each kind. It is an upper bound, because c_A(D) of `CappedCost`
    is at least 0 and does not decrease in any l_i. It is exact if levels within classes and
    precisions within kinds are equal, and all possible sets of each kind are measured.
    """

    def __init__(self, residuals: Residuals, classes: Sequence[Sequence[int]]) -> None:
        self.classes = [list(members) for members in classes]
        levels = residuals.workload.levels
        class_of = np.zeros(len(levels), dtype=np.int64)
        for g, members in enumerate(self.classes):
            class_of[members] = g
        parts = [_kinds(group, class_of, len(self.classes)) for group in residuals.groups]
        #: For each kind, its number of columns of each class: (kinds, classes). `kind` (sets,)
        #: gives, for each set A, the position of its kind in this array.
        self.kinds, kind = np.unique(np.concatenate(parts), axis=0, return_inverse=True)
        self.kind = np.asarray(kind).ravel()
        self.most = self.kinds.max(axis=0).tolist()
        self.factors = [
            _krawtchouk(len(members), max(levels[i] for i in members), most)
            for members, most in zip(self.classes, self.most, strict=True)
        ]
        #: For each kind, 2 times the sum of p_A over all possible sets; 0 for the empty set. Each
        #: column counts with the largest number of levels in its class.
        self.totals = 2 * self._products([0] * len(self.classes))
        self.totals[~self.kinds.any(axis=1)] = 0.0

    @cached_property
    def complete(self) -> bool:
        """Whether `residuals` has all possible sets of columns of every kind that occurs."""
        counts = np.bincount(self.kind, minlength=len(self.kinds)).tolist()
        sizes = [len(members) for members in self.classes]
        full = [math.prod(map(math.comb, sizes, kind)) for kind in self.kinds.tolist()]
        return bool(counts == full)

    def _products(self, profile: Sequence[int]) -> FloatArray:
        """prod over g of K_g(d_g, a_g) for each kind a: (kinds,)."""
        found = np.ones(len(self.kinds))
        for factor, d, own in zip(self.factors, profile, self.kinds.T, strict=True):
            found *= factor[d, own]
        return found

    def costs(self, profile: Sequence[int]) -> FloatArray:
        """Cost (kinds,) of a unit of precision of each kind, for one profile."""
        found = np.maximum(self.totals - 2 * self._products(profile), 0.0)
        return np.where(self.totals > 0, found, 0.0)

    def largest(self, precisions: FloatArray) -> tuple[float, list[int]]:
        """A proved bound on the cost for precisions (kinds,), and the profile of largest cost."""
        tensor = np.zeros([most + 1 for most in self.most])
        tensor[tuple(self.kinds.T)] = np.where(self.totals > 0, precisions, 0.0)
        # Contract the first axis and append the profiles of its class as the last axis.
        for factor in self.factors:
            tensor = np.tensordot(tensor, factor, axes=([0], [1]))
        place = np.unravel_index(np.argmin(tensor), tensor.shape)
        whole = float(tensor.flat[0])  # the profile of no columns
        # All terms of `whole` are 0 or more. Every K_g(x, y) is at most K_g(0, y) in modulus. So
        # for every profile, the rounding errors are at most the bound on the rounding errors of
        # `whole`.
        operations = sum(most + 4 for most in self.most) + 8
        allowance = 4 * operations * UNIT * whole
        return 2 * (whole - float(tensor[place])) + allowance, [int(d) for d in place]

    def at_most(self, precisions: FloatArray) -> float:
        highest = np.zeros(len(self.kinds))
        np.maximum.at(highest, self.kind, precisions)
        return self.largest(highest)[0]

    def average(self) -> FloatArray:
        """2 P / k for each A, with P the sum of p_B over all possible sets B of its kind.

        k of these sets are measured. For uniform and independent levels, 2 p_B is the mean of
        c_B(D).
        """
        counts = np.bincount(self.kind, minlength=len(self.kinds))
        return np.asarray((self.totals / counts)[self.kind])


def replace_one_classes(residuals: Residuals) -> list[list[list[int]]]:
    """At most two divisions of the columns into classes, each with at most 2^22 profiles.

    The first has classes of similar levels. If at most 22 columns occur, the second has a class for
    each column.
    """
    levels = residuals.workload.levels
    used = sorted({i for group in residuals.groups for i in np.unique(group.columns).tolist()})
    by_level = [[i for i in used if levels[i] == n] for n in sorted({levels[i] for i in used})]
    while math.prod(len(members) + 1 for members in by_level) > MAX_PROFILES:
        if len(by_level) == 1:
            return []
        inverses = [1 / max(levels[i] for i in members) for members in by_level]
        gaps = [a - b for a, b in itertools.pairwise(inverses)]
        g = int(np.argmin(gaps))
        by_level[g : g + 2] = [by_level[g] + by_level[g + 1]]
    alone = [[i] for i in used]
    return [by_level, alone] if 2 ** len(used) <= MAX_PROFILES else [by_level]


def shares_of(residuals: Residuals) -> FloatArray:
    """The p_A (sets,): the squared length of the residual of one record for each set A."""
    shares = np.empty(residuals.count)
    for group in residuals.groups:
        shares[group.numbers] = math.prod(1 - 1 / levels for levels in group.shape)
    return shares


def capped_cost(residuals: Residuals) -> CappedCost:
    shares, caps = shares_of(residuals), np.ones(residuals.count)
    for group in residuals.groups:
        if group.shape:
            fewest = min(group.shape)
            caps[group.numbers] = fewest / (fewest - 1)
        else:
            shares[group.numbers] = 0.0
    return CappedCost(shares, caps)


def _kinds(group: ColumnSets, class_of: IntArray, classes: int) -> IntArray:
    """How many columns of each class the sets of a group have: (sets, classes)."""
    found = np.zeros((group.count, classes), dtype=np.int64)
    rows = np.arange(group.count)
    for own in class_of[group.columns].T:
        np.add.at(found, (rows, own), 1)
    return found


def _krawtchouk(count: int, levels: int, most: int) -> FloatArray:
    """The matrix of K_g(d, a) of `ProfileCost`, d to count, a to most, each entry rounded once."""
    found = np.empty((count + 1, most + 1))
    for d in range(count + 1):
        for a in range(most + 1):
            terms = (
                (-1) ** e * math.comb(d, e) * math.comb(count - d, a - e) * (levels - 1) ** (a - e)
                for e in range(min(a, d) + 1)
            )
            found[d, a] = sum(terms) / levels**a
    return found
