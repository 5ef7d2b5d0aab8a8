"""Ratios of the error of projection alone to the error with the best map, and their slopes."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from experiments.engine.statistics import LEVEL, MeanSquare, Slope, log_log_slope, pooled_by
from experiments.error.jl.problems import Route

KEYS = ["family", "divisor", "noise"]
#: A curve and a value of m, the number of queries. A curve is (family, divisor, noise). The divisor
#: is r / (epsilon n), where r is the effective dimension.
Point = tuple[str, int, str, int]


def ratios(table: pd.DataFrame) -> dict[Point, MeanSquare]:
    """Error of projection alone over the error with the best map, for each curve and m.

    The results are ratios of mean squares; their roots are the ratios of errors. Standard errors
    follow by the delta method. The best map is the one with the least measured error, so chance
    favours the maps a little.
    """
    means = pooled_by(table, [*KEYS, "m", "route"])
    found = {}
    for *place, route in means:
        if route != Route.ALONE:
            continue
        alone = means[*place, route]
        mapped = min(
            (mean for key, mean in means.items() if list(key[:-1]) == place and key[-1] != route),
            key=lambda mean: mean.value,
        )
        relative = math.hypot(alone.stderr / alone.value, mapped.stderr / mapped.value)
        value = alone.value / mapped.value
        found[tuple(place)] = MeanSquare(value, value * relative, min(alone.count, mapped.count))
    return found


def slopes(points: dict[Point, MeanSquare]) -> dict[tuple[str, int, str], Slope]:
    """Slope against m of each curve with two points or more.

    With probability 1 - `LEVEL` the intervals of all slopes cover the true slopes.
    """
    curves: dict[tuple[str, int, str], dict[int, MeanSquare]] = {}
    for (family, divisor, noise, m), ratio in points.items():
        curves.setdefault((family, divisor, noise), {})[m] = ratio
    long = {key: curve for key, curve in curves.items() if len(curve) > 1}
    return {
        key: log_log_slope([*curve], [*curve.values()], LEVEL, len(long))
        for key, curve in long.items()
    }


def geometric_mean(ratios: list[MeanSquare]) -> MeanSquare:
    """Geometric mean of independent mean squares, with a standard error by the delta method."""
    value = math.exp(np.mean([math.log(ratio.value) for ratio in ratios]))
    relative = math.hypot(*(ratio.stderr / ratio.value for ratio in ratios)) / len(ratios)
    return MeanSquare(value, value * relative, min(ratio.count for ratio in ratios))


def stated(points: dict[Point, MeanSquare], key: Point) -> str:
    """A ratio of errors in words, with its interval, curve and m.

    With probability 1 - `LEVEL` the intervals of all `points` cover the true ratios.
    """
    low, high = points[key].root_interval(LEVEL, len(points))
    return f"{points[key].root:.3f} [{low:.3f}, {high:.3f}] ({curve_name(key[:3])}, m = {key[3]})"


def curve_name(key: tuple[str, int, str]) -> str:
    """Family, noise and number of records in words; the last part, r/divisor, is epsilon n."""
    family, divisor, noise = key
    return f"{family}, {noise}, r/{divisor}"
