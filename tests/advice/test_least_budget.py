"""The least budget for targets: `advise` meets them there and not below, and proofs stay below."""

import functools
import itertools
import math

import numpy as np
import pytest

import geomdp as gd
from geomdp.advice import HalfWidth, LargestError, RootMeanSquare
from geomdp.advice.least_budget import Asked, impossible_budget, least_budget
from geomdp.advice.setting import Target
from geomdp.bounds import ConfidentAnswers
from geomdp.noise.tails import largest_half_width
from tests.stats import LEVEL

APPROX = functools.partial(gd.ApproxDP, delta=1e-6)
KINDS = {"epsilon": gd.PureDP, "rho": gd.ZCDP, "epsilon, delta": APPROX}
TABLES = gd.workloads.MarginalTables({"region": 3, "smoker": 2, "age": 5}, k=2)
CHOSEN = gd.workloads.ChosenTables({"a": 2, "b": 3}, [["a"], ["a", "b"]], weights=[2, 1])
MATRIX = np.random.default_rng(5).uniform(-1, 1, (6, 9))
#: Ten workloads with targets; each is asked under three definitions of privacy.
CASES: dict[str, tuple[gd.workloads.Workload, int, list[Target]]] = {
    "histogram": (gd.workloads.Histogram(4), 1000, [RootMeanSquare(0.01)]),
    "few records": (gd.workloads.Histogram(32), 20, [RootMeanSquare(0.05)]),
    "prefixes": (gd.workloads.Prefixes(8), 500, [HalfWidth(0.03), RootMeanSquare(0.05)]),
    "ranges": (gd.workloads.Ranges(5), 800, [LargestError(0.04)]),
    "one count": (gd.workloads.Prefixes(2), 100, [HalfWidth(0.05)]),
    "tables": (TABLES, 1000, [RootMeanSquare(0.02), HalfWidth(0.04, ["region", "smoker"])]),
    "chosen": (CHOSEN, 300, [HalfWidth(0.02, ["a"]), RootMeanSquare(0.2)]),
    "parities": (gd.workloads.Parities(5, 2), 2000, [RootMeanSquare(0.05)]),
    "matrix": (gd.workloads.Explicit(MATRIX), 400, [LargestError(0.1), HalfWidth(0.02, 3)]),
    "signs": (gd.workloads.RandomSigns(8, 20, 1), 600, [RootMeanSquare(0.04, 2)]),
}


#: All questions. The proofs for (epsilon, delta) are those for epsilon with small changes.
SLOW = [("signs", "epsilon"), ("prefixes", "epsilon"), ("few records", "epsilon")]
QUESTIONS = [
    pytest.param(
        name,
        kind,
        marks=[pytest.mark.slow] if kind == "epsilon, delta" or (name, kind) in SLOW else [],
    )
    for name, kind in itertools.product(CASES, KINDS)
]


@functools.cache
def found(name: str, kind: str) -> gd.advice.LeastBudget:
    workload, n, targets = CASES[name]
    return gd.budget_for(workload, n=n, targets=targets, privacy=KINDS[kind])


@pytest.mark.parametrize(("name", "kind"), QUESTIONS)
def test_the_advised_mechanism_meets_all_targets_there_and_not_at_99_percent(name, kind):
    result, (_, n, targets) = found(name, kind), CASES[name]

    def misses(budget: float) -> int:
        privacy = KINDS[kind](budget)
        best = gd.advise(result.workload, n=n, privacy=privacy, exact_only=True).best
        return sum(target.error(best) > target.limit for target in targets)

    assert misses(result.budget) == 0
    assert misses(0.99 * result.budget) > 0
    assert result.binding in targets


@pytest.mark.parametrize(("name", "kind"), QUESTIONS)
def test_no_budget_that_suffices_is_called_impossible(name, kind):
    result, (workload, n, targets) = found(name, kind), CASES[name]
    assert result.impossible is not None
    assert 0 < result.impossible.budget < result.budget
    asked = Asked(workload, n, tuple(targets), KINDS[kind], gd.Adjacency.REPLACE_ONE, True)
    proved = [each for t in targets if (each := impossible_budget(asked, t)) is not None]
    assert result.impossible.budget == max(each.budget for each in proved)


@pytest.mark.slow
def test_a_certificate_of_the_lower_side_excludes_all_n_records(tmp_path):
    low = found("histogram", "epsilon").impossible
    low.certificate.save(tmp_path / "low.json")
    checked = gd.bounds.check_certificate(tmp_path / "low.json")
    assert checked.records >= 1000
    assert low.certificate.problem.privacy == gd.PureDP(low.budget)
    assert low.certificate.problem.alpha == 0.01


def test_unequal_targets_need_less_budget_with_weights():
    targets = [HalfWidth(0.01, ["region", "smoker"]), HalfWidth(0.08)]
    result = gd.budget_for(TABLES, n=1000, targets=targets, privacy=gd.ZCDP)
    asked = Asked(TABLES, 1000, tuple(targets), gd.ZCDP, gd.Adjacency.REPLACE_ONE, True)
    without, _ = least_budget(asked, TABLES, 1.0)
    assert result.budget < 0.8 * without
    weights = dict(zip(TABLES.tables, result.workload.table_weights, strict=True))
    assert weights[0, 1] == max(weights.values()) > min(weights.values())


