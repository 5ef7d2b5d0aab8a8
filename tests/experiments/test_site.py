"""Tests of the site: its pages and their code, reference, gallery, typesetting and build."""

import json
import re
import shutil
import subprocess

import pytest
from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import roles
from typer.testing import CliRunner

from experiments import __main__ as command_line
from experiments.catalogue import SCRIPTS
from experiments.engine.figures import Folders
from experiments.engine.script import load
from experiments.guide.build import HERE, SiteError, build_site, problems, run_sphinx
from experiments.guide.conf import rst_prolog
from experiments.guide.docstring_text import Place, typeset
from experiments.guide.figure_pages import MissingFigureError, _goal, claim_line, figure_pages
from experiments.guide.markup import prose
from experiments.guide.reference import exported_by, exports, packages, write_reference
from experiments.guide.theorem_pages import write_theorems
from experiments.planting.catalogue import FAULTS
from experiments.theorems import THEOREMS, cited
from geomdp.advice.candidates import CANDIDATES
from tests.hostile.test_output import PIECES, controls, groups
from tests.readme import PAGES, ROOT, cells

ALL_PAGES = sorted(PAGES.rglob("*.md"))


INCLUDE = re.compile(
    r"```\{include\} \.\./repository/(\S+)\n"
    r'(?::start-after: "(.+)"\n)?(?::end-before: "(.+)"\n)?```'
)
#: Folders of generated pages, which the build of the site adds.
GENERATED = ("figures", "gallery", "reference")
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
def test_links_of_pages_lead_to_pages(page):
    # The built site contains the pages, but not the other files of the repository. So links to
    # other files would be broken, also links in texts that a page includes.
    text = page.read_text()
    assert text.count("{include} ../repository/") == len(INCLUDE.findall(text))
    for link in LINK.findall(text + "".join(included(*found) for found in INCLUDE.findall(text))):
        if link.startswith("paper_figures/"):
            assert (ROOT / link).is_file(), link
        elif not link.startswith("https://"):
            target = (page.parent / link).resolve().relative_to(PAGES)
            assert target.parts[0] in GENERATED or (PAGES / target).is_file(), link


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.stem)
def test_code_cells_compile(page):
    for cell in cells(page):
        # Lines that begin with a colon are options of the cell.
        code = re.sub(r"\A(?::.*\n)+", "", cell)
        if code.startswith("%%bash\n"):
            subprocess.run(["bash", "-n"], input=code.partition("\n")[2], text=True, check=True)
        elif not code.startswith("%%writefile "):
            compile(code, str(page), "exec")


def test_pages_with_code_are_notebooks():
    for page in ALL_PAGES:
        has_header = page.read_text().startswith("---\nfile_format: mystnb\n")
        assert has_header is bool(cells(page)), page


def test_shell_cells_stop_at_the_first_command_that_fails():
    # By default, a %%bash cell goes on after a command that fails. So pages have their own %%bash.
    for page in ALL_PAGES:
        first, *others = cells(page) or [""]
        if any("%%bash" in cell for cell in others):
            assert first.endswith("from experiments.guide import shell\n"), page
    assert '"-euo"' in (HERE / "shell.py").read_text()


def test_every_page_is_in_a_list_of_contents():
    listed = {PAGES / "index.md"}
    for page in ALL_PAGES:
        for contents in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.S):
            entries = [line for line in contents.splitlines() if line and line[0] != ":"]
            names = [re.sub(r".*<(.*)>", r"\1", entry) for entry in entries]
            listed |= {(page.parent / name).with_suffix(".md") for name in names}
    assert set(ALL_PAGES) <= listed


def test_each_public_package_and_export_stands_in_the_reference(tmp_path):
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


def test_a_class_links_to_what_it_inherits(tmp_path):
    write_reference(tmp_path)
    page = (tmp_path / "geomdp.mechanisms.KNorm.rst").read_text()
    assert ".. automethod:: KNorm.with_workload\n" in page  # of a base class without a page
    assert ":py:obj:`noise <geomdp.mechanisms.AdditiveMechanism.noise>`" in page
    assert ":py:obj:`release <geomdp.mechanisms.Mechanism.release>`" in page


