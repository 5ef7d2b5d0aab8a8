"""Printing: short aligned rows that are readable on a terminal and in a log."""

from __future__ import annotations

import io
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from geomdp.mechanisms import Prediction
    from geomdp.privacy import Guarantee, Privacy

#: Number of characters per line in a log or a pipe, which have no width of their own.
LOG_WIDTH = 120
#: Unicode categories of characters that are never printed or written to a file of answers: controls
#: (which a terminal obeys), separators of lines, and code points that are no characters.
CONTROLS = {"Cc", "Zl", "Zp", "Cs"}
#: Classes of the characters that reverse the order in which the text after them is shown.
REVERSING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def visible(text: str) -> str:
    """`text` with a JSON escape for each control character, so that it cannot forge a line."""
    if text.isprintable():
        return text
    return "".join(
        f"\\u{ord(character):04x}"
        if unicodedata.category(character) in CONTROLS
        or unicodedata.bidirectional(character) in REVERSING
        else character
        for character in text
    )


def console() -> Console:
    return Console(width=None if sys.stdout.isatty() else LOG_WIDTH, highlight=False)


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print pairs of a name and a value, with the values aligned."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(Text(visible(name)), Text(visible(value)))
    _print(grid)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table without lines between cells. Only its last column wraps."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings[:-1]:
        table.add_column(heading, no_wrap=True)
    table.add_column(headings[-1], overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    _print(table)


def _print(table: Table) -> None:
    """Print a table on standard output; in a log or a pipe, without blanks at the ends of lines."""
    shown = console()
    if shown.is_terminal:
        shown.print(table)
        return
    with shown.capture() as lines:
        shown.print(table)
    print("\n".join(line.rstrip() for line in lines.get().splitlines()))


@contextmanager
def printing(said: str) -> Iterator[None]:
    """Print results that are paid and written. A full or closed standard output is no error.

    Then a warning says where the results are and what was charged, so that nobody pays twice.
    """
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        warn(f"standard output: {error.strerror}; {said}: do not pay again")
        sys.stdout = io.StringIO()


def warn(message: str) -> None:
    print_message(f"warning: {message}", "yellow")


def print_message(message: str, style: str = "") -> None:
    """Print on standard error: on one line in a log or a pipe, wrapped between words elsewhere."""
    shown = Console(stderr=True, highlight=False)
    text = Text(visible(" ".join(message.split())), style)
    shown.print(text, soft_wrap=not shown.is_terminal)


def implied(guarantee: Guarantee, asked: Privacy) -> str:
    """Words that name the guarantee `asked`, if `guarantee` claims another, stronger guarantee."""
    if not guarantee.is_claim or guarantee.privacy == asked:
        return ""
    return f" (it implies {asked}, which was asked for)"


def in_words(prediction: Prediction) -> str:
    """A predicted error as text, with the kind of the prediction."""
    from geomdp.mechanisms import PredictionKind

    kinds = {
        PredictionKind.EXACT: "exact for every data set",
        PredictionKind.UPPER_BOUND: "upper bound for every data set; errors are often smaller",
        PredictionKind.PRIOR: "simulated on a public prior",
    }
    spread = f" +- {prediction.stderr:.1g}" if prediction.stderr > 0 else ""
    return f"{number(prediction.value)}{spread} per query ({kinds[prediction.kind]})"


def number(value: float) -> str:
    return f"{value:.4g}"
