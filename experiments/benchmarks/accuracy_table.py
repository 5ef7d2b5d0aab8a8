"""The accuracy table: our mechanisms and others on nine workloads, one line each, at epsilon = 1.

Everyone answers the same workload for the same records, 1-DP under replace-one, with samplers that
are exact. Others: Laplace noise on every query, noise of a ball, the matrix mechanism (optimised
strategy, Laplace noise, least squares), Laplace noise projected on the sensitivity polytope, and
for tables a graphical model fitted to the matrix mechanism's answers by mbi, where the model fits
in memory: at 30 and 100 columns it does not, as all pairs form one clique. Ten binary columns are
drawn from the RAND health insurance sample, other tables from a mixture of four product
distributions, elements of listed universes uniformly.

Claims (formula sheet X-LKJ, X-CONE, JL-L13b, JL-L14, JL-T21): additive errors are as predicted
and post-processed ones below their bounds; on every line some mechanism of ours with an exact
sampler is predicted, before projection, to err less than every data-independent peer; with few
records, and on random signs, ours errs less than everything measured elsewhere, the projected and
the graphical answers included. The error of projected K-norm noise on random signs falls like n
to a power from -0.6 to -0.3. The report shows the ratio to the best peer beside the goal set for
each line, and whether the goal is met: before projection this is decided by exact predictions,
after projection by measurements. Beside it stands the error that certificates exclude for all
mechanisms. No exact mechanism of the table is predicted below what `advise` offers by more than 2%.

Goals, which may stay open: the ratios to the best peer; tables of 12 to 20 binary columns no worse
than Laplace noise on the joint table; and lifted elliptopes, known in closed form, at 0.8
of the best of everything else. Lines of 16 and 20 columns are predicted and not released.

Run time on one core: quick 12 s, full 7 minutes.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from experiments.benchmarks.accuracy_goals import advice_is_best, goals_of
from experiments.benchmarks.accuracy_grid import full_grid, quick_grid
from experiments.benchmarks.accuracy_predictions import predicted_row
from experiments.benchmarks.accuracy_verdicts import PLACE, predicted_ratios, verdicts
from experiments.benchmarks.peers.graphical_model import fitted_tables
from experiments.engine import margins
from experiments.engine.cells import Row, Sweep
from experiments.engine.checks import (
    agrees_with_prediction,
    is_below,
    predicted_columns,
    slopes_by,
    slopes_lie_within,
    stays_below_prediction,
)
from experiments.engine.claims import Claim
from experiments.engine.drawing import BAND_LEVEL, Look, draw_intervals, shared_legend
from experiments.engine.goals import Goal
from experiments.engine.script import Needs
from experiments.engine.statistics import MeanSquare, pooled_by
from experiments.shared.accuracy_lines import (
    PEERS,
    PROJECTED,
    Config,
    Method,
    draw_records,
    excluded_error,
    for_records,
)
from experiments.shared.workloads import Line, line_workload
from geomdp.workloads import MarginalTables

#: The graphical model.
NEEDS = Needs(("mbi", "jax"), extra="bench")


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """Squared errors of one mechanism, with its prediction and seconds."""
    if not config.releases_per_trial:
        return [predicted_row(config)]
    start = time.perf_counter()
    M, Q = for_records(config.line, config.method, config.n), line_workload(config.line)
    predicted = predicted_columns(M.predicted_rmse)
    setup, seconds = time.perf_counter() - start, 0.0
    squares = np.empty(config.releases_per_trial)
    for i in range(config.releases_per_trial):
        records = draw_records(config.line, config.n, rng)
        truth = Q.answers(records)
        start = time.perf_counter()
        answers = M.release(records, rng=rng).answers
        if config.method is Method.GRAPHICAL:
            assert isinstance(Q, MarginalTables)
            answers = fitted_tables(Q.levels, Q.k, answers, config.n)
        seconds += time.perf_counter() - start
        squares[i] = np.mean((answers - truth) ** 2)
    if config.method is Method.GRAPHICAL:
        # The error of a fitted model depends on the data: nothing is predicted.
        predicted["prediction"] = "none"
    return [
        {
            **MeanSquare.of(squares).columns(),
            **predicted,
            "excluded": excluded_error(config.line, config.n),
            "sampler": type(M.guarantee.sampler).__name__.lower(),
            "setup_seconds": setup,
            "release_seconds": seconds / config.releases_per_trial,
        }
    ]


def claims(table: pd.DataFrame) -> list[Claim]:
    """Predictions, bounds, and the order of ours and others."""
    released = table[table.releases > 0]
    exact = released[released.prediction == "exact"]
    bounded = released[released.prediction == "upper_bound"]
    found = verdicts(table)
    before, after = found[found.before], found[~found.before]
    keys = [*PLACE, "method"]
    means = pooled_by(released, keys)
    return [
        agrees_with_prediction(
            "additive mechanisms err as predicted", "JL-L14, JL-L15, X-CONE", exact, keys
        ),
        stays_below_prediction("projected ones stay below their bounds", "JL-L13b", bounded, keys),
        Claim(
            "every sampler is exact",
            bool((table.sampler == "exact").all()),
            f"{len(table)} rows, {', '.join(sorted(set(table.sampler)))}",
            "exact",
            "X-LKJ",
            used=margins.NoLimit.EQUAL_NAMES,
        ),
        Claim(
            "before projection ours is predicted below every peer on every line",
            bool((predicted_ratios(table) < 1).all()),
            "; ".join(f"{line}: {ratio:.3f}" for line, ratio in predicted_ratios(table).items()),
            "below 1",
            "X-LKJ, X-CONE, X-SIM",
            used=float(predicted_ratios(table).max()),
        ),
        is_below(
            "where the ratio is at most 0.8, ours errs less than the best peer",
            "X-LKJ",
            *compared(means, before[before.ratio <= CLEAR]),
        ),
        is_below(
            "with few records, and on random signs, ours errs less than all others",
            "JL-L13b, JL-T21",
            *compared(means, after),
        ),
        *slope_claims(table),
        *advice_is_best(table),
    ]


def goals(table: pd.DataFrame) -> list[Goal]:
    """Ratios to the best peer, to the joint table, and of lifted elliptopes to everything else."""
    return goals_of(table)


def slope_claims(table: pd.DataFrame) -> list[Claim]:
    """How the error falls with n on random signs, if they are in the table."""
    mine = table[(table.line == Line.SIGNS) & (table.method == Method.PROJECTED_KNORM)]
    if mine.empty:
        return []
    slopes = slopes_by(mine, ["method"], "n")
    name = "random signs: the error of projected K-norm noise falls like a power of n"
    return [slopes_lie_within(name, "JL-L13b, JL-T21", slopes, *SLOPES)]


#: Least and largest exponent of n with which the error after projection may fall, while the noise
#: is larger than the body. The dual bound has the exponent -1/2.
SLOPES = (-0.6, -0.3)


#: A ratio of errors at most this large can be told from 1 with a few releases.
CLEAR = 0.8


def compared(
    means: dict[tuple[object, ...], MeanSquare], found: pd.DataFrame
) -> tuple[dict[tuple[object, ...], MeanSquare], dict[tuple[object, ...], MeanSquare]]:
    """Mean squares of our best and of the best peer on each line found."""
    rows = list(found.itertuples())
    ours = {(row.line, row.n): means[row.line, row.n, row.ours] for row in rows}
    return ours, {(row.line, row.n): means[row.line, row.n, row.peer] for row in rows}


def report(table: pd.DataFrame) -> Table:
    """One row per mechanism; the verdict of the line beside our best."""
    shown = Table("line", "mechanism", "sampler", title="RMSE per query, 1-DP, replace-one")
    headings = ("predicted", "measured", "ratio", "goal", "excluded", "set-up s", "s a release")
    for heading in headings:
        shown.add_column(heading, justify="right")
    found = verdicts(table).set_index(PLACE)
    released = table[table.releases > 0]
    for (line, n, method), mean in pooled_by(released, [*PLACE, "method"]).items():
        row = table[(table.line == line) & (table.n == n) & (table.method == method)].iloc[0]
        verdict = found.loc[(line, n)]
        met = "met" if verdict.met else "not met"
        mine = method == verdict.ours
        shown.add_row(
            f"{line}, n = {n}",
            method,
            row.sampler,
            "" if row.prediction == "none" else f"{row.predicted:.4g}",
            f"{mean.root:.4g} +- {mean.root_stderr:.1g}",
            f"{mean.root / verdict['peer_error']:.3f}",
            f"{verdict.goal:g} {met}" if mine else "",
            f"{verdict.excluded:.2g}" if mine and verdict.excluded else "",
            f"{row.setup_seconds:.2g}",
            f"{row.release_seconds:.2g}",
        )
    for row in table[table.releases == 0].itertuples():
        place = f"{row.line}, n = {row.n}"
        shown.add_row(place, row.method, row.sampler, f"{row.predicted:.4g}", "not released")
    on_signs = released[(table.line == Line.SIGNS) & table.method.isin(PROJECTED)]
    if on_signs.n.nunique() > 1:
        slopes = slopes_by(on_signs, ["method"], "n")
        listed = "; ".join(f"{method}: {slope}" for (method,), slope in slopes.items())
        shown.caption = f"slope of the error over n on {Line.SIGNS}: {listed}"
    return shown


OUR_LOOK, PEER_LOOK = Look("C0", "o"), Look("C1", "s")
OUR_PROJECTED, PEER_PROJECTED = Look("C0", "o", filled=False), Look("C1", "s", filled=False)
LABELS = {
    "ours": OUR_LOOK,
    "ours, post-processed": OUR_PROJECTED,
    "others": PEER_LOOK,
    "others, post-processed": PEER_PROJECTED,
}
GOAL = "goal set before measuring"
#: Errors beyond this multiple of the best peer's are drawn as arrows at the edge.
EDGE = 12


def label_of(method: str) -> str:
    """Which of the four kinds a method is."""
    if method in PEERS:
        return "others, post-processed" if method in PROJECTED else "others"
    return "ours, post-processed" if method in PROJECTED else "ours"


def plot(table: pd.DataFrame) -> Figure:
    """Errors divided by that of the best peer, line by line, with the goals and our best named."""
    table = table[table.releases > 0]
    found = verdicts(table)
    figure = Figure(figsize=(7.2, 1.7 + 0.42 * len(found)))
    axes = figure.subplots()
    names = []
    for height, row in enumerate(found.itertuples()):
        draw_line(
            axes, table[(table.line == row.line) & (table.n == row.n)], row.peer_error, height
        )
        axes.plot([row.goal] * 2, [height - 0.35, height + 0.35], color="black", lw=2, label=GOAL)
        axes.text(EDGE * 1.12, height, f"{row.ratio:.2f}  {row.ours}", va="center", size=8)
        names.append(f"{row.line}, $n={row.n}$".replace(", m = 200, N = 1000", ""))
    axes.text(EDGE * 1.12, -0.75, "least of ours", va="center", size=8, weight="bold")
    axes.axvline(1, color="0.6", lw=0.8, zorder=0)
    axes.set_yticks(range(len(names)), names, size=8)
    axes.set_ylim(len(names) - 0.4, -1.1)
    axes.set_xscale("log")
    axes.set_xlim(0.13, EDGE)
    ticks = [0.2, 0.5, 1, 2, 5, 10]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("error over that of the best other mechanism (RMSE)")
    axes.plot([], [], ls="none", marker=">", color=PEER_LOOK.colour, label=BEYOND)
    columns = {"measured": [*LABELS], "beside them": [GOAL, BEYOND]}
    shared_legend(figure, [axes], columns)
    return figure


BEYOND = f"more than {EDGE} times the best other"


def draw_line(axes: Axes, table: pd.DataFrame, peer: float, height: int) -> None:
    """All mechanisms of one line, post-processed ones a little lower."""
    for (method,), mean in pooled_by(table, ["method"]).items():
        label, relative = label_of(str(method)), mean.over(peer)
        place = height - 0.12 + 0.24 * (method in PROJECTED)
        if relative.root > EDGE:
            axes.plot([EDGE * 0.95], [place], ls="none", marker=">", color=LABELS[label].colour)
            continue
        interval = relative.root_interval(BAND_LEVEL)
        draw_intervals(axes, relative.root, interval, place, LABELS[label], label)


QUICK = Sweep(quick_grid(), trials=1, seed=0)
FULL = Sweep(full_grid(), trials=1, seed=0)
