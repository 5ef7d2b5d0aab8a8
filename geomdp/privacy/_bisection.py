"""Bisection to the last float, for parameters that must stay on the private side."""

from __future__ import annotations

from collections.abc import Callable


def largest_at_most(
    function: Callable[[float], float], target: float, low: float, high: float
) -> float:
    """Largest float x in [low, high] with function(x) <= target, for an increasing function.

    The lower end of the bracket is returned, so the inequality holds as computed and not up to
    a tolerance.

    Parameters
    ----------
    function : callable
        Non-decreasing on [low, high].
    target : float
        Level not to be exceeded.
    low, high : float
        Bracket; ``function(low) <= target`` is required.

    Raises
    ------
    ValueError
        If ``function(low) > target``: the caller's bracket is wrong.
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
