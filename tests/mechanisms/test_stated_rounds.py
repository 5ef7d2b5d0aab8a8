"""Guarantee, cost and accuracy of runs with a stated accuracy alpha or step budget epsilon_0."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest

import geomdp as gd
from geomdp.mechanisms.interactive import iterative
from geomdp.mechanisms.interactive.iterative import StoppingDesign
from geomdp.mechanisms.interactive.updates import net
from geomdp.noise.scalar import ExactNoise
from geomdp.privacy import Adjacency, ApproxDP, Ledger, PureDP
from geomdp.workloads import DenseQuery
from tests.mechanisms.replayed import replay

PURE, APPROX = PureDP(1.0), ApproxDP(1.0, 1e-6)
BUDGETS = (PURE, APPROX)
BITS, FEW = 4, 500
RULE = gd.mechanisms.MultiplicativeWeights(1 << BITS)
CLASS = gd.mechanisms.AllParities(BITS)
#: All records are equal, so the uniform start is wrong by 1/2 on 15 of the 16 parities.
RECORDS = np.full(FEW, 3)


def offline(privacy: PureDP | ApproxDP, **stated: Any) -> gd.IterativeConstruction[DenseQuery]:
    return gd.IterativeConstruction(RULE, CLASS, n=stated.pop("n", FEW), privacy=privacy, **stated)


def online(privacy: PureDP | ApproxDP, **stated: Any) -> gd.OnlineConstruction[DenseQuery]:
    n, queries = stated.pop("n", FEW), stated.pop("queries", 200)
    return gd.OnlineConstruction(RULE, n=n, queries=queries, privacy=privacy, **stated)


def composed(step: float, steps: int, budget: PureDP | ApproxDP) -> float:
    """Epsilon of all steps by basic composition; for approximate DP, by advanced if smaller."""
    if isinstance(budget, PureDP):
        return steps * step
    advanced = math.sqrt(2 * steps * math.log(1 / budget.delta)) * step
    return min(steps * step, advanced + steps * step * (math.exp(step) - 1))


class Counted(ExactNoise):
    """Exact noise that records the privacy loss of every draw, for means of `FEW` records."""

    losses: ClassVar[list[float]] = []

    def exact_argmax(self, near: Any, errors: Any, exact: Any, scale: float) -> int:
        # An error changes by at most 1/n between neighbours. So the exponential mechanism with
        # noise of this scale is 2 / (n scale)-DP.
        self.losses.append(2 / (FEW * scale))
        return super().exact_argmax(near, errors, exact, scale)

    def laplace(self, value: Any, scale: float) -> float:
        self.losses.append(1 / (FEW * scale))
        return super().laplace(value, scale)


@pytest.mark.parametrize("privacy", BUDGETS)
@pytest.mark.parametrize("epsilon_0", [None, 0.05, 0.004, 0.5])
def test_a_run_spends_what_it_claims(
    privacy: PureDP | ApproxDP, epsilon_0: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All losses compose to at most the guarantee; for a stated step, to exactly the guarantee."""
    losses: list[float] = []
    monkeypatch.setattr(Counted, "losses", losses)
    monkeypatch.setattr(iterative, "ExactNoise", Counted)
    built = offline(privacy, alpha=0.9 if epsilon_0 is None else 0.02, epsilon_0=epsilon_0)
    # With the level 0, no run stops before its last round. With a level above 0, some runs could
    # stop: the noise is on a grid, so a noisy answer to the parity of no bits can be exactly 1,
    # which is the answer of every hypothesis.
    never = StoppingDesign(noise=1 / 8, loss=1 / 8, level=3 / 4)
    object.__setattr__(never, "level", 0.0)
    monkeypatch.setattr(built, "design", never)
    release = built.release(RECORDS)
    assert release.guarantee.privacy == built.spent
    assert not release.guarantee.seeded
    assert len(losses) == 2 * built.updates_allowed == 2 * len(release.exchanges)
    assert max(losses) - min(losses) < 1e-12
    total = composed(max(losses), len(losses), privacy)
    assert total <= built.spent.epsilon * (1 + 1e-12)
    assert built.spent.epsilon <= privacy.epsilon
    if epsilon_0 is not None:
        assert total == pytest.approx(built.spent.epsilon, rel=1e-12)
        assert composed(epsilon_0, 2 * built.updates_allowed + 2, privacy) > privacy.epsilon


