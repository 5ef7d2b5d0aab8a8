"""The kinds of declared column: public, unless the mark `drafted` says otherwise."""

from __future__ import annotations

import datetime
import enum
import functools
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

import numpy as np

from geomdp._validation import is_whole, real_number

#: Words for false and true in English, French, German, Dutch, Spanish, Italian, Portuguese, Polish
#: and the Scandinavian languages; none means false in one of them and true in another.
FALSE = ("0", "false", "f", "no", "n", "non", "nein", "nee", "nej", "nei", "não", "nao", "nie")
TRUE = ("1", "true", "t", "yes", "y", "oui", "ja", "sí", "si", "sì", "sim", "tak")
#: The texts for false and true, in three spellings of the case, and the code of each text.
BOOLEAN_TEXTS = {
    spelt: code
    for code, words in enumerate((FALSE, TRUE))
    for word in words
    for spelt in (word, word.capitalize(), word.upper())
}
#: Marks between thousands: none, comma, point, apostrophe, and a plain, fixed or narrow blank.
THOUSANDS = ("", ",", ".", "'", " ", "\u00a0", "\u202f")
#: Labels of the codes for values that are no declared category, and for missing values.
OTHER, MISSING = "(other)", "(missing)"
#: Unicode categories of controls, halves of surrogate pairs, and separators of lines.
CONTROLS = {"Cc", "Cs", "Zl", "Zp"}
#: Bidirectional classes of the characters that reverse the order in which others are shown.
REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


class _Declaration:
    """A name, flags, and the form in a schema file: what all kinds of column have in common."""

    name: str
    drafted: bool
    confirmed: bool

    kind: ClassVar[str]
    #: The parameter with the values that this kind must declare; empty if there is none.
    key: ClassVar[str]

    def __post_init__(self) -> None:
        name = self.name
        check_name(name)
        for each in fields(self):  # type: ignore[arg-type]  # every kind is a dataclass
            value = getattr(self, each.name)
            if each.default is False and not isinstance(value, bool):
                what = f"column {name!r}: {each.name}"
                raise ValueError(f"{what} must be true or false, got {value!r}")
        if self.drafted and self.confirmed:
            raise ValueError(f"column {name!r}: either drafted or confirmed can be true, not both")
        given = getattr(self, "missing_texts", ())
        if not _is_list(given) or not all(isinstance(t, str) and is_shown(t) for t in given):
            what = f"column {name!r}: missing_texts"
            raise ValueError(f"{what} must be a list of texts, got {given!r}")
        if given:
            if both := sorted(set(given) & set(getattr(self, "categories", ()))):
                raise ValueError(f"column {name!r}: {both} are missing_texts and categories")
            object.__setattr__(self, "missing", True)
            object.__setattr__(self, "missing_texts", tuple(given))
        decimal, thousands = getattr(self, "decimal", "."), getattr(self, "thousands", "")
        if decimal not in (".", ",") or thousands not in THOUSANDS or decimal == thousands:
            raise ValueError(
                f"column {name!r}: decimal must be '.' or ',', thousands one of {THOUSANDS}, "
                f"and they must differ, got {decimal!r} and {thousands!r}"
            )

    def to_dict(self) -> dict[str, object]:
        """The declaration as in a schema file: no name, and no parameter that has its default."""
        given = _given(self)
        del given["name"]
        written = {k: [*map(_written, v)] if isinstance(v, tuple) else v for k, v in given.items()}
        return {"kind": self.kind, **written}

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
    number is compared as its decimal digits: the declared categories 3 and "3" are the same, and
    the values 3, 3.0 and "3" in records belong to this category. So does the text "3.0", unless
    "3.0" is a category of its own.

    Parameters
    ----------
    name : str
        Name of the column in the records, not empty. No text here has a control character.
    categories : sequence of str or int
        All categories: at least 1, all different. With `loose`, they differ by more than blanks and
        case.
    other : bool
        If True, all values that are not listed share one code, which follows the codes of the
        categories. If False, such a value is an error.
    missing : bool
        If True, missing values have the last code. If False, a missing value is an error.
    missing_texts : sequence of str
        Texts that also stand for a missing value, such as "NA". They make `missing` True.
    loose : bool
        Whether texts are compared without the blanks at their ends and without the case of letters.
    drafted, confirmed : bool
        Whether the declaration was read from the records, so that a release has no privacy claim;
        whether it was drafted, and the curator then stated that it is public.

    Raises
    ------
    ValueError
        For a parameter that is not as stated, here and in all other kinds of column.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.data.CategoricalColumn("region", ["north", "south"], missing=True).labels
    ('north', 'south', '(missing)')
    """

    name: str
    categories: tuple[str, ...]
    other: bool = False
    missing: bool = False
    missing_texts: tuple[str, ...] = ()
    loose: bool = False
    drafted: bool = False
    confirmed: bool = False

    kind = "categorical"
    key = "categories"

    def __post_init__(self) -> None:
        if not _is_list(self.categories) or not self.categories:
            raise ValueError(
                f"column {self.name!r}: categories must be a list of at least 1 category, "
                f"got {self.categories!r}"
            )
        given: Sequence[object] = self.categories
        where = f"column {self.name!r}: a category must"
        for category in given:
            if not isinstance(category, str) and not is_whole(category):
                raise ValueError(f"{where} be text or a whole number, got {category!r}")
            if not is_shown(text := as_text(category)):
                raise ValueError(f"{where} have no control character, got {text!r}")
        object.__setattr__(self, "categories", tuple(map(as_text, given)))
        super().__post_init__()
        compared = [loosened(label) if self.loose else label for label in self.labels]
        repeated = sorted({text for text in compared if compared.count(text) > 1})
        if repeated:
            raise ValueError(f"column {self.name!r}: categories must differ, {repeated} do not")

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per code: the categories, then ``(other)`` and ``(missing)`` if declared."""
        return (*self.categories, *[OTHER] * self.other, *[MISSING] * self.missing)


