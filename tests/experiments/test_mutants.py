"""The catalogue of mutants fits the code, and every figure has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.catalogue import SCRIPTS
from experiments.mutants.catalogue import MUTANTS
from experiments.mutants.mutants import FULL, QUICK, config, files_of
from tests.experiments.planted_edits import are_tests, changes_one_function_and_is_undone

ROOT = Path(__file__).parents[2]
#: The figure of the mutants themselves.
ITSELF = "experiments.mutants.mutants"


def test_there_are_many_mutants_with_names_of_their_own() -> None:
    rows = [
        line
        for path in (ROOT / "experiments" / "mutants").glob("*.toml")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    assert rows.count("[[mutant]]") == len(MUTANTS) >= 80


def test_every_figure_has_a_mutant() -> None:
    assert {mutant.script for mutant in MUTANTS.values()} == set(SCRIPTS) - {ITSELF}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_changes_one_function_and_is_undone(name: str) -> None:
    changes_one_function_and_is_undone(MUTANTS[name].edit)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_tests_of_a_mutant_exist(name: str) -> None:
    are_tests(MUTANTS[name].tests)


def test_a_result_belongs_to_the_text_of_script_and_tests() -> None:
    mutant = MUTANTS["median: a third of the logarithm of the net"]
    cell = config(mutant)
    assert cell in FULL.configurations
    assert QUICK.configurations == (cell,)
    names = {path.name for path in files_of(mutant)}
    assert {"update_bounds.py", "extremal_streams.py"} <= names
    assert "online_error.py" not in names
