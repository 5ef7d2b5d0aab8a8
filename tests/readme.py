"""The README's commands and examples, taken from the file itself.

For tests, and for `.ci/run`::

    python tests/readme.py setup            print the commands that set up, one a line
    python tests/readme.py examples FOLDER  write its data files, shell commands and Python examples
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
#: (language, text) of every fenced block; shell blocks name no language.
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.M | re.S)
#: Blocks behind a line that begins with a file name and ends with a colon.
FILES: dict[str, str] = dict(
    re.findall(r"^`([\w.]+)`[^\n]*:\n\n```\w+\n(.*?)^```$", README, re.M | re.S)
)
#: Programs of the commands that are examples; those of pip set up.
EXAMPLES = ("geomdp", "python")


def blocks(language: str) -> list[str]:
    """The blocks of a language, in order."""
    return [text for name, text in BLOCKS if name == language]


def commands(*programs: str) -> list[str]:
    """All shell commands that begin with the name of one of the programs, in order."""
    lines = "".join(blocks("")).splitlines()
    return [line for line in lines if line.split(" ")[0] in programs]


def write_examples(folder: Path) -> None:
    """Write the data files, ``commands.sh`` and one file for each Python example."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "commands.sh").write_text("\n".join(["set -eux", *commands(*EXAMPLES), ""]))
    for number, text in enumerate(blocks("python"), start=1):
        (folder / f"example_{number}.py").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["setup"]:
            print("\n".join(commands("pip")))
        case ["examples", folder]:
            write_examples(Path(folder))
        case _:
            sys.exit(__doc__)
