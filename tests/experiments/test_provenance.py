"""Provenance: any edit of the code behind a result changes its hashes, and nothing else does."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from experiments.engine import cells, provenance
from experiments.engine.provenance import Code, commit, content_hash, sources, versions
from tests.experiments import toy_script


def module_from(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_content_hash_sees_names_and_contents_but_no_order(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("one")
    b.write_text("two")
    reference = content_hash({"x": a, "y": b})
    assert content_hash({"y": b, "x": a}) == reference
    assert content_hash({"x": b, "y": a}) != reference
    assert content_hash({"x": a}) != reference
    a.write_text("onet")
    b.write_text("wo")
    assert content_hash({"x": a, "y": b}) != reference


def test_sources_follow_imports(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("import math\nfrom experiments.engine import store\n")
    found = sources(module_from(path))
    assert found["script"] == path
    # store imports cells; the package's __init__ is what `experiments.engine` names.
    assert found["experiments.engine.cells"] == Path(cells.__file__)
    assert "experiments.engine.store" in found
    assert all(path.suffix == ".py" for path in found.values())
    assert not any(name.startswith("math") for name in found)


def test_an_edited_script_or_helper_is_other_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A helper inside the package `experiments`, as two scripts would share one.
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
    script.write_text("from experiments.shared_problem import SIZE  # edited\n")
    assert Code.of(module_from(script)).script not in (first.script, second.script)


def test_the_library_hash_is_that_of_the_imported_library() -> None:
    assert Code.of(toy_script).library == provenance.LIBRARY_HASH


def test_a_module_without_a_file_is_refused() -> None:
    namespace = ModuleType("nowhere")
    namespace.__file__ = None
    with pytest.raises(ValueError, match="source file, got nowhere"):
        Code.of(namespace)


def test_versions_and_commit() -> None:
    assert versions()["python"].startswith(f"{sys.version_info.major}.")
    found = commit()
    assert found is None or len(found.removesuffix("+changes")) == 40
