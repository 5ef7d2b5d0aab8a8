"""What the notebooks share: sliders with their values, steady pictures, answers that unfold."""

import inspect
import re
from typing import Any

import marimo as mo
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import geomdp as gd

_ANSWER = re.compile(r"^\*\*(Answer \d+)\.\*\* (.+?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_PICTURES = gd.plotting.SteadyPictures()


def unfolding(text: str) -> str:
    """Markdown in which each paragraph that begins with "**Answer 1.**" unfolds at a click."""
    return _ANSWER.sub(r"/// details | \1\n\2\n///", inspect.cleandoc(text))


def md(text: str) -> mo.Html:
    """Text with exercises and their answers."""
    return mo.md(unfolding(text))


def panels(width: float, height: float, columns: int = 1) -> tuple[Any, ...]:
    """A figure of this size in inches, and its axes side by side."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, *figure.subplots(1, columns, squeeze=False)[0]


def picture(figure: Figure, alt: str, *above: object) -> mo.Html:
    """The figure below its controls. Its axes stay in place when it is drawn again."""
    width = round(100 * figure.get_figwidth())
    return mo.vstack([*above, mo.image(_PICTURES.png(figure, alt), width=width, alt=alt)])


def slider(*range_and_step: float, **more: Any) -> mo.ui.slider:
    """A slider with its value beside it."""
    return mo.ui.slider(*range_and_step, show_value=True, **more)


def log_log(
    x: npt.ArrayLike,
    curves: dict[str, tuple[npt.ArrayLike, str, str]],
    least: bool = False,
    **more: Any,
) -> tuple[Figure, Axes]:
    """Curves over `x` on logarithmic axes: the values, line and colour of each, by its label.

    With `least`, a broad grey curve shows the least of all. `more` has titles, labels and limits.
    """
    figure, axes = panels(6.2, 4.2)
    for label, (values, line, colour) in curves.items():
        axes.loglog(x, values, line, color=colour, label=label)
    if least:
        values = np.min([values for values, _, _ in curves.values()], axis=0)
        axes.loglog(x, values, color="black", lw=4, alpha=0.3, label="the least")
    axes.minorticks_off()  # small ticks double the drawing time
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(gd.plotting.power_of_ten)
    axes.set(**more)
    axes.legend(fontsize=9)
    return figure, axes
