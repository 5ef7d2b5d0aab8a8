"""Tests of the guide: its pages and their code, reference, gallery, typesetting and build."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import roles
from typer.testing import CliRunner

from experiments import __main__ as command_line
from experiments.catalogue import SCRIPTS
from experiments.engine.figures import Folders
from experiments.engine.script import load
from experiments.guide import build as examples
from experiments.guide.build import HERE, GuideError, problems, run_sphinx
from experiments.guide.docstring_text import Place, typeset
from experiments.guide.gallery import MissingFigureError, _claim, _goal, gallery_pages
from experiments.guide.reference import (
    DECISIONS,
    Export,
    exported_by,
    exports,
    packages,
    write_reference,
)
from experiments.guide.theorem_pages import write_theorems
from experiments.planting.catalogue import FAULTS
from experiments.theorems import THEOREMS
from geomdp.advice.candidates import CANDIDATES
from tests.hostile.test_output import PIECES, controls, groups
from tests.readme import COMMAND_PAGE, PAGES, ROOT, cells

ALL_PAGES = sorted(PAGES.rglob("*.md"))


INCLUDE = re.compile(
    r"```\{include\} \.\./repository/(\S+)\n"
    r'(?::start-after: "(.+)"\n)?(?::end-before: "(.+)"\n)?```'
)
#: Folders of generated pages, which the build of the guide adds.
GENERATED = ("gallery", "reference", "theorems")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")


def included(file: str, after: str, before: str) -> str:
    """The part of a file of the repository that a page includes."""
    text = (ROOT / file).read_text()
    if after:
        assert text.count(after) == 1, after
        text = text.partition(after)[2]
    if before:
        assert text.count(before) == 1, before
        text = text.partition(before)[0]
    return text


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.stem)
def test_links_of_pages_lead_to_pages(page: Path) -> None:
    # The built guide contains the pages, but not the other files of the repository. So links to
    # other files would be broken, also links in texts that a page includes.
    text = page.read_text()
    assert text.count("{include} ../repository/") == len(INCLUDE.findall(text))
    for link in LINK.findall(text + "".join(included(*found) for found in INCLUDE.findall(text))):
        if not link.startswith("https://"):
            target = (page.parent / link).resolve().relative_to(PAGES)
            assert target.parts[0] in GENERATED or (PAGES / target).is_file(), link


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.stem)
def test_code_cells_compile(page: Path) -> None:
    for cell in cells(page):
        # Lines that begin with a colon are options of the cell.
        code = re.sub(r"\A(?::.*\n)+", "", cell)
        if code.startswith("%%bash\n"):
            subprocess.run(["bash", "-n"], input=code.partition("\n")[2], text=True, check=True)
        elif not code.startswith("%%writefile "):
            compile(code, str(page), "exec")


def test_pages_with_code_are_notebooks() -> None:
    for page in ALL_PAGES:
        has_header = page.read_text().startswith("---\nfile_format: mystnb\n")
        assert has_header is bool(cells(page)), page


def test_shell_cells_stop_at_the_first_command_that_fails() -> None:
    # By default, a %%bash cell goes on after a command that fails. So the first cell of the page
    # defines its own %%bash.
    first = cells(COMMAND_PAGE)[0]
    assert "def bash(" in first
    assert '"-euo"' in first
    others = set(ALL_PAGES) - {COMMAND_PAGE}
    assert not any("%%bash" in cell for page in others for cell in cells(page))


def test_every_page_is_in_a_list_of_contents() -> None:
    listed = {PAGES / "index.md"}
    for page in ALL_PAGES:
        for contents in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.S):
            entries = [line for line in contents.splitlines() if line and line[0] != ":"]
            names = [re.sub(r".*<(.*)>", r"\1", entry) for entry in entries]
            listed |= {(page.parent / name).with_suffix(".md") for name in names}
    assert set(ALL_PAGES) <= listed


def test_each_public_package_and_export_stands_in_the_reference(tmp_path: Path) -> None:
    write_reference(tmp_path)
    index = (tmp_path / "index.rst").read_text()
    described = {export.path for export in exports()}
    assert packages()[0] == "geomdp"
    for package in packages():
        assert f"   {package}\n" in index
        page = (tmp_path / f"{package}.rst").read_text()
        for export in exported_by(package).values():
            assert export.path in page
            described.discard(export.path)
            assert not export.is_code or (tmp_path / f"{export.path}.rst").exists()
    assert described == set()


def test_a_package_lists_its_own_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python may use one object for equal constants of two packages."""
    (learners,) = (found for found in exports() if found.path == "geomdp.audit.DEFAULT_LEARNERS")
    equal = replace(learners, package="geomdp.privacy", name="OTHER")
    listed = (*exports(), equal)
    monkeypatch.setattr("experiments.guide.reference.exports", lambda: listed)
    assert exported_by("geomdp.audit")["DEFAULT_LEARNERS"] is learners