@dataclass(frozen=True)
class BooleanColumn(_Declaration):
    """A column of two values: code 0 for false, 1 for true.

    Records hold booleans, the numbers 0 and 1 (also as texts such as "1.0"), or one of the texts in
    `BOOLEAN_TEXTS`: true and false, t and f, yes and no, y and n, and yes and no in ten more
    languages, each in lower case, in upper case or with one capital letter.

    Parameters
    ----------
    name, missing, missing_texts, drafted, confirmed : str, bool, sequence of str, bool, bool
        As for `CategoricalColumn`. Missing values have the code 2.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.data.BooleanColumn("smoker").labels
    ('false', 'true')
    """

    name: str
    missing: bool = False
    missing_texts: tuple[str, ...] = ()
    drafted: bool = False
    confirmed: bool = False

    kind = "boolean"
    key = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per code."""
        return ("false", "true", *[MISSING] * self.missing)


@dataclass(frozen=True)
class NumericColumn(_Declaration):
    """A column of numbers in bins: x has code i if e_i <= x < e_(i+1), for edges e_0 < ... < e_k.

    The value e_k is in the last bin. A value below e_0 or above e_k is an error.

    Parameters
    ----------
    name, edges : str, sequence of float
        Name, and edges e_0 < e_1 < ... < e_k, k >= 1, finite, in the units of the column, from
        public knowledge and not from the records.
    missing, missing_texts : bool, sequence of str
        As for `CategoricalColumn`.
    decimal, thousands : str
        The decimal mark, ``"."`` or ``","``, and the mark between thousands, one of `THOUSANDS`; a
        text has all marks between its thousands, or none.
    drafted, confirmed : bool
        As for `CategoricalColumn`.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.data.NumericColumn("age", [0, 18, 65, 120]).labels
    ('[0, 18)', '[18, 65)', '[65, 120]')
    """

    name: str
    edges: tuple[float, ...]
    missing: bool = False
    missing_texts: tuple[str, ...] = ()
    decimal: str = "."
    thousands: str = ""
    drafted: bool = False
    confirmed: bool = False

    kind = "numeric"
    key = "edges"

    def __post_init__(self) -> None:
        super().__post_init__()
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
        *bins, last = (f"[{low}, {high}" for low, high in pairwise(map(as_text, self.edges)))
        return (*(f"{each})" for each in bins), f"{last}]", *[MISSING] * self.missing)


@dataclass(frozen=True)
class RealColumn(_Declaration):
    """A column of real numbers with public bounds, mapped to [-1, 1].

    x becomes 2 (x - low) / (high - low) - 1. If `clip` is False, a value outside the bounds is an
    error.

    Parameters
    ----------
    name, bounds : str, sequence of float
        Name, and (low, high), finite, low < high, in the units of the column, from public
        knowledge.
    clip : bool
        If True, a finite value outside the bounds is moved to the nearest bound, and answers are
        about the clipped values.
    decimal, thousands, drafted, confirmed : str, str, bool, bool
        As for `NumericColumn`.

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
    decimal: str = "."
    thousands: str = ""
    drafted: bool = False
    confirmed: bool = False

    kind = "real"
    key = "bounds"

    def __post_init__(self) -> None:
        super().__post_init__()
        bounds = _numbers(self.bounds, f"column {self.name!r}: bounds")
        if len(bounds) != 2 or not 0 < bounds[1] - bounds[0] < math.inf:
            raise ValueError(
                f"column {self.name!r}: bounds must be 2 numbers, increasing, got {self.bounds!r}"
            )
        object.__setattr__(self, "bounds", bounds)


