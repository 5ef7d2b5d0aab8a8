"""Pictures that are drawn again and again, such as a picture under a slider in a notebook."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
