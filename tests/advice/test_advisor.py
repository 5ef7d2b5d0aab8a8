"""The advisor: the least prediction wins, ties go to exactness, and reasons come with the rest."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp import mechanisms
from geomdp._seeds import PUBLIC_SEED
from geomdp.advice import Advice, advise
from geomdp.advice.bounded_candidates import coarse, jl
from geomdp.advice.candidates import InapplicableError, Question
from geomdp.advice.trials import WORTHWHILE, Built, rank
from geomdp.bodies import SlabBody
from geomdp.mechanisms import (
    Ball,
    Hierarchical,
    KNorm,
    Laplace,
    Prediction,
    PredictionKind,
    Projected,
    Shrunk,
    TightCone,
)
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Exact, Heuristic, PureDP
from geomdp.workloads import (
    Explicit,
    Histogram,
    Marginals,
    MarginalTables,
    Prefixes,
    RandomSigns,
    Ranges,
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
    # The same noise under two names is listed once.
    laws = {"KNorm", "KNorm(exact=True)"} & set(table["mechanism"].iloc[: len(known)])
    assert len(laws) == 1 or table.set_index("mechanism").loc["KNorm", "sampler"] != "exact"
    assert (table["set-up seconds"].iloc[: len(known)] >= 0).all()


def test_the_best_has_the_least_prediction_up_to_ties(advice):
    _, result = advice
    first = result.table.iloc[0]
    predicted = result.best.predicted_rmse
    assert predicted.value == first["predicted_rmse"]
    least = result.table["predicted_rmse"].min()
    assert predicted.value <= least * (1 + WORTHWHILE) + 1e-12 or predicted.stderr > 0
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
    assert isinstance(few.best, Projected | Shrunk)
    # Shaped by the least-trace ellipsoid, it never errs more than the isotropic one.
    assert many.table.iloc[0]["mechanism"] == "Matrix"
    refused = many.table[many.table["predicted_rmse"].isna()].set_index("mechanism")["why"]
    assert {"Laplace", "Ball", "Ellipsoid", "KNorm", JL} <= set(refused.index)
    assert refused[["Laplace", "Ball", "Ellipsoid", "KNorm", JL]].str.contains("pure").all()


def test_what_cannot_win_is_not_set_up():
    # Signs are far apart: maps to fewer dimensions distort them, and nets are coarse.
    table = advise(RandomSigns(40, 60, 0), n=200, privacy=PureDP(1.0), exact_only=True).table
    why = table.set_index("mechanism")["why"]
    least = table["predicted_rmse"].min()
    for name, what in {JL: "distortion", COARSE: "rounding"}.items():
        found = re.fullmatch(rf"it cannot be the best: its {what} alone is ([\d.]+) .*", why[name])
        assert found
        assert float(found[1]) >= least


class TestBounded:
    question = Question(RandomSigns(40, 60, 0), 10, PureDP(1.0), Adjacency.REPLACE_ONE, True)

    def test_jl_takes_the_best_number_of_rows(self):
        chosen = jl(self.question)
        plain = KNorm(self.question.workload, n=10, privacy=PureDP(1.0), exact=True)
        # 10 = ceil(epsilon n) is among those tried.
        others = [mechanisms.JL(plain, rows, rng=PUBLIC_SEED) for rows in (10, 16, 39)]
        least = min(other.predicted_rmse.value for other in others)
        assert chosen.predicted_rmse.value <= least * (1 + 1e-12)

    @pytest.mark.parametrize("build", [jl, coarse])
    def test_limits_leave_out_what_is_not_below_them(self, build):
        value = build(self.question).predicted_rmse.value
        # What is below the limit is found as without it.
        assert build(self.question, 1.01 * value).predicted_rmse.value == value
        with pytest.raises(InapplicableError, match="cannot be the best"):
            build(self.question, 0.01)

    def test_a_net_wins_where_answers_are_few_and_close(self):
        # Two clusters of ten answers each: two points answer nearly as well as twenty.
        rng = np.random.default_rng(0)
        centres = np.repeat(np.array([[0.0] * 12, [1.0] * 12]), 10, axis=0)
        answers = centres + 1e-3 * rng.standard_normal((20, 12))
        table = advise(Explicit(answers.T), n=4, privacy=PureDP(1.0), exact_only=True).table
        assert table.set_index("mechanism").loc[COARSE, "kind"] == "upper_bound"


def test_large_universes_are_refined_by_no_slabs_and_projected_once():
    workload = MarginalTables([2] * 15, 1)  # 2^15 elements in dimension 15
    table = advise(workload, n=1000, privacy=PureDP(1.0)).table
    tried = table[table["predicted_rmse"].notna()]["mechanism"]
    assert tried.str.startswith("Projected").sum() == 1
    refused = table.set_index("mechanism")["why"]
    assert "too long to refine" in refused["KNorm"]
    assert "only the best noise is projected" in refused["Projected(Laplace)"]


def test_add_remove_is_passed_on():
    result = advise(Prefixes(5), **PURE, adjacency=Adjacency.ADD_REMOVE)
    assert result.best.guarantee.adjacency is Adjacency.ADD_REMOVE


def test_advice_is_reproducible():
    first, second = (advise(WORKLOADS["tables"], **PURE) for _ in range(2))
    columns = [column for column in COLUMNS if column != "set-up seconds"]
    assert first.table[columns].equals(second.table[columns])
    assert first.reasons == second.reasons


JL, COARSE = "JL(KNorm(exact=True), AutoDimension())", "Coarse(Projected)"

TABLE = {
    "2-way, binary": MarginalTables([2] * 6, 2),
    "2-way, categorical": MarginalTables([2, 3, 4], 2),
    "3-way, binary": MarginalTables([2] * 5, 3),
    "prefixes": Prefixes(32),
    "ranges": Ranges(12),
    "signs": RandomSigns(20, 60, 0),
    "second moments": SecondMoment(5),
    "many second moments": SecondMoment(20),
}
#: The noise that wins for many records and a word of why it suits.
WINNERS = {
    "2-way, binary": (TightCone, "cut close"),
    "prefixes": (Hierarchical, "several resolutions"),
    "second moments": (KNorm, "what one record can change"),
}


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("privacy", [PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-6)], ids=str)
@pytest.mark.parametrize("name", TABLE)
def test_every_workload_of_the_accuracy_table_is_advised(name, privacy, adjacency):
    workload = TABLE[name]
    for n in (20, 100_000) if isinstance(privacy, PureDP) else (5000,):
        result = advise(workload, n=n, privacy=privacy, adjacency=adjacency, exact_only=True)
        table = result.table
        known = table["predicted_rmse"].dropna().to_numpy()
        first = table.iloc[0]["mechanism"]
        assert known[0] <= known.min() * (1 + WORTHWHILE) + 1e-12
        assert (np.diff(known[1:]) >= 0).all()
        assert table["mechanism"].is_unique
        assert (table["why"].str.len() > 0).all()
        assert result.best.guarantee.privacy == privacy
        assert result.reasons[0].startswith(f"{first} has the least predicted error")
        # What the winner is, and how its noise compares with the answers.
        words = " ".join(result.reasons)
        assert f"With {n} records" in words
        assert f"move in {workload.affine_hull().dimension} dimensions" in words
        assert "Next is" in words


@pytest.mark.parametrize("name", WINNERS)
def test_the_winner_is_explained(name):
    kind, word = WINNERS[name]
    result = advise(TABLE[name], n=10**6, privacy=PureDP(1.0), exact_only=True)
    assert isinstance(result.best, kind)
    assert word in " ".join(result.reasons)


def test_slow_draws_are_named():
    result = advise(SecondMoment(35), n=10**6, privacy=PureDP(1.0), exact_only=True)
    assert isinstance(result.best, KNorm)
    assert any(
        reason.startswith("A release draws noise for about 0.1 s") for reason in result.reasons
    )
    assert any(reason.startswith("Not tried") for reason in result.reasons)
    why = result.table.set_index("mechanism").loc["Projected(KNorm(exact=True))", "why"]
    assert "would take about 0.13 s" in why


class TestTies:
    exact = Ball(Marginals(2, 1), **PURE)

    def built(self, name, value, stderr=0.0, mechanism=None):
        prediction = Prediction(value, PredictionKind.EXACT, "test", stderr)
        return Built(name, mechanism or self.exact, prediction, 0.0)

    def test_the_least_wins(self):
        ranked = rank([self.built("a", 2.0), self.built("b", 1.0), self.built("c", 3.0)])
        assert [trial.name for trial in ranked] == ["b", "a", "c"]

    def test_what_follows_noise_must_be_worth_it(self):
        noise = self.built("noise", 1.0)
        near, far = (
            self.built("shrunk", value, mechanism=Shrunk(self.exact)) for value in (0.995, 0.98)
        )
        assert rank([noise, near])[0].name == "noise"
        assert rank([noise, far])[0].name == "shrunk"
        other = self.built("other noise", 0.996, mechanism=Ball(Marginals(2, 1), **PURE))
        assert rank([other, near])[0].name == "shrunk"

    def test_the_simpler_wins_a_tie(self):
        ranked = rank([self.built("simple", 1.0 + 1e-6), self.built("fancy", 1.0)])
        assert ranked[0].name == "simple"
        ranked = rank([self.built("simple", 1.0 + 1e-4), self.built("fancy", 1.0)])
        assert ranked[0].name == "fancy"

    def test_the_exact_wins_a_tie(self):
        slabs = SlabBody(np.eye(2), np.ones(2))
        chain = self.built("chain", 1.0, 0.01, KNorm(Marginals(2, 1), **PURE, body=slabs))
        assert not chain.exact
        assert rank([chain, self.built("closed form", 1.02)])[0].name == "closed form"
        assert rank([chain, self.built("closed form", 1.04)])[0].name == "chain"


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
