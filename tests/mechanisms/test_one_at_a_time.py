"""One thread at a time uses what holds noise or a budget, and no query uses it while evaluated."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import geomdp as gd
from geomdp._numerics.randomness import NotCopied
from geomdp.mechanisms.interactive.sparse_vector import SparseVectorStream
from geomdp.noise.scalar import BLOCK, ExactNoise, LaplaceNumbers
from geomdp.privacy.ledger import LedgerFile

ONE = gd.PureDP(1.0)
N = 100_000
RECORDS = np.zeros(N, dtype=int)
THREADS = 6


def nothing() -> None: ...


@dataclass(eq=False)
class Caller:
    """Code of a caller, which a test replaces after the object under test is made."""

    code: Callable[[], object] = nothing


@dataclass(frozen=True, eq=False)
class CallingQuery(gd.workloads.DenseQuery):
    """A query that runs the code of a caller each time its sum is computed."""

    caller: Caller = field(default_factory=Caller)

    def exact_total(self, tally: Any) -> Any:
        self.caller.code()
        return super().exact_total(tally)


@dataclass(frozen=True)
class Case:
    """One class: how it is made, one use of it, what it has given, and the most it may give.

    A mechanism or ledger gives answers or spends. A supply of noise must give no number twice, so
    `given` counts repeated numbers, and `most` is 0.
    """

    make: Callable[[Caller], Any]
    use: Callable[[Any, Caller], object]
    given: Callable[[Any], int]
    most: int


def stream(kind: type[SparseVectorStream], **rest: Any) -> Case:
    """A sparse vector mechanism with one answer to give, whose queries are all above."""

    def ask(mechanism: Any, caller: Caller) -> object:
        return mechanism.ask(lambda records: (caller.code(), 1e6)[1])

    privacy = rest.pop("privacy", ONE)
    return Case(
        lambda _: kind(0.0, privacy=privacy, records=[0], **rest),
        ask,
        lambda mechanism: sum(answer.above for answer in mechanism.transcript),
        1,
    )


def online(_: Caller) -> Any:
    rule = gd.mechanisms.MultiplicativeWeights(2)
    return gd.OnlineConstruction(rule, n=N, queries=2, privacy=ONE, records=RECORDS)


def iterative(caller: Caller) -> Any:
    mechanism = gd.IterativeConstruction(
        gd.mechanisms.MultiplicativeWeights(2),
        gd.mechanisms.EnumeratedQueries([CallingQuery([1.0, 0.0], caller)]),
        n=N,
        privacy=ONE,
    )
    return mechanism, gd.Ledger(ONE)


def drawn(caller: Caller) -> Any:
    """A supply of noise, and the numbers that it gave."""

    def entropy(count: int) -> bytes:
        caller.code()
        return np.random.default_rng(0).bytes(count)

    return LaplaceNumbers(entropy), []


def draw(made: Any, caller: Caller) -> None:
    del caller
    supply, numbers = made
    numbers.extend(supply.one() for _ in range(BLOCK))


def repeated(made: Any) -> int:
    """How many numbers were given before."""
    numbers = made[1]
    return len(numbers) - len({(id(number.block), number.place) for number in numbers})


def noise(caller: Caller) -> Any:
    made = ExactNoise()
    made._numbers, numbers = drawn(caller)
    return made, numbers


def draw_values(made: Any, caller: Caller) -> None:
    del caller
    made[1].extend(made[0].values([0.0] * BLOCK, 1.0)._numbers)


def spend(made: Any, caller: Caller) -> object:
    guarantee = gd.privacy.Guarantee(ONE, gd.Adjacency.REPLACE_ONE, gd.privacy.Exact())

    def checked(granted: Any, entries: Any) -> None:
        caller.code()
        return type(made)._check_affordable(made, granted, entries)

    made._check_affordable = checked
    return made.spend(guarantee, "one")


CASES = {
    gd.AboveThreshold: stream(gd.AboveThreshold),
    gd.Sparse: stream(gd.Sparse, cutoff=1),
    gd.NumericSparse: stream(gd.NumericSparse, cutoff=1),
    gd.mechanisms.PrintedNumericSparse: stream(
        gd.mechanisms.PrintedNumericSparse, cutoff=1, privacy=gd.ApproxDP(1.0, 1e-6)
    ),
    gd.OnlineConstruction: Case(
        online,
        lambda mechanism, caller: mechanism.ask(CallingQuery([1.0, 0.0], caller)),
        lambda mechanism: len(mechanism.transcript),
        2,
    ),
    gd.IterativeConstruction: Case(
        iterative,
        lambda made, _: made[0].release(RECORDS, ledger=made[1]),
        lambda made: len(made[1].spends()),
        1,
    ),
    LaplaceNumbers: Case(drawn, draw, repeated, 0),
    ExactNoise: Case(noise, draw_values, repeated, 0),
    gd.Ledger: Case(lambda _: gd.Ledger(ONE), spend, lambda made: made._file.count - 1, 1),
}
#: The base class of the streams, a part of the mechanisms, and the file of a ledger.
PARTS = {SparseVectorStream, LedgerFile}
EACH = pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Threads take turns a hundred thousand times a second."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def subclasses(kind: type) -> set[type]:
    return {kind}.union(*map(subclasses, kind.__subclasses__()))


def test_every_class_with_noise_or_a_budget_has_a_row():
    asked = {
        made
        for name in gd.mechanisms.__all__
        if hasattr(made := getattr(gd.mechanisms, name), "ask")
    }
    held = {kind for kind in subclasses(NotCopied) if kind.__module__.startswith("geomdp.")}
    assert asked | held - {NotCopied} <= set(CASES) | PARTS


@EACH
def test_threads_get_no_more_than_one_user(kind, frequent_switches):
    case, caller, refused = CASES[kind], Caller(), []
    made = case.make(caller)
    # Every thread that need not wait passes its first check before any of them is answered.
    caller.code = lambda: time.sleep(0.02)

    def use() -> None:
        started.wait()
        try:
            for _ in range(3):
                case.use(made, caller)
        except gd.BudgetExhausted as error:
            refused.append(error)

    for _ in range(3 if case.most == 0 else 1):  # a lost update of a counter needs luck
        started = threading.Barrier(THREADS, timeout=60)
        threads = [threading.Thread(target=use) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert case.given(made) == case.most
    assert len(refused) == (THREADS if case.most else 0)


@EACH
def test_a_use_within_a_use_is_refused_before_anything_is_spent(kind):
    case, caller = CASES[kind], Caller()
    made, before = case.make(caller), []

    def again() -> None:
        caller.code = nothing
        before.append(case.given(made))
        with pytest.raises(RuntimeError, match="in use by this thread"):
            case.use(made, caller)
        assert case.given(made) == before[0]

    caller.code = again
    case.use(made, caller)
    assert before == [0]
    assert case.given(made) == min(case.most, 1)
    caller.code = nothing
    if case.most == 2:
        case.use(made, caller)  # the turn was given back


@EACH
def test_a_failed_use_gives_its_turn_back(kind):
    case, caller = CASES[kind], Caller()
    made = case.make(caller)

    def fail() -> None:
        raise ZeroDivisionError

    caller.code = fail
    with pytest.raises(ZeroDivisionError):
        case.use(made, caller)
    assert case.given(made) == 0
    caller.code = nothing
    case.use(made, caller)
    assert case.given(made) == min(case.most, 1)


@pytest.mark.parametrize(
    ("kind", "change"),
    [(gd.AboveThreshold, {"_found": 1}), (gd.OnlineConstruction, {"queries": 0})],
)
def test_the_limit_is_checked_again_when_the_truth_is_known(kind, change):
    """Even a query that changes the mechanism while it is evaluated gets no answer too many."""
    case, caller = CASES[kind], Caller()
    made = case.make(caller)
    caller.code = lambda: vars(made).update(change)
    with pytest.raises(gd.BudgetExhausted):
        case.use(made, caller)
    assert len(made.transcript) == 0


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_a_copy_of_a_construction_has_its_own_turn(copied):
    rule, parities = gd.mechanisms.MultiplicativeWeights(2), gd.mechanisms.AllParities(1)
    mechanism = gd.IterativeConstruction(rule, parities, n=N, privacy=ONE)
    other = copied(mechanism)
    with mechanism._turn.take("one"):
        release = other.release(RECORDS)
    assert release.guarantee == mechanism.release(RECORDS).guarantee
