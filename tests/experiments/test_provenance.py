"""Edits of the code that a result reaches change its hashes. New names or comments do not."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path, PurePosixPath
from types import ModuleType

import pytest

import geomdp
from experiments.engine import provenance
from experiments.engine.reach import Snapshot
from experiments.engine.script import load


def module_from(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SOURCE = '''"""A module."""
from __future__ import annotations
import math

RATE = 1.0

def area(radius):
    """Area of a disc."""
    if radius < 0:
        raise ValueError(f"radius must be at least 0, got {radius}")
    return math.pi * RATE * radius ** 2

class Disc:
    """A disc."""
    radius: float = 2.0
    "A string behind an attribute."
'''


@pytest.mark.parametrize(("old", "new"), [
    ('"""A module."""', '"""Another docstring."""'),
    ('"""Area of a disc."""', "# A comment instead."),
    ('    """A disc."""\n', ""),
    ('"A string behind an attribute."', '"Another string."'),
    ("import math\n", "import math\nimport os\nfrom experiments.engine import store\n"),
    ("import math\n", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import math\n"),
    ("RATE = 1.0", "RATE = (\n    1.0  # per second\n)"),
    ("math.pi * RATE * radius ** 2", "(math.pi*RATE)*radius**2"),
    ('f"radius must be at least 0, got {radius}"', '"radius is negative"'),
])  # fmt: skip
def test_words_imports_and_formatting_leave_the_hash(old, new):
    assert old in SOURCE
    assert provenance.module_hash(SOURCE.replace(old, new)) == provenance.module_hash(SOURCE)


@pytest.mark.parametrize(("old", "new"), [
    ("RATE = 1.0", "RATE = 1"),
    ("RATE = 1.0", "RATE = 2.0"),
    ("radius < 0", "radius <= 0"),
    ("ValueError", "TypeError"),
    ("radius ** 2", "radius ** 2.0"),
    ("def area(radius)", "def area(radius=None)"),
    ("radius: float = 2.0", "radius: float"),
    ("math.pi * RATE * radius", "math.pi * (RATE * radius)"),
    ("RATE = 1.0\n", "RATE = 1.0\nassert RATE\n"),
])  # fmt: skip
def test_code_changes_the_hash(old, new):
    assert old in SOURCE
    assert provenance.module_hash(SOURCE.replace(old, new)) != provenance.module_hash(SOURCE)


def test_an_edited_script_or_helper_is_other_code(tmp_path, monkeypatch):
    # A helper module inside the package `experiments`, like those that scripts share.
    helper = tmp_path / "shared_problem.py"
    helper.write_text("SIZE = 1\n")
    package = sys.modules["experiments"]
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    script = tmp_path / "script.py"
    script.write_text("from experiments.shared_problem import SIZE\n")
    first = provenance.Code.of(module_from(script))
    assert provenance.Code.of(module_from(script)) == first
    helper.write_text("SIZE = 2\n")
    second = provenance.Code.of(module_from(script))
    assert second.script != first.script
    assert second.library == first.library
    script.write_text("from experiments.shared_problem import SIZE\nDOUBLE = 2 * SIZE\n")
    assert provenance.Code.of(module_from(script)).script not in (first.script, second.script)


def test_a_moved_helper_is_the_same_code(tmp_path, monkeypatch):
    package = sys.modules["experiments"]
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    helper, script = tmp_path / "before_the_move.py", tmp_path / "script.py"
    helper.write_text("SIZE = 1\n")
    script.write_text("from experiments.before_the_move import SIZE\n")
    before = provenance.Code.of(module_from(script))
    helper.rename(tmp_path / "after_the_move.py")
    script.write_text('"""Edited."""\nfrom experiments.after_the_move import SIZE\n')
    assert provenance.Code.of(module_from(script)) == before


def test_the_library_hash_covers_what_a_script_reaches(tmp_path, monkeypatch):
    script = tmp_path / "script.py"
    script.write_text("from geomdp.privacy.definitions import basic_composition\n")
    module = module_from(script)
    first = provenance.Code.of(module)
    texts = dict(provenance.LIBRARY.texts)

    def edited(name: str) -> provenance.Code:
        path = PurePosixPath(name)
        changed = texts | {path: texts[path] + "\nEDITED = True\n"}
        monkeypatch.setattr(provenance, "LIBRARY", Snapshot(changed))
        return provenance.Code.of(module)

    assert edited("privacy/definitions.py").library != first.library
    assert edited("cli/app.py") == first
    # A script that starts processes may run any command, so its hash covers the whole library.
    script.write_text("import subprocess\n")
    assert edited("cli/app.py").library != edited("privacy/definitions.py").library


def test_a_module_without_a_file_is_refused():
    namespace = ModuleType("nowhere")
    namespace.__file__ = None
    with pytest.raises(ValueError, match="source file, got nowhere"):
        provenance.Code.of(namespace)


def test_versions_and_commit():
    assert provenance.versions()["python"].startswith(f"{sys.version_info.major}.")
    # Exact noise uses python-flint, some conic programs use scs.
    assert provenance.versions().keys() >= {"python-flint", "scs"}
    found = provenance.commit()
    assert found is None or len(found.removesuffix("+changes")) == 40


# --- what a script can reach ----------------------------------------------------------------


LIBRARY_FOLDER = Path(geomdp.__file__).parent

TOY = {
    "__init__.py": "",
    "__init__.pyi": "from . import rooms as rooms\nfrom .rooms import Chair as Chair\n",
    "alone.py": "ANSWER = 42\n",
    "rooms/__init__.py": "",
    "rooms/__init__.pyi": (
        "from .hall.chair import Chair as Chair\nfrom .lamp import light as light\n"
    ),
    "rooms/hall/__init__.py": "",
    "rooms/hall/chair.py": "class Chair: ...\n",
    "rooms/lamp.py": "def light():\n    from geomdp.alone import ANSWER\n    return ANSWER\n",
}

CHAIR, LAMP, ALONE = "rooms/hall/chair.py", "rooms/lamp.py", "alone.py"


@pytest.mark.parametrize(("text", "expected"), [
    ("import math\nimport geomdp_other\n", set()),
    ("from geomdp.rooms import Chair", {CHAIR}),
    ("import geomdp as gd\ngd.Chair()", {CHAIR}),
    ("import geomdp as gd\ngd.rooms.Chair.leg.length", {CHAIR}),
    ("import geomdp\ngeomdp.rooms.Chair", {CHAIR}),
    ("import geomdp.rooms\ngeomdp.rooms.Chair", {CHAIR}),
    ("import geomdp.rooms.lamp", {LAMP, ALONE}),
    ("from geomdp import rooms\nrooms.Chair", {CHAIR}),
    ("from geomdp.rooms.hall.chair import Chair as Seat", {CHAIR}),
    # Imports inside functions count, in the script and in the modules that it reaches.
    ("def lit():\n    from geomdp.rooms import light\n    light()", {LAMP, ALONE}),
    # A package that is used without a name after it counts as a use of all its modules.
    ("import geomdp as gd\ngetattr(gd.rooms, name)", {CHAIR, LAMP, ALONE}),
    ("def f(chair: gd.Chair): ...\nimport geomdp as gd", {CHAIR}),
])  # fmt: skip
def test_names_are_followed_through_stubs(text, expected):
    toy = Snapshot({PurePosixPath(name): content for name, content in TOY.items()})
    found = {str(path) for path in toy.reached([text])}
    assert {path for path in found if not path.endswith("__init__.py")} == expected


SAMPLE = ["experiments.error.advised", "experiments.sparse.sparse_project"]
#: A program that runs the first cell of each script in a process of its own. Before it forks, the
#: program imports other packages, but nothing of the library. For each script, it prints a line
#: with the files of the library's modules that were loaded.
LOADED = """
import importlib, json, os, sys
import matplotlib.figure, numba, numpy as np, pandas, scipy.stats
def loaded():
    return [m.__file__ for n, m in list(sys.modules.items()) if n.split(".")[0] == "geomdp"]
assert not loaded()
for name in sys.argv[1:]:
    if os.fork() == 0:
        script = importlib.import_module(name)
        script.compute(script.QUICK.configurations[0], np.random.default_rng(0))
        print(json.dumps([file for file in loaded() if file]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, name
"""


def test_everything_that_a_cell_loads_is_reached():
    """The last assertion excludes the trivial case that the whole library is reached."""
    command = [sys.executable, "-c", LOADED, *SAMPLE]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    everything = {str(path) for path in provenance.LIBRARY.everything()}
    for name, line in zip(SAMPLE, printed.splitlines(), strict=True):
        files = {Path(file).relative_to(LIBRARY_FOLDER).as_posix() for file in json.loads(line)}
        loaded = {file for file in files if not file.endswith("__init__.py")}
        texts = [path.read_text() for path in provenance.sources(load(name).module).values()]
        reached = {str(path) for path in provenance.LIBRARY.reached(texts)}
        assert len(loaded) > 5
        assert loaded <= reached
        assert "cli/release.py" in everything - reached
