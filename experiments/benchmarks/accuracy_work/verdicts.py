"""Our best method and the best peer on each line of the accuracy table, and their error ratio."""

from __future__ import annotations

import pandas as pd

from experiments.benchmarks.accuracy_work.grid import MANY, compared_before
from experiments.engine.statistics import pooled_by
from experiments.shared.accuracy_lines import NOT_OURS, PEERS, PROJECTED, Method
from experiments.shared.workloads import Line

#: Columns that tell lines of the table apart: one workload at two values of n makes two lines.
PLACE = ["line", "n"]
#: A verdict uses measured errors that are means over at least this many releases. A mechanism with
#: fewer releases is left out, such as `Method.SPECTRAL` on a hundred columns.
LEAST_RELEASES = 20


def best_of(table: pd.DataFrame, methods: list[Method]) -> dict[tuple[str, int], tuple[str, float]]:
    """Which of `methods` has the least measured error on each line, and that error."""
    mine = table[table.method.isin(methods) & (table.releases >= LEAST_RELEASES)]
    best: dict[tuple[str, int], tuple[str, float]] = {}
    for (line, n, method), mean in pooled_by(mine, [*PLACE, "method"]).items():
        if (line, n) not in best or mean.root < best[line, n][1]:
            best[line, n] = (method, mean.root)
    return best


OURS = [method for method in Method if method not in (*PEERS, *NOT_OURS)]
OURS_BEFORE = [method for method in OURS if method not in PROJECTED]
PEERS_BEFORE = [method for method in PEERS if method not in PROJECTED]


def verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """One row per line: our best and the best peer, their ratio, and whether the goal is met.

    Where `compared_before` holds, methods in `PROJECTED` are left out; elsewhere they are compared,
    too.
    """
    rows = []
    for (line, n), mine in table[table.releases > 0].groupby(PLACE, sort=False):
        before = compared_before(line, n)
        ours = best_of(mine, OURS_BEFORE if before else OURS)[line, n]
        peer = best_of(mine, PEERS_BEFORE if before else [*PEERS])[line, n]
        rows.append(
            {
                "line": line,
                "n": n,
                "before": before,
                "ours": ours[0],
                "our_error": ours[1],
                "peer": peer[0],
                "peer_error": peer[1],
                "ratio": ours[1] / peer[1],
                "goal": mine.goal.iloc[0],
                "excluded": mine.excluded.iloc[0],
            }
        )
    found = pd.DataFrame(rows)
    # Where methods are compared before projection, the ratio of predicted errors is compared with
    # the goal, so that chance does not decide.
    known = found.line.map(predicted_ratios(table)).where(found.before, found.ratio)
    found["met"] = known <= found.goal
    return found


def predicted_ratios(table: pd.DataFrame) -> pd.Series:
    """Our least predicted error before projection, divided by the peers' least, by line."""
    many = table[(table.n >= MANY) & ~table.line.isin([Line.SIGNS, Line.ONE_COUNT])]
    ours = many[many.method.isin(OURS_BEFORE)].groupby("line", sort=False).predicted.min()
    peers = many[many.method.isin(PEERS_BEFORE)].groupby("line", sort=False).predicted.min()
    return (ours / peers).dropna()


def least_predicted(table: pd.DataFrame, methods: list[Method]) -> pd.Series:
    """The row with the least prediction among `methods`, in the rows of one line."""
    mine = table[table.method.isin(methods)]
    return mine.loc[mine.predicted.idxmin()]


def best_exact(table: pd.DataFrame, without: tuple[Method, ...] = ()) -> pd.Series:
    """The row with the least exact prediction, without `NOT_OURS` and the methods in `without`."""
    mine = table[(table.prediction == "exact") & ~table.method.isin((*NOT_OURS, *without))]
    return mine.loc[mine.predicted.idxmin()]
