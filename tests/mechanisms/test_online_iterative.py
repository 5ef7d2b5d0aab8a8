"""Online and iterative construction: accuracy theorems, budgets, replay and the stopping test."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from geomdp.mechanisms.interactive.iterative import (
    CORRECTED,
    AllParities,
    EnumeratedQueries,
    IterativeConstruction,
    StoppingDesign,
    composed_pairs,
    step_epsilon,
)
from geomdp.mechanisms.interactive.online import OnlineConstruction, solve_accuracy
from geomdp.mechanisms.interactive.sparse_vector import Answer
from geomdp.mechanisms.interactive.updates import (
    MultiplicativeWeights,
    Perceptron,
    SparseMultiplicativeWeights,
)
from geomdp.mechanisms.printed import PRINTED_STOPPING
from geomdp.noise.scalar import ExactNoise, GeneratorNoise
from geomdp.privacy import Adjacency, ApproxDP, PureDP
from geomdp.privacy.ledger import BudgetExhausted, Ledger
from geomdp.workloads.single_queries import DenseQuery, SparseQuery
from tests.mechanisms.replayed import replay
from tests.stats import binomial_above, binomial_agrees

APPROX = ApproxDP(1.0, 1e-6)


@pytest.mark.parametrize("privacy", [PureDP(1.0), APPROX])
def test_solved_accuracy_is_the_smallest(privacy: PureDP | ApproxDP) -> None:
    rule, n, queries, beta = SparseMultiplicativeWeights(10), 10**7, 1000, 0.05

    def right_side(alpha: float) -> float:
        c = math.floor(rule.bound(alpha))
        logs = math.log(2 * queries) + math.log(4 * c / beta)
        if isinstance(privacy, PureDP):
            return 9 * c * logs / (privacy.epsilon * n)
        return 9 * math.sqrt(8 * c * math.log(2 / privacy.delta)) * logs / (privacy.epsilon * n)

    alpha = solve_accuracy(rule, privacy=privacy, n=n, queries=queries, beta=beta)
    assert alpha >= right_side(alpha) * (1 - 1e-12)
    smaller = alpha * (1 - 1e-9)
    assert smaller < right_side(smaller)


def test_too_few_records_raise() -> None:
    with pytest.raises(ValueError, match="n must be larger"):
        OnlineConstruction(MultiplicativeWeights(100), n=10, queries=10, privacy=PureDP(1.0))


def sparse_records(n: int) -> list[str]:
    return ["a"] * (n // 2) + ["b"] * (n // 4) + [f"rare {i % 50}" for i in range(n // 4)]


@pytest.mark.statistical
def test_online_accuracy_update_bound_and_replay() -> None:
    n, queries, beta, trials = 400_000, 40, 0.2, 60
    rng = np.random.default_rng(3)
    tally = SparseQuery.counting(["a"]).tally(sparse_records(n))
    good, used = 0, 0
    for child in rng.spawn(trials):
        online = OnlineConstruction(
            SparseMultiplicativeWeights(3), n=n, queries=queries, privacy=APPROX, beta=beta,
            rng=child,
        )  # fmt: skip
        worst = 0.0
        for i in range(queries):
            query = SparseQuery.counting(["a", f"rare {i}", "absent"] if i % 2 else ["b"])
            truth = query.total(tally) / n
            answer = online.ask_truth(query, truth)
            assert answer.value is not None
            worst = max(worst, abs(answer.value - truth))
        good += worst <= online.accuracy
        used += online.updates
        assert online.updates <= online.updates_allowed
        rebuilt = replay(online.rule, online.alpha, online.exchanges)
        assert rebuilt.evaluate(SparseQuery.counting("ab")) == (
            online.hypothesis.evaluate(SparseQuery.counting("ab"))
        )
    binomial_above(good, trials, 1 - beta)
    assert used > 0  # without updates, all answers would come from the first hypothesis


def test_online_on_records_equals_online_on_truths() -> None:
    n = 400_000
    records = sparse_records(n)
    rule = SparseMultiplicativeWeights(2)
    on_records = OnlineConstruction(rule, n=n, queries=4, privacy=APPROX, records=records, rng=7)
    on_truths = OnlineConstruction(rule, n=n, queries=4, privacy=APPROX, rng=7)
    for support in (["a"], ["a", "b"], ["rare 1"], ["b"]):
        query = SparseQuery.counting(support)
        truth = query.total(query.tally(records)) / n
        assert on_records.ask(query) == on_truths.ask_truth(query, truth)
    with pytest.raises(BudgetExhausted, match="all 4 queries"):
        on_records.ask(SparseQuery.counting(["a"]))


def test_online_with_dense_rules() -> None:
    n, size = 2_000_000, 16
    records = np.repeat(np.arange(4), n // 4)
    for rule in (MultiplicativeWeights(size), Perceptron(size)):
        online = OnlineConstruction(rule, n=n, queries=3, privacy=APPROX, records=records, rng=1)
        query = DenseQuery(np.arange(size) < 4)
        answer = online.ask(query)
        assert answer.value is not None
        assert abs(answer.value - 1.0) <= online.accuracy


def test_exhausted_updates_answer_from_the_hypothesis_alone() -> None:
    """After the last allowed update, the hypothesis gives the answer and no noise is drawn."""
    rule = Perceptron(1)  # at most B(alpha) = 1 / alpha^2 updates
    online = OnlineConstruction(rule, n=10**4, queries=50, privacy=PureDP(1.0), rng=0)
    query = DenseQuery(np.ones(1))
    for i in range(50):
        online.ask_truth(query, float(i % 2))
        if online.updates == online.updates_allowed:
            break
    else:
        pytest.fail("the updates were not used up")
    before = online._comparisons._noise._rng.bit_generator.state  # type: ignore[attr-defined]
    answer = online.ask_truth(query, 1.0)
    assert answer == Answer(False, online.hypothesis.evaluate(query))
    assert online._comparisons._noise._rng.bit_generator.state == before  # type: ignore[attr-defined]


def test_online_bad_input_spends_nothing() -> None:
    n = 400_000
    online = OnlineConstruction(
        SparseMultiplicativeWeights(1), n=n, queries=5, privacy=APPROX, rng=0
    )
    for truth in (-0.5, 1.5, math.nan, math.inf):
        with pytest.raises(ValueError, match=r"truth must lie in \[0, 1\]"):
            online.ask_truth(SparseQuery.counting("a"), truth)
    with pytest.raises(ValueError, match="sparsity at most 1"):
        online.ask_truth(SparseQuery.counting("ab"), 0.5)
    with pytest.raises(ValueError, match="use ask_truth"):
        online.ask(SparseQuery.counting("a"))
    assert len(online.transcript) == 0
    with pytest.raises(ValueError, match="must number n"):
        OnlineConstruction(
            SparseMultiplicativeWeights(1), n=n, queries=5, privacy=APPROX, records=["a"]
        )


class Doubled(SparseQuery):
    """A query that takes the value 2, so its mean can change by 2 / n, not only by 1 / n."""

    def total(self, tally: Mapping[Hashable, int]) -> float:
        return 2 * super().total(tally)

    def exact_total(self, tally: Mapping[Hashable, int]) -> Fraction:
        return 2 * super().exact_total(tally)


class Negative(SparseQuery):
    """A query that takes the value -1."""

    def exact_total(self, tally: Mapping[Hashable, int]) -> Fraction:
        return -super().exact_total(tally)


class Undefined(SparseQuery):
    """A query whose sum in float64 is NaN."""

    def total(self, tally: Mapping[Hashable, int]) -> float:
        return math.nan * super().total(tally)


@pytest.mark.parametrize("adjacency", Adjacency)
def test_online_refuses_queries_with_answers_out_of_range(adjacency: Adjacency) -> None:
    n = 400_000
    online = OnlineConstruction(
        SparseMultiplicativeWeights(1), n=n, queries=5, privacy=APPROX, records=["a"] * n,
        adjacency=adjacency, rng=0,
    )  # fmt: skip
    state = online._comparisons._noise._rng.bit_generator.state  # type: ignore[attr-defined]
    bad: list[SparseQuery] = [Negative.counting("a")]
    if adjacency is Adjacency.REPLACE_ONE:  # under add/remove, a true answer may exceed 1
        bad.append(Doubled.counting("a"))
    for query in bad:
        with pytest.raises(ValueError, match=r"values in \[0, 1\] on every record"):
            online.ask(query)
    assert online._comparisons._noise._rng.bit_generator.state == state  # type: ignore[attr-defined]
    assert len(online.transcript) == 0


@pytest.mark.parametrize("adjacency", Adjacency)
def test_iterative_refuses_queries_with_answers_out_of_range(adjacency: Adjacency) -> None:
    """True answers out of range are refused before the ledger pays, and also in a seeded run."""
    n, ledger = 400_000, Ledger(APPROX, adjacency=adjacency)
    construction = IterativeConstruction(
        SparseMultiplicativeWeights(1), EnumeratedQueries([Doubled.counting("a")]), n=n,
        privacy=APPROX, adjacency=adjacency,
    )  # fmt: skip
    message = r"queries must have values in \[0, 1\]"
    with pytest.raises(ValueError, match=message):
        construction.release(["a"] * n, ledger=ledger)
    assert not ledger.spends()
    for kind in (Doubled, Undefined):
        construction.distinguisher = EnumeratedQueries([kind.counting("a")])
        with pytest.raises(ValueError, match=message):
            construction.release(["a"] * n, rng=0)


def test_listed_queries_must_share_one_tally() -> None:
    """The class of queries is refused when it is built, before any record is read."""
    sparse, dense = SparseQuery.counting(["a"]), DenseQuery(np.ones(3))
    for mixed in ([sparse, dense], [dense, DenseQuery(np.ones(4))]):
        with pytest.raises(ValueError, match="query 1 differs from query 0"):
            EnumeratedQueries(mixed)


def test_step_epsilon() -> None:
    assert step_epsilon(PureDP(1.0), 20) == pytest.approx(0.025, rel=1e-15)
    step = step_epsilon(APPROX, 20)
    assert step == pytest.approx(0.0150398, abs=5e-8)
    spread = math.sqrt(2 * 40 * math.log(1e6)) * step
    assert spread + 40 * step * math.expm1(step) == pytest.approx(0.50912, abs=5e-6)
    with pytest.raises(ValueError, match="advanced composition"):
        step_epsilon(ApproxDP(40.0, 0.4), 1)


def advanced(step: float, steps: int, delta: float) -> float:
    """GEN-2a: epsilon of the advanced composition of `steps` steps, each `step`-DP."""
    return math.sqrt(2 * steps * math.log(1 / delta)) * step + steps * step * math.expm1(step)


@pytest.mark.parametrize("updates", [1, 3, 50])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.3])
def test_step_epsilon_is_refused_exactly_where_its_composition_costs_too_much(
    updates: int, delta: float
) -> None:
    for epsilon in np.geomspace(0.1, 200, 25).tolist():
        step = epsilon / (4 * math.sqrt(updates * math.log(1 / delta)))
        if advanced(step, 2 * updates, delta) <= epsilon:
            assert step_epsilon(ApproxDP(epsilon, delta), updates) == pytest.approx(step, rel=1e-12)
        else:
            with pytest.raises(ValueError, match="advanced composition"):
                step_epsilon(ApproxDP(epsilon, delta), updates)


@pytest.mark.parametrize("updates", [1, 40, 5000])
@pytest.mark.parametrize("epsilon_0", [0.001, 0.3, 1.0, 2.5])
def test_pairs_of_steps_cost_the_better_composition(epsilon_0: float, updates: int) -> None:
    steps = 2 * updates
    assert composed_pairs(PureDP(1.0), epsilon_0, updates) == PureDP(steps * epsilon_0)
    found = composed_pairs(ApproxDP(1.0, 1e-6), epsilon_0, updates)
    assert isinstance(found, ApproxDP)
    best = min(steps * epsilon_0, advanced(epsilon_0, steps, 1e-6))
    assert found.epsilon == pytest.approx(best, rel=1e-9)
    assert found.delta == 1e-6


def test_stop_instance() -> None:
    """DISC-13: with the printed constants, a run can stop with an error of 1.49 alpha.

    It stops if the chosen query has a gap of 0.99 alpha and noise of -0.249 alpha. The gap of
    another query can be larger by the loss, alpha / 2.
    """
    seen = abs(0.99 - 0.249)
    assert seen < PRINTED_STOPPING.level
    assert 0.99 + PRINTED_STOPPING.loss == pytest.approx(1.49)
    assert PRINTED_STOPPING.guaranteed == pytest.approx(1.5)
    assert CORRECTED.guaranteed == pytest.approx(1.0)
    with pytest.raises(ValueError, match="at least 1/2"):
        StoppingDesign(noise=0.3, loss=0.1, level=0.75)


@pytest.mark.statistical
def test_exponential_mechanism_law() -> None:
    """A query with the gap g is chosen with a probability proportional to exp(epsilon n g / 2)."""
    queries = [DenseQuery(np.array(v)) for v in ([1.0, 0.0], [0.0, 1.0], [0.5, 0.5])]
    chooser = EnumeratedQueries(queries)
    hypothesis = MultiplicativeWeights(2).start(0.1)
    truths = np.array([0.8, 0.3, 0.5])
    noise, trials, n, epsilon = GeneratorNoise(1), 20_000, 10, 1.0
    picks = [
        chooser.choose(truths, hypothesis, epsilon=epsilon, n=n, noise=noise) for _ in range(trials)
    ]
    weights = np.exp(epsilon * n * np.abs(truths - 0.5) / 2)
    for i, probability in enumerate(weights / weights.sum()):
        binomial_agrees(picks.count(i), trials, float(probability), level=1e-6 / 3)


def test_all_parities_equal_enumeration() -> None:
    rng = np.random.default_rng(0)
    d, n = 5, 200
    records = rng.integers(1 << d, size=n)
    parities = AllParities(d)
    listed = EnumeratedQueries([parities.query(i) for i in range(1 << d)])
    hypothesis = MultiplicativeWeights(1 << d).start(0.3)
    hypothesis.update(parities.query(9), 0.9)
    np.testing.assert_allclose(parities.truths(records, n), listed.truths(records, n), rtol=1e-13)
    np.testing.assert_allclose(
        parities.estimates(hypothesis), listed.estimates(hypothesis), rtol=1e-13
    )


class Seen(ExactNoise):
    """Noise that checks the computed gaps against the exact gaps, and chooses the first query."""

    def exact_argmax(self, near: Any, errors: Any, exact: Any, scale: float) -> int:
        self.gaps, self.scale = [exact(i) for i in range(len(near))], scale
        for value, error, gap in zip(near.tolist(), errors.tolist(), self.gaps, strict=True):
            assert abs(Fraction(value) - gap) <= error <= 2.0**-48
        return 0


def test_exact_choices_are_among_the_exact_gaps() -> None:
    """Exact gaps are distances of means from estimates; computed gaps are within proved errors."""
    records = np.array([3, 5, 6])
    parities, noise = AllParities(3), Seen()
    hypothesis = MultiplicativeWeights(8).start(0.3)
    truths = parities.exact_truths(records, 3)
    parities.choose(truths, hypothesis, epsilon=0.5, n=3, noise=noise)
    estimates = [Fraction(x) for x in parities.estimates(hypothesis).tolist()]
    means = [Fraction(int(parities.query(i).values[records].sum()), 3) for i in range(8)]
    assert noise.gaps == [abs(m - e) for m, e in zip(means, estimates, strict=True)]
    assert noise.scale == pytest.approx(2 / (3 * 0.5), rel=1e-12)
    assert noise.scale >= 2 / (3 * 0.5)


def test_a_seeded_run_claims_no_privacy() -> None:
    construction = IterativeConstruction(
        MultiplicativeWeights(4), AllParities(2), n=10**6, privacy=APPROX
    )
    records = np.zeros(10**6, dtype=int)
    assert construction.release(records, rng=0).guarantee.seeded
    assert not construction.release(records).guarantee.seeded


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("privacy", "n", "beta", "trials"),
    # Releases from 40 million records are slow. With beta = 1e-7, one failure in six refutes the
    # theorem: its probability is at most 6e-7, below the level 1e-6.
    [(PureDP(1.0), 40_000_000, 1e-7, 6), (APPROX, 4_000_000, 0.2, 60)],
)
def test_iterative_accuracy_theorem(
    privacy: PureDP | ApproxDP, n: int, beta: float, trials: int
) -> None:
    d = 4
    rng = np.random.default_rng(9)
    construction = IterativeConstruction(
        MultiplicativeWeights(1 << d), AllParities(d), n=n, privacy=privacy, beta=beta
    )
    assert construction.accuracy < 0.25
    truths = construction.distinguisher.truths(np.array([3] * 8 + [5, 6]), 10)
    records = np.repeat(np.array([3] * 8 + [5, 6], dtype=np.int8), n // 10)
    good = 0
    for child in rng.spawn(trials):
        release = construction.release(records, rng=child)
        estimates = construction.distinguisher.estimates(release.hypothesis)
        good += bool(np.abs(estimates - truths).max() <= construction.accuracy)
        assert len(release.exchanges) <= construction.updates_allowed
        assert len(release.exchanges) > 1
    binomial_above(good, trials, 1 - beta)


def test_corrected_accuracy_closed_form() -> None:
    """IC-T5 for pure DP: alpha^3 = 512 ln|X| ln(|C| / gamma) / (n epsilon), up to rounding of B.

    X is the universe, C the class of queries, and B the number of updates, which is rounded down.
    """
    d, n, beta = 6, 10**8, 0.05
    found = IterativeConstruction(
        MultiplicativeWeights(1 << d), AllParities(d), n=n, privacy=PureDP(1.0), beta=beta
    )
    gamma = beta / (2 * found.updates_allowed)
    closed = (512 * math.log(2**d) / n * math.log(2**d / gamma)) ** (1 / 3)
    assert found.alpha == pytest.approx(closed, rel=2 / found.updates_allowed)


def test_iterative_checks_records_before_any_draw() -> None:
    construction = IterativeConstruction(
        MultiplicativeWeights(4), AllParities(2), n=10**7, privacy=PureDP(1.0)
    )
    rng = np.random.default_rng(0)
    state = rng.bit_generator.state
    with pytest.raises(ValueError, match="must number n"):
        construction.release(np.zeros(5, dtype=int), rng=rng)
    with pytest.raises(ValueError, match="codes from 0 to 3"):
        IterativeConstruction(
            MultiplicativeWeights(4), AllParities(2), n=10**7, privacy=PureDP(1.0),
            adjacency=Adjacency.ADD_REMOVE,
        ).release(np.array([4]), rng=rng)  # fmt: skip
    assert rng.bit_generator.state == state
