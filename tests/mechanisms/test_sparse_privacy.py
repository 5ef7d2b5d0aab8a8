"""Privacy audits: no mechanism is refuted, but those with 2 to 5 times too little noise are."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from geomdp._typing import FloatArray, IntArray
from geomdp.audit import AuditResult, Sampler, Score, audit, repeat
from geomdp.mechanisms import (
    AboveThreshold,
    Answer,
    GaussianRows,
    NumericSparse,
    Sparse,
    SparseProject,
)
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Privacy, PureDP

#: Entries of an output if only the comparison is published, or if the mechanism halted before.
BELOW, ABOVE, SILENT = -math.inf, math.inf, math.nan
#: True answers to six queries on two inputs. Each changes by the sensitivity 1, and some rise and
#: some fall: the worst case for sparse vector.
FIRST = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 1.0])
#: Number of outputs per input of an audit. The likelihood ratio of each pattern is learned from
#: separate outputs. Their number is 0.6 times the number of outputs of the audit.
TRIALS, LEARNING = 20_000, 0.6

pytestmark = pytest.mark.statistical


def patterns(outputs: FloatArray) -> IntArray:
    """One number per output that encodes which queries are above, below, or not answered."""
    digits = np.where(np.isnan(outputs), 0, np.where(outputs == BELOW, 1, 2))
    return digits @ 3 ** np.arange(outputs.shape[1])


def learned_score(sample_a: Sampler, sample_b: Sampler, queries: int, trials: int) -> Score:
    """Log-ratio of the frequencies of a pattern on the two inputs, from separate outputs."""
    rngs = np.random.default_rng(99).spawn(2)
    counts = [
        np.bincount(patterns(sample(trials, rng)), minlength=3**queries) + 0.5
        for sample, rng in zip((sample_a, sample_b), rngs, strict=True)
    ]
    ratios = np.log(counts[0] / counts[1])
    return lambda outputs: ratios[patterns(outputs)]


def audit_stream(
    mechanism: Callable[[FloatArray, np.random.Generator], FloatArray],
    claim: Privacy,
    *,
    answer_scale: float | None = None,
    first: FloatArray = FIRST,
    trials: int = TRIALS,
) -> AuditResult:
    """Audit a sparse vector mechanism on `first` against 1 - `first`.

    The score is a log-likelihood ratio. The part of the pattern is learned. The part of the
    released values is known, because they have fresh Laplace noise of scale `answer_scale`.
    """
    second = 1 - first
    sample_a, sample_b = repeat(mechanism, first), repeat(mechanism, second)
    of_pattern = learned_score(sample_a, sample_b, len(first), int(LEARNING * trials))

    def score(outputs: FloatArray) -> FloatArray:
        total = of_pattern(outputs)
        if answer_scale is not None:
            values = np.where(np.isfinite(outputs), outputs, 0.5)  # at 0.5 the ratio is 1
            total = total + (
                (np.abs(values - second) - np.abs(values - first)).sum(axis=1) / answer_scale
            )
        return total

    return audit(sample_a, sample_b, claim, trials=trials, score=score, rng=1)


def row(answers: list[Answer]) -> FloatArray:
    """The answers of a stream, as a row in the form that the broken variants return."""
    outputs = np.full(len(FIRST), SILENT)
    for i, (above, value) in enumerate(answers):
        outputs[i] = BELOW if not above else ABOVE if value is None else value
    return outputs


PURE = PureDP(2.0)
#: Mechanisms with their options, how far their noise must be divided for an audit to refute it, and
#: the number of outputs.
CORRECT = {
    "above threshold": (AboveThreshold, {"privacy": PURE}, 2, TRIALS),
    "kept threshold": (Sparse, {"cutoff": 2, "privacy": PURE}, 3, TRIALS),
    "numeric": (NumericSparse, {"cutoff": 2, "privacy": PURE}, 5, TRIALS // 2),
}


@pytest.mark.parametrize("name", CORRECT)
@pytest.mark.parametrize("refuted", [False, True])
def test_sparse_vector_is_refuted_only_with_too_little_noise(name, refuted):
    """A sensitivity that is declared too small divides all noise of the mechanism."""
    kind, options, divisor, trials = CORRECT[name]
    sensitivity = 1 / divisor if refuted else 1.0
    answer = kind(0.0, **options).scales.answer

    def mechanism(truths: FloatArray, rng: np.random.Generator) -> FloatArray:
        return row(kind(0.0, sensitivity=sensitivity, rng=rng, **options).ask_many(truths))

    scale = None if answer is None else answer * sensitivity
    result = audit_stream(mechanism, options["privacy"], answer_scale=scale, trials=trials)
    assert result.refuted == refuted


def audit_projection(project: SparseProject, extra: int, score: Score) -> AuditResult:
    """Audit inputs that differ in `extra` records. They are neighbours if `extra` is 1."""

    def mechanism(records: list[int], rng: np.random.Generator) -> FloatArray:
        return project.release(records, rng=rng).vector

    return audit(
        repeat(mechanism, [1, 2, 3] + [7] * extra), repeat(mechanism, [1, 2, 3]),
        project.guarantee, trials=6000, score=score, rng=4,
    )  # fmt: skip


@pytest.mark.parametrize("privacy", [ZCDP(0.5), ApproxDP(1.0, 0.01)])
def test_gaussian_projection(privacy):
    """The claim is tight: a column has norm 1, so the loss is as for one Gaussian coordinate."""
    project = SparseProject(
        n=3, sparsity=1, queries=1, privacy=privacy, rows=64, noise=GaussianRows(),
        adjacency=Adjacency.ADD_REMOVE, rng=0,
    )  # fmt: skip
    column = project.signs.columns(np.array([7]))[0]
    assert not audit_projection(project, 1, lambda outputs: outputs @ column).refuted
    assert audit_projection(project, 3, lambda outputs: outputs @ column).refuted
