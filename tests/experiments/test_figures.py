"""Rules that figures drawn from the committed tables keep, and the data of interactive charts."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from experiments.catalogue import SCRIPTS
from experiments.engine import tools as ex
from experiments.engine.drawing import RESULT, SETTINGS
from experiments.engine.figures import FINE, Folders, drawing, read_table
from experiments.engine.script import Preset, load
from experiments.guide.charts import chart_html, legend_of, panels_of
from experiments.guide.mathematics import to_html, to_text
from tests.hostile.test_output import controls, groups

#: Width of a column of print in inches, and the least size of its text in points.
COLUMN, LEAST = 6.5, 8.0
#: Texts may touch by this many pixels: their boxes include empty margins.
TOUCH = 3.0
#: Most panels of a figure, and most curves that are labelled directly, without a legend.
PANELS, DIRECT = 4, 5
#: Figures of more panels, which repeat one drawing: a body, or a statement, in each panel.
MORE = {"five_bodies": 5, "corrections": 8}
#: Figures that the default run of the tests draws: one a folder. All of them take a minute.
QUICK = {
    "lead", "volume_bounds", "gaussian_widths", "composition", "stated_accuracies",
    "sparse_project", "smooth_table1", "table_strategies",
}  # fmt: skip
#: Words of the labels that may be orange, and of those that may be vermilion.
ORANGE, VERMILION = ("laplace",), ("printed", "published", "wrong", "refute", "fails")


def texts_of(figure: Figure) -> list[tuple[Text, Bbox]]:
    """All texts that a picture of the figure shows, with their boxes in pixels."""
    found = []

    class Watched(Text):
        """Records what is drawn, where it is drawn."""

        def draw(self, renderer: Any) -> None:
            if self.get_visible() and self.get_text().strip():
                found.append((self, Text.get_window_extent(self, renderer)))
            drawn(self, renderer)

    drawn = Text.draw
    figure.set_dpi(FINE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", Watched.draw)
        FigureCanvasAgg(figure).draw()
    return found


def legends_of(figure: Figure) -> Iterator[Legend]:
    yield from figure.legends
    yield from (legend for axes in figure.axes if (legend := axes.get_legend()) is not None)


def labels_on(axes: Axes, direction: str) -> int:
    """Number of labelled ticks within the limits of an axis."""
    axis = axes.xaxis if direction == "x" else axes.yaxis
    low, high = sorted(axis.get_view_interval())
    kinds = (
        (axis.get_majorticklocs(), axis.get_major_formatter()),
        (axis.get_minorticklocs(), axis.get_minor_formatter()),
    )
    return sum(
        bool(label) and low * (1 - 1e-9) <= place <= high * (1 + 1e-9)
        for places, formatter in kinds
        for place, label in zip(places, formatter.format_ticks(list(places)), strict=True)
    )


def series_of(figure: Figure) -> dict[tuple[object, ...], set[str]]:
    """Labels of all curves by colour, marker, fill of the marker, and dashes."""
    found = defaultdict(set)
    for line in figure.findobj(Line2D):
        label = str(line.get_label())
        if label and not label.startswith("_"):
            marked = line.get_marker() not in ("None", "none", "", " ")
            dashes = str(vars(line)["_dash_pattern"]) if line.get_linestyle() != "None" else ""
            face = to_hex(line.get_markerfacecolor()) if marked else ""
            look = (to_hex(line.get_color()), line.get_marker() if marked else dashes, face)
            found[look].add(label)
    return found


def faults_of(figure: Figure, most: int = PANELS) -> Iterator[str]:
    """What is wrong with a figure."""
    texts = texts_of(figure)
    pixels = [FINE * side for side in figure.get_size_inches()]
    for text, box in texts:
        if box.x0 < 0 or box.y0 < 0 or box.x1 > pixels[0] or box.y1 > pixels[1]:
            yield f"leaves the canvas: {text.get_text()!r}"
        if (size := text.get_fontsize() * COLUMN / figure.get_size_inches()[0]) < LEAST:
            yield f"{size:.1f} pt at column width: {text.get_text()!r}"
    for (one, first), (two, second) in combinations(texts, 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        along = min(first.y1, second.y1) - max(first.y0, second.y0)
        if min(across, along) > TOUCH:
            yield f"texts overlap: {one.get_text()!r}, {two.get_text()!r}"
    visible = [axes for axes in figure.axes if axes.get_visible()]
    if len(visible) > most:
        yield f"{len(visible)} panels"
    for axes, direction in ((axes, direction) for axes in visible for direction in "xy"):
        scale = axes.get_xscale() if direction == "x" else axes.get_yscale()
        if scale == "log" and (labelled := labels_on(axes, direction)) < 2:
            yield f"{labelled} labelled ticks on {direction} of {axes.get_title(loc='left')!r}"
    for legend in legends_of(figure):
        marks = [mark for mark in legend.legend_handles if not is_blank(mark)]
        if len(marks) <= DIRECT:
            yield f"a legend for {len(marks)} curves"
    for (colour, *_), labels in series_of(figure).items():
        if len(labels) > 1:
            yield f"same colour and marker: {sorted(labels)}"
        yield from miscoloured(str(colour), labels)
    yield from untitled(figure)


def is_blank(mark: object) -> bool:
    return isinstance(mark, Line2D) and mark.get_linestyle() == mark.get_marker() == "None"


def miscoloured(colour: str, labels: set[str]) -> Iterator[str]:
    for words, reserved in ((ORANGE, "#e69f00"), (VERMILION, "#d55e00")):
        for label in labels:
            if colour == reserved and not any(word in label.lower() for word in words):
                yield f"{label!r} has the colour of {words[0]}"


def untitled(figure: Figure) -> Iterator[str]:
    titles = {text.get_gid(): text for text in figure.texts if text.get_text()}
    if RESULT not in titles or SETTINGS not in titles:
        yield "no result and settings above the panels"


def every_script() -> Iterator[Any]:
    """All scripts; those outside of `QUICK` are slow."""
    for module in SCRIPTS:
        name = module.rpartition(".")[2]
        marks = () if name in QUICK else (pytest.mark.slow,)
        yield pytest.param(module, id=name, marks=marks)


@pytest.mark.parametrize("module", [*every_script()])
def test_every_committed_figure_keeps_the_rules(module):
    script = load(module)
    outputs = Folders().outputs(script.name, Preset.FULL)
    with drawing():
        figure = script.module.plot(read_table(outputs))
        faults = [*faults_of(figure, MORE.get(script.name, PANELS))]
    assert not faults, "\n".join(faults)


def sound() -> tuple[Figure, Axes]:
    """A figure that keeps all rules."""
    figure, (axes,) = ex.panels((7.2, 3.0), ["one"], "x", "y")
    axes.plot([1, 100], [1, 100], "C0o-", label="ours")
    ex.log_axes(axes)
    return ex.headline(figure, "All is well", "no setting matters"), axes


def crowded(axes: Axes) -> None:
    for place in range(4):
        axes.figure.add_axes((0.1 * place, 0.1, 0.01, 0.01)).set_axis_off()


def beside(axes: Axes, *texts: tuple[float, float, str], size: float | None = None) -> None:
    for x, y, text in texts:
        axes.text(x, y, text, transform=axes.transAxes, size=size)


SPOILT: dict[str, Callable[[Axes], object]] = {
    "too far": lambda axes: beside(axes, (1.2, 0.5, "beyond")),
    "too small": lambda axes: beside(axes, (0.5, 0.5, "small"), size=8),
    "too near": lambda axes: beside(axes, (0.5, 0.5, "one"), (0.5, 0.53, "two")),
    "too few ticks": lambda axes: axes.set_ylim(2.2, 4.8),
    "alike": lambda axes: axes.plot([1, 2], [1, 2], "C0o-", label="theirs"),
    "dashed alike": lambda axes: [
        ex.draw_theory(axes, [1, 2], [1, 2], "black", label) for label in ("theory", "another")
    ],
    "needless legend": lambda axes: axes.legend(),
    "orange": lambda axes: axes.plot([1, 2], [1, 2], "C1s-", label="ellipsoid"),
    "crowded": crowded,
}


@pytest.mark.parametrize("spoil", [*SPOILT.values()], ids=[*SPOILT])
def test_each_rule_sees_a_figure_that_breaks_it(spoil):
    with drawing():
        figure, axes = sound()
        assert not [*faults_of(figure)]  # and the layout is settled
        spoil(axes)
        assert len([*faults_of(figure)]) == 1


def test_a_figure_has_a_result_and_settings():
    with drawing():
        figure, _ = sound()
        for text in figure.texts:
            text.set_gid(None)
        assert [*faults_of(figure)] == ["no result and settings above the panels"]


def test_labels_of_curves_that_end_together_stand_apart():
    with drawing():
        figure, axes = sound()
        for number, shade in enumerate(("C2", "C4", "C5")):
            axes.plot([1, 100], [1, 90 + number], color=shade, label=f"curve {number}")
        ex.label_curves(axes)
        assert not [*faults_of(figure)]


def test_one_place_says_how_fine_pictures_are():
    style = Path(ex.__file__).parents[1] / "style.mplstyle"
    assert "savefig.dpi" not in style.read_text()


# --- charts ---------------------------------------------------------------------------------


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
    assert (measured.joined, measured.marked, measured.borrowed) == (True, True, False)
    assert measured.dashes == ()
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
