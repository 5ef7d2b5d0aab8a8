"""The README's examples run as they stand there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.readme import EXAMPLES, FILES, README, blocks, commands, write_examples

ROOT = Path(__file__).resolve().parents[1]


def printed_by(example: str, capsys: pytest.CaptureFixture[str]) -> str:
    exec(compile(example, "README.md", "exec"), {})
    return capsys.readouterr().out


def test_tables_example(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    example = blocks("python")[0]
    assert len([line for line in example.splitlines() if line]) <= 5
    printed = printed_by(example, capsys)
    assert printed.startswith("45 2-way tables of 10 columns: 1-DP, replace-one")
    assert "[30, 60]" in printed
    assert len((tmp_path / "tables.csv").read_text().splitlines()) == 1 + 699


def test_python_example(capsys: pytest.CaptureFixture[str]) -> None:
    example = blocks("python")[1]
    printed = printed_by(example, capsys)
    assert "region=2,smoker=1" in printed
    promised = re.search(r"print\(release\.guarantee\)  # (.+?) \.\.\.", example)
    assert promised is not None
    assert f"{promised[1]} random bits from the operating system" in printed.splitlines()


def test_smooth_example(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = blocks("python")[2:]
    assert len(example.splitlines()) <= 10
    guarantee, *answers = printed_by(example, capsys).splitlines()
    assert guarantee.startswith("1-DP, replace-one")
    assert len(answers) == 3
    assert all(answer.startswith("SmoothAnswer(value=") for answer in answers)


def test_command_line_example(tmp_path: Path) -> None:
    write_examples(tmp_path)
    assert len(commands("geomdp")) == 8
    for command in commands(*EXAMPLES):
        program, *arguments = shlex.split(command)
        installed = Path(sys.executable).with_name(program)
        result = subprocess.run(
            [installed, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        # In a fresh environment the first command says that it compiles.
        errors = [line for line in result.stderr.splitlines() if "compiling, once" not in line]
        assert (result.returncode, errors) == (0, []), command
    for name in ("answers.csv", "rand.parquet", "parts.csv"):
        answers = tmp_path / name
        assert answers.exists()
        assert answers.with_suffix(".privacy.json").exists()
    assert (tmp_path / "survey.ledger").exists()
    assert (tmp_path / "bound.json").exists()
    assert (tmp_path / "curve.png").exists()


def test_set_up_installs_declared_extras_and_nothing_else() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    figures, work = commands("pip")
    asked = re.fullmatch(
        r"pip install -e '\.\[([\w,]+)\]' && python -m experiments reproduce --quick", figures
    )
    assert asked is not None
    assert set(asked[1].split(",")) <= extras["optional-dependencies"].keys()
    assert work == "pip install -e '.[dev]' && pytest"


def test_examples_are_taken_from_the_file(tmp_path: Path) -> None:
    write_examples(tmp_path)
    assert FILES.keys() == {"survey.csv", "schema.json"}
    assert {path.name for path in tmp_path.iterdir()} == {
        *FILES,
        "commands.sh",
        "example_1.py",
        "example_2.py",
        "example_3.py",
    }
    assert all((tmp_path / name).read_text() in README for name in FILES)


def test_every_file_it_names_exists() -> None:
    named = re.findall(r"`([\w./]+\.(?:md|png|toml))`|\]\(([\w./]+)\)", README)
    paths = [first or second for first, second in named]
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
