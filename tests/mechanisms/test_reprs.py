"""Mechanisms and their parts, releases, guarantees, ledgers and audits print as one short line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import geomdp as gd
from geomdp.audit import audit
from geomdp.mechanisms import AllParities, Covariance, MomentProjection
from geomdp.mechanisms.interactive.iterative import EnumeratedQueries
from geomdp.mechanisms.interactive.updates import (
    Median,
    MultiplicativeWeights,
    Perceptron,
    SparseMultiplicativeWeights,
)
from geomdp.privacy import Exact, Guarantee
from geomdp.workloads.single_queries import DenseQuery

PURE = gd.PureDP(1.0)


def smooth() -> gd.SmoothSummary:
    return gd.SmoothSummary(1, n=1000, smoothness=2, privacy=PURE, degree=4)


def sparse() -> gd.SparseProject:
    return gd.SparseProject(n=3, sparsity=1, queries=1, privacy=gd.ZCDP(0.5), rows=64, rng=0)


def online() -> gd.OnlineConstruction:
    return gd.OnlineConstruction(
        SparseMultiplicativeWeights(1), n=10**8, queries=5, privacy=PURE, rng=0
    )


def iterative() -> gd.IterativeConstruction:
    rule = MultiplicativeWeights(4)
    return gd.IterativeConstruction(rule, AllParities(2), n=10**6, privacy=PURE, beta=0.5)


OBJECTS: dict[str, Callable[[], object]] = {
    "Guarantee(": lambda: Guarantee(PURE, gd.Adjacency.REPLACE_ONE, Exact()),
    "Ledger(": lambda: gd.Ledger(PURE),
    "AuditResult(": lambda: audit(
        lambda trials, rng: rng.laplace(size=trials),
        lambda trials, rng: rng.laplace(size=trials),
        PURE, trials=100, rng=0,
    ),
    "SmoothSummary(": smooth,
    "SmoothRelease(": lambda: smooth().release(np.zeros((1000, 1)), rng=0),
    "MomentProjection(": lambda: MomentProjection.semidefinite(np.ones(4)),
    "SparseProject(": sparse,
    "SparseSummary(": lambda: sparse().release([1, 2, 3], rng=0),
    "HashedSigns(": lambda: sparse().signs,
    "OnlineConstruction(": online,
    "Transcript(": lambda: online().transcript,
    "SlotHypothesis(": lambda: online().hypothesis,
    "IterativeConstruction(": iterative,
    "IterativeRelease(": lambda: iterative().release(np.zeros(10**6, dtype=int), rng=0),
    "EnumeratedQueries(": lambda: EnumeratedQueries([DenseQuery(np.ones(2))]),
    "AllParities(": lambda: AllParities(2),
    "WeightedHypothesis(": lambda: MultiplicativeWeights(4).start(0.1),
    "LinearHypothesis(": lambda: Perceptron(4).start(0.1),
    "Median(": lambda: Median(np.eye(3), fineness=1.0),
    "MedianHypothesis(": lambda: Median(np.eye(3), fineness=1.0).start(0.1),
    "Covariance(": lambda: Covariance(gd.workloads.SecondMoment(3), n=100, privacy=PURE),
}  # fmt: skip


@pytest.mark.parametrize("start", OBJECTS)
def test_repr_is_one_short_line_without_arrays_or_addresses(start: str) -> None:
    text = repr(OBJECTS[start]())
    assert text.startswith(start)
    assert len(text) < 200
    for unwanted in ("\n", "array(", "object at 0x"):
        assert unwanted not in text
