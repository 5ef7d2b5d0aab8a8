"""Small pieces of HTML that several pages share."""

from __future__ import annotations

from collections.abc import Iterable

from experiments.engine.script import LoadedScript
from experiments.report.prose import escape, prose
from experiments.theorems import THEOREMS
from experiments.theorems.theorem import ID

#: Files of the pages that do not belong to one folder of scripts.
START, THEOREM_PAGE, CLAIM_PAGE = "index.html", "theorems.html", "claims.html"
_KNOWN = {theorem.id for theorem in THEOREMS}


def linked_ids(text: str) -> str:
    """Prose as HTML, in which ids of the formula sheet link to their theorems."""
    return ID.sub(
        lambda found: (
            f'<a href="{THEOREM_PAGE}#theorem-{found[0]}">{found[0]}</a>'
            if found[0] in _KNOWN
            else found[0]
        ),
        prose(text),
    )


def verdict(passed: bool) -> str:
    """The word for a claim's outcome, with a class for its colour."""
    return (
        '<span class="verdict passed">passed</span>'
        if passed
        else '<span class="verdict failed">FAILED</span>'
    )


def reached(is_reached: bool) -> str:
    """The word for the state of a goal. An open goal is no failure and not coloured as one."""
    return (
        '<span class="verdict passed">reached</span>'
        if is_reached
        else '<span class="verdict">open</span>'
    )


def table(caption: str, headers: Iterable[str], rows: Iterable[Iterable[str]], kind: str) -> str:
    """An HTML table whose rows become cards on narrow screens. `rows` are HTML already."""
    names = [*headers]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    body = []
    for row in rows:
        first, *others = row
        cells = "".join(
            # Cards do not show empty cells.
            f'<td data-header="{escape(name)}">{cell}</td>' if cell else '<td class="none"></td>'
            for name, cell in zip(names[1:], others, strict=True)
        )
        body.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
    return (
        f'<table class="{kind}"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )


def page_of(script: LoadedScript) -> str:
    """File name of the page that shows a script. All scripts of one folder share a page."""
    return f"{script.package.rpartition('.')[2]}.html"


def figure_link(script: LoadedScript) -> str:
    """Link to the section of a script."""
    return f'<a href="{page_of(script)}#figure-{script.name}">{breakable(script.name)}</a>'


def breakable(name: str) -> str:
    """A dotted name or path; lines may break after each dot, double colon, slash and underscore."""
    text = escape(name)
    for mark in ("::", "/", ".", "_"):
        text = text.replace(mark, f"{mark}<wbr>")
    return text
