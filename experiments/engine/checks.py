"""Claims that many scripts share: comparisons of measured errors with predictions or other errors.

Tables have the columns of `MeanSquare.columns` and of `predicted_columns`. The probability that
chance decides a claim wrongly is at most `LEVEL`, over all points of the claim (Bonferroni). For
`is_below` and `slopes_lie_within`, a wrong decision passes a false statement. For the other claims,
a wrong decision fails a true statement.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments.engine.cells import Row
from experiments.engine.claims import Claim, Verdict, at_most
from experiments.engine.statistics import (
    LEVEL,
    MeanSquare,
    Slope,
    deviation,
    log_log_slope,
    pooled_by,
    quantile,
)


def predicted_columns(prediction: Any) -> Row:
    """A prediction of a mechanism of geomdp as columns of a row."""
    return {
        "predicted": prediction.value,
        "predicted_stderr": prediction.stderr,
        "prediction": str(prediction.kind),
    }


def release_columns(mechanism: Any, records: Any, releases: int, rng: np.random.Generator) -> Row:
    """Mean squared error per query over releases on the same records, and the prediction."""
    truth = mechanism.workload.answers(records)
    errors = [mechanism.release(records, rng=rng).answers - truth for _ in range(releases)]
    measured = MeanSquare.of([float(np.mean(error**2)) for error in errors])
    return {**measured.columns(), **predicted_columns(mechanism.predicted_rmse)}


def agrees_with_prediction(name: str, id: str, table: pd.DataFrame, keys: Sequence[str]) -> Claim:
    """Two-sided: the measured root mean square equals the predicted one at every point."""
    found = _deviations(table, keys)
    tail = LEVEL / (2 * len(found))
    ratios = {key: abs(score) / quantile(tail, count) for key, (score, count) in found.items()}
    worst = max(ratios, key=ratios.__getitem__)
    score, count = found[worst]
    return Claim(
        name,
        at_most(ratios[worst], 1),
        f"{len(found)} points, furthest off by {score:+.1f} standard errors ({_words(worst)})",
        f"within {quantile(tail, count):.1f} standard errors of the prediction",
        id,
    )


def stays_below_prediction(name: str, id: str, table: pd.DataFrame, keys: Sequence[str]) -> Claim:
    """One-sided: at no point does the measured root mean square exceed the predicted bound.

    Where each trial has its own bound (because it draws its own map), the root mean square of these
    bounds is used.
    """
    found = _deviations(table, keys)
    tail = LEVEL / len(found)
    passed = all(score <= quantile(tail, count) for score, count in found.values())
    means, bounds = pooled_by(table, keys), _bounds(table, keys)
    shares = {key: means[key].root / bounds[key][0] for key in means}
    worst = max(shares, key=shares.__getitem__)
    spread = means[worst].root_stderr / bounds[worst][0]
    used = max(
        _share_below(means[key], *bounds[key], quantile(tail, found[key][1])) for key in found
    )
    return Claim(
        name,
        Verdict(passed, used),
        f"{len(found)} points, at most {shares[worst]:.3f} +- {spread:.3f} of the bound "
        f"({_words(worst)})",
        "at most 1",
        id,
    )


def slopes_by(table: pd.DataFrame, keys: Sequence[str], x: str) -> dict[tuple[Any, ...], Slope]:
    """For each curve, the log-log slope of the error against column `x`."""
    curves: dict[tuple[Any, ...], dict[float, MeanSquare]] = {}
    for (*key, position), mean in pooled_by(table, [*keys, x]).items():
        curves.setdefault(tuple(key), {})[float(position)] = mean
    return {
        key: log_log_slope(list(curve), list(curve.values()), LEVEL, len(curves))
        for key, curve in curves.items()
    }


def slopes_are(
    name: str, id: str, slopes: Mapping[tuple[Any, ...], Slope], value: float, reach: float
) -> Claim:
    """The interval of every slope covers `value` and is at most ``2 * reach`` wide."""
    passed = all(s.covers(value) and s.high - s.low <= 2 * reach for s in slopes.values())
    furthest = max(slopes, key=lambda key: abs(slopes[key].value - value))
    return Claim(
        name,
        Verdict(passed, abs(slopes[furthest].value - value) / reach),
        f"{len(slopes)} slopes, furthest from {value:g}: {slopes[furthest]} ({_words(furthest)})",
        f"{value:g} in every interval; intervals at most {2 * reach:g} wide",
        id,
    )


def slopes_lie_within(
    name: str, id: str, slopes: Mapping[tuple[Any, ...], Slope], low: float, high: float
) -> Claim:
    """The interval of every slope lies in [low, high]."""
    passed = all(slope.within(low, high) for slope in slopes.values())
    measured = "; ".join(f"{_words(key)}: {slope}" for key, slope in slopes.items())
    middle, half = (low + high) / 2, (high - low) / 2
    used = max(abs(slope.value - middle) for slope in slopes.values()) / half
    return Claim(name, Verdict(passed, used), measured, f"in [{low:g}, {high:g}]", id)


def is_below(
    name: str,
    id: str,
    better: Mapping[tuple[Any, ...], MeanSquare],
    worse: Mapping[tuple[Any, ...], MeanSquare],
) -> Claim:
    """At every point the mean square in `better` is below that in `worse`, by more than chance."""
    if better.keys() != worse.keys() or not better:
        raise ValueError(
            "better and worse must hold the same points, at least 1, "
            f"got {sorted(better)} and {sorted(worse)}"
        )
    tail = LEVEL / len(better)
    passed = True
    ratios, used = {}, 0.0
    for key, low in better.items():
        high = worse[key]
        reach = quantile(tail, min(low.count, high.count)) * math.hypot(low.stderr, high.stderr)
        passed &= high.value - low.value > reach
        used = max(used, math.sqrt((low.value + reach) / high.value))
        ratios[key] = low.root / high.root
    worst = max(ratios, key=ratios.__getitem__)
    return Claim(
        name,
        Verdict(passed, used),
        f"{len(ratios)} points, ratio at most {ratios[worst]:.3f} ({_words(worst)})",
        "below 1",
        id,
    )


def _share_below(mean: MeanSquare, bound: float, stderr: float, reach: float) -> float:
    """A root mean square divided by the largest one that does not contradict `bound`."""
    room = reach * math.hypot(mean.stderr, 2 * bound * stderr)
    return math.sqrt(mean.value / (bound**2 + room))


def _deviations(
    table: pd.DataFrame, keys: Sequence[str]
) -> dict[tuple[Any, ...], tuple[float, int]]:
    """Excess over the prediction in standard errors, and number of releases, at each point."""
    means, bounds = pooled_by(table, keys), _bounds(table, keys)
    return {key: (deviation(mean, *bounds[key]), mean.count) for key, mean in means.items()}


def _bounds(table: pd.DataFrame, keys: Sequence[str]) -> dict[tuple[Any, ...], tuple[float, float]]:
    """Predicted root mean square and its standard error at each point, over the trials."""
    return {
        key if isinstance(key, tuple) else (key,): (
            math.sqrt(float((rows["predicted"] ** 2).mean())),
            # All trials use one estimate from the same public draws, so averaging over the trials
            # does not reduce its standard error.
            float(rows["predicted_stderr"].max()),
        )
        for key, rows in table.groupby(list(keys), sort=False)
    }


def _words(key: tuple[Any, ...]) -> str:
    return ", ".join(str(part) for part in key) or "the only one"
