"""The advisor ranks mechanisms by predicted error, prefers exact samplers, and gives reasons."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from geomdp import mechanisms
from geomdp.advice import Advice, advise, candidates
from geomdp.advice.comparison import (
    WORTHWHILE,
    Built,
    Trials,
    rank,
    ready_to_release,
)
from geomdp.advice.setting import UNLIMITED, InapplicableError, Setting
from geomdp.bodies import SlabBody
from geomdp.mechanisms.additive_noise.base import additive_within
from geomdp.mechanisms.projected import STANDARD_ERRORS
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Exact, Heuristic, Ledger, PureDP
from geomdp.privacy.definitions import pure_implying
from geomdp.workloads import (
    Explicit,
    Histogram,
    Marginals,
    MarginalTables,
    Parities,
    Prefixes,
    RandomSigns,
    Ranges,
    SecondMoment,
    Workload,
    WorkloadSizeError,
)

COLUMNS = [
    "mechanism", "predicted_rmse", "kind", "simulated_rmse", "sampler", "set-up seconds", "why",
]  # fmt: skip
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
    # `KNorm` and `KNorm(exact=True)` both get a prediction only if the sampler of `KNorm` is not
    # exact.
    laws = {"KNorm", "KNorm(exact=True)"} & set(table["mechanism"].iloc[: len(known)])
    assert len(laws) == 1 or table.set_index("mechanism").loc["KNorm", "sampler"] != "exact"
    assert (table["set-up seconds"].iloc[: len(known)] >= 0).all()


def assert_least(result):
    """Assert that neither other noise nor the same noise alone has clearly less predicted error."""
    table, best = result.table, result.best.predicted_rmse.value
    if isinstance(result.best, mechanisms.Fitted):
        # A fit is advised for its simulated error, so its prediction need not be the least.
        assert table["simulated_rmse"][0] < table["simulated_rmse"].iloc[1:].max()
        return
    noise = getattr(result.best, "inner", result.best)
    name = table["mechanism"][0]
    inside = name.partition("(")[2][:-1] if name.startswith(("Projected(", "Shrunk(")) else name
    others = table[~table["mechanism"].isin([inside, f"Projected({inside})", f"Shrunk({inside})"])]
    least = others["predicted_rmse"].min()
    assert not best > least * (1 + WORTHWHILE) + 3 * noise.predicted_rmse.stderr
    own = table.loc[table["mechanism"] == inside, "predicted_rmse"]
    limit = own + STANDARD_ERRORS * noise.predicted_rmse.stderr
    assert (best <= limit * (1 + 1e-5)).all()


def test_the_best_has_the_least_prediction_up_to_ties(advice):
    _, result = advice
    first = result.table.iloc[0]
    predicted = result.best.predicted_rmse
    assert predicted.value == first["predicted_rmse"]
    assert_least(result)
    assert str(result.best.guarantee.sampler) == first["sampler"]


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


@pytest.mark.parametrize("privacy", [ZCDP(0.5), ApproxDP(1.0, 0.1)])
def test_other_definitions_get_gaussian_noise(privacy):
    few, many = (advise(RandomSigns(40, 20, 0), n=n, privacy=privacy) for n in (10, 10**6))
    # With few records the noise is large, so the advised mechanism projects or shrinks answers.
    assert isinstance(few.best, mechanisms.Projected | mechanisms.Shrunk)
    # `Matrix` shapes Gaussian noise by the least-trace ellipsoid, so isotropic noise is no better.
    assert many.table.iloc[0]["mechanism"] == "Projected(Matrix)"
    refused = many.table[many.table["predicted_rmse"].isna()].set_index("mechanism")["why"]
    # The error of `Matrix` proves that purely private noise is not better. JL is left out because
    # its distortion alone is too large. `Ball` and `Ellipsoid` have their own noise for a delta.
    pure = ["Laplace", "KNorm", "Matrix(pure)", JL]
    if isinstance(privacy, ZCDP):
        pure += ["Ball", "Ellipsoid"]
    assert set(pure) <= set(refused.index)
    assert refused[pure].str.contains("cannot be the best").all()


def test_what_cannot_win_is_not_set_up():
    # Vectors of random signs are far apart, so maps to fewer dimensions have a large distortion,
    # and small nets have a large rounding error.
    table = advise(RandomSigns(40, 60, 0), n=200, privacy=PureDP(1.0), exact_only=True).table
    why = table.set_index("mechanism")["why"]
    least = table["predicted_rmse"].min()
    for name, what in {JL: "distortion", COARSE: "rounding"}.items():
        found = re.fullmatch(rf"it cannot be the best: its {what} alone is ([\d.]+) .*", why[name])
        assert found
        assert float(found[1]) >= least


class TestBounded:
    setting = Setting(RandomSigns(40, 60, 0), 10, PureDP(1.0), Adjacency.REPLACE_ONE, True)

    @pytest.mark.parametrize("build", [candidates.jl, candidates.coarse])
    def test_limits_leave_out_what_is_not_below_them(self, build):
        value = build(self.setting).predicted_rmse.value
        # A limit that is above the prediction does not change the result.
        close = replace(self.setting, least=1.01 * value)
        assert build(close).predicted_rmse.value == value
        with pytest.raises(InapplicableError, match="cannot be the best"):
            build(replace(self.setting, least=0.01))

    def test_a_net_wins_where_answers_are_few_and_close(self):
        # The answers form two clusters of ten, so a net of two points has a small rounding error.
        rng = np.random.default_rng(0)
        centres = np.repeat(np.array([[0.0] * 12, [1.0] * 12]), 10, axis=0)
        answers = centres + 1e-3 * rng.standard_normal((20, 12))
        result = advise(Explicit(answers.T), n=40, privacy=PureDP(1.0), exact_only=True)
        assert result.table["mechanism"][0] == COARSE
        assert isinstance(result.best, mechanisms.Coarse)


JL, COARSE = "JL(KNorm(exact=True))", "Coarse(Projected)"

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
#: For some workloads: the noise that wins for many records, and words from the reason why it suits.
WINNERS = {
    "2-way, binary": (mechanisms.TightCone, "cut close"),
    "prefixes": (mechanisms.Hierarchical, "several resolutions"),
    "second moments": (mechanisms.KNorm, "what one record can change"),
}


@pytest.mark.ci
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
        assert_least(result)
        assert (np.diff(known[1:]) >= 0).all()
        assert result.best.guarantee.privacy in (privacy, pure_implying(privacy))
        assert result.asked == privacy
        simulated = isinstance(result.best, mechanisms.Fitted)
        said = "is advised because" if simulated else "has the least predicted error"
        assert result.reasons[0].startswith(f"{first} {said}")
        words = " ".join(result.reasons)
        for part in (
            f"With {n} records",
            f"{workload.affine_hull().dimension} dimension",
            "Next is",
        ):
            assert part in words


@pytest.mark.parametrize("name", WINNERS)
def test_the_winner_is_explained(name):
    kind, word = WINNERS[name]
    result = advise(TABLE[name], n=10**6, privacy=PureDP(1.0), exact_only=True)
    assert isinstance(additive_within(result.best), kind)
    assert word in " ".join(result.reasons)


def test_slow_draws_are_named():
    result = advise(SecondMoment(35), n=10**6, privacy=PureDP(1.0), exact_only=True)
    assert isinstance(result.best, mechanisms.KNorm)
    assert any(
        reason.startswith("A release draws noise for about 0.1 s") for reason in result.reasons
    )
    assert any(reason.startswith("Not tried") for reason in result.reasons)


def test_advice_prints_what_it_says(advice):
    _, result = advice
    best = f"{result.table.predicted_rmse[0]:.4g}"
    assert repr(result).startswith("Advice(")
    assert best in repr(result)
    # The printed table shows all rows and the errors, although the column of reasons is wide.
    printed = str(result.table).splitlines()
    assert len(printed) == len(result.table) + 1
    assert best in printed[1]
    page = result._repr_html_()
    assert best in page
    assert page.count("<tr") == 1 + result.table.predicted_rmse.notna().sum()


ROWS = {row.name: row for row in candidates.CANDIDATES}


BALL = mechanisms.Ball(Marginals(2, 1), **PURE)
CHAIN = mechanisms.KNorm(Marginals(2, 1), **PURE, body=SlabBody(np.eye(2), np.ones(2)))
IN_FLOAT64 = mechanisms.Spectral(Marginals(3, 2), **PURE)


def built(name, value, step=None, mechanism=BALL, stderr=0.0):
    prediction = mechanisms.Prediction(value, mechanisms.PredictionKind.EXACT, "test", stderr)
    return Built(ROWS[name], step, mechanism, prediction, mechanism.guarantee.sampler, 0.0)


@pytest.mark.parametrize(("trials", "names"), [
    ([("Cone", 2.0), ("Ball", 1.0), ("Laplace", 3.0)], ["Ball", "Cone", "Laplace"]),
    # What follows noise must be worth it.
    ([("Ball", 1.0), ("Ball", 0.995, candidates.SHRUNK)], ["Ball"]),
    ([("Ball", 1.0), ("Ball", 0.98, candidates.SHRUNK)], ["Shrunk(Ball)"]),
    ([("Cone", 0.996), ("Ball", 0.995, candidates.SHRUNK)], ["Shrunk(Ball)"]),
    # The simpler wins a tie.
    ([("Laplace", 1.0 + 1e-6), ("Matrix", 1.0)], ["Laplace"]),
    ([("Laplace", 1.0 + 1e-4), ("Matrix", 1.0)], ["Matrix"]),
    # The exact sampler wins a tie.
    ([("KNorm", 1.0, None, CHAIN, 0.01), ("Ball", 1.02)], ["Ball"]),
    ([("KNorm", 1.0, None, CHAIN, 0.01), ("Ball", 1.04)], ["KNorm"]),
    # The correctly rounded noise wins a tie.
    ([("KNorm", 1.0, None, IN_FLOAT64), ("Ball", 1.0 + 1e-6)], ["Ball"]),
    ([("KNorm", 1.0, None, IN_FLOAT64), ("Ball", 1.0 + 1e-4)], ["KNorm"]),
])  # fmt: skip
def test_ties(trials, names):
    ranked = rank([built(*trial) for trial in trials])
    assert [trial.name for trial in ranked][: len(names)] == names
    assert IN_FLOAT64.grid is None
    assert IN_FLOAT64.sampler == Exact()


def test_the_advised_sampler_is_that_of_the_mechanism():
    """A cached sampler status can be wrong, so the set-up mechanism's own status replaces it."""

    class Doubtful(mechanisms.Laplace):
        sampler = Heuristic("a chain")

    workload, privacy = Histogram(3), PureDP(1.0)
    trials = Trials(Setting(workload, 100, privacy, Adjacency.REPLACE_ONE, False, UNLIMITED))
    mechanism = Doubtful(workload, n=100, privacy=privacy)
    prediction = mechanism.predicted_rmse
    trials.built.append(Built(candidates.CANDIDATES[0], None, mechanism, prediction, Exact(), 0.0))
    assert ready_to_release(trials)[0].sampler == mechanism.guarantee.sampler == mechanism.sampler


