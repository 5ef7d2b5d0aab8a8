"""Colours, fonts and axes for all pictures of the library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The colours of Okabe and Ito (2008). Readers with any common form of colour blindness can tell
#: them apart. Most colours next to each other in this list also differ when printed in grey.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
#: Fonts and lines of all pictures. SVG files keep text as text. Drawing the same picture twice
#: gives SVG files that differ in their dates only.
SETTINGS: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "legend.fontsize": 9,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "geomdp",
}


@contextmanager
def library_style() -> Iterator[None]:
    """Draw with the defaults of Matplotlib and `SETTINGS`, without the settings of the user."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        yield


def axes_of(dimension: int, ax: Axes | None) -> Axes:
    """The axes to draw on: `ax`, or new ones; ``ValueError`` if `ax` has not this dimension."""
    if ax is None:
        from matplotlib import pyplot

        figure = pyplot.figure(layout="constrained")
        return figure.add_subplot(projection="3d" if dimension == 3 else None)
    has = 3 if ax.name == "3d" else 2
    if has != dimension:
        needed = "projection='3d'" if dimension == 3 else "no projection"
        raise ValueError(f"ax must be made with {needed} for {dimension} dimensions, got {ax.name}")
    return ax


def equal_units(ax: Axes) -> None:
    """Give one unit the same length on all axes, with limits that fit everything drawn so far."""
    ax.autoscale_view()
    if ax.name == "3d":
        ax.set_aspect("equal")
    else:
        ax.set_aspect("equal", adjustable="box")


def figure_of(ax: Axes) -> Figure:
    """The whole figure that contains `ax`, even if `ax` lies in a subfigure."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure
