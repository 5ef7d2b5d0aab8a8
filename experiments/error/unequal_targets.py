"""Unequal targets for the tables of a release: the budget with weights, and with equal weights.

Formula sheet X-BUDGET, X-RES.

Claim: one table must have root mean squared errors of at most 0.01, and the others of at most t
times this limit. The least budget falls with t, because `budget_for` gives the accurate table a
larger weight. With equal weights, it hardly falls. For k tables of one column each, all with l
levels, under zCDP: the rhos of the tables add up, and each is proportional to the inverse square of
the limit. So the least rho, divided by the least rho for equal limits, is (1 + (k - 1) / t^2) / k.
Tables that share columns profit from each other, and no budget is below that of the accurate table
alone. A budget that is proved to be too small for every mechanism is smaller still.

Run time on one core: quick 20 s, full 45 s.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd

#: Number of records, and limit of the error of the first table.
N, LIMIT = 10_000, 0.01
#: Levels of the four columns of the tables of one column, and of the tables of two columns.
ALIKE, LEVELS = (4, 4, 4, 4), (5, 4, 3, 2)


class Subject(ex.Curve):
    """Tables and definition of privacy, in the order of the legend."""

    SINGLE = r"four columns alone, $\rho$", "C0", "o"
    PAIRS = r"six pairs, $\rho$", "C2", "s"
    PURE = r"six pairs, $\varepsilon$", "C4", "^"

    @property
    def workload(self) -> gd.workloads.MarginalTables:
        if self is Subject.SINGLE:
            return gd.workloads.MarginalTables(ALIKE, 1)
        return gd.workloads.MarginalTables(LEVELS, 2)

    @property
    def privacy(self) -> type[gd.PureDP] | type[gd.ZCDP]:
        return gd.PureDP if self is Subject.PURE else gd.ZCDP

    @property
    def power(self) -> float:
        """Errors are proportional to budget^-power."""
        return 1.0 if self is Subject.PURE else 0.5


@dataclass(frozen=True)
class Config:
    subject: Subject  # Tables and definition of privacy
    looseness: float  # Limit t of the other tables, divided by the limit of the first table


def targets(subject: Subject, looseness: float) -> list[gd.advice.RootMeanSquare]:
    """A limit for each table."""
    Q = subject.workload
    tables = [[Q.names[i] for i in table] for table in Q.tables]
    return [
        gd.advice.RootMeanSquare(LIMIT * (looseness if t else 1.0), table)
        for t, table in enumerate(tables)
    ]


def compute(config: Config, _: np.random.Generator) -> ex.Row:
    """The least budget, with equal weights, of the first table alone, and the impossible one."""
    subject, asked = config.subject, targets(config.subject, config.looseness)
    Q, privacy = subject.workload, subject.privacy
    found = gd.budget_for(Q, n=N, targets=asked, privacy=privacy)
    # With equal weights, one prediction gives the least budget.
    plain = gd.advise(Q, n=N, privacy=privacy(1.0), exact_only=True).best
    ratio = max(target.error(plain) / target.limit for target in asked)
    first = gd.workloads.MarginalTables(Q.shape(Q.tables[0]), len(Q.tables[0]))
    alone = gd.budget_for(first, n=N, targets=[gd.advice.RootMeanSquare(LIMIT)], privacy=privacy)
    return {
        "budget": found.budget,
        "equal_weights": ratio ** (1 / subject.power),
        "alone": alone.budget,
        "impossible": found.impossible.budget if found.impossible else 0.0,
    }


def by_theory(looseness: pd.Series) -> pd.Series:
    """The least rho for the tables of single columns, divided by the one for t = 1."""
    return (1 + (len(ALIKE) - 1) / looseness**2) / len(ALIKE)


def relative(table: pd.DataFrame) -> pd.DataFrame:
    """All budgets, divided by the least budget for equal limits of the same tables."""
    budgets = ["budget", "equal_weights", "alone", "impossible"]
    first = table[table.looseness == 1].set_index("subject").budget
    scaled = table[budgets].div(table.subject.map(first).astype(float), axis=0)
    return table.assign(**scaled)


def claims(table: pd.DataFrame) -> ex.Claims:
    found = relative(table)
    last = found[found.looseness == found.looseness.max()].set_index("subject")
    gain = (last.budget / last.equal_weights).max()
    words = "; ".join(
        f"{name}: {row.budget / row.equal_weights:.2f}" for name, row in last.iterrows()
    )
    statement = "unequal targets need less budget with weights than with equal weights"
    measured = f"times the budget at t = {found.looseness.max():g}, {words}"
    theory = "at most 0.8; (1 + 3 / t^2) / 4 for four columns alone"
    yield ex.Claim(statement, ex.at_most(gain, 0.8), measured, theory, "X-BUDGET")
    single = found[found.subject == Subject.SINGLE]
    off = float((single.budget / by_theory(single.looseness) - 1).abs().max())
    statement = "four columns alone need (1 + 3 / t^2) / 4 times the rho of equal limits"
    measured = f"off by {off:.2%} at most, at {len(single)} points"
    theory = "equal, up to the rounding of weights to whole numbers, at most 2%"
    yield ex.Claim(statement, ex.at_most(off, 0.02), measured, theory, "X-BUDGET, X-RES")
    most = float((found.budget / found.equal_weights).max())
    statement = "weights never cost budget"
    measured = f"at most {most:.4f} times the budget of equal weights"
    theory = "at most 1, and 1% for the search"
    yield ex.Claim(statement, ex.at_most(most, 1.01), measured, theory, "X-BUDGET")
    zcdp = found[found.subject != Subject.PURE]
    least = float((zcdp.budget / zcdp.alone).min())
    proved = float((found.impossible / found.budget).max())
    yield ex.Claim(
        "no rho is below that of the accurate table alone, and none is proved to be impossible",
        ex.each_case(least >= 1 - 1e-6 and 0 < proved < 1),
        f"{least:.3f} times that of the table alone at least; proved up to {proved:.2f} of the "
        "least budget",
        "at least 1; between 0 and 1",
        "X-BUDGET, JL-DEF",
    )


LOOKS = Subject.looks()
THEORY = r"$(1 + 3 / t^2) / 4$"


def plot(table: pd.DataFrame) -> ex.Figure:
    found = relative(table)
    titles = ["weights for the targets", "equal weights"]
    figure, (left, right) = ex.panels(
        (7.2, 3.6), titles, "limit $t$ of the other tables", "budget, over that of $t=1$"
    )
    for axes, column in ((left, "budget"), (right, "equal_weights")):
        for subject in Subject:
            mine = found[found.subject == subject].sort_values("looseness")
            ex.draw_points(axes, mine.looseness, mine[column], LOOKS[subject], subject)
        axes.set_xscale("log")
        ex.label_ticks(axes, sorted(found.looseness.unique()))
        axes.set_ylim(0, 1.4)
    ts = pd.Series(np.geomspace(1, float(found.looseness.max()), 60))
    ex.draw_theory(left, ts, by_theory(ts), "C7", THEORY)
    ex.label_curves(left, [THEORY])
    ex.label_curves(right, [*Subject])
    result = "Weights meet unequal targets with half to a quarter of the budget"
    settings = "One table within a limit, the others within $t$ times that limit."
    return ex.headline(figure, result, settings)


QUICK = ex.Sweep(ex.product(Config, tuple(Subject), (1.0, 2.0, 4.0)))
FULL = ex.Sweep(ex.product(Config, tuple(Subject), (1.0, 1.5, 2.0, 3.0, 4.0, 8.0)))
