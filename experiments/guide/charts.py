"""The curves of a figure as data, and as an interactive chart that `static/chart.js` draws."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FuncFormatter

from experiments.guide.mathematics import to_html, to_text

#: Significant digits of a number on the page. A screen resolves fewer.
DIGITS = 5
Point = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """One line of a panel."""

    label: str  # Its name, prose with LaTeX between dollar signs; may be empty
    colour: str  # Hexadecimal
    dashes: tuple[float, ...]  # Lengths of dashes and gaps in pixels; empty if it is not dashed
    joined: bool  # Whether lines join the points
    marked: bool  # Whether the points have markers
    filled: bool  # Whether the markers are filled
    #: Whether the line has no label of its own. `label` is then the label of another line of the
    #: same look or colour, if there is one.
    borrowed: bool
    points: tuple[Point, ...]  # In the units of the axes


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    #: Prose with LaTeX between dollar signs.
    title: str
    x_label: str
    y_label: str
    #: Whether the scales of the figure are logarithmic.
    x_log: bool
    y_log: bool
    #: Limits of the axes; the first is larger if the axis is reversed.
    x_range: Point
    y_range: Point
    #: Positions and labels of ticks, if the script has chosen the labels.
    x_names: tuple[tuple[float, str], ...]
    y_names: tuple[tuple[float, str], ...]
    curves: tuple[Curve, ...]  # Lines and markers
    #: Colours and outlines of filled areas.
    bands: tuple[tuple[str, tuple[Point, ...]], ...] = field(default=())
    #: Colours and ends of bars of uncertainty.
    bars: tuple[tuple[str, tuple[Point, ...]], ...] = field(default=())


def panels_of(figure: Figure) -> list[Panel]:
    """Data of all visible axes, except 3D axes, with at least one curve of two points or more."""
    names = _names(figure)
    panels = []
    for axes in figure.axes:
        curves = tuple(_curves(axes, names))
        # Values cannot be read off a picture of three dimensions.
        if (
            axes.get_visible()
            and axes.name != "3d"
            and any(len(curve.points) > 1 for curve in curves)
        ):
            panels.append(_panel(axes, curves))
    return panels


def legend_of(panels: Iterable[Panel]) -> list[Curve]:
    """One curve for each label, in the order of first appearance."""
    found: dict[str, Curve] = {}
    for panel in panels:
        for curve in panel.curves:
            known = found.get(curve.label)
            if curve.label and (known is None or (known.borrowed and not curve.borrowed)):
                found[curve.label] = curve
    return [*found.values()]


def _panel(axes: Axes, curves: tuple[Curve, ...]) -> Panel:
    return Panel(
        title=axes.get_title(loc="left") or axes.get_title(),
        x_label=_label(axes, "x"),
        y_label=_label(axes, "y"),
        x_log=axes.get_xscale() == "log",
        y_log=axes.get_yscale() == "log",
        x_range=_point(*axes.get_xlim()),
        y_range=_point(*axes.get_ylim()),
        x_names=_words(axes.xaxis),
        y_names=_words(axes.yaxis),
        curves=curves,
        bands=tuple(_bands(axes)),
        bars=tuple(_bars(axes)),
    )


def _label(axes: Axes, name: str) -> str:
    """The label of the axis "x" or "y". If panels share it, only one of them has a label."""
    shared = axes.get_shared_x_axes() if name == "x" else axes.get_shared_y_axes()
    peers = [axes, *(peer for peer in shared.get_siblings(axes) if peer is not axes)]
    return next(filter(None, (getattr(peer, f"get_{name}label")() for peer in peers)), "")


def _words(axis: Axis) -> tuple[tuple[float, str], ...]:
    """Ticks whose labels the script has chosen."""
    formatter = axis.get_major_formatter()
    if not isinstance(formatter, FixedFormatter | FuncFormatter):
        return ()
    places = axis.get_majorticklocs()
    labels = formatter.format_ticks(list(places))
    return tuple(
        (_rounded(place), label) for place, label in zip(places, labels, strict=True) if label
    )


def _curves(axes: Axes, names: dict[tuple[object, ...], str]) -> Iterator[Curve]:
    for line in axes.get_lines():
        points = _points(line, axes)
        if not points or not line.get_visible():
            continue
        look = _look(line)
        label = str(line.get_label())
        if borrowed := label.startswith("_"):
            label = names.get(look) or names.get(look[:1], "")
        colour, dashes, joined, marker, filled = look
        marked = marker not in ("None", "none", "", " ")
        yield Curve(label, colour, dashes, joined, marked, filled, borrowed, points)


def _points(line: Line2D, axes: Axes) -> tuple[Point, ...]:
    x = np.asarray(line.get_xdata(orig=False), dtype=float)
    y = np.asarray(line.get_ydata(orig=False), dtype=float)
    if line.get_transform() != axes.transData:
        if np.unique(y).size == 1 and line.get_transform() == axes.get_yaxis_transform():
            x = np.array(axes.get_xlim())  # a level across the whole panel
            y = np.full(2, y[0])
        else:
            return ()
    return _finite(np.column_stack([x, y]))


def _look(line: Line2D) -> tuple[str, tuple[float, ...], bool, str, bool]:
    style = line.get_linestyle()
    colour = to_hex(line.get_color())
    face = line.get_markerfacecolor()
    filled = isinstance(face, str) and face == "auto"
    if not filled and not (isinstance(face, str) and face == "none"):
        filled = to_hex(face) == colour
    joined = style not in ("None", "none", "", " ")
    return colour, _dashes(line) if joined else (), joined, str(line.get_marker()), filled


def _dashes(line: Line2D) -> tuple[float, ...]:
    """Lengths of dashes and gaps; Matplotlib has no public name for them."""
    _, lengths = vars(line)["_dash_pattern"]
    return tuple(_rounded(length) for length in lengths or ())


def _names(figure: Figure) -> dict[tuple[object, ...], str]:
    """Labels by the whole look of a line, and by its colour if the colour has only one label."""
    named: dict[tuple[object, ...], str] = {}
    colours: dict[str, set[str]] = {}
    for line, label in _labelled(figure):
        look = _look(line)
        named.setdefault(look, label)
        colours.setdefault(look[0], set()).add(label)
    for colour, labels in colours.items():
        if len(labels) == 1:
            named[(colour,)] = next(iter(labels))
    return named


def _labelled(figure: Figure) -> Iterator[tuple[Line2D, str]]:
    legends: list[Legend] = [*figure.legends]
    for axes in figure.axes:
        if (own := axes.get_legend()) is not None:
            legends.append(own)
        for line in axes.get_lines():
            if not str(line.get_label()).startswith("_"):
                yield line, str(line.get_label())
        for group in axes.containers:
            # The line of an error bar has no label of its own.
            if isinstance(group, ErrorbarContainer) and group.lines[0] is not None:
                yield group.lines[0], str(group.get_label())
    for legend in legends:
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
            if isinstance(handle, Line2D) and text.get_text():
                yield handle, text.get_text()


def _bands(axes: Axes) -> Iterator[tuple[str, tuple[Point, ...]]]:
    for collection in axes.collections:
        if not isinstance(collection, PolyCollection) or not len(collection.get_facecolor()):
            continue
        if collection.get_transform() != axes.transData:
            continue
        colour = _colour(collection.get_facecolor())
        for path in collection.get_paths():
            yield colour, _finite(path.vertices)


def _bars(axes: Axes) -> Iterator[tuple[str, tuple[Point, ...]]]:
    for collection in axes.collections:
        if isinstance(collection, LineCollection) and collection.get_transform() == axes.transData:
            colour = _colour(collection.get_color())
            for ends in collection.get_segments():
                if len(points := _finite(ends)) > 1:
                    yield colour, points


def _colour(colours: object) -> str:
    """Hexadecimal of the first colour of a collection, without its opacity."""
    red, green, blue = np.asarray(colours, dtype=float).reshape(-1, 4)[0, :3]
    return to_hex((float(red), float(green), float(blue)))


def _finite(points: npt.ArrayLike) -> tuple[Point, ...]:
    """The points with finite coordinates, from an array (n, 2)."""
    pairs = np.asarray(points, dtype=float).reshape(-1, 2)
    return tuple(_point(x, y) for x, y in pairs[np.isfinite(pairs).all(axis=1)])


def _point(x: float, y: float) -> Point:
    return _rounded(x), _rounded(y)


def _rounded(value: float) -> float:
    return float(f"{float(value):.{DIGITS}g}")


def chart_html(panels: Sequence[Panel]) -> str:
    """A chart of all panels, folded; without JavaScript it stays hidden."""
    legend = legend_of(panels)
    labels = [curve.label for curve in legend]
    data = json.dumps(
        {"panels": [_plain(panel, labels) for panel in panels]},
        allow_nan=False,
        separators=(",", ":"),
    ).replace("<", "\\u003c")
    shown = "".join(
        f'<div class="panel" data-panel="{position}">'
        f'<p class="panel-title">{to_html(panel.title)}</p>'
        f'<p class="axis-label">{to_html(panel.y_label)}</p><div class="plot"></div>'
        f'<p class="axis-label x">{to_html(panel.x_label)}</p></div>'
        for position, panel in enumerate(panels)
    )
    return (
        f'<details class="chart" hidden><summary>Read off values</summary>'
        f'<div class="panels">{shown}</div>'
        f'<ul class="legend">{"".join(map(_legend_line, legend))}</ul>'
        f'<p class="readout" aria-live="polite"></p>'
        f'<script type="application/json">{data}</script></details>'
    )


def _plain(panel: Panel, labels: list[str]) -> dict[str, Any]:
    """A panel as JSON for `static/chart.js`; labels become positions in the legend."""
    plain = asdict(panel)
    for curve in plain["curves"]:
        label = curve.pop("label")
        curve["name"] = labels.index(label) if label else -1
    for text in ("title", "x_label", "y_label"):
        plain[text] = to_text(plain[text])
    for names in ("x_names", "y_names"):
        plain[names] = [(place, to_text(label)) for place, label in plain[names]]
    return plain


def _legend_line(curve: Curve) -> str:
    pattern = " ".join(f"{length:g}" for length in curve.dashes)
    dashes = f' stroke-dasharray="{pattern}"' if curve.dashes else ""
    line = f'<line x1="0" y1="6" x2="26" y2="6"{dashes}/>' if curve.joined else ""
    fill = "" if curve.filled else ' class="hollow"'
    marker = f'<circle cx="13" cy="6" r="3.5"{fill}/>' if curve.marked else ""
    # Black becomes the colour of text, which is light on dark pages.
    colour = "var(--pst-color-text-base)" if curve.colour == "#000000" else curve.colour
    return (
        f'<li><svg viewBox="0 0 26 12" aria-hidden="true" style="color: {colour}">'
        f"{line}{marker}</svg> <span>{to_html(curve.label)}</span></li>"
    )
