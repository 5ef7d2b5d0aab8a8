"""The four kinds of declared column.

A declaration is public and does not depend on records, unless its mark `drafted` says so.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, TypeAlias

import numpy as np

from geomdp._validation import is_whole, real_number

#: The texts for false and true in a boolean column, and the code of each text.
BOOLEAN_TEXTS = {
    **dict.fromkeys(("0", "false", "False", "FALSE"), 0),
    **dict.fromkeys(("1", "true", "True", "TRUE"), 1),
}
#: Label of the code for values that are no declared category, and label of the code for missing
#: values.
OTHER, MISSING = "(other)", "(missing)"
#: Unicode categories of characters that a terminal or an editor runs instead of showing: controls,
#: halves of surrogate pairs, line and paragraph separators.
CONTROLS = {"Cc", "Cs", "Zl", "Zp"}
#: Bidirectional classes of the characters that reverse the order in which others are shown.
REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


class _Declaration:
    """What all kinds of column have in common: a name, flags, and their form in a schema file."""

    name: str
    drafted: bool
    confirmed: bool

    kind: ClassVar[str]
    #: The parameter with the values that this kind must declare; empty if there is none.
    key: ClassVar[str]
    flags: ClassVar[tuple[str, ...]]

    def _check_name_and_flags(self) -> None:
        name = self.name
        check_name(name)
        for flag in self.flags:
            value = getattr(self, flag)
            if not isinstance(value, bool):
                raise ValueError(f"column {name!r}: {flag} must be true or false, got {value!r}")
        if self.drafted and self.confirmed:
            raise ValueError(f"column {name!r}: either drafted or confirmed can be true, not both")

    def to_dict(self) -> dict[str, object]:
        """The declaration as in a schema file: no name, and no flags that are false."""
        values = {self.key: list(getattr(self, self.key))} if self.key else {}
        raised: dict[str, object] = {flag: True for flag in self.flags if getattr(self, flag)}
        return {"kind": self.kind, **values, **raised}

    @property
    def caveat(self) -> str:
        """What was read from the records, such as "edges of age"; empty if nothing was."""
        if not self.drafted:
            return ""
        missing = " and missing values" if getattr(self, "missing", False) else ""
        return f"{self.key or 'levels'}{missing} of {self.name}"


@dataclass(frozen=True)
class CategoricalColumn(_Declaration):
    """A column with declared categories, which have the codes 0, 1, ... in their order.

    Values are compared with categories as texts; blanks and the case of letters matter. A whole
    number is compared as its decimal digits. For example, the declared categories 3 and "3" are the
    same. The values 3, 3.0 and "3" in records belong to this category. The text "3.0" also belongs
    to this category, unless "3.0" is a category of its own.

    Parameters
    ----------
    name : str
        Name of the column in the records.
    categories : sequence of str or int
        All categories: at least 1, all different. They are stored as texts.
    other : bool
        If True, all values that are not listed share one code. This code follows the codes of the
        categories. If False, such a value is an error.
    missing : bool
        If True, missing values have a code, which is the last code. If False, a missing value is
        an error.
    drafted, confirmed : bool
        Whether the declaration was read from the records, so that a release has no privacy claim;
        whether it was drafted, and the curator then stated that it is public.

    Raises
    ------
    ValueError
        If the name is empty, there are no categories, or two categories are equal. If a category is
        neither text nor a whole number. If the name or a category has a control character. If a
        category is ``(other)`` and `other` is True, or ``(missing)`` and `missing` is True.

    Examples
    --------
    >>> import geomdp as gd
    >>> column = gd.data.CategoricalColumn("region", ["north", "south"], missing=True)
    >>> column.labels
    ('north', 'south', '(missing)')
    """

    name: str
    categories: tuple[str, ...]
    other: bool = False
    missing: bool = False
    drafted: bool = False
    confirmed: bool = False

    kind = "categorical"
    key = "categories"
    flags = ("other", "missing", "drafted", "confirmed")

    def __post_init__(self) -> None:
        self._check_name_and_flags()
        if not _is_list(self.categories) or not self.categories:
            raise ValueError(
                f"column {self.name!r}: categories must be a list of at least 1 category, "
                f"got {self.categories!r}"
            )
        texts = tuple(_category(category, self.name) for category in self.categories)
        object.__setattr__(self, "categories", texts)
        repeated = sorted({text for text in self.labels if self.labels.count(text) > 1})
        if repeated:
            raise ValueError(f"column {self.name!r}: categories must differ, {repeated} do not")

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per code: the categories, then ``(other)`` and ``(missing)`` if declared."""
        return (
            *self.categories,
            *([OTHER] if self.other else []),
            *([MISSING] if self.missing else []),
        )


