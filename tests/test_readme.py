"""The examples of the README and the guide run without changes."""

import json
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from geomdp.cli import main
from tests.readme import (
    FILES,
    README,
    commands,
    page_commands,
    page_files,
    python_examples,
    write_examples,
)

ROOT = Path(__file__).resolve().parents[1]


def printed_by(example: str, capsys: pytest.CaptureFixture[str]) -> str:
    exec(compile(example, "example", "exec"), {})
    return capsys.readouterr().out


def test_tables_example(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = python_examples()[0]
    assert len([line for line in example.splitlines() if line]) <= 5
    printed = printed_by(example, capsys)
    assert printed.startswith("45 2-way tables of 10 columns: 1-DP, replace-one")
    assert "[30, 60]" in printed
    assert len((tmp_path / "tables.csv").read_text().splitlines()) == 1 + 699


def test_python_example(capsys):
    example = python_examples()[1]
    printed = printed_by(example, capsys)
    assert "region=2,smoker=1" in printed
    promised = re.search(r"print\(release\.guarantee\)  # (.+?) \.\.\.", example)
    assert promised is not None
    assert f"{promised[1]} random bits from the operating system" in printed.splitlines()


def test_smooth_example(capsys):
    (example,) = python_examples()[2:]
    assert len(example.splitlines()) <= 10
    guarantee, *answers = printed_by(example, capsys).splitlines()
    assert guarantee.startswith("1-DP, replace-one")
    assert len(answers) == 3
    assert all(answer.startswith("SmoothAnswer(value=") for answer in answers)


def test_commands_of_the_guide(tmp_path, monkeypatch, capsys):
    """The commands run in this process, with one n per decade. `.ci/run` runs them as programs."""
    write_examples(tmp_path)
    page = tmp_path / "page"
    monkeypatch.chdir(page)
    monkeypatch.setattr("geomdp.cli.plans.PER_DECADE", 1)
    for command in page_commands():
        program, *arguments = shlex.split(command)
        assert program == "geomdp"
        monkeypatch.setattr(sys, "argv", [program, *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        assert (stop.value.code, errors_in(capsys.readouterr().err)) == (0, []), command
    assert (page / "answers.csv").exists()
    assert (page / "answers.privacy.json").exists()
    assert (page / "survey.ledger").exists()
    assert (page / "bound.json").exists()
    assert (page / "curve.png").exists()


def errors_in(printed: str) -> list[str]:
    """The lines on standard error, except the message that a new environment compiles code once."""
    return [line for line in printed.splitlines() if "compiling, once" not in line]


def test_set_up_installs_declared_extras_and_nothing_else():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    figures, lesson, work = commands("pip")
    asked = re.fullmatch(
        r"pip install -e '\.\[([\w,]+)\]' && python -m experiments reproduce --quick", figures
    )
    assert asked is not None
    assert set(asked[1].split(",")) <= extras["optional-dependencies"].keys()
    assert lesson == "pip install -e '.[lessons]' && geomdp lessons 1"
    assert work == "pip install -e '.[dev]' && pytest"


def test_examples_are_taken_from_the_file(tmp_path):
    write_examples(tmp_path)
    assert page_files().keys() == {"survey.csv", "schema.json"}
    assert FILES.keys() == {"visits.csv", *page_files()}
    assert {path.name for path in tmp_path.iterdir()} == {
        *FILES,
        "commands.sh",
        "page",
        "example_1.py",
        "example_2.py",
        "example_3.py",
    }
    assert all((tmp_path / name).read_text() in README for name in FILES)


def test_the_guide_and_the_readme_have_the_same_survey():
    assert page_files()["survey.csv"] == FILES["survey.csv"]
    assert json.loads(page_files()["schema.json"]) == json.loads(FILES["schema.json"])


def test_every_file_it_names_exists():
    named = re.findall(r"`([\w./]+\.(?:md|png|toml))`|\]\(([\w./]+)\)", README)
    paths = [first or second for first, second in named]
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
