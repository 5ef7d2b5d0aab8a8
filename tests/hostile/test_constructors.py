"""Constructors refuse impossible arguments by a `ValueError` that names the argument."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from tests.hostile.constructors import CONSTRUCTORS
from tests.hostile.values import EXTREME, NO_NUMBERS, NOT_WHOLE, OUT_OF_RANGE

#: The arguments that must be numbers. `test_malformed_arguments` also tests the other kinds.
ARGUMENTS = [
    (name, key)
    for name, row in CONSTRUCTORS.items()
    for key, kind in row.kinds.items()
    if kind in ("positive", "whole", "share")
]
#: Whole arguments that are tested with huge values. For most other whole arguments, such as
#: dimensions, a huge value would need too much memory or time.
COUNTS = ("n", "queries", "steps", "size", "cutoff", "sparsity")


def refused(name: str, key: str, value: Any) -> None:
    row = CONSTRUCTORS[name]
    with pytest.raises(ValueError, match=key.replace("_", ".")):
        row.build(**(row.good | {key: value}))


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_good_arguments_are_taken(name):
    row = CONSTRUCTORS[name]
    row.build(**row.good)


@pytest.mark.parametrize(("name", "key"), ARGUMENTS)
def test_what_is_no_number_is_refused(name, key):
    for value in NO_NUMBERS.values():
        refused(name, key, value)


@pytest.mark.parametrize(("name", "key"), ARGUMENTS)
def test_numbers_out_of_range_are_refused(name, key):
    for value in OUT_OF_RANGE.values():
        refused(name, key, value)
    kind = CONSTRUCTORS[name].kinds[key]
    if kind == "whole":
        for value in NOT_WHOLE.values():
            refused(name, key, value)
    if kind == "share":
        for value in (1, 1.0, 2.0, 10**400):
            refused(name, key, value)


@pytest.mark.parametrize(("name", "key"), ARGUMENTS)
def test_numbers_at_the_ends_of_floats_are_taken_or_refused(name, key):
    row = CONSTRUCTORS[name]
    for value in EXTREME.values():
        if row.kinds[key] == "whole" and key not in COUNTS:
            continue
        with contextlib.suppress(ValueError):
            row.build(**(row.good | {key: value}))


def test_there_are_many_malformed_arguments():
    assert len(ARGUMENTS) * (len(NO_NUMBERS) + len(OUT_OF_RANGE)) >= 1500