def test_errors_of_weighted_tables_are_those_of_shares():
    # A weight of all tables changes nothing but the unit of the answers.
    columns, tables = {"a": 2, "b": 3}, [["a"], ["a", "b"]]
    plain, heavy = (gd.workloads.ChosenTables(columns, tables, [w, w]) for w in (1, 8))
    for target in (RootMeanSquare(1), HalfWidth(1, ["a"]), LargestError(1), RootMeanSquare(1, 4)):
        errors = [
            target.error(gd.mechanisms.Laplace(each, n=100, privacy=gd.PureDP(1.0)))
            for each in (plain, heavy)
        ]
        assert errors[0] == pytest.approx(errors[1], rel=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["Laplace", "Gaussian", "Cone", "ResidualGaussian"])
def test_95_percent_of_the_releases_keep_the_largest_error(name):
    pure = name in ("Laplace", "Cone")
    privacy = gd.PureDP(1.0) if pure else gd.ZCDP(0.5)
    noise = getattr(gd.mechanisms, name)(TABLES, n=1, privacy=privacy).noise
    place, divisors = slice(3, 12), np.linspace(1, 2, 9)
    limit = largest_half_width(noise, 0.95, place, divisors)
    drawn = np.abs(noise.sample(np.random.default_rng(3), 20_000))[:, place] / divisors
    kept = float((drawn.max(axis=1) <= limit).mean())
    # Hoeffding. Quantiles from 1999 public draws vary by 0.5%, four times.
    slack = math.sqrt(math.log(4 / LEVEL) / (2 * 20_000)) + (0.02 if name == "Cone" else 0)
    assert kept >= 0.95 - slack


# The proof of the lower side


@pytest.mark.parametrize(("M", "k"), [(2, 1), (2, 7), (50, 3)])
def test_randomised_response_attains_the_bound_of_pure_privacy(M, k):
    # It names one of M regions, the right one with probability e^(k eps) / (e^(k eps) + M - 1).
    proof = ConfidentAnswers(M, k)
    odds = math.exp(k * proof.least_budget(gd.PureDP(1.0)))
    assert odds / (odds + M - 1) == pytest.approx(0.95, rel=1e-7)


@pytest.mark.parametrize(("M", "k"), [(2, 1), (2, 7), (50, 3)])
def test_group_privacy_allows_the_regions_just_above_the_bound_and_not_below(M, k):
    proof, q = ConfidentAnswers(M, k), 0.05 / (M - 1)
    least = proof.least_budget(gd.ApproxDP(1.0, 1e-5))
    for share, allowed in ((1.001, True), (0.999, False)):
        group = gd.privacy.group_privacy(gd.ApproxDP(share * least, 1e-5), k)
        assert (math.exp(group.epsilon) * q + group.delta >= 0.95) == allowed
    # Two Gaussians of rho-zCDP: no event has a larger divergence than the mechanism.
    rho = proof.least_budget(gd.ZCDP(1.0))
    divergence = 0.95 * math.log(0.95 / q) + 0.05 * math.log(0.05 / (1 - q))
    assert k**2 * rho == pytest.approx(divergence, rel=1e-7)


def test_the_data_sets_of_the_proof_are_as_far_apart_as_it_says():
    # 21 of 1000 records change a share by 0.021, more than twice a half-width of 0.01; 20 do not.
    low = gd.budget_for(TABLES, n=1000, targets=[HalfWidth(0.01)]).impossible
    assert low.certificate == ConfidentAnswers(2, 21)
    many = gd.budget_for(TABLES, n=1000, targets=[LargestError(0.01)]).impossible
    assert many.certificate == ConfidentAnswers(30, 21)
    added = gd.Adjacency.ADD_REMOVE
    both = gd.budget_for(TABLES, n=1000, targets=[HalfWidth(0.01)], adjacency=added).impossible
    assert both.certificate == ConfidentAnswers(2, 42)


@pytest.mark.parametrize(("change", "said"), [
    ({"targets": []}, "at least 1 target"),
    ({"targets": [HalfWidth(0.1, ["region"])]}, "over must be the columns of a table"),
    ({"targets": [HalfWidth(0.1, 31)]}, "over must be a whole number"),
    ({"targets": [RootMeanSquare(2.0)]}, "any budget meets them"),
    ({"targets": [0.1]}, "each of targets"),
    ({"n": 0}, "n must be"),
    ({"privacy": lambda budget: budget}, "privacy must make"),
])  # fmt: skip
def test_bad_arguments_are_refused(change, said):
    with pytest.raises(ValueError, match=said):
        gd.budget_for(TABLES, **({"n": 100, "targets": [RootMeanSquare(0.1)]} | change))


@pytest.mark.parametrize("limit", [0, -1, math.nan, math.inf, "0.1"])
def test_a_limit_is_a_positive_number(limit):
    with pytest.raises(ValueError, match="limit must be a finite number above 0"):
        HalfWidth(limit)
    with pytest.raises(ValueError, match="over must be"):
        HalfWidth(0.1, "region")


def test_a_mechanism_without_noise_of_a_known_law_has_one_error():
    pairs = gd.mechanisms.PairMarginals(gd.workloads.Marginals(4, 2), n=100, privacy=gd.PureDP(1.0))
    assert RootMeanSquare(0.1).error(pairs) == pairs.predicted_rmse.value
    with pytest.raises(ValueError, match="adds no noise of a known law"):
        HalfWidth(0.1).error(pairs)


def test_a_delta_that_allows_the_answers_excludes_no_budget():
    found = gd.budget_for(
        gd.workloads.Histogram(4),
        n=100_000,
        targets=[gd.advice.HalfWidth(0.01)],
        privacy=functools.partial(gd.ApproxDP, delta=4.8e-4),
    )
    assert found.impossible is None
    assert "0.01" in str(found)