@pytest.mark.parametrize("privacy", BUDGETS)
@pytest.mark.parametrize("epsilon_0", [0.05, 0.004, 0.08])
def test_online_scales_belong_to_what_is_claimed(
    privacy: PureDP | ApproxDP, epsilon_0: float
) -> None:
    """Each update gets 8/9 of epsilon_0 for comparisons and 1/9 for its value."""
    run = online(privacy, alpha=0.05, epsilon_0=epsilon_0)
    spent, count = run.guarantee.privacy, run.updates_allowed
    assert not isinstance(spent, gd.ZCDP)
    scales = run._comparisons.scales
    assert scales.answer == pytest.approx(9 / epsilon_0, rel=1e-12)
    assert scales.query == pytest.approx(4 / (8 / 9 * epsilon_0), rel=1e-12)
    assert run._comparisons.cutoff == count
    assert run._comparisons.privacy == spent
    if isinstance(privacy, PureDP):
        limit, total = privacy.epsilon / epsilon_0, float(Fraction(epsilon_0) * count)
    else:
        # Corollary 3.21 of Dwork-Roth is used twice with delta / 2: for comparisons and for values.
        unit = 8 * math.log(2 / privacy.delta)
        limit, total = (privacy.epsilon / epsilon_0) ** 2 / unit, epsilon_0 * (unit * count) ** 0.5
        assert isinstance(spent, ApproxDP)
        assert spent.delta == privacy.delta
    assert count == math.floor(limit * (1 + 1e-12))
    assert spent.epsilon == pytest.approx(total, rel=1e-12)
    assert spent.epsilon <= privacy.epsilon


@pytest.mark.parametrize("build", [offline, online])
@pytest.mark.parametrize("privacy", BUDGETS)
def test_accuracy_is_stated_where_the_theorem_holds(build: Any, privacy: PureDP | ApproxDP) -> None:
    n = 10**7
    solved = build(privacy, n=n)
    alpha = solved.alpha
    assert solved.accuracy == pytest.approx((1 if build is offline else 3) * alpha, rel=1e-15)
    assert build(privacy, n=n, alpha=alpha).accuracy == solved.accuracy
    assert build(privacy, n=n, alpha=alpha * 0.999).accuracy is None
    larger = build(privacy, n=n, alpha=min(1.0, 1.5 * alpha))
    assert larger.accuracy == pytest.approx(min(1.0, 1.5 * alpha) / alpha * solved.accuracy)
    # With this step the budget does not pay for all updates, although the noise is small enough.
    updates = solved.updates_allowed
    step = 4 * privacy.epsilon / updates
    if isinstance(privacy, ApproxDP):
        step = privacy.epsilon / math.sqrt(2 * updates * math.log(2 / privacy.delta))
    cut = build(privacy, n=n, alpha=alpha, epsilon_0=step)
    assert cut.updates_allowed < updates
    assert cut.accuracy is None


@pytest.mark.parametrize("build", [offline, online])
@pytest.mark.parametrize("privacy", BUDGETS)
def test_the_least_alpha_for_a_stated_step(build: Any, privacy: PureDP | ApproxDP) -> None:
    n = 10**8
    solved = build(privacy, n=n)
    # With this step the budget pays for all updates that a run at 1.3 alpha can need.
    wanted = build(privacy, n=n, alpha=1.3 * solved.alpha).updates_allowed
    pairs = 2 if build is offline else 1
    step = privacy.epsilon / (pairs * wanted)
    if isinstance(privacy, ApproxDP):
        step = privacy.epsilon / (4 * math.sqrt(wanted * math.log(4 / privacy.delta)))
    found = build(privacy, n=n, epsilon_0=step)
    assert found.accuracy is not None
    assert build(privacy, n=n, epsilon_0=step, alpha=found.alpha * (1 - 1e-9)).accuracy is None
    spent = found.spent if build is offline else found.guarantee.privacy
    assert spent.epsilon <= privacy.epsilon


