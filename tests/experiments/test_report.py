"""The report: one file that refers to nothing outside, with every figure and every claim."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from experiments import __main__ as command_line
from experiments.catalogue import SCRIPTS
from experiments.engine.reproduce import Folders, reproduce
from experiments.engine.script import LoadedScript, Preset, load
from experiments.report import build_report
from experiments.report.charts import legend_of, panels_of
from experiments.report.mathematics import to_text
from experiments.report.vector import inline_svg
from experiments.theorems import THEOREMS
from tests.experiments import toy_script

TOY = "tests.experiments.toy_script"
#: Attributes that make a browser fetch something.
FETCHING = {"src", "href", "xlink:href", "data", "action", "poster", "srcset"}


class Document(HTMLParser):
    """What the tests ask of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.described: list[str] = []
        self.scoped_headers = 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        self.links += [given[name] for name in FETCHING & given.keys()]
        self.links += [f"#{name}" for name in re.findall(r"url\(#([^)]+)\)", str(given))]
        if given.get("role") == "img":
            self.described.append(given.get("aria-labelledby") or given.get("aria-label") or "")
        self.scoped_headers += tag == "th" and "scope" in given


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "results", tmp_path / "figures")


@pytest.fixture
def toy() -> LoadedScript:
    return load(TOY)


def built(script: LoadedScript, folders: Folders) -> str:
    return build_report([script], Preset.QUICK, folders).path.read_text()


def check_structure(text: str) -> Document:
    """Nothing outside, unique identifiers, links that lead somewhere, described figures."""
    page = Document(text)
    assert len(page.ids) == len(set(page.ids))
    inside = [link for link in page.links if link != "data:,"]
    assert {link[0] for link in inside} == {"#"}
    assert {link[1:] for link in inside} - set(page.ids) == set()
    assert not {"iframe", "object", "embed", "img"} & set(page.tags)
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert page.tags.count("link") == 1
    assert all(page.described)
    assert page.tags.count("table") == page.tags.count("caption")
    assert page.tags.count("th") == page.scoped_headers
    return page


def test_a_report_shows_the_figure_its_claims_and_where_they_come_from(
    toy: LoadedScript, folders: Folders
) -> None:
    report = reproduce(toy, Preset.QUICK, folders)
    text = built(toy, folders)
    page = check_structure(text)
    assert "figure-toy_script" in page.ids
    assert text.count("toy_script-alt") == 2
    for claim in report.claims:
        # In the section of the figure and in the table of all claims.
        assert len(re.findall(f">{claim.name}</th>", text)) == 2
    assert text.count('<span class="verdict passed">') == 4
    record = json.loads(report.outputs.record.read_text())
    assert record["commit"] in text
    assert f"numpy {record['versions']['numpy']}" in text
    assert "1, 2, 3" in text  # the parameter n


def test_all_theorems_are_stated_and_indexed(toy: LoadedScript, folders: Folders) -> None:
    page = check_structure(built(toy, folders))
    assert {f"theorem-{theorem.id}" for theorem in THEOREMS} <= set(page.ids)
    assert page.tags.count("math") > len(THEOREMS)


def test_the_whole_catalogue_without_outputs_says_how_to_make_them(folders: Folders) -> None:
    scripts = [load(name) for name in SCRIPTS]
    result = build_report(scripts, Preset.FULL, folders)
    assert result.missing == tuple(script.name for script in scripts)
    text = result.path.read_text()
    page = check_structure(text)
    assert {f"figure-{script.name}" for script in scripts} <= set(page.ids)
    assert text.count("No figure is stored at the full preset") == len(scripts)
    assert f"python -m experiments run {scripts[0].name} --full" in text
    assert [path.name for path in folders.figures.rglob("*.*")] == ["report.html"]


