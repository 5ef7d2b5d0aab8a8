"""The two panels of a figure of errors against the number of records, drawn from a table."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

from geomdp.advice.error_curve import Quantity
from geomdp.plotting.looks import COLOURS, library_style
from geomdp.privacy import Exact

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Markers of noises. Up to seven noises can be told apart without any colour.
MARKERS = ("o", "s", "v", "D", "^", "P", "X")
#: Colours of noises: those of all pictures, and then darker ones for as many noises again.
NOISE_COLOURS = (*COLOURS, "#7F7F7F", "#882255", "#999933", "#332288", "#44AA99", "#8C510A")
#: All pairs of a colour and a marker. Each noise gets a pair of its own; up to thirteen noises have
#: colours of their own, and projected curves, which have no markers, are told apart, too.
LOOKS = tuple(
    (colour, MARKERS[(i + shift) % len(MARKERS)])
    for shift in range(len(MARKERS))
    for i, colour in enumerate(NOISE_COLOURS)
)
#: Factor by which the axis of n extends beyond the first and the last n, so that markers fit.
EDGE = 1.06
#: Largest value and ticks of the lower panel, which shows errors divided by the least error.
MOST_RATIO, RATIO_TICKS = 4.0, (1, 1.1, 1.2, 1.5, 2, 3, 4)
PROJECTED_MARKER, DASHED = "d", (0, (4, 2))
EXCLUDED_COLOUR = "#D9D9D9"
#: Entry of the legend if no region is shaded. Usual reasons are a weak guarantee, or a universe
#: that is too large to search for data sets with answers far apart.
NOTHING_EXCLUDED = "no shaded region: the\nknown lower bounds\nexclude no error here"
#: Half-width of a two-sided 95% interval of a normal distribution, in standard errors.
BAND = 1.96


def draw_table(table: pd.DataFrame, title: str) -> Figure:
    """The figure of a table with the columns of `geomdp.advice.error_table`."""
    from matplotlib.figure import Figure

    of = {what: table[table.quantity == what.value] for what in Quantity}
    predicted, measured = of[Quantity.PREDICTED], of[Quantity.MEASURED]
    looks = dict(zip(predicted.noise.unique(), cycle(LOOKS), strict=False))
    with library_style():
        figure = Figure(figsize=(8.4, 6.4), layout="constrained")
        axes, ratios = figure.subplots(2, 1, sharex=True, height_ratios=(1.5, 1))
        for each in (axes, ratios):
            each.set_xscale("log")
            each.set_yscale("log")
            each.grid(True, which="major")
        for _, points in predicted.groupby("curve", sort=False):
            _draw_predicted(axes, points, looks[points.noise.iloc[0]])
        for _, points in measured.groupby("curve", sort=False):
            _draw_measured(axes, points, looks[points.noise.iloc[0]])
        _draw_least(axes, table)
        _draw_excluded(axes, of[Quantity.EXCLUDED])
        axes.set_xlim(table.n.min() / EDGE, table.n.max() * EDGE)
        _draw_ratios(ratios, predicted, looks)
        axes.set_ylabel("error per query (RMSE of means)")
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
        figure.legend(handles=_legend(axes, table), loc="outside right upper")
    return figure


def _draw_ratios(axes: Axes, predicted: pd.DataFrame, looks: dict[str, tuple[str, str]]) -> None:
    """Draw predictions divided by the least prediction for the same n, to separate curves."""
    least = predicted.groupby("n").rmse.min()
    relative = predicted.assign(rmse=predicted.rmse / predicted.n.map(least))
    for _, points in relative.groupby("curve", sort=False):
        _draw_predicted(axes, points, looks[points.noise.iloc[0]])
    # This panel cuts off curves with large errors. The upper panel shows all curves.
    top = min(MOST_RATIO, 1.1 * float(relative.rmse.max()))
    axes.set_ylim(0.97, max(top, 1.1))
    ticks = [tick for tick in RATIO_TICKS if tick <= max(top, 1.1)]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("number of records $n$")
    axes.set_ylabel("predicted, over the least")


def _draw_predicted(axes: Axes, points: pd.DataFrame, look: tuple[str, str]) -> None:
    """Draw a curve of predictions: thin and without markers if projected, dashed if heuristic."""
    first = points.iloc[0]
    colour, marker = look
    plain, dashed = first.curve == first.noise, first.sampler != str(Exact())
    axes.plot(
        points.n,
        points.rmse,
        color=colour,
        linestyle=DASHED if dashed else "-",
        linewidth=1.6 if plain else 0.9,
        marker=marker if plain else "",
        markersize=4,
        markevery=max(1, len(points) // 4),
        # Matplotlib leaves labels with an underscore out of legends.
        label=f"{first.noise}{', heuristic' * dashed}" if plain else "_projected",
    )


def _draw_measured(axes: Axes, points: pd.DataFrame, look: tuple[str, str]) -> None:
    """Draw white markers, with bars of 1.96 standard errors on either side."""
    first = points.iloc[0]
    colour, marker = look
    axes.errorbar(
        points.n,
        points.rmse,
        yerr=BAND * points.stderr,
        fmt=marker if first.curve == first.noise else PROJECTED_MARKER,
        color=colour,
        markerfacecolor="white",
        markersize=6,
        elinewidth=1.2,
        zorder=3,
        label="_measured",
    )


def least_predicted(table: pd.DataFrame, n: int) -> pd.Series[Any]:
    """The row of a table of `error_table` with the least predicted error for n records."""
    there = table[(table.quantity == Quantity.PREDICTED.value) & (table.n == n)]
    return there.iloc[int(there.rmse.argmin())]


def _draw_least(axes: Axes, table: pd.DataFrame) -> None:
    """Draw stars at the least predicted errors for the smallest and the largest n."""
    predicted = table[table.quantity == Quantity.PREDICTED.value]
    for n in (predicted.n.min(), predicted.n.max()):
        best = least_predicted(table, n)
        label = f"least with {n} records:\n{best.curve}"
        axes.plot(
            [n], [best.rmse], marker="*", markersize=11, color="black", ls="", zorder=4, label=label
        )


def _draw_excluded(axes: Axes, excluded: pd.DataFrame) -> None:
    """Shade the errors that are proved to be out of reach with n records, and so with fewer."""
    if excluded.empty:
        return
    axes.fill_between(
        excluded.n,
        excluded.rmse.min() / 2,
        excluded.rmse,
        step="pre",
        color=EXCLUDED_COLOUR,
        linewidth=0,
        zorder=0,
        label="out of reach of\nevery mechanism",
    )
    axes.set_ylim(bottom=excluded.rmse.min() / 2)


def nothing_excluded(table: pd.DataFrame) -> bool:
    """Whether a table of `error_table` has no row for errors that are out of reach."""
    return not (table.quantity == Quantity.EXCLUDED.value).any()


def _legend(axes: Axes, table: pd.DataFrame) -> list[Artist]:
    """The entries of the legend: noises, least errors, shaded region, line styles, markers."""
    from matplotlib.lines import Line2D

    handles: list[Artist] = [*axes.get_legend_handles_labels()[0]]
    if nothing_excluded(table):
        handles.append(Line2D([], [], ls="", label=NOTHING_EXCLUDED))
    predicted = table[table.quantity == Quantity.PREDICTED.value]
    grey = "#555555"
    if (predicted.curve != predicted.noise).any():
        handles.append(Line2D([], [], color=grey, lw=0.9, label="the same, projected"))
    if (predicted.sampler != str(Exact())).any():
        label = "heuristic sampler:\nno privacy guarantee"
        handles.append(Line2D([], [], color=grey, linestyle=DASHED, label=label))
    if (table.quantity == Quantity.MEASURED.value).any():
        for marker, label in (
            ("o", "measured on records,\nnot private"),
            (PROJECTED_MARKER, "the same, projected"),
        ):
            handles.append(
                Line2D([], [], color=grey, marker=marker, ls="", mfc="white", label=label)
            )
    return handles
