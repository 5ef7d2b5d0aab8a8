"""Goals for errors before projection in the accuracy table, also for lifted elliptopes."""

import math
from typing import NamedTuple

import pandas as pd

import experiments.engine.tools as ex
from experiments.benchmarks.accuracy_work.grid import GOALS, MANY, compared_before, goal_of
from experiments.benchmarks.accuracy_work.predictions import Lifted
from experiments.shared.accuracy_lines import NOT_OURS, PEERS, PROJECTED, Method
from experiments.shared.workloads import Line, line_workload
from geomdp.workloads import MarginalTables

#: Columns that tell lines of the table apart: one workload at two values of n makes two lines.
PLACE = ["line", "n"]
#: A verdict uses measured errors that are means over at least this many releases. A mechanism with
#: fewer releases is left out, such as `Method.SPECTRAL` on a hundred columns.
LEAST_RELEASES = 20


def best_of(table: pd.DataFrame, methods: list[Method]) -> dict[tuple[str, int], tuple[str, float]]:
    """Which of `methods` has the least measured error on each line, and that error."""
    mine = table[table.method.isin(methods) & (table.releases >= LEAST_RELEASES)]
    best: dict[tuple[str, int], tuple[str, float]] = {}
    for (line, n, method), mean in ex.pooled_by(mine, [*PLACE, "method"]).items():
        if (line, n) not in best or mean.root < best[line, n][1]:
            best[line, n] = (method, mean.root)
    return best


OURS = [method for method in Method if method not in (*PEERS, *NOT_OURS)]
OURS_BEFORE = [method for method in OURS if method not in PROJECTED]
PEERS_BEFORE = [method for method in PEERS if method not in PROJECTED]


def verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """One row per line: our best and the best peer, their ratio, and whether the goal is met."""
    rows = []
    for (line, n), mine in table[table.releases > 0].groupby(PLACE, sort=False):
        before = compared_before(line, n)
        ours = best_of(mine, OURS_BEFORE if before else OURS)[line, n]
        peer = best_of(mine, PEERS_BEFORE if before else [*PEERS])[line, n]
        rows.append((line, n, before, *ours, *peer, goal_of(line, n), mine.excluded.iloc[0]))
    names = [*PLACE, "before", "ours", "our_error", "peer", "peer_error", "goal", "excluded"]
    found = pd.DataFrame(rows, columns=names)
    found["ratio"] = found.our_error / found.peer_error
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


def goals_of(table: pd.DataFrame) -> ex.Goals:
    """Goals for our error against the best peer and the joint table, and for lifted elliptopes."""
    yield from _ratios(table)
    yield from _against_joint_tables(table)
    yield from _lifted(table)


def _ratios(table: pd.DataFrame) -> ex.Goals:
    """Goals for our least predicted error divided by the peers' least, on the lines of `GOALS`."""
    found = verdicts(table)
    for row in found[found.before & found.line.isin([*GOALS])].itertuples():
        line = table[(table.line == row.line) & (table.n == row.n)]
        ours, peer = least_predicted(line, OURS_BEFORE), least_predicted(line, PEERS_BEFORE)
        room = ours.predicted / row.excluded if row.excluded else 0.0
        proved = f"; no mechanism errs less than 1/{room:.3g} of ours" if room else ""
        name = f"{row.line}: our error divided by that of the best other"
        value = ours.predicted / peer.predicted
        words = f"{ours.method} against {peer.method}{proved}"
        yield ex.Goal(name, value, row.goal, ex.Aim.AT_MOST, CAUSES[Line(row.line)], words)


def _against_joint_tables(table: pd.DataFrame) -> ex.Goals:
    """Goals for the library's least error divided by the error of Laplace noise on joint tables."""
    joint = table[(table.method == Method.JOINT) & table.line.isin(JOINT_LINES)]
    for row in joint.itertuples():
        best = best_exact(table[(table.line == row.line) & (table.n == row.n)], (Method.JOINT,))
        yield ex.Goal(
            f"{row.line}: error of the library divided by that of Laplace noise on the joint table",
            best.predicted / row.predicted,
            1.0,
            ex.Aim.AT_MOST,
            f"{best.method} does not use the joint table",
            f"{best.method}: {best.predicted * row.n:.4g} a cell in counts, joint table: "
            f"{row.predicted * row.n:.4g}",
        )


def _lifted(table: pd.DataFrame) -> ex.Goals:
    """Goals for the error of lifted elliptopes divided by the least error of other methods."""
    for row in table[table.method == Method.LIFTED].itertuples():
        Q = line_workload(Line(row.line))
        assert isinstance(Q, MarginalTables)
        lifted = Lifted(len(Q.levels), Q.k)
        best = best_exact(table[(table.line == row.line) & (table.n == row.n)])
        ratio = row.predicted / best.predicted
        name = (
            f"{row.line}: error of the lifted elliptope divided by that of the best other mechanism"
        )
        words = (
            f"{row.predicted * row.n:.4g} a cell in counts, {best.method}: "
            f"{best.predicted * row.n:.4g}"
        )
        yield ex.Goal(name, ratio, LIFTED_GOAL, ex.Aim.AT_MOST, _cause(lifted), words)


def _cause(lifted: Lifted) -> str:
    """Why lifted elliptopes do not reach their goal, and what cuts and recursion gain."""
    widest = sorted(set(lifted.entries(lifted.k)))
    spread = f"{widest[0]}" if len(widest) == 1 else f"{widest[0]} to {widest[-1]}"
    return (
        f"the noise pays for all {lifted.dimension:,} entries of the matrix, and a parity of "
        f"{lifted.k} columns is the mean of only {spread} of them. Nearly all points of elliptopes "
        "of 12 or more columns satisfy the triangle inequalities, so cuts gain nothing. Points "
        "whose entries of the same parity are equal would err about 0.6 times as much, but no "
        "exact sampler of them is known. "
        "Recursion gains a factor 1.00: uniform points of an elliptope have the same variance at "
        "every entry, so there are no long and short axes to split"
    )


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


