"""Bisection for parameters that must satisfy an inequality exactly as computed."""

from __future__ import annotations

from collections.abc import Callable

#: `smallest_accuracy` stops at this relative width.
ACCURACY_TOLERANCE = 1e-12


def largest_at_most(
    function: Callable[[float], float], target: float, low: float, high: float
) -> float:
    """Largest float x in [low, high] with function(x) <= target, for a non-decreasing function.

    The lower end of the last bracket is returned, so the inequality holds as computed and not just
    up to a tolerance. ``ValueError`` if function(low) > target, so that no x satisfies it.
    """
    if function(low) > target:
        raise ValueError(f"function({low!r}) must be at most {target!r}, got {function(low)!r}")
    if function(high) <= target:
        return high
    return _bracket(lambda x: function(x) > target, low, high, 0.0)[0]


def smallest_accuracy(enough: Callable[[float], bool]) -> float | None:
    """The smallest alpha in (0, 1] with enough(alpha), to a relative 1e-12; None if there is none.

    If `enough` is true for one alpha, it must be true for all larger ones. The upper end of the
    last bracket is returned, so that enough(alpha) holds as computed.
    """
    return _bracket(enough, 0.0, 1.0, ACCURACY_TOLERANCE)[1] if enough(1.0) else None


def _bracket(
    above: Callable[[float], bool], low: float, high: float, tolerance: float
) -> tuple[float, float]:
    """Ends at which `above` is false and true, adjacent floats or within a relative `tolerance`."""
    while high - low > tolerance * abs(high) and low < (middle := low + (high - low) / 2) < high:
        low, high = (low, middle) if above(middle) else (middle, high)
    return low, high
