"""The best Gaussian noise on the residuals of tables: strategies of columns, and variances.

`Residuals` has one residual for each set A of columns. The precision of noise is 1 / variance, and
its cost (`ResidualCost`) bounds the squared sensitivity of all residuals, in units of the noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import scipy
from flint import arb_mat, ctx

from geomdp._numerics.linalg import significant, zero_sum_basis
from geomdp._typing import FloatArray, IntArray
from geomdp.privacy import Adjacency
from geomdp.workloads.structure import (
    Column,
    ColumnSets,
    Residuals,
    SameShape,
    Within,
    categories,
    contrast,
)
from geomdp.workloads.tables import ProductQueries, TableQueries

# Bounds on the squared change of all residuals between neighbours, in units of their noise.

#: Largest number of profiles (see `ProfileCost`), whose costs are all computed and take 32 MB.
MAX_PROFILES = 1 << 22
#: Twice the largest relative error of one rounding in float64.
UNIT = 2.0**-52
#: Bound on the relative error of a sum, rounded once, of products of a precision and factors
#: 1 - 1 / l, with a few roundings for each of at most 24 columns of a table.
SUM_ERROR = 256 * UNIT


@dataclass(frozen=True, eq=False)
class LinearCost:
    """The sum over A of a price (`prices`, (sets,)) times the precision s_A."""

    prices: FloatArray

    def at_most(self, precisions: FloatArray) -> float:
        """A proved upper bound on the cost of precisions s_A (sets,), rounding included."""
        return math.fsum((self.prices * precisions).tolist()) * (1 + SUM_ERROR)


def shares_of(residuals: Residuals) -> FloatArray:
    """The p_A (sets,), the product over i in A of (1 - 1 / l_i), or of `Column.share`: the largest
    squared lengths of residuals of one record, so the prices under add/remove.
    """
    shares = np.empty(residuals.count)
    for group in residuals.groups:
        shares[group.numbers] = math.prod(kind.share_float for kind in group.kinds)
    return shares


def capped_cost(residuals: Residuals) -> LinearCost:
    """A bound under replace-one that adds up the largest change of each residual.

    If two records differ exactly in the columns D, the squared length by which the residual of A
    changes is, with E = A & D not empty,

        c_A(D) = 2 p_A (1 - (-1)^|E| prod over E of 1 / (l_i - 1)).

    It is largest, 2 p_A l / (l - 1), if E is the column of A with the fewest levels l. For other
    noise (`Column`), against / share takes the place of 1 / (l - 1).
    """
    prices = 2 * shares_of(residuals)
    prices[0] = 0.0  # the number of records, the residual of the empty set, is public
    for group in residuals.groups:
        if group.kinds:
            largest = max(kind.against / kind.share for kind in group.kinds)
            prices[group.numbers] *= float(1 + largest)
    return LinearCost(prices)


class ProfileCost:
    """The largest cost under replace-one over all sets D of columns in which two records differ.

    Columns are divided into classes g, with n_g columns and at most l_g levels. Sets A with a_g
    columns of each class are of one kind a, with the highest precision s_a. D has the profile d:
    d_g of its columns are in g. The result is the maximum over all profiles of

        cost(d) = 2 sum over kinds a of s_a (prod over g of K_g(0, a_g) - prod of K_g(d_g, a_g)),
        K_g(x, y) = sum over e of C(x, e) C(n_g - x, y - e) (-1)^e (l_g - 1)^(y - e) / l_g^y.

    It counts all possible sets of each kind. It is an upper bound, because c_A(D) of `capped_cost`
    is at least 0 and does not decrease in any l_i. It is exact if levels within classes and
    precisions within kinds are equal, and all possible sets of each kind are measured.

    For other noise (`Column`), u = share and v = against take the places of 1 - 1 / l and 1 / l. A
    pair of records costs the sum of 2 s_A (prod over A of u_i - prod over A of g_i), where g_i is
    the inner product of the images of their levels, -v_i <= g_i <= u_i. The sum is linear in each
    g_i, so it is largest if each g_i is -v_i (i in D) or u_i, and increases with u_i and v_i.
    """

    def __init__(self, residuals: Residuals, classes: Sequence[Sequence[int]]) -> None:
        self.classes = [list(members) for members in classes]
        columns = residuals.columns
        class_of = np.zeros(len(columns), dtype=np.int64)
        for g, members in enumerate(self.classes):
            class_of[members] = g
        parts = [_kinds(group, class_of, len(self.classes)) for group in residuals.groups]
        #: For each kind, its number of columns of each class (kinds, classes), and for each set A,
        #: the position of its kind (sets,).
        self.kinds, kind = np.unique(np.concatenate(parts), axis=0, return_inverse=True)
        self.kind = np.asarray(kind).ravel()
        self.most = self.kinds.max(axis=0).tolist()
        self.factors = [
            _krawtchouk(len(members), *_largest([columns[i] for i in members]), most)
            for members, most in zip(self.classes, self.most, strict=True)
        ]
        #: For each kind, 2 times the sum of p_A over all possible sets; 0 for the empty set.
        self.totals = 2 * self._products([0] * len(self.classes))
        self.totals[~self.kinds.any(axis=1)] = 0.0
        self.counts = np.bincount(self.kind, minlength=len(self.kinds))
        #: Prices (sets,), for which the cost is at least s @ prices: means of c_A(D) for uniform
        #: levels, or more if some sets of a kind are not measured.
        self.prices = np.asarray((self.totals / self.counts)[self.kind])

    @property
    def complete(self) -> bool:
        """Whether `residuals` has all possible sets of columns of every kind that occurs."""
        sizes = [len(members) for members in self.classes]
        full = [math.prod(map(math.comb, sizes, kind)) for kind in self.kinds.tolist()]
        return bool(self.counts.tolist() == full)

    def _products(self, profile: Sequence[int]) -> FloatArray:
        """prod over g of K_g(d_g, a_g) for each kind a: (kinds,)."""
        found = np.ones(len(self.kinds))
        for factor, d, own in zip(self.factors, profile, self.kinds.T, strict=True):
            found *= factor[d, own]
        return found

    def costs(self, profile: Sequence[int]) -> FloatArray:
        """Cost (kinds,) of a unit of precision of each kind of total above 0, for one profile."""
        return np.maximum(self.totals - 2 * self._products(profile), 0.0)

    def largest(self, precisions: FloatArray) -> tuple[float, list[int]]:
        """A proved bound on the cost for precisions (kinds,), and the profile of largest cost."""
        tensor = np.zeros([most + 1 for most in self.most])
        tensor[tuple(self.kinds.T)] = np.where(self.totals > 0, precisions, 0.0)
        # Contract the first axis and append the profiles of its class as the last axis.
        for factor in self.factors:
            tensor = np.tensordot(tensor, factor, axes=([0], [1]))
        place = np.unravel_index(np.argmin(tensor), tensor.shape)
        whole = float(tensor.flat[0])  # the profile of no columns
        # All terms of `whole` are 0 or more, and |K_g(x, y)| <= K_g(0, y), so this bound on its
        # rounding errors holds for every profile.
        operations = sum(most + 4 for most in self.most) + 8
        allowance = 4 * operations * UNIT * whole
        return 2 * (whole - float(tensor[place])) + allowance, [int(d) for d in place]

    def at_most(self, precisions: FloatArray) -> float:
        """A proved upper bound on the cost of precisions (sets,)."""
        highest = np.zeros(len(self.kinds))
        np.maximum.at(highest, self.kind, precisions)
        return self.largest(highest)[0]


def replace_one_classes(residuals: Residuals) -> list[list[list[int]]]:
    """Divisions of the columns into classes of at most 2^22 profiles: by levels, and one by one."""
    columns = residuals.columns
    used = sorted({i for group in residuals.groups for i in np.unique(group.columns).tolist()})
    like = [(kind.root is not None, _levels_like(kind)) for kind in columns]
    by_level = [[i for i in used if like[i] == one] for one in sorted({like[i] for i in used})]
    while math.prod(len(members) + 1 for members in by_level) > MAX_PROFILES:
        if len(by_level) == 1:
            return []
        inverses = [1 / max(_levels_like(columns[i]) for i in members) for members in by_level]
        gaps = [a - b for a, b in itertools.pairwise(inverses)]
        g = int(np.argmin(gaps))
        by_level[g : g + 2] = [by_level[g] + by_level[g + 1]]
    alone = [[i] for i in used]
    return [by_level, alone] if 2 ** len(used) <= MAX_PROFILES else [by_level]


def _kinds(group: ColumnSets, class_of: IntArray, classes: int) -> IntArray:
    """How many columns of each class the sets of a group have: (sets, classes)."""
    own = class_of[group.columns]
    return np.stack([(own == g).sum(axis=1) for g in range(classes)], axis=1)


def _levels_like(kind: Column) -> float:
    """The levels l, or the l for which against / share is 1 / (l - 1)."""
    return kind.levels if kind.root is None else float(1 + kind.share / kind.against)


def _largest(columns: Sequence[Column]) -> tuple[Fraction, Fraction]:
    """A share and an against for which no pair of records costs less than for one of `columns`."""
    if all(kind.root is None for kind in columns):
        most = max(columns, key=lambda kind: kind.levels)
        return most.share, most.against
    return max(kind.share for kind in columns), max(kind.against for kind in columns)


def _krawtchouk(count: int, share: Fraction, against: Fraction, most: int) -> FloatArray:
    """The matrix of K_g(d, a) of `ProfileCost`, d to count, a to most, each entry rounded once."""
    found = np.empty((count + 1, most + 1))
    for d in range(count + 1):
        for a in range(most + 1):
            terms = (
                math.comb(d, e) * math.comb(count - d, a - e) * (-against) ** e * share ** (a - e)
                for e in range(min(a, d) + 1)
            )
            found[d, a] = float(sum(terms))
    return found


# A bound for workloads of a few tables with many columns each.

#: Largest sum over tables of 4^(number of columns), as all sets of columns within a table are
#: compared.
MAX_COMPARED = 1 << 26


class TableCost:
    """A bound on the cost under replace-one: the sum of the largest changes of the tables.

    The precision s_A of a set A is divided among the tables T that contain A, with shares h_AT in
    proportion to w_T^2 / product over T - A of l_j, for the weight w_T and the levels l_j. Records
    that differ in the columns D cost sum over T of (sum over A in T of h_AT s_A c_A(D & T)), with
    c_A(D) of `capped_cost`. The bound is the sum over T of the largest value in brackets. For equal
    noise on all answers it is the squared l2 sensitivity.
    """

    def __init__(self, residuals: Residuals) -> None:
        self.residuals = residuals
        #: The mean of c_A(D) for two uniform records (sets,); 0 for the public number of records.
        self.prices = 2 * shares_of(residuals)
        self.prices[0] = 0.0
        #: The precisions (sets,) of the residuals if all answers have noise of variance 1.
        self.equal = np.zeros(residuals.count)
        for tables in residuals.tables:
            for own in tables.within:
                numbers = own.group.first + own.rows
                self.equal += np.bincount(numbers, self._part(tables, own), residuals.count)
        self.equal[0] = 0.0
        self._changes = {tables.kinds: _changes(tables) for tables in residuals.tables}

    def _part(self, tables: SameShape, own: Within) -> FloatArray:
        """w_T^2 / product over T - A of l_j for each table T."""
        rest = math.prod(n for i, n in enumerate(tables.shape) if i not in own.axes)
        weights = self.residuals.cells.table_weights[tables.numbers]
        return np.asarray(weights**2 / rest)

    def at_most(self, precisions: FloatArray) -> float:
        """A proved upper bound on the cost of precisions (sets,)."""
        found: list[float] = []
        for tables in self.residuals.tables:
            changes = self._changes[tables.kinds]
            held = np.zeros((len(tables.numbers), len(changes)))
            for place, own in enumerate(tables.within):
                if own.axes:
                    numbers = own.group.first + own.rows
                    share = self._part(tables, own) / self.equal[numbers]
                    held[:, place] = precisions[numbers] * share
            found += (held @ changes).max(axis=1).tolist()
        # The shares of a set add up to 1, up to a rounding for each table. The rounding error of a
        # table is a tiny share of the mean over all D, which is at most the largest value.
        subsets = max(len(tables.within) for tables in self.residuals.tables)
        operations = len(self.residuals.cells.tables) + subsets
        return math.fsum(found) * (1 + SUM_ERROR + 4 * operations * UNIT)


def _changes(tables: SameShape) -> FloatArray:
    """An array (sets, sets): bounds on c_A(D) for all sets A and D of columns of one table."""
    found = np.empty((len(tables.within), len(tables.within)))
    for a, own in enumerate(tables.within):
        p = math.prod(tables.kinds[i].share_float for i in own.axes)
        for d, other in enumerate(tables.within):
            signs = (
                -float(tables.kinds[i].against) if i in other.axes else tables.kinds[i].share_float
                for i in own.axes
            )
            found[a, d] = 2 * (p - math.prod(signs))
    return np.maximum(found, 0.0)


#: The largest sum, over neighbours, of the squared change of the residual of each set A times its
#: precision s_A. Gaussian noise of variances 1 / s_A is as private as noise of variance 1 on a sum
#: of l2 sensitivity sqrt(cost). `at_most` is a proved upper bound, and s @ `prices` is below it.
ResidualCost = LinearCost | ProfileCost | TableCost

# The search for the best variances.

#: The search stops if no profile costs more than 1 + `GAP`, by which variances are then raised, or
#: after `MAX_ROUNDS` rounds, each of which adds one profile.
GAP, MAX_ROUNDS = 1e-7, 100
#: Beyond this number of kinds, a formula replaces the search. A round of 1000 kinds takes a second.
MAX_KINDS = 1 << 10
#: `is_best` is True only if the energy found is proved to exceed the least by at most this share.
UNSOLVED = 1e-3
#: `_between` tries `STEPS` + 1 mixtures of two choices of precisions.
STEPS = 8
#: The barrier method stops at the relative gap `BARRIER_GAP`, and multiplies its parameter t by
#: `SHARPENING` in each round of at most `MAX_STEPS` Newton steps, until the square of the Newton
#: decrement is at most `DECREMENT`.
BARRIER_GAP, SHARPENING, MAX_STEPS, DECREMENT = 1e-9, 20.0, 50, 1e-9


@dataclass(frozen=True, eq=False)
class ResidualScales:
    """Variances (sets,) of the noise on residuals, at a cost of 1; 0 for a public residual.

    The unit is the variance that makes a sum of l2 sensitivity 1 private. `energy` is the sum of
    squared errors of all answers. `is_best` is that of `ResidualGaussian`.
    """

    variances: FloatArray
    cost: ResidualCost
    energy: float
    is_best: bool = False


def best_scales(residuals: Residuals, adjacency: Adjacency) -> ResidualScales:
    """The variances of the least energy found, among variances with a cost of at most 1.

    Let v_A be the sum of squared errors of all answers for noise of variance 1 on the residual of
    A. By Schur's lemma, the covariance of the best linear unbiased mechanism with Gaussian noise,
    averaged over renamings of levels, is a multiple of the identity on every residual. Under
    add/remove the best is sigma_A^2 = sqrt(p_A / v_A) (sum over B of sqrt(p_B v_B)). Under
    replace-one the problem is convex in the precisions. It is solved for a growing list of
    profiles, until none costs more than 1 + 1e-7, or by `_closed_form` for many kinds.
    """
    energies = residuals.energies()
    if not energies.min() > 0:
        raise ArithmeticError(f"every residual must have an energy above 0, got {energies.min()}")
    if adjacency is Adjacency.ADD_REMOVE:
        alone = LinearCost(shares_of(residuals))
        closed = _calibrated(energies, _closed_form(energies, alone), alone)
        return replace(closed, is_best=residuals.categorical)
    found: list[ResidualScales] = []
    for classes in replace_one_classes(residuals):
        cost = ProfileCost(residuals, classes)
        few = int((cost.totals > 0).sum()) <= MAX_KINDS
        precisions = _optimised(energies, cost) if few else _closed_form(energies, cost)
        found.append(_calibrated(energies, precisions, cost))
        if cost.complete and _alike(energies, cost):
            # The search constrains only some profiles, so its energy is at most the least. Dividing
            # the precisions by the largest cost raises the energy by this factor.
            is_best = few and cost.at_most(precisions) <= 1 + UNSOLVED and residuals.categorical
            break
    else:
        is_best = False
        capped = capped_cost(residuals)
        found.append(_calibrated(energies, _closed_form(energies, capped), capped))
        if sum(4 ** len(table) for table in residuals.cells.tables) <= MAX_COMPARED:
            by_table = TableCost(residuals)
            mixed = _between(energies, by_table)
            found += [_calibrated(energies, precisions, by_table) for precisions in mixed]
    return replace(min(found, key=lambda scales: scales.energy), is_best=is_best)


def _calibrated(energies: FloatArray, precisions: FloatArray, cost: ResidualCost) -> ResidualScales:
    """The variances for the multiple of `precisions` that costs 1."""
    moving = precisions > 0
    variances = np.zeros_like(precisions)
    variances[moving] = cost.at_most(precisions) / precisions[moving]
    return ResidualScales(variances, cost, math.fsum((energies * variances).tolist()))


def _closed_form(energies: FloatArray, cost: ResidualCost) -> FloatArray:
    """Precisions sqrt(v / c) for `energies` v and prices c; best if the cost is c @ precisions."""
    precisions = np.zeros_like(energies)
    np.divide(energies, cost.prices, out=precisions, where=cost.prices > 0)
    return np.sqrt(precisions)


def _between(energies: FloatArray, cost: TableCost) -> list[FloatArray]:
    """Precisions for equal noise on all answers, those of `_closed_form`, and mixtures of both."""
    closed = _closed_form(energies, cost)
    closed = closed / cost.at_most(closed)
    equal = cost.equal / cost.at_most(cost.equal)
    return [equal ** (1 - share) * closed**share for share in np.linspace(0, 1, STEPS + 1).tolist()]


def _alike(energies: FloatArray, cost: ProfileCost) -> bool:
    """Whether all sets of a kind have the same energy, so that their best precisions are equal."""
    highest = np.zeros(len(cost.kinds))
    np.maximum.at(highest, cost.kind, energies)
    return bool((energies >= highest[cost.kind] * (1 - 1e-9)).all())


def _optimised(energies: FloatArray, cost: ProfileCost) -> FloatArray:
    """Precisions (sets,) of least energy, equal within each kind."""
    summed = np.bincount(cost.kind, energies, minlength=len(cost.kinds))
    moving = cost.totals > 0
    # Start from the best precisions for the mean cost of two random records, a lower bound.
    start = np.zeros(len(summed))
    start[moving] = np.sqrt(summed[moving] / cost.totals[moving])
    start /= cost.totals @ start
    rows = [cost.totals]
    precisions = start
    for _ in range(MAX_ROUNDS):
        spent, profile = cost.largest(precisions)
        if spent <= 1 + GAP:
            break
        rows.append(cost.costs(profile))
        precisions = np.zeros(len(summed))
        precisions[moving] = start[moving] * _minimised(
            summed[moving] / start[moving], np.array(rows)[:, moving] * start[moving]
        )
    return np.asarray(precisions[cost.kind])


def _minimised(energies: FloatArray, costs: FloatArray) -> FloatArray:
    """The x (a,) > 0 that minimise the sum of energies / x subject to costs @ x <= 1.

    `energies` (a,) and some entry of each column of `costs` (b, a) are above 0. A barrier method:
    at the minimum of t (sum of energies / x) - sum of log(1 - costs @ x), the sum is at most b / t
    above the least.
    """
    energies = energies / energies.sum()
    x = np.full(len(energies), 0.5 / costs.sum(axis=1).max())
    sharpness = 1.0
    while sharpness * BARRIER_GAP < len(costs):
        sharpness *= SHARPENING
        for _ in range(MAX_STEPS):
            slack = 1 - costs @ x
            slope = costs.T @ (1 / slack) - sharpness * energies / x**2
            pulled = costs / slack[:, None]
            bend = pulled.T @ pulled + np.diag(2 * sharpness * energies / x**3)
            step = -np.linalg.solve(bend, slope)
            if -slope @ step <= DECREMENT:
                break
            x = _descended(x, step, slope, sharpness * energies, costs)
    return x


def _descended(
    x: FloatArray, step: FloatArray, slope: FloatArray, energies: FloatArray, costs: FloatArray
) -> FloatArray:
    """x plus the longest of step, step / 2, step / 4, ... that lowers `value` enough, or x."""

    def value(at: FloatArray) -> float:
        slack = 1 - costs @ at
        if at.min() <= 0 or slack.min() <= 0:
            return math.inf
        return float((energies / at).sum() - np.log(slack).sum())

    start, length = value(x), 1.0
    while length > 1e-10:
        moved = x + length * step
        # The last term allows for rounding errors of the value.
        if value(moved) <= start + 0.1 * length * float(slope @ step) + 1e-13 * abs(start):
            return moved
        length /= 2
    return x


# Strategies of columns for products of queries.

#: Precision that is added in every direction, so that directions that no query needs are measured.
REST = 1e-7
#: Largest modulus of the logarithm of a weight. A level of less weight hardly constrains X.
LOGS = 16.0
#: Smallest eigenvalue, as a share of the largest, of a matrix whose root is taken.
LEAST = 1e-28
#: Working precision, in bits, of the proved bounds on the images of levels.
PROOF_BITS = 160


def strategy_columns(workload: TableQueries | ProductQueries) -> list[Column]:
    """The columns of a workload, each with a strategy for the differences of its counts."""
    if isinstance(workload, TableQueries):
        return [categories(levels) for levels in workload.levels]
    known: dict[bytes, Column] = {}
    found = []
    for levels, factor in zip(workload.workload.levels, workload.factors, strict=True):
        if factor is None:
            found.append(categories(levels))
            continue
        key = levels.to_bytes(2) + factor.tobytes()
        if key not in known and levels > 2:
            known[key] = proved_column(factor, _noise_root(best_precision(factor)))
        elif key not in known:  # two levels have a single difference
            known[key] = replace(categories(levels), factor=factor)
        found.append(known[key])
    return found


def best_precision(factor: FloatArray) -> FloatArray:
    """The X (l - 1, l - 1) of least tr(G X^-1) with diag(H X H^T) <= 1, up to tolerances.

    H is the `zero_sum_basis` of the l levels, and G = H^T W^T W H for the `factor` W (queries, l).
    tr(G X^-1) is the variance of all queries together. By duality it is the largest value over l
    weights of tr((D^1/2 G D^1/2)^1/2)^2 / sum of weights, D = H^T diag(weights) H (X-PROD).
    """
    levels = factor.shape[1]
    basis = zero_sum_basis(levels)
    _, singular, directions = np.linalg.svd(
        (factor / np.abs(factor).max()) @ basis, full_matrices=False
    )
    # G = K K^T, with a column of K for each direction that the queries need.
    needed = significant(singular)
    half = (directions[needed] * singular[needed, None]).T

    def solved(weights: FloatArray) -> tuple[FloatArray, float]:
        """The best X for these weights, and tr((D^1/2 G D^1/2)^1/2)."""
        weighted = half.T @ (basis.T @ (weights[:, None] * basis)) @ half
        squares, turned = np.linalg.eigh(weighted)
        roots = np.sqrt(np.maximum(squares, LEAST * squares.max()))
        moved = half @ turned
        return (moved / roots) @ moved.T, float(roots.sum())

    def lost(logs: FloatArray) -> tuple[float, FloatArray]:
        weights = np.exp(logs)
        precision, total = solved(weights)
        slopes = weights / weights.sum() - weights * _diagonal(basis, precision) / total
        return float(np.log(weights.sum()) - 2 * np.log(total)), slopes

    found = scipy.optimize.minimize(
        lost,
        np.zeros(levels),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-LOGS, LOGS)] * levels,
        options={"ftol": 1e-15, "gtol": 1e-9},
    )
    precision, _ = solved(np.exp(found.x))
    precision = precision / _diagonal(basis, precision).max() + REST * np.eye(levels - 1)
    return np.asarray(precision / _diagonal(basis, precision).max())


def _diagonal(basis: FloatArray, precision: FloatArray) -> FloatArray:
    return np.asarray(((basis @ precision) * basis).sum(axis=1))


def _noise_root(precision: FloatArray) -> FloatArray:
    """L (l - 1, l - 1), lower triangular, with L L^T the covariance on the differences C h."""
    levels = len(precision) + 1
    on_differences = contrast(levels) @ zero_sum_basis(levels)
    covariance = on_differences @ np.linalg.solve(precision, on_differences.T)
    return np.asarray(np.linalg.cholesky((covariance + covariance.T) / 2))


def proved_column(factor: FloatArray, root: FloatArray) -> Column:
    """The column with noise L g for a multiple L of `root`, such that |b_j|^2 <= 1 is proved.

    b_j = L^-1 C e_j is computed in ball arithmetic for the float64 entries of L, taken as exact.
    """
    levels = len(root) + 1
    images = _inner_products(root)
    largest = max(float(images[j, j].upper()) for j in range(levels))
    scaled, more = root * np.sqrt(largest), 2.0**-50
    while not _at_most_1(images := _inner_products(scaled)):
        scaled, more = root * (np.sqrt(largest) * (1 + more)), 2 * more
    against = max(Fraction(float((-images[j, k]).upper())) for j in range(levels) for k in range(j))
    # The conversion to float64 rounds to nearest.
    against *= 1 + Fraction(1, 2**50)
    return Column(levels, factor, scaled, Fraction(1), min(against, Fraction(1)))


def _inner_products(root: FloatArray) -> arb_mat:
    """<b_j, b_k> for all levels j and k, as balls."""
    with ctx.workprec(PROOF_BITS):
        images = arb_mat(root.tolist()).solve(arb_mat(contrast(len(root) + 1).tolist()))
        return images.transpose() * images


def _at_most_1(images: arb_mat) -> bool:
    return all(bool(images[j, j] <= 1) for j in range(images.nrows()))


# A lower bound on the error of all linear mechanisms with Gaussian noise.

#: Largest number of coordinates of residuals for which the bound is computed, in seconds.
MAX_DIMENSION = 1 << 11


def least_energy(residuals: Residuals, adjacency: Adjacency) -> float | None:
    """A lower bound on the energy of noise at l2 sensitivity 1 (SVD bound); None if it takes long.

    Let X be the information matrix of the measurements, over N elements, and M = W^T W for the
    queries W. The energy is tr(M X^-1) >= tr(M^1/2)^2 / tr X. Under add/remove tr X <= N, as no
    diagonal entry exceeds 1. Under replace-one, only vectors of sum 0 count, and the mean squared
    distance of elements, 2 tr X / (N - 1), is at most 1. The nonzero eigenvalues of M are those of
    its matrix in an orthonormal basis of products of 1 / sqrt(l) and each `zero_sum_basis`.
    """
    if residuals.dimension > MAX_DIMENSION:
        return None
    bases = [
        np.hstack([np.full((kind.levels, 1), kind.levels**-0.5), zero_sum_basis(kind.levels)])
        for kind in residuals.columns
    ]
    rows = [
        basis if kind.factor is None else kind.factor @ basis
        for kind, basis in zip(residuals.columns, bases, strict=True)
    ]
    matrix = np.zeros((residuals.dimension, residuals.dimension))
    for tables in residuals.tables:
        for t, number in enumerate(tables.numbers.tolist()):
            table, places = residuals.cells.tables[number], np.empty((1, 1, *tables.shape), int)
            for own in tables.within:
                size = own.group.size
                start = own.group.start + int(own.rows[t]) * size
                part = places[tables.part(own)]
                part[...] = np.arange(start, start + size).reshape(part.shape)
            # Divided by N: a column outside of the table has the single entry l / l.
            inside: FloatArray = np.ones((1, 1))
            for i in table:
                inside = np.kron(inside, rows[i].T @ rows[i] / len(bases[i])).astype(np.float64)
            weight = residuals.cells.table_weights[number]
            matrix[np.ix_(places.ravel(), places.ravel())] += weight**2 * inside
    share = 1.0
    if adjacency is Adjacency.REPLACE_ONE:
        matrix, share = matrix[1:, 1:], 2 / (1 - 1 / math.prod(map(float, residuals.cells.levels)))
    values = np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64)
    # Eigenvalues that rounding can have made are counted as 0.
    return float(np.sqrt(values[significant(values)]).sum()) ** 2 * share
