"""Goals for errors before projection in the accuracy table, also for lifted elliptopes."""

from __future__ import annotations

import pandas as pd

from experiments.benchmarks.accuracy_work.grid import GOALS
from experiments.benchmarks.accuracy_work.predictions import Lifted
from experiments.benchmarks.accuracy_work.verdicts import (
    OURS_BEFORE,
    PEERS_BEFORE,
    best_exact,
    least_predicted,
    verdicts,
)
from experiments.engine.goals import Aim, Goal
from experiments.shared.accuracy_lines import Method
from experiments.shared.workloads import Line, line_workload
from geomdp.workloads import MarginalTables

#: Goal for the error of cone noise of a lifted elliptope, divided by the least error of all other
#: methods.
LIFTED_GOAL = 0.8
#: Lines on which the library is compared with Laplace noise on the joint table.
JOINT_LINES = (Line.TWELVE, Line.SIXTEEN, Line.TWENTY, Line.FOUR_WAY)

#: For each line, why the ratio of our error to the error of the best peer is not smaller.
CAUSES: dict[Line, str] = {
    Line.BINARY: "the exact sampler cuts an elliptope by rejection to a hundredth of its volume; "
    "the polytope of the tables has a smaller volume still, but no exact sampler of its uniform "
    "points is known",
    Line.CATEGORICAL: "the exact sampler cuts the moment body by rejection to a hundredth of its "
    "volume; a thousandth would lower the error by another 1% and cost ten times the draws, and "
    "no exact sampler of the polytope of the tables is known",
    Line.THREE_WAY: "noise on levels is the matrix mechanism with the noise of a simplex in place "
    "of Laplace noise for each measured table; for tables of many cells the two are nearly the "
    "same. A lifted elliptope, which joins all tables, would give "
    f"{Lifted(8, 3).error:.3g} in counts",
    Line.FEW_COLUMNS: "the elliptope of 30 signs is not cut, as its points seldom violate an "
    "inequality of the tables, and no exact sampler of the polytope of the tables is known",
    Line.HUNDRED: "the noise is spread over all products of two signs, and no smaller body "
    "that has an exact sampler and contains the polytope of the tables is known",
}


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """Goals for our error against the best peer and the joint table, and for lifted elliptopes."""
    return [*_ratios(table), *_against_joint_tables(table), *_lifted(table)]


def _ratios(table: pd.DataFrame) -> list[Goal]:
    """Goals for our least predicted error divided by the peers' least, on the lines of `GOALS`."""
    found = verdicts(table)
    goals = []
    for row in found[found.before & found.line.isin([*GOALS])].itertuples():
        line = table[(table.line == row.line) & (table.n == row.n)]
        ours, peer = least_predicted(line, OURS_BEFORE), least_predicted(line, PEERS_BEFORE)
        room = ours.predicted / row.excluded if row.excluded else 0.0
        proved = f"; no mechanism errs less than 1/{room:.3g} of ours" if room else ""
        goals.append(
            Goal(
                f"{row.line}: our error divided by that of the best other",
                ours.predicted / peer.predicted,
                row.goal,
                Aim.AT_MOST,
                CAUSES[Line(row.line)],
                f"{ours.method} against {peer.method}{proved}",
            )
        )
    return goals


def _against_joint_tables(table: pd.DataFrame) -> list[Goal]:
    """Goals for the library's least error divided by the error of Laplace noise on joint tables."""
    goals = []
    joint = table[(table.method == Method.JOINT) & table.line.isin(JOINT_LINES)]
    for row in joint.itertuples():
        best = best_exact(table[(table.line == row.line) & (table.n == row.n)], (Method.JOINT,))
        goals.append(
            Goal(
                f"{row.line}: error of the library divided by that of Laplace noise on the joint "
                "table",
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
    """Goals for the error of lifted elliptopes divided by the least error of other methods."""
    goals = []
    for row in table[table.method == Method.LIFTED].itertuples():
        Q = line_workload(Line(row.line))
        assert isinstance(Q, MarginalTables)
        lifted = Lifted(len(Q.levels), Q.k)
        best = best_exact(table[(table.line == row.line) & (table.n == row.n)])
        ratio = row.predicted / best.predicted
        goals.append(
            Goal(
                f"{row.line}: error of the lifted elliptope divided by that of the best other "
                "mechanism",
                ratio,
                LIFTED_GOAL,
                Aim.AT_MOST,
                _cause(lifted, ratio),
                f"{row.predicted * row.n:.4g} a cell in counts, {best.method}: "
                f"{best.predicted * row.n:.4g}",
            )
        )
    return goals


#: Error of cone noise whose body is cut by inequalities of the tables, divided by the error without
#: cuts, as measured on 2-way tables of ten binary columns.
CUT_GAIN = 0.87


def _cause(lifted: Lifted, ratio: float) -> str:
    """Why lifted elliptopes do not reach their goal, and what cuts and recursion could gain."""
    widest = sorted(set(lifted.entries(lifted.k)))
    spread = f"{widest[0]}" if len(widest) == 1 else f"{widest[0]} to {widest[-1]}"
    return (
        f"the noise pays for all {lifted.dimension:,} entries of the matrix, and a parity of "
        f"{lifted.k} columns is the mean of only {spread} of them. Cuts by rejection gain a factor "
        f"{CUT_GAIN} on 2-way tables; the same gain would give {CUT_GAIN * ratio:.2f} here. "
        "Recursion gains a factor 1.00: uniform points of an elliptope have the same variance at "
        "every entry, so there are no long and short axes to split"
    )
