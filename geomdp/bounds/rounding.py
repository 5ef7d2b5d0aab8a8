"""Rounding of numbers in statements, in the direction that keeps the statement true."""

from __future__ import annotations

import decimal


def rounded_down(value: float, digits: int = 6) -> str:
    """The largest decimal with `digits` significant digits that is at most `value`."""
    return _rounded(value, digits, decimal.ROUND_FLOOR)


def rounded_up(value: float, digits: int = 6) -> str:
    """The smallest decimal with `digits` significant digits that is at least `value`."""
    return _rounded(value, digits, decimal.ROUND_CEILING)


def _rounded(value: float, digits: int, direction: str) -> str:
    # Round the shortest decimal that denotes the float: 0.3 stays 0.3, not 0.299999.
    shortest = decimal.Decimal(repr(float(value)))
    rounded = decimal.Context(prec=digits, rounding=direction).plus(shortest)
    return f"{float(rounded):.{digits}g}"
