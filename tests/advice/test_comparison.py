"""What is advised: epsilon-DP noise under weaker guarantees, and fits compared in simulations."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.stats

import geomdp as gd
from geomdp import mechanisms, sample_complexity_bracket, workloads
from geomdp.advice import Advice, advise, comparison
from geomdp.advice.advisor import plan_of
from geomdp.advice.candidates import CANDIDATES, PROJECTED
from geomdp.advice.setting import DEFAULT_BUDGET, InapplicableError, Setting
from geomdp.bounds import RMS
from geomdp.mechanisms import Fitted, PredictionKind, Projected, Shrunk
from geomdp.mechanisms.additive_noise.base import additive_within
from geomdp.noise.knorm import ball_rate
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Ledger, PureDP, gaussian_scale
from geomdp.privacy.definitions import largest_epsilon
from geomdp.workloads import (
    ChosenTables,
    Explicit,
    Histogram,
    Marginals,
    MarginalTables,
    Prefixes,
    RandomSigns,
    SecondMoment,
    WorkloadSizeError,
)

APPROXIMATE = ApproxDP(1.0, 1e-6)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
ONE_QUERY = Explicit(np.array([[0.0, 1.0]]))
WORKLOADS = {
    "one query": ONE_QUERY,
    "histogram": Histogram(4),
    "bits": Marginals(3, 1),
    "prefixes": Prefixes(16),
    "tables": MarginalTables([2, 3, 2], 2),
    "signs": RandomSigns(6, 20, 0),
    "moments": SecondMoment(3),
}


def test_k_norm_noise_beats_gaussian_noise_for_a_small_delta():
    workload = Histogram(4)
    advice = advise(workload, n=5000, privacy=APPROXIMATE, exact_only=True)
    assert isinstance(additive_within(advice.best), mechanisms.KNorm)
    assert advice.best.guarantee.privacy == PureDP(1.0)
    assert advice.asked == APPROXIMATE
    assert "It implies (1, 1e-06)-DP, which was asked for." in " ".join(advice.reasons)
    # For an error of 0.01 this noise needs 205 records, and Gaussian noise needs 518. The bracket
    # has 205, too.
    gaussian = mechanisms.Gaussian(workload, n=5000, privacy=APPROXIMATE)
    assert advice.best.predicted_rmse.value < 0.4 * gaussian.predicted_rmse.value
    bracket = sample_complexity_bracket(workload, alpha=0.01, metric=RMS(), privacy=APPROXIMATE)
    assert bracket.upper.records == 205
    assert advice.best.with_n(205).predicted_rmse.value <= 0.01
    assert advice.best.with_n(204).predicted_rmse.value > 0.01


def test_whole_noise_beats_gaussian_noise_for_a_large_rho():
    small, large = (
        advise(ONE_QUERY, n=10**5, privacy=ZCDP(rho), exact_only=True) for rho in (1.5, 12.5)
    )
    assert isinstance(additive_within(small.best), mechanisms.Gaussian)
    assert isinstance(additive_within(large.best), mechanisms.Geometric)
    assert large.best.guarantee.privacy == ZCDP(12.5)
    assert large.best.predicted_rmse.value < 0.1 * 1e-5 / math.sqrt(2 * 12.5)


@pytest.mark.parametrize(("asked", "stated", "left"), [
    (ZCDP(12.5), ZCDP(12.5), {"rho": 0.0}),
    (ApproxDP(5.0, 1e-9), PureDP(5.0), {"epsilon": 0.0, "delta": 1e-9}),
], ids=str)  # fmt: skip
def test_a_release_states_and_spends_what_is_proved(asked, stated, left):
    mechanism = advise(ONE_QUERY, n=200, privacy=asked, exact_only=True).best
    with Ledger(asked) as ledger:
        release = mechanism.release(np.zeros(200, dtype=int), ledger=ledger)
        assert release.guarantee.privacy == stated
        assert str(release.guarantee).startswith(f"{stated}, replace-one")
        assert str(stated) in repr(release)
        assert [spend.privacy for spend in ledger.spends()] == [stated]
        assert ledger.left() == left


@pytest.mark.parametrize(("rho", "adjacency"), [*zip((0.01, 4.0), Adjacency, strict=True)])
@pytest.mark.parametrize("name", WORKLOADS)
def test_no_pure_noise_is_below_the_floor(name, rho, adjacency):
    workload, compared = WORKLOADS[name], 0
    for n in (3, 30, 3000):
        setting = Setting(workload, n, ZCDP(rho), adjacency, exact_only=True)
        trials = _gaussian(setting)
        for row in CANDIDATES:
            if not row.is_stronger(setting) or PROJECTED not in row.steps:
                continue
            floor = comparison.pure_noise_floor(trials, row.guarantees.most_epsilon(setting))
            assert floor > 0
            try:
                noise = row.compared(setting)
                error = noise.predicted_rmse.value
            except (InapplicableError, WorkloadSizeError):
                continue
            # The floor and the prediction of `Projected` can both be the diameter of the answers,
            # up to rounding.
            assert floor < error * (1 + 1e-12)
            assert floor < mechanisms.Projected(noise).predicted_rmse.value * (1 + 1e-12)
            compared += 1
    assert compared >= 9


def test_gaussian_noise_on_a_large_universe_proves_nothing():
    """For 5000 elements the ellipsoid of `Matrix` need not be near the best, so no floor is known.

    Most elements have answers near 0, and a few have one large answer. The best Gaussian noise has
    about half of the error of `Matrix`. The error of pure noise is between these two errors.
    """
    queries, elements = 5, 5000
    sizes = np.array([1000.0, 1.0, 1.0, 1.0, 1.0])
    weights = np.append(np.full(queries, 0.01), 5.0)
    answers = np.random.default_rng(0).dirichlet(weights, size=elements)[:, :queries] * sizes
    answers[:queries], answers[queries] = np.diag(sizes), 0.0
    setting = Setting(Explicit(answers.T), 10**6, ZCDP(0.5), Adjacency.REPLACE_ONE, exact_only=True)
    trials = _gaussian(setting)
    assert comparison.pure_noise_floor(trials, setting.pure.epsilon) == 0
    pure = mechanisms.Recursive(setting.workload, n=10**6, privacy=setting.pure)
    assert pure.predicted_rmse.value < 0.8 * trials.least
    advice = advise(setting.workload, n=10**6, privacy=ZCDP(0.5), exact_only=True)
    assert isinstance(additive_within(advice.best), mechanisms.Recursive)


@pytest.mark.parametrize(("workload", "known"), [
    (ChosenTables(dict.fromkeys(LETTERS, 2), [("a", "b"), ("c",)]), True),
    # The tables use more than 22 columns, and not every pair of columns has a table.
    (ChosenTables(dict.fromkeys(LETTERS, 2), pairwise(LETTERS)), False),
    (MarginalTables([2] * 30, 2), True),
    (MarginalTables([2, 3, 4], 2), True),
], ids=str)  # fmt: skip
def test_the_best_gaussian_noise_on_residuals_is_known_for_few_sets(workload, known):
    assert mechanisms.ResidualGaussian(workload, n=1, privacy=ZCDP(0.5)).is_best is known
    # Under add/remove there is a closed form.
    adjacency = Adjacency.ADD_REMOVE
    assert mechanisms.ResidualGaussian(
        workload, n=1, privacy=ZCDP(0.5), adjacency=adjacency
    ).is_best


def _gaussian(setting: Setting) -> comparison.Trials:
    """The comparison after a trial of all noise that is calibrated for the guarantee asked."""
    trials = comparison.Trials(setting)
    for row in CANDIDATES:
        if not row.depends_on_n and not row.is_stronger(setting):
            trials.attempt(row)
    return trials


@pytest.mark.parametrize("rho", [0.005, 0.5, 4.0])
def test_geometric_noise_attains_the_floor_on_one_query(rho):
    setting = Setting(ONE_QUERY, 10**4, ZCDP(rho), Adjacency.REPLACE_ONE, exact_only=True)
    floor = comparison.pure_noise_floor(_gaussian(setting), setting.pure.epsilon)
    best = mechanisms.Geometric(ONE_QUERY, n=10**4, privacy=ZCDP(rho)).predicted_rmse.value
    assert floor == pytest.approx(comparison.OPTIMAL * best, rel=1e-6)


@pytest.mark.ci
@pytest.mark.parametrize("privacy", [ZCDP(0.5), ZCDP(4.0), ZCDP(8.0), APPROXIMATE], ids=str)
@pytest.mark.parametrize("name", WORKLOADS)
def test_what_the_floor_leaves_out_is_never_missed(name, privacy, monkeypatch):
    for n in (10, 10**5):
        setting = {"n": n, "privacy": privacy, "exact_only": True}
        found = advise(WORKLOADS[name], **setting).best.predicted_rmse.value
        with monkeypatch.context() as patched:
            patched.setattr(comparison, "pure_noise_floor", lambda trials, epsilon: 0.0)
            everything = advise(WORKLOADS[name], **setting).best.predicted_rmse.value
        assert found <= everything * (1 + 1e-9)


def test_matrix_noise_for_pure_privacy_can_be_the_better_one():
    table = advise(Prefixes(8), n=10**4, privacy=ApproxDP(1.0, 1e-9), exact_only=True).table
    errors = table.set_index("mechanism")["predicted_rmse"]
    expected = mechanisms.Matrix(Prefixes(8), n=10**4, privacy=PureDP(1.0)).predicted_rmse.value
    assert errors["Matrix(pure)"] == pytest.approx(expected, rel=1e-12)
    assert errors["Matrix(pure)"] < errors["Matrix"]


@pytest.mark.parametrize(("workload", "delta"), [
    pytest.param(RandomSigns(30, 400, 0), 1e-6, marks=pytest.mark.ci),
    (SecondMoment(4), 1e-3),
    (Marginals(5, 2), 1e-3),
], ids=str)  # fmt: skip
def test_noise_of_an_ellipsoid_is_advised_for_few_dimensions(workload, delta):
    """It is the best between pure noise, for a tiny delta, and Gaussian noise (X-ED)."""
    privacy = ApproxDP(1.0, delta)
    advice = advise(workload, n=10**5, privacy=privacy, exact_only=True)
    best = additive_within(advice.best)
    assert isinstance(best, mechanisms.Ellipsoid)
    assert advice.best.guarantee.privacy == privacy
    errors = advice.table.set_index("mechanism")["predicted_rmse"]
    # Gaussian noise of the best ellipsoid has the same shape, up to the gap of the search.
    dimension = workload.affine_hull().dimension
    ratio = math.sqrt(dimension + 1) / ball_rate(dimension, privacy) / gaussian_scale(1.0, privacy)
    assert errors["Ellipsoid"] / errors["Matrix"] == pytest.approx(ratio, rel=6e-3)
    assert ratio < 0.98
    with Ledger(privacy) as ledger:
        release = best.with_n(10).release(workload.universe.sample(10, 0), ledger=ledger)
        assert str(release.guarantee).startswith(f"{privacy}, replace-one; protects a row; noise")
        assert ledger.left() == {"epsilon": 0.0, "delta": 0.0}


def test_two_cells_that_add_up_get_laplace_noise_along_their_line():
    workload = gd.workloads.MarginalTables({"smoker": 2}, k=1)
    best = gd.advise(workload, n=1000, privacy=gd.ZCDP(4.0), exact_only=True).best
    # The cells change by (1, -1), so each has Laplace noise of scale 1 / 4.993 (X-TANH).
    assert best.predicted_rmse.value == pytest.approx(math.sqrt(2) / 4.993 / 1000, rel=1e-4)
    assert best.guarantee.privacy == gd.ZCDP(4.0)
    # In more dimensions noise of a ball is only known to be pure.
    rates = [ball_rate(dimension, gd.ZCDP(4.0)) for dimension in (1, 2)]
    assert rates == [largest_epsilon(4.0, 0.0), largest_epsilon(4.0)]


# --- fits, compared in simulations ----------------------------------------------------------


#: A line of the accuracy table: all 3-way tables of eight binary columns.
TABLES = workloads.MarginalTables([2] * 8, 3)
PRIVACY = PureDP(1.0)
LEVEL = 1e-6


def asked(workload: workloads.Workload, n: int) -> Setting:
    return Setting(workload, n, PRIVACY, Adjacency.REPLACE_ONE, True)


@pytest.fixture(scope="module")
def few() -> Advice:
    return advise(TABLES, n=200, privacy=PRIVACY, exact_only=True)


def test_with_few_records_the_advised_mechanism_errs_less_than_the_least_bound(few):
    """In each trial, the records come from a new mixture of four product distributions."""
    rng = np.random.default_rng(0)
    noise = additive_within(few.best)
    assert noise is not None
    rivals = (Projected(noise), Shrunk(noise))
    differences: list[list[float]] = [[], []]
    for trial in range(80):
        shares = rng.random((4, 8))[rng.integers(4, size=200)]
        records = (rng.random((200, 8)) < shares).astype(int)
        truth = TABLES.answers(records)
        sums = few.best.totals(records).sums

        def error(mechanism, sums=sums, truth=truth, trial=trial):
            return np.mean((mechanism.privatise(sums, np.random.default_rng(trial)) - truth) ** 2)

        own = error(few.best)
        for found, rival in zip(differences, rivals, strict=True):
            found.append(own - error(rival))
    for found in differences:
        assert scipy.stats.ttest_1samp(found, 0.0, alternative="less").pvalue < LEVEL / 2


def test_the_claim_remains_the_proved_bound(few):
    rows = few.table.set_index("mechanism")
    assert few.flag == "fitted-hierarchical"
    predicted = few.best.predicted_rmse
    assert predicted.kind is PredictionKind.UPPER_BOUND
    noise = additive_within(few.best)
    assert noise is not None
    assert predicted.value == pytest.approx(Fitted(noise).predicted_rmse.value, rel=1e-12)
    assert rows.predicted_rmse.iloc[0] == predicted.value
    assert rows.simulated_rmse.iloc[0] < predicted.value
    simulated = rows.simulated_rmse.dropna()
    assert sorted(simulated.index) == ["Fitted(Hierarchical)", "Shrunk(Hierarchical)"]
    assert simulated.iloc[0] < simulated.iloc[1] * (1 - comparison.WORTHWHILE)
    assert "in simulated releases" in few.reasons[0]
    assert f"{predicted.value:.4g}" in few.reasons[0]
    assert few.reasons[1].startswith("Shrunk(Hierarchical) has the least predicted error")
    assert "never adds error" not in " ".join(few.reasons)


def test_a_plan_keeps_the_choice(few):
    planned = plan_of(few)(TABLES, n=200, privacy=PRIVACY)
    assert isinstance(planned, Fitted)
    records = TABLES.universe.sample(200, 0)
    np.testing.assert_allclose(
        planned.release(records, rng=1).answers, few.best.release(records, rng=1).answers
    )


@pytest.mark.parametrize(
    ("workload", "n"),
    [(workloads.Histogram(20), 20), (workloads.SecondMoment(4), 20), (workloads.Prefixes(16), 5)],
    ids=repr,
)
def test_a_fit_is_not_advised_if_it_gains_nothing_on_one_public_data_set(workload, n):
    """For the histogram the fit equals the projection; in the other cases shrinking errs less."""
    found = advise(workload, n=n, privacy=PRIVACY, exact_only=True)
    rows = found.table[found.table.mechanism.str.startswith("Fitted")]
    assert len(rows) == 1
    assert not isinstance(found.best, Fitted)
    assert rows.simulated_rmse.notna().all()
    assert found.table.simulated_rmse.notna().sum() == 2
    assert math.isfinite(found.table.simulated_rmse[0])


def test_a_simulation_beyond_the_budget_is_left_out():
    trials = comparison.try_all(asked(TABLES, 200))
    ranked = comparison.ready_to_release(trials)
    name = "Fitted(Hierarchical)"
    limits = {
        "its simulation would take too long": replace(DEFAULT_BUDGET, work=1e8),
        "its norm would take too much memory": replace(DEFAULT_BUDGET, memory=1e5),
    }
    for why, budget in limits.items():
        trials.untried.discard(name)
        trials.setting = replace(trials.setting, budget=budget)
        assert comparison.with_fit(ranked, trials) == ranked
        assert name in trials.untried
        assert trials.refused[name].startswith(why)


def test_public_data_sets_have_n_records_and_depend_on_the_workload_alone():
    sums = [prior.sums(TABLES, 37) for prior in comparison.public_datasets(TABLES, 37)]
    for found in sums:
        assert found.sum() == pytest.approx(37 * len(TABLES.tables))
    assert set(np.unique(sums[2])) == {0.0, 37.0}
