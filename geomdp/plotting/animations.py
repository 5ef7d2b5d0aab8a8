"""Pictures that change: animations, and pictures that are redrawn under a slider."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from geomdp._validation import vector, whole
from geomdp.bodies import Body
from geomdp.bodies.base import checked_body
from geomdp.geometry import project
from geomdp.plotting.looks import COLOURS, axes_of, equal_units, figure_of
from geomdp.plotting.pictures import draw

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure


# Answers that are projected while their noise grows

#: Milliseconds for which a frame is shown.
FRAME = 120


def animate_projection(
    body: Body, truth: npt.ArrayLike, noise: npt.ArrayLike, *, frames: int = 60
) -> FuncAnimation:
    """Animate noisy answers that move away from K, and their projections on K.

    Frame t = 0, .., T - 1 shows the answers truth + noise * t / (T - 1), T = `frames`. The error of
    the projected answers never exceeds the diameter of K.

    Parameters
    ----------
    body : Body
        K in R^2.
    truth : (2,) array_like
        True answers, a point of K.
    noise : (2,) array_like
        Noise of the last frame.
    frames : int
        Number of frames, at least 2.

    Raises
    ------
    ValueError
        If `body` is not planar, `truth` lies outside the body, or `frames` is below 2.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import geomdp as gd
    >>> disc = gd.bodies.Ball(2)
    >>> animation = gd.plotting.animate_projection(disc, [0.5, 0.0], [2.0, 1.0], frames=20)
    >>> len(list(animation.new_frame_seq()))
    20

    Drawing the figure shows the first frame:

    >>> plt.gcf().canvas.draw()
    >>> plt.close("all")
    """
    from matplotlib.animation import FuncAnimation

    _require_planar(body)
    start, end = vector(truth, 2, "truth"), vector(noise, 2, "noise")
    if not body.contains(start[None])[0]:
        raise ValueError("truth must lie in the body, got a point outside")
    shares = np.linspace(0, 1, whole(frames, "frames", minimum=2))
    answers = start + shares[:, None] * end
    nearest = np.array([project(body, answer).point for answer in answers])
    ax = axes_of(2, None)
    draw(body, ax)
    # Draw the whole path of the answers. The limits of the axes then fit all frames.
    ax.plot(*answers.T, color=COLOURS[3], lw=0.5, ls=":")
    ax.plot(*start, marker="*", ms=10, color=COLOURS[6], ls="")
    (trail,) = ax.plot([], [], color=COLOURS[2], lw=1.6)
    (way,) = ax.plot([], [], color=COLOURS[3], marker="o", lw=1.0, mfc="white")
    equal_units(ax)

    def show(frame: int) -> tuple[Artist, ...]:
        trail.set_data(*nearest[: frame + 1].T)
        way.set_data(*np.array([answers[frame], nearest[frame]]).T)
        return trail, way

    return FuncAnimation(figure_of(ax), show, frames=len(shares), interval=FRAME, blit=False)


def _require_planar(body: Body) -> None:
    if checked_body(body).dimension != 2:
        raise ValueError(f"body must have dimension 2, got {body.dimension}")


# Pictures under a slider in a notebook

#: Free space to the left and right of the axes, in inches. Later drawings may need this space for
#: longer tick labels.
MARGIN = 0.12
#: Pixels per inch.
DPI = 150


class SteadyPictures:
    """PNG images of figures that keep the layout of the first drawing.

    A constrained layout takes time to compute, and moves the axes if a tick label gets longer. So
    it is computed only for the first figure of each name, and later figures have the axes in the
    same places.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import geomdp as gd
    >>> pictures = gd.plotting.SteadyPictures()
    >>> for width in (1.0, 2.0):
    ...     figure, axes = plt.subplots(layout="constrained")
    ...     lines = axes.plot([0, width], [0, 1000 * width])
    ...     image = pictures.png(figure, "a line")
    ...     print(image[1:4])
    b'PNG'
    b'PNG'
    """

    def __init__(self) -> None:
        self._layouts: dict[str, list[tuple[float, float, float, float]]] = {}

    def png(self, figure: Figure, name: str) -> bytes:
        """The PNG file of a figure with a constrained layout, which is drawn once.

        All figures of one `name` must have the same number of axes. ``ValueError`` if the figure
        has no constrained layout, or another number of axes than the first figure of this name.
        """
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        engine = figure.get_layout_engine()
        if not isinstance(engine, ConstrainedLayoutEngine):
            raise ValueError(f"figure must have a constrained layout, got {engine}")
        engine.set(w_pad=MARGIN)
        known = self._layouts.get(name)
        if known is not None and len(known) != len(figure.axes):
            raise ValueError(
                f"figure must have {len(known)} axes like the first figure {name!r}, got "
                f"{len(figure.axes)}"
            )
        if known is not None:
            figure.set_layout_engine(None)
            for axes, place in zip(figure.axes, known, strict=True):
                axes.set_position(place)
        file = io.BytesIO()
        figure.savefig(file, dpi=DPI, pil_kwargs={"compress_level": 1})
        if known is None:
            places = [axes.get_position(original=True).bounds for axes in figure.axes]
            self._layouts[name] = places
        return file.getvalue()


def power_of_ten(value: float, position: int | None = None) -> str:
    """A tick label such as 10⁻² for a power of ten, for `axis.set_major_formatter`.

    The label is plain text. Matplotlib's own label is mathematical text, which is parsed anew in
    each figure. Matplotlib passes the number `position` of the tick, which is not used.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.plotting.power_of_ten(0.01), gd.plotting.power_of_ten(1000.0)
    ('10⁻²', '10³')
    """
    del position
    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return "10" + str(round(math.log10(value))).translate(raised)
