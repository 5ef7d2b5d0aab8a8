"""What a record can be: combinations of levels that a schema declares impossible.

A pattern names levels of some columns, and a record with one of these levels in every column is
impossible. A refinement, such as county in region, is a list of patterns: for each region, all
counties of other regions. Patterns are declared, so they are public, and records that match one are
refused. Columns that patterns link can be read as one joined column, whose levels are the possible
combinations of theirs. A table of joined columns has no impossible cells, and determines the tables
of its parts.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from geomdp._typing import BoolArray, IntArray

#: Columns, each with the levels that together are impossible.
Pattern: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
#: A column, the coarser column that it refines, and each level of that with its own levels.
Refinement: TypeAlias = tuple[str, str, Pattern]
#: The labels of the codes of columns.
Labels: TypeAlias = Mapping[str, Sequence[str]]
#: For some columns, whether each combination of their levels is impossible.
Forbidden: TypeAlias = dict[tuple[str, ...], BoolArray]

#: Largest number of combinations of levels that are listed: 2^24 truth values are 16 MB.
MAX_COMBINATIONS = 1 << 24
#: Largest number of levels of a joined column.
MAX_JOINED = 1 << 16


# Declarations


def pattern_of(given: object, labels: Labels) -> Pattern:
    """The pattern that `given` declares, a mapping of at least two columns to levels."""
    if len(_pairs(given)) < 2:
        raise ValueError(
            "impossible must list objects of at least 2 columns with levels, such as "
            f'{{"smoker": ["never"], "cigarettes": ["1-9", "10+"]}}, got {given!r}'
        )
    return tuple(
        (name, _levels(name, levels, labels, "impossible")) for name, levels in _pairs(given)
    )


def refinement_of(given: object, labels: Labels) -> Refinement:
    """The refinement that `given` declares: two columns, and the levels in each of the second."""
    fine, coarse, own = given if isinstance(given, tuple) and len(given) == 3 else (given, "", ())
    inside = _pairs(own)
    if not inside:
        raise ValueError(
            'refines must be written {"county": {"region": {"north": ["A", "B"], "south": ["C"]}}} '
            f"for the column county in region, got {own!r} for {fine!r}"
        )
    _levels(coarse, [level for level, _ in inside], labels, "refines")
    parts = tuple((level, _levels(fine, own, labels, "refines")) for level, own in inside)
    placed = [level for _, own in parts for level in own]
    left = sorted({*labels[str(fine)]}.difference(placed))
    twice = [level for level in labels[str(fine)] if placed.count(level) > 1]
    if left or twice or fine == coarse:
        wrong = f"{left} left out" if left else f"{', '.join(twice) or repr(fine)} twice"
        raise ValueError(
            f"refines must place every level of {fine!r} once, in another column, got {wrong}"
        )
    return str(fine), str(coarse), parts


def _pairs(given: object) -> list[tuple[str, object]]:
    """The items of a mapping, or of a tuple of pairs; none of anything else."""
    found = list(given.items()) if isinstance(given, Mapping) else given
    pairs = isinstance(found, list | tuple) and all(
        isinstance(pair, tuple) and len(pair) == 2 for pair in found
    )
    return list(found) if pairs else []  # type: ignore[call-overload]


def _levels(name: object, given: object, labels: Labels, key: str) -> tuple[str, ...]:
    if not isinstance(name, str) or name not in labels:
        raise ValueError(f"{key} must name discrete columns ({', '.join(labels)}), got {name!r}")
    levels = [] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    unknown = [level for level in levels if level not in labels[name]]
    if not levels or unknown or len(set(levels)) < len(levels):
        raise ValueError(
            f"{key} must list different levels of {name!r} ({', '.join(labels[name])}), "
            f"got {given!r}"
        )
    return tuple(levels)


def patterns_of(refinement: Refinement, labels: Labels) -> list[Pattern]:
    """The combinations that a refinement makes impossible; levels it does not name have none."""
    fine, coarse, parts = refinement
    inside = dict(parts)
    apart = (
        (level, tuple(own for own in labels[fine] if own not in inside.get(level, ())))
        for level in labels[coarse]
    )
    return [((coarse, (level,)), (fine, others)) for level, others in apart if others]


def forbidden(patterns: Sequence[Pattern], labels: Labels) -> Forbidden:
    """For each set of columns of a pattern, whether a combination of levels is impossible."""
    found: Forbidden = {}
    for pattern in patterns:
        chosen = dict(pattern)
        names = tuple(name for name in labels if name in chosen)
        shape = [len(labels[name]) for name in names]
        if math.prod(shape) > MAX_COMBINATIONS:
            raise ValueError(
                "columns of an impossible combination must have at most 2^24 combinations of "
                f"levels, got {math.prod(shape)} for {', '.join(names)}"
            )
        matched = ([level in chosen[name] for level in labels[name]] for name in names)
        own = functools.reduce(np.multiply.outer, map(np.array, matched))
        found[names] = found.get(names, np.zeros(shape, dtype=bool)) | own
    return found


# Joined columns


@dataclass(frozen=True, eq=False)
class JoinedColumn:
    """Columns read as one, whose levels are the possible combinations `codes` (levels, columns)."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    codes: IntArray = field(repr=False)

    @property
    def name(self) -> str:
        return " x ".join(self.names)

    @property
    def labels(self) -> range:
        """One label for each level, by its number alone."""
        return range(len(self.codes))

    def numbers(self, codes: Sequence[IntArray]) -> IntArray:
        """The levels (n,) of possible records, from the codes (n,) of the columns."""
        cells = np.ravel_multi_index(tuple(codes), self.sizes)
        order = np.ravel_multi_index(tuple(self.codes.T), self.sizes)  # increases
        return np.asarray(np.searchsorted(order, cells), dtype=np.int64)