def test_failures_are_shown(
    toy: LoadedScript, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    reproduce(toy, Preset.FULL, folders)
    text = build_report([toy], Preset.FULL, folders).path.read_text()
    assert '<span class="verdict failed">' in text
    assert "With failed claims" in text

    def broken(table: object) -> Figure:
        raise KeyError("<gone>")

    monkeypatch.setattr(toy_script, "plot", broken)
    assert "cannot draw the stored table: KeyError: &#x27;&lt;gone&gt;&#x27;" in built_full(
        toy, folders
    )
    reproduce(toy, Preset.FULL, folders)
    text = built_full(toy, folders)
    assert "The script failed on its own table: KeyError" in text
    assert "No figure is stored" in text
    check_structure(text)


def built_full(script: LoadedScript, folders: Folders) -> str:
    return build_report([script], Preset.FULL, folders).path.read_text()


def test_the_same_outputs_give_the_same_page(toy: LoadedScript, folders: Folders) -> None:
    reproduce(toy, Preset.QUICK, folders)
    assert built(toy, folders) == built(toy, folders)


def test_committed_figures_make_a_sound_report(tmp_path: Path) -> None:
    # Two scripts stand for all: what is special to one is in its drawing.
    scripts = [load(f"experiments.error.{name}") for name in ("recursive_noise", "jl_error_vs_n")]
    committed = Folders(tmp_path, tmp_path)
    for script in scripts:
        for kind in ("csv", "json", "svg"):
            source = Folders().figures / f"{script.name}.{kind}"
            (tmp_path / source.name).write_bytes(source.read_bytes())
    result = build_report(scripts, Preset.FULL, committed)
    assert (result.figures, result.failed, result.missing) == (2, 0, ())
    text = result.path.read_text()
    page = check_structure(text)
    assert len(page.described) == 2
    charts = [json.loads(data) for data in re.findall(r'application/json">(.*?)</script>', text)]
    assert [len(chart["panels"]) for chart in charts] == [3, 4]
    assert all(panel["curves"] for chart in charts for panel in chart["panels"])


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


def test_curves_of_a_figure_are_its_data() -> None:
    (panel,) = panels_of(drawn())
    plt.close("all")
    assert (panel.title, panel.x_label, panel.y_label) == ("left", "$n$", "error")
    assert (panel.x_log, panel.y_log, panel.x_range) == (True, False, (1, 100))
    measured, hidden, level, bars = panel.curves[:4]
    assert measured.points == ((1, 3), (10, 2))
    assert (measured.joined, measured.dashed, measured.marked, measured.borrowed) == (
        True,
        False,
        True,
        False,
    )
    # A line without a label has that of the only other line of its colour.
    assert (hidden.label, hidden.borrowed, hidden.dashed) == ("measured $n$", True, True)
    assert level.points == ((1, 2.5), (100, 2.5))
    assert (bars.label, bars.joined, bars.marked) == ("with bars", False, True)
    assert [curve.label for curve in legend_of([panel])] == ["measured $n$", "level", "with bars"]
    assert not any(curve.borrowed for curve in legend_of([panel])[:2])
    assert len(panel.bands) == 1
    assert set(panel.bands[0][1]) == {(1, 1), (10, 1), (1, 2), (10, 2)}
    assert panel.bars[0][1] == ((1, 0.9), (1, 1.1))


def test_words_on_an_axis_are_kept_and_pictures_have_no_curves() -> None:
    figure, (left, right) = plt.subplots(1, 2)
    left.plot([0, 1], [1, 2])
    left.set_xticks([0, 1], ["one", "other"])
    right.imshow(np.eye(2))
    (panel,) = panels_of(figure)
    plt.close(figure)
    assert panel.x_names == ((0, "one"), (1, "other"))
    assert panel.y_names == ()


def test_drawings_do_not_share_names(tmp_path: Path) -> None:
    path = tmp_path / "figure.svg"
    figure = drawn()
    figure.savefig(path)
    plt.close(figure)
    one, two = (inline_svg(path, name, "a < b") for name in ("one", "two"))
    assert "a &lt; b" in one
    assert not {"metadata", "style"} & set(Document(one).tags)
    assert "xmlns" not in one
    check_names = [set(Document(text).ids) for text in (one, two)]
    assert check_names[0]
    assert not check_names[0] & check_names[1]
    for text, names in zip((one, two), check_names, strict=True):
        assert {link[1:] for link in Document(text).links} <= names


def test_words_for_screen_readers() -> None:
    assert to_text(r"ratio $r$ of $\mathrm{vol}(K)$") == "ratio r of vol(K)"


def test_the_command_builds_what_is_stored(
    toy: LoadedScript, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_line, "SCRIPTS", (TOY,))
    where = ["--figures", str(folders.figures)]

    def call(*arguments: str) -> str:
        result = CliRunner().invoke(command_line.app, [*arguments, *where])
        assert result.exit_code == 0, result.output
        return result.output.replace("\n", "")

    assert "no figure at this preset: toy_script" in call("report")
    output = call("reproduce", "--results", str(folders.results))
    assert "python -m experiments report --quick" in output
    output = call("report", "--quick")
    assert "1 figures, 2 claims passed, 0 failed" in output
    assert (folders.figures / "quick" / "report.html").exists()
