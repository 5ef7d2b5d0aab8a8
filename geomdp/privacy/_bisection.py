"""Bisection to the last float, for parameters that must not cost more privacy than claimed."""

from __future__ import annotations

from collections.abc import Callable


def largest_at_most(
    function: Callable[[float], float], target: float, low: float, high: float
) -> float:
    """Largest float x in [low, high] with function(x) <= target, for a non-decreasing function.

    The result is the lower end of the last bracket, so the inequality holds as computed, not up to
    a tolerance. ``ValueError`` if ``function(low) > target``: there is no such x.
    """
    if function(low) > target:
        raise ValueError(f"function({low!r}) must be at most {target!r}, got {function(low)!r}")
    if function(high) <= target:
        return high
    while low < (middle := low + (high - low) / 2) < high:
        if function(middle) <= target:
            low = middle
        else:
            high = middle
    return low
