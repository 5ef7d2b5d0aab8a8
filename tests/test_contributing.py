"""The steps of CONTRIBUTING.md, followed in a copy of the repository."""

import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.ci
ROOT = Path(__file__).resolve().parents[1]

FIGURE = '''"""Ball noise: its error falls as 1/n, exactly as predicted.

Paper: Nikolov 2022 (arXiv 2208.07410); formula sheet JL-L14, JL-L15.

Claim: the error of ball noise is the predicted one at every n. Run time on one core: 1 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared.workloads import Kind, workload


@dataclass(frozen=True)
class Config:
    n: int  # Number of records


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean squared error over 50 releases of uniform records."""
    Q = workload(Kind.PREFIXES, 8)
    mechanism = gd.mechanisms.Ball(Q, n=config.n, privacy=gd.PureDP(1.0))
    return ex.release_columns(mechanism, Q.universe.sample(config.n, rng), 50, rng)


def claims(table: pd.DataFrame) -> ex.Claims:
    yield ex.agrees_with_prediction("ball noise errs as predicted", "JL-L15", table, ["n"])


def plot(table: pd.DataFrame) -> ex.Figure:
    figure, (axes,) = ex.panels((3.6, 2.7), ["ball noise"], "records $n$", "error")
    ex.draw_predicted(axes, table, "n", ex.Look("C0", "o"), "ball")
    ex.log_axes(axes)
    return figure


QUICK = ex.Sweep((Config(10), Config(100)), trials=1, seed=0)
FULL = ex.Sweep((Config(10), Config(100), Config(1000)), trials=1, seed=0)
'''

BODY = '''"""Segments about 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import batch
from geomdp.bodies.base import Body


@dataclass(frozen=True)
class Segment(Body):
    """The segment {x in R : |x| <= half_length}."""

    half_length: float

    dimension = 1
    symmetric = True

    def support(self, directions: FloatArray) -> FloatArray:
        return np.asarray(self.half_length * np.abs(batch(directions, 1, "directions")[:, 0]))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return np.where(batch(directions, 1, "directions") > 0, self.half_length, -self.half_length)

    def gauge(self, points: FloatArray) -> FloatArray:
        return np.asarray(np.abs(batch(points, 1, "points")[:, 0]) / self.half_length)

    def project(self, points: FloatArray) -> FloatArray:
        return np.clip(batch(points, 1, "points"), -self.half_length, self.half_length)

    def volume(self) -> float:
        return 2 * self.half_length
'''
BODY_ROW = """    BodyCase(
        "newcomer", lambda s: gb.Segment(2 * s), 1, "support gauge project volume", volume=4
    ),"""

MECHANISM = '''"""The whole-ball mechanism: K-norm noise of a Euclidean ball in all of R^m."""

from __future__ import annotations

from geomdp.bodies import Ball as BallBody
from geomdp.mechanisms.additive_noise.base import PureMechanism
from geomdp.mechanisms.additive_noise.certify import knorm
from geomdp.mechanisms.additive_noise.sums import Change
from geomdp.noise import KNormNoise


class WholeBall(PureMechanism):
    """K-norm noise of the l2 ball in R^m, with the l2 sensitivity of the sum as its radius."""

    def law(self, change: Change) -> KNormNoise:
        return knorm(BallBody(self.workload.n_queries, change.l2), self.privacy.epsilon)
'''
CANDIDATE = """    Candidate(
        kind=mechanisms.WholeBall,
        summary="K-norm noise of a ball in all dimensions",
        suits="Its noise is the same in every direction.",
    ),"""
