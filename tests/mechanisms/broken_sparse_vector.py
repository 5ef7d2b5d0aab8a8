"""Published sparse vector variants that are not epsilon-DP: negative controls of the audits.

They are Algorithms 3 to 6 of Lyu-Su-Li 2017 (SV-LSL), for queries of sensitivity 1. Each algorithm
returns a row with one number for each query: the published value, or `BELOW` or `ABOVE` if only the
comparison is published. The number is `SILENT` if the algorithm halted before the query.
"""

from __future__ import annotations

import math

import numpy as np

from geomdp._typing import FloatArray

BELOW, ABOVE, SILENT = -math.inf, math.inf, math.nan


def run(
    truths: FloatArray,
    rng: np.random.Generator,
    *,
    threshold_scale: float,
    query_scale: float,
    cutoff: float,
    publish_value: bool,
) -> FloatArray:
    """The loop that the four algorithms share, for the threshold 0."""
    outputs = np.full(len(truths), SILENT)
    threshold = rng.laplace(0.0, threshold_scale)
    found = 0
    for i, truth in enumerate(truths):
        noisy = truth + (rng.laplace(0.0, query_scale) if query_scale else 0.0)
        if noisy < threshold:
            outputs[i] = BELOW
            continue
        outputs[i] = noisy if publish_value else ABOVE
        found += 1
        if found >= cutoff:
            break
    return outputs


def algorithm_3(
    truths: FloatArray, rng: np.random.Generator, *, epsilon: float, cutoff: int
) -> FloatArray:
    """The compared noisy value is published, so the mechanism is not private for any epsilon."""
    return run(
        truths, rng, threshold_scale=2 / epsilon, query_scale=2 * cutoff / epsilon, cutoff=cutoff,
        publish_value=True,
    )  # fmt: skip


def algorithm_4(
    truths: FloatArray, rng: np.random.Generator, *, epsilon: float, cutoff: int
) -> FloatArray:
    """The query noise lacks the factor c (the cutoff).

    So the mechanism is only (1 + 6c) eps / 4-private.
    """
    return run(
        truths, rng, threshold_scale=4 / epsilon, query_scale=4 / (3 * epsilon), cutoff=cutoff,
        publish_value=False,
    )  # fmt: skip


def algorithm_5(
    truths: FloatArray, rng: np.random.Generator, *, epsilon: float, cutoff: int
) -> FloatArray:
    """There is no query noise and no cutoff, so the mechanism is not private for any epsilon."""
    del cutoff
    return run(
        truths, rng, threshold_scale=2 / epsilon, query_scale=0.0, cutoff=math.inf,
        publish_value=False,
    )  # fmt: skip


def algorithm_6(
    truths: FloatArray, rng: np.random.Generator, *, epsilon: float, cutoff: int
) -> FloatArray:
    """There is no cutoff, so the mechanism is not private for any epsilon."""
    del cutoff
    return run(
        truths, rng, threshold_scale=2 / epsilon, query_scale=2 / epsilon, cutoff=math.inf,
        publish_value=False,
    )  # fmt: skip