class Calendar(enum.StrEnum):
    """The bins of a column of dates."""

    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    WEEKDAY = "weekday"


class DayOrder(enum.StrEnum):
    """The order of year, month and day in a text such as 29/02/2024."""

    YMD = "ymd"
    DMY = "dmy"
    MDY = "mdy"


WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
#: A day by ISO 8601, which may be followed by a time of day and a time zone.
ISO_DAY = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?: ?(?:Z|[+-][0-9]{2}:?[0-9]{2}))?)?"
)
#: Three numbers with the same mark between them.
PARTS = re.compile(r"([0-9]{1,4})([-/. ])([0-9]{1,2})\2([0-9]{1,4})")


@dataclass(frozen=True)
class DateColumn(_Declaration):
    """A column of days in calendar bins, between two declared days.

    Records hold dates, times with a date, or texts. A text is a day by ISO 8601, such as
    "2024-02-29", which a time may follow, or three numbers in the declared order with "/", "-", "."
    or a blank between them, of which the year has four digits.

    Parameters
    ----------
    name, days : str, sequence of str or date
        Name, and the first and the last day, by ISO 8601. A value before or after is an error.
    by : str
        The bins: ``"year"``, ``"quarter"``, ``"month"``, or ``"weekday"`` for the seven days of the
        week.
    order : str
        Order of the numbers in texts: ``"ymd"``, ``"dmy"`` or ``"mdy"``.
    missing, missing_texts, drafted, confirmed : bool, sequence of str, bool, bool
        As for `CategoricalColumn`.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.data.DateColumn("admitted", ["2024-01-01", "2024-12-31"], by="quarter").labels
    ('2024 Q1', '2024 Q2', '2024 Q3', '2024 Q4')
    """

    name: str
    days: tuple[str, str]
    by: str = Calendar.MONTH
    order: str = DayOrder.YMD
    missing: bool = False
    missing_texts: tuple[str, ...] = ()
    drafted: bool = False
    confirmed: bool = False

    kind = "date"
    key = "days"

    def __post_init__(self) -> None:
        super().__post_init__()
        for parameter, words in (("by", [*Calendar]), ("order", [*DayOrder])):
            value = getattr(self, parameter)
            if value not in words:
                raise ValueError(
                    f"column {self.name!r}: {parameter} must be one of {words}, got {value!r}"
                )
            object.__setattr__(self, parameter, str(value))
        given = self.days if _is_list(self.days) else ()
        days = [day for each in given if (day := day_of(str(each), DayOrder.YMD)) is not None]
        if not len(given) == len(days) == 2 or days[0] > days[1]:
            raise ValueError(
                f"column {self.name!r}: days must be 2 days in order, such as 2024-02-29, "
                f"got {self.days!r}"
            )
        object.__setattr__(self, "days", tuple(day.isoformat() for day in days))

    def period(self, day: datetime.date) -> str:
        """The label of the bin of a day."""
        match self.by:
            case Calendar.YEAR:
                return f"{day.year:04}"
            case Calendar.QUARTER:
                return f"{day.year:04} Q{(day.month + 2) // 3}"
            case Calendar.MONTH:
                return f"{day.year:04}-{day.month:02}"
        return WEEKDAYS[day.weekday()]

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per code: the bins in order, then ``(missing)`` if declared."""
        first, last = map(datetime.date.fromisoformat, self.days)
        if self.by == Calendar.WEEKDAY:
            bins: dict[str, None] = dict.fromkeys(WEEKDAYS)
        else:
            months = range(12 * first.year + first.month - 1, 12 * last.year + last.month)
            days = (datetime.date(month // 12, month % 12 + 1, 1) for month in months)
            bins = dict.fromkeys(map(self.period, days))
        return (*bins, *[MISSING] * self.missing)


#: Columns with finitely many codes.
DiscreteColumn: TypeAlias = CategoricalColumn | BooleanColumn | NumericColumn | DateColumn
Column: TypeAlias = DiscreteColumn | RealColumn


@dataclass(frozen=True)
class SkippedColumn(_Declaration):
    """A column of the records that no query uses, and why.

    Parameters
    ----------
    name, reason : str
        As for `CategoricalColumn`; why it is skipped, in words.

    Examples
    --------
    >>> import geomdp as gd
    >>> schema = gd.data.Schema.from_dict({"sex": ["f", "m"], "note": {"kind": "skip"}})
    >>> schema, schema.skipped
    (Schema(sex: 2), (SkippedColumn(name='note', reason=''),))
    """

    name: str
    reason: str = ""

    kind = "skip"
    key = ""

    def __post_init__(self) -> None:
        check_name(self.name)
        if not isinstance(self.reason, str) or not is_shown(self.reason):
            raise ValueError(f"column {self.name!r}: reason must be text, got {self.reason!r}")


@dataclass(frozen=True)
class CsvFormat:
    """How CSV files of records are written.

    Parameters
    ----------
    separator : str
        The character between fields: a comma, a semicolon, a tab or a vertical bar.
    encoding : str
        ``"utf-8"``, ``"latin-1"`` or ``"windows-1252"``; all else is a ``ValueError``.

    Examples
    --------
    >>> import geomdp as gd
    >>> form = gd.data.CsvFormat(separator=";", encoding="latin-1")
    >>> columns = [gd.data.BooleanColumn("smoker")]
    >>> gd.data.Schema(columns, csv=form).to_dict()["csv"]
    {'separator': ';', 'encoding': 'latin-1'}
    """

    separator: str = ","
    encoding: str = "utf-8"

    SEPARATORS: ClassVar[tuple[str, ...]] = (",", ";", "\t", "|")
    ENCODINGS: ClassVar[tuple[str, ...]] = ("utf-8", "latin-1", "windows-1252")

    def __post_init__(self) -> None:
        choices = {"separator": self.SEPARATORS, "encoding": self.ENCODINGS}
        for key, known in choices.items():
            if getattr(self, key) not in known:
                raise ValueError(f"csv: {key} must be one of {known}, got {getattr(self, key)!r}")

    def to_dict(self) -> dict[str, str]:
        """The format as in a schema file; empty for commas and UTF-8."""
        return _given(self)


def as_text(value: object) -> str:
    """The text that stands for a value in comparisons. A whole-number float becomes its digits."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value)


