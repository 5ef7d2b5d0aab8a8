"""Two pages to look things up: every claim with its margin, and every theorem with its code."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

from experiments.report.gathered import Gathered
from experiments.report.margin import margin
from experiments.report.markup import breakable, figure_link, linked_ids, prose, table, verdict
from experiments.report.mathematics import to_html
from experiments.theorems import THEOREMS, Paper, Theorem

MARGIN = (
    "The bar under a verdict shows how close the measurement is to the limit of its claim: beyond "
    "a full bar, the claim fails. Claims without such a limit say so; a pointer on these "
    "words shows the reason."
)


def all_claims(entries: Sequence[Gathered]) -> str:
    """Every claim of all figures, figure by figure."""
    rows = (
        (
            prose(claim["name"]),
            verdict(claim["passed"]) + margin(claim),
            figure_link(entry.script),
            prose(claim["measured"]),
            prose(claim["theory"]),
            linked_ids(claim["id"]),
        )
        for entry in entries
        for claim in entry.claims
    )
    headers = ("claim", "verdict", "figure", "measured", "theory", "source")
    return f"<p>{MARGIN}</p>" + table(
        "Every claim with what was measured", headers, rows, "claims all"
    )


def theorem_index(entries: Sequence[Gathered]) -> str:
    """Every theorem with the figures that test or mention it, and the code that implements it."""
    shown: dict[str, list[Gathered]] = {theorem.id: [] for theorem in THEOREMS}
    for entry in entries:
        for theorem in entry.theorems:
            shown[theorem.id].append(entry)
    order = [*Paper]
    ordered = sorted(THEOREMS, key=lambda theorem: order.index(theorem.paper))
    return "".join(
        f"<h2>{escape(paper.value)}</h2>"
        + table(
            paper.value,
            ("statement", "id", "claims of figures", "functions"),
            (_index_row(theorem, shown[theorem.id]) for theorem in theorems),
            "index",
        )
        for paper, theorems in groupby(ordered, key=lambda theorem: theorem.paper)
    )


def _index_row(theorem: Theorem, shown: Sequence[Gathered]) -> tuple[str, str, str, str]:
    numbers = f'<span class="numbers">{escape(", ".join(theorem.numbers))}</span> '
    correction = (
        f'<p class="correction">{prose(theorem.correction)}</p>' if theorem.correction else ""
    )
    figures = [figure_link(entry.script) for entry in shown if entry.name in theorem.scripts]
    if not theorem.claims:
        tests = ", ".join(f"<code>{breakable(test)}</code>" for test in theorem.tests)
        figures = [f"no claim; tested by {tests}"]
    mentioned = [figure_link(e.script) for e in shown if e.name not in theorem.scripts]
    if mentioned:
        figures.append(f"mentioned by {', '.join(mentioned)}")
    functions = "<br>".join(f"<code>{breakable(name)}</code>" for name in theorem.code)
    return (
        f'<div id="theorem-{theorem.id}" class="statement">{numbers if theorem.numbers else ""}'
        f"<b>{escape(theorem.name)}</b><p>{to_html(theorem.statement)}</p>{correction}</div>",
        escape(theorem.id),
        "<br>".join(figures),
        functions,
    )