class TestTable:
    def test_every_exported_mechanism_competes_or_follows_one_that_does(self):
        exported = {getattr(mechanisms, name) for name in mechanisms.__all__}
        offline = {
            it for it in exported if isinstance(it, type) and issubclass(it, mechanisms.Mechanism)
        }
        listed = {row.kind for row in candidates.CANDIDATES} | {
            step.kind for step in candidates.STEPS
        }
        abstract = {mechanisms.Mechanism, mechanisms.AdditiveMechanism}
        missing = {it.__name__ for it in offline - listed - abstract}
        assert not missing, f"add a row to CANDIDATES in geomdp/advice/candidates.py: {missing}"

    def test_names_and_flags_are_unique_and_words_are_sentences(self):
        for names in (
            [row.name for row in candidates.CANDIDATES],
            [row.flag for row in candidates.CANDIDATES],
        ):
            assert len(set(names)) == len(names)
        for row in candidates.CANDIDATES:
            assert row.suits.startswith("It")
            assert row.suits.endswith(".")
            assert not row.summary.endswith(".")


def test_a_workload_of_equal_answers_is_advised_where_it_counts_records():
    workload = Explicit(np.array([[1.0, 1.0], [0.5, 0.5]]))
    result = advise(workload, n=100, privacy=PureDP(1.0), adjacency=Adjacency.ADD_REMOVE)
    words = " ".join(result.reasons)
    assert "all data sets of 100 records have the same answers" in words
    assert (
        "Next is KNorm(exact=True), with predicted error 0.01118 (the same up to rounding)" in words
    )
    assert result.best.release(np.zeros(100, dtype=int), rng=0).answers.shape == (2,)