def test_a_class_links_to_what_it_inherits(tmp_path: Path) -> None:
    write_reference(tmp_path)
    page = (tmp_path / "geomdp.mechanisms.KNorm.rst").read_text()
    assert ".. automethod:: KNorm.with_workload\n" in page  # of a base class without a page
    assert ":py:obj:`noise <geomdp.mechanisms.AdditiveMechanism.noise>`" in page
    assert ":py:obj:`release <geomdp.mechanisms.Mechanism.release>`" in page


def test_the_scripts_of_the_catalogue_stand_in_the_gallery(tmp_path: Path) -> None:
    scripts = [load(name) for name in SCRIPTS]
    pages = gallery_pages(scripts, Folders())
    for script in scripts:
        assert f":link: figure-{script.name}\n" in pages["index"]
        assert f".. _figure-{script.name}:\n" in pages[script.package.rpartition(".")[2]]
    with pytest.raises(MissingFigureError, match=scripts[0].name):
        gallery_pages(scripts, Folders(figures=tmp_path))


def test_every_theorem_has_a_place_in_the_guide(tmp_path: Path) -> None:
    write_theorems(tmp_path, [load(SCRIPTS[0])])
    text = "".join(path.read_text() for path in tmp_path.glob("*.rst"))
    assert all(text.count(f".. _theorem-{theorem.id}:\n") == 1 for theorem in THEOREMS)
    assert ":ref:`figure-jl_error_vs_n`" in text


def test_the_chart_leads_to_public_names_and_to_sections_that_run_them() -> None:
    paths = {export.path for export in exports()}
    page = (PAGES / "use" / "choose.md").read_text()
    for decision in DECISIONS:
        assert set(decision.use) <= paths
        _, _, section = page.partition(f"({decision.section})=\n")
        code = re.split(r"^\([\w-]+\)=$", section, flags=re.M)[0]
        assert any(f"{name.rpartition('.')[2]}(" in code for name in decision.use)
    assert {candidate.kind for candidate in CANDIDATES} <= {export.value for export in exports()}


def test_the_threat_model_counts_the_planted_faults() -> None:
    page = (PAGES / "privacy" / "threat_model.md").read_text()
    assert f"{len(FAULTS)} planted faults" in page


@pytest.mark.parametrize(
    ("plain", "set_in_type"),
    [
        ("||x||_K <= e^(epsilon / 2)", "‖\\ *x*\\ ‖\\ :sub:`K` ≤ *e*\\ :sup:`ε / 2`"),
        ("a point of R^m, m >= 1", "a point of ℝ\\ :sup:`m`\\ , *m* ≥ 1"),
        ("the set {x : |<u, x>| <= 1}", "the set {\\ *x* : \\|<\\ *u*\\ , *x*\\ >\\| ≤ 1}"),
        ("`Ball` and `no_such_name`", ":py:obj:`Ball <geomdp.bodies.Ball>` and ``no_such_name``"),
        ("B = `bound`(alpha/2)", "*B* = ``bound``\\ (α/2)"),
        ("see JL-T2 and ZZ-T2", "see :ref:`JL-T2 <theorem-JL-T2>` and ZZ-T2"),
        ("K's faces, X and X'", "\\ *K*\\ 's faces, *X* and *X*\\ ′"),
        ("**n** : int", "**n** : int"),
        ("* an item", "* an item"),
        (">>> x_1 * 2", ">>> x_1 * 2"),
    ],
)
def test_docstrings_are_typeset(plain: str, set_in_type: str) -> None:
    (line,) = typeset([plain], Place("geomdp.bodies", None))
    assert line == set_in_type.removeprefix("\\ ")


