"""Every release sets up, asks the ledger, reads and checks the records, and pays, in this order."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pytest

from geomdp.geometry import projection as projector
from geomdp.mechanisms import (
    JL,
    AllParities,
    Covariance,
    Fitted,
    IterativeConstruction,
    KNorm,
    Laplace,
    Mechanism,
    MultiplicativeWeights,
    PermuteAndFlip,
    Projected,
    Shrunk,
    SmoothSummary,
    SparseProject,
    Spectral,
)
from geomdp.privacy import (
    ZCDP,
    Adjacency,
    ApproxDP,
    BudgetExhausted,
    Exact,
    Guarantee,
    Ledger,
    Privacy,
    PureDP,
)
from geomdp.privacy.ledger import Spend
from geomdp.workloads import Explicit, Marginals, SecondMoment
from tests.mechanisms.catalogue import ENTRIES, HOMES

N = 12
PURE = PureDP(1.0)


@dataclass(frozen=True)
class Case:
    """A mechanism, records that it accepts, and as many records of which it refuses the last one.

    `set_up` is None, or a class and the name of a method or property of this class that only the
    set-up of the mechanism uses.
    """

    mechanism: Any
    privacy: Privacy
    good: Any
    bad: Any
    set_up: tuple[Any, str] | None


def of_catalogue(name: str) -> Case:
    entry = ENTRIES[name]
    return on_elements(entry.build(HOMES[entry.home], N, entry.privacy, Adjacency.REPLACE_ONE))


def on_elements(mechanism: Any) -> Case:
    good = mechanism.workload.universe.sample(N, 0)
    bad = good.copy()
    bad[-1, 0] = 9
    return Case(mechanism, mechanism.guarantee.privacy, good, bad, (type(mechanism), "set_up"))


def smooth() -> Case:
    mechanism = SmoothSummary(2, n=N, smoothness=2, privacy=PURE, degree=3)
    good = np.zeros((N, 2))
    bad = np.vstack([good[1:], [[np.nan, 0.0]]])
    return Case(mechanism, PURE, good, bad, (type(mechanism.workload), "table"))


def sparse() -> Case:
    mechanism = SparseProject(n=N, sparsity=1, queries=1, privacy=ZCDP(0.5), rows=64, rng=0)
    return Case(mechanism, ZCDP(0.5), list(range(N)), [*range(N - 1), "a"], None)


def iterative() -> Case:
    n, rule, privacy = 10**6, MultiplicativeWeights(4), ApproxDP(1.0, 1e-6)
    mechanism = IterativeConstruction(rule, AllParities(2), n=n, privacy=privacy)
    good = np.zeros(n, dtype=int)
    bad = good.copy()
    bad[-1] = 7
    return Case(mechanism, privacy, good, bad, (type(rule), "start"))


def covariance() -> Case:
    mechanism = Covariance(SecondMoment(2), n=N, privacy=PURE)
    good = np.tile([0.6, 0.0], (N, 1))
    bad = good.copy()
    bad[-1] = 1.0  # outside of the unit ball
    return Case(mechanism, PURE, good, bad, (Covariance, "set_up"))


def chosen() -> Case:
    workload = Marginals(3, 1)
    mechanism = PermuteAndFlip(workload, n=N, privacy=PURE)
    return replace(on_elements(mechanism), set_up=(type(workload), "labels"))


CASES: dict[str, Callable[[], Case]] = {
    # The sampler of "KNorm" is heuristic for its workload; the last test is about this mechanism.
    **{name: partial(of_catalogue, name) for name in ENTRIES if name != "KNorm"},
    "Spectral": lambda: on_elements(Spectral(Marginals(3, 2), n=N, privacy=PURE)),
    "Covariance": covariance,
    "PermuteAndFlip": chosen,
    "SmoothSummary": smooth,
    "SparseProject": sparse,
    "IterativeConstruction": iterative,
}


class Sources:
    """The unseeded generators made in a test, with their states when they were made.

    `bytes_read` counts the random bytes that are asked of the operating system, for correctly
    rounded noise and for exact decisions.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[np.random.Generator, Any]] = []
        self.bytes_read = 0
        real, urandom = np.random.default_rng, os.urandom

        def counted(count: int) -> bytes:
            # Numba names files of its cache by `uuid`, where it compiles during a test.
            if sys._getframe(1).f_globals["__name__"] != "uuid":
                self.bytes_read += count
            return urandom(count)

        def default_rng(seed: Any = None) -> np.random.Generator:
            generator = real(seed)
            if seed is None:
                self.made.append((generator, generator.bit_generator.state))
            return generator

        monkeypatch.setattr(np.random, "default_rng", default_rng)
        monkeypatch.setattr(os, "urandom", counted)

    @property
    def drawn(self) -> bool:
        """Whether a number was drawn from any of the generators, or a child generator was made."""
        return any(
            generator.bit_generator.state != state
            or generator.bit_generator.seed_seq.n_children_spawned > 0
            for generator, state in self.made
        )


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> Sources:
    return Sources(monkeypatch)


