"""Constructors refuse impossible arguments and name them; they raise only documented errors."""

import contextlib
import enum
import inspect
from typing import Any

import pytest

from tests.hostile.constructors import CONSTRUCTORS, NOT_BUILT
from tests.hostile.values import ENDS, EXTREME, NO_NUMBERS, NOT_WHOLE, OUT_OF_RANGE, refused_of
from tests.public_names import public_objects

NUMBERS = ("positive", "whole", "share")
#: All arguments that have a kind.
ARGUMENTS = [(name, key) for name, row in CONSTRUCTORS.items() for key in row.kinds]
#: Whole arguments that are tested with huge values. For most other whole arguments, such as
#: dimensions, a huge value would need too much memory or time.
COUNTS = ("n", "queries", "steps", "size", "cutoff", "sparsity")


def build(name: str, key: str, value: Any) -> None:
    row = CONSTRUCTORS[name]
    row.build(**(row.good | {key: value}))


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_good_arguments_are_taken(name):
    row = CONSTRUCTORS[name]
    row.build(**row.good)


@pytest.mark.parametrize(("name", "key"), ARGUMENTS)
def test_what_is_not_of_the_kind_of_an_argument_is_refused(name, key):
    row = CONSTRUCTORS[name]
    kind = row.kinds[key]
    said = key.replace("_", ".") if kind in NUMBERS else "."
    for value in refused_of(kind, row.good[key]):
        with pytest.raises(ValueError, match=said):
            build(name, key, value)
    if kind in NUMBERS and (kind != "whole" or key in COUNTS):
        for value in EXTREME:  # taken or refused
            with contextlib.suppress(ValueError):
                build(name, key, value)


def test_there_are_thousands_of_malformed_arguments():
    rows = ((CONSTRUCTORS[name], key) for name, key in ARGUMENTS)
    assert sum(len(refused_of(row.kinds[key], row.good[key])) for row, key in rows) >= 5000


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_other_arguments_are_taken_or_refused(name):
    """An argument for which no kind is stated may accept an odd value, such as a seed of -0.0."""
    row = CONSTRUCTORS[name]
    for key in row.good.keys() - row.kinds.keys():
        for value in [*NO_NUMBERS, *OUT_OF_RANGE, *NOT_WHOLE, *ENDS]:
            with contextlib.suppress(ValueError, TypeError):
                build(name, key, value)


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
