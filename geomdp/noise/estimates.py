"""Estimates of the energy E ||Z||_2^2 of a noise from independent public draws."""

from __future__ import annotations

import math

from geomdp._typing import FloatArray
from geomdp.geometry.results import Estimate


def mean_estimate(numbers: FloatArray) -> Estimate:
    """Mean of independent `numbers` (n,) with standard error and an asymptotic 95% interval."""
    value, stderr = float(numbers.mean()), float(numbers.std(ddof=1)) / math.sqrt(len(numbers))
    # 1.96: the two-sided 95% quantile of the normal distribution.
    return Estimate(value, stderr, (value - 1.96 * stderr, value + 1.96 * stderr), len(numbers))


def scaled(estimate: Estimate, factor: float, offset: float = 0.0) -> Estimate:
    """The estimate of factor * x + offset from an estimate of x; `factor` is at least 0."""
    low, high = estimate.interval
    return Estimate(
        factor * estimate.value + offset,
        factor * estimate.stderr,
        (factor * low + offset, factor * high + offset),
        estimate.samples,
    )
