"""Chance that Laplace noise on one of several released values is large."""

from __future__ import annotations

import math


def chance_of_a_large_value(deviation: float, scale: float, count: int) -> float:
    """Probability that one of `count` Laplace variables of `scale` exceeds `deviation` in size.

    It is 1 - (1 - e^(-deviation / scale))^count, without cancellation where it is small.
    """
    return -math.expm1(count * math.log1p(-math.exp(-deviation / scale)))
