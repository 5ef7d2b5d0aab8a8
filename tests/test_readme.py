"""The README's examples run as they stand there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parents[1] / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    """The blocks of a language, in order."""
    return [text for name, text in BLOCKS if name == language]


def block(language: str) -> str:
    """The one block of a language."""
    (text,) = blocks(language)
    return text


def printed_by(example: str, capsys: pytest.CaptureFixture[str]) -> str:
    exec(compile(example, "README.md", "exec"), {})
    return capsys.readouterr().out


def test_python_example(capsys: pytest.CaptureFixture[str]) -> None:
    example = blocks("python")[0]
    printed = printed_by(example, capsys)
    assert "region=2,smoker=1" in printed
    promised = re.search(r"print\(release\.guarantee\)  # (.+)", example)
    assert promised is not None
    assert promised[1] in printed.splitlines()


def test_smooth_example(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = blocks("python")[1:]
    assert len(example.splitlines()) <= 10
    guarantee, *answers = printed_by(example, capsys).splitlines()
    assert guarantee.startswith("1-DP, replace-one")
    assert len(answers) == 3
    assert all(answer.startswith("SmoothAnswer(value=") for answer in answers)


def test_command_line_example(tmp_path: Path) -> None:
    (tmp_path / "survey.csv").write_text(block("csv"))
    (tmp_path / "schema.json").write_text(block("json"))
    commands = re.findall(r"^geomdp .+$", "".join(text for name, text in BLOCKS if not name), re.M)
    assert len(commands) == 6
    for command in commands:
        program, *arguments = shlex.split(command)
        installed = Path(sys.executable).with_name(program)
        result = subprocess.run(
            [installed, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (result.returncode, result.stderr) == (0, ""), command
    for name in ("answers", "rand"):
        assert (tmp_path / f"{name}.csv").exists()
        assert (tmp_path / f"{name}.privacy.json").exists()
    assert (tmp_path / "bound.json").exists()
    assert (tmp_path / "curve.png").exists()


def test_every_file_it_names_exists() -> None:
    root = Path(__file__).resolve().parents[1]
    named = re.findall(r"`([\w./]+\.(?:md|png|toml))`|\]\(([\w./]+)\)", README)
    paths = [first or second for first, second in named]
    assert paths
    assert [path for path in paths if not (root / path).exists()] == []
