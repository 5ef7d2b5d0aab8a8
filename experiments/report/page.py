"""The frame of every page: the head, the contents at the side, and the foot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from experiments.engine.terminal import question
from experiments.report.gathered import Gathered
from experiments.report.markup import CLAIM_PAGE, START, THEOREM_PAGE, page_of

STYLE, BEHAVIOUR = "report.css", "report.js"


@dataclass(frozen=True)
class Entry:
    """One line of the contents."""

    file: str  # File of the page
    title: str  # Heading of the page; `_short` shortens it for the contents
    sections: tuple[tuple[str, str], ...] = ()  # Identifiers and names of its figures


def contents_of(entries: Sequence[Gathered]) -> list[Entry]:
    """All pages in order: the start, a page for each question, claims and theorems."""
    groups: dict[str, list[Gathered]] = {}
    for entry in entries:
        groups.setdefault(entry.script.package, []).append(entry)
    questions = [
        Entry(
            page_of(group[0].script),
            question(package) or package.rpartition(".")[2],
            tuple((f"figure-{each.name}", each.name.replace("_", " ")) for each in group),
        )
        for package, group in groups.items()
    ]
    return [
        Entry(START, "The story"),
        *questions,
        Entry(CLAIM_PAGE, "All claims and their margins"),
        Entry(THEOREM_PAGE, "Theorem, figure, function"),
    ]


def page(contents: Sequence[Entry], here: Entry, body: str) -> str:
    """A whole HTML document. It loads only files of its own folder."""
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        # An empty icon: without one, browsers ask for a file.
        '<link rel="icon" href="data:,">',
        f'<link rel="stylesheet" href="{STYLE}">',
        f"<title>{escape(_short(here.title))} · geomdp</title></head><body>",
        '<a class="skip" href="#main">Skip the contents</a>',
        f'<nav aria-label="Contents"><details open><summary>Contents</summary>'
        f"{_contents(contents, here)}</details></nav>",
        f'<main id="main"><h1>{escape(here.title)}</h1>',
        body,
        _foot(contents, here),
        f'</main><script src="{BEHAVIOUR}"></script></body></html>',
    ]
    return "\n".join(parts) + "\n"


def _short(title: str) -> str:
    """The question at the start of a title, or the whole title if it has no question mark."""
    return title.partition("?")[0] + ("?" if "?" in title else "")


def _contents(contents: Sequence[Entry], here: Entry) -> str:
    lines = []
    for entry in contents:
        current = entry.file == here.file
        mark = ' aria-current="page"' if current else ""
        title = escape(_short(entry.title))
        inner = "".join(
            f'<li><a href="#{place}">{escape(name)}</a></li>' for place, name in entry.sections
        )
        nested = f"<ul>{inner}</ul>" if current and inner else ""
        lines.append(f'<li><a href="{entry.file}"{mark}>{title}</a>{nested}</li>')
    return f'<ul class="pages">{"".join(lines)}</ul>'


def _foot(contents: Sequence[Entry], here: Entry) -> str:
    """Links to the page before and the page after."""
    place = [entry.file for entry in contents].index(here.file)
    links = []
    if place > 0:
        before = contents[place - 1]
        links.append(f'<a rel="prev" href="{before.file}">← {escape(_short(before.title))}</a>')
    if place + 1 < len(contents):
        after = contents[place + 1]
        links.append(f'<a rel="next" href="{after.file}">{escape(_short(after.title))} →</a>')
    return f"<footer>{''.join(links)}</footer>"
