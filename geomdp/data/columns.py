"""The four kinds of declared column; what they declare is public and not read from records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, TypeAlias

import numpy as np

#: Texts of the two values of a boolean column, as records may spell them.
BOOLEAN_TEXTS = {
    "0": 0,
    "false": 0,
    "False": 0,
    "FALSE": 0,
    "1": 1,
    "true": 1,
    "True": 1,
    "TRUE": 1,
}


@dataclass(frozen=True)
class CategoricalColumn:
    """A column with declared categories; category number i has code i.

    Categories are compared as text, exactly: no trimming, no change of case. Whole numbers, in
    the declaration or in the records, count as their decimal digits, so 3, 3.0 and "3" are one
    category.

    Parameters
    ----------
    name : str
        Name of the column in the records.
    categories : sequence of str or int
        All categories, distinct, at least 1; kept as texts.

    Raises
    ------
    ValueError
        An empty name, no categories, a category twice, or one that is neither text nor a whole
        number.
    """

    name: str
    categories: tuple[str, ...]

    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not _is_list(self.categories) or not self.categories:
            raise ValueError(
                f"column {self.name!r}: categories must be a list of at least 1, "
                f"got {self.categories!r}"
            )
        texts = tuple(_category(category, self.name) for category in self.categories)
        repeated = sorted({text for text in texts if texts.count(text) > 1})
        if repeated:
            raise ValueError(f"column {self.name!r}: categories must differ, {repeated} do not")
        object.__setattr__(self, "categories", texts)

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per code: the categories."""
        return self.categories

    def to_dict(self) -> dict[str, object]:
        """The declaration as plain values, ready for JSON."""
        return {"name": self.name, "kind": self.kind, "categories": list(self.categories)}


@dataclass(frozen=True)
class BooleanColumn:
    """A column of two values: code 0 for false, 1 for true.

    Records hold booleans, the numbers 0 and 1, or one of the texts in `BOOLEAN_TEXTS`.

    Parameters
    ----------
    name : str
        Name of the column in the records.

    Raises
    ------
    ValueError
        An empty name.
    """

    name: str

    kind: ClassVar[str] = "boolean"

    def __post_init__(self) -> None:
        _check_name(self.name)

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per code."""
        return ("false", "true")

    def to_dict(self) -> dict[str, object]:
        """The declaration as plain values, ready for JSON."""
        return {"name": self.name, "kind": self.kind}


@dataclass(frozen=True)
class NumericColumn:
    """A numeric column, binned: code i for e_i <= x < e_(i+1); the last bin is closed.

    A value below the first or above the last edge is an error, not a category.

    Parameters
    ----------
    name : str
        Name of the column in the records.
    edges : sequence of float
        Edges e_0 < e_1 < ... < e_k, k >= 1, in the units of the column. They must come from
        public knowledge, not from the records.

    Raises
    ------
    ValueError
        An empty name, fewer than 2 edges, or edges that are not finite and increasing.
    """

    name: str
    edges: tuple[float, ...]

    kind: ClassVar[str] = "numeric"

    def __post_init__(self) -> None:
        _check_name(self.name)
        edges = _numbers(self.edges, f"column {self.name!r}: edges")
        if len(edges) < 2 or any(low >= high for low, high in pairwise(edges)):
            raise ValueError(
                f"column {self.name!r}: edges must be at least 2, increasing, got {self.edges!r}"
            )
        object.__setattr__(self, "edges", edges)

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per code: the interval."""
        bins = list(pairwise(self.edges))
        closing = [")"] * (len(bins) - 1) + ["]"]
        return tuple(
            f"[{as_text(low)}, {as_text(high)}{close}"
            for (low, high), close in zip(bins, closing, strict=True)
        )

    def to_dict(self) -> dict[str, object]:
        """The declaration as plain values, ready for JSON."""
        return {"name": self.name, "kind": self.kind, "edges": list(self.edges)}


@dataclass(frozen=True)
class RealColumn:
    """A real column with public bounds, mapped to [-1, 1].

    x becomes 2 (x - low) / (high - low) - 1. A value outside the bounds is an error; it is not
    clipped.

    Parameters
    ----------
    name : str
        Name of the column in the records.
    bounds : sequence of float
        (low, high), low < high, in the units of the column, from public knowledge.

    Raises
    ------
    ValueError
        An empty name, or bounds that are not two finite increasing numbers with a finite
        difference.
    """

    name: str
    bounds: tuple[float, float]

    kind: ClassVar[str] = "real"

    def __post_init__(self) -> None:
        _check_name(self.name)
        bounds = _numbers(self.bounds, f"column {self.name!r}: bounds")
        if len(bounds) != 2 or not 0 < bounds[1] - bounds[0] < math.inf:
            raise ValueError(
                f"column {self.name!r}: bounds must be 2 numbers, increasing, got {self.bounds!r}"
            )
        object.__setattr__(self, "bounds", bounds)

    def to_dict(self) -> dict[str, object]:
        """The declaration as plain values, ready for JSON."""
        return {"name": self.name, "kind": self.kind, "bounds": list(self.bounds)}


#: Columns with finitely many codes.
DiscreteColumn: TypeAlias = CategoricalColumn | BooleanColumn | NumericColumn
Column: TypeAlias = DiscreteColumn | RealColumn


def as_text(value: object) -> str:
    """The text by which a value is compared: whole numbers as digits, whatever their type."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise ValueError(f"a column's name must be text of at least 1 character, got {name!r}")


def _category(category: object, name: str) -> str:
    """A declared category as text."""
    if isinstance(category, bool) or not isinstance(category, str | int | np.integer):
        raise ValueError(
            f"column {name!r}: a category must be text or a whole number, got {category!r}"
        )
    return as_text(category)


def _is_list(values: object) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, str | bytes)


def _numbers(values: Sequence[float], name: str) -> tuple[float, ...]:
    """`values` as finite floats."""
    if not _is_list(values):
        raise ValueError(f"{name} must be a list of numbers, got {values!r}")
    for value in values:
        is_number = isinstance(value, int | float | np.integer | np.floating)
        if not is_number or isinstance(value, bool) or not math.isfinite(value):
            raise ValueError(f"{name} must be finite numbers, got {value!r}")
    return tuple(float(value) for value in values)
