"""The check that an argument of a bound is of the type that its docstring names."""

from __future__ import annotations


def check_type(value: object, kind: type, name: str) -> None:
    """Raise ``ValueError`` unless `value` is a `kind`; `name` is the name of the argument."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOUn" else "a"
        raise ValueError(f"{name} must be {article} {kind.__name__}, got {type(value).__name__}")
