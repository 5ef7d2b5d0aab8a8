"""Local search: replace single records so that the answers of a packing move apart."""

from __future__ import annotations

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp.bounds.metrics import Metric

#: Number of elements drawn as candidates for one exchange.
CANDIDATES = 32


def means_of(answers: FloatArray, datasets: IntArray) -> FloatArray:
    """Mean answers (b, k) of `datasets` (b, s), given as row numbers of `answers` (E, k)."""
    means: FloatArray = np.zeros((len(datasets), answers.shape[1]))
    for column in datasets.T:
        means += answers[column]
    return np.asarray(means / datasets.shape[1])


def spread_out(
    answers: FloatArray,
    datasets: IntArray,
    metric: Metric,
    *,
    exchanges: int,
    rng: np.random.Generator,
) -> IntArray:
    """A copy of `datasets` (M, s), rows of `answers` (E, k), after exchanges of records."""
    datasets = datasets.copy()
    if len(datasets) == 1:
        return datasets
    size = datasets.shape[1]
    means = means_of(answers, datasets)
    nearest = np.array([_nearest(metric, means, i) for i in range(len(means))])
    for _ in range(exchanges):
        # An exchange can move a data set away from other data sets. The entries of `nearest` for
        # the other data sets are then only lower bounds. So recompute the least entry before use.
        closest = int(nearest.argmin())
        nearest[closest] = _nearest(metric, means, closest)
        if nearest[closest] > nearest.min():
            continue
        place = int(rng.integers(size))
        tried = rng.integers(len(answers), size=CANDIDATES)
        steps = (answers[tried] - answers[datasets[closest, place]]) / size
        others = np.delete(means, closest, axis=0)
        reach = [float(metric.norm(others - means[closest] - step).min()) for step in steps]
        best = int(np.argmax(reach))
        if reach[best] > nearest[closest]:
            datasets[closest, place] = tried[best]
            means[closest] += steps[best]
            nearest[closest] = reach[best]
            distances = metric.norm(means - means[closest])
            distances[closest] = np.inf
            nearest = np.minimum(nearest, distances)
    return datasets


def _nearest(metric: Metric, means: FloatArray, i: int) -> float:
    """Distance of the answers of data set i from the nearest answers of another data set."""
    distances = metric.norm(means - means[i])
    distances[i] = np.inf
    return float(distances.min())
