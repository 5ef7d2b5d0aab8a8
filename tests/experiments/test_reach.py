"""What a script can reach in the library: everything it loads, and not much more."""

from __future__ import annotations

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
        # What a function imports when it runs counts, and what that imports.
        ("def lit():\n    from geomdp.rooms import light\n    light()", {LAMP, ALONE}),
        # A package without a name after it may give any of its names.
        ("import geomdp as gd\ngetattr(gd.rooms, name)", {CHAIR, LAMP, ALONE}),
        ("def f(chair: gd.Chair): ...\nimport geomdp as gd", {CHAIR}),
    ],
)
def test_names_are_followed_through_stubs(text: str, expected: set[str]) -> None:
    toy = Snapshot({PurePosixPath(name): content for name, content in TOY.items()})
    found = {str(path) for path in toy.reached([text])}
    assert {path for path in found if not path.endswith("__init__.py")} == expected


LOADED = """
import importlib, sys
import numpy as np
script = importlib.import_module(sys.argv[1])
script.compute(script.QUICK.configurations[0], np.random.default_rng(0))
for name, module in list(sys.modules.items()):
    if name.split(".")[0] == "geomdp" and module.__file__:
        print(module.__file__)
"""


@pytest.mark.parametrize(
    "name",
    [
        "experiments.lower_bounds.lower_worst_case",
        "experiments.error.psd_box",
        "experiments.error.advised",
        "experiments.geometry.volume_radii",
        "experiments.sparse.sparse_project",
        "experiments.smooth.smooth_projection",
    ],
)
def test_everything_that_a_cell_loads_is_reached(name: str) -> None:
    """The negative control is in the second assertion: not all of the library is reached."""
    module = load(name).module
    texts = [path.read_text() for path in sources(module).values()]
    reached = {str(path) for path in LIBRARY.reached(texts)}
    command = [sys.executable, "-c", LOADED, name]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    loaded = {Path(line).relative_to(LIBRARY_FOLDER).as_posix() for line in printed.splitlines()}
    # Roots of packages hold no code of their own.
    loaded = {path for path in loaded if not path.endswith("__init__.py")}
    assert len(loaded) > 5
    assert loaded <= reached
    everything = {str(path) for path in LIBRARY.everything()}
    assert "cli/releasing/command.py" in everything - reached