@dataclass(frozen=True)
class BooleanColumn(_Declaration):
    """A column of two values: code 0 for false, 1 for true.

    Records hold booleans, the numbers 0 and 1 (also as texts such as "1.0"), or one of the texts in
    `BOOLEAN_TEXTS`.

    Parameters
    ----------
    name : str
        Name of the column in the records.
    missing : bool
        If True, missing values have the code 2. If False, a missing value is an error.
    drafted, confirmed : bool
        Whether the declaration was read from the records, so that a release has no privacy claim;
        whether it was drafted, and the curator then stated that it is public.

    Raises
    ------
    ValueError
        If the name is empty or has a control character.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.data.BooleanColumn("smoker").labels
    ('false', 'true')
    """

    name: str
    missing: bool = False
    drafted: bool = False
    confirmed: bool = False

    kind = "boolean"
    key = ""
    flags = ("missing", "drafted", "confirmed")

    def __post_init__(self) -> None:
        self._check_name_and_flags()

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per code."""
        return ("false", "true", MISSING) if self.missing else ("false", "true")


@dataclass(frozen=True)
class NumericColumn(_Declaration):
    """A column of numbers in bins: x has code i if e_i <= x < e_(i+1), for edges e_0 < ... < e_k.

    The value e_k is in the last bin. A value below e_0 or above e_k is an error.

    Parameters
    ----------
    name : str
        Name of the column in the records.
    edges : sequence of float
        Edges e_0 < e_1 < ... < e_k, k >= 1, in the units of the column. The edges must come from
        public knowledge, not from the records.
    missing : bool
        If True, missing values have a code, which is the last code. If False, a missing value is
        an error.
    drafted, confirmed : bool
        Whether the declaration was read from the records, so that a release has no privacy claim;
        whether it was drafted, and the curator then stated that it is public.

    Raises
    ------
    ValueError
        If the name is empty or has a control character, there are fewer than 2 edges, or the edges
        are not finite and increasing.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.data.NumericColumn("age", [0, 18, 65, 120]).labels
    ('[0, 18)', '[18, 65)', '[65, 120]')
    """

    name: str
    edges: tuple[float, ...]
    missing: bool = False
    drafted: bool = False
    confirmed: bool = False

    kind = "numeric"
    key = "edges"
    flags = ("missing", "drafted", "confirmed")

    def __post_init__(self) -> None:
        self._check_name_and_flags()
        edges = _numbers(self.edges, f"column {self.name!r}: edges")
        if len(edges) < 2 or any(low >= high for low, high in pairwise(edges)):
            raise ValueError(
                f"column {self.name!r}: edges must be 2 or more numbers, increasing, "
                f"got {self.edges!r}"
            )
        object.__setattr__(self, "edges", edges)

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per code: the intervals, then ``(missing)`` if declared."""
        bins = list(pairwise(self.edges))
        closing = [")"] * (len(bins) - 1) + ["]"]
        intervals = tuple(
            f"[{as_text(low)}, {as_text(high)}{close}"
            for (low, high), close in zip(bins, closing, strict=True)
        )
        return (*intervals, MISSING) if self.missing else intervals


@dataclass(frozen=True)
class RealColumn(_Declaration):
    """A column of real numbers with public bounds, mapped to [-1, 1].

    x becomes 2 (x - low) / (high - low) - 1. If `clip` is False, a value outside the bounds is an
    error.

    Parameters
    ----------
    name : str
        Name of the column in the records.
    bounds : sequence of float
        (low, high), low < high, in the units of the column, from public knowledge.
    clip : bool
        If True, a finite value outside the bounds is moved to the nearest bound. Answers are then
        about the clipped values.
    drafted, confirmed : bool
        Whether the declaration was read from the records, so that a release has no privacy claim;
        whether it was drafted, and the curator then stated that it is public.

    Raises
    ------
    ValueError
        If the name is empty or has a control character. If the bounds are not two finite numbers,
        low < high, with a finite difference.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> schema = gd.data.Schema([gd.data.RealColumn("income", bounds=(0, 100), clip=True)])
    >>> records = pd.DataFrame({"income": [0.0, 25.0, 120.0]})
    >>> next(gd.data.encode(records, schema, schema.universe()))
    array([[-1. ],
           [-0.5],
           [ 1. ]])
    """

    name: str
    bounds: tuple[float, float]
    clip: bool = False
    drafted: bool = False
    confirmed: bool = False

    kind = "real"
    key = "bounds"
    flags = ("clip", "drafted", "confirmed")

    def __post_init__(self) -> None:
        self._check_name_and_flags()
        bounds = _numbers(self.bounds, f"column {self.name!r}: bounds")
        if len(bounds) != 2 or not 0 < bounds[1] - bounds[0] < math.inf:
            raise ValueError(
                f"column {self.name!r}: bounds must be 2 numbers, increasing, got {self.bounds!r}"
            )
        object.__setattr__(self, "bounds", bounds)


#: Columns with finitely many codes.
DiscreteColumn: TypeAlias = CategoricalColumn | BooleanColumn | NumericColumn
Column: TypeAlias = DiscreteColumn | RealColumn


def as_text(value: object) -> str:
    """The text that stands for a value in comparisons. A whole-number float becomes its digits."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value)


def check_name(name: object) -> None:
    """Raise ``ValueError`` if `name` cannot be the name of a column."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"a column's name must be text of at least 1 character, got {name!r}")
    if not is_shown(name):
        raise ValueError(f"a column's name must have no control character, got {name!r}")


def is_shown(text: str) -> bool:
    """Whether `text` is shown as it is: no terminal escape, separator of lines, or reordering."""
    return not any(
        unicodedata.category(character) in CONTROLS
        or unicodedata.bidirectional(character) in REORDERING
        for character in text
    )


def _category(category: object, name: str) -> str:
    """A declared category as text."""
    if not isinstance(category, str) and not is_whole(category):
        raise ValueError(
            f"column {name!r}: a category must be text or a whole number, got {category!r}"
        )
    text = as_text(category)
    if not is_shown(text):
        raise ValueError(
            f"column {name!r}: a category must have no control character, got {text!r}"
        )
    return text


def _is_list(values: object) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, str | bytes)


def _numbers(values: Sequence[float], name: str) -> tuple[float, ...]:
    """`values` as finite floats."""
    if not _is_list(values):
        raise ValueError(f"{name} must be a list of numbers, got {values!r}")
    for value in values:
        is_number = isinstance(value, int | float | np.integer | np.floating)
        if not is_number or isinstance(value, bool) or not math.isfinite(real_number(value)):
            raise ValueError(f"{name} must be finite numbers, got {value!r}")
    return tuple(float(value) for value in values)
