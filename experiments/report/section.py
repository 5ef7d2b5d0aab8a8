"""The section of one script: figure, theorems, claims, goals, parameters, code and versions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from experiments.engine.script import Preset
from experiments.report.charts import Curve, Panel, legend_of
from experiments.report.gathered import Gathered
from experiments.report.margin import margin
from experiments.report.markup import (
    THEOREM_PAGE,
    breakable,
    escape,
    linked_ids,
    prose,
    reached,
    table,
    verdict,
)
from experiments.report.mathematics import to_html, to_text
from experiments.theorems import Theorem

#: The report lists up to this many values of a parameter. If there are more numbers, it gives their
#: least, their largest and their count.
LISTED = 8


def section(entry: Gathered, preset: Preset) -> str:
    """The HTML element ``article`` about one script."""
    paragraphs = (entry.script.module.__doc__ or "").strip().split("\n\n")[1:]
    parts = [
        f'<article id="figure-{entry.name}"><h2>{prose(entry.script.headline)}</h2>',
        _figure(entry, preset),
        *map(_paragraph, paragraphs),
    ]
    if entry.theorems:
        shown = "".join(_statement(theorem) for theorem in entry.theorems)
        parts.append(
            "<details><summary>Theorems it shows</summary>"
            f'<dl class="theorems">{shown}</dl></details>'
        )
    if entry.claims:
        parts.append(_claims(entry))
    if entry.goals:
        parts.append(_goals(entry))
    if entry.record is not None:
        parts += [_parameters(entry.record), _origin(entry)]
    return "\n".join([*parts, "</article>"])


def _paragraph(text: str) -> str:
    """A paragraph of a docstring; lines that begin with a star are the items of a list after it."""
    first, *items = re.split(r"(?:^|\n)\* ", text)
    shown = f"<p>{linked_ids(first)}</p>" if first.strip() else ""
    listed = "".join(f"<li>{linked_ids(item)}</li>" for item in items)
    return f"{shown}<ul>{listed}</ul>" if items else shown


def _figure(entry: Gathered, preset: Preset) -> str:
    notes = []
    if entry.failure:
        notes.append(f"The script failed on its own table: {entry.failure}")
    if not entry.has_figure:
        command = f"python -m experiments run {entry.name} --{preset}"
        notes.append(f"No figure is stored at the {preset} preset. To make it: {command}")
    if entry.undrawn and not entry.failure:
        notes.append(f"The present script cannot draw the stored table: {entry.undrawn}")
    shown = "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
    if not entry.has_figure:
        return shown
    return f"{shown}{drawing(entry)}{_chart(entry)}"


def drawing(entry: Gathered) -> str:
    """The picture of a figure, as wide as the page allows, with a link to its full size."""
    picture = entry.picture
    if picture is None:
        raise ValueError(f"{entry.name} must have a drawing, got none")
    return (
        f'<figure class="drawing"><a href="{entry.name}.webp" title="open in full size">'
        f'<img src="{entry.name}.webp" width="{picture.width}" height="{picture.height}" '
        f'loading="lazy" alt="{escape(description(entry))}"></a></figure>'
    )


def description(entry: Gathered) -> str:
    """The headline, panels and axes of the figure in words, for readers who cannot see it."""
    panels = [
        f"{to_text(panel.title)} {to_text(panel.y_label)} against {to_text(panel.x_label)}".strip()
        for panel in entry.panels
    ]
    return ". ".join([entry.script.headline.rstrip("."), *panels]) + "."


def _chart(entry: Gathered) -> str:
    """An interactive chart of the same curves, which the page's JavaScript draws."""
    if not entry.panels:
        return ""
    labels = [curve.label for curve in legend_of(entry.panels)]
    data = json.dumps(
        {"panels": [_plain(panel, labels) for panel in entry.panels]},
        allow_nan=False,
        separators=(",", ":"),
    ).replace("<", "\\u003c")
    panels = "".join(
        f'<section class="panel" data-panel="{position}">'
        f'<p class="panel-title">{to_html(panel.title)}</p>'
        f'<p class="axis-label">{to_html(panel.y_label)}</p><div class="plot"></div>'
        f'<p class="axis-label x">{to_html(panel.x_label)}</p></section>'
        for position, panel in enumerate(entry.panels)
    )
    legend = "".join(_legend_line(curve) for curve in legend_of(entry.panels))
    return (
        f'<details class="chart"><summary>Read off values</summary><div class="panels">{panels}'
        f'</div><ul class="legend">{legend}</ul><p class="readout" aria-live="polite"></p>'
        f'<script type="application/json">{data}</script></details>'
    )


def _plain(panel: Panel, labels: list[str]) -> dict[str, Any]:
    """A panel as JSON for the page's JavaScript; labels become positions in the legend."""
    plain = asdict(panel)
    for curve in plain["curves"]:
        label = curve.pop("label")
        curve["name"] = labels.index(label) if label else -1
    for text in ("title", "x_label", "y_label"):
        plain[text] = to_text(plain[text])
    for names in ("x_names", "y_names"):
        plain[names] = [(place, to_text(label)) for place, label in plain[names]]
    return plain


