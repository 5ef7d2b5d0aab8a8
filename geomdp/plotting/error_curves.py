"""A figure of the error against the number of records, for any workload."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from geomdp._typing import RandomState
from geomdp.advice.error_curve import Quantity, error_table
from geomdp.advice.least_budget import LeastBudget
from geomdp.plotting.pictures import COLOURS, library_style
from geomdp.privacy import Adjacency, Exact, Privacy
from geomdp.workloads import Records, Workload

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# The two panels of the figure, drawn from a table

#: Markers and colours of noises: those of all pictures, and then darker ones.
MARKERS = ("o", "s", "v", "D", "^", "P", "X")
NOISE_COLOURS = (*COLOURS, "#7F7F7F", "#882255", "#999933", "#332288", "#44AA99", "#8C510A")
#: Pairs of a colour and a marker. Projected curves have no markers, but thirteen colours.
LOOKS = tuple(
    (colour, MARKERS[(i + shift) % len(MARKERS)])
    for shift in range(len(MARKERS))
    for i, colour in enumerate(NOISE_COLOURS)
)
#: Factor by which the axis of n extends beyond the first and the last n, so that markers fit.
EDGE = 1.06
#: Largest value and ticks of the lower panel, which shows errors divided by the least error.
MOST_RATIO, RATIO_TICKS = 4.0, (1, 1.1, 1.2, 1.5, 2, 3, 4)
PROJECTED_MARKER, DASHED, EXCLUDED_COLOUR = "d", (0, (4, 2)), "#D9D9D9"
#: Entry of the legend if no region is shaded: for weak guarantees and very large universes.
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
            _to_logarithms(each)
        for _, points in predicted.groupby("curve", sort=False):
            _draw_predicted(axes, points, looks[points.noise.iloc[0]])
        for _, points in measured.groupby("curve", sort=False):
            _draw_measured(axes, points, looks[points.noise.iloc[0]])
        for n in (predicted.n.min(), predicted.n.max()):
            best = least_predicted(table, n)
            label = f"least with {n} records:\n{best.curve}"
            _draw_star(axes, n, best.rmse, label, size=11)
        _draw_excluded(axes, of[Quantity.EXCLUDED])
        axes.set_xlim(table.n.min() / EDGE, table.n.max() * EDGE)
        _draw_ratios(ratios, predicted, looks)
        axes.set_ylabel("error per query (RMSE of means)")
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
        figure.legend(handles=_legend(axes, table), loc="outside right upper")
    return figure


def _to_logarithms(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(True, which="major")


def _draw_star(axes: Axes, x: float, y: float, label: str, *, size: int) -> None:
    axes.plot([x], [y], label=label, marker="*", markersize=size, color="black", ls="", zorder=4)


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
        hollow = partial(Line2D, [], [], color=grey, ls="", mfc="white")
        handles.append(hollow(marker="o", label="measured on records,\nnot private"))
        handles.append(hollow(marker=PROJECTED_MARKER, label="the same, projected"))
    return handles


# The figure


@dataclass(frozen=True, repr=False)
class ErrorCurve:
    """A figure of the error against n or a budget, with the numbers that it shows."""

    table: pd.DataFrame
    figure: Figure

    def __repr__(self) -> str:
        axis = self.table.columns[0]
        numbers, curves = self.table[axis], self.table["curve"].nunique()
        return f"ErrorCurve({curves} curves, {axis} from {numbers.min()} to {numbers.max()})"

    def _repr_html_(self) -> str:
        return self.encoded()[".svg"].decode()

    def encoded(self) -> dict[str, bytes]:
        """The contents of three files, under the keys ".png", ".svg" and ".csv"."""
        contents = {}
        with library_style():
            for kind, left_out in (("png", "Software"), ("svg", "Date")):
                buffer = io.BytesIO()
                self.figure.savefig(buffer, format=kind, dpi=200, metadata={left_out: None})
                contents[f".{kind}"] = buffer.getvalue()
        contents[".csv"] = self.table.to_csv(index=False).encode()
        return contents


def error_curve(
    workload: Workload,
    *,
    ns: Sequence[int],
    privacy: Privacy,
    exact_only: bool = False,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    records: Records | None = None,
    rng: RandomState = 0,
    title: str = "",
) -> ErrorCurve:
    """Draw the error against the number n of records for every mechanism that applies.

    Curves are predictions, made without records. Dashed curves belong to mechanisms with a
    heuristic sampler, which have no guarantee. Every mechanism with the guarantee `privacy` is
    proved to exceed the shaded errors on some data set of n records. If there are none, the legend
    says so.

    Parameters
    ----------
    workload : Workload
        The workload of m queries.
    ns : sequence of int
        At least two numbers of records, in increasing order.
    privacy : PureDP, ApproxDP or ZCDP
        Guarantee of every mechanism with an exact sampler; a target for other mechanisms.
    exact_only, adjacency : bool, Adjacency
        As for `geomdp.advise`.
    records : array or DataFrame, optional
        Public or synthetic records in the encoding of ``workload.universe``. Markers with bars show
        the errors measured on them, see Notes.
    rng : Generator, int or None
        Randomness of the measurements.
    title : str
        Title of the figure; by default the number of queries. The guarantee and the adjacency are
        appended.

    See Also
    --------
    geomdp.advice.error_table : The numbers alone, with the same errors.

    Notes
    -----
    Without `records`, the result depends on public arguments only. Errors measured on `records` are
    not private: no noise is added, and no ledger is charged. Publish them only if the records are
    public.

    Examples
    --------
    >>> import geomdp as gd
    >>> W = gd.workloads.Histogram(3)
    >>> curve = gd.plotting.error_curve(W, ns=[100, 1000], privacy=gd.ZCDP(0.5), exact_only=True)
    >>> curve.figure.axes[-1].get_xlabel()
    'number of records $n$'
    """
    table = error_table(
        workload,
        ns=ns,
        privacy=privacy,
        exact_only=exact_only,
        adjacency=adjacency,
        records=records,
        rng=rng,
    )
    title = title or f"{workload.n_queries} queries"
    return ErrorCurve(table, draw_table(table, f"{title}, {privacy}, {adjacency.value}"))


# The error against the budget, with targets

#: Number of budgets of a curve, and how far the curve goes beyond the budgets that it shows.
BUDGETS, BEYOND = 12, 4.0


def budget_curve(found: LeastBudget, *, title: str = "") -> ErrorCurve:
    """Draw the errors of the mechanism that `budget_for` found against the budget.

    A curve belongs to a target, and the dashed line of the same colour to its limit. The star is
    the least budget that meets all targets. Budgets in the shaded region are proved to be too small
    for every mechanism. The table has the columns of the figure: epsilon or rho, curve, error and
    limit.

    Parameters
    ----------
    found : LeastBudget
        The result of `budget_for`.
    title : str
        Second line of the title, below the budget and the mechanism.

    Examples
    --------
    >>> import geomdp as gd
    >>> targets = [gd.advice.HalfWidth(0.02)]
    >>> found = gd.budget_for(gd.workloads.Histogram(4), n=1000, targets=targets)
    >>> gd.plotting.budget_curve(found).figure.axes[0].get_xlabel()
    'epsilon'
    """
    import pandas as pd
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    low = found.budget if found.impossible is None else found.impossible.budget
    budgets = np.geomspace(low / BEYOND, found.budget * BEYOND, BUDGETS)
    rows = [
        (budget, str(target), error, target.limit)
        for budget in budgets.tolist()
        for target, error in found.errors(budget)
    ]
    table = pd.DataFrame(rows, columns=[found.parameter, "curve", "error", "limit"])
    with library_style():
        figure = Figure(figsize=(8.4, 4.6), layout="constrained")
        axes = figure.subplots()
        _to_logarithms(axes)
        curves = zip(table.groupby("curve", sort=False), cycle(LOOKS), strict=False)
        for i, ((curve, points), (colour, marker)) in enumerate(curves):
            axes.plot(
                points[found.parameter],
                points.error,
                color=colour,
                marker=marker,
                markersize=4,
                markevery=(i % 3, 3),  # the markers show curves that are one line
                label=textwrap.fill(str(curve), 24),
            )
            axes.axhline(points.limit.iloc[0], color=colour, linestyle=DASHED, linewidth=1.2)
        label = f"least {found.parameter}: {found.budget:.3g}"
        _draw_star(axes, found.budget, found.binding.limit, label, size=13)
        axes.set_xlim(budgets[0], budgets[-1])
        if found.impossible is not None:
            label = f"out of reach of\nevery mechanism:\n{found.parameter} up to {low:.3g}"
            axes.axvspan(budgets[0], low, color=EXCLUDED_COLOUR, lw=0, zorder=0, label=label)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:g}")
        axes.set_xlabel(found.parameter)
        axes.set_ylabel("predicted error, and the limits (dashed)")
        heading = f"{found.parameter} {found.budget:.3g} meets all targets, by {found.name}"
        heading += f"\n{title}" if title else ""
        axes.set_title(heading, loc="left", fontsize=10, fontweight="bold")
        figure.legend(loc="outside right upper")
    return ErrorCurve(table, figure)
