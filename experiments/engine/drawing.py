"""Parts of figures: results as titles, curves with bands, dashed theory, labels beside curves.

The grammar of all figures: the title says the result, and the settings stand below it in grey. Blue
is geomdp, and green, purple and sky blue are its variants. Orange is Laplace noise, grey are peers
and theory, vermilion is what was printed but is wrong. A grey area is impossible. Theory is dashed.
"""

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
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import Formatter, LogFormatterMathtext, LogLocator, NullLocator
from scipy.optimize import isotonic_regression

from experiments.engine.statistics import MeanSquare, pooled_along

#: Probability that a 95% band misses the true value, above or below it.
BAND_LEVEL = 0.05
#: Opacity of uncertainty bands.
BAND_ALPHA = 0.25
#: Colours of peers and theory, of text about settings, and of areas that are proved impossible.
GREY, QUIET, IMPOSSIBLE = "0.45", "0.35", "0.86"
#: Names by which the two texts above the panels are found.
RESULT, SETTINGS = "result", "settings"
#: Size of small text in points, and the height of one of its lines in inches.
SMALL, LINE = 9, 0.155


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
    bands = np.reshape([means[position].root_interval(BAND_LEVEL) for position in x], (-1, 2))
    roots = [means[position].root for position in x]
    line = "-" if joined else "none"
    draw_points(axes, x, roots, look, label, line, band=(bands[:, 0], bands[:, 1]))


def draw_predicted(axes: Axes, table: pd.DataFrame, x: str, look: Look, label: str) -> None:
    """Draw root mean squares against column `x`, over the dashed curve of their predictions."""
    predicted = table.groupby(x).predicted.first()
    draw_theory(axes, predicted.index, predicted, look.colour, "_")
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


def draw_impossible(axes: Axes, x: npt.ArrayLike, y: npt.ArrayLike) -> None:
    """Shade what is proved impossible, below a curve; drawn last, as it keeps the limits."""
    limits = axes.get_ylim()
    axes.fill_between(x, np.finfo(float).tiny, y, color=IMPOSSIBLE, lw=0, zorder=0.5)
    axes.set_ylim(limits)


def headline(figure: Figure, result: str, settings: str) -> Figure:
    """The figure with its result above the panels in bold, and its settings below that in grey."""
    width, height = figure.get_size_inches()
    y = 0.06
    for text, gid, size, style in (
        (result, RESULT, 11, {"weight": "bold"}),
        (settings, SETTINGS, SMALL, {"color": QUIET}),
    ):
        figure.text(0.08 / width, 1 - y / height, text, gid=gid, size=size, va="top", **style)
        y += (text.count("\n") + 1) * size / 72 * 1.25 + 0.02
    if (engine := figure.get_layout_engine()) is not None:
        engine.set(rect=(0, 0, 1, 1 - (y + 0.04) / height))
    return figure


def note(
    axes: Axes,
    place: tuple[float, float],
    text: str,
    colour: str = QUIET,
    offset: tuple[float, float] = (0, 6),
    align: str = "center",
) -> None:
    """Write a label near a point, shifted by `offset` in points; `align` is left, center, right."""
    axes.annotate(
        text,
        place,
        offset,
        textcoords="offset points",
        ha=align,
        va="center" if not offset[1] else "bottom" if offset[1] > 0 else "top",
        size=SMALL,
        color=ink(colour),
    )


def ink(colour: str) -> tuple[float, ...]:
    """The colour, darkened until its text can be read on white."""
    parts = np.array(to_rgb(colour))
    light = float(parts @ (0.299, 0.587, 0.114))
    return tuple((parts * min(1.0, 0.48 / max(light, 0.01))).tolist())


def label_curves(axes: Axes, labels: Iterable[str] | None = None) -> None:
    """Write each curve's label to the right of the panel, at the height at which the curve ends.

    Labels that would overlap are moved apart, and joined to their curves by thin lines. The limits
    of the panel must be final.
    """
    found: dict[str, tuple[str, float, float]] = {}
    for artist, label in zip(*axes.get_legend_handles_labels(), strict=True):
        end = _end(axes, artist)
        if end is not None and label not in found and (labels is None or label in labels):
            found[label] = end
    if not found:
        return
    order = sorted(found, key=lambda label: found[label][2])
    spec = axes.get_subplotspec()
    share = len(spec.rowspan) / spec.get_gridspec().nrows if spec is not None else 1.0
    line = LINE / (0.68 * share * axes.get_figure(root=True).get_size_inches()[1])
    sizes = np.array([line * (label.count("\n") + 1) for label in order])
    steps = np.cumsum(sizes) - sizes / 2
    heights = np.array([found[label][2] for label in order])
    places = isotonic_regression(heights - steps).x
    places = np.clip(places, 0, max(0.0, 1.02 - sizes.sum())) + steps
    thin = {"arrowstyle": "-", "lw": 0.6, "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 1}
    for label, place in zip(order, places.tolist(), strict=True):
        colour, x, y = found[label]
        joined = abs(place - y) > line / 3 or x < 0.94
        axes.annotate(
            label,
            (x, y),
            (1.06 if joined else 1.025, place),
            "axes fraction",
            "axes fraction",
            arrowprops=thin | {"color": colour} if joined else None,
            va="center",
            size=SMALL,
            color=ink(colour),
            annotation_clip=False,
        )


def _end(axes: Axes, artist: Any) -> tuple[str, float, float] | None:
    """Colour of a curve, and its last point inside the panel in shares of its sides; or None."""
    if isinstance(artist, ErrorbarContainer):
        artist = artist.lines[0]
    axes.get_xlim(), axes.get_ylim()  # the limits are brought up to date
    if isinstance(artist, PathCollection):
        points, colour = np.asarray(artist.get_offsets()), artist.get_facecolor()[0]
    else:
        points, colour = artist.get_xydata(), artist.get_color()
    inner = artist.get_transform() if isinstance(artist, Line2D) else axes.transData
    shares = axes.transAxes.inverted().transform(inner.transform(points))
    inside = shares[(np.abs(shares - 0.5) <= 0.5 + 1e-6).all(axis=1)]
    return (colour, *max(inside.tolist())) if len(inside) else None


def log_axes(axes: Axes, which: str = "xy") -> None:
    """Make axes logarithmic, with labels at powers of 10, or also between them if there are few."""
    for name in which:
        axis = axes.xaxis if name == "x" else axes.yaxis
        axes.set(**{f"{name}scale": "log"})
        axis.set_major_locator(LogLocator(base=10, numticks=20))
        axis.set_minor_locator(LogLocator(base=10, subs=tuple(range(2, 10)), numticks=20))
        axis.set_major_formatter(_Powers())
        axis.set_minor_formatter(_Powers(between=True))


class _Powers(Formatter):
    """Labels of a logarithmic axis: plain numbers where all are short, else powers of 10.

    Ticks `between` powers are labelled at 2 and 5, on axes with fewer than two powers of 10.
    """

    def __init__(self, between: bool = False) -> None:
        self.between, self.powers = between, LogFormatterMathtext()

    def __call__(self, x: float, pos: int | None = None) -> str:
        del pos
        low, high = np.log10(np.sort(self.axis.get_view_interval()))
        few = np.floor(high + 1e-9) - np.ceil(low - 1e-9) < 1
        if self.between and not (few and f"{x:e}"[0] in "25"):
            return ""
        if few or (low >= -3.5 and high <= 4.5):
            return f"{x:,g}" if x >= 1 else f"{x:.6f}".rstrip("0")
        self.powers.set_axis(self.axis)
        return str(self.powers(x))


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