CONCENTRATED = (candidates.Guarantees.CONCENTRATED, candidates.Guarantees.ANY)
PURE_NAMES = [row.name for row in candidates.CANDIDATES if row.guarantees not in CONCENTRATED]
SLOW = ["Laplace", "Spectral", "TightCone", "Hierarchical", "Matrix(pure)"]


@pytest.mark.parametrize(("workload", "options", "left_out"), [
    (Prefixes(8), {}, {"Matrix(pure)": "for pure privacy, it is the same as Matrix"}),
    (MarginalTables([42] * 14, 1), {}, {"Cone": "too much memory"}),
    (MarginalTables([9] * 4 + [8] * 3, 1), {}, {COARSE: "nets of 32 points are compared for"}),
    (MarginalTables([2] * 8, 3), {"n": 5000}, {"Fitted(Hierarchical)": "less than 0.05"}),
    # 2^18 elements in dimension 171.
    (MarginalTables([2] * 18, 2), {"exact_only": False},
     {"KNorm": "too long to refine",
      "Projected(Laplace)": "only the noise with the least predicted error is projected"}),
    (SecondMoment(35), {"n": 10**6},
     {"Projected(KNorm(exact=True))": "each of which would take about 0.13 s"}),
    # Under zCDP with a small rho, no pure noise can be the best, so none is set up.
    (MarginalTables([2] * 4, 2), {"privacy": ZCDP(0.5)},
     dict.fromkeys(PURE_NAMES, "cannot be the best")),
    (MarginalTables([2] * 40, 2), {"privacy": ApproxDP(1.0, 1e-6)},
     dict.fromkeys(SLOW, "its set-up would take too long")),
    # The bound for Gaussian noise averages over 4096 directions.
    pytest.param(RandomSigns(64, 2000, 1),
                 {"n": 30, "privacy": ZCDP(0.5), "exact_only": False, "effort": 0.02},
                 {"Projected(Gaussian)": "its bound would take too long",
                  "KNorm": "its outer slab body would take too long"}, marks=pytest.mark.ci),
], ids=lambda it: repr(it) if isinstance(it, Workload) else "")  # fmt: skip
def test_why_candidates_are_left_out(workload, options, left_out):
    setting = {"n": 1000, "privacy": PureDP(1.0), "exact_only": True} | options
    table = advise(workload, **setting).table.set_index("mechanism")
    assert table["predicted_rmse"].notna().sum() >= 5 or isinstance(setting["privacy"], ZCDP)
    for name, why in left_out.items():
        assert why in table.loc[name, "why"], name
        assert math.isnan(table.loc[name, "predicted_rmse"]), name


