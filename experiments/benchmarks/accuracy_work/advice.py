"""Predicted and measured errors of the mechanism that `advise` offers, against the least errors."""

from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd

from experiments.benchmarks.accuracy_work.verdicts import PLACE, best_exact, best_of
from experiments.engine.claims import Claim
from experiments.engine.goals import Aim, Goal
from experiments.engine.statistics import LEVEL, MeanSquare, pooled_by, quantile
from experiments.shared.accuracy_lines import Method
from experiments.shared.workloads import Line

#: The advised mechanism may err by at most this share more than the best mechanism compared.
ALLOWED = 0.02
#: Methods of the table whose releases are the library's. `ADVISED` is left out, because it is
#: compared with them.
RELEASED = [
    method
    for method in Method
    if method not in (Method.ADVISED, Method.LIFTED, Method.GRAPHICAL, Method.GEOMETRIC)
]
#: For some names of advised mechanisms, the method of the table that is the same mechanism.
SAME = {
    "Fitted(TightCone)": Method.FITTED_CONE,
    "Fitted(Hierarchical)": Method.FITTED_HIERARCHICAL,
    "Fitted(Matrix)": Method.FITTED_MATRIX,
    "Projected(Matrix)": Method.PROJECTED_MATRIX,
}


def advice_is_best(table: pd.DataFrame) -> list[Claim]:
    """The claim that advice is best by exact predictions; no claim without advice to judge.

    Exact predictions are inversely proportional to n. So predictions for different n are compared
    in counts (n times the error). One counting query is left out, because it has goals of its own.
    Fits are left out, because `advise` chooses them by simulation: their measured errors are
    compared instead.
    """
    listed = table[table.line != Line.ONE_COUNT]
    offered = listed[(listed.method == Method.ADVISED) & (listed.releases == 0)]
    offered = offered[~offered.advised.astype(str).str.startswith("Fitted(")]
    if offered.empty:
        return []
    lines = dict(list(listed.assign(predicted=listed.predicted * listed.n).groupby("line")))
    shares = {
        (row.line, row.n): row.predicted * row.n / best_exact(lines[row.line]).predicted
        for row in offered.itertuples()
    }
    line, n = worst = max(shares, key=lambda place: shares[place])
    return [
        Claim(
            "by exact predictions, the advised mechanism errs at most 2% more than the best of the "
            "table",
            bool(shares[worst] <= 1 + ALLOWED),
            f"{len(shares)} places, at most {shares[worst]:.4f} times the best ({line}, n = {n})",
            f"at most {1 + ALLOWED:g}",
            "JL-L14, X-LKJ",
            used=float(shares[worst] / (1 + ALLOWED)),
        )
    ]


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """Goals for one counting query, and for measured errors divided by the least measured error."""
    return [*_one_count(table), *_as_measured(table)]


def _one_count(table: pd.DataFrame) -> list[Goal]:
    """Goals for the mechanism advised for one counting query, one goal for each epsilon."""
    goals = []
    mine = table[table.line == Line.ONE_COUNT]
    for epsilon, rows in mine.groupby("epsilon", sort=True):
        known = rows.set_index("method")
        if not {Method.ADVISED, Method.GEOMETRIC} <= {*known.index}:
            continue
        offered, peer = known.loc[Method.ADVISED], known.loc[Method.GEOMETRIC]
        counts = offered.predicted * offered.n
        goals.append(
            Goal(
                f"{Line.ONE_COUNT}, epsilon = {epsilon:g}: predicted error of what `advise` offers "
                "divided by that of geometric noise",
                offered.predicted / peer.predicted,
                1 + ALLOWED,
                Aim.AT_MOST,
                f"`advise` offers {offered.advised}, whose noise is continuous and does not use "
                "that a count is a whole number; the root mean squared error of Laplace noise "
                "falls like 1 / epsilon, that of geometric noise for large epsilon like "
                "e^(-epsilon / 2)",
                f"{offered.advised}: {counts:.4g} in counts, geometric: "
                f"{peer.predicted * peer.n:.4g}",
            )
        )
    return goals


class Measured(NamedTuple):
    """Measured errors on one line: of the advised mechanism, and of the library's best method."""

    advised: str  # Name of the advised mechanism
    own: MeanSquare  # Its error
    best: str  # Name of the method with the least error; `advised` if no method errs less
    least: MeanSquare  # The error of this method

    @property
    def share(self) -> float:
        """The error of the advised mechanism divided by the least error."""
        return self.own.root / self.least.root

    def share_at_least(self, level: float) -> float:
        """A lower confidence limit: the true `share` is below it with probability about `level`."""
        parts = [mean.root_stderr / mean.root for mean in (self.own, self.least)]
        reach = quantile(level, min(self.own.count, self.least.count)) * math.hypot(*parts)
        return self.share * (1 - (0.0 if self.best == self.advised else reach))


def measured(table: pd.DataFrame) -> dict[tuple[str, int], Measured]:
    """The advised mechanism and the library's least measured error, by line and n.

    If `SAME` names a method for the advised mechanism, the releases of both are pooled. Both are
    the same mechanism, so any difference is chance.
    """
    offered = table[(table.method == Method.ADVISED) & (table.releases > 0)]
    found = {}
    for (line, n), rows in offered.groupby(PLACE):
        name = rows.advised.iloc[0]
        mine = [Method.ADVISED, SAME.get(name, Method.ADVISED)]
        place = table[(table.line == line) & (table.n == n) & (table.releases > 0)]
        (own,) = pooled_by(place[place.method.isin(mine)].assign(all=0), ["all"]).values()
        others = [method for method in RELEASED if method not in mine]
        best, _ = best_of(place, others)[line, n]
        least = pooled_by(place, ["method"])[best,]
        if own.root <= least.root:
            best, least = name, own
        found[line, n] = Measured(name, own, best, least)
    return found


def advice_is_best_as_measured(table: pd.DataFrame) -> list[Claim]:
    """The claim that advice is best by measured errors, up to chance; no claim without releases.

    The least error at a place is found among all methods. So the level of each comparison is
    `LEVEL` divided by the number of places and by the number of methods.
    """
    found = measured(table)
    if not found:
        return []
    level = LEVEL / (len(found) * len(RELEASED))
    least = {place: it.share_at_least(level) for place, it in found.items()}
    worst = max(least.values())
    return [
        Claim(
            "as measured, the advised mechanism errs at most 2% more than the best of the table",
            bool(worst <= 1 + ALLOWED),
            "; ".join(f"{line}, n = {n}: {it.share:.3f}" for (line, n), it in found.items()),
            f"at most {1 + ALLOWED:g}, up to chance",
            "JL-L13b",
            used=float(worst / (1 + ALLOWED)),
        )
    ]


def _as_measured(table: pd.DataFrame) -> list[Goal]:
    """Goals for measured errors: the advised mechanism errs at most 2% more than the best one."""
    return [
        Goal(
            f"{line}, n = {n}: measured error of what `advise` offers divided by the least "
            "measured error",
            it.share,
            1 + ALLOWED,
            Aim.AT_MOST,
            "advice sees no records: it ranks by proved bounds for all data sets, and compares the "
            "best noise after a projection and after a fit by simulation on public data sets",
            it.advised if it.best == it.advised else f"{it.advised} against {it.best}",
        )
        for (line, n), it in measured(table).items()
    ]