def test_the_scripts_of_the_catalogue_have_pages(tmp_path):
    scripts = [load(name) for name in SCRIPTS[:3]]
    pages = figure_pages(scripts, Folders())
    for script in scripts:
        assert f":link: figure-{script.name}\n" in pages["index"]
        page = pages[script.name]
        assert page.startswith(f".. _figure-{script.name}:\n")
        assert page.count('<details class="chart" hidden>') == 1
        record = json.loads((ROOT / "paper_figures" / f"{script.name}.json").read_text())
        assert page.count("* :passed:") == len(record["claims"])
        assert f"commit ``{record['commit']}``" in page
        assert f"python -m experiments run {script.name} --full" in page
    with pytest.raises(MissingFigureError, match=scripts[0].name):
        figure_pages(scripts, Folders(figures=tmp_path))


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The sources of the gallery, by name."""
    folder = tmp_path_factory.mktemp("gallery")
    write_theorems(folder, [load(name) for name in SCRIPTS], Folders())
    return {path.stem: path.read_text() for path in folder.glob("*.rst")}


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda theorem: theorem.id)
def test_a_page_has_all_of_a_theorem(gallery, theorem):
    page = gallery[theorem.id]
    assert page.startswith(f".. _theorem-{theorem.id}:\n")
    assert prose(theorem.statement) in page
    assert page.count(".. figure:: ") == 1
    for name in theorem.scripts:
        assert f":ref:`figure-{name}`:\n" in page
    # Each claim that the theorem names is listed with its verdict and its numbers.
    for claim in theorem.claims:
        name, id = claim.split("::")
        record = json.loads((ROOT / "paper_figures" / f"{name}.json").read_text())
        named = [each for each in record["claims"] if id in cited(each["id"])]
        assert named
        assert all(claim_line(each) in page for each in named)
    assert bool(theorem.claims) is ("Claims that fail if it is wrong" in page)
    for test in theorem.tests:
        assert f"``{test}``" in page
        assert f"``{test.rpartition('/')[2]}``" in gallery["behind"]
    assert all(f"`{name}" in page for name in theorem.code)
    assert f":link: theorem-{theorem.id}\n" in gallery[theorem.paper.name.lower()]
    assert gallery["behind"].count(f"<theorem-{theorem.id}>`") == 1


def test_two_sentences_say_what_to_look_at_and_what_follows():
    for theorem in THEOREMS:
        for words in (theorem.look, theorem.follows):
            assert words.endswith("."), theorem.id
            assert len(re.findall(r"\.(?: |$)", words)) == 1, theorem.id


def test_a_failed_claim_is_shown_as_failed():
    claim = {"name": "a", "measured": "2", "theory": "at most 1", "passed": False, "used": 2.0}
    line = claim_line(claim)
    assert line.startswith("* :failed:`FAILED` ")
    assert "200% of the allowed deviation" in line
    assert claim_line(claim | {"passed": True, "used": 0.5}).startswith("* :passed:`passed` ")


def test_the_chart_leads_to_public_names_and_to_sections_that_run_them():
    paths = {export.path for export in exports()}
    page = (PAGES / "use" / "choose.md").read_text()
    answers = re.findall(r"container\} answer\n(.*?)\n::::", page, re.S)
    assert len(answers) == page.count("{container} question") == 6
    for answer in answers:
        names = re.findall(r"`~([\w.]+)`", answer)
        assert set(names) <= paths
        (place,) = re.findall(r"`Example <(.+)>`", answer)
        _, _, section = page.partition(f"({place})=\n")
        code = re.split(r"^\([\w-]+\)=$", section, flags=re.M)[0]
        assert any(f"{name.rpartition('.')[2]}(" in code for name in names)
    assert {candidate.kind for candidate in CANDIDATES} <= {export.value for export in exports()}


def test_the_threat_model_counts_the_planted_faults():
    page = (PAGES / "privacy" / "threat_model.md").read_text()
    assert f"{len(FAULTS)} planted faults" in page


@pytest.mark.parametrize(("plain", "set_in_type"), [
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
])  # fmt: skip
def test_docstrings_are_typeset(plain, set_in_type):
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


@pytest.mark.parametrize("line", [claim_line, _goal])
def test_the_gallery_obeys_no_label(line):
    for role in ("ref", "py:obj"):  # Sphinx has these
        roles.register_local_role(role, roles.GenericRole(role, nodes.inline))
    keys = ("name", "measured", "theory", "goal", "beside", "reason")
    for labels in groups(PIECES + 3 * LIVE):
        good = {"passed": True, "reached": True}
        text = "\n".join(line(good | dict.fromkeys(keys, label)) for label in labels)
        assert controls(text) <= {"\n"}, labels
        settings = {"report_level": 2, "halt_level": 2}
        found = [*publish_doctree(f"{rst_prolog}\n{text}", settings_overrides=settings).findall()]
        assert {node.tagname for node in found} <= NODES | {"system_message"}, labels
        verdicts = [node.astext() for node in found if node.tagname == "strong"]
        assert verdicts in (["passed"] * len(labels), ["reached"] * len(labels)), labels


def test_what_an_example_prints_is_not_typeset():
    lines = ["The value of x:", "", ">>> f(x)", "x <= 1", "", "x <= 1"]
    found = typeset(lines, Place("geomdp", None))
    assert found[2:4] == lines[2:4]
    assert found[5] == "*x* ≤ 1"


def test_broken_links_and_files_from_the_network_are_found(tmp_path):
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
def test_a_faulty_page_ends_the_build(tmp_path, fault):
    sources = tmp_path / "sources"
    shutil.copytree(HERE / "static", sources / "static")
    shutil.copy(HERE / "conf.py", sources)
    page = f"---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n# Page\n\n{fault}\n"
    (sources / "index.md").write_text(page)
    with pytest.raises(SiteError, match=FAULTY[fault]):
        run_sphinx(sources, tmp_path / "html", tmp_path / "doctrees")


def test_a_missing_figure_ends_the_command_with_a_message(tmp_path, monkeypatch):
    monkeypatch.setattr(command_line, "SCRIPTS", SCRIPTS[:1])
    monkeypatch.setattr(command_line, "RESULTS", tmp_path / "results")
    result = CliRunner().invoke(
        command_line.app, ["site", "--out", str(tmp_path / "out"), "--figures", str(tmp_path)]
    )
    assert result.exit_code == 1
    assert "run the script lead with --full" in " ".join(result.output.split())
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_files_is_not_replaced(tmp_path):
    (tmp_path / "thesis.tex").write_text("a life's work")
    with pytest.raises(SiteError, match="no earlier site"):
        build_site([], tmp_path, Folders(), tmp_path / "work")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
