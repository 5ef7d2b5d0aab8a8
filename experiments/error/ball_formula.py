"""The error of ball noise in closed form, compared with predictions of the library."""

import math
from collections.abc import Sequence

import experiments.engine.tools as ex


def ball_error(queries: int, dimension: int, diameter: float, epsilon: float) -> float:
    """n times the error Delta (r (r + 1) / k)^(1/2) / (epsilon n) per query (JL-L15).

    There are k = `queries` whose answers have the affine dimension r and the l2 diameter Delta.
    """
    return diameter * math.sqrt(dimension * (dimension + 1) / queries) / epsilon


def balls_in_closed_form(products: Sequence[tuple[float, float]]) -> ex.Claim:
    """Claim that the numbers of each pair are equal: n times a predicted error, and the formula."""
    off = max((abs(found / stated - 1) for found, stated in products), default=math.inf)
    name = "the predicted error of ball noise is Delta (r (r + 1) / k)^(1/2) / (epsilon n)"
    measured = f"{len(products)} predictions, off by {off:.1e} at most"
    return ex.Claim(name, ex.at_most(off, 1e-9), measured, "equal", "JL-L15")
