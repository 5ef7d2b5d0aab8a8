"""The commands and examples of the README and the guide, taken from the files themselves.

For tests, and for `.ci/run`::

    python tests/readme.py setup            print the setup commands, one per line
    python tests/readme.py examples FOLDER  write data files, shell commands and Python examples
"""

import re
import sys
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: (language, text) of every fenced block; shell blocks name no language.
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.M | re.S)
#: Contents of data files, by file name. The line before such a block begins with the file name and
#: ends with a colon.
FILES: dict[str, str] = dict(
    re.findall(r"^`([\w.]+)`[^\n]*:\n\n```\w+\n(.*?)^```$", README, re.M | re.S)
)
#: Programs of the example commands. Commands that begin with pip are setup commands.
EXAMPLES = ("geomdp", "python")
#: The pages of the guide.
PAGES = ROOT / "experiments" / "guide" / "pages"
#: The page whose commands run in fresh environments, like those of the README.
COMMAND_PAGE = PAGES / "use" / "command_line.md"
#: Pages with a Python example that runs in a fresh environment. Its cell has the tag `example`.
PYTHON_PAGES = (PAGES / "readers" / "researcher.md", PAGES / "use" / "smooth.md")
TAG = ":tags: [example]\n"


def blocks(language: str) -> list[str]:
    """The blocks of a language in the README, in order."""
    return [text for name, text in BLOCKS if name == language]


def cells(page: Path) -> list[str]:
    """The code cells of a page of the guide, in order, with the lines that set their options."""
    found = re.findall(
        r"^ *```\{code-cell\}\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.M | re.S
    )
    return [dedent(text) for text in found]


def python_examples() -> list[str]:
    """The Python examples of the README, then those of the guide."""
    tagged = [cell for page in PYTHON_PAGES for cell in cells(page) if cell.startswith(TAG)]
    return [*blocks("python"), *(cell.removeprefix(TAG) for cell in tagged)]


def commands(*programs: str) -> list[str]:
    """All shell commands of the README that begin with the name of one of the programs."""
    lines = "".join(blocks("")).splitlines()
    return [line for line in lines if line.split(" ")[0] in programs]


def page_files() -> dict[str, str]:
    """The data files of `COMMAND_PAGE`, by name."""
    written = re.compile(r"%%writefile (\S+)\n(.*)", re.S)
    return dict(found.groups() for found in map(written.fullmatch, cells(COMMAND_PAGE)) if found)


def page_commands() -> list[str]:
    """The shell commands of `COMMAND_PAGE`, without the commands that the README has, too."""
    shell = [cell for cell in cells(COMMAND_PAGE) if cell.startswith("%%bash\n")]
    lines = "".join(cell.removeprefix("%%bash\n") for cell in shell).splitlines()
    return [line for line in lines if line not in commands(*EXAMPLES)]


def write_examples(folder: Path) -> None:
    """Write ``commands.sh`` and one file for each Python example, with the data they need.

    The commands of `COMMAND_PAGE` run in a folder of their own, ``page``.
    """
    page = folder / "page"
    page.mkdir(parents=True, exist_ok=True)
    for place, files in ((folder, FILES), (page, page_files())):
        for name, text in files.items():
            (place / name).write_text(text, encoding="utf-8")
    shell = ["set -eux", *commands(*EXAMPLES), "cd page", *page_commands(), ""]
    (folder / "commands.sh").write_text("\n".join(shell), encoding="utf-8")
    for number, text in enumerate(python_examples(), start=1):
        (folder / f"example_{number}.py").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["setup"]:
            print("\n".join(commands("pip")))
        case ["examples", folder]:
            write_examples(Path(folder))
        case _:
            sys.exit(__doc__)
