"""Stored drawings made small enough for a report that is sent around or opened on a phone."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

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
    """The PNG of a script with at most `COLOURS` colours; the same file gives the same bytes.

    Raises
    ------
    OSError
        If the file cannot be read or is no picture.
    """
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
