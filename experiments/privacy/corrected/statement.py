"""The statements that the panels of the figure compare, each as printed and as corrected."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import pandas as pd

import experiments.engine.tools as ex


class Statement(enum.StrEnum):
    """Published statements, one panel each."""

    ITERATIVE = "iterative construction"
    NUMERIC = "NumericSparse"
    MEDIAN = "median rule"
    SMOOTH_NOISE = "smooth queries: noise"
    SMOOTH_ERROR = "smooth queries: error"
    COMPOSITION = "composition"
    ONLINE = "online weights"
    FLAT = "flat projected queries"


class Version(ex.Curve):
    """Which form of a statement is measured."""

    PRINTED = "printed", "C3", "D", ex.HOLLOW
    CORRECTED = "corrected", "C0", "o"


@dataclass(frozen=True)
class Measured:
    """One instance that meets all assumptions of a statement."""

    measured: float  # The quantity that the statement bounds
    promised: float  # The bound that the statement gives for this quantity
    #: If `measured` is the probability of an event that was also simulated, the share of simulated
    #: runs with this event; otherwise None.
    drawn: float | None = None


@dataclass(frozen=True)
class Panel:
    """How one statement is drawn."""

    title: str  # The statement, and below it the measured quantity
    label: str  # Label of the horizontal axis: the parameter that varies
    limits: tuple[float, float]  # Limits of the vertical axis, logarithmic if the first is above 0
    ticks: tuple[float, ...] | None = None  # Labelled values of x; None labels the decades


PANELS = {
    Statement.ITERATIVE: Panel(
        "(a) iterative construction, Thm 5\nlargest error",
        r"error at the start $/\,\alpha$",
        (0, 1.5),
        (0.5, 1, 2, 4),
    ),
    Statement.NUMERIC: Panel(
        "(b) NumericSparse, Thm 3.28\nprobability of a large error", "queries $k$", (1e-8, 1e2)
    ),
    Statement.MEDIAN: Panel(
        "(c) median rule, Thm 5.8\nupdates forced", r"$1/\alpha$", (0, 2.5), (4, 16, 64, 256)
    ),
    Statement.SMOOTH_NOISE: Panel(
        "(d) smooth queries, Thm 3.1 (1)\nprivacy loss",
        "frequencies $t$",
        (0, 1.5),
        (2, 4, 8, 16, 32, 64, 128),
    ),
    Statement.SMOOTH_ERROR: Panel(
        "(e) smooth queries, Thm 3.1 (2)\nworst error", r"$\varepsilon$", (0.1, 1e4)
    ),
    Statement.COMPOSITION: Panel(
        "(f) composition, Thm 2.10\n" r"exact $\varepsilon$", r"$\delta/(1-\delta)$", (0.1, 1e3)
    ),
    Statement.ONLINE: Panel(
        "(g) online weights, step of Thm 4.14\nprobability of a large error",
        r"$\beta$",
        (1e-2, 1e2),
    ),
    Statement.FLAT: Panel(
        "(h) flat queries, step of Cor 4.7\nbound by Lemma 4.6", r"$kT/(2\beta)$", (0, 1.5)
    ),
}
LOOKS = Version.looks()


def draw_panel(axes: ex.Axes, rows: pd.DataFrame, panel: Panel) -> None:
    """Draw one statement from the columns x, share and version. Shares of 0 are not drawn."""
    axes.axhspan(1, panel.limits[1], color="0.92", lw=0, zorder=0)
    axes.axhline(1, color="black", linestyle=(0, (4, 2)), linewidth=1.1)
    for version, look in LOOKS.items():
        mine = rows[rows.version == version].sort_values("x")
        ex.draw_points(axes, mine.x, mine.share.where(mine.share > 0), look, version)
    axes.set_xscale("log")
    if panel.limits[0] > 0:
        axes.set_yscale("log")
    if panel.ticks is not None:
        ex.label_ticks(axes, panel.ticks)
    axes.set_ylim(*panel.limits)
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(panel.label)
