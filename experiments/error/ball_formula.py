"""The error of ball noise in closed form, compared with predictions of the library."""

from __future__ import annotations

import math
from collections.abc import Sequence

from experiments.engine import margins
from experiments.engine.claims import Claim


def ball_error(queries: int, dimension: int, diameter: float, epsilon: float) -> float:
    """n times the error per query; the error is Delta (r (r + 1) / k)^(1/2) / (epsilon n) (JL-L15).

    Parameters
    ----------
    queries : int
        Number k of answers.
    dimension : int
        Dimension r of the affine hull of the answer vectors of all records.
    diameter : float
        Largest l2 distance Delta between the answers of two records.
    epsilon : float
        Parameter of pure differential privacy under replace-one.
    """
    return diameter * math.sqrt(dimension * (dimension + 1) / queries) / epsilon


def balls_in_closed_form(products: Sequence[tuple[float, float]]) -> Claim:
    """Claim that the numbers of each pair are equal: n times a predicted error, and the formula."""
    off = max((abs(found / stated - 1) for found, stated in products), default=math.inf)
    return Claim(
        "the predicted error of ball noise is Delta (r (r + 1) / k)^(1/2) / (epsilon n)",
        off <= 1e-9,
        f"{len(products)} predictions, off by {off:.1e} at most",
        "equal",
        "JL-L15",
        used=margins.share(off, 1e-9),
    )
