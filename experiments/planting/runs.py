"""Run tests, or a figure at its quick preset, in a process in which one edit is planted."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from experiments.planting.edits import Edit

ROOT = Path(__file__).parents[2]
PLUGIN = "experiments.planting.plugin"
FIGURE = "experiments.planting.figure"
#: Exit codes of pytest: all passed, and some failed.
PASSED, FAILED = 0, 1
#: Largest number of seconds that a run may take.
LIMIT = 1200


@dataclass(frozen=True)
class RedClaim:
    """A claim of a figure that does not hold."""

    id: str  # The id of the claim; empty if a cell, or the check of the claims, raises an error
    name: str  # The claim in words, or how the figure fails


def failing_test(edit: Edit | None, tests: Sequence[str]) -> str | None:
    """The first test that fails while the edit, if any, is planted; None if all pass."""
    # These tests include those marked `ci`, for which the default suite has no time.
    options = ["-n", "0", "-x", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider", "-m", "not slow"]
    if edit is not None:
        options += ["-p", PLUGIN, "--edit", json.dumps(asdict(edit))]
    run = _run([sys.executable, "-m", "pytest", *options, *tests])
    if run.returncode not in (PASSED, FAILED):
        raise RuntimeError(f"pytest ended with code {run.returncode}: {_end(run)}")
    failures = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failures[0].split(" ")[1].split("[")[0] if failures else None


def red_claims(edit: Edit, script: str) -> list[RedClaim]:
    """The claims that fail with the edit in a quick run of the script with module name `script`."""
    run = _run([sys.executable, "-m", FIGURE, script, json.dumps(asdict(edit))])
    if run.returncode != PASSED:
        raise RuntimeError(f"{script} ended with code {run.returncode}: {_end(run)}")
    return [RedClaim(**claim) for claim in json.loads(run.stdout.splitlines()[-1])]


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def _end(run: subprocess.CompletedProcess[str]) -> str:
    return f"{run.stdout[-2000:]}{run.stderr[-2000:]}"
