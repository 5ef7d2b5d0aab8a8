"""The size of the library. If one of these numbers goes up, that is a decision, made here."""

import re
from pathlib import Path

import geomdp
from tests.public_names import public_objects

ROOT = Path(__file__).parents[1]
#: Most lines and files of geomdp, stubs included, and most exported classes and functions.
LINES, FILES, EXPORTS = 57_100, 180, 319
#: The page of the guide that names the first files to open.
HOUSE = ROOT / "experiments" / "guide" / "pages" / "more" / "house.md"


def test_the_library_does_not_grow_unnoticed():
    every = Path(geomdp.__file__).parent.rglob("*.py*")
    files = [file for file in every if file.suffix in (".py", ".pyi")]
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    assert lines <= LINES
    assert len(files) <= FILES
    assert len(public_objects()) <= EXPORTS


def test_the_files_that_the_guide_names_exist():
    library = ROOT / "geomdp"
    named = re.findall(r"`(?:geomdp/)?([\w/]+(?:\.py|/))`", HOUSE.read_text(encoding="utf-8"))
    assert len(named) > 15
    assert [name for name in named if not (library / name).exists()] == []
