"""Privacy audits: no mechanism is refuted, but each is with too little noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from geomdp._typing import FloatArray, IntArray
from geomdp.audit import audit, repeat
from geomdp.mechanisms import (
    AboveThreshold,
    GaussianRows,
    NumericSparse,
    PrintedNumericSparse,
    Sparse,
    SparseProject,
)
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, PureDP

#: Entries of an output if only the comparison is published, or if the mechanism halted before.
BELOW, ABOVE, SILENT = -math.inf, math.inf, math.nan
#: True answers to six queries on two inputs, for the threshold 1/2. Each changes by the sensitivity
#: 1, and some rise and some fall: the worst case for sparse vector.
FIRST = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 1.0])
SECOND = 1 - FIRST
#: Number of outputs per input of an audit, and of others from which its score is learned.
TRIALS, LEARNING = 2000, 1200

pytestmark = pytest.mark.statistical


def patterns(outputs: FloatArray) -> IntArray:
    """One number per output that encodes which queries are above, below, or not answered."""
    digits = np.where(np.isnan(outputs), 0, np.where(outputs == BELOW, 1, 2))
    return digits @ 3 ** np.arange(len(FIRST))


PURE, APPROXIMATE = {"privacy": PureDP(2.0)}, {"privacy": ApproxDP(1.0, 0.1), "cutoff": 2}
#: Mechanisms with their options, and how far their noise must be divided for an audit to refute it.
#: Advanced composition is loose; `tests/laws/test_interactive.py` compares all noise with its law.
KINDS = {
    "above threshold": (AboveThreshold, PURE, 4),
    "kept threshold": (Sparse, PURE | {"cutoff": 2}, 8),
    "redrawn threshold": (Sparse, PURE | {"cutoff": 2, "redraw": True}, 8),
    "approximate": (Sparse, APPROXIMATE, 32),
    "numeric": (NumericSparse, PURE | {"cutoff": 2}, 8),
    "numeric, approximate": (NumericSparse, APPROXIMATE, 64),
    "numeric, printed": (PrintedNumericSparse, APPROXIMATE, 32),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("refuted", [False, True])
def test_sparse_vector_is_refuted_only_with_too_little_noise(name, refuted):
    """A sensitivity that is declared too small divides all noise of the mechanism."""
    kind, options, divisor = KINDS[name]
    sensitivity = 1 / divisor if refuted else 1.0
    answer_scale = (kind(0.0, **options).scales.answer or math.inf) * sensitivity

    def mechanism(truths: FloatArray, rng: np.random.Generator) -> FloatArray:
        outputs = np.full(len(FIRST), SILENT)
        stream = kind(0.5, sensitivity=sensitivity, rng=rng, **options)
        for i, (above, value) in enumerate(stream.ask_many(truths)):
            outputs[i] = BELOW if not above else ABOVE if value is None else value
        return outputs

    samplers = [repeat(mechanism, truths) for truths in (FIRST, SECOND)]
    counts = [
        np.bincount(patterns(sampler(LEARNING, np.random.default_rng(99 + i))), minlength=3**6)
        for i, sampler in enumerate(samplers)
    ]
    ratios = np.log((counts[0] + 0.5) / (counts[1] + 0.5))

    def score(outputs: FloatArray) -> FloatArray:
        """The log-likelihood ratio, learned for patterns, and known for the noise on values."""
        values = np.where(np.isfinite(outputs), outputs, 0.5)  # at 0.5 the ratio is 1
        closer = np.abs(values - SECOND) - np.abs(values - FIRST)
        return ratios[patterns(outputs)] + closer.sum(axis=1) / answer_scale

    result = audit(*samplers, options["privacy"], trials=TRIALS, score=score, rng=1)
    assert result.refuted == refuted


@pytest.mark.parametrize(("extra", "refuted"), [(1, False), (3, True)])
@pytest.mark.parametrize("privacy", [ZCDP(0.5), ApproxDP(1.0, 0.01)])
def test_gaussian_projection(privacy, extra, refuted):
    """The claim is tight: a column has norm 1, so the loss is as for one Gaussian coordinate."""
    project = SparseProject(
        n=3, sparsity=1, queries=1, privacy=privacy, rows=64, noise=GaussianRows(),
        adjacency=Adjacency.ADD_REMOVE, rng=0,
    )  # fmt: skip
    column = project.signs.columns(np.array([7]))[0]

    def mechanism(records: list[int], rng: np.random.Generator) -> FloatArray:
        return project.release(records, rng=rng).vector

    samplers = [repeat(mechanism, [1, 2, 3] + [7] * more) for more in (extra, 0)]
    result = audit(
        *samplers, project.guarantee, trials=2000, score=lambda rows: rows @ column, rng=4
    )
    assert result.refuted == refuted
