"""Parts of figures: curves with bands, dashed theory, one legend outside the axes."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from experiments.engine.statistics import MeanSquare, pooled_along

#: Probability that a 95% band misses the true value, above or below it.
BAND_LEVEL = 0.05
#: Opacity of uncertainty bands.
BAND_ALPHA = 0.25


@dataclass(frozen=True)
class Look:
    """The look of a curve, which is the same in every panel."""

    colour: str  # From the palette of the style file ("C0", ...)
    marker: str  # Matplotlib marker; it tells curves apart that look alike when printed in grey
    filled: bool = True  # Whether the marker is filled

    @property
    def face(self) -> str:
        """Colour of the inside of the marker."""
        return self.colour if self.filled else "white"


#: The last part of a look whose markers are not filled.
HOLLOW = False


class Curve(enum.StrEnum):
    """Names of curves, each with its look: ``NAME = "label", "C0", "o"``, or without a look."""

    look: Look | None

    def __new__(cls, label: str, colour: str = "", marker: str = "o", filled: bool = True) -> Self:
        member = str.__new__(cls, label)
        member._value_ = label
        member.look = Look(colour, marker, filled) if colour else None
        return member

    @classmethod
    def looks(cls) -> dict[Self, Look]:
        """The members with a look, in their order."""
        return {member: member.look for member in cls if member.look is not None}


def draw_points(
    axes: Axes,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    look: Look,
    label: str,
    line: str = "-",
    band: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    size: float | None = None,
    every: int | None = None,
) -> None:
    """Draw markers at (x, y), joined by `line` unless theory runs through them ("none").

    `band` has the lower and upper ends of a shaded band. Empty arrays make an entry of the legend.
    """
    if band is not None:
        axes.fill_between(x, *band, color=look.colour, alpha=BAND_ALPHA, lw=0)
    axes.plot(
        x,
        y,
        color=look.colour,
        linestyle=line,
        marker=look.marker,
        markerfacecolor=look.face,
        markersize=size,
        markevery=every,
        label=label,
        zorder=3,
    )


def draw_intervals(
    axes: Axes,
    values: npt.ArrayLike,
    intervals: npt.ArrayLike,
    heights: npt.ArrayLike,
    look: Look,
    label: str,
) -> None:
    """Draw markers at (`values`, `heights`), with bars over the horizontal `intervals` (n, 2)."""
    centres = np.atleast_1d(np.asarray(values, dtype=float))
    reach = np.abs(np.reshape(intervals, (-1, 2)).T - centres)
    axes.errorbar(
        centres,
        np.atleast_1d(heights),
        xerr=reach,
        fmt=look.marker,
        color=look.colour,
        markerfacecolor=look.face,
        label=label,
    )


def draw_measured(
    axes: Axes, means: Mapping[float, MeanSquare], look: Look, label: str, joined: bool = True
) -> None:
    """Draw root mean squares at their positions, as markers over a 95% band."""
    x = sorted(means)
    bands = np.array([means[position].root_interval(BAND_LEVEL) for position in x])
    roots = [means[position].root for position in x]
    line = "-" if joined else "none"
    draw_points(axes, x, roots, look, label, line, band=(bands[:, 0], bands[:, 1]))


def draw_predicted(
    axes: Axes, table: pd.DataFrame, x: str, look: Look, label: str, theory: str = "_"
) -> None:
    """Draw root mean squares against column `x`, over the dashed curve of their predictions."""
    predicted = table.groupby(x).predicted.first()
    draw_theory(axes, predicted.index, predicted, look.colour if theory == "_" else "black", theory)
    draw_measured(axes, pooled_along(table, x), look, label, joined=False)


def draw_theory(
    axes: Axes,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    colour: str,
    label: str,
    dashes: tuple[float, ...] = (4, 2),
) -> None:
    """Draw a dashed curve of theory without markers; `label` is its entry in the legend."""
    axes.plot(x, y, color=colour, linestyle=(0, dashes), linewidth=1.1, label=label)


def log_axes(axes: Axes) -> None:
    """Make both axes logarithmic, with labels at powers of 10 and minor ticks between them."""
    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(base=10, numticks=20))
        axis.set_minor_locator(LogLocator(base=10, subs=tuple(range(2, 10)), numticks=20))
        axis.set_minor_formatter(NullFormatter())


def label_ticks(axes: Axes, ticks: Sequence[float]) -> None:
    """Put ticks on the x axis at these positions only, with plain numbers as labels."""
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def panels(
    size: tuple[float, float],
    titles: Iterable[str],
    xlabel: str | Sequence[str] = "",
    ylabel: str | Sequence[str] = "",
    rows: int = 1,
    title_size: float | None = None,
    **layout: Any,
) -> tuple[Figure, list[Axes]]:
    """A figure with its panels, row by row, titled "(a) ..."; one label serves the outer panels."""
    figure, names = Figure(figsize=size), list(titles)
    columns = len(names) // rows
    every = [*figure.subplots(rows, columns, squeeze=False, **layout).flat]
    for place, (axes, letter, name) in enumerate(zip(every, ascii_lowercase, names, strict=False)):
        axes.set_title(f"({letter}) {name}", fontsize=title_size)
        if not isinstance(xlabel, str):
            axes.set_xlabel(xlabel[place])
        elif place >= len(every) - columns:
            axes.set_xlabel(xlabel)
        if not isinstance(ylabel, str):
            axes.set_ylabel(ylabel[place])
        elif place % columns == 0:
            axes.set_ylabel(ylabel)
    return figure, every


def ticks(*values: float) -> tuple[tuple[float, ...], list[str]]:
    """Positions of ticks, and their labels in plain numbers."""
    return values, [f"{value:g}" for value in values]


def shared_legend(figure: Figure, columns: Mapping[str, Sequence[str]]) -> Figure:
    """The figure with one legend below all panels; `columns` maps headings to labels."""
    handles: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    missing = handles.keys() - {label for labels in columns.values() for label in labels}
    if missing:
        raise ValueError(f"columns must hold every label, {sorted(missing)} are missing")
    blank = Line2D([], [], linestyle="none")
    height = max(map(len, columns.values()))
    entries: list[tuple[Artist, str]] = []
    for heading, labels in columns.items():
        filled = [(handles[label], label) for label in labels if label in handles]
        # A legend is filled column by column, so blanks fill up the short columns.
        entries += [(blank, heading), *filled, *[(blank, "")] * (height - len(filled))]
    legend = figure.legend(
        *zip(*entries, strict=True), loc="outside lower center", ncols=len(columns)
    )
    for text in legend.get_texts():
        if text.get_text() in columns:
            text.set_fontweight("bold")
    return figure
