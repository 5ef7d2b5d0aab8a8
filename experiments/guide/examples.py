"""The examples of docstrings, run as doctests."""

from __future__ import annotations

import doctest
import os
import tempfile
from contextlib import chdir
from dataclasses import dataclass

from experiments.guide.exports import exports


@dataclass(frozen=True)
class Examples:
    """The result of running the examples."""

    run: int  # Number of commands that ran
    failures: tuple[str, ...]  # Reports of commands that did not print what the docstring says


def run_examples() -> Examples:
    """Run the examples of every public class and function, each in an empty folder."""
    os.environ.setdefault("MPLBACKEND", "agg")
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(verbose=False)
    reports: list[str] = []
    for export in exports():
        if not export.is_code:
            continue
        for test in finder.find(export.value, export.path, globs={}):
            with tempfile.TemporaryDirectory() as folder, chdir(folder):
                runner.run(test, out=reports.append)
    return Examples(runner.tries, tuple(reports))
