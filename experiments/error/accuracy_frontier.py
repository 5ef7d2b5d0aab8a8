"""Marginal tables: errors of exact mechanisms and of heuristic noise, beside lower bounds.

The mechanisms add noise that does not depend on the records, at n = 5000 and 1-DP under
replace-one. The workloads are three lines (kinds of tables) of the script `accuracy_table`. The
peer is the matrix mechanism with Laplace noise. Exact samplers are known for cone noise (`Cone`,
`TightCone`) and for K-norm noise on levels (`Hierarchical`). Let K be the convex hull of the tables
of single records. No practical exact sampler is known for uniform points of K or of K - K. Two
kinds of noise would need such a sampler: K-norm noise of K - K, and the difference of two points of
K times one random radius (`PairedNoise`). Hit-and-run chains estimate the errors of these two
kinds. The chains are heuristic, and nothing is released with them. For columns of more than two
levels, K has too many vertices for chains. The moment body, cut by all cell and triangle
inequalities, contains K. It then takes the place of K, and K - K is left out.

Claims (formula sheet X-LKJ, X-CONE, JL-L14, JL-KN): on every line some exact mechanism is predicted
to err less than the peer. The least heuristic error is, up to chance, no larger than the least
error of the exact mechanisms. No error is below the lower bounds from orthogonal lines, one for all
mechanisms and one for noise that does not depend on the records. On 3-way tables even the heuristic
noise errs more than the goal, so an exact sampler for these bodies would not reach the goal. On
2-way tables of binary columns K-norm noise of K - K would reach the goal. The goals ask for a
mechanism with an exact sampler that errs at most 0.5 times as much as the peer on 2-way tables of
binary columns, and at most 0.7 times as much on the other lines. All goals are still open.

Intervals of heuristic errors are Student t intervals from the means of independent chains, so they
do not assume that the steps of one chain are independent. Split R-hat and effective sample size are
computed from the squared error. They can refute convergence but not prove it.

Run time on one core: quick 6 s, full 2 minutes.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
from experiments.error.frontier_errors import (
    EXACT,
    EXCLUDED,
    GOALS,
    HEURISTIC,
    OURS,
    Config,
    Source,
    excluded,
    goals_of,
    least,
    predicted,
    ratios,
    walked,
)
from experiments.shared.workloads import Line

#: Chains with a split R-hat of this or more are not compared with a goal.
MIXED = 1.3


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean squared error per query, or a squared lower bound, and how the number is known."""
    if config.source in EXACT:
        return predicted(config.line, EXACT[config.source])
    if config.source in HEURISTIC:
        return walked(config, rng)
    return excluded(config)


def claims(table: pd.DataFrame) -> ex.Claims:
    found = ratios(table)
    ours, frontier = least(found, OURS), least(found, HEURISTIC)
    bounds = {(line, source): mean for (line, source), mean in found.items() if source in EXCLUDED}
    lowest = least(found, (*EXACT, *HEURISTIC))
    yield ex.is_below(
        "on every line, an exact mechanism is predicted to err less than the peer",
        "X-LKJ, X-CONE, X-SIM",
        {(line,): mean for line, mean in ours.items()},
        {(line,): found[line, Source.MATRIX] for line in ours},
    )
    yield frontier_is_not_above(frontier, ours)
    name = "on every line, both lower bounds are below the least error"
    yield ex.is_below(
        name, "JL-L6", bounds, {(line, source): lowest[line] for line, source in bounds}
    )
    yield from against_goals(table)


def frontier_is_not_above(
    frontier: dict[str, ex.MeanSquare], ours: dict[str, ex.MeanSquare]
) -> ex.Claim:
    """The claim that heuristic noise errs at most as much as our best exact one, at `LEVEL`."""
    passed = True
    for line, mean in frontier.items():
        reach = ex.quantile(ex.LEVEL / len(frontier), mean.count)
        reach *= math.hypot(mean.stderr, ours[line].stderr)
        passed &= mean.value - ours[line].value <= reach
    shares = {line: mean.root / ours[line].root for line, mean in frontier.items()}
    name = "the least heuristic error does not exceed our least exact error beyond chance"
    verdict = ex.Verdict(passed, max(shares.values()))
    measured = "; ".join(f"{line}: {share:.3f}" for line, share in shares.items())
    return ex.Claim(name, verdict, measured, "at most 1", "JL-L14, JL-KN")


def against_goals(table: pd.DataFrame) -> ex.Claims:
    """Compare 95% intervals of heuristic errors with the goals of two lines."""
    found = ratios(table)
    mixed = table[table.split_r_hat < MIXED]
    for line, beyond in ((Line.BINARY, False), (Line.THREE_WAY, True)):
        sources = mixed[mixed.line == line].source
        ends = {each: found[line, each].root_interval(ex.BAND_LEVEL) for each in sources}
        if not ends:
            continue
        missed = [low > GOALS[line] for low, _ in ends.values()]
        reached = [high <= GOALS[line] for _, high in ends.values()]
        yield ex.Claim(
            f"{line}: heuristic noise {'errs more than' if beyond else 'reaches'} the goal",
            ex.Verdict(
                all(missed) if beyond else any(reached),
                ex.share(
                    max(GOALS[line] / low for low, _ in ends.values())
                    if beyond
                    else min(high / GOALS[line] for _, high in ends.values()),
                    1,
                ),
            ),
            "; ".join(f"{each}: [{low:.3f}, {high:.3f}]" for each, (low, high) in ends.items()),
            f"{'all intervals above' if beyond else 'an interval not above'} {GOALS[line]:g}",
            "JL-L14, JL-KN",
        )


