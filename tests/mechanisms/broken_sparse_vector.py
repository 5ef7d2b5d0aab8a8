"""Published sparse vector variants that are not private: negative controls of the audits.

Algorithms 3 to 6 of Lyu-Su-Li 2017, as they list them (SV-LSL), for queries of sensitivity 1. Each
returns what it would publish: a row of numbers, one for each query, with `BELOW` and `ABOVE` where
nothing but the comparison is published and `SILENT` where nothing is, because it has halted.
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
    """The loop they share; threshold 0."""
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
    """Publishes the noisy value that was compared: no finite epsilon."""
    return run(
        truths, rng, threshold_scale=2 / epsilon, query_scale=2 * cutoff / epsilon, cutoff=cutoff,
        publish_value=True,
    )  # fmt: skip


def algorithm_4(
    truths: FloatArray, rng: np.random.Generator, *, epsilon: float, cutoff: int
) -> FloatArray:
    """Query noise without the factor c: (1 + 6c) eps / 4."""
    return run(
        truths, rng, threshold_scale=4 / epsilon, query_scale=4 / (3 * epsilon), cutoff=cutoff,
        publish_value=False,
    )  # fmt: skip


def algorithm_5(
    truths: FloatArray, rng: np.random.Generator, *, epsilon: float, cutoff: int
) -> FloatArray:
    """No query noise and no cutoff: no finite epsilon."""
    del cutoff
    return run(
        truths, rng, threshold_scale=2 / epsilon, query_scale=0.0, cutoff=math.inf,
        publish_value=False,
    )  # fmt: skip


def algorithm_6(
    truths: FloatArray, rng: np.random.Generator, *, epsilon: float, cutoff: int
) -> FloatArray:
    """No cutoff: no finite epsilon."""
    del cutoff
    return run(
        truths, rng, threshold_scale=2 / epsilon, query_scale=2 / epsilon, cutoff=math.inf,
        publish_value=False,
    )  # fmt: skip
