"""Build the site: assemble its sources, run Sphinx on them, check links."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from experiments.engine.figures import ROOT, Folders
from experiments.engine.script import LoadedScript
from experiments.guide.figure_pages import write_figures
from experiments.guide.markup import title
from experiments.guide.reference import candidate_table, write_reference
from experiments.guide.theorem_pages import write_theorems
from experiments.lessons.web.pages import lesson_pages

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


HERE = Path(__file__).parent
#: Files of the repository that pages include.
INCLUDED = ("CHANGELOG.md", "CONTRIBUTING.md", "README.md")


def assemble(folder: Path, scripts: Sequence[LoadedScript], folders: Folders, pages: Path) -> None:
    """Write everything that Sphinx reads into `folder`, which must not exist yet.

    The scripts of the lessons go to the folder `pages`, where Sphinx writes the site.
    """
    shutil.copytree(HERE / "pages", folder)
    write_figures(folder / "figures", scripts, folders)
    shutil.copytree(HERE / "static", folder / "static")
    shutil.copy(HERE / "conf.py", folder)
    included = folder / "repository"
    included.mkdir()
    for name in INCLUDED:
        text = _text(ROOT / name).replace("](paper_figures/", "](/pictures/")
        (included / name).write_text(text, encoding="utf-8")
    made = folder / "made"
    made.mkdir()
    (made / "candidates.rst").write_text(candidate_table(), encoding="utf-8")
    (made / "lessons.md").write_text(_write_lessons(folder, pages), encoding="utf-8")
    write_reference(folder / "reference")
    write_theorems(folder / "gallery", scripts, folders)
    pictures = folder / "pictures"
    pictures.mkdir()
    for picture in folders.figures.glob("*.png"):
        shutil.copy(picture, pictures)


def _write_lessons(folder: Path, pages: Path) -> str:
    """Write a page for each lesson into `folder`; return a list of links to them."""
    links = []
    for lesson in lesson_pages(pages):
        name, heading = f"lesson_{lesson.number:02}", f"{lesson.number}. {lesson.title}"
        (folder / f"{name}.html").write_text(lesson.html, encoding="utf-8")
        text = f"{title(heading)}.. raw:: html\n   :file: {name}.html\n"
        (folder / f"{name}.rst").write_text(text, encoding="utf-8")
        links.append(f"* [{heading}](/{name}.rst)\n")
    return "".join(links)


class SiteError(Exception):
    """The site could not be built, or a check of the site failed; the message says where."""


def build_site(scripts: Sequence[LoadedScript], pages: Path, folders: Folders, work: Path) -> None:
    """Write the site to the folder `pages`, and what it is made from to the folder `work`.

    Both are replaced, `pages` only when the new site has passed all checks.
    """
    # Sphinx writes this file, so an earlier site has it.
    if pages.exists() and any(pages.iterdir()) and not (pages / ".buildinfo").exists():
        raise SiteError(f"{pages} is not empty and no earlier site; choose another folder")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    made = work / "html"
    assemble(work / "sources", scripts, folders, made)
    run_sphinx(work / "sources", made, work / "doctrees")
    if found := problems(made):
        raise SiteError("\n".join(found))
    shutil.rmtree(pages, ignore_errors=True)
    shutil.move(made, pages)


def run_sphinx(sources: Path, pages: Path, memory: Path) -> None:
    """Run Sphinx on the assembled sources. The folder `memory` keeps the parsed documents."""
    # Code blocks use the commands of this environment and the modules of this checkout.
    paths = {"PATH": [str(Path(sys.executable).parent)], "PYTHONPATH": [str(ROOT)]}
    environment = dict(os.environ)
    for name, first in paths.items():
        environment[name] = os.pathsep.join([*first, *filter(None, [os.environ.get(name)])])
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", "auto"]
    result = subprocess.run(
        [*command, "-b", "html", "-d", str(memory), str(sources), str(pages)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise SiteError(result.stderr or result.stdout)
