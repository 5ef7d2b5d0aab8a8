"""Tests of brackets: certificates, bounds that never cross, and bounds that fall in epsilon."""

import math

import numpy as np
import pytest

from geomdp import bounds, mechanisms, sample_complexity_bracket
from geomdp.advice import Bracket
from geomdp.advice import bracket as bracket_module
from geomdp.advice.bracket import error_limit, upper_bounds
from geomdp.bounds.certificates import write_certificate
from geomdp.bounds.checker import check_certificate
from geomdp.noise.few_queries import GeometricNoise
from geomdp.noise.knorm import MappedNoise, Part
from geomdp.noise.tails import expected_maximum, is_log_concave
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Exact, PureDP
from geomdp.privacy.definitions import pure_implying
from geomdp.workloads import (
    Explicit,
    Histogram,
    Marginals,
    MarginalTables,
    Means,
    Parities,
    Prefixes,
    RandomSigns,
    Ranges,
    SecondMoment,
    Workload,
)

METRICS = [bounds.MeanL2(), bounds.RMS(), bounds.WorstCase()]

STANDARD: list[Workload] = [
    Histogram(12),
    Prefixes(10),
    Ranges(6),
    Marginals(6, 1),
    Marginals(5, 2),
    Marginals(3, 2),  # for so few columns, some constructions of packings find no code
    MarginalTables([2, 3, 2], 2),
    Parities(5, 2),
    RandomSigns(5, 16, 0),
    SecondMoment(3),
    Means(4),
]


