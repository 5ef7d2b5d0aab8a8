"""Small pieces of reStructuredText that several kinds of pages share."""

import re
from collections.abc import Sequence

_MATH = re.compile(r"\$([^$]+)\$")


def title(text: str, mark: str = "=") -> str:
    """A heading; `mark` underlines it."""
    return f"{text}\n{mark * len(text)}\n\n"


def prose(text: str) -> str:
    """Turn a text that has LaTeX between dollar signs into reStructuredText."""
    # Pieces at odd positions are formulas.
    pieces = _MATH.split(" ".join(text.split()))
    return "".join(
        f"\\ :math:`{piece}`\\ " if position % 2 else re.sub(r"([*`_|\\])", r"\\\1", piece)
        for position, piece in enumerate(pieces)
    ).strip()


def card(
    link: str, text: str, heading: str = "", picture: str = "", alt: str = "", kind: str = "ref"
) -> str:
    """A card of a grid that leads to a label or page, with a small picture of a figure on top."""
    shown = f"      :img-top: {picture}.png\n      :img-alt: {alt}\n" if picture else ""
    return (
        f"   .. grid-item-card:: {heading}\n{shown}"
        f"      :link: {link}\n      :link-type: {kind}\n\n      {text}\n\n"
    )


def contents(names: Sequence[str]) -> str:
    """The pages below a page, which the navigation shows."""
    return ".. toctree::\n   :hidden:\n\n" + "".join(f"   {name}\n" for name in names)


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], kind: str, widths: str) -> str:
    """A table with a style of its own, `kind`, and the widths of its columns in percent."""
    lines = [f".. list-table::\n   :header-rows: 1\n   :class: {kind}\n   :widths: {widths}\n\n"]
    for first, *others in (headers, *rows):
        lines += [f"   * - {first}\n", *(f"     - {cell}\n" for cell in others)]
    return "".join(lines) + "\n"
