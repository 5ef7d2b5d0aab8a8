"""Sentences of docstrings and claims as HTML: their ASCII formulas become readable mathematics."""

from __future__ import annotations

import html
import re

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
    """Replace each `opening` by `before`, and its closing bracket by `after`.

    An `opening` that is never closed stays.
    """
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
