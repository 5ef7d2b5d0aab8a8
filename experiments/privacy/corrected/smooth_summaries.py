"""Theorem 3.1 for smooth queries: too little noise, and an error that does not fall as 1 / epsilon.

The theorem is from Wang, Fan, Zhang and Wang 2013. For d variables and degree t, its printed scale
of the noise is t^d / (n epsilon). The formula sheet corrects this scale for replace-one (DISC-15),
and the rate of the error at large epsilon (DISC-17).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import geomdp as gd
from experiments.privacy.corrected.statement import Measured, Version
from experiments.shared.smooth_problems import (
    kernel_family,
    random_places,
    records_at,
    stacked,
    true_answers,
)
from geomdp.bounds.upper import smooth_accuracy
from geomdp.mechanisms.printed import printed_smooth_scale
from geomdp.workloads.smooth import SmoothQueries, Truncation, approximate_many

#: For degree t, the two records in which neighbours differ are sought among the cosines of
#: `ANGLES` t + 1 angles.
ANGLES = 8
#: Numbers of bounded derivatives, of records and of queries, for the error in one variable.
SMOOTHNESS, RECORDS, FAMILY = 1, 1000, 40


def loss(version: Version, degree: float, *_: object) -> Measured:
    """Largest privacy loss over neighbours on a grid in [-1, 1], and the promised epsilon = 1.

    For Laplace noise of scale b_m on moment m, the largest loss over all outputs is the sum over m
    of |difference_m| / b_m. The constant moment is released exactly.
    """
    t = round(degree)
    workload = SmoothQueries(1, t)
    points = np.cos(np.linspace(0, np.pi, ANGLES * t + 1))[:, None]
    moments = workload.evaluate(points)
    if version is Version.PRINTED:
        scales = np.full(t - 1, printed_smooth_scale(1, t, n=1, epsilon=1.0))
    else:
        noise = gd.mechanisms.UniformLaplace()
        scales = noise.calibrate(workload, gd.PureDP(1.0), gd.Adjacency.REPLACE_ONE).scales
    return Measured(largest_distance(moments / scales), 1.0)


def largest_distance(points: npt.NDArray[np.float64]) -> float:
    """Largest l1 distance between two rows of `points` (n, m)."""
    return max(float(np.abs(points[i:] - points[i]).sum(axis=1).max()) for i in range(len(points)))


def error(version: Version, epsilon: float, runs: int, rng: np.random.Generator) -> Measured:
    """Root mean square of the worst error over a family of queries, and the rate of Theorem 3.1."""
    summary = gd.SmoothSummary(
        1,
        n=RECORDS,
        smoothness=SMOOTHNESS,
        privacy=gd.PureDP(epsilon),
        degree=gd.mechanisms.TheoremDegree(),
        noise=gd.mechanisms.UniformLaplace(),
    )
    family = kernel_family(1, SMOOTHNESS, FAMILY)
    matrix = stacked(approximate_many(family, summary.degree, 1, Truncation()))
    places = random_places(1, runs, rng)
    truths = true_answers(family, places, RECORDS)
    worst = [
        np.abs(
            matrix @ summary.release(records_at(here, RECORDS), rng=rng).moments.ravel() - truth
        ).max()
        for here, truth in zip(places, truths, strict=True)
    ]
    if version is Version.PRINTED:
        rate = smooth_accuracy(1, SMOOTHNESS, n=RECORDS, epsilon=1.0, constant=1.0) / epsilon
    else:
        rate = smooth_accuracy(1, SMOOTHNESS, n=RECORDS, epsilon=epsilon, constant=1.0)
    return Measured(float(np.sqrt(np.mean(np.square(worst)))), rate)