#: Pieces of labels that reStructuredText would obey.
LIVE = (
    *("**x**", "*a*", ":py:obj:`x`", "`a`", "``a``b", "``", "x_", "[1]_", "__", "|a|", "_`a`"),
    *("||_`", "^(`)", "x_( )", "\\", ".. a::", ">>> a", "* ", "` `", "a@b.c", "http://a.b", ":"),
)
#: Nodes of a claim: its verdict and words, and what is typeset inside it.
NODES = {"document", "block_quote", "bullet_list", "list_item", "paragraph", "strong", "#text"}
NODES |= {"emphasis", "literal", "inline", "subscript", "superscript"}


@pytest.mark.parametrize("line", [_claim, _goal])
def test_the_gallery_obeys_no_label(line: Callable[[dict[str, object]], str]) -> None:
    for role in ("ref", "py:obj"):  # Sphinx has these
        roles.register_local_role(role, roles.GenericRole(role, nodes.inline))
    keys = ("name", "measured", "theory", "goal", "beside", "reason")
    for label in itertools.chain.from_iterable(groups(PIECES + 3 * LIVE)):
        text = line({"passed": True, "reached": True, **dict.fromkeys(keys, label)})
        assert controls(text) <= {"\n"}, label
        settings = {"report_level": 2, "halt_level": 2}
        found = [*publish_doctree(text, settings_overrides=settings).findall()]
        assert {node.tagname for node in found} <= NODES | {"system_message"}, label
        strong = [node.astext() for node in found if node.tagname == "strong"]
        assert strong in (["passed"], ["reached"]), label


def test_what_an_example_prints_is_not_typeset() -> None:
    lines = ["The value of x:", "", ">>> f(x)", "x <= 1", "", "x <= 1"]
    found = typeset(lines, Place("geomdp", None))
    assert found[2:4] == lines[2:4]
    assert found[5] == "*x* ≤ 1"


def test_broken_links_and_files_from_the_network_are_found(tmp_path: Path) -> None:
    (tmp_path / "here.html").write_text("<p id='place'><a href='https://example.org'>a</a></p>")
    links = ("here.html#place", "here.html#elsewhere", "gone.html", "#nowhere")
    page = [*(f"<a href='{link}'>a</a>" for link in links), "<script src='//cdn.example/x.js'>"]
    (tmp_path / "page.html").write_text("".join(page))
    (tmp_path / "style.css").write_text("@font-face { src: url(https://fonts.example/f.woff) }")
    assert problems(tmp_path) == [
        "page.html: there is no place here.html#elsewhere",
        "page.html: there is no gone.html",
        "page.html: there is no place #nowhere",
        "page.html: loads //cdn.example/x.js from the network",
        "style.css: loads https://fonts.example/f.woff from the network",
    ]


#: Texts of pages that must end the build, each with words that the error message must contain.
FAULTY = {
    "```{code-cell}\n1 / 0\n```": "ZeroDivisionError",
    "{py:obj}`geomdp.no_such_name`": "reference target not found",
    "{ref}`no-such-place`": "undefined label",
    "$\\nosuchcommand$": "unknown command",
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTY)
def test_a_faulty_page_ends_the_build(tmp_path: Path, fault: str) -> None:
    sources = tmp_path / "sources"
    shutil.copytree(HERE / "static", sources / "static")
    shutil.copy(HERE / "conf.py", sources)
    page = f"---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n# Page\n\n{fault}\n"
    (sources / "index.md").write_text(page)
    with pytest.raises(GuideError, match=FAULTY[fault]):
        run_sphinx(sources, tmp_path / "html", tmp_path / "doctrees")


def test_an_example_that_prints_something_else_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong() -> None:
        """Add.

        >>> 1 + 1
        3
        >>> 1 + 2
        3
        """

    monkeypatch.setattr(examples, "exports", lambda: (Export("geomdp", "wrong", wrong, __name__),))
    found = examples.run_examples()
    assert found.run == 2
    assert len(found.failures) == 1
    assert "geomdp.wrong" in found.failures[0]


def test_a_missing_figure_ends_the_command_with_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_line, "SCRIPTS", SCRIPTS[:1])
    result = CliRunner().invoke(
        command_line.app, ["guide", "--out", str(tmp_path / "out"), "--figures", str(tmp_path)]
    )
    assert result.exit_code == 1
    assert "run the script jl_error_vs_n with --full" in " ".join(result.output.split())


def test_git_ignores_the_built_guide() -> None:
    assert "experiments/results/" in (ROOT / ".gitignore").read_text().splitlines()
