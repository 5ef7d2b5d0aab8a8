"""Build the guide: assemble its sources, run Sphinx on them, check links and examples."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.engine.figures import ROOT, Folders
from experiments.engine.script import LoadedScript
from experiments.guide.examples import run_examples
from experiments.guide.links import problems
from experiments.guide.sources import assemble


class GuideError(Exception):
    """The guide could not be built, or a check of the guide failed; the message says where."""


@dataclass(frozen=True)
class Guide:
    """A guide that was built and checked."""

    index: Path  # The page to open
    pages: int  # Number of HTML files, including the index, the search page and theme templates
    examples: int  # Number of commands in docstrings that ran; 0 if none were asked for


def build_guide(
    scripts: Sequence[LoadedScript], folder: Path, folders: Folders, examples: bool = True
) -> Guide:
    """Write the guide to ``html`` and its sources to ``sources`` in a folder; both are replaced.

    The code blocks of the pages are run. A warning of Sphinx is an error, and so are a broken link
    and a file that a page would load from the network.

    Parameters
    ----------
    scripts : sequence of LoadedScript
        The scripts of the gallery, in its order.
    folder : Path
        Where the guide goes; the folder is made if it does not exist.
    folders : Folders
        Where the committed figures are.
    examples : bool
        Whether to run the examples of all docstrings too.

    Raises
    ------
    GuideError
        If Sphinx warns, code fails, a page has a broken link or would load a file from the network,
        or an example does not print what its docstring says.
    MissingFigureError
        If a script has no committed figure.
    OSError
        If a file cannot be read or written.
    """
    sources, pages, memory = (folder / name for name in ("sources", "html", "doctrees"))
    for path in (sources, pages, memory):
        shutil.rmtree(path, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    assemble(sources, scripts, folders)
    run_sphinx(sources, pages, memory)
    if found := problems(pages):
        raise GuideError("\n".join(found))
    run = 0
    if examples:
        result = run_examples()
        if result.failures:
            raise GuideError("".join(result.failures))
        run = result.run
    return Guide(pages / "index.html", len([*pages.rglob("*.html")]), run)


def run_sphinx(sources: Path, pages: Path, memory: Path) -> None:
    """Run Sphinx on the assembled sources. The folder `memory` keeps the parsed documents.

    Raises
    ------
    GuideError
        If Sphinx warns, or the code of a page fails.
    """
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
        raise GuideError(result.stderr or result.stdout)
