"""The installed package: names, imports, metadata, sizes of folders and declared dependencies."""

import ast
import importlib
import importlib.metadata
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

import geomdp
from experiments.engine.provenance import PACKAGES
from geomdp.cli.outputs import encoded

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_packages_with_exports_are_attributes_after_one_import():
    stubs = (ROOT / "geomdp").rglob("__init__.pyi")
    names = {".".join(stub.parent.relative_to(ROOT).parts) for stub in stubs}
    names -= {"geomdp"}
    assert {"geomdp.bounds.upper", "geomdp.bounds.checker", "geomdp.geometry.sampling"} <= names
    program = "import geomdp\ngeomdp.bodies.Ball\n" + "\n".join(sorted(names))
    subprocess.run([sys.executable, "-c", program], check=True)


def _packages() -> list[str]:
    walked = pkgutil.walk_packages(geomdp.__path__, "geomdp.")
    return ["geomdp", *(module.name for module in walked if module.ispkg)]


@pytest.mark.parametrize("package", _packages())
def test_every_export_resolves_once(package):
    module = importlib.import_module(package)
    # A package that exports nothing has only a docstring.
    exports = getattr(module, "__all__", ())
    assert len(set(exports)) == len(exports)
    assert [name for name in exports if not hasattr(module, name)] == []
    # An import of the module `package.name` would replace the export of the same name.
    found = {name for name in exports if not isinstance(getattr(module, name), ModuleType)}
    assert not found & {submodule.name for submodule in pkgutil.iter_modules(module.__path__)}


def test_import_contract_holds():
    # This runs in its own process, because import-linter configures logging and thereby disables
    # all existing loggers.
    program = "import sys; from importlinter.cli import lint_imports as run"
    command = [sys.executable, "-c", f"{program}; sys.exit(run(no_cache=True))"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_import_leaves_out_what_is_slow():
    """Compiled code is loaded only where it is used."""
    code = """
    import geomdp, sys
    assert not {"matplotlib", "cvxpy", "pandas", "scipy.stats"} & sys.modules.keys()
    geomdp.advise, geomdp.mechanisms.Laplace
    assert "numba" not in sys.modules"""
    subprocess.run([sys.executable, "-c", dedent(code)], check=True)


@pytest.mark.parametrize("folder", ["geomdp", "experiments"])
def test_no_folder_has_more_than_twenty_entries(folder):
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    entries: dict[Path, set[str]] = {}
    for path in filter(Path.exists, map(ROOT.joinpath, files)):
        # Each file, and each folder above a file, is an entry of its parent folder.
        for part in (path, *path.relative_to(ROOT).parents[:-1]):
            entries.setdefault((ROOT / part).parent, set()).add(part.name)
    crowded = {str(key): len(names) for key, names in entries.items() if len(names) > 20}
    crowded.pop(str(ROOT), None)
    assert crowded == {}


def test_one_version_everywhere():
    assert importlib.metadata.version("geomdp") == geomdp.__version__
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [geomdp.__version__]


def test_changelog_has_unreleased_or_current_version_on_top():
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] in {"Unreleased", geomdp.__version__}


def test_command_is_installed():
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="geomdp")
    assert script.value == PYPROJECT["project"]["scripts"]["geomdp"]
    assert callable(script.load())


def _requirements(extra: str | None = None) -> set[str]:
    """Names of the distributions that the core or an extra requires, also through other extras."""
    project = PYPROJECT["project"]
    lines = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    names = set()
    for line in lines:
        match = re.match(r"([A-Za-z0-9_.-]+)(?:\[(.+?)\])?", line)
        assert match is not None
        if match[1] == "geomdp":
            names |= set().union(*(_requirements(inner) for inner in match[2].split(",")))
        else:
            names.add(_normalised(match[1]))
    return names


def _normalised(name: str) -> str:
    """The normalised name of a distribution (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _imported(folder: str) -> set[str]:
    """Top-level modules that the Python files of `folder` import anywhere."""
    found = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                found.add(node.module.partition(".")[0])
    # _typeshed exists for type checkers alone. Notebooks import `drawing` from their own folder.
    ours = {"geomdp", "experiments", "tests", "drawing", "_typeshed"}
    return found - set(sys.stdlib_module_names) - ours


@cache
def _providers() -> Mapping[str, list[str]]:
    """The distributions that provide each top-level module."""
    return importlib.metadata.packages_distributions()


@pytest.mark.parametrize("folder", ["geomdp", "experiments", "tests"])
def test_everything_imported_is_declared(folder):
    extras = PYPROJECT["project"]["optional-dependencies"]
    allowed = _requirements() | (
        _requirements("dev") if folder == "tests" else set().union(*map(_requirements, extras))
    )
    providers = _providers()
    undeclared = {
        module
        for module in _imported(folder)
        if not {_normalised(name) for name in providers.get(module, [module])} & allowed
    }
    assert undeclared == set()


def test_figures_record_versions_of_dependencies_only():
    # Figures are also drawn where no extra is installed.
    assert {_normalised(name) for name in PACKAGES} <= _requirements() | {"geomdp"}


#: This program runs the command that its arguments give, and prints the slow packages imported.
PROGRAM = """
import sys
from geomdp.cli import main
try:
    main()
finally:
    slow = ("pandas", "matplotlib", "cvxpy", "scipy.optimize", "scipy.spatial", "scipy.stats")
    print("imported:", [name for name in slow if name in sys.modules])
"""


def test_a_release_from_a_file_imports_nothing_slow_that_it_can_do_without(tmp_path):
    place = str(tmp_path / "tables.csv")
    flags = ["--sample", "affairs", "--workload", "marginals:2", "--columns", "religious,children"]
    command = ["release", *flags, "--mechanism", "laplace", "--epsilon", "1", "--out", place]
    command.append("--unbiased")  # the fit of tables needs scipy.optimize
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "imported: []" in done.stdout
    assert list(pd.read_csv(place)["table"].unique()) == ["religious x children"]


def test_a_csv_file_is_that_of_pandas():
    columns = {
        "table": ['a "quoted" name', "b, c", "-5", "d"],
        "label": [None, "[0, 1)", "", "é"],
        "answer": np.array([0.1 + 0.2, 1e-17, -1e22, 5e-324]),
        "count": np.array([1, -2, 3, 2**40]),
    }
    expected = pd.DataFrame(columns).to_csv(index=False, lineterminator="\n").encode()
    assert encoded(columns, Path("a.csv")) == expected
    assert encoded({"label": ["a", "b"]}, Path("a.csv")) == b"label\na\nb\n"