class TestCosts:
    def test_memory_that_is_not_there_is_no_crash(self, monkeypatch):
        def build(*_, **__):
            raise MemoryError

        monkeypatch.setattr(mechanisms.Ball, "__init__", build)
        result = advise(WORKLOADS["tables"], **PURE)
        assert "does not fit" in result.table.set_index("mechanism")["why"]["Ball"]
        # Ball is left out for lack of memory, so the sentence must not say that it takes too long.
        (said,) = (reason for reason in result.reasons if reason.startswith("Not tried"))
        assert "cost too much" in said
        assert "too long" not in said

    @pytest.mark.parametrize("adjacency", Adjacency)
    @pytest.mark.parametrize("workload", [Histogram(4), Marginals(3, 1), Parities(3, 1)], ids=repr)
    def test_exact_noise_is_no_worse_than_noise_of_a_body_with_an_exact_sampler(
        self, workload, adjacency
    ):
        """`KNorm(exact=True)` may use another body than `KNorm`, so the reason says "no worse"."""
        setting = Setting(workload, 100, PureDP(1.0), adjacency, exact_only=False)
        with pytest.raises(InapplicableError, match=r"so KNorm\(exact=True\) is no worse"):
            candidates.knorm_differs(setting)
        knorm = next(row for row in candidates.CANDIDATES if row.flag == "knorm").built
        exact, other = (
            build(setting).predicted_rmse.value for build in (candidates.knorm_exact, knorm)
        )
        assert exact <= other * (1 + 1e-12)


