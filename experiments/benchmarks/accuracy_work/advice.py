"""The mechanism that `advise` offers, compared with the accuracy table: predicted and measured."""

from __future__ import annotations

import pandas as pd

from experiments.benchmarks.accuracy_work.verdicts import PLACE, best_exact, best_of
from experiments.engine.claims import Claim
from experiments.engine.goals import Aim, Goal
from experiments.engine.statistics import pooled_by
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


def advice_is_best(table: pd.DataFrame) -> list[Claim]:
    """The claim that advice is best by exact predictions; none if `advise` was not asked.

    Exact predictions are inversely proportional to n. The predictions of a line are therefore
    compared in counts (n times the error), for whatever n they were made. One counting query is
    left out, because it has goals of its own.
    """
    listed = table[table.line != Line.ONE_COUNT]
    offered = listed[(listed.method == Method.ADVISED) & (listed.releases == 0)]
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
            "by exact predictions no mechanism of the table errs less than the advised one by more "
            "than 2%",
            bool(shares[worst] <= 1 + ALLOWED),
            f"{len(shares)} places, at most {shares[worst]:.4f} of the best ({line}, n = {n})",
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
                "over that of geometric noise",
                offered.predicted / peer.predicted,
                1 + ALLOWED,
                Aim.AT_MOST,
                f"`advise` offers {offered.advised}, whose noise is continuous and does not use "
                "that a count is a whole number; the root mean squared error of Laplace noise "
                "falls like 1 / epsilon, that of geometric noise like e^(-epsilon / 2)",
                f"{offered.advised}: {counts:.4g} in counts, geometric: "
                f"{peer.predicted * peer.n:.4g}",
            )
        )
    return goals


def measured_shares(table: pd.DataFrame) -> dict[tuple[str, int], tuple[float, str, str]]:
    """Measured error of the advised mechanism divided by the library's least, by line and n.

    Each value also names the advised mechanism and the mechanism with the least error.
    """
    offered = table[(table.method == Method.ADVISED) & (table.releases > 0)]
    names = offered.set_index(PLACE).advised
    least = best_of(table, RELEASED)
    return {
        (line, n): (mean.root / least[line, n][1], names[line, n], least[line, n][0])
        for (line, n), mean in pooled_by(offered, PLACE).items()
    }


def _as_measured(table: pd.DataFrame) -> list[Goal]:
    """Goals for measured errors: the advised mechanism may not be the one that errs the least."""
    return [
        Goal(
            f"{line}, n = {n}: measured error of what `advise` offers over the least measured",
            share,
            1 + ALLOWED,
            Aim.AT_MOST,
            "advice ranks by what is proved for all data sets before any record is read. The "
            "proved bound of a fit is twice that of a projection, so a fit is never advised, "
            "although it mostly errs less",
            f"{name} against {best}",
        )
        for (line, n), (share, name, best) in measured_shares(table).items()
    ]
