"""Semidefinite relaxations of marginals and parities: how much wider they are than the polytopes.

Papers: Nikolov 2022 (arXiv 2208.07410), sections 4 and 5; Lasserre 2001, Alon and Naor 2006 for the
relaxations. The error of a mechanism that projects on a body grows with the body's Gaussian width.
The width of the relaxation divided by the width of the polytope thus says how much error the
relaxation costs. Formula sheet GEN-4, JL-T2, JL-T23.

Claim: relaxations contain the sensitivity polytope in every direction tried. For d = 4 to 12
attributes, the relaxation of 2-way marginals (moment matrices with a diagonal equal to the first
row) is less than 6% wider than the polytope. The relaxation of 2-way parities (the elliptope) is
less than 10% wider. As d grows, the ratio for 2-way parities tends to 1.31: the semidefinite bound
on the ground-state energy of the Sherrington-Kirkpatrick model, divided by this energy. Lasserre's
relaxations of higher level (lifts) are less than 4% wider for 3-way marginals, and less than 1%
wider for 3- and 4-way parities; most are exact in every direction tried. Projections may use these
relaxations where the 2^d elements of the universe are too many to list.

Directions are Gaussian and shared by both bodies; intervals are for the ratio of the two means.
Run time on one core: quick 5 s, full 6 min (a lift of order 79 takes about 6 s for a direction).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared.workloads import Kind, workload

#: Number k of attributes of one query, by workload, in the order of the legend.
WAYS = {
    Kind.MARGINALS_2: 2,
    Kind.PARITIES_2: 2,
    Kind.MARGINALS_3: 3,
    Kind.PARITIES_3: 3,
    Kind.PARITIES_4: 4,
}
#: Workloads relaxed by plain correlation matrices. Thousands of support values of such a relaxation
#: are computed in a second. The other relaxations solve a conic program for each direction.
FIRST_LEVEL = (Kind.MARGINALS_2, Kind.PARITIES_2)
#: Tolerance for rounding, as a share of the radius sqrt(m) of a polytope of m queries. The support
#: values of a relaxation are upper bounds (`MomentMatrix.highest`), so they may fall below the
#: support values of the polytope by rounding only.
SLACK = 1e-6


@dataclass(frozen=True)
class Config:
    family: Kind  # Workload
    d: int  # Number of attributes
    directions: int  # Gaussian directions in one cell


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Means, variances and covariance of the two support functions over shared directions."""
    Q = workload(config.family, config.d)
    assert isinstance(Q, gd.workloads.Marginals | gd.workloads.Parities)
    outer, inner = gd.bodies.moment_relaxation(Q), gd.sensitivity_polytope(Q)
    directions = rng.standard_normal((config.directions, Q.n_queries))
    high, true = outer.support(directions), inner.support(directions)
    spread = np.cov(high, true)
    return {
        "queries": Q.n_queries,
        "count": config.directions,
        "relaxed": float(high.mean()),
        "true": float(true.mean()),
        "relaxed_variance": float(spread[0, 0]),
        "true_variance": float(spread[1, 1]),
        "covariance": float(spread[0, 1]),
        "least_margin": float((high - true).min()) / math.sqrt(Q.n_queries),
    }


@dataclass(frozen=True)
class Ratio:
    """Ratio of the means of two paired samples, with its standard error by the delta method."""

    value: float
    stderr: float
    count: int

    @classmethod
    def of(cls, rows: pd.DataFrame) -> Ratio:
        """The ratio, pooled over the trials of one configuration."""
        count = int(rows["count"].sum())
        weights = rows["count"] / count
        high, true = float(weights @ rows.relaxed), float(weights @ rows.true)
        ratio = high / true
        # Variance of high - ratio * true, within the trials.
        parts = rows.relaxed_variance - 2 * ratio * rows.covariance + ratio**2 * rows.true_variance
        variance = max(float(weights @ parts), 0.0)
        return cls(ratio, math.sqrt(variance / count) / true, count)

    def interval(self, level: float, tests: int = 1) -> tuple[float, float]:
        """Two-sided interval; `level` is the false-alarm probability of all `tests` intervals."""
        reach = ex.quantile(level / (2 * tests), self.count) * self.stderr
        return self.value - reach, self.value + reach