def goals(table: pd.DataFrame) -> ex.Goals:
    """Compare our least exact error with the goal of each line, beside the heuristic error."""
    return goals_of(table)


PEER, EXACTLY = "matrix mechanism, exact", "geomdp, exact sampler"
CHAINS = "no exact sampler: chains, 95% intervals"
GOAL = "goal set before"
LOOKS = {
    PEER: ex.Look(ex.GREY, "s"),
    EXACTLY: ex.Look("C0", "o"),
    CHAINS: ex.Look("C4", "D", filled=False),
}
#: Names on the y axis. `Source.CUT` shares the row of `Source.PAIRED`.
ROWS = {
    Source.MATRIX: "matrix mechanism,\nLaplace noise",
    Source.HIERARCHICAL: "K-norm noise on levels\n(Hierarchical)",
    Source.CONE: "cone noise over the\nelliptope (Cone)",
    Source.TIGHT_CONE: "cone noise, body cut\n(TightCone)",
    Source.PAIRED: "pairs of points of $K$\n(chains only)",
    Source.KNORM: "K-norm noise of $K-K$\n(chains only)",
}


def plot(table: pd.DataFrame) -> ex.Figure:
    lines = list(dict.fromkeys(table.line))
    titles = [line.replace(", ", ",\n", 1) for line in lines]
    figure, panels = ex.panels((7.2, 4.9), titles, ["RMSE over matrix"] * len(lines), sharey=True)
    for axes, line in zip(panels, lines, strict=True):
        draw(axes, table[table.line == line])
    panels[0].set_yticks(range(len(ROWS)), list(ROWS.values()))
    panels[0].set_ylim(len(ROWS) - 0.4, -0.5)
    ex.shared_legend(figure, {"errors": [*LOOKS], "limits": [GOAL, *EXCLUDED]})
    return ex.headline(
        figure,
        "2-way tables: exact samplers reach most of the possible gain; 3-way: none",
        "1-DP, $n=5000$. Error over that of the matrix mechanism.",
    )


def draw(axes: ex.Axes, table: pd.DataFrame) -> None:
    """Draw one line of tables: markers with intervals, the goal, and the lower bounds."""
    found, line = ratios(table), table.line.iloc[0]
    for source in (*EXACT, *HEURISTIC):
        if (line, source) not in found:
            continue
        ratio = found[line, source]
        height = list(ROWS).index(Source.PAIRED if source is Source.CUT else source)
        label = PEER if source is Source.MATRIX else CHAINS if source in HEURISTIC else EXACTLY
        look = LOOKS[label]
        ex.draw_intervals(axes, ratio.root, ratio.root_interval(ex.BAND_LEVEL), height, look, label)
        left = ratio.root > 0.9
        side, align = ((-9, 0), "right") if left else ((9, 0), "left")
        ex.note(axes, (ratio.root, height), f"{ratio.root:.2f}", look.colour, side, align)
    axes.axvline(GOALS[Line(line)], color="black", lw=1.6, zorder=0.5, label=GOAL)
    axes.axvspan(0, found[line, Source.ALL].root, color=ex.IMPOSSIBLE, lw=0, label=Source.ALL)
    additive = found[line, Source.ADDITIVE].root
    axes.axvline(additive, color=ex.GREY, ls=(0, (4, 2)), label=Source.ADDITIVE)
    axes.set_xlim(0, 1.1)
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])


def grid(lines: dict[Line, dict[Source, tuple[int, int]]]) -> tuple[Config, ...]:
    """Exact mechanisms, walks and bounds on each line; `lines` gives chains and steps of walks."""
    configs = []
    for line, walks in lines.items():
        cones = () if line is Line.THREE_WAY else (Source.CONE, Source.TIGHT_CONE)
        configs += [Config(line, each) for each in (Source.MATRIX, Source.HIERARCHICAL, *cones)]
        configs += [Config(line, each, *size) for each, size in walks.items()]
        configs += [Config(line, each) for each in EXCLUDED]
    return tuple(configs)


QUICK = ex.Sweep(
    grid({Line.CATEGORICAL: {Source.CUT: (16, 30)}, Line.THREE_WAY: {Source.KNORM: (16, 14)}})
)
FULL = ex.Sweep(
    grid(
        {
            Line.BINARY: {Source.PAIRED: (8, 1600), Source.KNORM: (8, 960)},
            Line.CATEGORICAL: {Source.CUT: (16, 5000)},
            Line.THREE_WAY: {Source.PAIRED: (8, 1680), Source.KNORM: (8, 2880)},
        }
    )
)