def few_mechanisms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep only mechanisms that are quick to set up. The others could only lower upper bounds."""
    quick = ("Laplace", "Ball", "Cone", "KNorm(exact=True)", "Ellipsoid", "SecondMoment")
    kept = tuple(row for row in bracket_module.CANDIDATES if row.name in quick)
    monkeypatch.setattr(bracket_module, "CANDIDATES", kept)


@pytest.mark.parametrize("workload", STANDARD, ids=repr)
def test_both_sides_carry_their_proof(workload, tmp_path, monkeypatch):
    few_mechanisms(monkeypatch)
    alpha = 0.12 * workload.l2_diameter() / math.sqrt(workload.n_queries)
    found = sample_complexity_bracket(workload, 0.5, alpha)
    assert isinstance(found, Bracket)
    assert 0 < found.lower.records < found.upper.records
    assert all(bound.side is bounds.Side.LOWER for bound in found.lower_candidates)
    assert all(bound.side is bounds.Side.UPPER for bound in found.upper_candidates)
    np.testing.assert_allclose(found.gap, found.upper.records / (found.lower.records + 1))
    assert isinstance(found.lower.certificate, bounds.Certificate)
    write_certificate(tmp_path / "lower.json", found.lower.certificate.document())
    assert check_certificate(tmp_path / "lower.json").records == found.lower.records
    mechanism = found.upper.certificate
    assert mechanism.guarantee.sampler == Exact()
    assert mechanism.guarantee.privacy == PureDP(0.5)
    assert mechanism.n == found.upper.records
    assert error_limit(bounds.MeanL2(), mechanism).value <= alpha
    fewer = mechanism.with_n(mechanism.n - 1)
    assert error_limit(bounds.MeanL2(), fewer).value > alpha


@pytest.mark.parametrize(("privacy", "metric"), [
    (ZCDP(0.125), bounds.MeanL2()), (ApproxDP(0.5, 1e-6), bounds.RMS()),
    (ZCDP(0.125), bounds.WorstCase()),
], ids=str)  # fmt: skip
def test_weaker_guarantees_need_no_more_records(privacy, metric, monkeypatch):
    """0.5-DP implies both guarantees, so their bounds are at most the bounds for 0.5-DP."""
    few_mechanisms(monkeypatch)
    pure = sample_complexity_bracket(Histogram(6), 0.5, 0.03, metric)
    found = sample_complexity_bracket(Histogram(6), alpha=0.03, metric=metric, privacy=privacy)
    assert 0 < found.lower.records < found.upper.records <= pure.upper.records
    assert found.lower.records <= pure.lower.records
    assert f"calibrated for {pure_implying(privacy)}" in found.upper.statement
    assert found.question.guarantee == privacy
    # The search and the guesses need pure privacy. Lines along single queries need it, too, but
    # unless the metric is `WorstCase`, they are refused because of the metric.
    refused = [name for name, why in found.refused.items() if "pure differential privacy" in why]
    assert len(refused) == (3 if isinstance(metric, bounds.WorstCase) else 2), refused


def test_the_table_lists_everything_best_first(monkeypatch):
    few_mechanisms(monkeypatch)
    found = sample_complexity_bracket(Marginals(5, 2), 1.0, 0.05)
    table = found.table
    assert list(table.columns) == ["side", "records", "statement", "assumptions"]
    for side, best, descending in (("lower", found.lower, True), ("upper", found.upper, False)):
        mine = table[table.side == side].records
        assert mine.iloc[0] == best.records
        assert mine.is_monotonic_decreasing if descending else mine.is_monotonic_increasing
    assert len(table) == len(found.lower_candidates) + len(found.upper_candidates) + len(
        found.refused
    )
    assert "a constant answer" in found.refused
    assert str(found).startswith(f"{found.lower.records:g} < sc <= {found.upper.records:g}, 1-DP")


def random_problem(seed: int) -> tuple[Workload, float, float, object, Adjacency]:
    rng = np.random.default_rng(seed)
    k, N = int(rng.integers(1, 5)), int(rng.integers(2, 9))
    entries = [
        lambda: rng.normal(size=(k, N)),
        lambda: rng.integers(0, 2, (k, N)).astype(float),
        lambda: rng.choice([-1.0, 1.0], (k, N)),
    ]
    matrix = entries[seed % 3]()
    matrix[0, :2] = (0.0, 1.0)  # never a constant workload
    # Epsilon has only three values, because the linear programs of a line take a second for each
    # epsilon, and their results are cached.
    epsilon, alpha = math.exp(rng.choice([-3, -0.5, 1.5])), math.exp(rng.uniform(-5, 0))
    return Explicit(matrix), epsilon, alpha, METRICS[seed // 3 % 3], list(Adjacency)[seed // 9 % 2]


def check_never_crosses(seeds: range) -> None:
    for seed in seeds:
        workload, epsilon, alpha, metric, adjacency = random_problem(seed)
        found = sample_complexity_bracket(workload, epsilon, alpha, metric, adjacency)
        assert found.lower.records < found.upper.records, (seed, str(found))


@pytest.mark.ci
def test_no_lower_bound_exceeds_an_upper_bound(monkeypatch):
    few_mechanisms(monkeypatch)
    check_never_crosses(range(18))


@pytest.mark.slow
def test_no_lower_bound_exceeds_an_upper_bound_on_300_workloads():
    check_never_crosses(range(300))


@pytest.mark.ci
@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_bounds_fall_in_epsilon_and_alpha(metric, adjacency, monkeypatch):
    few_mechanisms(monkeypatch)
    workload = Prefixes(8)
    found = [
        [sample_complexity_bracket(workload, e, a, metric, adjacency) for a in (0.02, 0.05, 0.2)]
        for e in (0.1, 0.4, 2.0)
    ]
    for side in ("lower", "upper"):
        grid = [[getattr(bracket, side).records for bracket in row] for row in found]
        assert (np.diff(grid, axis=0) <= 0).all()
        assert (np.diff(grid, axis=1) <= 0).all()


def test_large_alpha_needs_no_data(monkeypatch):
    few_mechanisms(monkeypatch)
    found = sample_complexity_bracket(Histogram(6), 1.0, 0.6)
    assert (found.lower.records, found.upper.records, found.gap) == (0, 1, 1)
    assert found.lower.statement.startswith("n >= 1, as no argument proves more")
    assert found.lower.certificate is None
    assert "a constant answer has" in found.upper.statement


def test_an_alpha_that_no_mechanism_reaches_is_refused(monkeypatch):
    few_mechanisms(monkeypatch)
    with pytest.raises(ValueError, match=r"alpha must be larger, got 1e-20"):
        sample_complexity_bracket(Histogram(4), 1.0, 1e-20)


def test_a_bound_stands_where_a_harder_search_finds_none(monkeypatch):
    """If the harder search fails, the bound of the first search stays. No search runs twice."""
    searched = []
    search = bracket_module.bounds.packing_search

    def once(workload, *, metric, effort, **options):
        searched.append((metric, effort))
        if effort.exchanges:
            raise bounds.SideConditionError("the harder search finds nothing")
        return search(workload, metric=metric, effort=effort, **options)

    monkeypatch.setattr(bracket_module.bounds, "packing_search", once)
    problem = bounds.Problem(1.0, 0.02)
    _, refused = bracket_module.lower_bounds(Histogram(12), problem, 0)
    assert not any("search" in name for name in refused)
    assert len(searched) == len(set(searched))


def test_heuristic_mechanisms_and_simulations_on_priors_stay_out():
    found = sample_complexity_bracket(RandomSigns(6, 40, 0), 1.0, 0.1)
    assert found.refused["Gaussian"] == "Gaussian noise is never purely private"
    assert "if not, exact_only excludes it" in found.refused["KNorm"]
    for bound in found.upper_candidates:
        if bound.certificate is not None:
            assert bound.certificate.guarantee.sampler == Exact()
            assert bound.certificate.predicted_rmse.kind.value in ("exact", "upper_bound")


def test_simulated_limits_are_said_to_be_so(monkeypatch):
    """With few records, the error limit of a projection uses a simulated mean."""
    few_mechanisms(monkeypatch)
    found, _ = upper_bounds(
        RandomSigns(30, 20, 0),
        bounds.Problem(None, 0.5, bounds.RMS(), Adjacency.REPLACE_ONE, PureDP(1.0)),
    )
    projected = [
        b for b in found if isinstance(b.certificate, mechanisms.Projected) and b.assumptions
    ]
    assert projected
    assert all("confidence limit" in bound.assumptions[0] for bound in projected)
    # Each single limit fails with probability 1e-6, but the best of several mechanisms is chosen.
    compared = sum(bound.certificate is not None for bound in found)
    said = f"1e-6 for one mechanism, and {compared} mechanisms are compared"
    assert all(said in bound.assumptions[0] for bound in projected)
    additive = [b for b in found if isinstance(b.certificate, mechanisms.Laplace)]
    assert additive[0].assumptions == ()


@pytest.mark.parametrize(("n", "simulated"), [(1, False), (100, True), (100_000, True)])
def test_projected_noise_of_estimated_energy_is_simulated(n, simulated):
    """The bound is the diameter for n = 1, and a simulated mean for larger n."""
    inner = mechanisms.TightCone(MarginalTables([2] * 3, 2), n=n, privacy=PureDP(1.0))
    mechanism = mechanisms.Projected(inner)
    assert inner.predicted_rmse.stderr > 0
    assert error_limit(bounds.RMS(), mechanism).simulated == simulated
    assert ("public draws" in mechanism.predicted_rmse.source) == simulated
    closed = mechanisms.Projected(
        mechanisms.Laplace(inner.workload, n=100_000, privacy=PureDP(1.0))
    )
    assert not error_limit(bounds.RMS(), closed).simulated
    assert closed.predicted_rmse.source == "E||Z||^2 / n^2 (JL-L13)"


@pytest.mark.statistical
def test_worst_case_errors_stay_below_their_limit():
    workload, rng = Marginals(6, 2), np.random.default_rng(0)
    records = workload.universe.sample(40, rng)
    truth = workload.answers(records)
    mechanism = mechanisms.Laplace(workload, n=40, privacy=PureDP(1.0))
    largest = [
        np.abs(mechanism.release(records, rng=rng).answers - truth).max() for _ in range(2000)
    ]
    limit = error_limit(bounds.WorstCase(), mechanism)
    # For Laplace noise the limit is the expected largest error itself, up to rounding of answers,
    # so the mean of 2000 largest errors is within 6 standard errors of the limit.
    stderr = np.std(largest) / math.sqrt(2000)
    assert abs(np.mean(largest) - limit.value) < 6 * stderr


LARGEST: dict[str, mechanisms.AdditiveMechanism] = {
    "hierarchical": mechanisms.Hierarchical(Prefixes(32), n=1, privacy=PureDP(1.0)),
    "knorm": mechanisms.KNorm(Prefixes(16), n=1, privacy=PureDP(0.3), exact=True),
    "cone": mechanisms.Cone(Marginals(6, 2), n=1, privacy=PureDP(1.0)),
    "tight cone": mechanisms.TightCone(MarginalTables([2] * 4, 2), n=1, privacy=PureDP(2.0)),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", LARGEST)
def test_drawn_limits_of_the_largest_error_hold(name):
    """Each limit is at least the mean of draws from another seed. A limit 10% lower is not."""
    mechanism = LARGEST[name]
    limit = error_limit(bounds.WorstCase(), mechanism)
    assert limit.simulated
    assert limit.value < 0.9 * expected_maximum(mechanism.noise)
    draws = mechanism.noise.sample(np.random.default_rng(5), 20_000)
    largest = np.abs(draws).max(axis=1)
    error = 6 * largest.std() / math.sqrt(len(largest))
    rounding = float(mechanism.answer_rounding.max())
    assert limit.value - rounding >= largest.mean() - error
    assert 0.9 * (limit.value - rounding) < largest.mean() - error


@pytest.mark.parametrize("epsilon", [1.0, 12.0])
def test_rare_noise_is_not_drawn(epsilon):
    """Draws of noise that is almost always 0 would say that it has no error."""
    for kind, workload in (
        (mechanisms.LatticeBox, Histogram(3)),
        (mechanisms.Staircase, Explicit([[0.0, 1.0]])),
    ):
        mechanism = kind(workload, n=1, privacy=PureDP(epsilon))
        limit = error_limit(bounds.WorstCase(), mechanism)
        assert not limit.simulated
        sizes = mechanism.noise.mean_sizes()
        assert sizes.max() * (1 - 1e-9) <= limit.value
        assert limit.value <= sizes.sum() + mechanism.answer_rounding.max() + 1e-12


def test_noise_that_is_not_log_concave_is_not_drawn():
    """A linear map of noise that is almost always 0 is almost always 0, so draws would mislead."""
    part = Part(GeometricNoise(units=[1.0, 1.0], scale=1 / 12), np.eye(2))
    assert not is_log_concave(MappedNoise([part]))


@pytest.mark.parametrize(("arguments", "message"), [
    ((Histogram(4), 0.0, 0.1), "epsilon must be a finite number above 0"),
    ((Histogram(4), 1.0, math.nan), "alpha must be a finite number above 0"),
    ((Histogram(4), 1.0, 0.1, 2.0), "metric must be MeanL2, RMS or WorstCase, got 2.0"),
    ((Histogram(4), 1.0, 0.1, bounds.RMS(), "x"), "adjacency must be one of"),
    ((Histogram(1), 1.0, 0.1), "sensitivity that is finite and above 0"),
    (("x", 1.0, 0.1), "workload must be a Workload"),
])  # fmt: skip
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        sample_complexity_bracket(*arguments)


def test_printed_numbers_of_records_are_the_proved_ones():
    """A lower bound of 99,999,999,999 that is printed as 1e+11 would claim one record too many."""
    lower = bounds.Bound(99_999_999_999.0, bounds.Side.LOWER, "one argument")
    upper = bounds.Bound(123_456_789_012.0, bounds.Side.UPPER, "another argument")
    found = Bracket(
        lower, upper, bounds.Problem(1.0, 0.05), (lower,), (upper,), {"none": "no reason"}
    )
    for text in (str(found), repr(found), found._repr_html_(), repr(found.table)):
        assert "99999999999" in text
        assert "123456789012" in text
        assert "e+" not in text
