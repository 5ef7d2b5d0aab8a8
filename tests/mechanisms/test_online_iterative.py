"""Online and iterative construction: accuracy, budgets, stated parameters, replay, and refusals."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

import geomdp as gd
from geomdp.mechanisms import (
    AllParities,
    Answer,
    EnumeratedQueries,
    Median,
    MultiplicativeWeights,
    Perceptron,
    SparseMultiplicativeWeights,
)
from geomdp.mechanisms.interactive import iterative
from geomdp.mechanisms.interactive.iterative import (
    CORRECTED,
    StoppingDesign,
    composed_pairs,
    step_epsilon,
)
from geomdp.mechanisms.interactive.online import solve_accuracy
from geomdp.mechanisms.interactive.updates import follow
from geomdp.mechanisms.printed import PRINTED_STOPPING
from geomdp.noise.scalar import ExactNoise, GeneratorNoise
from geomdp.privacy import Adjacency, ApproxDP, BudgetExhausted, Ledger, PureDP
from geomdp.workloads import DenseQuery, SparseQuery
from tests.stats import binomial_above, binomial_agrees

PURE, APPROX = PureDP(1.0), ApproxDP(1.0, 1e-6)
BITS, FEW, MANY = 4, 500, 400_000
RULE, CLASS = MultiplicativeWeights(1 << BITS), AllParities(BITS)
#: All records are equal, so the uniform start is wrong by 1/2 on 15 of the 16 parities.
RECORDS = np.full(FEW, 3)
BOTH = pytest.mark.parametrize("privacy", [PURE, APPROX], ids=str)


def offline(privacy, rule=RULE, queries=CLASS, n=FEW, **stated):
    return gd.IterativeConstruction(rule, queries, n=n, privacy=privacy, **stated)


def online(privacy, rule=RULE, queries=200, n=FEW, **stated):
    return gd.OnlineConstruction(rule, n=n, queries=queries, privacy=privacy, **stated)


EACH = pytest.mark.parametrize("build", [offline, online])


def replay(rule, alpha, exchanges):
    """The hypothesis of a run, rebuilt from its public queries and answers (post-processing)."""
    hypothesis = rule.start(alpha)
    for query, answer in exchanges:
        if answer.above:
            follow(hypothesis, query, answer.value)
    return hypothesis


def advanced(step: float, steps: int, delta: float) -> float:
    """GEN-2a: epsilon of the advanced composition of `steps` steps, each `step`-DP."""
    return math.sqrt(2 * steps * math.log(1 / delta)) * step + steps * step * math.expm1(step)


def composed(step: float, steps: int, budget) -> float:
    """Epsilon of all steps by basic composition; for approximate DP, by advanced if smaller."""
    if isinstance(budget, PureDP):
        return steps * step
    return min(steps * step, advanced(step, steps, budget.delta))


def state(mechanism):
    """The state of the generator of a seeded online run, which changes with every draw."""
    return mechanism._comparisons._noise._rng.bit_generator.state


# Accuracy theorems.


@BOTH
def test_solved_accuracy_is_the_smallest(privacy):
    rule, n, queries, beta = SparseMultiplicativeWeights(10), 10**7, 1000, 0.05

    def right_side(alpha: float) -> float:
        c = math.floor(rule.bound(alpha))
        logs = math.log(2 * queries) + math.log(4 * c / beta)
        steps = c if privacy == PURE else math.sqrt(8 * c * math.log(2 / privacy.delta))
        return 9 * steps * logs / (privacy.epsilon * n)

    alpha = solve_accuracy(rule, privacy=privacy, n=n, queries=queries, beta=beta)
    assert alpha >= right_side(alpha) * (1 - 1e-12)
    smaller = alpha * (1 - 1e-9)
    assert smaller < right_side(smaller)


def sparse_records(n: int) -> list[str]:
    return ["a"] * (n // 2) + ["b"] * (n // 4) + [f"rare {i % 50}" for i in range(n // 4)]


@pytest.mark.statistical
def test_online_accuracy_update_bound_and_replay():
    queries, beta, trials, both = 40, 0.2, 60, SparseQuery.counting("ab")
    tally = both.tally(sparse_records(MANY))
    good, used = 0, 0
    for rng in np.random.default_rng(3).spawn(trials):
        rule = SparseMultiplicativeWeights(3)
        run = online(APPROX, rule, queries, MANY, beta=beta, rng=rng)
        worst = 0.0
        for i in range(queries):
            query = SparseQuery.counting(["a", f"rare {i}", "absent"] if i % 2 else ["b"])
            truth = query.total(tally) / MANY
            worst = max(worst, abs(run.ask_truth(query, truth).value - truth))
        good += worst <= run.accuracy
        used += run.updates
        assert run.updates <= run.updates_allowed
        rebuilt = replay(rule, run.alpha, run.exchanges)
        assert rebuilt.evaluate(both) == run.hypothesis.evaluate(both)
    binomial_above(good, trials, 1 - beta)
    assert used > 0  # without updates, all answers would come from the first hypothesis


def test_online_on_records_equals_online_on_truths():
    records, rule = sparse_records(FEW), SparseMultiplicativeWeights(2)
    on_records = online(APPROX, rule, 4, alpha=0.05, records=records, rng=7)
    on_truths = online(APPROX, rule, 4, alpha=0.05, rng=7)
    queries = [SparseQuery.counting(support) for support in ("a", "ab", ["rare 1"], "b")]
    for query in queries:
        truth = query.total(query.tally(records)) / FEW
        assert on_records.ask(query) == on_truths.ask_truth(query, truth)
    assert [query for query, _ in on_records.exchanges] == queries
    with pytest.raises(BudgetExhausted, match="all 4 queries"):
        on_records.ask(SPARSE)


def test_exhausted_updates_answer_from_the_hypothesis_alone():
    """After the last allowed update, the hypothesis gives the answer and no noise is drawn."""
    run = online(PURE, Perceptron(1), 50, 10**4, rng=0)  # at most B(alpha) = 1 / alpha^2 updates
    query, asked = DenseQuery(np.ones(1)), 0
    while run.updates < run.updates_allowed:
        run.ask_truth(query, float(asked % 2))
        asked += 1
    assert asked < 50
    before = state(run)
    assert run.ask_truth(query, 1.0) == Answer(False, run.hypothesis.evaluate(query))
    assert state(run) == before


@pytest.mark.statistical
@pytest.mark.parametrize(("privacy", "n"), [(PURE, 4_000_000), (APPROX, 1_000_000)])
def test_iterative_accuracy_theorem(privacy, n):
    """One failure in five refutes the theorem: its probability is at most 5e-7."""
    built = offline(privacy, n=n, beta=1e-7)
    assert built.accuracy < 0.25
    truths = CLASS.truths(np.array([3] * 8 + [5, 6]), 10)
    records = np.repeat(np.array([3] * 8 + [5, 6], dtype=np.int8), n // 10)
    for rng in np.random.default_rng(9).spawn(5):
        release = built.release(records, rng=rng)
        assert np.abs(CLASS.estimates(release.hypothesis) - truths).max() <= built.accuracy
        assert 1 < len(release.exchanges) <= built.updates_allowed


@pytest.mark.parametrize("rng", [None, 0])
def test_a_run_stops_where_the_hypothesis_is_right(rng):
    records = np.tile(np.arange(1 << BITS), 10**5)
    release = offline(PURE, n=len(records)).release(records, rng=rng)
    assert [answer.above for _, answer in release.exchanges] == [False]


def test_iterative_runs_repeat_with_their_seed_alone():
    records = np.repeat(np.array([3] * 8 + [5, 6], dtype=np.int8), 2000)
    built = offline(PURE, n=len(records), alpha=0.3)
    runs = [built.release(records, rng=seed).exchanges for seed in (0, 0, 1)]
    first, again, other = ([answer for _, answer in exchanges] for exchanges in runs)
    assert first == again
    assert first != other


def test_corrected_accuracy_closed_form():
    """IC-T5: alpha^3 = 512 ln|X| ln(|C| / gamma) / (n epsilon), up to rounding of the updates B."""
    d, n, beta = 6, 10**8, 0.05
    found = offline(PURE, MultiplicativeWeights(1 << d), AllParities(d), n, beta=beta)
    gamma = beta / (2 * found.updates_allowed)
    closed = (512 * math.log(2**d) / n * math.log(2**d / gamma)) ** (1 / 3)
    assert found.alpha == pytest.approx(closed, rel=2 / found.updates_allowed)


@pytest.mark.parametrize(("noise", "loss"), [(0.01, 0.3), (0.25, 0.05)])
def test_the_share_that_binds_is_used_up(noise, loss):
    """IC-T5: the least alpha is used up by noise or loss, up to the rounding of the updates B."""
    n, beta = 10**9, 0.05
    found = offline(PURE, n=n, beta=beta, design=StoppingDesign(noise, loss, level=3 / 4))
    log = math.log(2 * found.updates_allowed / beta)
    used = log / noise, 2 * (log + math.log(CLASS.size)) / loss
    assert max(used) / (found.step_epsilon * n) == pytest.approx(found.alpha, rel=1e-3)
    assert found.accuracy == pytest.approx((3 / 4 + noise + loss) * found.alpha)


def test_stop_instance():
    """DISC-13: with the printed constants, a run can stop with an error of 1.49 alpha."""
    assert abs(0.99 - 0.249) < PRINTED_STOPPING.level
    assert 0.99 + PRINTED_STOPPING.loss == pytest.approx(1.49)
    assert PRINTED_STOPPING.guaranteed == pytest.approx(1.5)
    assert CORRECTED.guaranteed == pytest.approx(1.0)
    with pytest.raises(ValueError, match="at least 1/2"):
        StoppingDesign(noise=0.3, loss=0.1, level=0.75)


# The choice of a query.


@pytest.mark.statistical
def test_exponential_mechanism_law():
    """A query with the gap g is chosen with a probability proportional to exp(epsilon n g / 2)."""
    queries = [DenseQuery(np.array(v)) for v in ([1.0, 0.0], [0.0, 1.0], [0.5, 0.5])]
    chooser, start = EnumeratedQueries(queries), MultiplicativeWeights(2).start(0.1)
    truths, noise = np.array([0.8, 0.3, 0.5]), GeneratorNoise(1)
    trials, n, epsilon = 20_000, 10, 1.0
    picks = [
        chooser.choose(truths, start, epsilon=epsilon, n=n, noise=noise) for _ in range(trials)
    ]
    weights = np.exp(epsilon * n * np.abs(truths - 0.5) / 2)
    for i, probability in enumerate(weights / weights.sum()):
        binomial_agrees(picks.count(i), trials, float(probability), level=1e-6 / 3)


def test_all_parities_equal_enumeration():
    d, n = 5, 200
    records, parities = np.random.default_rng(0).integers(1 << d, size=n), AllParities(d)
    listed = EnumeratedQueries([parities.query(i) for i in range(1 << d)])
    hypothesis = MultiplicativeWeights(1 << d).start(0.3)
    hypothesis.update(parities.query(9), 0.9)
    np.testing.assert_allclose(parities.truths(records, n), listed.truths(records, n), rtol=1e-13)
    exact = parities.exact_truths(records, n)
    assert list(exact) == list(listed.exact_truths(records, n))
    for truths in (exact, listed.exact_truths(records, n)):
        near = truths.near()
        assert near.dtype == np.float64
        np.testing.assert_allclose(near, parities.truths(records, n), rtol=1e-15)
    np.testing.assert_allclose(
        parities.estimates(hypothesis), listed.estimates(hypothesis), rtol=1e-13
    )


class Seen(ExactNoise):
    """Noise that checks the computed gaps against the exact gaps, and chooses the first query."""

    def exact_argmax(self, near, errors, exact, scale):
        self.gaps, self.scale = [exact(i) for i in range(len(near))], scale
        for value, error, gap in zip(near.tolist(), errors.tolist(), self.gaps, strict=True):
            assert abs(Fraction(value) - gap) <= error <= 2.0**-48
        return 0


def test_exact_choices_are_among_the_exact_gaps():
    """Exact gaps are distances of means from estimates; computed gaps are within proved errors."""
    records, parities, noise = np.array([3, 5, 6]), AllParities(3), Seen()
    hypothesis = MultiplicativeWeights(8).start(0.3)
    truths = parities.exact_truths(records, 3)
    parities.choose(truths, hypothesis, epsilon=0.5, n=3, noise=noise)
    estimates = [Fraction(x) for x in parities.estimates(hypothesis).tolist()]
    means = [Fraction(int(parities.query(i).values[records].sum()), 3) for i in range(8)]
    assert noise.gaps == [abs(m - e) for m, e in zip(means, estimates, strict=True)]
    assert 2 / (3 * 0.5) <= noise.scale <= 2 / (3 * 0.5) * (1 + 1e-12)


# Budgets of steps and runs.


def test_step_epsilon():
    assert step_epsilon(PURE, 20) == pytest.approx(0.025, rel=1e-15)
    step = step_epsilon(APPROX, 20)
    assert step == pytest.approx(0.0150398, abs=5e-8)
    assert advanced(step, 40, 1e-6) == pytest.approx(0.50912, abs=5e-6)


@pytest.mark.parametrize(("updates", "delta"), [(1, 0.3), (3, 1e-3), (50, 1e-9)])
def test_step_epsilon_is_refused_exactly_where_its_composition_costs_too_much(updates, delta):
    for epsilon in np.geomspace(0.1, 200, 25).tolist():
        step = epsilon / (4 * math.sqrt(updates * math.log(1 / delta)))
        if advanced(step, 2 * updates, delta) <= epsilon:
            assert step_epsilon(ApproxDP(epsilon, delta), updates) == pytest.approx(step, rel=1e-12)
        else:
            with pytest.raises(ValueError, match="advanced composition"):
                step_epsilon(ApproxDP(epsilon, delta), updates)


@pytest.mark.parametrize(("epsilon_0", "updates"), [(0.001, 5000), (0.3, 1), (1.0, 40), (2.5, 40)])
def test_pairs_of_steps_cost_the_better_composition(epsilon_0, updates):
    steps = 2 * updates
    assert composed_pairs(PURE, epsilon_0, updates) == PureDP(steps * epsilon_0)
    found = composed_pairs(APPROX, epsilon_0, updates)
    assert found.epsilon == pytest.approx(composed(epsilon_0, steps, APPROX), rel=1e-9)
    assert found.delta == 1e-6


class Counted(ExactNoise):
    """Exact noise that records the privacy loss of every draw, for means of `FEW` records."""

    losses: ClassVar[list[float]] = []

    def exact_argmax(self, near, errors, exact, scale):
        # An error changes by at most 1/n between neighbours. So the exponential mechanism with
        # noise of this scale is 2 / (n scale)-DP.
        self.losses.append(2 / (FEW * scale))
        return super().exact_argmax(near, errors, exact, scale)

    def laplace(self, value, scale):
        self.losses.append(1 / (FEW * scale))
        return super().laplace(value, scale)


@BOTH
@pytest.mark.parametrize("epsilon_0", [None, 0.05, 0.004, 0.5])
def test_a_run_spends_what_it_claims(privacy, epsilon_0, monkeypatch):
    """All losses compose to at most the guarantee; for a stated step, to exactly the guarantee."""
    losses: list[float] = []
    monkeypatch.setattr(Counted, "losses", losses)
    monkeypatch.setattr(iterative, "ExactNoise", Counted)
    built = offline(privacy, alpha=0.9 if epsilon_0 is None else 0.02, epsilon_0=epsilon_0)
    # With the level 0, no run stops before its last round.
    never = StoppingDesign(noise=1 / 8, loss=1 / 8, level=3 / 4)
    object.__setattr__(never, "level", 0.0)
    monkeypatch.setattr(built, "design", never)
    release = built.release(RECORDS)
    assert release.guarantee.privacy == built.spent
    assert not release.guarantee.seeded
    assert built.release(RECORDS, rng=0).guarantee.seeded
    assert len(losses) == 2 * built.updates_allowed == 2 * len(release.exchanges)
    assert max(losses) - min(losses) < 1e-12
    total = composed(max(losses), len(losses), privacy)
    assert total <= built.spent.epsilon * (1 + 1e-12)
    assert built.spent.epsilon <= privacy.epsilon
    if epsilon_0 is not None:
        assert total == pytest.approx(built.spent.epsilon, rel=1e-12)
        assert composed(epsilon_0, 2 * built.updates_allowed + 2, privacy) > privacy.epsilon


@BOTH
@pytest.mark.parametrize("epsilon_0", [0.05, 0.004, 0.08])
def test_online_scales_belong_to_what_is_claimed(privacy, epsilon_0):
    """Each update gets 8/9 of epsilon_0 for comparisons and 1/9 for its value."""
    run = online(privacy, alpha=0.05, epsilon_0=epsilon_0)
    spent, count, scales = run.guarantee.privacy, run.updates_allowed, run._comparisons.scales
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
        assert spent.delta == privacy.delta
    assert count == math.floor(limit * (1 + 1e-12))
    assert spent.epsilon == pytest.approx(total, rel=1e-12)
    assert spent.epsilon <= privacy.epsilon


@EACH
@BOTH
def test_accuracy_is_stated_where_the_theorem_holds(build, privacy):
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


@EACH
def test_the_least_alpha_for_a_stated_step(build):
    n = 10**8
    # With this step the budget pays for all updates that a run at 1.3 alpha can need.
    wanted = build(PURE, n=n, alpha=1.3 * build(PURE, n=n).alpha).updates_allowed
    stated = {"n": n, "epsilon_0": 1 / ((2 if build is offline else 1) * wanted)}
    found = build(PURE, **stated)
    assert found.accuracy is not None
    assert build(PURE, **stated, alpha=found.alpha * (1 - 1e-9)).accuracy is None


# Nets that are too coarse.


FIRST = DenseQuery(np.array([1.0, 0.0]))


def test_a_net_that_is_too_coarse_states_no_accuracy_after_it_failed():
    """The only candidate is wrong, but with a false fineness the theorem seems to hold."""
    rule, n = Median(np.array([[0.5, 0.5]]), fineness=0.001), 10**6
    built = offline(PURE, rule, EnumeratedQueries([FIRST]), n, alpha=0.01)
    release = built.release(np.zeros(n, dtype=int), rng=0)
    assert (built.accuracy, release.accuracy) == (0.01, None)
    assert repr(built).endswith("replace-one: accuracy 0.01)")
    assert repr(release).startswith("IterativeRelease(no stated accuracy after 1 query;")
    run = online(PURE, rule, 5, n, alpha=0.01, rng=0)
    assert run.accuracy == 0.03
    answer = run.ask_truth(FIRST, 1.0)
    assert answer.above
    assert answer.value == pytest.approx(1.0, abs=0.01)
    assert run.accuracy is None
    assert [found for _, found in run.exchanges] == [answer]
    assert replay(rule, 0.01, run.exchanges).evaluate(FIRST) == 0.5
    # An answer that is followed later does not make up for one that was not.
    several = Median(np.array([[x, 1 - x] for x in (0.1, 0.2, 0.3, 0.4, 0.5)]), fineness=0.001)
    run = online(PURE, several, 5, n, alpha=0.01, rng=0)
    assert run.ask_truth(DenseQuery(np.zeros(2)), 1.0).above
    assert run.ask_truth(FIRST, 0.5).above
    assert run.hypothesis.evaluate(FIRST) > 0.3
    assert run.accuracy is None


# Refusals.


@EACH
@pytest.mark.parametrize(
    ("stated", "message"),
    [
        *(
            ({"alpha": bad}, "alpha must be from 1e-100 to 1")
            for bad in (0.0, 1.5, math.nan, "0.1", True, 1e-101, 5e-324)
        ),
        ({"alpha": 1e-40}, "alpha must be larger"),
        *(({"epsilon_0": bad}, "must be a finite number above 0") for bad in (0.0, -1.0, "1")),
        ({"epsilon_0": math.inf}, "epsilon"),
        ({"epsilon_0": 1e-13, "alpha": 0.5}, "must be from 1e-12"),
        ({"epsilon_0": 1.1, "alpha": 0.5}, "epsilon_0 must be smaller: one update would spend"),
        ({"epsilon_0": 0.05}, "n must be larger"),
        ({}, "n must be larger"),
    ],
)
def test_bad_combinations_spend_nothing(build, stated, message):
    ledger = Ledger(PURE, adjacency=Adjacency.REPLACE_ONE)
    pays = {"ledger": ledger} if build is online else {}  # an offline run pays when released
    with pytest.raises(ValueError, match=message):
        build(PURE, **stated, **pays)
    assert not ledger.spends()


ZCDP, TWO = gd.ZCDP(1.0), "privacy must be PureDP or ApproxDP"
SPARSE, DENSE = SparseQuery.counting(["a"]), DenseQuery(np.ones(3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *(
            (lambda build=build, stated=stated: build(ZCDP, **stated), TWO)
            for build in (offline, online)
            for stated in ({}, {"alpha": 0.1}, {"alpha": 0.1, "epsilon_0": 0.1})
        ),
        # A step of no size: below 1e-12, or online (epsilon, delta)-DP with epsilon above 9/8.
        (lambda: offline(PURE, alpha=1e-8), "must be from 1e-12"),
        (lambda: AllParities(25), "d must be a whole number, at least 1 and at most 24, got 25"),
        (lambda: online(ApproxDP(5.0, 1e-6), alpha=0.1, epsilon_0=0.4), "must be at most 1"),
        # For these epsilons, e^(budget of a step) is beyond float64.
        (lambda: offline(ApproxDP(1e4, 0.4), alpha=1.0), r"below about 4 ln\(1/delta\)"),
        (lambda: offline(ApproxDP(1e12, 0.4), alpha=1.0), r"below about 4 ln\(1/delta\)"),
        *(
            (lambda pair=pair: EnumeratedQueries(pair()), "query 1 differs from query 0")
            for pair in (
                lambda: [DENSE, SPARSE],
                lambda: [DENSE, DenseQuery(np.ones(4))],
                lambda: [SPARSE, Doubled.counting("a")],  # its tally could mean something else
            )
        ),
    ],
)
def test_what_cannot_be_built(call, message):
    with pytest.raises(ValueError, match=message):
        call()


class Doubled(SparseQuery):
    """A query that takes the value 2, so its mean can change by 2 / n, not only by 1 / n."""

    factor: ClassVar = 2

    def total(self, tally):
        return self.factor * super().total(tally)

    def exact_total(self, tally):
        return self.factor * super().exact_total(tally)


class Negative(Doubled):
    factor = -1


class Undefined(Doubled):
    factor = math.nan


def test_online_bad_input_spends_nothing():
    run = online(APPROX, SparseMultiplicativeWeights(1), 5, MANY, rng=0)
    for call, message in (
        *(
            (lambda truth=truth: run.ask_truth(SPARSE, truth), r"truth must lie in \[0, 1\]")
            for truth in (-0.5, 1.5, math.nan, math.inf)
        ),
        (lambda: run.ask_truth(SparseQuery.counting("ab"), 0.5), "sparsity at most 1"),
        (lambda: run.ask(SPARSE), "use ask_truth"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert run.transcript == ()


@pytest.mark.parametrize("adjacency", Adjacency)
def test_queries_with_answers_out_of_range_are_refused(adjacency):
    """They are refused before the ledger pays or noise is drawn, and also in a seeded run."""
    records, ledger = ["a"] * FEW, Ledger(APPROX, adjacency=adjacency)
    rule, options = SparseMultiplicativeWeights(1), {"alpha": 0.5, "adjacency": adjacency}
    for kind, given in (
        (Doubled, {"ledger": ledger}), (Doubled, {"rng": 0}), (Undefined, {"rng": 0})
    ):  # fmt: skip
        queries = EnumeratedQueries([kind.counting("a")])
        built = offline(APPROX, rule, queries, **options)
        with pytest.raises(ValueError, match=r"queries must have values in \[0, 1\]"):
            built.release(records, **given)
    assert not ledger.spends()
    run = online(APPROX, rule, 5, records=records, rng=0, **options)
    before = state(run)
    # Under add/remove, a true answer may exceed 1.
    kinds = [Negative, Doubled] if adjacency is Adjacency.REPLACE_ONE else [Negative]
    for kind in kinds:
        with pytest.raises(ValueError, match=r"values in \[0, 1\] on every record"):
            run.ask(kind.counting("a"))
    assert state(run) == before
    assert run.transcript == ()
