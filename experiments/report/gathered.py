"""The stored results of one script: its record, figure and curves, or why there are none."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from experiments.engine.figures import Folders, Outputs, drawing, read_record, read_table
from experiments.engine.script import LoadedScript, Preset
from experiments.report.charts import Panel, panels_of
from experiments.theorems import THEOREMS, Theorem, shown_by

#: Number of colours that a drawing keeps. A figure has fewer than ten colours, and shades of them
#: at the edges of its lines.
COLOURS = 32
#: Pixels of the page for each inch of a drawing.
PAGE = 100


@dataclass(frozen=True)
class Picture:
    """A drawing as the report stores it."""

    data: bytes  # WebP without loss
    #: Size on the page in pixels, at which text has the size for which it was drawn.
    width: int
    height: int


def picture(path: Path) -> Picture:
    """The PNG of a script with at most `COLOURS` colours; the same file gives the same bytes."""
    with Image.open(path) as stored:
        drawing, density = stored.convert("RGB"), stored.info["dpi"][0] / PAGE
    # An octree keeps the colours of thin lines. A median cut would mix them with others.
    method = Image.Quantize.FASTOCTREE
    few = drawing.quantize(COLOURS, method, dither=Image.Dither.NONE)
    _keep_white(few, drawing)
    buffer = io.BytesIO()
    few.convert("RGB").save(buffer, format="WEBP", lossless=True, method=4)
    width, height = (round(pixels / density) for pixels in drawing.size)
    return Picture(buffer.getvalue(), width, height)


def _keep_white(few: Image.Image, drawing: Image.Image) -> None:
    """Restore the exact colour of the paper, read at the corner, where no figure draws."""
    palette, place = few.getpalette(), few.getpixel((0, 0))
    paper = drawing.getpixel((0, 0))
    assert palette is not None
    assert isinstance(place, int)
    assert isinstance(paper, tuple)
    palette[3 * place : 3 * place + 3] = [int(part) for part in paper]
    few.putpalette(palette)


@dataclass(frozen=True)
class Gathered:
    """One script as the report shows it."""

    script: LoadedScript  # The script
    outputs: Outputs  # Paths of the script's stored files
    #: The stored record; None if no record, or no table, is stored for the preset.
    record: dict[str, Any] | None
    panels: tuple[Panel, ...]  # Curves, drawn by the script from the stored table
    #: Why the script cannot draw the stored table; empty if it can, or if `record` is None.
    undrawn: str
    theorems: tuple[Theorem, ...]  # Theorems that the figure shows or cites
    picture: Picture | None  # The drawing; None if no drawing or no record is stored

    @property
    def name(self) -> str:
        """Short name of the script."""
        return self.script.name

    @property
    def claims(self) -> list[dict[str, Any]]:
        """The stored claims."""
        return [] if self.record is None else list(self.record["claims"])

    @property
    def goals(self) -> list[dict[str, Any]]:
        """The stored goals; empty if the script failed or had none when the record was made."""
        return [] if self.record is None else list(self.record.get("goals", ()))

    @property
    def failure(self) -> str:
        """The stored exception of the script's plot, claims or goals; empty if there was none."""
        return "" if self.record is None else str(self.record.get("failure", ""))

    @property
    def has_figure(self) -> bool:
        """Whether there is a drawing to show."""
        return self.picture is not None


def gather(scripts: Sequence[LoadedScript], preset: Preset, folders: Folders) -> list[Gathered]:
    """The stored results of all scripts. No sweep is run, and no claim is checked again."""
    docstrings = [(script.name, script.module.__doc__) for script in scripts]
    shown = {theorem.id: shown_by(theorem, docstrings) for theorem in THEOREMS}
    found = []
    for script in scripts:
        outputs = folders.outputs(script.name, preset)
        record = read_record(outputs) if outputs.csv.exists() else None
        panels, undrawn = ((), "") if record is None else _curves(script, outputs)
        theorems = tuple(theorem for theorem in THEOREMS if script.name in shown[theorem.id])
        path = outputs.images[0]
        drawing = picture(path) if record is not None and path.exists() else None
        found.append(Gathered(script, outputs, record, panels, undrawn, theorems, drawing))
    return found


def _curves(script: LoadedScript, outputs: Outputs) -> tuple[tuple[Panel, ...], str]:
    """Panels of the stored table and no text, or no panels and the error of the script's plot."""
    table = read_table(outputs)
    try:
        with drawing():
            return tuple(panels_of(script.module.plot(table))), ""
    except Exception as error:
        return (), f"{type(error).__name__}: {error}"
