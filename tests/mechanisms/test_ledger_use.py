"""Mechanisms pay before they read records, bad input costs nothing; a large epsilon warns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp.mechanisms import AllParities, MultiplicativeWeights
from geomdp.mechanisms.additive_noise.base import Laplace
from geomdp.mechanisms.interactive.online import OnlineConstruction
from geomdp.mechanisms.interactive.sparse_vector import AboveThreshold, NumericSparse, Sparse
from geomdp.mechanisms.interactive.updates import SparseMultiplicativeWeights
from geomdp.mechanisms.sparse_project import SparseProject
from geomdp.privacy import ZCDP, BudgetExhausted, Ledger, PureDP
from geomdp.privacy.ledger import Spend
from geomdp.workloads import Histogram
from tests.mechanisms.test_release_order import Watched


def test_interactive_mechanisms_pay_when_built() -> None:
    ledger = Ledger(PureDP(1.0))
    AboveThreshold(0.0, privacy=PureDP(0.25), ledger=ledger)
    Sparse(0.0, cutoff=2, privacy=PureDP(0.25), ledger=ledger)
    NumericSparse(0.0, cutoff=2, privacy=PureDP(0.25), ledger=ledger)
    OnlineConstruction(
        SparseMultiplicativeWeights(1), n=10**8, queries=5, privacy=PureDP(0.25), ledger=ledger
    )
    assert ledger.spends() == [
        Spend(name, PureDP(0.25))
        for name in ("AboveThreshold", "Sparse", "NumericSparse", "OnlineConstruction")
    ]
    with pytest.raises(BudgetExhausted):
        AboveThreshold(0.0, privacy=PureDP(0.25), ledger=ledger)


def test_bad_parameters_cost_nothing() -> None:
    ledger = Ledger(PureDP(1.0))
    with pytest.raises(ValueError, match="threshold"):
        AboveThreshold(np.nan, privacy=PureDP(0.25), ledger=ledger)
    with pytest.raises(ValueError, match="must number n"):
        OnlineConstruction(
            SparseMultiplicativeWeights(1), n=10**8, queries=5, privacy=PureDP(0.25),
            records=["a"], ledger=ledger,
        )  # fmt: skip
    with pytest.raises(ValueError, match="proved cost"):
        AboveThreshold(0.0, privacy=PureDP(0.25), ledger=ledger, rng=0)
    assert ledger.spends() == []


def test_summary_pays_before_noise_and_reads_nothing_it_cannot_pay_for() -> None:
    project = SparseProject(n=3, sparsity=1, queries=1, privacy=ZCDP(0.5), rows=64, rng=0)
    ledger = Ledger(ZCDP(0.5))
    with pytest.raises(ValueError, match="must number n = 3, got 2"):
        project.release([1, 2], ledger=ledger)
    assert ledger.spends() == []
    project.release([1, 2, 3], ledger=ledger)
    assert ledger.spends() == [Spend("SparseProject", ZCDP(0.5))]
    records = Watched([1, 2, 3])
    with pytest.raises(BudgetExhausted):
        project.release(records, ledger=ledger)
    assert not records.read


@pytest.mark.parametrize("rng", [-1, 1.5, "seed", 0])
def test_a_seed_costs_nothing(rng: object) -> None:
    """A bad seed is refused before the records are read, and no ledger pays for a good one."""
    ledger = Ledger(PureDP(1.0))

    def unread() -> Iterator[np.ndarray]:
        raise AssertionError("records were read")
        yield

    mechanism = Laplace(Histogram(2), n=1, privacy=PureDP(1.0))
    with pytest.raises((TypeError, ValueError), match=r"non-negative|SeedSequence|proved cost"):
        mechanism.release(unread(), rng=rng, ledger=ledger)
    assert ledger.spends() == []


# Warnings of a large epsilon or rho


WEAK, STRONG = gd.PureDP(10.5), gd.PureDP(10.0)
REALS = pd.DataFrame({"a": np.arange(8.0), "b": np.arange(8.0)})
BOUNDS = gd.data.Schema([gd.data.RealColumn(name, (0, 8)) for name in REALS])
CALLS: dict[str, Callable[[gd.PureDP, int | None], object]] = {
    "additive": lambda privacy, rng: gd.mechanisms.Laplace(
        gd.workloads.Histogram(2), n=2, privacy=privacy
    ).release([0, 1], rng),
    "smooth": lambda privacy, rng: gd.SmoothSummary(
        1, n=2, smoothness=2, privacy=privacy, degree=3
    ).release(np.zeros((2, 1)), rng),
    "sparse": lambda privacy, rng: gd.SparseProject(
        n=2, sparsity=1, queries=1, privacy=gd.ZCDP(privacy.epsilon), rows=64
    ).release([1, 2], rng),
    "iterative": lambda privacy, rng: gd.IterativeConstruction(
        MultiplicativeWeights(4), AllParities(2), n=10**6, privacy=privacy
    ).release(np.zeros(10**6, dtype=int), rng),
    "covariance": lambda privacy, rng: gd.tabulation.covariance(
        REALS, BOUNDS, privacy=privacy, rng=rng
    ),
    "tables": lambda privacy, rng: gd.release(
        pd.DataFrame({"x": [True, False]}), gd.data.Schema.from_dict({"x": bool}), "marginals:1",
        privacy=privacy, rng=rng, mechanism=gd.mechanisms.Laplace,
    ),
    "threshold": lambda privacy, rng: gd.AboveThreshold(0.0, privacy=privacy, rng=rng),
    "online": lambda privacy, rng: gd.OnlineConstruction(
        MultiplicativeWeights(4), n=10**6, queries=2, privacy=privacy, rng=rng
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_only_unseeded_releases_with_a_large_epsilon_warn(
    name: str, recwarn: pytest.WarningsRecorder
) -> None:
    CALLS[name](WEAK, 0)
    CALLS[name](STRONG, None)
    assert not recwarn.list
    with pytest.warns(UserWarning, match=r"(epsilon|rho) 10\.5 protects little") as warned:
        CALLS[name](WEAK, None)
    (warning,) = warned
    assert warning.filename == __file__
    this_test = sys._getframe().f_code
    assert warning.lineno < this_test.co_firstlineno  # the call in `CALLS`, not its caller here


def test_an_error_comes_before_the_warning() -> None:
    with pytest.raises(ValueError, match="records must number n = 3, got 2"):
        gd.mechanisms.Laplace(gd.workloads.Histogram(2), n=3, privacy=WEAK).release([0, 1])
