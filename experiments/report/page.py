"""The page: contents, all claims, all figures, and the index from theorem to function."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from experiments.engine.script import Preset
from experiments.report.gathered import Gathered
from experiments.report.markup import breakable, figure_link, linked_ids, table, verdict
from experiments.report.mathematics import to_html
from experiments.report.section import section
from experiments.theorems import THEOREMS, Paper, Theorem

FOLDER = Path(__file__).parent


def page(entries: Sequence[Gathered], preset: Preset) -> str:
    """The whole document; it refers to nothing outside itself."""
    style = (FOLDER / "page.css").read_text(encoding="utf-8")
    behaviour = (FOLDER / "page.js").read_text(encoding="utf-8")
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        # An empty icon: without one, browsers ask for a file.
        '<link rel="icon" href="data:,">',
        f"<title>geomdp: theorems, figures, claims</title><style>{style}</style></head><body>",
        '<a class="skip" href="#figures">Skip to the figures</a>',
        f"<header><h1>Theorems, figures, claims</h1>{_summary(entries, preset)}</header>",
        _contents(entries),
        "<main>",
        '<section id="figures"><h2>Figures</h2>',
        *(section(entry, preset) for entry in entries),
        "</section>",
        _all_claims(entries),
        _index(entries),
        f"</main><script>{behaviour}</script></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _summary(entries: Sequence[Gathered], preset: Preset) -> str:
    verdicts = [claim["passed"] for entry in entries for claim in entry.claims]
    figures = sum(entry.has_figure for entry in entries)
    absent = [entry.name for entry in entries if not entry.has_figure]
    failed = [entry.name for entry in entries if not all(c["passed"] for c in entry.claims)]
    lines = [
        f"{figures} figures at the {preset} preset, {len(THEOREMS)} theorems, lemmas and "
        f"algorithms. Of {len(verdicts)} claims {sum(verdicts)} passed and "
        f"{len(verdicts) - sum(verdicts)} failed."
    ]
    if failed:
        lines.append(f"With failed claims: {', '.join(map(figure_link, failed))}.")
    if absent:
        lines.append(f"Without a figure: {', '.join(map(figure_link, absent))}.")
    return "".join(f"<p>{line}</p>" for line in lines)


def _contents(entries: Sequence[Gathered]) -> str:
    links = "".join(
        f"<li>{figure_link(entry.name)} <span>{escape(entry.script.headline)}</span></li>"
        for entry in entries
    )
    return (
        '<nav aria-label="Contents"><ul><li><a href="#figures">Figures</a></li>'
        '<li><a href="#claims">All claims</a></li>'
        '<li><a href="#index">Index: theorem, figure, function</a></li></ul>'
        f"<details><summary>All figures</summary><ol>{links}</ol></details></nav>"
    )


def _all_claims(entries: Sequence[Gathered]) -> str:
    rows = (
        (
            escape(claim["name"]),
            verdict(claim["passed"]),
            figure_link(entry.name),
            escape(claim["measured"]),
            escape(claim["theory"]),
            linked_ids(claim["id"]),
        )
        for entry in entries
        for claim in entry.claims
    )
    headers = ("claim", "verdict", "figure", "measured", "theory", "source")
    listed = table("Every claim with what was measured", headers, rows, "claims all")
    return f'<section id="claims"><h2>All claims</h2>{listed}</section>'


def _index(entries: Sequence[Gathered]) -> str:
    shown: dict[str, list[Gathered]] = {theorem.id: [] for theorem in THEOREMS}
    for entry in entries:
        for theorem in entry.theorems:
            shown[theorem.id].append(entry)
    order = [*Paper]
    ordered = sorted(THEOREMS, key=lambda theorem: order.index(theorem.paper))
    tables = [
        table(
            paper.value,
            ("statement", "id", "figures", "functions"),
            (_index_row(theorem, shown[theorem.id]) for theorem in theorems),
            "index",
        )
        for paper, theorems in groupby(ordered, key=lambda theorem: theorem.paper)
    ]
    return (
        f'<section id="index"><h2>Index: theorem, figure, function</h2>{"".join(tables)}</section>'
    )


def _index_row(theorem: Theorem, shown: Sequence[Gathered]) -> tuple[str, str, str, str]:
    numbers = f'<span class="numbers">{escape(", ".join(theorem.numbers))}</span> '
    correction = (
        f'<p class="correction">{escape(theorem.correction)}</p>' if theorem.correction else ""
    )
    figures = [figure_link(entry.name) for entry in shown]
    if not figures:
        tests = ", ".join(f"<code>{breakable(test)}</code>" for test in theorem.tests)
        figures = [f"no figure; tested by {tests}"]
    functions = "<br>".join(f"<code>{breakable(name)}</code>" for name in theorem.code)
    return (
        f'<div id="theorem-{theorem.id}" class="statement">{numbers if theorem.numbers else ""}'
        f"<b>{escape(theorem.name)}</b><p>{to_html(theorem.statement)}</p>{correction}</div>",
        escape(theorem.id),
        "<br>".join(figures),
        functions,
    )
