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

    Let the residual of each set A of columns have Gaussian noise of variance 1 / s_A. For two
    neighbours, multiply the squared change of each residual by s_A, and add up the products. The
    cost c is the largest sum for any two neighbours. The noisy residuals are as private as a single
    sum over the records that has l2 sensitivity sqrt(c) and Gaussian noise of variance 1.
    """

    def at_most(self, precisions: FloatArray) -> float:
        """A proved upper bound on the cost for precisions s_A (sets,), rounding included."""

    def average(self) -> FloatArray:
        """The prices (sets,): the price of a unit of precision on each residual.

        For all precisions s (sets,), the bound `at_most` is at least s @ prices.
        """


@dataclass(frozen=True, eq=False)
class AddRemoveCost:
    """The cost under add/remove, the same for all records: the sum over A of s_A p_A.

    p_A = product over i in A of (1 - 1 / l_i) is the squared length of the residual of one record,
    where column i has l_i levels.

    Parameters
    ----------
    shares : (sets,) array
        The p_A.
    """

    shares: FloatArray

    def at_most(self, precisions: FloatArray) -> float:
        """The sum, plus an allowance for rounding."""
        return math.fsum((self.shares * precisions).tolist()) * (1 + SUM_ERROR)

    def average(self) -> FloatArray:
        """The p_A."""
        return self.shares


@dataclass(frozen=True, eq=False)
class CappedCost:
    """A bound under replace-one that adds up the largest change of each residual.

    Let two records differ exactly in the columns D. Let E = A & D be the columns in both A and D.
    If E is not empty, the residual of A changes by a vector of squared length

        c_A(D) = 2 prod over A - E of (1 - 1 / l_i)
                   (prod over E of (1 - 1 / l_i) - (-1)^|E| prod over E of 1 / l_i).

    Let p_A be as in `AddRemoveCost`. For even |E|, c_A(D) is below 2 p_A. For odd |E|, c_A(D) is
    2 p_A (1 + prod over E of 1 / (l_i - 1)). So c_A(D) is largest if E is the single column of A
    with the fewest levels l. Then c_A(D) = 2 p_A l / (l - 1).

    Parameters
    ----------
    shares : (sets,) array
        The p_A, and 0 for the empty set: the number of records is public.
    caps : (sets,) array
        l / (l - 1) for each A, and 1 for the empty set.
    """

    shares: FloatArray
    caps: FloatArray

    def at_most(self, precisions: FloatArray) -> float:
        """The sum over A of s_A times the largest c_A(D), plus an allowance for rounding."""
        terms = 2 * self.shares * self.caps * precisions
        return math.fsum(terms.tolist()) * (1 + SUM_ERROR)

    def average(self) -> FloatArray:
        """The largest c_A(D) for each A. The bound adds up these prices times the s_A."""
        return 2 * self.shares * self.caps


class ProfileCost:
    """The largest cost under replace-one over all sets D of columns in which two records differ.

    Columns are divided into classes. Sets A with the same number of columns of each class are of
    one kind. The cost is computed as if each column had the largest number of levels in its class,
    and as if all possible sets of each kind were measured, with the highest precision of the kind.
    The result is an upper bound, because c_A(D) of `CappedCost` is at least 0 and does not decrease
    in any l_i. The bound is exact if two conditions hold: the columns of each class have equal
    numbers of levels, and all possible sets of each kind are measured, with the same precision. The
    bound depends on D only through its profile d: for each class g, d_g is the number of columns
    that are in g and in D. The result is the maximum over all profiles d of

        cost(d) = 2 sum over kinds a of s_a (prod over g of K_g(0, a_g) - prod of K_g(d_g, a_g)),
        K_g(x, y) = sum over e of C(x, e) C(n_g - x, y - e) (-1)^e (l_g - 1)^(y - e) / l_g^y,

    with binomial coefficients C. A set of kind a has a_g columns of each class g, and s_a is the
    highest precision of kind a. Class g has n_g columns, and l_g is their largest number of levels.

    Parameters
    ----------
    residuals : Residuals
        The sets A.
    classes : sequence of sequences of int
        Columns of each class. Every column of a set A is in one class.
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
        """The cost if all sets of a kind had the highest precision of any set of this kind."""
        highest = np.zeros(len(self.kinds))
        np.maximum.at(highest, self.kind, precisions)
        return self.largest(highest)[0]

    def average(self) -> FloatArray:
        """2 P / k for each A, where P is the sum of p_B over all possible sets B of the kind of A.

        p_B is computed as if each column had the largest number of levels in its class. k is the
        number of sets of this kind in `residuals`. For two records with uniform and independent
        levels, 2 p_B is the mean of c_B(D).
        """
        counts = np.bincount(self.kind, minlength=len(self.kinds))
        return np.asarray((self.totals / counts)[self.kind])


def replace_one_classes(residuals: Residuals) -> list[list[list[int]]]:
    """At most two divisions of the columns into classes, each with at most 2^22 profiles.

    The first division has a class for each number of levels l. While there are more than 2^22
    profiles, the two successive classes with the smallest difference of 1 / l are merged. If one
    class alone has too many profiles, the list is empty. If at most 22 columns occur, there is a
    second division, with a class for each column.
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
    """The bound that adds up the largest change of each residual."""
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
    """The matrix of K_g(d, a) of `ProfileCost` for one class g; each entry is rounded once.

    Row d is for d = 0, ..., count, and column a is for a = 0, ..., most.
    """
    found = np.empty((count + 1, most + 1))
    for d in range(count + 1):
        for a in range(most + 1):
            terms = (
                (-1) ** e * math.comb(d, e) * math.comb(count - d, a - e) * (levels - 1) ** (a - e)
                for e in range(min(a, d) + 1)
            )
            found[d, a] = sum(terms) / levels**a
    return found
