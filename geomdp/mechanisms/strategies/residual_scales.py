"""The best variances of Gaussian noise on the residuals of tables.

`Residuals` has one residual for each set A of columns, and the precision of its noise is 1 /
variance. The cost of precisions (`ResidualCost`) bounds the squared sensitivity of all residuals
together, in units of the noise. `ProfileCost` explains profiles and kinds of sets.
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
    """Variances (sets,) of the noise on residuals, at a cost of 1; 0 for a public residual.

    The unit is the variance that makes a sum of l2 sensitivity 1 private. `energy` is the sum of
    squared errors of all answers. `is_best` says whether it is known that no linear mechanism with
    Gaussian noise has an energy smaller by more than 0.1%.
    """

    variances: FloatArray
    cost: ResidualCost
    energy: float
    is_best: bool = False


def best_scales(residuals: Residuals, adjacency: Adjacency) -> ResidualScales:
    """The variances of the least energy found, among variances with a cost of at most 1.

    The energy is the sum of the squared errors of all answers: v_A for noise of variance 1 on the
    residual of A. Under add/remove, sigma_A^2 = sqrt(p_A / v_A) (sum over B of sqrt(p_B v_B)) is
    best among all linear mechanisms with Gaussian noise: by Schur's lemma, the optimal covariance,
    averaged over renamings of levels, is a multiple of the identity on every residual.

    Under replace-one the same holds, and the problem is convex in the precisions. It is solved for
    a growing list of profiles, until no profile costs more than 1 + 1e-7, or for 100 profiles. With
    fewer than 100, the result is optimal up to 1e-7 for all tables of k columns (at most 2^22
    profiles and 1024 kinds), and for any tables that use at most 22 columns and 1024 sets. With
    more kinds, the precisions of `_closed_form` are scaled to a cost of 1. In all other cases, the
    best of several proved upper bounds on the cost is used.
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
    """Precisions x = sqrt(v / c) for `energies` v and c = `cost.average()`; best for cost c @ x."""
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
    """Whether the precisions of `_optimised` have the least energy, up to a share `UNSOLVED`."""
    # The search constrains only some profiles, so its energy is at most the least energy.
    # Precisions divided by the largest cost are allowed, and have at most the least energy times
    # this cost.
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
        # The last term allows for rounding errors of the value: near the minimum they can be larger
        # than the descent.
        if value(moved) <= start + 0.1 * length * float(slope @ step) + 1e-13 * abs(start):
            return moved
        length /= 2
    return x