def _legend_line(curve: Curve) -> str:
    pattern = " ".join(f"{length:g}" for length in curve.dashes)
    dashes = f' stroke-dasharray="{pattern}"' if curve.dashes else ""
    line = f'<line x1="0" y1="6" x2="26" y2="6"{dashes}/>' if curve.joined else ""
    fill = "" if curve.filled else ' class="hollow"'
    marker = f'<circle cx="13" cy="6" r="3.5"{fill}/>' if curve.marked else ""
    return (
        f'<li><svg viewBox="0 0 26 12" aria-hidden="true" style="color: {_themed(curve.colour)}">'
        f"{line}{marker}</svg> <span>{to_html(curve.label)}</span></li>"
    )


def _themed(colour: str) -> str:
    """The colour in CSS. Black becomes the colour of text, which is light on dark pages."""
    return "var(--text)" if colour == "#000000" else colour


def _statement(theorem: Theorem) -> str:
    numbers = ", ".join(theorem.numbers)
    label = f"{numbers}: {theorem.name}" if numbers else theorem.name
    note = f'<p class="correction">{prose(theorem.correction)}</p>' if theorem.correction else ""
    return (
        f'<dt><a href="{THEOREM_PAGE}#theorem-{theorem.id}">{escape(label)}</a></dt>'
        f"<dd>{to_html(theorem.statement)}{note}</dd>"
    )


def _claims(entry: Gathered) -> str:
    rows = (
        (
            prose(claim["name"]),
            verdict(claim["passed"]) + margin(claim),
            prose(claim["measured"]),
            prose(claim["theory"]),
            linked_ids(claim["id"]),
        )
        for claim in entry.claims
    )
    headers = ("claim", "verdict", "measured", "theory", "source")
    passed = [claim["passed"] for claim in entry.claims]
    listed = table(f"Claims of {entry.name}", headers, rows, "claims")
    # The list is unfolded if a claim failed.
    opened = "" if all(passed) else " open"
    return (
        f"<details{opened}><summary>Claims: {sum(passed)} of {len(passed)} passed</summary>"
        f"{listed}</details>"
    )


def _goals(entry: Gathered) -> str:
    rows = (
        (
            prose(goal["name"]),
            reached(goal["reached"]),
            prose(goal["measured"]),
            prose(goal["goal"]),
            prose(goal["beside"]),
            prose(goal["reason"]),
        )
        for goal in entry.goals
    )
    headers = ("goal", "state", "measured", "aimed at", "beside", "why open")
    count = sum(goal["reached"] for goal in entry.goals)
    listed = table(f"Goals of {entry.name}", headers, rows, "claims goals")
    return (
        f"<details><summary>Goals: {count} of {len(entry.goals)} reached, "
        f"{len(entry.goals) - count} open</summary>{listed}</details>"
    )


def _parameters(record: Mapping[str, Any]) -> str:
    configurations = record["configurations"]
    rows = [
        (f"<code>{escape(name)}</code>", escape(_values(_column(configurations, name))))
        for name in dict.fromkeys(key for config in configurations for key in config)
    ]
    rows.append(("cells", f"{len(configurations)} configurations, {record['trials']} trials each"))
    rows.append(("seed", str(record["seed"])))
    listed = table("Parameters", ("parameter", "values"), rows, "parameters")
    return f"<details><summary>Parameters</summary>{listed}</details>"


def _column(configurations: Iterable[Mapping[str, Any]], name: str) -> list[Any]:
    return [config[name] for config in configurations if name in config]


def _values(values: list[Any]) -> str:
    """The distinct values, or a summary if there are more than `LISTED` of them."""
    distinct = sorted({json.dumps(value): value for value in values}.items())
    found = [value for _, value in distinct]
    if all(isinstance(value, int | float) for value in found):
        found = sorted(found)
    shown = [f"{value:g}" if isinstance(value, float) else str(value) for value in found]
    if len(shown) <= LISTED:
        return ", ".join(shown)
    if all(isinstance(value, int | float) for value in found):
        return f"{shown[0]} to {shown[-1]} ({len(shown)} values)"
    return f"{', '.join(shown[:LISTED])} and {len(shown) - LISTED} more"


def _changes(entry: Gathered) -> str:
    """Which code has changed since the stored files were made."""
    present = asdict(entry.script.code)
    stored = (entry.record or {})["code"]
    changed = [part for part in ("script", "library") if present[part] != stored[part]]
    return f"{' and '.join(changed)} changed" if changed else "nothing changed"


def _origin(entry: Gathered) -> str:
    record = entry.record or {}
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    code = record["code"]
    rows = [
        ("module", f"<code>{breakable(entry.script.module.__name__)}</code>"),
        ("commit", f"<code>{escape(record['commit'] or 'none')}</code>"),
        ("script", f"<code>{escape(code['script'][:16])}</code>"),
        ("library", f"<code>{escape(code['library'][:16])}</code>"),
        ("since then", _changes(entry)),
        ("computed in", f"{record['seconds']:,.1f} s, all cells together"),
        ("versions", escape(versions)),
        ("data", f"<code>{escape(entry.name)}.csv</code>, record <code>{entry.name}.json</code>"),
    ]
    listed = table("Code, time and versions", ("what", "value"), rows, "parameters")
    return f"<details><summary>Code, time and versions</summary>{listed}</details>"
