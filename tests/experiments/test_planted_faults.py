"""The catalogue of planted faults fits the library: every edit can be made, and is undone."""

from __future__ import annotations

import re
from pathlib import Path
from types import CodeType

import pytest

from experiments.planting.edits import EditDoesNotFit, planted
from experiments.privacy.faults.catalogue import FAULTS, PARTS
from experiments.privacy.faults.fault import Fault
from geomdp.privacy import PureDP, basic_composition

ROOT = Path(__file__).parents[2]


def test_there_are_many_faults_with_names_of_their_own() -> None:
    assert len(FAULTS) == sum(map(len, PARTS.values()))
    assert len(FAULTS) >= 150


def instructions(code: CodeType) -> tuple[object, ...]:
    return code.co_code, code.co_consts, code.co_names


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_changes_one_function_and_is_undone(name: str) -> None:
    edit = FAULTS[name].edit
    function = edit.function()
    sound = function.__code__
    with planted(edit):
        assert function.__code__ is not sound
        assert instructions(function.__code__) != instructions(sound)
        arguments = sound.co_varnames[: sound.co_argcount]
        assert function.__code__.co_varnames[: sound.co_argcount] == arguments
    assert function.__code__ is sound


@pytest.mark.parametrize("name", FAULTS)
def test_the_tests_of_a_fault_exist(name: str) -> None:
    assert FAULTS[name].tests
    for test in FAULTS[name].tests:
        path, _, function = test.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"def {function}\(", text) if function else "def test_" in text


def test_a_fault_is_in_force_inside_the_block_only() -> None:
    """Also for the name under which another module imported the function."""
    steps = [PureDP(1.0), PureDP(2.0)]
    with planted(FAULTS["composition: the largest epsilon for the sum"].edit):
        assert basic_composition(steps) == PureDP(2.0)
    assert basic_composition(steps) == PureDP(3.0)


@pytest.mark.parametrize(
    ("where", "old", "words"),
    [
        ("privacy.composition:no_such_rule", "steps", "does not exist"),
        ("privacy.composition:group_privacy", "no such text", "occurs 0 times"),
        ("privacy.composition:group_privacy", "size", r"occurs \d+ times"),
    ],
)
def test_a_fault_that_does_not_fit_says_so(where: str, old: str, words: str) -> None:
    with pytest.raises(EditDoesNotFit, match=words):
        planted(Fault("one", "nothing", where, old, "new", ()).edit).__enter__()
