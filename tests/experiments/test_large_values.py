"""The chance of a large Laplace noise, compared with its formula in decimals of 800 digits."""

from __future__ import annotations

from decimal import Decimal, localcontext

import pytest

from experiments.privacy.corrected.released_values import chance_of_a_large_value


@pytest.mark.parametrize("count", [1, 3, 1000])
@pytest.mark.parametrize("deviation", [1e-300, 1e-17, 1e-3, 0.5, 0.7, 1.0, 30.0, 600.0])
def test_the_chance_is_that_of_the_definition(deviation, count):
    with localcontext() as context:
        context.prec = 800  # 1 - e^(-deviation) starts with at most 299 zeros after the point
        exact = 1 - (1 - (-Decimal(deviation)).exp()) ** count
    # The tolerance allows for six float64 operations with relative errors of at most 2^-52. It also
    # allows for a relative error of 2^-52 in the exponent of e^(-deviation), which gives the power
    # a relative error of `deviation` 2^-52.
    error = 2.0**-52 * (6 + deviation)
    assert chance_of_a_large_value(2 * deviation, 2.0, count) == pytest.approx(
        float(exact), rel=error, abs=0
    )
