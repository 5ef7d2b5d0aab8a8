"""Without the packages of the extra `bench`, all other scripts run and stored figures are drawn."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from experiments.catalogue import SCRIPTS
from experiments.engine.provenance import sources
from experiments.engine.script import ComparesWithPeers, Needs, load

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
#: Extras that the first command of the README does not install.
OTHERS = ("bench", "cluster")
#: The command line with packages hidden: an import of a module that is None in `sys.modules` fails.
HIDDEN = """
import sys
sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(",")))
from experiments.__main__ import app
app(prog_name="python -m experiments")
"""


def modules_of(extra: str) -> set[str]:
    """Top-level modules that the distributions of an extra provide."""
    names = {re.split(r"[^\w-]", line)[0].lower() for line in EXTRAS[extra]}
    provided = importlib.metadata.packages_distributions()
    return {
        module for module, owners in provided.items() if names & {owner.lower() for owner in owners}
    }


def without_peers(*arguments: str) -> subprocess.CompletedProcess[str]:
    hidden = ",".join(sorted(set().union(*map(modules_of, OTHERS))))
    command = [sys.executable, "-c", HIDDEN, hidden, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    """Folders of a run, with the committed figures."""
    shutil.copytree(ROOT / "paper_figures", tmp_path / "figures")
    return ["--results", str(tmp_path / "results"), "--figures", str(tmp_path / "figures")]


def test_scripts_without_their_peers_are_listed_with_the_extra_to_install() -> None:
    result = without_peers("list")
    assert (result.returncode, result.stderr) == (0, "")
    left_out = re.findall(r"^left out: (\w+) needs ([\w, ]+) \(extra `bench`", result.stdout, re.M)
    needed = {
        "accuracy_table": "mbi, jax",
        "geometry": "hopsy, quadprog",
        "exact": "opendp",
        "release": "mbi, jax, opendp, diffprivlib, sklearn",
    }
    assert dict(left_out) == needed
    assert result.stdout.count("pip install -e '.[bench]'") == len(left_out)


def test_a_run_goes_on_without_them(folders: list[str]) -> None:
    result = without_peers("run", "geometry", "lower_worst_case", *folders)
    # What was asked for by name did not run; the other script did.
    assert result.returncode == 1, result.stderr
    assert "left out: geometry needs hopsy, quadprog" in result.stdout
    assert "0 failed" in result.stdout
    assert (Path(folders[-1]) / "quick" / "lower_worst_case.png").exists()
    assert not (Path(folders[-1]) / "quick" / "geometry.csv").exists()


def test_stored_figures_of_peers_are_drawn_without_them(folders: list[str]) -> None:
    image = Path(folders[-1]) / "geometry.png"
    image.unlink()
    result = without_peers("plot", "geometry", "--full", *folders[2:])
    assert (result.returncode, result.stderr) == (0, "")
    assert image.exists()
    result = without_peers("report", *folders[2:])
    assert (result.returncode, result.stderr) == (0, "")
    assert f"{len(SCRIPTS)} figures" in result.stdout


def test_status_shows_stored_figures_of_scripts_that_are_left_out(folders: list[str]) -> None:
    result = without_peers("status", *folders)
    assert (result.returncode, result.stderr) == (0, "")
    assert "left out: geometry needs hopsy, quadprog" in result.stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_names_every_peer_that_it_imports(name: str) -> None:
    script = load(name)
    imported = set()
    for path in sources(sys.modules[name]).values():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                imported.add(node.module.partition(".")[0])
    needed = script.module.NEEDS if isinstance(script.module, ComparesWithPeers) else None
    peers = set(needed.packages) if needed is not None and needed.extra == "bench" else set()
    assert imported & modules_of("bench") == peers
    assert needed is None or needed.extra in ("audit", "bench", "dev")
    assert script.left_out is None


def test_missing_packages_are_named() -> None:
    needs = Needs(("json", "no_such_package"), extra="bench")
    assert needs.missing == ("no_such_package",)
