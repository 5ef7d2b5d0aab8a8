"""Every mechanism has an exact path to its releases, or is listed with the reason why not."""

from __future__ import annotations

import functools
import inspect

import pytest

import geomdp.mechanisms
from geomdp.mechanisms import (
    AboveThreshold,
    AdditiveMechanism,
    ExponentialMechanism,
    IterativeConstruction,
    Mechanism,
    NumericSparse,
    OnlineConstruction,
    PermuteAndFlip,
    PrintedNumericSparse,
    ReportNoisyMax,
    Selection,
    SmoothSummary,
    Sparse,
    SparseProject,
    Staircase,
)
from geomdp.privacy import ApproxDP, PureDP
from geomdp.privacy.guarantees import DECIDED_ARITHMETIC, FLOAT64_CAVEAT
from geomdp.workloads import Explicit
from tests.mechanisms.catalogue import COVARIANCE, MECHANISMS, OWN, WITHOUT, WORKLOADS, fresh, home
from tests.readme import PAGES

#: Classes outside the catalogue that have no exact path, each with the reason.
OTHERS: dict[str, str] = {
    "Spectral": "its eigenvalues come from coupling from the past, too costly in ball arithmetic",
}
#: Classes for one kind of workload that have an exact path. Other files have further tests.
ON_THEIR_OWN = {
    entry.kind: functools.partial(fresh, name, home(name))
    for name, entry in (OWN | COVARIANCE).items()
} | {
    Staircase: lambda: Staircase(Explicit([[0.0, 0.3, 1.0]]), n=64, privacy=PureDP(1.0)),
    SmoothSummary: lambda: SmoothSummary(2, n=64, smoothness=2, privacy=PureDP(1.0)),
}
STREAMS = {
    AboveThreshold: PureDP(1.0),
    Sparse: PureDP(1.0),
    NumericSparse: PureDP(1.0),
    PrintedNumericSparse: ApproxDP(0.5, 1e-6),
}
CHOICES = {ExponentialMechanism, ReportNoisyMax, PermuteAndFlip}
#: Other classes that release exactly, with their own tests.
OTHERS_EXACT = {
    IterativeConstruction,  # test_unseeded_streams.py
    OnlineConstruction,  # test_unseeded_streams.py
    SparseProject,  # test_sparse_project.py
    *CHOICES,  # test_selection.py
}
BASES = {Mechanism, AdditiveMechanism, Selection}


def built(name, workload):
    """The mechanism on one of the workloads; None if it refuses the workload."""
    try:
        return fresh(name, WORKLOADS[workload])
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
    others = releasing - listed - set(ON_THEIR_OWN)
    assert {item.__name__ for item in others} == set(OTHERS)
    assert set(table()) == {item.__name__ for item in releasing - BASES}


def table() -> dict[str, str]:
    """The guide's table of exact paths: each class name with the other cell of its row."""
    page = (PAGES / "privacy" / "exact.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in row] for row in rows]
    names = [row[0].strip("`") for row in cells]
    assert len(set(names)) == len(names)
    return dict(zip(names, (row[1] for row in cells), strict=True))


def test_the_guide_gives_the_reasons():
    reasons = {MECHANISMS[name].kind.__name__: why for name, why in WITHOUT.items()} | OTHERS
    for name, exact in table().items():
        if name in reasons:
            assert exact == f"no: {reasons[name]}"
        else:
            assert exact == "yes" or exact.startswith("yes, ")


@pytest.mark.parametrize("kind", ON_THEIR_OWN, ids=lambda kind: kind.__name__)
def test_those_on_their_own_are_exact_too(kind):
    mechanism = ON_THEIR_OWN[kind]()
    assert mechanism.grid is not None
    check_arithmetic(mechanism)


def check_arithmetic(mechanism):
    """Unseeded releases say that their noise is correctly rounded, and seeded ones do not."""
    records = mechanism.workload.universe.sample(mechanism.n, 1)
    assert "correctly rounded" in mechanism.release(records).guarantee.arithmetic
    assert mechanism.release(records, rng=1).guarantee.arithmetic == FLOAT64_CAVEAT


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_each_has_an_exact_path_or_a_reason(name):
    """A mechanism with an exact path has a grid on both workloads; any other has none.

    Only the chains of `KNorm` are not exact: without `exact=True` it uses them for tables.
    """
    for workload in ("one-way marginals", "tables"):
        if (mechanism := built(name, workload)) is None:
            continue
        exact = name not in WITHOUT and (name, workload) != ("KNorm", "tables")
        assert (mechanism.grid is not None) == exact
        if exact:
            check_arithmetic(mechanism)


@pytest.mark.parametrize("kind", STREAMS, ids=lambda kind: kind.__name__)
def test_streams_are_exact_without_a_seed(kind):
    rest = {} if kind is AboveThreshold else {"cutoff": 1}
    stream = kind(0.0, privacy=STREAMS[kind], **rest)
    assert stream.guarantee.arithmetic == DECIDED_ARITHMETIC


@pytest.mark.parametrize("workload", sorted(WORKLOADS))
def test_every_finite_workload_has_a_mechanism_with_an_exact_path(workload):
    """`Hierarchical` and `Matrix` have grids even for real answers, because they measure counts."""
    for name in ("Matrix", "Hierarchical"):
        assert built(name, workload).grid is not None
