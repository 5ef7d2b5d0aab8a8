"""SQL for the code of a value (the number of its level), for columns that DuckDB can encode.

If the SQL finds no code for a value, its result is NULL. The value is then an error in the records,
or a rare spelling that only `encode` recognises. To find out, `encode` then reads the records.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from geomdp.data.columns import (
    BOOLEAN_TEXTS,
    BooleanColumn,
    CategoricalColumn,
    DiscreteColumn,
    NumericColumn,
)
from geomdp.data.sql_names import quoted_name, quoted_text

#: Types of whole numbers. The text of a whole number is its decimal digits.
WHOLE_TYPES = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")
REAL_TYPES = ("FLOAT", "DOUBLE")
TEXT_TYPES = re.compile(r"VARCHAR|ENUM\(.*\)|DECIMAL\(.*\)", re.DOTALL)
#: Texts that Python and DuckDB read as the same number. The pattern excludes texts such as "1_000"
#: and any digits except 0 to 9.
NUMBER = r"\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*"
WHOLE_FRACTION = r"-?[0-9]+\.0*"


def code_expression(column: DiscreteColumn, name: str, kind: str) -> str | None:
    """SQL for the code of a value in `column`; None if only `encode` can encode this column.

    Parameters
    ----------
    column : DiscreteColumn
        The declaration.
    name : str
        Name of the column in the relation.
    kind : str
        DuckDB type of the column.
    """
    value = quoted_name(name)
    if kind in REAL_TYPES:
        value = f"CASE WHEN isnan({value}) THEN NULL ELSE {value}::DOUBLE END"
    match column:
        case NumericColumn(edges=edges):
            number = _number(value, kind)
            code = None if number is None else _bin(number, edges)
        case CategoricalColumn(categories=categories, other=other):
            # DuckDB and Python write large and tiny real numbers differently. If `other` is
            # declared, such a number would get the code of `other` even if it is a category.
            text = None if other and kind in REAL_TYPES else _text(value, kind)
            fallback = str(len(categories)) if other else "NULL"
            code = None if text is None else _coded(text, categories, fallback)
        case BooleanColumn():
            text = _text(value, kind)
            code = None if text is None else _boolean(text)
    if code is None:
        return None
    missing = str(len(column.labels) - 1) if column.missing else "NULL"
    return f"CASE WHEN ({value}) IS NULL THEN {missing} ELSE {code} END"


def _text(value: str, kind: str) -> str | None:
    """SQL for the text that `columns.as_text` gives; None if there is no such SQL for the type.

    The texts of very large and very small real numbers can differ from those of `as_text`.
    """
    if kind == "VARCHAR":
        return value
    if WHOLE_TYPES.fullmatch(kind) or TEXT_TYPES.fullmatch(kind):
        return f"({value})::VARCHAR"
    if kind == "BOOLEAN":
        return f"CASE WHEN {value} THEN 'True' ELSE 'False' END"
    if kind in REAL_TYPES:
        # Whole numbers below 2^53 are exact as float64 and as BIGINT.
        return (
            f"CASE WHEN abs({value}) < 9007199254740992 AND floor({value}) = ({value}) "
            f"THEN ({value})::BIGINT::VARCHAR ELSE ({value})::VARCHAR END"
        )
    return None


def _number(value: str, kind: str) -> str | None:
    """SQL for a value as float64, or None if there is no such SQL for the type.

    The result of the SQL is NULL for a text that does not match `NUMBER`.
    """
    if kind in REAL_TYPES or WHOLE_TYPES.fullmatch(kind):
        return f"({value})::DOUBLE"
    if TEXT_TYPES.fullmatch(kind):
        text = f"({value})::VARCHAR"
        return (
            f"CASE WHEN regexp_full_match({text}, '{NUMBER}') THEN TRY_CAST({text} AS DOUBLE) END"
        )
    return None


def _coded(text: str, categories: Sequence[str], fallback: str) -> str:
    """SQL for the place of a text among `categories`; `fallback` for any other text.

    If a text such as "3.0" is not a category, it counts as "3".
    """
    kind = f"ENUM({', '.join(map(quoted_text, categories))})"
    code = f"enum_code(TRY_CAST({text} AS {kind}))"
    digits = f"split_part({text}, '.', 1)"
    whole = f"enum_code(TRY_CAST({digits} AS {kind}))"
    return (
        f"coalesce({code}, CASE WHEN regexp_full_match({text}, '{WHOLE_FRACTION}') "
        f"THEN {whole} END, {fallback})"
    )


def _boolean(text: str) -> str:
    """SQL for the code of a text of `BOOLEAN_TEXTS`; NULL for other texts."""
    values = list(BOOLEAN_TEXTS.values())
    return f"{values}[1 + {_coded(text, list(BOOLEAN_TEXTS), 'NULL')}]"


def _bin(number: str, edges: Sequence[float]) -> str:
    """SQL that finds the bin of a number by bisection; NULL outside the edges."""

    def search(low: int, high: int) -> str:
        if high - low == 1:
            return str(low)
        middle = (low + high) // 2
        below, above = search(low, middle), search(middle, high)
        return f"CASE WHEN {number} < {_literal(edges[middle])} THEN {below} ELSE {above} END"

    inside = f"{number} BETWEEN {_literal(edges[0])} AND {_literal(edges[-1])}"
    return f"CASE WHEN {inside} THEN {search(0, len(edges) - 1)} END"


def _literal(value: float) -> str:
    return f"'{value!r}'::DOUBLE"
