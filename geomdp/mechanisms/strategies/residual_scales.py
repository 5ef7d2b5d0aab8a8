"""The best variances of Gaussian noise on the residuals of tables.

There is one residual for each set A of columns (see `Residuals`). The precision of its noise is
1 / variance. The cost of precisions bounds the squared sensitivity of all residuals together, in
units of the noise (see `ResidualCost`). For replace-one, `ProfileCost` divides the columns into
classes. A profile counts, for each class, the columns in which two records differ. The cost of
a profile bounds the squared sensitivity for two such records, and the cost is the largest cost of
any profile. Sets A with the same number of columns of each class are of one kind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from geomdp._typing import FloatArray
from geomdp.mechanisms.strategies.residual_costs import (
    AddRemoveCost,
    ProfileCost,
    ResidualCost,
    capped_cost,
    replace_one_classes,
    shares_of,
)
from geomdp.mechanisms.strategies.residual_tables import TableCost, table_cost
from geomdp.privacy import Adjacency
from geomdp.workloads.structure.residuals import Residuals

#: The search stops if no profile costs more than 1 + `GAP`. Scaling the precisions to a cost of at
#: most 1 then raises each variance by at most the share `GAP`.
GAP = 1e-7
#: Largest number of rounds of the search. Each round adds one profile.
MAX_ROUNDS = 100
#: Beyond this number of kinds, a formula replaces the search. A round with 1000 kinds takes a
#: second.
MAX_KINDS = 1 << 10
#: `is_best` is True only if the energy that was found is proved to be above the least energy by at
#: most this share.
UNSOLVED = 1e-3
#: `_between` tries `STEPS` + 1 mixtures of two choices of precisions.
STEPS = 8
#: The barrier method stops at the relative gap `BARRIER_GAP`, and multiplies its parameter t by
#: `SHARPENING` in each round. In a round, Newton's method takes at most `MAX_STEPS` steps, until
#: the square of the Newton decrement is at most `DECREMENT`; 5 to 10 steps suffice.
BARRIER_GAP, SHARPENING, MAX_STEPS, DECREMENT = 1e-9, 20.0, 50, 1e-9


@dataclass(frozen=True, eq=False)
class ResidualScales:
    """Variances of the noise on residuals, at a cost of 1.

    Parameters
    ----------
    variances : (sets,) array
        Variance sigma_A^2 of the noise on the residual of each set A. The unit is the variance that
        makes a sum of l2 sensitivity 1 private. If the residual is public, the variance is 0.
    cost : ResidualCost
        A bound on the cost. It is at most 1 for the precisions 1 / sigma_A^2, up to rounding.
    energy : float
        The sum of squared errors of all answers.
    is_best : bool
        Whether it is known that no linear mechanism with Gaussian noise has an energy that is
        smaller by more than 0.1%.
    """

    variances: FloatArray
    cost: ResidualCost
    energy: float
    is_best: bool = False


def best_scales(residuals: Residuals, adjacency: Adjacency) -> ResidualScales:
    """The variances of the least energy found, among variances with a cost of at most 1.

    The energy is the sum of the squared errors of all answers. Let v_A be the energy of noise of
    variance 1 on the residual of A. Let p_A be the squared length of that residual for one record.
    Under add/remove, the cost of precisions 1 / sigma_A^2 is the sum of p_A / sigma_A^2, and

        sigma_A^2 = sqrt(p_A / v_A) (sum over B of sqrt(p_B v_B))

    gives the least energy of all linear mechanisms with Gaussian noise. The reason: the optimal
    covariance can be averaged over all renamings of levels. By Schur's lemma, the average is a
    multiple of the identity on every residual.

    Under replace-one, two records differ in a set D of columns, and the cost is the largest cost of
    any D (`ProfileCost`). The argument by Schur's lemma holds here, too. The problem is convex in
    the precisions, and is solved for a growing list of profiles. Each round adds the profile that
    costs most. The search ends when no profile costs more than 1 + 1e-7, or after 100 profiles. If
    fewer than 100 profiles suffice, the result is optimal up to 1e-7 in two cases. The first case
    is all tables of k columns, with at most 2^22 profiles and 1024 kinds of sets. The second case
    is any tables that use at most 22 columns together, with at most 1024 measured sets of columns.
    With more than 1024 kinds in the first case, the precisions of `_closed_form` are scaled to an
    exact cost of 1. In all other cases, proved upper bounds on the cost are tried, and the bound
    with the least energy is used.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.strategies.residual_scales import best_scales
    >>> from geomdp.workloads.structure.residuals import Residuals
    >>> residuals = Residuals(gd.workloads.MarginalTables([2, 3, 2], k=2))
    >>> round(best_scales(residuals, gd.Adjacency.ADD_REMOVE).energy, 6)
    28.54178
    >>> round(best_scales(residuals, gd.Adjacency.REPLACE_ONE).energy, 2)
    52.2
    """
    energies = residuals.energies()
    if adjacency is Adjacency.ADD_REMOVE:
        alone = AddRemoveCost(shares_of(residuals))
        return replace(_calibrated(energies, *_closed_form(energies, alone)), is_best=True)
    tried: list[tuple[FloatArray, ResidualCost]] = []
    for classes in replace_one_classes(residuals):
        cost = ProfileCost(residuals, classes)
        searched = _optimised(energies, cost)
        tried.append(searched)
        if cost.complete and _alike(energies, cost):
            is_best = _is_solved(*searched)
            break
    else:
        is_best = False
        tried.append(_closed_form(energies, capped_cost(residuals)))
        by_table = table_cost(residuals)
        if by_table is not None:
            tried += _between(energies, by_table)
    found = [_calibrated(energies, *pair) for pair in tried]
    return replace(min(found, key=lambda scales: scales.energy), is_best=is_best)


def _calibrated(energies: FloatArray, precisions: FloatArray, cost: ResidualCost) -> ResidualScales:
    """The variances for the multiple of `precisions` that costs 1."""
    moving = precisions > 0
    variances = np.zeros_like(precisions)
    variances[moving] = cost.at_most(precisions) / precisions[moving]
    return ResidualScales(variances, cost, math.fsum((energies * variances).tolist()))


def _closed_form(energies: FloatArray, cost: ResidualCost) -> tuple[FloatArray, ResidualCost]:
    """The precisions x = sqrt(v / c) for the `energies` v and c = `cost.average()`.

    These precisions are best if the cost is c @ x.
    """
    prices = cost.average()
    precisions = np.zeros_like(energies)
    np.divide(energies, prices, out=precisions, where=prices > 0)
    return np.sqrt(precisions), cost


def _between(energies: FloatArray, cost: TableCost) -> list[tuple[FloatArray, ResidualCost]]:
    """Precisions for equal noise on all answers, those of `_closed_form`, and mixtures of both."""
    closed, _ = _closed_form(energies, cost)
    closed = closed / cost.at_most(closed)
    equal = cost.equal / cost.at_most(cost.equal)
    shares = np.linspace(0, 1, STEPS + 1).tolist()
    return [(equal ** (1 - share) * closed**share, cost) for share in shares]


def _alike(energies: FloatArray, cost: ProfileCost) -> bool:
    """Whether all sets of a kind have the same energy, so that their best precisions are equal."""
    highest = np.zeros(len(cost.kinds))
    np.maximum.at(highest, cost.kind, energies)
    return bool((energies >= highest[cost.kind] * (1 - 1e-9)).all())


def _is_solved(precisions: FloatArray, cost: ProfileCost) -> bool:
    """Whether the precisions of `_optimised` have the least energy, up to a share `UNSOLVED`.

    The search minimises the energy under the constraint that a part of all profiles cost at most 1.
    This energy is at most the least energy for all profiles. The precisions divided by the largest
    cost are allowed for all profiles. So their energy is at most the least energy times the largest
    cost.
    """
    return _is_searched(cost) and cost.at_most(precisions) <= 1 + UNSOLVED


def _is_searched(cost: ProfileCost) -> bool:
    """Whether the kinds are few enough for a search."""
    return int((cost.totals > 0).sum()) <= MAX_KINDS


def _optimised(energies: FloatArray, cost: ProfileCost) -> tuple[FloatArray, ProfileCost]:
    """Precisions of least energy, equal within each kind; for many kinds, from `_closed_form`."""
    summed = np.bincount(cost.kind, energies, minlength=len(cost.kinds))
    moving = cost.totals > 0
    if not _is_searched(cost):
        return _closed_form(energies, cost)[0], cost
    # Start from the best precisions for the mean cost of two random records. The mean is a lower
    # bound on the cost.
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
        precisions[moving] = start[moving] * _least_energy(
            summed[moving] / start[moving], np.array(rows)[:, moving] * start[moving]
        )
    return precisions[cost.kind], cost


def _least_energy(energies: FloatArray, costs: FloatArray) -> FloatArray:
    """The x > 0 that minimise the sum of energies / x subject to costs @ x <= 1.

    `energies` (a,) are above 0. `costs` (b, a) are at least 0, and each column has an entry above
    0. This is a barrier method: for growing t, Newton's method minimises

        t (sum of energies / x) - sum of log(1 - costs @ x).

    At the minimum of this function, the sum of energies / x is at most b / t above the least
    possible sum.
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
        # The last term allows for rounding errors of the value: near the minimum they can be larger
        # than the descent.
        if value(moved) <= start + 0.1 * length * float(slope @ step) + 1e-13 * abs(start):
            return moved
        length /= 2
    return x