def joined_columns(labels: Labels, tables: Forbidden, *, all_linked: bool) -> list[JoinedColumn]:
    """The columns of `labels`, joined if this adds no degree of freedom: at most as many possible
    combinations, less 1, as the sum of the levels less 1. With `all_linked`, all columns that
    patterns link are joined; ``ValueError`` if one then has more than 2^16 levels.
    """
    groups = [
        JoinedColumn((name,), (len(own),), np.arange(len(own))[:, None])
        for name, own in labels.items()
    ]
    while True:
        found = []
        for one, other in itertools.combinations(groups, 2):
            both = {*one.names, *other.names}
            linking = [c for c in tables if {*c} & {*one.names} and {*c} & {*other.names}]
            if linking and (all_linked or any({*c} <= both for c in linking)):
                union = _joined(one, other, [*labels], tables)
                more = len(union.codes) - 1 - (len(one.codes) - 1 + len(other.codes) - 1)
                if all_linked or more <= 0:
                    found.append((more, one, other, union))
        if not found:
            if len({group.name for group in groups}) < len(groups):
                raise ValueError(
                    f"columns must not be named like others joined by ' x ', got {[*labels]}"
                )
            return groups
        _, one, other, union = min(found, key=lambda each: each[0])
        groups = [union if group is one else group for group in groups if group is not other]


def _joined(
    one: JoinedColumn, other: JoinedColumn, order: Sequence[str], tables: Forbidden
) -> JoinedColumn:
    """The possible combinations of two groups; ``ValueError`` for none, or too many."""
    sizes = dict(zip((*one.names, *other.names), (*one.sizes, *other.sizes), strict=True))
    names = tuple(name for name in order if name in sizes)
    pairs = len(one.codes) * len(other.codes)
    if pairs <= MAX_COMBINATIONS:
        first, second = np.divmod(np.arange(pairs), len(other.codes))
        codes = dict(zip(one.names, one.codes[first].T, strict=True))
        codes |= dict(zip(other.names, other.codes[second].T, strict=True))
        found = np.stack([codes[name] for name in names], axis=1)[~impossible(codes, tables)]
        if not len(found):
            raise ValueError(
                "impossible and refines must leave a possible combination of levels, got none for "
                f"{', '.join(names)}"
            )
        if len(found) <= MAX_JOINED:
            found = found[np.lexsort(found.T[::-1])]
            return JoinedColumn(names, tuple(sizes[name] for name in names), found)
        pairs = len(found)
    raise ValueError(
        "columns that impossible combinations link must have at most 2^16 possible "
        f"combinations of levels, got {pairs} for {', '.join(names)}"
    )


def impossible(codes: Mapping[str, IntArray], tables: Forbidden) -> BoolArray:
    """Whether each record (n,) has an impossible combination, as far as the given columns tell."""
    found = np.zeros(len(next(iter(codes.values()))), dtype=bool)
    for names, table in tables.items():
        if {*names} <= {*codes}:
            found |= table[tuple(codes[name] for name in names)]
    return found
