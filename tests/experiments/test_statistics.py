"""Statistics that test the claims of experiments: closed forms, coverage and power."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments.engine.statistics import (
    MeanSquare,
    Slope,
    deviation,
    log_log_slope,
    quantile,
)
from tests.stats import binomial_below


def test_pooling_parts_is_the_mean_over_all_releases() -> None:
    values = np.random.default_rng(0).gamma(2.0, size=60)
    parts = [MeanSquare.of(part) for part in np.split(values, [10, 25])]
    pooled, direct = MeanSquare.pooled(parts), MeanSquare.of(values)
    assert pooled.count == direct.count
    assert pooled.value == pytest.approx(direct.value, rel=1e-14)
    assert pooled.stderr == pytest.approx(direct.stderr, rel=1e-13)


def test_root_and_its_interval() -> None:
    mean = MeanSquare(4.0, 0.4, 10_000)
    assert mean.root == 2.0
    assert mean.root_stderr == pytest.approx(0.1)
    low, high = mean.root_interval(level=0.05)
    # The 97.5% quantile of Student's t is 1.960 for 9999 degrees of freedom, as for a normal law.
    assert low == pytest.approx(math.sqrt(4 - 1.96 * 0.4), rel=1e-3)
    assert high == pytest.approx(math.sqrt(4 + 1.96 * 0.4), rel=1e-3)
    assert MeanSquare(1.0, 1.0, 3).root_interval(1e-6)[0] == 0.0


def test_quantile_of_two_values_is_cauchy() -> None:
    assert quantile(0.25, 2) == pytest.approx(1.0)


def test_the_root_over_an_error_is_the_ratio() -> None:
    mean = MeanSquare(4.0, 0.4, 100)
    relative = mean.over(8.0)
    assert relative.root == mean.root / 8.0
    assert relative.root_stderr == pytest.approx(mean.root_stderr / 8.0)
    assert relative.count == 100


def test_deviation_counts_both_uncertainties() -> None:
    mean = MeanSquare(4.5, 0.3, 100)
    assert deviation(mean, 2.0) == pytest.approx(0.5 / 0.3)
    # The square of an estimate 2 +- 0.1 is 4 +- 0.4, and hypot(0.3, 0.4) = 0.5.
    assert deviation(mean, 2.0, 0.1) == pytest.approx(1.0)


def test_deviation_without_noise() -> None:
    assert deviation(MeanSquare(4.0, 0.0, 2), 2.0 * (1 + 1e-15)) == 0.0
    assert deviation(MeanSquare(4.0, 0.0, 2), 1.9) == math.inf
    assert deviation(MeanSquare(4.0, 0.0, 2), 2.1) == -math.inf


@pytest.mark.parametrize(
    ("value", "stderr", "count", "name"),
    [
        (0.0, 0.1, 5, "value"),
        (math.nan, 0.1, 5, "value"),
        (1.0, -0.1, 5, "stderr"),
        (1.0, math.inf, 5, "stderr"),
        (1.0, 0.1, 1, "count"),
    ],
)
def test_mean_squares_check_their_parts(value: float, stderr: float, count: int, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        MeanSquare(value, stderr, count)


def test_slope_of_a_power_law_is_its_exponent() -> None:
    x = [10.0, 30.0, 100.0, 500.0]
    means = [MeanSquare((3 * n**-0.5) ** 2, 0.0, 5) for n in x]
    slope = log_log_slope(x, means, level=1e-6)
    assert slope.value == pytest.approx(-0.5, abs=1e-12)
    assert slope.covers(-0.5)
    assert slope.high - slope.low < 1e-10


@pytest.mark.statistical
def test_slope_interval_covers_at_its_level() -> None:
    # In 400 fits at level 0.05, the number of misses must be consistent with a probability of at
    # most 0.07. The additional 0.02 are for two approximations: the delta method, and Student's t
    # with the smallest count.
    rng = np.random.default_rng(1)
    x = np.geomspace(10, 1000, 6)
    misses = 0
    for _ in range(400):
        means = [MeanSquare.of(n**-2.0 * rng.gamma(5.0, size=200)) for n in x]
        misses += not log_log_slope(x.tolist(), means, level=0.05).covers(-1.0)
    assert misses > 0
    binomial_below(misses, 400, 0.07)


def test_slope_interval_excludes_another_power() -> None:
    rng = np.random.default_rng(2)
    x = np.geomspace(10, 1000, 6).tolist()
    means = [MeanSquare.of(n**-1.0 * rng.gamma(5.0, size=200)) for n in x]
    slope = log_log_slope(x, means, level=1e-6)
    assert slope.within(-0.6, -0.4)
    assert not slope.covers(-1.0)
    assert not slope.within(-0.45, -0.4)


def test_slopes_need_two_positions() -> None:
    mean = MeanSquare(1.0, 0.1, 10)
    with pytest.raises(ValueError, match="2 different positions"):
        log_log_slope([10.0, 10.0], [mean, mean], 1e-6)
    with pytest.raises(ValueError, match="one per mean"):
        log_log_slope([10.0, 20.0], [mean], 1e-6)


def test_slopes_print_with_their_interval() -> None:
    assert str(Slope(-0.5, -0.6, -0.4)) == "-0.500 [-0.600, -0.400]"
