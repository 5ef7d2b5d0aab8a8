"""The right-hand sides of Lemmas 16 and 19 for boxes, where all of them are in closed form.

Formula sheet JL-L16, JL-L19.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def by_volume_radii(half_widths: npt.NDArray[np.float64]) -> float:
    """The sum of Lemma 19, (sum over i of (D_i vr_(D_i / 2))^(2/3))^(3/2) / k^(1/2).

    D_1 = k is halved, rounded down, until it is 1. Of the projections of a box on j dimensions, the
    one on its j longest sides stands for the largest.
    """
    longest = np.sort(half_widths)[::-1]
    D, terms = len(longest), []
    while D > 0:
        terms.append(math.pow(D * volume_radius(longest[: max(1, D // 2)]), 2 / 3))
        D //= 2
    return math.pow(math.fsum(terms), 1.5) / math.sqrt(len(longest))


def volume_radius(half_widths: npt.NDArray[np.float64]) -> float:
    """Radius of the ball with the volume of a box."""
    j = len(half_widths)
    log_ball = j / 2 * math.log(math.pi) - math.lgamma(j / 2 + 1)
    return math.exp((float(np.log(2 * half_widths).sum()) - log_ball) / j)


def width(half_widths: npt.NDArray[np.float64]) -> float:
    """Gaussian width w of a box, the bound of Lemma 16."""
    return float(half_widths.sum()) * math.sqrt(2 / math.pi)
