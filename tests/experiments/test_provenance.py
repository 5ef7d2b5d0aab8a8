"""Edits of the code behind a result change its hashes. New file names or comments do not."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path, PurePosixPath
from types import ModuleType

import pytest

from experiments.engine import cells, provenance
from experiments.engine.provenance import Code, commit, content_hash, module_hash, sources, versions
from experiments.engine.reach import Snapshot


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


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""A module."""', '"""Another docstring."""'),
        ('"""Area of a disc."""', "# A comment instead."),
        ('    """A disc."""\n', ""),
        ('"A string behind an attribute."', '"Another string."'),
        ("import math\n", "import math\nimport os\nfrom experiments.engine import store\n"),
        ("import math\n", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import math\n"),
        ("RATE = 1.0", "RATE = (\n    1.0  # per second\n)"),
        ("math.pi * RATE * radius ** 2", "(math.pi*RATE)*radius**2"),
        ('f"radius must be at least 0, got {radius}"', '"radius is negative"'),
    ],
)
def test_words_imports_and_formatting_leave_the_hash(old, new):
    assert old in SOURCE
    assert module_hash(SOURCE.replace(old, new)) == module_hash(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("RATE = 1.0", "RATE = 1"),
        ("RATE = 1.0", "RATE = 2.0"),
        ("radius < 0", "radius <= 0"),
        ("ValueError", "TypeError"),
        ("radius ** 2", "radius ** 2.0"),
        ("def area(radius)", "def area(radius=None)"),
        ("radius: float = 2.0", "radius: float"),
        ("math.pi * RATE * radius", "math.pi * (RATE * radius)"),
        ("RATE = 1.0\n", "RATE = 1.0\nassert RATE\n"),
    ],
)
def test_code_changes_the_hash(old, new):
    assert old in SOURCE
    assert module_hash(SOURCE.replace(old, new)) != module_hash(SOURCE)


def test_content_hash_sees_contents_but_neither_places_nor_order(tmp_path):
    a, b = tmp_path / "a.py", tmp_path / "b.py"
    a.write_text("one = 1")
    b.write_text("two = 2")
    reference = content_hash([a, b])
    assert content_hash([b, a]) == reference
    assert content_hash([a]) != reference
    room = tmp_path / "room"
    room.mkdir()
    (room / "__init__.py").write_text('"""A room."""')
    moved = b.rename(room / "another_name.py")
    assert content_hash([a, moved, room / "__init__.py"]) == reference
    a.write_text("one = 3")
    assert content_hash([a, moved]) != reference


def test_sources_follow_imports(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("import math\nfrom experiments.engine import store\n")
    found = sources(module_from(path))
    assert found["script"] == path
    # store imports cells.
    assert found["experiments.engine.cells"] == Path(cells.__file__)
    assert "experiments.engine.store" in found
    assert all(path.suffix == ".py" for path in found.values())
    assert not any(name.startswith("math") for name in found)


def test_an_edited_script_or_helper_is_other_code(tmp_path, monkeypatch):
    # A helper module inside the package `experiments`, like those that scripts share.
    helper = tmp_path / "shared_problem.py"
    helper.write_text("SIZE = 1\n")
    package = sys.modules["experiments"]
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    script = tmp_path / "script.py"
    script.write_text("from experiments.shared_problem import SIZE\n")
    first = Code.of(module_from(script))
    assert Code.of(module_from(script)) == first
    helper.write_text("SIZE = 2\n")
    second = Code.of(module_from(script))
    assert second.script != first.script
    assert second.library == first.library
    script.write_text("from experiments.shared_problem import SIZE\nDOUBLE = 2 * SIZE\n")
    assert Code.of(module_from(script)).script not in (first.script, second.script)


def test_a_moved_helper_is_the_same_code(tmp_path, monkeypatch):
    package = sys.modules["experiments"]
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    helper, script = tmp_path / "before_the_move.py", tmp_path / "script.py"
    helper.write_text("SIZE = 1\n")
    script.write_text("from experiments.before_the_move import SIZE\n")
    before = Code.of(module_from(script))
    helper.rename(tmp_path / "after_the_move.py")
    script.write_text('"""Edited."""\nfrom experiments.after_the_move import SIZE\n')
    assert Code.of(module_from(script)) == before


def test_the_library_hash_covers_what_a_script_reaches(tmp_path, monkeypatch):
    script = tmp_path / "script.py"
    script.write_text("from geomdp.privacy.definitions import basic_composition\n")
    module = module_from(script)
    first = Code.of(module)
    texts = dict(provenance.LIBRARY.texts)

    def edited(name: str) -> Code:
        path = PurePosixPath(name)
        changed = texts | {path: texts[path] + "\nEDITED = True\n"}
        monkeypatch.setattr(provenance, "LIBRARY", Snapshot(changed))
        return Code.of(module)

    assert edited("privacy/definitions.py").library != first.library
    assert edited("cli/app.py") == first
    # A script that starts processes may run any command, so its hash covers the whole library.
    script.write_text("import subprocess\n")
    assert edited("cli/app.py").library != edited("privacy/definitions.py").library


def test_a_module_without_a_file_is_refused():
    namespace = ModuleType("nowhere")
    namespace.__file__ = None
    with pytest.raises(ValueError, match="source file, got nowhere"):
        Code.of(namespace)


def test_versions_and_commit():
    assert versions()["python"].startswith(f"{sys.version_info.major}.")
    # Exact noise uses python-flint, some conic programs use scs, and smooth queries use finufft.
    assert versions().keys() >= {"python-flint", "scs", "finufft"}
    found = commit()
    assert found is None or len(found.removesuffix("+changes")) == 40
