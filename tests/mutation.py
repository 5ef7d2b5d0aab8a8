"""Mutation testing of one package: ``python -m tests.mutation privacy``.

mutmut changes the code of the package in a copy of the repository, a little each time (a sign, a
number, a comparison, an argument), and runs the tests of the package that reach the change. A
change that no test notices survives. The table at the end counts them by file, and every survivor
is printed as a diff: it is either a test that is missing, or a change that makes no difference.

Needs the extra `mutation`. A run takes minutes (`privacy`) to hours (`mechanisms`), and can be
stopped and continued with ``--folder``. mutmut leaves out decorated functions, so properties.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Folders of tests by the package of geomdp whose mutants they are to kill.
TESTS = {
    "privacy": ("tests/privacy",),
    "noise": ("tests/noise", "tests/laws/test_noises.py", "tests/laws/test_single_numbers.py"),
    "mechanisms": ("tests/mechanisms", "tests/laws"),
    "bounds/checker": ("tests/bounds",),
}
#: Tests that start processes, which run code of their own, and those that time it.
LEFT_OUT = "not process and not kill and not forked and not fast and not speed"
#: What an exit code of a worker of mutmut means.
OUTCOMES = {0: "survived", 1: "killed", 3: "killed", 33: "no test", 34: "skipped", None: "not run"}


def prepare(package: str, folder: Path) -> None:
    """Copy the tracked files, with a configuration that mutates `package` only."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if not name.startswith("paper_figures/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    selection = {
        "source_paths": ["geomdp"],
        "only_mutate": [f"geomdp/{package}/*"],
        "also_copy": ["experiments", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"],
        "pytest_add_cli_args": ["-n", "0", "-p", "no:cacheprovider", "-k", LEFT_OUT],
        "pytest_add_cli_args_test_selection": list(TESTS[package]),
        "timeout_multiplier": 5.0,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in selection.items()]
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n".join(["", "[tool.mutmut]", *lines, ""]))


def report(folder: Path) -> None:
    """Print the table of outcomes by file, and the survivors as diffs."""
    total: Counter[str] = Counter()
    survivors = []
    for path in sorted((folder / "mutants").rglob("*.meta")):
        codes = json.loads(path.read_text())["exit_code_by_key"]
        counts = Counter(OUTCOMES.get(code, "timed out") for code in codes.values())
        if counts:
            print(f"{path.name.removesuffix('.meta'):28}", dict(counts))
        total += counts
        survivors += [name for name, code in codes.items() if code == 0]
    print(f"{'together':28}", dict(total))
    for name in survivors:
        subprocess.run([sys.executable, "-m", "mutmut", "show", name], cwd=folder, check=False)


def main() -> None:
    """Run mutmut on one package and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", choices=TESTS)
    parser.add_argument("--folder", type=Path, help="a folder of an earlier run, to continue it")
    parser.add_argument("--report-only", action="store_true", help="only read what --folder holds")
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="geomdp-mutation-"))
    if not (folder / "geomdp").exists():
        folder.mkdir(parents=True, exist_ok=True)
        prepare(chosen.package, folder)
    print(f"in {folder}")
    if not chosen.report_only:
        command = [sys.executable, "-m", "mutmut", "run", "--max-children", "1"]
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        subprocess.run(command, cwd=folder, env=environment, check=False)
    report(folder)


if __name__ == "__main__":
    main()
