"""The magic `%%bash` of the pages' code cells; a page imports this module to get it."""

from __future__ import annotations

import os
import subprocess

from IPython.core.magic import register_cell_magic

#: Variables that make commands print colours.
COLOURS = {"FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"}


@register_cell_magic
def bash(_: str, commands: str) -> None:
    """Run shell commands, stop at the first that fails, and print what they print at once.

    The magic of IPython prints pieces of a hundred letters, each on a line of its own.
    """
    kept = {name: value for name, value in os.environ.items() if name not in COLOURS}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        env=kept | {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout, end="")
    assert done.returncode == 0, done.stderr
