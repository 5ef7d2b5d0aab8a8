"""Modules of the library that a script can reach: all that it loads, but not the whole library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

import geomdp
from experiments.engine.provenance import LIBRARY, sources
from experiments.engine.reach import Snapshot
from experiments.engine.script import load

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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
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
    ],
)
def test_names_are_followed_through_stubs(text, expected):
    toy = Snapshot({PurePosixPath(name): content for name, content in TOY.items()})
    found = {str(path) for path in toy.reached([text])}
    assert {path for path in found if not path.endswith("__init__.py")} == expected


SAMPLE = [
    "experiments.lower_bounds.lower_worst_case",
    "experiments.moments.psd_box",
    "experiments.error.advised",
    "experiments.geometry.volume_radii",
    "experiments.sparse.sparse_project",
    "experiments.smooth.smooth_projection",
]
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


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """For each script, the modules of the library that its first cell loads.

    The `__init__.py` files of packages are left out.
    """
    command = [sys.executable, "-c", LOADED, *SAMPLE]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {}
    for name, line in zip(SAMPLE, printed.splitlines(), strict=True):
        files = {Path(file).relative_to(LIBRARY_FOLDER).as_posix() for file in json.loads(line)}
        found[name] = {file for file in files if not file.endswith("__init__.py")}
    return found


@pytest.mark.parametrize("name", SAMPLE)
def test_everything_that_a_cell_loads_is_reached(name, loaded):
    """The last assertion excludes the trivial case that the whole library is reached."""
    module = load(name).module
    texts = [path.read_text() for path in sources(module).values()]
    reached = {str(path) for path in LIBRARY.reached(texts)}
    assert len(loaded[name]) > 5
    assert loaded[name] <= reached
    everything = {str(path) for path in LIBRARY.everything()}
    assert "cli/release.py" in everything - reached
