"""Every mechanism either releases exactly on a computer, or stands here with the reason."""

from __future__ import annotations

import inspect

import pytest

import geomdp.mechanisms
from geomdp.mechanisms import (
    AboveThreshold,
    IterativeConstruction,
    Mechanism,
    NumericSparse,
    OnlineConstruction,
    PrintedNumericSparse,
    Sparse,
    SparseProject,
)
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.privacy import Adjacency, ApproxDP, PureDP
from geomdp.privacy.guarantees import DECIDED_ARITHMETIC, FLOAT64_CAVEAT
from tests.mechanisms.catalogue import MECHANISMS, WORKLOADS

N = 64
#: Mechanisms of `MECHANISMS` without an exact path: what stands in the way.
WITHOUT: dict[str, str] = {
    "JL Ball": "it measures random real combinations of the answers, whose sums are not exact",
    "JL Gaussian": "it measures random real combinations of the answers, whose sums are not exact",
    "Coarse Ball": "points of a net are real vectors, whose sums are not exact in float64",
}
#: Other classes that release or answer, and have none.
OTHERS: dict[str, str] = {
    "Covariance": "records are real vectors: their sums are not exact in float64",
    "PairMarginals": "it is computed from second moments of real vectors",
    "SecondMoment": "records are real vectors: their sums are not exact in float64",
    "SmoothSummary": "Chebyshev sums come from float64 transforms",
    "Spectral": "its eigenvalues come from coupling from the past, too costly in ball arithmetic",
}
STREAMS = {
    AboveThreshold: PureDP(1.0),
    Sparse: PureDP(1.0),
    NumericSparse: PureDP(1.0),
    PrintedNumericSparse: ApproxDP(0.5, 1e-6),
}
#: Other classes that release exactly, with their own tests.
OTHERS_EXACT = {
    IterativeConstruction,  # test_exact_truths.py
    OnlineConstruction,  # test_exact_truths.py
    SparseProject,  # test_rounded_rows.py
}
BASES = {Mechanism, AdditiveMechanism}


def built(name, workload):
    """The mechanism on one of the workloads; None where it does not take it."""
    entry = MECHANISMS[name]
    try:
        return entry.build(WORKLOADS[workload], N, entry.privacy, Adjacency.REPLACE_ONE)
    except ValueError:
        return None


def test_every_mechanism_is_listed_once():
    exported = [getattr(geomdp.mechanisms, name) for name in geomdp.mechanisms.__all__]
    releasing = {
        item
        for item in exported
        if inspect.isclass(item) and (hasattr(item, "release") or hasattr(item, "ask"))
    }
    listed = {entry.kind for entry in MECHANISMS.values()} | set(STREAMS) | BASES | OTHERS_EXACT
    assert {item.__name__ for item in releasing - listed} == set(OTHERS)


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_each_has_an_exact_path_or_a_reason(name):
    """A grid for at least one of the workloads of the catalogue, and for every simple one."""
    grids = {
        workload: mechanism.grid
        for workload in ("one-way marginals", "tables")
        if (mechanism := built(name, workload)) is not None
    }
    if name in WITHOUT:
        assert set(grids.values()) == {None}
    else:
        assert grids["one-way marginals"] is not None


@pytest.mark.parametrize("name", sorted(set(MECHANISMS) - set(WITHOUT)))
def test_unseeded_releases_say_so(name):
    mechanism = built(name, "one-way marginals")
    records = mechanism.workload.universe.sample(N, 1)
    assert "correctly rounded" in mechanism.release(records).guarantee.arithmetic
    assert mechanism.release(records, rng=1).guarantee.arithmetic == FLOAT64_CAVEAT


@pytest.mark.parametrize("kind", STREAMS, ids=lambda kind: kind.__name__)
def test_streams_are_exact_without_a_seed(kind):
    rest = {} if kind is AboveThreshold else {"cutoff": 1}
    stream = kind(0.0, privacy=STREAMS[kind], **rest)
    assert stream.guarantee.arithmetic == DECIDED_ARITHMETIC


@pytest.mark.parametrize("workload", sorted(WORKLOADS))
def test_every_finite_workload_has_a_mechanism_with_an_exact_path(workload):
    """`Hierarchical` and `Matrix` measure counts, also where answers are real numbers."""
    for name in ("Matrix", "Hierarchical"):
        assert built(name, workload).grid is not None
