"""A stored SVG made fit to stand inside an HTML page beside others."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html import escape
from pathlib import Path

_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def inline_svg(path: Path, name: str, description: str) -> str:
    """The drawing of `path` as an element of HTML.

    Its identifiers get the prefix `name`, so that no figure of the page uses the clips and markers
    of another; metadata and the style sheet, which would hold for the whole page, are left out.

    Parameters
    ----------
    path : Path
        An SVG file as matplotlib writes it.
    name : str
        Prefix of the identifiers, unique on the page.
    description : str
        Text for those who cannot see the figure.
    """
    root = ET.parse(path).getroot()
    for element in [root, *root.iter()]:
        element.tag = _local(element.tag)
    for parent in root.iter():
        for child in [*parent]:
            if child.tag in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.attrib = {
            _local(key): _prefixed(_local(key), value, name)
            for key, value in element.attrib.items()
        }
    for size in ("width", "height", "version"):
        root.attrib.pop(size, None)
    box = root.attrib["viewBox"].split()
    # Points to the pixels of CSS: the size at which the text has the size it was drawn for.
    root.attrib["style"] = f"max-width: {float(box[2]) * 4 / 3:.0f}px"
    inner = "".join(ET.tostring(child, encoding="unicode") for child in root)
    attributes = " ".join(f'{key}="{escape(value)}"' for key, value in root.attrib.items())
    return (
        f'<svg {attributes} role="img" aria-labelledby="{name}-alt">'
        f'<title id="{name}-alt">{escape(description)}</title>{inner}</svg>'
    )


def _local(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition("}")[2]


def _prefixed(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "href" and value.startswith("#"):
        return f"#{name}-{value[1:]}"
    return _REFERENCE.sub(rf"url(#{name}-\1)", value)
