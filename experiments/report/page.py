"""The frame of every page: the head, the contents at the side, and the foot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from experiments.engine.script import Preset
from experiments.engine.terminal import question
from experiments.report.gathered import Gathered
from experiments.report.markup import CLAIM_PAGE, START, THEOREM_PAGE, figure_link, page_of, prose
from experiments.report.section import drawing
from experiments.theorems import THEOREMS

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


@dataclass(frozen=True)
class Chapter:
    """One step of the story with its picture."""

    title: str
    #: Paragraphs of prose. Formulas are written as in docstrings.
    text: tuple[str, ...]
    figure: str  # Short name of the script that draws the picture
    #: Claims of that script are quoted, with what was measured, if their names begin with one of
    #: these texts.
    quoted: tuple[str, ...] = ()


CHAPTERS = (
    Chapter(
        "What: a workload is a body",
        (
            "Someone holds records about people and wants to publish averages: the share of the "
            "records in each cell of a table, or the mean of each product of two columns. The "
            "answers to m such queries are a point in m dimensions, and the answers that all "
            "possible data sets can give fill a convex body K, the sensitivity polytope of the "
            "workload.",
            "Replacing one of n records moves the point by a vector of (K - K) / n. Below, K - K "
            "is the pale body around each dark K. Take the norm whose unit ball is (K - K) / n: "
            "noise with a density proportional to e^(-epsilon ||z||) hides every such move, so the "
            "release is epsilon-differentially private. The price of privacy therefore depends on "
            "geometry: a body that is thin in most directions needs less noise than one that is "
            "wide in all of them.",
        ),
        "five_bodies",
    ),
    Chapter(
        "Best: noise shaped like the body",
        (
            "Independent Laplace noise for each query ignores the body. Noise shaped like the body "
            "errs less. If there are few records, projecting the answers back onto the body makes "
            "the error smaller still. Each row below is one workload. A mark shows the error of "
            "one mechanism, divided by the least error of the mechanisms that exist without this "
            "library. A mechanism to the left of 1 errs less than all of these.",
            "Every mechanism drawn has an exact sampler, so that its privacy rests on a proof and "
            "not on a Markov chain that may not have mixed.",
        ),
        "accuracy_table",
        ("before projection, our", "with few records"),
    ),
    Chapter(
        "How many records are needed: both ends",
        (
            "Whether an error is large depends on what is possible. Packings of data sets that no "
            "private mechanism can tell apart give a number of records below which the error of "
            "every mechanism exceeds alpha. A mechanism of the library gives a number of records "
            "that suffices for alpha. Each bar below joins these two numbers.",
        ),
        "bracket_table",
        ("in mean l2 error",),
    ),
    Chapter(
        "Limits: what stays open",
        (
            "For some bodies no exact sampler is known. Markov chains estimate the error that "
            "their noise would have, but nothing is released with it. The distance from the full "
            "marks to the open ones is what a new sampler could gain, and no mechanism reaches the "
            "shaded part. On all three lines, exact mechanisms miss the goal that was set before "
            "measuring. On 3-way tables even the noise of Markov chains misses its goal.",
        ),
        "accuracy_frontier",
    ),
    Chapter(
        "Why believe it",
        (
            "A proof protects nobody if the program does something else. Faults that break privacy "
            "(half the noise, one draw used twice, a budget that is not counted) are planted in "
            "the code one by one, and the tests must notice each.",
        ),
        "planted_faults",
        ("every planted fault", "without a fault"),
    ),
)


def story(entries: Sequence[Gathered], contents: Sequence[Entry], preset: Preset) -> str:
    """The body of the start page."""
    known = {entry.name: entry for entry in entries}
    return "\n".join(
        [
            _summary(entries, preset),
            *(_chapter(chapter, known.get(chapter.figure)) for chapter in CHAPTERS),
            _questions(entries, contents),
            READING,
        ]
    )


READING = f"""<h2>How to read a figure</h2>
<ul>
<li>Markers are measured, with 95% bands or bars. Dashed lines are theory, fixed before measuring.
No mechanism can reach an area that is shaded from below.</li>
<li>Under each figure, <em>Read off values</em> opens its panels with values under the pointer, and
<em>Claims</em> lists what the figure must show. A claim fails by chance with probability at most
10<sup>−6</sup>; <a href="{CLAIM_PAGE}">all claims</a> stand on one page.</li>
<li>Ids such as JL-L14 lead to the <a href="{THEOREM_PAGE}">statement</a> that is shown, and to the
functions that implement it.</li>
</ul>"""


def _summary(entries: Sequence[Gathered], preset: Preset) -> str:
    verdicts = [claim["passed"] for entry in entries for claim in entry.claims]
    figures = sum(entry.has_figure for entry in entries)
    lines = [
        "How to answer many questions about a table of people so that no answer betrays any of "
        "them: the geometry of pure differential privacy, in figures that check themselves.",
        f"{figures} figures at the {preset} preset, {len(THEOREMS)} theorems, lemmas and "
        f"algorithms. Of {len(verdicts)} claims {sum(verdicts)} passed and "
        f"{len(verdicts) - sum(verdicts)} failed.",
    ]
    aims = [goal["reached"] for entry in entries for goal in entry.goals]
    if aims:
        lines.append(
            f"Of {len(aims)} goals {sum(aims)} are reached and {len(aims) - sum(aims)} are open; "
            "an open goal says why beside its number."
        )
    failed = [each.script for each in entries if not all(c["passed"] for c in each.claims)]
    absent = [each.script for each in entries if not each.has_figure]
    if failed:
        lines.append(f"With failed claims: {', '.join(map(figure_link, failed))}.")
    if absent:
        lines.append(f"Without a figure: {', '.join(map(figure_link, absent))}.")
    first, *others = lines
    return f'<p class="lead">{first}</p>' + "".join(f"<p>{line}</p>" for line in others)


def _chapter(chapter: Chapter, entry: Gathered | None) -> str:
    paragraphs = "".join(f"<p>{prose(text)}</p>" for text in chapter.text)
    if entry is None:
        shown = ""
    elif entry.has_figure:
        quotes = "".join(
            f"<li>{prose(claim['name'])}: <strong>{prose(claim['measured'])}</strong></li>"
            for claim in entry.claims
            if claim["name"].startswith(chapter.quoted) and chapter.quoted
        )
        measured = f'<ul class="quoted">{quotes}</ul>' if quotes else ""
        more = f'<p class="more">More about this figure: {figure_link(entry.script)}</p>'
        shown = f"{drawing(entry)}{measured}{more}"
    else:
        shown = f'<p class="more">Not drawn yet: {figure_link(entry.script)}</p>'
    return f'<section class="chapter"><h2>{escape(chapter.title)}</h2>{paragraphs}{shown}</section>'


def _questions(entries: Sequence[Gathered], contents: Sequence[Entry]) -> str:
    """Every question with its figures."""
    headlines = {f"figure-{entry.name}": entry.script.headline for entry in entries}
    cards = []
    for page in contents:
        if not page.sections:
            continue
        lines = "".join(
            f'<li><a href="{page.file}#{place}">{escape(name)}</a> '
            f"<span>{prose(headlines[place])}</span></li>"
            for place, name in page.sections
        )
        cards.append(
            f'<details><summary><a href="{page.file}">{escape(page.title)}</a> '
            f"<span>{len(page.sections)} figures</span></summary><ul>{lines}</ul></details>"
        )
    return f'<h2>The figures, by question</h2><div class="questions">{"".join(cards)}</div>'
