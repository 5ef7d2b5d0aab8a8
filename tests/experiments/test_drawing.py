"""Parts of figures: markers lie on the data, bands contain them, and legends are complete."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from experiments.engine.drawing import (
    BAND_LEVEL,
    Look,
    draw_measured,
    draw_theory,
    log_axes,
    shared_legend,
)
from experiments.engine.figures import drawing
from experiments.engine.statistics import MeanSquare

MEANS = {100: MeanSquare(4.0, 0.4, 50), 10: MeanSquare(9.0, 0.9, 50)}


def test_measurements_are_drawn_in_order_inside_their_band() -> None:
    axes = Figure().subplots()
    draw_measured(axes, MEANS, Look("C0", "o"), "K-norm")
    (line,) = axes.lines
    np.testing.assert_array_equal(line.get_xdata(), [10, 100])
    np.testing.assert_array_equal(line.get_ydata(), [3, 2])
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    for n, mean in MEANS.items():
        heights = corners[corners[:, 0] == n, 1]
        assert (heights.min(), heights.max()) == pytest.approx(mean.root_interval(BAND_LEVEL))


def test_unjoined_measurements_have_no_line() -> None:
    axes = Figure().subplots()
    draw_measured(axes, MEANS, Look("C0", "o", filled=False), "x", False)
    assert axes.lines[0].get_linestyle() == "None"
    assert axes.lines[0].get_markerfacecolor() == "white"


def test_log_axes_label_every_decade() -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.plot([1, 1e6], [1, 1e6])
    log_axes(axes)
    figure.draw_without_rendering()
    for axis in (axes.xaxis, axes.yaxis):
        assert {10.0**k for k in range(7)} <= set(axis.get_majorticklocs())


def test_a_legend_shows_each_label_once_under_its_heading() -> None:
    with drawing():
        figure = Figure()
        panels = figure.subplots(1, 2)
        for axes in panels:
            draw_theory(axes, [1, 2], [1, 2], "black", "exact")
            draw_measured(axes, MEANS, Look("C0", "o"), "K-norm")
        columns = {"measured": ["K-norm", "never drawn"], "theory": ["exact"]}
        shared_legend(figure, panels, columns)
        figure.draw_without_rendering()
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["measured", "K-norm", "", "theory", "exact", ""]


def test_a_legend_must_hold_every_label() -> None:
    figure = Figure()
    axes = figure.subplots()
    draw_theory(axes, [1, 2], [1, 2], "black", "exact")
    with pytest.raises(ValueError, match=r"\['exact'\] are missing"):
        shared_legend(figure, [axes], {"measured": ["K-norm"]})


def test_dashes_of_the_style_reach_theory() -> None:
    axes = Figure().subplots()
    draw_theory(axes, [1, 2], [1, 2], "black", "exact", dashes=(1, 2))
    assert axes.lines[0].is_dashed()
