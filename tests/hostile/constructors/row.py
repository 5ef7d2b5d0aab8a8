"""A public constructor with good arguments, and what kind of value each argument is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: Kinds of arguments. A bad value of one of these is always refused:
#: a real number above 0, a whole number from 1 on, a real number above 0 and below 1, finite
#: arrays of one and of two axes, and an object of a class of this library.
KINDS = ("positive", "whole", "share", "vector", "matrix", "object")


@dataclass(frozen=True)
class Constructor:
    """A callable with good keyword arguments, and the kinds of those that have one of `KINDS`."""

    build: Callable[..., Any]
    good: dict[str, Any]
    kinds: dict[str, str]

    def __post_init__(self) -> None:
        assert set(self.kinds) <= set(self.good), self.good
        assert set(self.kinds.values()) <= set(KINDS), self.kinds


def of(build: Callable[..., Any], kinds: str = "", /, **good: Any) -> Constructor:
    """A row of the table: kinds as "name:kind name:kind"."""
    return Constructor(build, good, dict(pair.split(":") for pair in kinds.split()))
