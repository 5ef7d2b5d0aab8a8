"""Later figures of a name keep the layout of the first figure of this name."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from geomdp.plotting import SteadyPictures, power_of_ten


def figure(height: float, axes: int = 1, layout: str | None = "constrained") -> Figure:
    drawn = Figure(figsize=(3, 2), layout=layout)
    for place in drawn.subplots(1, axes, squeeze=False)[0]:
        place.plot([0, 1], [0, height])
    return drawn


def left(drawn: Figure) -> float:
    return float(drawn.axes[0].get_position().x0)


def test_later_figures_have_the_axes_where_the_first_had_them() -> None:
    pictures = SteadyPictures()
    first, wider, other = figure(1.0), figure(1e-7 + 1e5), figure(1e5)
    size = imread(io.BytesIO(pictures.png(first, "a"))).shape
    again = imread(io.BytesIO(pictures.png(wider, "a")))
    pictures.png(other, "b")
    assert again.shape == size == (300, 450, 4)
    assert left(wider) == left(first)
    # Under another name, a figure with longer labels has its axes further to the right.
    assert left(other) > left(first) + 0.01
    assert np.ptp(again) > 0


def test_figures_that_do_not_fit_are_refused() -> None:
    pictures = SteadyPictures()
    with pytest.raises(ValueError, match="figure must have a constrained layout, got None"):
        pictures.png(figure(1.0, layout=None), "a")
    pictures.png(figure(1.0), "a")
    with pytest.raises(ValueError, match="must have 1 axes like the first figure 'a', got 2"):
        pictures.png(figure(1.0, axes=2), "a")


def test_powers_of_ten_are_plain_text() -> None:
    assert [power_of_ten(10.0**k, k) for k in (-12, 0, 3)] == ["10⁻¹²", "10⁰", "10³"]
