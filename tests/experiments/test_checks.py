"""The claims that scripts share pass on data that satisfy them, and fail on other data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from experiments.engine.checks import (
    agrees_with_prediction,
    is_below,
    predicted_columns,
    slopes_are,
    slopes_by,
    slopes_lie_within,
    stays_below_prediction,
)
from experiments.engine.claims import Claim, claims_table
from experiments.engine.statistics import MeanSquare, pooled_by

NS = (10, 100, 1000)


@dataclass(frozen=True)
class Prediction:
    value: float
    stderr: float = 0.0
    kind: str = "exact"


def table(
    exponent: float = -1.0, prediction: float = 1.0, stderr: float = 0.0, trials: int = 2
) -> pd.DataFrame:
    """Errors of two families with RMS n^exponent, and predictions `prediction` times n^exponent."""
    rng = np.random.default_rng(3)
    rows = []
    for family in ("a", "b"):
        for n in NS:
            root = n**exponent
            for trial in range(trials):
                # Gamma(4) / 4 has mean 1.
                squares = root**2 * rng.gamma(4.0, 1 / 4, size=500)
                predicted = Prediction(prediction * root, stderr * root)
                rows.append(
                    {
                        "family": family,
                        "n": n,
                        "trial": trial,
                        **MeanSquare.of(squares).columns(),
                        **predicted_columns(predicted),
                    }
                )
    return pd.DataFrame(rows)


POINT = ["family", "n"]


def test_pooling_groups_by_the_keys_and_over_the_rest() -> None:
    pooled = pooled_by(table(), POINT)
    assert set(pooled) == {(family, n) for family in ("a", "b") for n in NS}
    assert {mean.count for mean in pooled.values()} == {1000}
    assert set(pooled_by(table(), ["family"])) == {("a",), ("b",)}


def test_predictions_that_hold_agree() -> None:
    claim = agrees_with_prediction("as predicted", "X", table(), POINT)
    assert claim.passed
    assert claim.measured.startswith("6 points")


# The relative standard error of a mean of 1000 Gamma(4)/4 squares is 1/sqrt(4000) = 1.6%. A root
# that is 20% off has a square that is at least 36% off, which is more than 20 standard errors.
@pytest.mark.parametrize("prediction", [0.8, 1.2])
def test_predictions_that_do_not_hold_disagree_both_ways(prediction: float) -> None:
    assert not agrees_with_prediction("x", "X", table(prediction=prediction), POINT).passed


def test_an_estimated_prediction_may_be_off_by_its_own_error() -> None:
    assert agrees_with_prediction("x", "X", table(prediction=1.2, stderr=0.2), POINT).passed


def test_bounds_hold_from_one_side_only() -> None:
    assert stays_below_prediction("x", "X", table(prediction=3.0), POINT).passed
    assert not stays_below_prediction("x", "X", table(prediction=0.8), POINT).passed
    claim = stays_below_prediction("x", "X", table(prediction=2.0), POINT)
    assert 0.45 < float(claim.measured.split("at most ")[1].split(" ")[0]) < 0.55


def test_slopes() -> None:
    slopes = slopes_by(table(), ["family"], "n")
    assert set(slopes) == {("a",), ("b",)}
    assert slopes_are("x", "X", slopes, -1.0, 0.1).passed
    assert not slopes_are("x", "X", slopes, -1.0, 1e-4).passed, "the intervals are wider than 2e-4"
    assert not slopes_are("x", "X", slopes, -0.5, 1.0).passed, "the true slope is -1, not -0.5"
    assert slopes_lie_within("x", "X", slopes, -1.1, -0.9).passed
    assert not slopes_lie_within("x", "X", slopes, -1.1, -1.0).passed


def test_claims_record_how_much_of_their_allowance_is_used() -> None:
    def used(prediction: float) -> float:
        share = stays_below_prediction("x", "X", table(prediction=prediction), POINT).used
        assert isinstance(share, float)
        return share

    assert 0.45 < used(2.0) < 0.55 < 0.9 < used(1.0) < 1 < used(0.8)
    # A claim of agreement uses the share of the deviation that it prints in the deviation that it
    # allows. Both are printed with one decimal place.
    for prediction in (0.8, 1.0, 1.2):
        claim = agrees_with_prediction("x", "X", table(prediction=prediction), POINT)
        off = abs(float(claim.measured.split("furthest off by ")[1].split(" ")[0]))
        allowed = float(claim.theory.split(" ")[1])
        assert isinstance(claim.used, float)
        assert (off - 0.05) / (allowed + 0.05) <= claim.used <= (off + 0.05) / (allowed - 0.05)
        assert claim.passed == (claim.used <= 1)
    slopes = slopes_by(table(), ["family"], "n")
    near = slopes_are("x", "X", slopes, -1.0, 0.1).used
    within = slopes_lie_within("x", "X", slopes, -1.1, -0.9).used
    assert near is not None and within is not None  # noqa: PT018
    assert near == pytest.approx(within)
    assert near < 1
    with pytest.raises(ValueError, match="used must be finite"):
        Claim("x", True, "1", "1", "X", used=-0.1)


def test_order() -> None:
    large = pooled_by(table(), POINT)
    small = pooled_by(table(prediction=1.0).assign(mean_square=lambda t: t.mean_square / 2), POINT)
    assert is_below("x", "X", small, large).passed
    assert not is_below("x", "X", large, small).passed
    assert not is_below("x", "X", large, large).passed
    shares = [is_below("x", "X", *pair).used for pair in ((small, large), (large, large))]
    assert isinstance(shares[0], float) and shares[0] < 1  # noqa: PT018
    assert isinstance(shares[1], float) and shares[1] > 1  # noqa: PT018
    with pytest.raises(ValueError, match="must hold the same points"):
        is_below("x", "X", large, {("a", 10): large["a", 10]})


def test_the_table_of_claims_shows_verdicts() -> None:
    claims = [Claim("yes [sic]", True, "1", "1", "A", 0.5), Claim("no", False, "2", "1", "B", 2.0)]
    shown = claims_table([("script", claim) for claim in claims])
    assert [str(cell) for cell in shown.columns[2].cells] == ["passed", "FAILED"]
    assert str(next(iter(shown.columns[1].cells))) == "yes [sic]"
