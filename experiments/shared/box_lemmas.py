"""Lemmas 16 and 19 of Nikolov 2022 for boxes, whose widths and volume radii have closed forms.

Formula sheet JL-L16, JL-L19.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd

from experiments.engine.claims import Claim
from experiments.engine.statistics import pooled_by


def by_volume_radii(half_widths: npt.NDArray[np.float64]) -> float:
    """The sum of Lemma 19, (sum over i of (D_i vr_j)^(2/3))^(3/2) / k^(1/2), with j = D_i / 2.

    D_1 is the dimension k, and each further D_i is half of the one before, until it is 1. All
    halves are rounded down, but j is at least 1. Here vr_j is the volume radius of the projection
    on the j longest sides. Lemma 19 itself takes the largest volume radius of all projections on j
    dimensions, which can be larger.
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
    """Gaussian width of a box: the bound of Lemma 16, up to a constant factor."""
    return float(half_widths.sum()) * math.sqrt(2 / math.pi)


def by_dimension(rows: pd.DataFrame) -> pd.DataFrame:
    """Errors of the recursion without early stop, and both bounds; a row per box and family."""
    keys = ["ratio", "family", "dimension"]
    bounds = rows.groupby(keys)[["lemma_16", "lemma_19"]].first()
    means = pooled_by(rows, keys)
    return bounds.assign(error=[means[key].root for key in bounds.index]).reset_index()


def within_a_constant(
    name: str, id: str, rows: pd.DataFrame, bound: str, ends: tuple[float, float]
) -> Claim:
    """The claim that the error is between two multiples of a bound, in every dimension."""
    share, (low, high) = rows.error / rows[bound], ends
    return Claim(
        f"the error of the full recursion is {low:g} to {high:g} times {name}",
        bool(share.between(low, high).all()),
        f"dimension {rows.dimension.min()} to {rows.dimension.max()}, ratio "
        f"{share.min():.3f} to {share.max():.3f}",
        f"{low:g} to {high:g}",
        id,
        used=float(max(low / share.min(), share.max() / high)),
    )
