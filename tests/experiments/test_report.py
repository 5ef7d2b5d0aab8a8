"""The report is a folder with every figure and claim. Its pages refer to no file outside of it."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from typer.testing import CliRunner

from experiments import __main__ as command_line
from experiments.catalogue import SCRIPTS
from experiments.engine.figures import Folders
from experiments.engine.reproduce import reproduce
from experiments.engine.script import LoadedScript, Preset, load
from experiments.report import build_report
from experiments.report.charts import legend_of, panels_of
from experiments.report.gathered import picture
from experiments.report.margin import margin
from experiments.report.markup import breakable, linked_ids, prose, table
from experiments.report.mathematics import to_html, to_text
from experiments.report.section import _paragraph
from experiments.theorems import THEOREMS
from tests.experiments import toy_script
from tests.hostile.test_output import controls, groups

TOY = "tests.experiments.toy_script"
#: Attributes whose values are addresses, which a browser loads or opens.
FETCHING = {"src", "href", "xlink:href", "data", "action", "poster", "srcset"}


class Document(HTMLParser):
    """The parts of a page that the tests check: identifiers, links, tags and image texts."""

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
        if tag == "img":
            self.described.append(given.get("alt", ""))
        self.scoped_headers += tag == "th" and "scope" in given


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "results", tmp_path / "figures")


@pytest.fixture
def toy() -> LoadedScript:
    return load(TOY)


@dataclass(frozen=True)
class Pages:
    """All pages of a report."""

    texts: dict[str, str]  # HTML of each page, by file name
    documents: dict[str, Document]

    @property
    def text(self) -> str:
        return "\n".join(self.texts.values())

    @property
    def ids(self) -> set[str]:
        return {name for page in self.documents.values() for name in page.ids}

    @property
    def described(self) -> list[str]:
        return [text for page in self.documents.values() for text in page.described]


def built(script: LoadedScript, folders: Folders, preset: Preset = Preset.QUICK) -> Pages:
    return check_structure(build_report([script], preset, folders).path)


def check_structure(start: Path) -> Pages:
    """Check that links stay in the folder, identifiers are unique and images have descriptions."""
    files = {path.name: path for path in start.parent.iterdir()}
    texts = {name: path.read_text() for name, path in files.items() if path.suffix == ".html"}
    pages = {name: Document(text) for name, text in texts.items()}
    ids = {name: set(page.ids) for name, page in pages.items()}
    for name, page in pages.items():
        assert len(page.ids) == len(ids[name])
        for link in page.links:
            file, _, place = link.partition("#")
            if link != "data:,":
                # The link leads to a file of the folder, and to an identifier that this file has.
                assert (file or name) in files, link
                assert not place or place in ids[file or name], link
        assert not {"iframe", "object", "embed"} & set(page.tags)
        assert page.tags.count("link") == 2
        assert all(page.described)
        assert page.tags.count("table") == page.tags.count("caption")
        assert page.tags.count("th") == page.scoped_headers
    for text in (*texts.values(), files["report.css"].read_text()):
        assert "@import" not in text
        assert not re.search(r"url\((?!#)", text)
    reachable = {link.partition("#")[0] for page in pages.values() for link in page.links}
    assert set(files) - {start.name} <= reachable
    return Pages(texts, pages)


def test_a_report_shows_the_figure_its_claims_and_where_they_come_from(
    toy: LoadedScript, folders: Folders
) -> None:
    report = reproduce(toy, Preset.QUICK, folders)
    pages = built(toy, folders)
    text = pages.text
    assert "figure-toy_script" in pages.documents["experiments.html"].ids
    assert len(pages.described) == 1
    for claim in report.claims:
        # Once in the section of the figure, and once on the page of all claims.
        assert len(re.findall(f">{claim.name}</th>", text)) == 2
    assert text.count('<span class="verdict passed">') == 4
    record = json.loads(report.outputs.record.read_text())
    assert record["commit"] in text
    assert f"numpy {record['versions']['numpy']}" in text
    assert "1, 2, 3" in text  # the parameter n


def test_all_theorems_are_stated_and_indexed(toy: LoadedScript, folders: Folders) -> None:
    page = built(toy, folders).documents["theorems.html"]
    assert {f"theorem-{theorem.id}" for theorem in THEOREMS} <= set(page.ids)
    assert page.tags.count("math") > len(THEOREMS)


def test_the_whole_catalogue_without_outputs_says_how_to_make_them(folders: Folders) -> None:
    scripts = [load(name) for name in SCRIPTS]
    result = build_report(scripts, Preset.FULL, folders)
    assert result.missing == tuple(script.name for script in scripts)
    pages = check_structure(result.path)
    text = pages.text
    assert {f"figure-{script.name}" for script in scripts} <= pages.ids
    # One page for each package of scripts, and three more: the start, the claims, the theorems.
    assert len(pages.texts) == len({script.package for script in scripts}) + 3
    assert text.count("No figure is stored at the full preset") == len(scripts)
    assert f"python -m experiments run {scripts[0].name} --full" in text
    assert {path.parent for path in folders.figures.rglob("*.*")} == {result.path.parent}


def test_failures_are_shown(
    toy: LoadedScript, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    reproduce(toy, Preset.FULL, folders)
    text = built_full(toy, folders)
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


def built_full(script: LoadedScript, folders: Folders) -> str:
    return built(script, folders, Preset.FULL).text


def test_the_same_outputs_give_the_same_pages(toy: LoadedScript, folders: Folders) -> None:
    reproduce(toy, Preset.QUICK, folders)

    def files() -> dict[str, bytes]:
        folder = build_report([toy], Preset.QUICK, folders).path.parent
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    assert files() == files()


@pytest.mark.slow
def test_the_report_of_all_committed_figures_fits_into_four_megabytes(tmp_path: Path) -> None:
    for source in Folders().figures.iterdir():
        if source.suffix in (".csv", ".json", ".png"):
            (tmp_path / source.name).write_bytes(source.read_bytes())
    result = build_report(
        [load(name) for name in SCRIPTS], Preset.FULL, Folders(tmp_path, tmp_path)
    )
    check_structure(result.path)
    assert sum(path.stat().st_size for path in result.path.parent.iterdir()) < 4_000_000


def test_no_formula_of_a_docstring_is_left_in_raw_letters() -> None:
    raw = re.compile(r"`|\^|sqrt\(|\b(?:epsilon|alpha|rho)\b|&lt;=")
    for script in map(load, SCRIPTS):
        shown = re.sub(r"<code>.*?</code>", "", prose(script.module.__doc__ or ""))
        assert not raw.search(shown), (script.name, raw.search(shown))


def test_committed_figures_make_a_sound_report(tmp_path: Path) -> None:
    # Two scripts are used, to save time. The slow test above checks a report of all scripts.
    scripts = [load(f"experiments.error.{name}") for name in ("recursive_noise", "jl_error_vs_n")]
    committed = Folders(tmp_path, tmp_path)
    for script in scripts:
        for kind in ("csv", "json", "png"):
            source = Folders().figures / f"{script.name}.{kind}"
            (tmp_path / source.name).write_bytes(source.read_bytes())
    result = build_report(scripts, Preset.FULL, committed)
    assert (result.figures, result.failed, result.missing) == (2, 0, ())
    pages = check_structure(result.path)
    text = pages.text
    assert len(pages.described) == 2
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


def test_words_on_an_axis_are_kept_and_pictures_have_no_curves() -> None:
    figure, (left, right) = plt.subplots(1, 2)
    left.plot([0, 1], [1, 2])
    left.set_xticks([0, 1], ["one", "other"])
    right.imshow(np.eye(2))
    (panel,) = panels_of(figure)
    plt.close(figure)
    assert panel.x_names == ((0, "one"), (1, "other"))
    assert panel.y_names == ()


def test_lines_of_one_colour_keep_their_own_dashes() -> None:
    figure, axes = plt.subplots()
    for dashes, name in (((1, 2), "dots"), ((5, 2, 1, 2), "both"), ((5, 2), "dashes")):
        axes.plot([1, 2], [1, 2], color="0.5", linestyle=(0, dashes), label=name)
    found = {curve.label: curve.dashes for curve in legend_of(panels_of(figure))}
    plt.close(figure)
    assert [len(found[name]) for name in ("dots", "both", "dashes")] == [2, 4, 2]
    assert len(set(found.values())) == 3


def test_pictures_keep_their_size_and_the_colours_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "figure.png"
    figure = drawn()
    figure.savefig(path, dpi=200)
    plt.close(figure)
    small = picture(path)
    with Image.open(path) as stored, Image.open(io.BytesIO(small.data)) as kept:
        assert kept.size == stored.size == (2 * small.width, 2 * small.height)
        assert len(small.data) < path.stat().st_size
        near = np.abs(np.asarray(kept, dtype=int)[..., :3] - [0x1F, 0x77, 0xB4]).sum(axis=2)
    assert near.min() < 24


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("falls as n^(-1/2)", "falls as n<sup>−1/2</sup>"),
        ("at most sqrt(2 k ln N)", 'at most √<span class="root">2 k ln&nbsp;N</span>'),
        ("epsilon <= 1 and `n^2 <= 3`", "ε ≤ 1 and <code>n^2 &lt;= 3</code>"),
        ("2^(1/(1 + e^(-t)))", "2<sup>1/(1 + e<sup>−t</sup>)</sup>"),
        ("from 10^5 to 1.5e-07", "from 10<sup>5</sup> to 1.5 × 10<sup>−7</sup>"),
        ("a ^( that is open", "a ^( that is open"),
        ("a -0.4 of h_K and the delta method", "a −0.4 of h<sub>K</sub> and the delta method"),
        ("(K - K)_+ / n", "(K − K)<sub>+</sub> / n"),
        ("all 2-way tables, n = 5-10", "all 2-way tables, n = 5-10"),
    ],
)
def test_formulas_in_prose(text: str, html: str) -> None:
    assert prose(text) == html


def test_the_report_obeys_no_label() -> None:
    for group in groups():
        rows = [(breakable(label), linked_ids(label)) for label in group]
        page = table(group[0], group[:2], rows, "t") + margin({"no_limit": group[0]})
        page += to_html(group[1].replace("$", ""))
        assert controls(page) <= {"\n"}, group


def test_a_margin_is_shown_where_one_is_stored() -> None:
    assert margin({"used": None}) == margin({}) == ""
    assert "no limit" in margin({"used": None, "no_limit": "an order"})
    assert "width: 25%" in margin({"used": 0.25})
    assert "near" in margin({"used": 0.95})
    assert "width: 100%" in margin({"used": 1.2})


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
    page = folders.figures / "quick" / "report" / "index.html"
    assert output.endswith(f"to read it all, open {page}")
    page.unlink()
    output = call("report", "--quick")
    assert "1 figures, 2 claims passed, 0 failed" in output
    assert page.exists()


def test_stars_in_a_docstring_become_a_list() -> None:
    shown = _paragraph("Bodies:\n* a cube\n  of three columns;\n* a cone.")
    assert shown == "<p>Bodies:</p><ul><li>a cube of three columns;</li><li>a cone.</li></ul>"
    assert _paragraph("* alone") == "<ul><li>alone</li></ul>"
    assert _paragraph("2 * 3") == "<p>2 * 3</p>"
