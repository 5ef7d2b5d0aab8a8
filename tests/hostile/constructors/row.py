"""A public class or function with good arguments, and the kinds of values that arguments take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: Kinds of arguments: a real number above 0, a whole number of at least 1, a real number above 0
#: and below 1, a finite array with one axis, a finite array with two axes, and an object of a class
#: of this library. Constructors refuse every value that is not of the argument's kind.
KINDS = ("positive", "whole", "share", "vector", "matrix", "object")


@dataclass(frozen=True)
class Constructor:
    """A callable, good keyword arguments, and the kinds of the arguments with a kind in `KINDS`."""

    build: Callable[..., Any]
    good: dict[str, Any]
    kinds: dict[str, str]

    def __post_init__(self) -> None:
        assert set(self.kinds) <= set(self.good), self.good
        assert set(self.kinds.values()) <= set(KINDS), self.kinds


def of(build: Callable[..., Any], kinds: str = "", /, **good: Any) -> Constructor:
    """A row of the table; `kinds` is a text such as "d:whole k:whole"."""
    return Constructor(build, good, dict(pair.split(":") for pair in kinds.split()))
