"""The chance of a large value among Laplace noises, against its definition in exact decimals."""

from __future__ import annotations

from decimal import Decimal, localcontext

import pytest

from experiments.shared.large_values import chance_of_a_large_value


@pytest.mark.parametrize("count", [1, 3, 1000])
@pytest.mark.parametrize("deviation", [1e-300, 1e-17, 1e-3, 0.5, 0.7, 1.0, 30.0, 600.0])
def test_the_chance_is_that_of_the_definition(deviation: float, count: int) -> None:
    with localcontext() as context:
        context.prec = 800  # 1 - e^(-deviation) has its first digit at place 300 or earlier
        exact = 1 - (1 - (-Decimal(deviation)).exp()) ** count
    # Each of the few float64 operations has a relative error of 2^-52, and the exponent of
    # e^(-deviation) a relative error of 2^-53, which counts `deviation` times.
    error = 2.0**-52 * (6 + deviation)
    assert chance_of_a_large_value(2 * deviation, 2.0, count) == pytest.approx(
        float(exact), rel=error, abs=0
    )
