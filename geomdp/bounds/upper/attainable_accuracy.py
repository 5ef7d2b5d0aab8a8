"""The smallest accuracy at which an iterative mechanism's own noise is small enough."""

from __future__ import annotations

from collections.abc import Callable

#: Bisection on the accuracy stops at this relative width.
ACCURACY_TOLERANCE = 1e-12


def smallest_accuracy(enough: Callable[[float], bool]) -> float | None:
    """The smallest alpha in (0, 1] with enough(alpha), to a relative 1e-12; None if not even 1.

    `enough` must stay true once it is. The upper end of the last bracket is returned, so that
    enough(alpha) holds as computed.
    """
    if not enough(1.0):
        return None
    low, high = 0.0, 1.0
    while high - low > ACCURACY_TOLERANCE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