def ratios(table: pd.DataFrame) -> dict[tuple[Kind, int], Ratio]:
    """Ratio of widths by family and d."""
    return {
        (Kind(family), int(d)): Ratio.of(rows)
        for (family, d), rows in table.groupby(["family", "d"], sort=False)
    }


#: Largest ratio of widths claimed for each family, d up to 12.
LIMITS = {
    Kind.MARGINALS_2: 1.06,
    Kind.PARITIES_2: 1.1,
    Kind.MARGINALS_3: 1.04,
    Kind.PARITIES_3: 1.01,
    Kind.PARITIES_4: 1.01,
}


def claims(table: pd.DataFrame) -> ex.Claims:
    least, count = float(table.least_margin.min()), int(table["count"].sum())
    found = ratios(table)
    statement = "relaxations contain the polytopes in every direction tried"
    verdict = ex.at_most(max(-least, 0.0), SLACK)
    measured = f"smallest margin {least:.1e} times the radius, in {count:,} directions"
    yield ex.Claim(statement, verdict, measured, f"at least -{SLACK:g}", "moment matrices are psd")
    for family, limit in LIMITS.items():
        mine = {d: ratio for (name, d), ratio in found.items() if name is family}
        worst = max(mine, key=lambda d: mine[d].value)
        top = max(ratio.interval(ex.LEVEL, len(found))[1] for ratio in mine.values())
        statement = f"{family}: the relaxation is at most {limit - 1:.0%} wider than the polytope"
        verdict = ex.at_most(max(top - 1, 0.0), limit - 1)
        measured = f"ratio {mine[worst].value:.4f} at d = {worst}, upper ends at most {top:.4f}"
        yield ex.Claim(statement, verdict, measured, f"at most {limit:g}", "measured")


LOOKS = {
    Kind.MARGINALS_2: ex.Look("C0", "o"),
    Kind.PARITIES_2: ex.Look("C5", "s"),
    Kind.MARGINALS_3: ex.Look("C2", "v"),
    Kind.PARITIES_3: ex.Look("C6", "D", filled=False),
    Kind.PARITIES_4: ex.Look("C4", "^", filled=False),
}


def plot(table: pd.DataFrame) -> ex.Figure:
    titles = ["width of the relaxation", "ratio, 95% bands"]
    heights = ["Gaussian width", "relaxed width / width"]
    figure, (widths, shares) = ex.panels((7.2, 3.7), titles, "attributes $d$", heights)
    found = ratios(table)
    for family, look in LOOKS.items():
        means = table[table.family == family].groupby("d")[["relaxed", "true"]].mean()
        ex.draw_points(widths, means.index, means.relaxed, look, family)
        widths.plot(means.index, means.true, color="black", lw=0.8, ls=(0, (4, 2)), label="_")
        points = {d: ratio for (name, d), ratio in found.items() if name is family}
        low, high = np.array([ratio.interval(ex.BAND_LEVEL) for ratio in points.values()]).T
        values = [ratio.value for ratio in points.values()]
        ex.draw_points(shares, [*points], values, look, "_", band=(low, high))
    shares.axhline(1, color="black", lw=1.1, ls=(0, (4, 2)))
    widths.set_yscale("log")
    widths.set_yticks(*ex.ticks(2, 5, 10, 20, 50))
    widths.minorticks_off()
    ex.label_curves(widths)
    result = "Semidefinite relaxations of marginals and parities are hardly too wide"
    return ex.headline(figure, result, "Bands: 95%. Dashed: the polytope itself.")


#: Number of directions in one cell for a lift. Each key is the largest number of attributes for
#: which its value is used. A conic program is solved for each direction.
LIFTED = {6: 60, 9: 8, 12: 2}


def grid(sizes: tuple[int, ...], many: int, largest: int) -> tuple[Config, ...]:
    """All families with d in `sizes` attributes; lifts of k-way queries for k < d <= `largest`."""
    few = {d: next(count for most, count in LIFTED.items() if d <= most) for d in sizes}
    return tuple(
        Config(family, d, many if family in FIRST_LEVEL else few[d])
        for family in WAYS
        for d in sizes
        if family in FIRST_LEVEL or WAYS[family] < d <= largest
    )


QUICK = ex.Sweep(grid((4, 6), 100, 6))
FULL = ex.Sweep(grid(tuple(range(4, 13)), 1000, 12), trials=4)
