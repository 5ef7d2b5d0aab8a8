"""A bound on sample complexity, with its statement, assumptions and proof.

Numbers in a statement are rounded in the direction that keeps it true.
"""

from __future__ import annotations

import decimal
import enum
import math
from dataclasses import dataclass
from typing import cast

from geomdp._validation import listed, real_number, require_type

#: Smaller whole numbers are printed with all their digits. Every one of them is a float64.
ALL_DIGITS = 10**15


def rounded_down(value: float, digits: int = 6) -> str:
    """The largest decimal with `digits` significant digits that is at most ``repr(value)``."""
    return _rounded(value, digits, decimal.ROUND_FLOOR)


def rounded_up(value: float, digits: int = 6) -> str:
    """The smallest decimal with `digits` significant digits that is at least ``repr(value)``."""
    return _rounded(value, digits, decimal.ROUND_CEILING)


def whole_down(value: float) -> str:
    """A whole number with all its digits; from 10^15 on, rounded down to six significant digits."""
    return f"{value:.0f}" if abs(value) < ALL_DIGITS else rounded_down(value)


def whole_up(value: float) -> str:
    """A whole number with all its digits; from 10^15 on, rounded up to six significant digits."""
    return f"{value:.0f}" if abs(value) < ALL_DIGITS else rounded_up(value)


def _rounded(value: float, digits: int, direction: str) -> str:
    # Round the shortest decimal that denotes the float: 0.3 stays 0.3, not 0.299999.
    shortest = decimal.Decimal(repr(float(value)))
    rounded = decimal.Context(prec=digits, rounding=direction).plus(shortest)
    return f"{float(rounded):.{digits}g}"


class Side(enum.Enum):
    """Which side of the sample complexity a bound is on.

    Examples
    --------
    >>> import geomdp as gd
    >>> bound = gd.bounds.marginal_bound(16, 1, epsilon=1.0, alpha=0.05)
    >>> bound.side is gd.bounds.Side.LOWER
    True
    """

    #: No private mechanism reaches error alpha with as many records as the bound, or with fewer.
    LOWER = "lower"
    #: Some private mechanism reaches error alpha with as many records as the bound, rounded up.
    UPPER = "upper"


@dataclass(frozen=True)
class Bound:
    """A bound on the sample complexity sc of a workload for a privacy guarantee and error alpha.

    sc is the least number n such that some mechanism with this guarantee, a private mechanism, has
    error at most alpha on every data set of n records (JL-DEF). A lower and an upper bound on the
    same problem satisfy floor(lower) < ceil(upper).

    Parameters
    ----------
    value : float
        A number of records v, at least 0.

        * ``Side.LOWER``: sc > v: no private mechanism has error at most alpha at any n <= v. The
          bounds v and floor(v) say the same, and 0 excludes nothing. v must be finite.
        * ``Side.UPPER``: sc <= ceil(v): some private mechanism has error at most alpha at
          n = ceil(v). Infinity claims nothing.
    side : Side
        Whether `value` is a lower or an upper bound.
    statement : str
        What is proved, in one sentence. It should name the measure of error, the neighbour
        relation, the guarantee and alpha.
    assumptions : tuple of str
        Everything else that the proof assumes: side conditions, a failure probability of public
        draws, checks made on samples only. Empty for an unconditional bound.
    certificate : object or None
        An object with the proof, which can be checked again; None if there is no such object.

    Examples
    --------
    >>> import geomdp as gd
    >>> bound = gd.bounds.Bound(12.5, gd.bounds.Side.LOWER, "no 1-DP mechanism has error 0.1")
    >>> bound
    Bound(sc > 12, 0 assumptions)
    >>> bound.records
    12.0
    >>> bound.side
    <Side.LOWER: 'lower'>
    """

    value: float
    side: Side
    statement: str
    assumptions: tuple[str, ...] = ()
    certificate: object | None = None

    def __post_init__(self) -> None:
        require_type(self.side, Side, "side")
        if isinstance(cast("object", self.assumptions), str):
            raise ValueError(
                f"assumptions must be a tuple of sentences, got the text {self.assumptions!r}"
            )
        value = real_number(self.value)
        if not value >= 0 or (self.side is Side.LOWER and math.isinf(value)):
            limit = " and finite" if self.side is Side.LOWER else ""
            raise ValueError(
                f"value of the {self.side.value} bound must be at least 0{limit}, "
                f"got {self.value!r}"
            )
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "assumptions", listed(self.assumptions, "assumptions"))

    @property
    def records(self) -> float:
        """The bound as a whole number: floor(value) for a lower bound, ceil(value) for an upper."""
        if math.isinf(self.value):
            return self.value
        return float(math.floor(self.value) if self.side is Side.LOWER else math.ceil(self.value))

    @property
    def records_text(self) -> str:
        """`records` as text, rounded to the true side: to six significant digits from 10^15 on."""
        round_whole = whole_down if self.side is Side.LOWER else whole_up
        return round_whole(self.records)

    def __repr__(self) -> str:
        relation = ">" if self.side is Side.LOWER else "<="
        return f"Bound(sc {relation} {self.records_text}, {len(self.assumptions)} assumptions)"

    def __str__(self) -> str:
        relation = ">" if self.side is Side.LOWER else "<="
        return f"sc {relation} {self.records_text}: {self.statement}"