def test_few_records_are_answered() -> None:
    """Ten rounds on 500 records lower the mean error below 15/32, the error of the start."""
    built = offline(PURE, alpha=0.6, epsilon_0=0.05)
    truths = CLASS.truths(RECORDS, FEW)
    errors = [
        float(np.abs(CLASS.estimates(built.release(RECORDS, rng=seed).hypothesis) - truths).mean())
        for seed in range(5)
    ]
    assert max(errors) < 0.46 < 15 / 32
    run = online(PURE, alpha=0.1, epsilon_0=0.1, records=RECORDS, queries=16)
    answers = [run.ask(CLASS.query(i)) for i in range(16)]
    assert 1 <= run.updates <= run.updates_allowed == 10
    assert sum(answer.above for answer in answers) == run.updates
    assert not run.guarantee.seeded


def pay_offline(ledger: Ledger, **stated: Any) -> None:
    """Release once. `ledger` pays for the release."""
    offline(PURE, **stated).release(RECORDS, ledger=ledger)


def pay_online(ledger: Ledger, **stated: Any) -> None:
    """Build an online run. `ledger` pays when the run is built."""
    online(PURE, ledger=ledger, **stated)


def test_good_combinations_are_paid_for() -> None:
    for pay in (pay_offline, pay_online):
        ledger = Ledger(PURE, adjacency=Adjacency.REPLACE_ONE)
        pay(ledger, alpha=0.5, epsilon_0=0.05)
        assert len(ledger.spends()) == 1


@pytest.mark.parametrize("pay", [pay_offline, pay_online])
@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"alpha": 0.0}, "alpha must be above 0 and at most 1"),
        ({"alpha": 1.5}, "alpha must be above 0 and at most 1"),
        ({"alpha": math.nan}, "alpha must be above 0 and at most 1"),
        ({"alpha": "0.1"}, "alpha must be above 0 and at most 1"),
        ({"alpha": True}, "alpha must be above 0 and at most 1"),
        ({"alpha": 1e-40}, "alpha must be larger"),
        ({"alpha": 1e-101}, "alpha must be larger"),
        ({"alpha": 1e-200}, "alpha must be larger"),
        ({"alpha": 5e-324, "epsilon_0": 0.1}, "alpha must be larger"),
        ({"epsilon_0": 0.0}, "epsilon_0 must be a finite number above 0"),
        ({"epsilon_0": -1.0}, "epsilon_0 must be a finite number above 0"),
        ({"epsilon_0": "1"}, "epsilon_0 must be a finite number above 0"),
        ({"epsilon_0": math.inf}, "epsilon"),
        ({"epsilon_0": 1e-13, "alpha": 0.5}, "must be from 1e-12"),
        ({"epsilon_0": 1.1, "alpha": 0.5}, "epsilon_0 must be smaller: one update would spend"),
        ({"epsilon_0": 0.05}, "n must be larger"),
        ({}, "n must be larger"),
    ],
)
def test_bad_combinations_spend_nothing(pay: Any, stated: Any, message: str) -> None:
    ledger = Ledger(PURE, adjacency=Adjacency.REPLACE_ONE)
    with pytest.raises(ValueError, match=message):
        pay(ledger, **stated)
    assert not ledger.spends()


@pytest.mark.parametrize("build", [offline, online])
def test_concentrated_privacy_is_refused_with_a_stated_step(build: Any) -> None:
    for stated in ({}, {"alpha": 0.1}, {"alpha": 0.1, "epsilon_0": 0.1}):
        with pytest.raises(ValueError, match="privacy must be PureDP or ApproxDP"):
            build(gd.ZCDP(1.0), **stated)


def test_slots_for_a_tiny_accuracy_are_refused() -> None:
    rule = gd.SparseMultiplicativeWeights(sparsity=1)
    with pytest.raises(ValueError, match="alpha must be larger"):
        gd.OnlineConstruction(rule, n=FEW, queries=10, privacy=PURE, alpha=1e-160)


def test_a_paid_run_is_released_even_if_the_rule_cannot_follow() -> None:
    """A run ends early if noise or a false declared fineness leaves no candidate."""
    cells = [DenseQuery(row) for row in np.eye(3)]
    rule = gd.mechanisms.Median(net(3, 4), fineness=0.04)  # smaller than the true fineness
    few = gd.IterativeConstruction(
        rule,
        gd.mechanisms.EnumeratedQueries(cells),
        n=50,
        privacy=PURE,
        alpha=0.1,
        epsilon_0=0.05,
    )
    records = np.array([0] * 30 + [1] * 20)
    ended = 0
    for seed in range(20):
        release = few.release(records, rng=seed)
        last = release.exchanges[-1][1]
        ended += last.above and len(release.exchanges) < few.updates_allowed
        rebuilt = replay(rule, 0.05, release.exchanges)
        values = [release.hypothesis.evaluate(cell) for cell in cells]
        assert values == [rebuilt.evaluate(cell) for cell in cells]
    assert ended >= 1


