"""Small pieces of HTML that several pages share."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from experiments.engine.script import LoadedScript
from experiments.theorems import THEOREMS
from experiments.theorems.theorem import ID
from geomdp.cli.display import visible

GREEK = {
    "epsilon": "ε",
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "lambda": "λ",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
    "mu": "μ",
}
_CODE = re.compile(r"`([^`]+)`")
_GREEK = re.compile(rf"\b({'|'.join(GREEK)})(?=\b|_|\d)(?! method)")
#: Patterns and their replacements, which are applied in this order to escaped text.
_SIGNS = (
    (re.compile(r"&lt;="), "≤"),
    (re.compile(r"&gt;="), "≥"),
    (re.compile(r"\+-"), "±"),
    (re.compile(r"\|\|"), "‖"),
    (re.compile(r"\b(\d+(?:\.\d+)?)e\+?(-?)0*(\d+)\b"), r"\1 × 10^\2\3"),
    (re.compile(r"\bl2\b"), "ℓ<sub>2</sub>"),
    (re.compile(r"\bl1\b"), "ℓ<sub>1</sub>"),
    (re.compile(r"\bln (?=\w)"), "ln&nbsp;"),
    # A hyphen between spaces is a minus sign. A hyphen before a digit or bracket is a minus sign,
    # too, unless it follows a letter, digit, dot or closing bracket.
    (re.compile(r" - (?=\S)"), " − "),
    (re.compile(r"(?<![\w.)])-(?=\d|\()"), "−"),
)
_SUBSCRIPT = re.compile(r"(?<=[\w)])_(\w+|\+)")
_SIMPLE_POWER = re.compile(r"\^([-−]?(?:\d+(?:\.\d+)?|[A-Za-zα-ω]+))")


def escape(text: str) -> str:
    """The text as HTML, with an escape such as \\u001b in place of each control character."""
    return html.escape(visible(text))


def prose(text: str) -> str:
    """The text as escaped HTML, with markup for code, Greek letters, powers, indices and roots."""
    # The pieces at odd places stood between backticks.
    pieces = _CODE.split(" ".join(text.split()))
    return "".join(
        f"<code>{escape(piece)}</code>" if place % 2 else _mathematics(escape(piece))
        for place, piece in enumerate(pieces)
    )


def _mathematics(text: str) -> str:
    for pattern, sign in _SIGNS:
        text = pattern.sub(sign, text)
    text = _GREEK.sub(lambda found: GREEK[found[1]], text)
    text = _in_brackets(text, "sqrt(", '√<span class="root">', "</span>")
    text = _in_brackets(text, "^(", "<sup>", "</sup>")
    text = _SIMPLE_POWER.sub(lambda found: f"<sup>{found[1].replace('-', '−')}</sup>", text)
    return _SUBSCRIPT.sub(r"<sub>\1</sub>", text)


def _in_brackets(text: str, opening: str, before: str, after: str) -> str:
    """Replace each `opening` by `before`, and its closing bracket by `after`."""
    start = text.find(opening)
    while start >= 0:
        depth, end = 1, start + len(opening)
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        if depth:
            return text
        inner = text[start + len(opening) : end - 1]
        if opening == "^(":
            inner = inner.replace("-", "−")
        text = f"{text[:start]}{before}{inner}{after}{text[end:]}"
        start = text.find(opening, start + len(before))
    return text


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