class TestProjection:
    """Noise is projected if a projection is possible and one projection fits the effort."""

    def test_eleven_columns_of_eight_levels_are_released_without_a_projection(self):
        workload = MarginalTables([8] * 11, 2)
        result = advise(workload, n=50, privacy=PureDP(1.0), exact_only=True)
        table = result.table.set_index("mechanism")
        steps = table[table.index.str.contains(r"Shrunk|Projected\(")]
        assert len(steps) >= 2
        assert steps["predicted_rmse"].isna().all()
        assert steps["why"].str.contains("at most 2^24 level combinations", regex=False).all()
        released = result.best.release(workload.universe.sample(50, 0))
        assert released.answers.shape == (workload.n_queries,)
        assert released.predicted_rmse == result.best.predicted_rmse

    @pytest.mark.parametrize("step", candidates.STEPS, ids=lambda step: step.name)
    def test_a_release_that_cannot_project_fails_before_the_ledger_pays(self, step):
        workload = MarginalTables([2] * 9 + [3] * 11, 2)
        ledger = Ledger(PureDP(1.0))
        mechanism = step.kind(mechanisms.Laplace(workload, n=5, privacy=PureDP(1.0)))
        with pytest.raises(WorkloadSizeError, match="level combinations"):
            mechanism.release(workload.universe.sample(5, 0), ledger=ledger)
        assert not ledger.spends()

    def test_the_projection_of_many_kinds_of_records_depends_on_the_noise(self):
        # For small noise, the nearest point is on a face of high dimension, and the search is long.
        workload = MarginalTables([7, 5, 2, 6, 6, 2, 6, 2, 2, 2], 2)
        setting = {"n": 20190, "exact_only": True}
        large, small = (advise(workload, privacy=PureDP(e), **setting) for e in (0.1, 1.0))
        assert large.table.mechanism[0] == "Projected(TightCone)"
        assert small.table.mechanism[0] == "TightCone"
        words = " ".join(small.reasons)
        assert "Projected(TightCone) is left out: its projection in each release" in words
        patient = advise(workload, privacy=PureDP(1.0), **setting, effort=100.0)
        assert patient.table.mechanism[0] == "Projected(TightCone)"

    def test_one_way_tables_are_projected_whatever_their_number(self):
        workload = MarginalTables([5] * 14, 1)
        result = advise(workload, n=100, privacy=PureDP(1.0), exact_only=True)
        answers = result.best.release(workload.universe.sample(100, 0), rng=0).answers
        assert isinstance(result.best, mechanisms.Projected | mechanisms.Shrunk)
        np.testing.assert_allclose(answers.reshape(14, 5).sum(axis=1), 1.0, rtol=1e-9)
        assert answers.min() >= -1e-12


@pytest.mark.parametrize(("arguments", "message"), [
    *(({"privacy": bad}, "must be PureDP, ApproxDP or ZCDP") for bad in (1.0, None, "pure")),
    *(({"n": bad}, "n must be a whole number") for bad in (0, -1, 1.5, True, math.nan)),
    ({"adjacency": "replace-one"}, "adjacency"),
    ({"workload": Explicit(np.ones((2, 3)))}, "constant"),
    *(({"effort": bad}, "effort must be") for bad in (0.0, -1.0, math.nan, math.inf)),
])  # fmt: skip
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        advise(**({"workload": Marginals(2, 1), "n": 5, "privacy": PureDP(1.0)} | arguments))
