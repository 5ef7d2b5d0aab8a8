"""What the notebooks share: sliders with their values, steady pictures, answers that unfold."""

import inspect
import re
from typing import Any

import marimo as mo
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


def picture(figure: Figure, alt: str) -> mo.Html:
    """The figure as an image. Its axes stay in place when it is drawn again."""
    width = round(100 * figure.get_figwidth())
    return mo.image(_PICTURES.png(figure, alt), width=width, alt=alt)


def slider(*range_and_step: float, **more: Any) -> mo.ui.slider:
    """A slider with its value beside it."""
    return mo.ui.slider(*range_and_step, show_value=True, **more)


def powers_of_ten(axes: Axes) -> None:
    """Ticks at powers of ten, without the small ones, which double the drawing time."""
    axes.minorticks_off()
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(gd.plotting.power_of_ten)
