"""Interactive charts hold the curves of a figure, as they are drawn."""

from __future__ import annotations

import json
import re

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from experiments.guide.charts import chart_html, legend_of, panels_of
from experiments.guide.mathematics import to_html, to_text
from tests.hostile.test_output import controls, groups


def drawn() -> Figure:
    figure, axes = plt.subplots()
    axes.plot([1, 10, 100], [3, 2, np.nan], "C0o-", label="measured $n$")
    axes.plot([1, 100], [4, 5], "C0--", label="_hidden")
    axes.axhline(2.5, color="k", linestyle=":", label="level")
    axes.axvline(3)
    axes.fill_between([1, 10], [1, 1], [2, 2], color="C1")
    axes.errorbar([1, 2], [1, 2], yerr=[0.1, 0.1], fmt="C2s", label="with bars")
    axes.set(xscale="log", xlabel="$n$", ylabel="error", xlim=(1, 100))
    axes.set_title("left", loc="left")
    return figure


def test_curves_of_a_figure_are_its_data():
    (panel,) = panels_of(drawn())
    plt.close("all")
    assert (panel.title, panel.x_label, panel.y_label) == ("left", "$n$", "error")
    assert (panel.x_log, panel.y_log, panel.x_range) == (True, False, (1, 100))
    measured, hidden, level, bars = panel.curves[:4]
    assert measured.points == ((1, 3), (10, 2))
    assert (measured.joined, measured.dashes, measured.marked, measured.borrowed) == (
        True,
        (),
        True,
        False,
    )
    # A line without a label borrows the only label that its colour has.
    assert (hidden.label, hidden.borrowed, len(hidden.dashes)) == ("measured $n$", True, 2)
    assert level.points == ((1, 2.5), (100, 2.5))
    assert (bars.label, bars.joined, bars.marked) == ("with bars", False, True)
    assert [curve.label for curve in legend_of([panel])] == ["measured $n$", "level", "with bars"]
    assert not any(curve.borrowed for curve in legend_of([panel])[:2])
    assert len(panel.bands) == 1
    assert set(panel.bands[0][1]) == {(1, 1), (10, 1), (1, 2), (10, 2)}
    assert panel.bars[0][1] == ((1, 0.9), (1, 1.1))


def test_words_on_an_axis_are_kept_and_pictures_have_no_curves():
    figure, (left, right) = plt.subplots(1, 2)
    left.plot([0, 1], [1, 2])
    left.set_xticks([0, 1], ["one", "other"])
    right.imshow(np.eye(2))
    (panel,) = panels_of(figure)
    plt.close(figure)
    assert panel.x_names == ((0, "one"), (1, "other"))
    assert panel.y_names == ()


def test_lines_of_one_colour_keep_their_own_dashes():
    figure, axes = plt.subplots()
    for dashes, name in (((1, 2), "dots"), ((5, 2, 1, 2), "both"), ((5, 2), "dashes")):
        axes.plot([1, 2], [1, 2], color="0.5", linestyle=(0, dashes), label=name)
    found = {curve.label: curve.dashes for curve in legend_of(panels_of(figure))}
    plt.close(figure)
    assert [len(found[name]) for name in ("dots", "both", "dashes")] == [2, 4, 2]
    assert len(set(found.values())) == 3


def test_a_chart_holds_its_panels_as_data_and_is_hidden_without_javascript():
    page = chart_html(panels_of(drawn()))
    plt.close("all")
    assert page.startswith('<details class="chart" hidden>')
    (data,) = re.findall(r'application/json">(.*?)</script>', page)
    (panel,) = json.loads(data)["panels"]
    assert panel["curves"][0]["points"] == [[1, 3], [10, 2]]
    assert [curve["name"] for curve in panel["curves"]] == [0, 0, 1, 2]
    assert page.count("<li>") == 3
    assert "<math" in page


def test_a_chart_obeys_no_label():
    for group in groups():
        page = to_html(group[0].replace("$", "")) + to_html(group[1].replace("$", ""))
        assert controls(page) <= {"\n"}, group


def test_words_for_screen_readers():
    assert to_text(r"ratio $r$ of $\mathrm{vol}(K)$") == "ratio r of vol(K)"