class Watched:
    """Records that note whether they were read."""

    def __init__(self, records: Any) -> None:
        self.records, self.read = records, False

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Any]:
        self.read = True
        return iter(self.records)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self.read = True
        return np.asarray(self.records, dtype)


class WatchedLedger(Ledger):
    """A ledger that fails the test if anything random was drawn before the payment."""

    def __init__(self, budget: Any, sources: Sources) -> None:
        super().__init__(budget)
        self.sources = sources

    def spend(self, guarantee: Guarantee, label: str) -> Spend:
        assert not self.sources.drawn
        assert self.sources.bytes_read == 0
        return super().spend(guarantee, label)


@pytest.mark.parametrize("name", CASES)
def test_the_ledger_pays_once_and_before_the_first_draw(name: str, sources: Sources) -> None:
    case = CASES[name]()
    sources.made.clear()
    sources.bytes_read = 0
    ledger = WatchedLedger(case.privacy, sources)
    case.mechanism.release(case.good, ledger=ledger)
    assert ledger.spends() == [Spend(type(case.mechanism).__name__, case.privacy)]
    # Rounded noise and exact decisions use no generator, but bits from the operating system.
    decided = isinstance(case.mechanism, IterativeConstruction | PermuteAndFlip)
    exact = decided or case.mechanism.grid is not None
    assert (sources.drawn, sources.bytes_read > 0) == (not exact, exact)


@pytest.mark.parametrize("name", CASES)
def test_a_failure_before_the_payment_costs_and_draws_nothing(
    name: str, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]()
    sources.made.clear()
    sources.bytes_read = 0
    ledger = Ledger(case.privacy)
    with pytest.raises(ValueError, match=r"row \d+|codes from|whole numbers") as caught:
        case.mechanism.release(case.bad, ledger=ledger)
    assert name not in ENTRIES or "9" not in str(caught.value)  # the bad value
    with pytest.raises(ValueError, match="records must number n"):
        case.mechanism.release(case.good[1:], ledger=ledger)
    records = Watched(case.good)
    # A ledger whose whole budget is already spent.
    empty = Ledger(case.privacy)
    empty.spend(Guarantee(case.privacy, Adjacency.REPLACE_ONE, Exact()), "another")
    with pytest.raises(BudgetExhausted):
        case.mechanism.release(records, ledger=empty)
    if case.set_up is not None:
        owner, verb = case.set_up
        cached = isinstance(vars(owner).get(verb), cached_property)
        monkeypatch.setattr(owner, verb, property(broken) if cached else broken)
        with pytest.raises(ArithmeticError, match="set-up"):
            case.mechanism.release(records, ledger=ledger)
    assert not records.read
    assert not sources.drawn
    assert sources.bytes_read == 0
    assert ledger.spends() == []
    assert len(empty.spends()) == 1
    # A release that does not fail reads the records, so `read` would have shown a reading above.
    monkeypatch.undo()
    case.mechanism.release(records, rng=0)
    assert records.read


@pytest.mark.parametrize("wrapper", [Projected, Shrunk, Fitted, lambda inner: JL(inner, 2, rng=0)])
def test_vertices_are_listed_before_the_payment(
    wrapper: Callable[[Laplace], Mechanism], monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = Explicit(np.random.default_rng(0).standard_normal((3, 7)))
    mechanism, ledger = wrapper(Laplace(workload, n=20, privacy=PURE)), Ledger(PURE)
    monkeypatch.setattr(projector, "VertexColumns", broken)
    with pytest.raises(ArithmeticError, match="set-up"):
        mechanism.release(workload.universe.sample(20, 0), ledger=ledger)
    assert ledger.spends() == []


def broken(*arguments: object) -> None:
    del arguments
    raise ArithmeticError("the set-up failed")


def test_no_ledger_pays_for_a_heuristic_sampler(sources: Sources) -> None:
    case = on_elements(KNorm(Marginals(3, 2), n=N, privacy=PURE))
    sources.made.clear()
    records, ledger = Watched(case.good), Ledger(case.privacy)
    with pytest.raises(ValueError, match="proved cost"):
        case.mechanism.release(records, ledger=ledger)
    assert not records.read
    assert not sources.drawn
    assert ledger.spends() == []
