"""Rounding of numbers in statements, in the direction that keeps the statement true."""

from __future__ import annotations

import decimal

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
