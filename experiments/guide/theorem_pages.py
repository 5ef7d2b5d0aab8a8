"""Sources of the gallery: a page for each theorem, by paper, and what stands behind each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from experiments.engine.figures import Folders
from experiments.engine.script import LoadedScript
from experiments.guide.figure_pages import claim_line, picture, record_of, source_of
from experiments.guide.markup import card, contents, prose, table, title
from experiments.guide.reference import exports
from experiments.theorems import THEOREMS, UNCLAIMED, Paper, Theorem, cited, resolve, shown_by


@dataclass(frozen=True)
class Shown:
    """What the committed figures say about the theorems."""

    scripts: Mapping[str, LoadedScript]
    records: Mapping[str, Mapping[str, Any]]  # The committed record of each script

    @classmethod
    def of(cls, scripts: Sequence[LoadedScript], folders: Folders) -> Shown:
        named = {script.name: script for script in scripts}
        return cls(named, {name: record_of(script, folders) for name, script in named.items()})

    def claims(self, theorem: Theorem) -> list[tuple[str, list[Mapping[str, Any]]]]:
        """The claims that fail if a theorem is wrong, by script."""
        found: dict[str, list[Mapping[str, Any]]] = {name: [] for name in theorem.scripts}
        for each in theorem.claims:
            name, id = each.split("::")
            for claim in self.records.get(name, {}).get("claims", ()):
                if id in cited(claim["id"]) and claim not in found[name]:
                    found[name].append(claim)
        return [(name, claims) for name, claims in found.items() if name in self.scripts]

    def mentions(self, theorem: Theorem) -> list[str]:
        """The scripts that cite a theorem, but have no claim about it."""
        docstrings = [(name, script.module.__doc__) for name, script in self.scripts.items()]
        return [name for name in shown_by(theorem, docstrings) if name not in theorem.scripts]


def write_theorems(folder: Path, scripts: Sequence[LoadedScript], folders: Folders) -> None:
    """Write the pages into a folder; each theorem links to its code and its figures."""
    folder.mkdir(parents=True, exist_ok=True)
    shown = Shown.of(scripts, folders)
    pages = {"index": _index(shown), "behind": _behind(shown)}
    for paper in Paper:
        pages[paper.name.lower()] = _paper_page(paper, shown)
    for theorem in THEOREMS:
        pages[theorem.id] = _theorem_page(theorem, shown)
    for name, text in pages.items():
        (folder / f"{name}.rst").write_text(text, encoding="utf-8")


def names_of(paper: Paper) -> tuple[str, str]:
    """The short and the long name of a paper, or of a group of statements that is no paper."""
    head, _, rest = paper.value.partition(": ")
    return (rest[0].upper() + rest[1:], rest) if head == "Common ground" else (head, rest or head)


def stated_in(paper: Paper) -> list[Theorem]:
    """The statements of a paper, in the order of the files."""
    return [theorem for theorem in THEOREMS if theorem.paper is paper]


def _index(shown: Shown) -> str:
    papers = [paper for paper in Paper if stated_in(paper)]
    cards = "".join(_paper_card(paper, shown) for paper in papers)
    claims = [claim for record in shown.records.values() for claim in record.get("claims", ())]
    passed = sum(bool(claim["passed"]) for claim in claims)
    failed = [
        f":ref:`figure-{name}`"
        for name, record in shown.records.items()
        if not all(claim["passed"] for claim in record.get("claims", ()))
    ]
    names = [*(paper.name.lower() for paper in papers), "../figures/index"]
    return (
        f":html_theme.sidebar_secondary.remove: true\n\n{title('Gallery')}"
        f"{len(THEOREMS)} theorems, lemmas and algorithms of five papers and of this library, each"
        " on a page:\nthe statement, the figure that shows it, the claims that would fail if it\n"
        f"were wrong, and the code. Of {len(claims)} claims {passed} passed and"
        f" {len(claims) - passed} failed{': ' + ', '.join(failed) if failed else ''}.\n\n"
        f".. grid:: 1 2 2 2\n   :gutter: 3\n\n{cards}\n"
        "The same figures stand in order of the question they answer in\n"
        ":doc:`../figures/index`, and :doc:`behind` lists for each statement its code, tests and\n"
        f"claims.\n\n{contents(names)}"
    )


def _paper_card(paper: Paper, shown: Shown) -> str:
    head, rest = names_of(paper)
    stated = stated_in(paper)
    more = f"{rest}\n\n      " if rest.lower() != head.lower() else ""
    text = f"{more}{len(stated)} statements"
    return card(paper.name.lower(), text, head, _thumbnail(stated, shown), kind="doc")


def _thumbnail(stated: Sequence[Theorem], shown: Shown) -> str:
    """The small picture of the first figure with a claim about one of the theorems."""
    names = (name for theorem in stated for name in theorem.scripts if name in shown.scripts)
    return next((f"../figures/small/{name}" for name in names), "")


def _paper_page(paper: Paper, shown: Shown) -> str:
    stated = stated_in(paper)
    cards = "".join(_theorem_card(theorem, shown) for theorem in stated)
    head, rest = names_of(paper)
    return (
        f":html_theme.sidebar_secondary.remove: true\n\n{title(head)}"
        f"{rest}. Each statement is as it is implemented; where it differs from the\n"
        "printed one, its page says why.\n\n"
        f".. grid:: 1 2 2 3\n   :gutter: 3\n\n{cards}\n"
        f"{contents([theorem.id for theorem in stated])}"
    )


def _theorem_card(theorem: Theorem, shown: Shown) -> str:
    text = ", ".join([theorem.id, *theorem.numbers])
    return card(f"theorem-{theorem.id}", text, theorem.name, _thumbnail([theorem], shown))


def _theorem_page(theorem: Theorem, shown: Shown) -> str:
    source = f":doc:`{names_of(theorem.paper)[0]} <{theorem.paper.name.lower()}>`"
    numbers = ", ".join([f"**{theorem.id}**", *theorem.numbers, source])
    correction = (
        f"   .. container:: correction\n\n      **Not as printed.** {prose(theorem.correction)}\n\n"
        if theorem.correction
        else ""
    )
    return (
        f".. _theorem-{theorem.id}:\n\n{title(theorem.name)}"
        f".. container:: statement\n\n   {numbers}\n\n   {prose(theorem.statement)}\n\n"
        f"{correction}{_figure(theorem, shown)}{_reading(theorem)}{_claims(theorem, shown)}"
        f"{title('Where it is', '-')}{_places(theorem, shown)}"
    )


def _figure(theorem: Theorem, shown: Shown) -> str:
    """The first figure with a claim about the theorem; without one, the first that cites it."""
    names = [*(name for name, _ in shown.claims(theorem)), *shown.mentions(theorem)]
    if not names:
        return ""
    script = shown.scripts[names[0]]
    return picture(script, f":ref:`{script.headline.rstrip('.')} <figure-{script.name}>`")


def _reading(theorem: Theorem) -> str:
    """What to look at in the figure, and what follows; empty if the statement has no such words."""
    lines = (("What to look at.", theorem.look), ("What follows.", theorem.follows))
    text = "".join(f"   **{head}** {prose(words)}\n\n" for head, words in lines if words)
    return f".. container:: reading\n\n{text}" if text else ""


def _claims(theorem: Theorem, shown: Shown) -> str:
    found = shown.claims(theorem)
    if not found:
        return ""
    groups = "".join(
        f":ref:`figure-{name}`:\n\n{''.join(map(claim_line, claims))}\n" for name, claims in found
    )
    return f"{title('Claims that fail if it is wrong', '-')}{groups}"


def _places(theorem: Theorem, shown: Shown) -> str:
    fields = {
        "In the library": ", ".join(map(link, theorem.code)),
        "Scripts": ", ".join(
            f":ref:`{source_of(shown.scripts[name])} <figure-{name}>`"
            for name, _ in shown.claims(theorem)
        ),
        "Also in": ", ".join(f":ref:`{name} <figure-{name}>`" for name in shown.mentions(theorem)),
        "Tests": ", ".join(f"``{test}``" for test in theorem.tests),
    }
    return "".join(f":{name}: {text}\n" for name, text in fields.items() if text)


def _behind(shown: Shown) -> str:
    """For each paper a table of its statements with code, tests and claims."""
    tables = "".join(
        title(names_of(paper)[0], "-")
        + table(
            ("statement", "in the library", "tests", "claims that can fail"),
            [*map(partial(_row, shown=shown), stated_in(paper))],
            "behind",
            "22 26 30 22",
        )
        for paper in Paper
        if stated_in(paper)
    )
    return (
        f":html_theme.sidebar_secondary.remove: true\n\n{title('What stands behind a theorem')}"
        "A statement is only as good as what would notice that it is wrong. For each statement,\n"
        "these tables name its page, the code that implements it, the tests that check this code,\n"
        "and the figures with a claim that fails if the statement is wrong. All of them are run:\n"
        "tests by ``pytest``, claims by ``python -m experiments reproduce``.\n\n"
        f"{tables}"
    )


def _row(theorem: Theorem, shown: Shown) -> tuple[str, str, str, str]:
    numbers = f"{', '.join(theorem.numbers)}: " if theorem.numbers else ""
    tests = (f"``{test.rpartition('/')[2]}``" for test in theorem.tests)
    claims = [
        f":ref:`{name} <figure-{name}>` ({sum(bool(claim['passed']) for claim in claims)} of "
        f"{len(claims)} passed)"
        for name, claims in shown.claims(theorem)
    ]
    return (
        f"{numbers}:ref:`{theorem.name} <theorem-{theorem.id}>`",
        ", ".join(map(link, theorem.code)),
        ", ".join(tests),
        ", ".join(claims) or UNCLAIMED[theorem.id],
    )


def link(dotted: str) -> str:
    """A link to the page of a name in the reference, or the name as code if there is none."""
    value = resolve(dotted)
    for export in exports():
        if export.value is value:
            return f":py:obj:`{dotted} <{export.path}>`"
    return f"``{dotted}``"
