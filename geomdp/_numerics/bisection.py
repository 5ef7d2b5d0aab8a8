"""Bisection for the largest or smallest parameter, real or whole, that satisfies an inequality.

The computed inequality holds at every parameter that is returned, in spite of rounding, because it
was tested there. Only `least_whole` may return an end of its interval without a test.
"""

from __future__ import annotations

from collections.abc import Callable

#: `smallest_accuracy` stops if the length of the interval is at most this share of the upper end.
ACCURACY_TOLERANCE = 1e-12


def largest_at_most(
    function: Callable[[float], float], target: float, low: float, high: float
) -> float:
    """Largest x in [low, high] with f(x) <= target; f never decreases; ``ValueError`` for none."""
    if function(low) > target:
        raise ValueError(f"function({low!r}) must be at most {target!r}, got {function(low)!r}")
    if function(high) <= target:
        return high
    return bracket(lambda x: function(x) > target, low, high)[0]


def smallest_accuracy(enough: Callable[[float], bool]) -> float | None:
    """The smallest alpha in (0, 1] with enough(alpha), too large by at most a relative 1e-12; None
    if there is none. `enough` must not change from true to false.
    """
    return bracket(enough, 0.0, 1.0, ACCURACY_TOLERANCE)[1] if enough(1.0) else None


def least_whole(enough: Callable[[int], bool], low: int, high: int) -> int:
    """The least whole number in (low, high] for which `enough`, which is called at neither end, is
    true; it must be true at `high`, and not change from true to false.
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def bracket(
    above: Callable[[float], bool], low: float, high: float, tolerance: float = 0.0
) -> tuple[float, float]:
    """Halve [low, high] until its ends are adjacent floats, or `tolerance` * |high| apart, so that
    `above` stays false at the low end and true at the high end.
    """
    while high - low > tolerance * abs(high) and low < (middle := low + (high - low) / 2) < high:
        low, high = (low, middle) if above(middle) else (middle, high)
    return low, high