#: A program that prints whether the table of the advisor names the mechanism.
ADVISED = """
import geomdp as gd
advice = gd.advise(gd.workloads.Prefixes(4), n=100, privacy=gd.PureDP(1.0))
print("WholeBall" in str(advice.table.to_string()))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the code and its tests. Commands that run in the copy import the copied modules.

    Compiled code is stored beside its source file, so it is copied too. It stays valid, because
    copied source files keep their size and time of change.
    """
    ignored = shutil.ignore_patterns("results")
    for folder in ("geomdp", "experiments", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def changed(copy: Path) -> set[str]:
    """Python files, stubs and pages of the copy that are new or differ from the originals."""
    sources = [path for kind in ("*.py", "*.pyi", "*.md") for path in copy.rglob(kind)]
    names = {path.relative_to(copy) for path in sources}
    differing = {
        name
        for name in names
        if not (ROOT / name).exists() or not filecmp.cmp(ROOT / name, copy / name, shallow=False)
    }
    return {name.as_posix() for name in differing}


def pytest_in(copy: Path, chosen: str, *files: str) -> None:
    """Run the tests of the copy whose names match an expression."""
    run(copy, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "-k", chosen, *files)


def run(copy: Path, *arguments: str) -> str:
    """Standard output of a Python command in the copy."""
    environment = os.environ | {"PYTHONPATH": str(copy)}
    result = subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def put_before(path: Path, mark: str, line: str) -> None:
    """Add a line to a file, before the first line that contains `mark`."""
    text = path.read_text()
    start = text.rindex("\n", 0, text.index(mark)) + 1
    path.write_text(f"{text[:start]}{line}\n{text[start:]}")


def test_a_body_is_a_file_an_export_and_a_row_of_the_catalogue(copy):
    bodies, catalogue = copy / "geomdp" / "bodies", copy / "tests" / "catalogue.py"
    (bodies / "segment.py").write_text(BODY)
    export = "from .segment import Segment as Segment"
    put_before(bodies / "__init__.pyi", "from .sensitivity", export)
    put_before(catalogue, '    BodyCase("segment as a ball"', BODY_ROW)
    assert changed(copy) == {
        "geomdp/bodies/segment.py",
        "geomdp/bodies/__init__.pyi",
        "tests/catalogue.py",
    }
    pytest_in(copy, "newcomer or exported", "tests/bodies/test_contracts.py")


def test_a_competing_mechanism_is_a_file_an_export_and_three_rows(copy):
    mechanisms = copy / "geomdp" / "mechanisms"
    candidates = copy / "geomdp" / "advice" / "candidates.py"
    catalogue = copy / "tests" / "mechanisms" / "catalogue.py"
    (mechanisms / "additive_noise" / "whole_ball.py").write_text(MECHANISM)
    export = "from .additive_noise.whole_ball import WholeBall as WholeBall"
    put_before(mechanisms / "__init__.pyi", "from .base import Mechanism", export)
    put_before(candidates, "    Candidate(\n        kind=mechanisms.Cone,", CANDIDATE)
    put_before(catalogue, "    TightCone,", "    WholeBall,")
    put_before(catalogue, '    "Ellipsoid": plain(', '    "WholeBall": plain(WholeBall, PURE),')
    reason = 'WITHOUT: dict[str, str] = {"WholeBall": "its radius is not proved for floats"}'
    catalogue.write_text(catalogue.read_text().replace("WITHOUT: dict[str, str] = {}", reason))
    row = "| `WholeBall` | no: its radius is not proved for floats |"
    exact = copy / "experiments" / "guide" / "pages" / "privacy" / "exact.md"
    put_before(exact, "| `Recursive` |", row)
    assert changed(copy) == {
        "geomdp/mechanisms/additive_noise/whole_ball.py",
        "geomdp/mechanisms/__init__.pyi",
        "geomdp/advice/candidates.py",
        "tests/mechanisms/catalogue.py",
        "experiments/guide/pages/privacy/exact.md",
    }
    contracts = ("tests/mechanisms/test_contracts.py", "tests/mechanisms/test_exact_paths.py")
    advisor = "tests/advice/test_advisor.py"
    # The names are long, because "table" or "listed" would also choose tests of other mechanisms.
    pytest_in(copy, "WholeBall or exported or TestTable or listed_once", *contracts, advisor)
    assert run(copy, "-c", ADVISED) == "True\n"


def test_a_figure_is_a_script_and_a_line_of_the_catalogue(copy):
    (copy / "experiments" / "error" / "ball_noise.py").write_text(FIGURE)
    catalogue = copy / "experiments" / "catalogue.py"
    put_before(catalogue, '"lead"', '        "ball_noise",')
    assert changed(copy) == {"experiments/error/ball_noise.py", "experiments/catalogue.py"}
    assert "Ball noise: its error falls" in run(copy, "-m", "experiments", "list")
    assert "1 claims passed, 0 failed" in run(copy, "-m", "experiments", "run", "ball_noise")
    written = {path.name for path in (copy / "paper_figures" / "quick").iterdir()}
    assert written == {f"ball_noise.{kind}" for kind in ("csv", "json", "png")}
    tests = ("tests/test_experiments.py", "tests/experiments/test_command_line.py")
    pytest_in(copy, "ball_noise or catalogue", *tests)
