"""Chance that Laplace noise on at least one of several released values is large."""

from __future__ import annotations

import math


def chance_of_a_large_value(deviation: float, scale: float, count: int) -> float:
    """Chance that at least one of `count` independent Laplace noises exceeds `deviation` in size.

    The noises have scale `scale`, and `deviation` is above 0. The probability is
    1 - (1 - e^(-deviation / scale))^count. Small values are computed without cancellation.
    """
    relative = deviation / scale
    # ln(1 - e^-x). For small x, 1 - e^-x is small, and for large x, it is near 1.
    log_small = (
        math.log(-math.expm1(-relative)) if relative < 0.5 else math.log1p(-math.exp(-relative))
    )
    return -math.expm1(count * log_small)
