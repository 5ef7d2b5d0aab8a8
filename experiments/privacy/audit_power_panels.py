"""The two panels of the figure on the power of audits."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.engine.drawing import Look, draw_points, shared_legend
from experiments.privacy.audited_mechanisms import Family
from experiments.privacy.faulty_noise import PLANTED, Fault

LOOKS = {
    Fault.NONE: Look("C6", "o"),
    Fault.DEAD: Look("C0", "s"),
    Fault.SHARED: Look("C2", "v"),
    Fault.SUBSPACE: Look("C5", "^"),
    Fault.HALF: Look("C3", "D"),
    Fault.CORRECT: Look("C6", "|"),
}
#: Heights of marks within the row of a mechanism. These four faults have the same bound on epsilon,
#: the largest that their number of draws can give. At the same height their marks would coincide.
OFFSETS = {Fault.NONE: 0.3, Fault.DEAD: 0.1, Fault.SHARED: -0.1, Fault.SUBSPACE: -0.3}
SIZES = {10_000: Look("C5", "o"), 100_000: Look("C0", "s"), 1_000_000: Look("C3", "D")}
#: Legend entry of the marks for the largest noise factors that the best event refutes. The colour
#: of a mark tells the number of draws.
BEST = "best event, from exact laws"
LIMIT = r"correct noise, claimed $\varepsilon$"


def size_label(trials: int) -> str:
    """Number of draws, for the legend."""
    return f"$10^{round(math.log10(trials))}$ draws"


def drawn(table: pd.DataFrame) -> Figure:
    """Panel (a): largest noise factors refuted. Panel (b): bounds on epsilon for planted faults."""
    figure = Figure(figsize=(7.2, 7.6))
    power, faults = figure.subplots(1, 2, sharey=True)
    shown = [family for family in Family if (table.family == family).any()]
    heights = {family: -row for row, family in enumerate(shown)}
    factors = table[table.fault == Fault.SCALED]
    for trials, look in SIZES.items():
        mine = (
            factors[factors.trials == trials]
            .groupby("family", as_index=False)
            .mean(numeric_only=True)
        )
        if len(mine):
            rows = mine.family.map(heights)
            draw_points(power, mine.factor, rows, look, size_label(trials), "none", size=6)
            ideal = mine.dropna(subset="best")
            rows, best = ideal.family.map(heights), Look(look.colour, "|")
            draw_points(power, ideal.best, rows, best, BEST, "none", size=9)
    for fault, look in LOOKS.items():
        mine = table[table.fault == fault]
        rows = mine.family.map(heights) + OFFSETS.get(fault, 0.0)
        size = 3.5 if fault in OFFSETS else 6
        draw_points(faults, mine.share, rows, look, fault, "none", size=size)
    rule(power)
    rule(faults)
    power.set_yticks(list(heights.values()), list(heights))
    power.set_xlim(0.2, 1.03)
    faults.set_xlim(left=0)
    power.set_xlabel("largest noise factor refuted")
    faults.set_xlabel(r"lower bound on $\varepsilon$ / claimed $\varepsilon$")
    power.set_title("(a) noise that is too small")
    faults.set_title("(b) planted faults")
    shared_legend(
        figure,
        (power, faults),
        {
            "draws in (a)": [*(size_label(trials) for trials in SIZES), BEST],
            "noise in (b)": [Fault.CORRECT, *PLANTED],
            "limit in both": [LIMIT],
        },
    )
    return figure


def rule(axes: Axes) -> None:
    """A dotted line at 1."""
    axes.axvline(1.0, color="0.35", lw=1.1, ls=(0, (1, 2)), label=LIMIT)
    axes.grid(axis="y", visible=False)
