"""The catalogue of mutants fits the code and covers every figure but the figure of the mutants."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from experiments.catalogue import SCRIPTS
from experiments.mutants.mutants import (
    CRASH,
    NONE,
    Noticed,
    claims,
    claims_of_all,
    files_of,
    goals,
    outcomes,
    red_claims_of,
    unrefuted,
)
from experiments.planting.catalogue import MUTANTS
from experiments.theorems import THEOREMS, UNCLAIMED, UNREFUTED, Paper, Theorem
from tests.experiments.planted_edits import are_tests, changes_one_function_and_is_undone

ROOT = Path(__file__).parents[2]
#: The script that runs the mutants. Its own figure has no mutant.
ITSELF = "experiments.mutants.mutants"


def test_there_are_many_mutants_with_names_of_their_own():
    rows = [
        line
        for path in (ROOT / "experiments" / "mutants").glob("*.toml")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    assert rows.count("[[edit]]") == len(MUTANTS) >= 80


def test_every_figure_has_a_mutant():
    assert {mutant.script for mutant in MUTANTS.values()} == set(SCRIPTS) - {ITSELF}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_changes_one_function_and_is_undone(name):
    changes_one_function_and_is_undone(MUTANTS[name].edit)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_tests_of_a_mutant_are_whole_files(name):
    are_tests(MUTANTS[name].tests)
    assert all(test.startswith("tests/") and test.endswith(".py") for test in MUTANTS[name].tests)


#: A program that imports the named modules, and prints the files of `experiments` and `tests` that
#: Python has then loaded.
LOADED = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
for name, module in list(sys.modules.items()):
    if name.partition(".")[0] in ("experiments", "tests") and module.__file__:
        print(module.__file__)
"""


def test_a_result_belongs_to_all_modules_that_script_and_tests_load():
    """The reference is what Python loads. Files called __init__.py are left out."""
    mutant = next(m for m in MUTANTS.values() if ROOT / "tests/stats.py" in files_of(m))
    tests = [test.removesuffix(".py").replace("/", ".") for test in mutant.tests]
    command = [sys.executable, "-c", LOADED, mutant.script, *tests]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    loaded = {Path(line) for line in done.stdout.split("\n") if line}
    assert ROOT / "tests/stats.py" in loaded
    assert {path for path in loaded if path.name != "__init__.py"} <= files_of(mutant)


def test_red_claims_are_named_as_in_the_index():
    table = pd.DataFrame(
        {
            "figure": ["widths", "widths", "noise", "noise"],
            # One red claim; two red claims, of which the first has two ids; a figure that crashed;
            # no red claim.
            "claim_ids": ["JL-14", "JL-T9, JL-L12; JL-L13b", CRASH, NONE],
        }
    )
    red = red_claims_of(table)
    assert red == {"widths::JL-14", "widths::JL-T9", "widths::JL-L12", "widths::JL-L13b"}


def test_a_statement_is_refuted_by_a_red_claim_of_its_own():
    def statement(*claims: str) -> Theorem:
        return Theorem(" ".join(claims), Paper.NIKOLOV, "", "", (), claims=claims)

    red = {"widths::JL-T1", "noise::JL-L13"}
    seen = [statement("widths::JL-T1"), statement("noise::JL-T1", "noise::JL-L13")]
    # A red claim counts for its own figure only. A red claim JL-T1 does not count for JL-T16.
    unseen = [statement("noise::JL-T1"), statement("widths::JL-T16"), statement()]
    assert unrefuted([*seen, *unseen], red) == [theorem.id for theorem in unseen]


def results(**changed: tuple[str, str]) -> pd.DataFrame:
    """Results of all mutants: a claim without an id of a theorem turns red, and no test fails.

    `changed` maps figures to other results of all their mutants: the ids of the red claims, and the
    failing test.
    """
    found = [
        (m.figure, m.where, *changed.get(m.figure, ("design", NONE))) for m in MUTANTS.values()
    ]
    table = pd.DataFrame(found, columns=["figure", "where", "claim_ids", "test"])
    return table.assign(mutant=[*MUTANTS])


def test_what_noticed_a_mutant():
    table = pd.DataFrame(
        [
            ("JL-14", NONE, Noticed.ALONE),
            ("JL-14", "test", Noticed.BOTH),
            (NONE, "test", Noticed.TEST),
            (CRASH, NONE, Noticed.CRASH),
            (CRASH, "test", Noticed.CRASH),
            (NONE, NONE, Noticed.NOTHING),
        ],
        columns=["claim_ids", "test", "expected"],
    )
    assert list(outcomes(table)) == list(table.expected)


def test_every_figure_needs_a_claim_that_turns_red_and_one_where_no_test_does():
    def passed(table: pd.DataFrame) -> list[bool]:
        return [claim.passed for claim in [*claims(table)][:3]]

    assert passed(results()) == [True, True, True]
    # A crash of the figure does not count as a claim that turned red.
    assert passed(results(conjunctions=(CRASH, NONE))) == [True, False, False]
    assert passed(results(conjunctions=("BR-CONJ", "test"))) == [True, True, False]
    assert passed(results(conjunctions=(NONE, "test"))) == [True, False, False]
    assert passed(results(conjunctions=(NONE, NONE))) == [False, False, False]


def test_some_things_are_claimed_of_all_mutants_only():
    table = results()
    *_, index = claims_of_all(table)
    assert not index.passed
    claimed = len(THEOREMS) - len(UNCLAIMED) - len(UNREFUTED)
    assert f"0 of {claimed} statements" in index.measured
    assert [*claims_of_all(table.iloc[1:])] == goals(table.iloc[1:]) == []


def test_the_goal_counts_mistakes_in_the_library():
    (before,) = goals(results())
    (after,) = goals(results(conjunctions=("BR-CONJ", "test")))
    # Some mutants of this figure edit its script, and others edit the library.
    assert {m.where.partition(".")[0] for m in MUTANTS.values() if m.figure == "conjunctions"} == {
        "experiments",
        "geomdp",
    }
    assert after.measured == before.measured - 1
    assert "conjunctions" in after.reason
    assert after.goal == len({m.figure for m in MUTANTS.values()})
