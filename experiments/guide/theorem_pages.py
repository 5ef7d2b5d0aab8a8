"""Sources of the index of theorems: a page for each paper."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from experiments.engine.script import LoadedScript
from experiments.guide.reference import exports
from experiments.theorems import THEOREMS, Paper, Theorem, resolve, shown_by

_MATH = re.compile(r"\$([^$]+)\$")


def write_theorems(folder: Path, scripts: Sequence[LoadedScript]) -> None:
    """Write the pages into a folder; each theorem links to its code and its figures."""
    folder.mkdir(parents=True, exist_ok=True)
    docstrings = [(script.name, script.module.__doc__) for script in scripts]
    pages = []
    for paper in Paper:
        stated = [theorem for theorem in THEOREMS if theorem.paper is paper]
        name = paper.name.lower()
        pages.append((name, paper, stated))
        entries = "".join(_entry(theorem, shown_by(theorem, docstrings)) for theorem in stated)
        (folder / f"{name}.rst").write_text(f"{_title(paper.value)}{entries}", encoding="utf-8")
    (folder / "index.rst").write_text(_index(pages), encoding="utf-8")


def _index(pages: Sequence[tuple[str, Paper, Sequence[Theorem]]]) -> str:
    rows = "".join(f"* :doc:`{name}` ({len(stated)} statements)\n" for name, _, stated in pages)
    contents = "".join(f"   {name}\n" for name, _, _ in pages)
    return (
        f"{_title('Theorems')}"
        f"{len(THEOREMS)} theorems, lemmas and algorithms, as they are implemented. Each entry\n"
        "names the functions that implement it, and the claims of figures and the tests that fail\n"
        "if it is wrong. If the statement differs from the printed one, the entry says why. The\n"
        "ids, such as :ref:`JL-T2 <theorem-JL-T2>`, stand in the docstrings of the library.\n\n"
        f"{rows}\n"
        f".. toctree::\n   :hidden:\n\n{contents}"
    )


def _entry(theorem: Theorem, scripts: Sequence[str]) -> str:
    heading = f"{theorem.id}: {theorem.name}"
    fields = [f":Code: {', '.join(map(_link, theorem.code))}"]
    if theorem.claims:
        pairs = (claim.split("::") for claim in theorem.claims)
        fields.append(f":Claims: {', '.join(f':ref:`figure-{name}` ({id})' for name, id in pairs)}")
    if mentioned := [name for name in scripts if name not in theorem.scripts]:
        fields.append(f":Mentioned in: {', '.join(f':ref:`figure-{name}`' for name in mentioned)}")
    if theorem.tests:
        fields.append(f":Tests: {', '.join(f'``{test}``' for test in theorem.tests)}")
    if theorem.correction:
        fields.append(f":Not as printed: {prose(theorem.correction)}")
    numbers = f"*{', '.join(theorem.numbers)}.* " if theorem.numbers else ""
    return (
        f".. _theorem-{theorem.id}:\n\n{heading}\n{'-' * len(heading)}\n\n"
        f"{numbers}{prose(theorem.statement)}\n\n" + "\n".join(fields) + "\n\n"
    )


def _link(dotted: str) -> str:
    """A link to the page of a name in the reference, or the name as code if there is none."""
    value = resolve(dotted)
    for export in exports():
        if export.value is value:
            return f":py:obj:`{dotted} <{export.path}>`"
    return f"``{dotted}``"


def prose(text: str) -> str:
    """Turn a text that has LaTeX between dollar signs into reStructuredText."""
    # Pieces at odd positions are formulas.
    pieces = _MATH.split(" ".join(text.split()))
    return "".join(
        f"\\ :math:`{piece}`\\ " if position % 2 else re.sub(r"([*`_|\\])", r"\\\1", piece)
        for position, piece in enumerate(pieces)
    ).strip()


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n\n"