#: The format of CSV files for which a schema states none.
COMMAS = CsvFormat()


def loosened(text: str) -> str:
    """`text` without blanks at its ends and without the case of its letters."""
    return text.strip().casefold()


def day_of(text: str, order: str) -> datetime.date | None:
    """The day that a text names, by ISO 8601 or with its numbers in `order`; None for others."""
    if found := ISO_DAY.fullmatch(text):
        parts = dict(zip("ymd", found.groups(), strict=True))
    elif found := PARTS.fullmatch(text):
        parts = dict(zip(order, (found[1], found[3], found[4]), strict=True))
    else:
        return None
    if len(parts["y"]) != 4 or max(len(parts["m"]), len(parts["d"])) > 2:
        return None
    try:
        return datetime.date(int(parts["y"]), int(parts["m"]), int(parts["d"]))
    except ValueError:
        return None


def number_of(text: str, decimal: str, thousands: str) -> float:
    """The number that a text writes with these marks; NaN if it writes none, as for "1_000"."""
    if (decimal, thousands) != (".", ""):
        found = _number_pattern(decimal, thousands).fullmatch(text)
        if found is None:
            return math.nan
        whole = found[1].replace(thousands, "") if thousands else found[1]
        text = f"{whole}.{found[2] or 0}"
    try:
        return float(text) if "_" not in text else math.nan
    except ValueError:
        return math.nan


@functools.cache
def _number_pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    """Digits, whose thousands are all separated or not at all, and a decimal fraction."""
    mark = re.escape(thousands)
    grouped = f"[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+|" if thousands else ""
    return re.compile(f"([+-]?(?:{grouped}[0-9]+))(?:{re.escape(decimal)}([0-9]*))?")


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


def _given(declared: Any) -> dict[str, Any]:
    """The fields of a dataclass that do not have their default."""
    given = ((each, getattr(declared, each.name)) for each in fields(declared))
    return {each.name: value for each, value in given if value != each.default}


def _written(value: object) -> object:
    """A value as in a schema file: 18 and not 18.0."""
    is_short = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if isinstance(value, float) and is_short else value


def _is_list(values: object) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, str | bytes)


def _numbers(values: Sequence[float], name: str) -> tuple[float, ...]:
    if not _is_list(values):
        raise ValueError(f"{name} must be a list of numbers, got {values!r}")
    for value in values:
        is_number = isinstance(value, int | float | np.integer | np.floating)
        if not is_number or isinstance(value, bool) or not math.isfinite(real_number(value)):
            raise ValueError(f"{name} must be finite numbers, got {value!r}")
    return tuple(float(value) for value in values)
