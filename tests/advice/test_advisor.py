"""The advisor: the least prediction wins, ties go to exactness, and reasons come with the rest."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp.advice import Advice, advise
from geomdp.advice.advisor import Built, _rank
from geomdp.bodies import SlabBody
from geomdp.mechanisms import Ball, KNorm, Laplace, Prediction, PredictionKind, Projected
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Exact, Heuristic, PureDP
from geomdp.workloads import (
    Explicit,
    Histogram,
    Marginals,
    MarginalTables,
    Prefixes,
    RandomSigns,
    SecondMoment,
)

COLUMNS = ["mechanism", "predicted_rmse", "kind", "sampler", "set-up seconds", "why"]
PURE = {"n": 200, "privacy": PureDP(1.0)}

WORKLOADS = {
    "tables": MarginalTables([2, 3, 2], 2),
    "marginals": Marginals(4, 2),
    "histogram": Histogram(6),
    "signs": RandomSigns(6, 20, 0),
    "second moments": SecondMoment(3),
}


@pytest.fixture(scope="module", params=sorted(WORKLOADS))
def advice(request):
    return WORKLOADS[request.param], advise(WORKLOADS[request.param], **PURE)


def test_the_table_is_complete_and_ranked(advice):
    _, result = advice
    assert isinstance(result, Advice)
    table = result.table
    assert list(table.columns) == COLUMNS
    assert table["mechanism"].is_unique
    values = table["predicted_rmse"].to_numpy()
    known = values[~np.isnan(values)]
    assert len(known) >= 3
    assert (np.diff(known[1:]) >= 0).all()
    assert np.isnan(values[len(known) :]).all()
    assert (table["why"].str.len() > 0).all()
    assert (table["set-up seconds"].iloc[: len(known)] >= 0).all()


def test_the_best_has_the_least_prediction_up_to_ties(advice):
    _, result = advice
    first = result.table.iloc[0]
    predicted = result.best.predicted_rmse
    assert predicted.value == first["predicted_rmse"]
    least = result.table["predicted_rmse"].min()
    assert predicted.value <= least * 1.02
    assert str(result.best.guarantee.sampler) == first["sampler"]


def test_predictions_are_those_of_the_mechanisms(advice):
    workload, result = advice
    rows = result.table.set_index("mechanism")["predicted_rmse"]
    for name, mechanism in {
        "Laplace": Laplace(workload, **PURE),
        "Ball": Ball(workload, **PURE),
        "KNorm(exact=True)": KNorm(workload, **PURE, exact=True),
    }.items():
        np.testing.assert_allclose(rows[name], mechanism.predicted_rmse.value, rtol=1e-12)
    assert math.isnan(rows["Gaussian"])


def test_the_best_can_release(advice):
    workload, result = advice
    records = workload.universe.sample(200, 0)
    release = result.best.release(records)
    assert release.answers.shape == (workload.n_queries,)
    assert release.guarantee == result.best.guarantee


def test_exact_only_leaves_heuristic_samplers_out():
    workload = WORKLOADS["signs"]
    free, exact = advise(workload, **PURE), advise(workload, **PURE, exact_only=True)
    assert isinstance(free.best.guarantee.sampler, Heuristic)
    assert any("exact_only" in reason for reason in free.reasons)
    assert exact.best.guarantee.sampler == Exact()
    assert not exact.table["sampler"].str.contains("heuristic").any()
    refused = exact.table.set_index("mechanism").loc["KNorm"]
    assert math.isnan(refused["predicted_rmse"])
    assert "exact_only" in refused["why"]


@pytest.mark.parametrize("privacy", [ZCDP(0.5), ApproxDP(1.0, 1e-6)])
def test_other_definitions_get_gaussian_noise(privacy):
    few, many = (advise(RandomSigns(40, 20, 0), n=n, privacy=privacy) for n in (10, 10**6))
    # With little data the projection is what makes the answers useful.
    assert isinstance(few.best, Projected)
    # Shaped by the least-trace ellipsoid, it never errs more than the isotropic one.
    assert many.table.iloc[0]["mechanism"] == "Matrix"
    refused = many.table[many.table["predicted_rmse"].isna()].set_index("mechanism")["why"]
    assert {"Laplace", "Ball", "Ellipsoid", "KNorm", "JL(KNorm(exact=True))"} <= set(refused.index)
    assert (refused.str.contains("pure differential privacy only")).all()


def test_jl_applies_below_the_effective_dimension_only():
    workload = RandomSigns(40, 60, 0)
    few = advise(workload, n=10, privacy=PureDP(1.0), exact_only=True).table
    many = advise(workload, n=40, privacy=PureDP(1.0), exact_only=True).table
    name = "JL(KNorm(exact=True))"
    assert few.set_index("mechanism").loc[name, "kind"] == "upper_bound"
    assert "effective dimension 40" in many.set_index("mechanism").loc[name, "why"]


def test_large_universes_are_refined_by_no_slabs_and_projected_once():
    workload = MarginalTables([2] * 15, 1)  # 2^15 elements in dimension 15
    table = advise(workload, n=1000, privacy=PureDP(1.0)).table
    assert table["mechanism"].str.startswith("Projected").sum() == 1
    refused = table.set_index("mechanism")
    assert "too long to refine" in refused.loc["KNorm", "why"]


def test_add_remove_is_passed_on():
    result = advise(Prefixes(5), **PURE, adjacency=Adjacency.ADD_REMOVE)
    assert result.best.guarantee.adjacency is Adjacency.ADD_REMOVE


def test_advice_is_reproducible():
    first, second = (advise(WORKLOADS["tables"], **PURE) for _ in range(2))
    columns = [column for column in COLUMNS if column != "set-up seconds"]
    assert first.table[columns].equals(second.table[columns])
    assert first.reasons == second.reasons


class TestTies:
    exact = Ball(Marginals(2, 1), **PURE)

    def built(self, name, value, stderr=0.0, mechanism=None):
        prediction = Prediction(value, PredictionKind.EXACT, "test", stderr)
        return Built(name, mechanism or self.exact, prediction, 0.0)

    def test_the_least_wins(self):
        ranked = _rank([self.built("a", 2.0), self.built("b", 1.0), self.built("c", 3.0)])
        assert [trial.name for trial in ranked] == ["b", "a", "c"]

    def test_the_simpler_wins_a_tie(self):
        ranked = _rank([self.built("simple", 1.0 + 1e-6), self.built("fancy", 1.0)])
        assert ranked[0].name == "simple"
        ranked = _rank([self.built("simple", 1.0 + 1e-4), self.built("fancy", 1.0)])
        assert ranked[0].name == "fancy"

    def test_the_exact_wins_a_tie(self):
        slabs = SlabBody(np.eye(2), np.ones(2))
        chain = self.built("chain", 1.0, 0.01, KNorm(Marginals(2, 1), **PURE, body=slabs))
        assert not chain.exact
        assert _rank([chain, self.built("closed form", 1.02)])[0].name == "closed form"
        assert _rank([chain, self.built("closed form", 1.04)])[0].name == "chain"


class TestBadInput:
    @given(st.integers(max_value=0) | st.floats() | st.booleans())
    def test_n(self, n):
        with pytest.raises(ValueError, match="n must be a whole number"):
            advise(Marginals(2, 1), n=n, privacy=PureDP(1.0))

    @pytest.mark.parametrize("privacy", [1.0, None, "pure"])
    def test_privacy(self, privacy):
        with pytest.raises(ValueError, match="privacy must be PureDP, ApproxDP or ZCDP"):
            advise(Marginals(2, 1), n=5, privacy=privacy)

    def test_adjacency(self):
        with pytest.raises(ValueError, match="adjacency"):
            advise(Marginals(2, 1), n=5, privacy=PureDP(1.0), adjacency="replace-one")

    def test_constant_workloads(self):
        with pytest.raises(ValueError, match="constant"):
            advise(Explicit(np.ones((2, 3))), n=5, privacy=PureDP(1.0))
