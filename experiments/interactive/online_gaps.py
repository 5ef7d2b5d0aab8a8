"""Queries at a fixed distance from the hypothesis of an online construction.

Distances are in units of the alpha0 of the formula sheet (BR-OIC), noise is in units of its scale.
Both units are computed here from the equations, without the code that is measured.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import scipy.optimize
import scipy.stats

import geomdp as gd
from experiments.engine import margins
from experiments.engine.cells import Row
from experiments.engine.claims import Claim
from experiments.engine.statistics import LEVEL
from geomdp.workloads import SparseQuery

PRIVACY = gd.ApproxDP(1.0, 1e-6)
QUERIES, BETA = 60, 0.05
#: Distances of queries from the hypothesis, in units of alpha0. The threshold is 2. The comparisons
#: with the threshold err by at most 1, with probability at least 1 - beta. Then no query at NEAR
#: causes an update, and every query at FAR causes one. LEFT is just below 2.
NEAR, LEFT, FAR = 0.95, 1.9, 3.05


def dense_updates(universe: int, alpha: float) -> int:
    """floor(B(alpha)) of multiplicative weights, B = 4 ln |X| / alpha^2 (BR-MW)."""
    return math.floor(4 * math.log(universe) / alpha**2)


def sparse_updates(sparsity: int, alpha: float) -> int:
    """floor(B(alpha)) of sparse weights on s slots, B = 4 (ln s + 1) / alpha^2 (BR-SMW)."""
    least = 4 * sparsity / alpha**2
    # The iteration converges to the solution of s = least (ln s + 1). The number of slots is this
    # solution, rounded up.
    slots = least
    for _ in range(100):
        slots = least * (math.log(slots) + 1)
    return math.floor(4 * (math.log(math.ceil(slots)) + 1) / alpha**2)


def value_scale(n: int, updates: int, epsilon: float = PRIVACY.epsilon) -> float:
    """Scale of the noise on a value, if c = `updates` values share epsilon / 9 and delta / 2."""
    shortcut = math.sqrt(8 * updates * math.log(2 / PRIVACY.delta))
    return 9 * shortcut / (epsilon * n)


def solved_accuracy(
    n: int, *, sparsity: int | None = None, universe: int = 0, epsilon: float = PRIVACY.epsilon
) -> float:
    """alpha0 = 9 sqrt(8 c ln(2/delta)) (ln 2k + ln(4c/beta)) / (eps n), c = floor(B(alpha0)).

    k is `QUERIES`. B is the bound of sparse weights or, if no `sparsity` is given, of dense weights
    on `universe` elements.
    """

    def excess(alpha: float) -> float:
        c = dense_updates(universe, alpha) if sparsity is None else sparse_updates(sparsity, alpha)
        return alpha - value_scale(n, c, epsilon) * (math.log(2 * QUERIES) + math.log(4 * c / BETA))

    return float(scipy.optimize.bisect(excess, 1e-6, 1.0, xtol=1e-15, rtol=1e-12))


def run_at_gap(
    distance: float, sparsity: int, online: gd.OnlineConstruction[SparseQuery]
) -> tuple[list[float], float]:
    """Absolute noise of answers that update the hypothesis, and largest error of all others."""
    noise, left = [], 0.0
    for i in range(QUERIES):
        query = SparseQuery.counting(range(i * sparsity, (i + 1) * sparsity))
        truth = online.hypothesis.evaluate(query) + distance
        answer = online.ask_truth(query, truth)
        error = abs(float(answer.value or 0.0) - truth)
        if answer.above:
            noise.append(error)
        else:
            left = max(left, error)
    return noise, left


def at_gap(n: int, sparsity: int, gap: float, runs: int, rng: np.random.Generator) -> Row:
    """Updates, noise and errors over the runs of one trial.

    The hypothesis errs by `gap` times alpha0 on every query.
    """
    alpha = solved_accuracy(n, sparsity=sparsity)
    updated, noise, left = [], [], 0.0
    for child in rng.spawn(runs):
        online: gd.OnlineConstruction[SparseQuery] = gd.OnlineConstruction(
            gd.SparseMultiplicativeWeights(sparsity),
            n=n, queries=QUERIES, privacy=PRIVACY, beta=BETA, rng=child,
        )  # fmt: skip
        moduli, error = run_at_gap(gap * alpha, sparsity, online)
        updated.append(len(moduli))
        noise += moduli
        left = max(left, error)
    return {
        "untouched": sum(count == 0 for count in updated),
        "all_updated": sum(count == QUERIES for count in updated),
        "values": len(noise),
        "noise": sum(noise) / value_scale(n, sparse_updates(sparsity, alpha)),
        "left": left / (3 * alpha),
    }


def threshold(table: pd.DataFrame) -> list[Claim]:
    """Which queries cause an update, and the error of queries just below the threshold."""
    by_gap = table.groupby("gap").agg(
        runs=("runs", "sum"), untouched=("untouched", "sum"), all_updated=("all_updated", "sum")
    )
    near, far = by_gap.loc[NEAR], by_gap.loc[FAR]
    left = table[table.gap == LEFT].groupby(["n", "sparsity"]).left.max()
    tails = [
        scipy.stats.binom.cdf(right, runs, 1 - BETA)
        for right, runs in ((near.untouched, near.runs), (far.all_updated, far.runs))
    ]
    return [
        Claim(
            f"no query that is off by {NEAR} alpha0 causes an update, and every query that is off "
            f"by {FAR} alpha0 does",
            bool(min(tails) > LEVEL / 2),
            f"{near.untouched:.0f} of {near.runs:.0f} and {far.all_updated:.0f} of {far.runs:.0f} "
            "runs",
            f"probability at least {1 - BETA} at each of the two distances",
            "BR-OIC",
            used=margins.rarity(tails, LEVEL / 2),
        ),
        Claim(
            "at every n and m, the largest error of an adversary's queries is nearly two thirds "
            "of 3 alpha0",
            bool(left.between(0.6, 1).all()),
            f"{left.min():.3f} to {left.max():.3f} times 3 alpha0 at {len(left)} pairs, by "
            f"queries that are off by {LEFT} alpha0 and cause no update",
            "0.6 to 1",
            "BR-OIC, BR-ACC, BR-T3.8",
            used=float(left.max()),
        ),
    ]
