"""The accuracy table as a figure: errors divided by the best peer's error, by workload and n."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.benchmarks.accuracy_work.advice import measured
from experiments.benchmarks.accuracy_work.verdicts import verdicts
from experiments.engine.drawing import BAND_LEVEL, Look, draw_intervals, shared_legend
from experiments.engine.statistics import pooled_by
from experiments.shared.accuracy_lines import PEERS, PROJECTED, Method

OUR_LOOK, PEER_LOOK = Look("C0", "o"), Look("C1", "s")
OUR_PROJECTED, PEER_PROJECTED = Look("C0", "o", filled=False), Look("C1", "s", filled=False)
LABELS = {
    "ours": OUR_LOOK,
    "ours, post-processed": OUR_PROJECTED,
    "others": PEER_LOOK,
    "others, post-processed": PEER_PROJECTED,
    "what is advised": Look("C3", "D", filled=False),
}
GOAL = "goal set before measuring"
#: Errors above this multiple of the best peer's error are drawn as arrows at the edge.
EDGE = 12


def label_of(method: str) -> str:
    """The legend entry of a method."""
    if method == Method.ADVISED:
        return "what is advised"
    if method in PEERS:
        return "others, post-processed" if method in PROJECTED else "others"
    return "ours, post-processed" if method in PROJECTED else "ours"


def draw(table: pd.DataFrame) -> Figure:
    """Draw errors over the best peer's error on each line, and the goals; name our best method."""
    table = table[table.releases > 0]
    found, advised = verdicts(table), measured(table)
    figure = Figure(figsize=(7.2, 1.7 + 0.42 * len(found)))
    axes = figure.subplots()
    names = []
    for height, row in enumerate(found.itertuples()):
        draw_line(
            axes, table[(table.line == row.line) & (table.n == row.n)], row.peer_error, height
        )
        axes.plot([row.goal] * 2, [height - 0.35, height + 0.35], color="black", lw=2, label=GOAL)
        words = f"{row.ratio:.2f}  {row.ours}"
        if (row.line, row.n) in advised:
            words += f"\nadvised: {advised[row.line, row.n].share:.2f} of the least"
        axes.text(EDGE * 1.12, height, words, va="center", size=8)
        names.append(f"{row.line}, $n={row.n}$".replace(", m = 200, N = 1000", ""))
    axes.text(EDGE * 1.12, -0.75, "least of ours", va="center", size=8, weight="bold")
    axes.axvline(1, color="0.6", lw=0.8, zorder=0)
    axes.set_yticks(range(len(names)), names, size=8)
    axes.set(ylim=(len(names) - 0.4, -1.1), xscale="log", xlim=(0.13, EDGE))
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
    """Draw all mechanisms of one line, the post-processed and advised ones a little lower."""
    for (method,), mean in pooled_by(table, ["method"]).items():
        label, relative = label_of(str(method)), mean.over(peer)
        place = height - 0.12 + 0.24 * (method in (*PROJECTED, Method.ADVISED))
        if relative.root > EDGE:
            axes.plot([EDGE * 0.95], [place], ls="none", marker=">", color=LABELS[label].colour)
            continue
        interval = relative.root_interval(BAND_LEVEL)
        draw_intervals(axes, relative.root, interval, place, LABELS[label], label)
