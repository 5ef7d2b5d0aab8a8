"""What the accuracy table aims at before projection, and advice against all of the table."""

from __future__ import annotations

import pandas as pd

from experiments.benchmarks.accuracy_grid import GOALS
from experiments.benchmarks.accuracy_predictions import Lifted
from experiments.benchmarks.accuracy_verdicts import PLACE, predicted_ratios, verdicts
from experiments.engine.claims import Claim
from experiments.engine.goals import Aim, Goal
from experiments.shared.accuracy_lines import NOT_OURS, Method
from experiments.shared.workloads import Line, line_workload
from geomdp.workloads import MarginalTables

#: A lifted elliptope is wanted if it errs at most this share of the best of everything else.
LIFTED_GOAL = 0.8
#: What advice may err more than the best exact mechanism of its line.
ALLOWED = 0.02


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """The ratio to the best peer where one was set, and what lifted elliptopes would give."""
    return [*_ratios(table), *_against_joint_tables(table), *_lifted(table)]


def _ratios(table: pd.DataFrame) -> list[Goal]:
    """Ours over the best peer, by exact predictions, on the lines with a goal."""
    found, known = verdicts(table), predicted_ratios(table)
    goals = []
    for row in found[found.before & found.line.isin([*GOALS])].itertuples():
        room = row.our_error / row.excluded if row.excluded else 0.0
        proved = f"; no mechanism errs less than 1/{room:.3g} of ours" if room else ""
        goals.append(
            Goal(
                f"{row.line}: error of ours over that of the best other",
                known[row.line],
                row.goal,
                Aim.AT_MOST,
                f"no body with an exact sampler is known that fits the tables better than that of "
                f"{row.ours}",
                f"{row.ours} against {row.peer}{proved}",
            )
        )
    return goals


def _against_joint_tables(table: pd.DataFrame) -> list[Goal]:
    """The library over Laplace noise on the table of all columns."""
    goals = []
    for row in table[table.method == Method.JOINT].itertuples():
        best = best_exact(table[(table.line == row.line) & (table.n == row.n)], (Method.JOINT,))
        goals.append(
            Goal(
                f"{row.line}: error of the library over that of Laplace noise on the joint table",
                best.predicted / row.predicted,
                1.0,
                Aim.AT_MOST,
                f"{best.method} does not use the joint table",
                f"{best.method}: {best.predicted * row.n:.4g} a cell in counts, joint table: "
                f"{row.predicted * row.n:.4g}",
            )
        )
    return goals


def _lifted(table: pd.DataFrame) -> list[Goal]:
    """The closed form of lifted elliptopes over the best of everything else."""
    goals = []
    for row in table[table.method == Method.LIFTED].itertuples():
        Q = line_workload(Line(row.line))
        assert isinstance(Q, MarginalTables)
        lifted = Lifted(len(Q.levels))
        best = best_exact(table[(table.line == row.line) & (table.n == row.n)])
        entries = sorted(set(lifted.entries(3)))
        goals.append(
            Goal(
                f"{row.line}: error of the lifted elliptope over that of the best of all else",
                row.predicted / best.predicted,
                LIFTED_GOAL,
                Aim.AT_MOST,
                f"the noise pays for all {lifted.dimension:,} entries of the matrix, and a parity "
                f"of three columns is the mean of only {entries[0]} to {entries[-1]} of them",
                f"{row.predicted * row.n:.4g} a cell in counts, {best.method}: "
                f"{best.predicted * row.n:.4g}",
            )
        )
    return goals


def best_exact(table: pd.DataFrame, without: tuple[Method, ...] = ()) -> pd.Series:
    """The row with the least exact prediction among mechanisms that can be released."""
    mine = table[(table.prediction == "exact") & ~table.method.isin((*NOT_OURS, *without))]
    return mine.loc[mine.predicted.idxmin()]


def advice_is_best(table: pd.DataFrame) -> list[Claim]:
    """What is advised against every exact prediction of its line; nothing if it was not asked."""
    offered = table[table.method == Method.ADVISED]
    if offered.empty:
        return []
    lines = dict(list(table.groupby(PLACE, sort=False)))
    shares = {
        (row.line, row.n): row.predicted / best_exact(lines[row.line, row.n]).predicted
        for row in offered.itertuples()
    }
    line, n = worst = max(shares, key=lambda place: shares[place])
    return [
        Claim(
            "no exact mechanism of the table is predicted below the advised one by more than 2%",
            bool(shares[worst] <= 1 + ALLOWED),
            f"{len(shares)} lines, at most {shares[worst]:.4f} of the best ({line}, n = {n})",
            f"at most {1 + ALLOWED:g}",
            "JL-L14, X-LKJ",
            used=float(shares[worst] / (1 + ALLOWED)),
        )
    ]
