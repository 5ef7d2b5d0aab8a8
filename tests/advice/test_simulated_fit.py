"""The advisor compares a fit with a projection or with shrinking, in simulations on public data."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from geomdp import workloads
from geomdp.advice import Advice, advise
from geomdp.advice.advisor import plan_of
from geomdp.advice.comparison import (
    FEW,
    LIMITS,
    WORTHWHILE,
    public_datasets,
    ready_to_release,
    try_all,
    with_fit,
)
from geomdp.advice.setting import DEFAULT_BUDGET, Setting
from geomdp.mechanisms import Fitted, PredictionKind, Projected, Shrunk
from geomdp.mechanisms.additive_noise.base import additive_within
from geomdp.mechanisms.base import predict_on_prior
from geomdp.privacy import Adjacency, PureDP

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
    assert simulated.iloc[0] < simulated.iloc[1] * (1 - WORTHWHILE)
    assert "in simulated releases" in few.reasons[0]
    assert f"{predicted.value:.4g}" in few.reasons[0]
    assert few.reasons[1].startswith("Shrunk(Hierarchical) has the least predicted error")
    assert "never adds error" not in " ".join(few.reasons)


def test_the_choice_is_reproducible_and_a_plan_keeps_it(few):
    again = advise(TABLES, n=200, privacy=PRIVACY, exact_only=True)
    assert again.flag == few.flag
    assert again.reasons == few.reasons
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


def test_the_advised_fit_passes_every_limit_with_another_seed():
    workload = workloads.RandomSigns(40, 100, 0)
    trials = try_all(asked(workload, 20))
    ranked = ready_to_release(trials)
    first = with_fit(ranked, trials)[0]
    gains = [
        predict_on_prior(first.mechanism, prior, 8, rng=3).value
        / predict_on_prior(ranked[0].mechanism, prior, 8, rng=3).value
        for prior in public_datasets(workload, 20)
    ]
    assert isinstance(first.mechanism, Fitted)
    assert (np.array(gains) <= LIMITS).all()


def test_with_many_records_nothing_is_simulated():
    found = advise(TABLES, n=5000, privacy=PRIVACY, exact_only=True)
    assert found.table.simulated_rmse.isna().all()
    why = found.table.set_index("mechanism").why["Fitted(Hierarchical)"]
    assert f"less than {FEW}" in why


def test_a_simulation_beyond_the_budget_is_left_out():
    trials = try_all(asked(TABLES, 200))
    ranked = ready_to_release(trials)
    name = "Fitted(Hierarchical)"
    limits = {
        "its simulation would take too long": replace(DEFAULT_BUDGET, work=1e8),
        "its norm would take too much memory": replace(DEFAULT_BUDGET, memory=1e5),
    }
    for why, budget in limits.items():
        trials.untried.discard(name)
        trials.setting = replace(trials.setting, budget=budget)
        assert with_fit(ranked, trials) == ranked
        assert name in trials.untried
        assert trials.refused[name].startswith(why)


def test_public_data_sets_have_n_records_and_depend_on_the_workload_alone():
    sums = [[prior.sums(TABLES, 37) for prior in public_datasets(TABLES, 37)] for _ in range(2)]
    np.testing.assert_array_equal(*sums)
    tables = len(TABLES.levels) * 7  # 56 tables, and the cells of each table sum to 37
    for found in sums[0]:
        assert found.sum() == pytest.approx(37 * tables)
    one = sums[0][2]
    assert set(np.unique(one)) == {0.0, 37.0}
