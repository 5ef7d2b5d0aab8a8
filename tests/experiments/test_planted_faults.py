"""The catalogue of planted faults fits the library: every edit can be made, and is undone."""

import pytest

from experiments.planting.catalogue import FAULTS, PARTS
from experiments.planting.edits import Edit, EditDoesNotFit, planted
from geomdp.privacy import PureDP, basic_composition
from tests.experiments.planted_edits import are_tests, changes_one_function_and_is_undone


def test_there_are_many_faults_with_names_of_their_own():
    assert len(FAULTS) == sum(map(len, PARTS.values()))
    assert len(FAULTS) >= 150


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_changes_one_function_and_is_undone(name):
    changes_one_function_and_is_undone(FAULTS[name].edit)


@pytest.mark.parametrize("name", FAULTS)
def test_the_tests_of_a_fault_exist(name):
    are_tests(FAULTS[name].tests)


@pytest.mark.parametrize("place", ["TestOthers::", ""])
def test_a_test_that_another_class_holds_is_not_found(place):
    """Pytest would run nothing for such an id, so no test would notice the fault."""
    file = "tests/mechanisms/test_arguments.py"
    are_tests([f"{file}::TestContainment::test_accepts"])
    with pytest.raises(AssertionError):
        are_tests([f"{file}::{place}test_accepts"])


def test_a_fault_is_in_force_inside_the_block_only():
    """The fault reaches `basic_composition` although this module has imported it before."""
    steps = [PureDP(1.0), PureDP(2.0)]
    with planted(FAULTS["composition: the largest epsilon in place of the sum"].edit):
        assert basic_composition(steps) == PureDP(2.0)
    assert basic_composition(steps) == PureDP(3.0)


@pytest.mark.parametrize(("where", "old", "words"), [
    ("privacy.definitions:no_such_rule", "steps", "does not exist"),
    ("privacy.definitions:group_privacy", "no such text", "occurs 0 times"),
    ("privacy.definitions:group_privacy", "size", r"occurs \d+ times"),
    ("_numerics.linalg:farthest_points", "least: float = 0.0", "is a default"),
])  # fmt: skip
def test_a_fault_that_does_not_fit_says_so(where, old, words):
    with pytest.raises(EditDoesNotFit, match=words):
        planted(Edit(f"geomdp.{where}", old, "new")).__enter__()