def advice_is_best(table: pd.DataFrame) -> ex.Claims:
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
        return
    lines = dict(list(listed.assign(predicted=listed.predicted * listed.n).groupby("line")))
    shares = {
        (row.line, row.n): row.predicted * row.n / best_exact(lines[row.line]).predicted
        for row in offered.itertuples()
    }
    line, n = worst = max(shares, key=lambda place: shares[place])
    name = (
        "by exact predictions, the advised mechanism errs at most 2% more than the best of the "
        "table"
    )
    words = f"{len(shares)} places, at most {shares[worst]:.4f} times the best ({line}, n = {n})"
    theory = f"at most {1 + ALLOWED:g}"
    yield ex.Claim(name, ex.at_most(shares[worst], 1 + ALLOWED), words, theory, "JL-L14, X-LKJ")


def advised_goals(table: pd.DataFrame) -> ex.Goals:
    """Goals for one counting query, and for measured errors divided by the least measured error."""
    yield from _one_count(table)
    yield from _as_measured(table)


def _one_count(table: pd.DataFrame) -> ex.Goals:
    """Goals for the mechanism advised for one counting query, one goal for each epsilon."""
    mine = table[table.line == Line.ONE_COUNT]
    for epsilon, rows in mine.groupby("epsilon", sort=True):
        known = rows.set_index("method")
        if not {Method.ADVISED, Method.GEOMETRIC} <= {*known.index}:
            continue
        offered, peer = known.loc[Method.ADVISED], known.loc[Method.GEOMETRIC]
        counts = offered.predicted * offered.n
        yield ex.Goal(
            f"{Line.ONE_COUNT}, epsilon = {epsilon:g}: predicted error of what `advise` offers "
            "divided by that of geometric noise",
            offered.predicted / peer.predicted,
            1 + ALLOWED,
            ex.Aim.AT_MOST,
            f"`advise` offers {offered.advised}, whose noise is continuous and does not use "
            "that a count is a whole number; the root mean squared error of Laplace noise "
            "falls like 1 / epsilon, that of geometric noise for large epsilon like "
            "e^(-epsilon / 2)",
            f"{offered.advised}: {counts:.4g} in counts, geometric: {peer.predicted * peer.n:.4g}",
        )


class Measured(NamedTuple):
    """Measured errors on one line: of the advised mechanism, and of the library's best method."""

    advised: str  # Name of the advised mechanism
    own: ex.MeanSquare  # Its error
    best: str  # Name of the method with the least error; `advised` if no method errs less
    least: ex.MeanSquare  # The error of this method

    @property
    def share(self) -> float:
        """The error of the advised mechanism divided by the least error."""
        return self.own.root / self.least.root

    def share_at_least(self, level: float) -> float:
        """A lower confidence limit: the true `share` is below it with probability about `level`."""
        parts = [mean.root_stderr / mean.root for mean in (self.own, self.least)]
        reach = ex.quantile(level, min(self.own.count, self.least.count)) * math.hypot(*parts)
        return self.share * (1 - (0.0 if self.best == self.advised else reach))


def measured(table: pd.DataFrame) -> dict[tuple[str, int], Measured]:
    """The advised mechanism and the library's least measured error, by line and n."""
    offered = table[(table.method == Method.ADVISED) & (table.releases > 0)]
    found = {}
    for (line, n), rows in offered.groupby(PLACE):
        name = rows.advised.iloc[0]
        mine = [Method.ADVISED, SAME.get(name, Method.ADVISED)]
        place = table[(table.line == line) & (table.n == n) & (table.releases > 0)]
        (own,) = ex.pooled_by(place[place.method.isin(mine)].assign(all=0), ["all"]).values()
        others = [method for method in RELEASED if method not in mine]
        best, _ = best_of(place, others)[line, n]
        least = ex.pooled_by(place, ["method"])[best,]
        if own.root <= least.root:
            best, least = name, own
        found[line, n] = Measured(name, own, best, least)
    return found


def advice_is_best_as_measured(table: pd.DataFrame) -> ex.Claims:
    """The claim that advice is best by measured errors, up to chance; no claim without releases.

    The least error at a place is found among all methods. So the level of each comparison is
    `LEVEL` divided by the number of places and by the number of methods.
    """
    found = measured(table)
    if not found:
        return
    level = ex.LEVEL / (len(found) * len(RELEASED))
    least = {place: it.share_at_least(level) for place, it in found.items()}
    worst = max(least.values())
    name = "as measured, the advised mechanism errs at most 2% more than the best of the table"
    words = "; ".join(f"{line}, n = {n}: {it.share:.3f}" for (line, n), it in found.items())
    theory = f"at most {1 + ALLOWED:g}, up to chance"
    yield ex.Claim(name, ex.at_most(worst, 1 + ALLOWED), words, theory, "JL-L13b")


def _as_measured(table: pd.DataFrame) -> list[ex.Goal]:
    """Goals for measured errors: the advised mechanism errs at most 2% more than the best one."""
    return [
        ex.Goal(
            f"{line}, n = {n}: measured error of what `advise` offers divided by the least "
            "measured error",
            it.share,
            1 + ALLOWED,
            ex.Aim.AT_MOST,
            "advice sees no records: it ranks by proved bounds for all data sets, and compares the "
            "best noise after a projection and after a fit by simulation on public data sets",
            it.advised if it.best == it.advised else f"{it.advised} against {it.best}",
        )
        for (line, n), it in measured(table).items()
    ]