def test_no_accuracy_is_stated_at_or_below_the_fineness_of_a_net() -> None:
    """With 10^9 records only the fineness 1/8 limits the accuracy: 2/8 offline, 3/8 online."""
    rule = gd.mechanisms.Median(net(2, 4), fineness=1 / 8)
    queries = gd.mechanisms.EnumeratedQueries([DenseQuery(np.array([1.0, 0.0]))])
    built = gd.IterativeConstruction(rule, queries, n=10**9, privacy=PURE)
    assert built.accuracy == pytest.approx(1 / 4, rel=1e-9)
    run = gd.OnlineConstruction(rule, n=10**9, queries=5, privacy=PURE, rng=0)
    assert run.accuracy == pytest.approx(3 / 8, rel=1e-9)
    ledger = Ledger(PURE, adjacency=Adjacency.REPLACE_ONE)
    with pytest.raises(ValueError, match="alpha must be larger"):
        gd.IterativeConstruction(rule, queries, n=10**9, privacy=PURE, alpha=1 / 4)
    with pytest.raises(ValueError, match="alpha must be larger"):
        gd.OnlineConstruction(
            rule, n=10**9, queries=5, privacy=PURE, alpha=1 / 8, ledger=ledger, rng=0
        )
    assert not ledger.spends()


def test_a_net_that_is_too_coarse_states_no_accuracy_after_it_failed() -> None:
    """The only candidate is wrong, but with a false fineness the theorem seems to hold."""
    rule = gd.mechanisms.Median(np.array([[0.5, 0.5]]), fineness=0.001)
    query, n = DenseQuery(np.array([1.0, 0.0])), 10**6
    records = np.zeros(n, dtype=int)
    built = gd.IterativeConstruction(
        rule, gd.mechanisms.EnumeratedQueries([query]), n=n, privacy=PURE, alpha=0.01
    )
    release = built.release(records, rng=0)
    assert (built.accuracy, release.accuracy) == (0.01, None)
    run = gd.OnlineConstruction(rule, n=n, queries=5, privacy=PURE, alpha=0.01, rng=0)
    assert run.accuracy == 0.03
    answer = run.ask_truth(query, 1.0)
    assert answer.above
    assert answer.value == pytest.approx(1.0, abs=0.01)
    assert run.accuracy is None
    assert [found for _, found in run.exchanges] == [answer]
    assert replay(rule, 0.01, run.exchanges).evaluate(query) == 0.5


def test_a_step_of_no_size_is_refused() -> None:
    """Steps below 1e-12 are refused, and online (epsilon, delta)-DP with epsilon above 9/8."""
    with pytest.raises(ValueError, match="must be from 1e-12"):
        offline(PURE, alpha=1e-8)
    with pytest.raises(ValueError, match="epsilon must be at most 1"):
        online(ApproxDP(5.0, 1e-6), alpha=0.1, epsilon_0=0.4)


def test_the_ledger_pays_what_is_spent() -> None:
    ledger = Ledger(PURE, adjacency=Adjacency.REPLACE_ONE)
    built = offline(PURE, alpha=0.5, epsilon_0=0.03)  # the budget 1 pays for 16 rounds of 0.06
    assert built.updates_allowed == 16
    built.release(RECORDS, ledger=ledger)
    assert ledger.left()["epsilon"] == pytest.approx(0.04, abs=1e-12)
    with pytest.raises(gd.BudgetExhausted):
        online(PURE, alpha=0.5, epsilon_0=0.05, ledger=ledger)


@pytest.mark.parametrize("epsilon", [1e4, 1e12])
def test_an_epsilon_too_large_for_advanced_composition(epsilon: float) -> None:
    """For these epsilons, e^(budget of a step) is beyond float64."""
    with pytest.raises(ValueError, match=r"below about 4 ln\(1/delta\)"):
        gd.IterativeConstruction(
            gd.mechanisms.MultiplicativeWeights(2),
            gd.mechanisms.AllParities(1),
            n=100,
            privacy=ApproxDP(epsilon, 0.4),
            alpha=1.0,
        )
