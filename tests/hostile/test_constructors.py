"""Constructors refuse impossible arguments and name them; they raise only documented errors."""

import contextlib
import enum
import inspect
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hostile.constructors import CONSTRUCTORS, NOT_BUILT
from tests.hostile.malformed import ANYTHING, malformed
from tests.hostile.values import EXTREME, NO_NUMBERS, NOT_WHOLE, OUT_OF_RANGE
from tests.public_names import public_objects

#: The arguments that must be numbers. Generated arguments are of the other kinds, too.
ARGUMENTS = [
    (name, key)
    for name, row in CONSTRUCTORS.items()
    for key, kind in row.kinds.items()
    if kind in ("positive", "whole", "share")
]
#: Whole arguments that are tested with huge values. For most other whole arguments, such as
#: dimensions, a huge value would need too much memory or time.
COUNTS = ("n", "queries", "steps", "size", "cutoff", "sparsity")


def build(name: str, key: str, value: Any) -> None:
    row = CONSTRUCTORS[name]
    row.build(**(row.good | {key: value}))


def refused(name: str, key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=key.replace("_", ".")):
        build(name, key, value)


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_good_arguments_are_taken(name):
    row = CONSTRUCTORS[name]
    row.build(**row.good)


@pytest.mark.parametrize(("name", "key"), ARGUMENTS)
def test_what_is_no_such_number_is_refused(name, key):
    kind = CONSTRUCTORS[name].kinds[key]
    others = {"whole": NOT_WHOLE, "share": [1, 1.0, 2.0, 10**400]}.get(kind, [])
    for value in [*NO_NUMBERS, *OUT_OF_RANGE, *others]:
        refused(name, key, value)
    if kind != "whole" or key in COUNTS:
        for value in EXTREME:  # taken or refused
            with contextlib.suppress(ValueError):
                build(name, key, value)


def test_there_are_many_malformed_arguments():
    assert len(ARGUMENTS) * (len(NO_NUMBERS) + len(OUT_OF_RANGE)) >= 1500


# --- generated arguments --------------------------------------------------------------------


#: Values that a test generates for each constructor, in the default suite and in the slow suite.
EXAMPLES = [12, pytest.param(400, marks=pytest.mark.slow)]
WITH_KINDS = [name for name, row in CONSTRUCTORS.items() if row.kinds]
WITHOUT_KINDS = [name for name, row in CONSTRUCTORS.items() if set(row.good) > set(row.kinds)]


def takes_arguments(kind: type) -> bool:
    """Whether a caller can build the class, and its constructor has parameters."""
    abstract = inspect.isabstract(kind) or getattr(kind, "_is_protocol", False)
    if abstract or issubclass(kind, enum.Enum | BaseException):
        return False
    return bool(inspect.signature(kind).parameters)


def test_every_public_class_has_a_row_or_a_reason():
    classes = {name: each for name, each in public_objects().items() if inspect.isclass(each)}
    built = {row.build for row in CONSTRUCTORS.values()}
    missing = [
        name
        for name, kind in classes.items()
        if takes_arguments(kind) and kind not in built and name not in NOT_BUILT
    ]
    assert missing == []
    assert set(NOT_BUILT) <= set(classes)
    assert not [name for name in NOT_BUILT if classes[name] in built]


@pytest.mark.parametrize("examples", EXAMPLES)
@pytest.mark.parametrize("name", WITH_KINDS)
def test_malformed_arguments_are_refused(name, examples):
    row = CONSTRUCTORS[name]

    @settings(max_examples=examples)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(row.kinds)))
        value = data.draw(malformed(row.kinds[key], row.good[key]))
        with pytest.raises(ValueError, match=r"."):
            build(name, key, value)

    check()


@pytest.mark.parametrize("examples", EXAMPLES)
@pytest.mark.parametrize("name", WITHOUT_KINDS)
def test_other_arguments_are_taken_or_refused(name, examples):
    """An argument for which no kind is stated may accept an odd value, such as a seed of -0.0."""
    row = CONSTRUCTORS[name]

    @settings(max_examples=examples)
    @given(st.sampled_from(sorted(set(row.good) - set(row.kinds))), ANYTHING)
    def check(key: str, value: Any) -> None:
        with contextlib.suppress(ValueError, TypeError):
            build(name, key, value)

    check()
