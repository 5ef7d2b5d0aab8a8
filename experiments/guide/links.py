"""Checks of the built pages: links inside the guide resolve, and all loaded files are local."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes that make a browser load a file, by element.
_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
#: Kinds of `link` for which a browser contacts a server. Kinds such as `next` do nothing.
_RESOURCES = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch"}
_CSS_URL = re.compile(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)")


@dataclass
class _Page(HTMLParser):
    """Ids, links and loaded files of one page."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if values.get("id"):
            self.ids.add(values["id"] or "")
        if tag == "a" and values.get("href"):
            self.links.append(values["href"] or "")
        loaded = values.get(_LOADED.get(tag, ""))
        kinds = set((values.get("rel") or "").split())
        if loaded and (tag != "link" or kinds & _RESOURCES):
            self.loaded.append(loaded)


def problems(folder: Path) -> list[str]:
    """Broken links of pages in a folder, and files they load that are missing or on a network."""
    # The theme's own folder holds HTML templates, which are no pages.
    files = set(folder.rglob("*.html")) - set((folder / "_static").rglob("*.html"))
    pages = {path.resolve(): _read(path) for path in files}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        found += [f"{name}: {why}" for link in page.links if (why := _broken(link, path, pages))]
        found += [f"{name}: {why}" for link in page.loaded if (why := _not_here(link, path))]
    for style in folder.rglob("*.css"):
        urls = [first or second for first, second in _CSS_URL.findall(_text(style))]
        name = style.relative_to(folder)
        found += [f"{name}: {why}" for url in urls if (why := _not_here(url, style.resolve()))]
    return found


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(_text(path))
    return page


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _broken(link: str, source: Path, pages: dict[Path, _Page]) -> str:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return ""  # a link to another site, which loads nothing
    target = (source.parent / unquote(parts.path)).resolve() if parts.path else source
    if not target.exists():
        return f"there is no {link}"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].ids:
        return f"there is no place {link}"
    return ""


def _not_here(url: str, source: Path) -> str:
    parts = urlsplit(url)
    if parts.scheme == "data":
        return ""
    if parts.scheme or parts.netloc:
        return f"loads {url} from the network"
    exists = not parts.path or (source.parent / unquote(parts.path)).exists()
    return "" if exists else f"there is no {url}"
