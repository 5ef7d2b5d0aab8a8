"""Scripts that need no package of `bench` run without this extra; stored figures are drawn."""

import ast
import functools
import importlib.metadata
import itertools
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from experiments.catalogue import SCRIPTS
from experiments.engine.provenance import sources
from experiments.engine.script import ComparesWithPeers, Needs, load

pytestmark = pytest.mark.ci
ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
#: Extras whose packages the tests hide. The first command of the README does not install them.
OTHERS = ("bench", "cluster")
#: Scripts that compare with packages of `bench`, each with the packages of `bench` that it needs.
NEEDED = {
    "accuracy_table": "mbi, jax",
    "geometry": "hopsy, quadprog",
    "exact": "opendp",
    "release": "mbi, jax, opendp, diffprivlib, sklearn",
    "smooth": "finufft",
}
#: A program that runs commands one after the other and hides packages from them. An import of a
#: module that is None in `sys.modules` fails. The program prints the exit code, output and error of
#: each command.
HIDDEN = """
import json, sys
hidden, commands = json.loads(sys.argv[1])
sys.modules.update(dict.fromkeys(hidden))
from typer.testing import CliRunner
from experiments.__main__ import app
ran = [CliRunner().invoke(app, command) for command in commands]
errors = [r.stderr if r.exception is None else r.stderr + repr(r.exception) for r in ran]
print(json.dumps([(r.exit_code, r.stdout, error) for r, error in zip(ran, errors)]))
"""


@functools.cache
def modules_of(extra: str) -> frozenset[str]:
    """Top-level modules that the distributions of an extra provide."""
    names = {re.split(r"[^\w-]", line)[0].lower() for line in EXTRAS[extra]}
    provided = importlib.metadata.packages_distributions()
    return frozenset(
        module for module, owners in provided.items() if names & {owner.lower() for owner in owners}
    )


class Ran(NamedTuple):
    """What one command did in a process without the peers."""

    code: int
    out: str
    error: str


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the committed figures of the scripts in `NEEDED`, but without geometry.png."""
    folder = tmp_path_factory.mktemp("figures")
    for name in NEEDED:
        for path in (ROOT / "paper_figures").glob(f"{name}.*"):
            shutil.copy(path, folder)
    (folder / "geometry.png").unlink()
    return folder


@pytest.fixture(scope="module")
def ran(figures: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """The results of all commands. One process runs them, because the imports take most time."""
    folders = ["--results", str(tmp_path_factory.mktemp("results")), "--figures", str(figures)]
    commands = [
        ["list"],
        ["run", "geometry", "lower_worst_case", *folders],
        ["plot", "geometry", "--full", *folders[2:]],
        ["status", *folders],
    ]
    hidden = sorted(set().union(*map(modules_of, OTHERS)))
    arguments = [sys.executable, "-c", HIDDEN, json.dumps([hidden, commands])]
    result = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    answers = itertools.starmap(Ran, json.loads(result.stdout))
    return {command[0]: answer for command, answer in zip(commands, answers, strict=True)}


def test_scripts_without_their_peers_are_listed_with_the_extra_to_install(ran):
    code, out, error = ran["list"]
    assert (code, error) == (0, "")
    left_out = re.findall(r"^left out: (\w+) needs ([\w, ]+) \(extra `bench`", out, re.M)
    assert dict(left_out) == NEEDED
    assert out.count("pip install -e '.[bench]'") == len(left_out)


def test_a_run_goes_on_without_them(ran, figures):
    code, out, error = ran["run"]
    # The exit code is 1 because `geometry` was asked for and did not run. The other script ran.
    assert code == 1, error
    assert "left out: geometry needs hopsy, quadprog" in out
    assert "0 failed" in out
    assert (figures / "quick" / "lower_worst_case.png").exists()
    assert not (figures / "quick" / "geometry.csv").exists()


def test_stored_figures_of_peers_are_drawn_without_them(ran, figures):
    assert ran["plot"][::2] == (0, "")
    assert (figures / "geometry.png").exists()


def test_status_shows_stored_figures_of_scripts_that_are_left_out(ran, figures):
    code, out, error = ran["status"]
    assert (code, error) == (0, "")
    assert "left out: geometry needs hopsy, quadprog" in out
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines()]
    shown = {row[0]: row[-2:] for row in rows if row[1:2] == ["full"]}
    for name in NEEDED:
        count = len(json.loads((figures / f"{name}.json").read_text())["claims"])
        figure, claims = shown[name]
        assert figure in ("present code", "other code")
        assert claims == f"{count} of {count} passed"


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_names_every_peer_that_it_imports(name):
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


def test_missing_packages_are_named():
    needs = Needs(("json", "no_such_package"), extra="bench")
    assert needs.missing == ("no_such_package",)
