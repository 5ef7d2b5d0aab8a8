"""Under zCDP and (epsilon, delta)-DP, bounds from lines hold and false claims are rejected."""

import functools
import itertools
import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import geomdp as gd
from geomdp import bounds
from geomdp.bounds.checker.lines import _differences
from geomdp.bounds.checker.reading import Guarantee
from geomdp.bounds.count_risks import Accuracy, approximate_line, overlap, paired_line, smooth_line
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Privacy, PureDP
from geomdp.workloads import Explicit, Histogram, Marginals, Prefixes, Workload
from tests.bounds.best_mechanism import least_count_error
from tests.bounds.test_checker import Document, saved, seal
from tests.bounds.test_hostile_certificates import rejected

OTHERS: list[Privacy] = [ZCDP(0.5), ZCDP(0.005), ApproxDP(1.0, 1e-6), ApproxDP(0.1, 0.01)]
METRICS: list[bounds.Metric] = [bounds.RMS(), bounds.MeanL2(), bounds.WorstCase()]


def gaussian_scale(privacy: Privacy) -> float:
    """Standard deviation of private Gaussian noise on a count that one change alters by 1."""
    if isinstance(privacy, ZCDP):
        return 1 / math.sqrt(2 * privacy.rho)
    assert isinstance(privacy, ApproxDP)
    return gd.privacy.gaussian_scale(1.0, privacy)


@pytest.mark.parametrize("privacy", OTHERS, ids=str)
@pytest.mark.parametrize("changes", [1, 2, 3, 7, 20])
def test_outputs_of_gaussian_noise_overlap_at_least_as_much(privacy, changes):
    exact = 2 * norm.sf(changes / (2 * gaussian_scale(privacy)))
    assert overlap(privacy, changes) <= exact


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 20.0])
@pytest.mark.parametrize("delta", [1e-9, 0.01, 0.4])
def test_randomized_response_that_fails_with_probability_delta_attains_the_overlap(epsilon, delta):
    """No (epsilon, delta)-DP answer tells more about one bit (Kairouz-Oh-Viswanath 2015)."""
    exact = (1 - delta) * 2 / (1 + math.exp(epsilon))
    assert overlap(ApproxDP(epsilon, delta), 1) == pytest.approx(exact, rel=1e-9)
    assert overlap(ApproxDP(epsilon, delta), 1) <= exact


@pytest.mark.parametrize("privacy", [*OTHERS, ApproxDP(0.43853097011748293, 0.3135617869023986)])
def test_the_checker_computes_the_same_overlap_by_other_formulas(privacy):
    """The larger rounding margin of the library suffices even where delta leaves a tiny overlap."""
    own = {"epsilon": 0.0, "delta": 0.0, "rho": 0.0} | privacy.parameters()
    for changes in (*range(1, 9), 30, 1000, 10**6):
        found = Guarantee(**own).overlap(changes)
        assert found == pytest.approx(overlap(privacy, changes), rel=1e-9, abs=1e-15)
        assert overlap(privacy, changes) <= found
    assert Guarantee(**own).overlap(10**9) == overlap(privacy, 10**9) == 0.0


def bayes_risk(scale: float, steps: int, prior: np.ndarray, moment: int) -> float:
    """Bayes risk of estimating t from t plus Gaussian noise, by a sum on a fine grid."""
    outputs = np.arange(-8 * scale, steps + 8 * scale, scale / 200)
    joint = prior[:, None] * norm.pdf(outputs, np.arange(steps + 1)[:, None], scale) * scale / 200
    t = np.arange(steps + 1)[:, None]
    if moment == 2:
        estimates = (t * joint).sum(axis=0) / joint.sum(axis=0)
        return float((joint * (t - estimates) ** 2).sum())
    return float((np.abs(t - t.T) @ joint).min(axis=0).sum())


@pytest.mark.parametrize("privacy", OTHERS, ids=str)
@pytest.mark.parametrize("steps", [1, 2, 5, 30])
@pytest.mark.parametrize("moment", [1, 2])
def test_no_estimate_from_gaussian_noise_beats_a_line(privacy, steps, moment):
    scale = gaussian_scale(privacy)
    uniform = np.full(steps + 1, 1 / (steps + 1))
    best = bayes_risk(scale, steps, uniform, moment)
    assert 0 < paired_line(steps, privacy, 1, moment).risk <= best * (1 + 1e-6)
    if isinstance(privacy, ZCDP) and moment == 2:
        line = smooth_line(steps, privacy.rho)
        weights = line.document["weights"]
        before, after = np.array([0.0, *weights]), np.array([*weights, 0.0])
        roots = np.hypot(after - before, math.sqrt(math.expm1(2 * privacy.rho)) * before)
        best = bayes_risk(scale, steps, roots / roots.sum(), 2)
        assert 0 < line.risk <= best * (1 + 1e-6)


def test_gaussian_noise_is_optimal_for_one_query_under_zcdp():
    """A long line of short steps proves at least 97; the variance of Gaussian noise is 100."""
    risk = smooth_line(400, 0.005).risk
    assert 97.0 < risk <= 100.0


@pytest.mark.parametrize("privacy", [ApproxDP(1.0, 1e-3), ApproxDP(0.3, 0.05)], ids=str)
@pytest.mark.parametrize("moment", [1, 2])
def test_no_line_is_above_the_best_mechanism_for_one_query(privacy, moment):
    for steps in (1, 3, 8):
        best = least_count_error(
            steps, privacy.epsilon, moment, 0.25 if moment == 2 else 1.0, privacy.delta
        )
        # Lines with fewer, longer steps on the same data sets also prove bounds.
        pairs, duals = (
            max(
                line(steps // size, privacy, size, moment).risk * size**moment
                for size in range(1, steps + 1)
            )
            for line in (paired_line, approximate_line)
        )
        found = max(pairs, duals)
        assert found <= best * (1 + 1e-6)
        assert best <= found * 2
        if privacy.delta < 0.01:
            assert best <= found * 1.05
        if (steps, moment) == (1, 1):  # both are the error of randomized response
            assert best <= pairs * (1 + 1e-6)


WORKLOADS: list[Workload] = [Histogram(5), Prefixes(9), Marginals(4, 2)]


def lines_bound(
    workload: Workload, privacy: Privacy, metric: bounds.Metric, alpha: float = 0.02
) -> bounds.Bound:
    return bounds.orthogonal_lines_bound(workload, privacy=privacy, alpha=alpha, metric=metric)


@pytest.mark.parametrize("workload", WORKLOADS, ids=repr)
@pytest.mark.parametrize("privacy", OTHERS, ids=str)
def test_no_gaussian_error_is_excluded(workload, privacy):
    for adjacency, n in itertools.product(Adjacency, (10, 1000, 100_000)):
        gaussian = gd.mechanisms.Gaussian(workload, n=n, privacy=privacy, adjacency=adjacency)
        error = bounds.orthogonal_lines_error(
            workload, n, privacy=privacy, metric=bounds.RMS(), adjacency=adjacency
        )
        assert 0 < error < gaussian.predicted_rmse.value


@pytest.mark.parametrize("privacy", OTHERS, ids=str)
@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_certificates_are_confirmed(privacy, metric, tmp_path):
    for workload in WORKLOADS:
        bound = lines_bound(workload, privacy, metric)
        checked = bounds.check_certificate(saved(bound, tmp_path))
        assert checked.records == bound.value > 0
        assert str(privacy) in checked.statement
        assert str(privacy) in bound.statement


@pytest.mark.parametrize("privacy", [PureDP(1.0), *OTHERS], ids=str)
def test_some_queries_bound_the_largest_error_at_least_as_well(privacy):
    """Copies of a query change the mean error over the queries, but not the largest error."""
    matrix = np.array([[0.0, 1.0, 0.0], *([[0.0, 0.0, 0.1]] * 30)])
    wide = lines_bound(gd.workloads.Explicit(matrix), privacy, bounds.WorstCase())
    alone = lines_bound(gd.workloads.Explicit(matrix[:1]), privacy, bounds.WorstCase())
    assert wide.value >= alone.value * 0.98 > 20
    mean = lines_bound(gd.workloads.Explicit(matrix), privacy, bounds.MeanL2(), alpha=0.005)
    assert all(rung.family.queries is None for rung in mean.certificate.rungs)


@pytest.mark.parametrize(("privacy", "copies"), [
    (ApproxDP(0.02, 0.1), 1),  # delta is several times epsilon; 25 copies prove nothing
    (ApproxDP(0.02, 0.02 / 8), 12),
    (ApproxDP(0.02, 2e-11), 25),
])  # fmt: skip
def test_a_large_delta_allows_few_copies(privacy, copies):
    assert Accuracy(privacy, 1, 2, False).copies(0.5) == copies


Change = Callable[[Document], object]


def altered(path: Path, change: Change) -> Path:
    document = json.loads(path.read_text())
    change(document)
    seal(path, document)
    return path


def longest(document: Document) -> Document:
    """The line with the longest prior, among the lines that are proved by allowances."""
    lines = [line for rung in document["rungs"] for line in rung["known"]]
    return max((line for line in lines if "prior" in line), key=lambda line: len(line["prior"]))


def only_lines(argument: str) -> Change:
    """Keep one rung, and only those of its lines that `argument` proves."""

    def change(document: Document) -> None:
        rungs = [
            rung
            for rung in document["rungs"]
            if any(line["argument"] == argument for line in rung["known"])
        ]
        rung = rungs[0]
        rung["known"] = [line for line in rung["known"] if line["argument"] == argument]
        document["rungs"] = [rung]

    return change


def stated(definition: str, **parameters: Any) -> Change:
    return lambda document: document.update(privacy={"definition": definition, **parameters})


def scaled(key: str, factor: float) -> Change:
    def change(document: Document) -> None:
        for rung in document["rungs"]:
            for line in rung["known"]:
                line[key] *= factor

    return change


def raised(key: str) -> Change:
    """Raise all allowances, or the whole prior, of the longest line a little."""

    def change(document: Document) -> None:
        line = longest(document)
        line[key] = [value * (1 + 1e-7) for value in line[key]]

    return change


def ignoring_delta(document: Document) -> None:
    line = longest(document)
    line["risk"] = math.fsum(line["allowances"]) * (1 - 1e-12)


def both(first: Change, second: Change) -> Change:
    return lambda document: (first(document), second(document))


def first_rung(**values: Any) -> Change:
    return lambda document: document["rungs"][0].update(values)


def first_line(**values: Any) -> Change:
    return lambda document: document["rungs"][0]["known"][0].update(values)


@functools.cache
def zcdp() -> bounds.Bound:
    return lines_bound(Histogram(4), ZCDP(0.02), bounds.RMS())


@functools.cache
def approximate() -> bounds.Bound:
    return lines_bound(Histogram(4), ApproxDP(0.2, 1e-4), bounds.MeanL2())


#: What is wrong about a bound under zCDP, and about one under (epsilon, delta)-DP.
WRONG_RHO = [
    (0, "rho is not above 0"),
    (-0.02, "rho is not above 0"),
    ("0.02", "rho is not a finite number"),
    (1e-200, "rho is too small"),
    (0.04, "risk is"),
    (0.02 * (1 + 1e-8), "risk is"),
    (1e99, "one step of a line loses too much|risk is"),
]
WRONG_EPSILON_OR_DELTA = [
    (0.2, 0, "delta is not above 0"),
    (0.2, 0.5, "delta is not above 0 and below 1/2"),
    (0.2, 2e-4, "risk is"),
    (0.0, 1e-4, "epsilon is not above 0"),
    (0.21, 1e-4, "risk is"),
    (1e50, 1e-4, "cannot be evaluated|risk is"),
]
ABOUT_ZCDP: list[tuple[Change, str]] = [
    *((stated("ZCDP", rho=rho), reason) for rho, reason in WRONG_RHO),
    (stated("ZCDP"), "zCDP has the parameter rho only"),
    (stated("ZCDP", rho=0.02, delta=0.1), "zCDP has the parameter rho only"),
    (stated("RenyiDP", rho=0.02), "'RenyiDP' is unknown"),
    (lambda d: d.update(privacy=0.02), "privacy is missing"),
    (lambda d: d.update(epsilon=0.2), "both epsilon and privacy"),
    (lambda d: (d.pop("privacy"), d.update(epsilon=0.2)), "prior is not an array"),
    (lambda d: d.pop("privacy"), "epsilon is not a finite number"),
    (scaled("risk", 1 + 1e-8), "risk is"),
    (scaled("risk", 1 + 1.5e-12), "risk is"),
    (scaled("risk", 0.5), "risk is"),
    (first_rung(copies=10**70), "loses too much|cannot be|scale is|risk"),
    (first_line(argument="none"), "'none' for a line"),
    (first_line(weights=[5e-324] * 24), "a weight is below"),
    (first_line(weights=[1.0] * 1001), "more than 1000 steps"),
    (lambda d: d["rungs"][0]["known"].append(d["rungs"][0]["known"][0]), "two risks"),
    (lambda d: d["rungs"][0]["family"].update(queries=[0]), "only the largest error"),
    (lambda d: d.update(adjacency="add/remove"), "risk is|loses too much"),
    (
        both(only_lines("differences"), stated("ApproxDP", epsilon=0.2, delta=1e-6)),
        "bounded under zCDP only",
    ),
]
ABOUT_APPROXIMATE: list[tuple[Change, str]] = [
    *(
        (stated("ApproxDP", epsilon=epsilon, delta=delta), reason)
        for epsilon, delta, reason in WRONG_EPSILON_OR_DELTA
    ),
    (first_line(steps=10**6), "steps must be at least 1 and at most 1000"),
    (raised("allowances"), "risk is|allowances are too large"),
    (raised("prior"), "risk is|the sum of a prior is"),
    (ignoring_delta, "risk is"),
    (
        both(only_lines("allowances"), stated("ZCDP", rho=0.02)),
        "allowances prove nothing under zCDP",
    ),
]


@pytest.mark.parametrize(
    ("bound", "change", "reason"),
    [(zcdp, *row) for row in ABOUT_ZCDP] + [(approximate, *row) for row in ABOUT_APPROXIMATE],
)
def test_false_lines_are_rejected(bound, change, reason, tmp_path):
    path = saved(bound(), tmp_path)
    assert bounds.check_certificate(path).records > 0
    rejected(altered(path, change), reason)


@pytest.mark.parametrize("scale", [1e-300, 5e-324])
def test_the_scale_of_weights_proves_nothing(scale):
    """Products of subnormal weights underflow. This must not give T weights the risk T^2 / 4."""
    guarantee = ZCDP(0.1)
    chi_square = math.expm1(2 * guarantee.rho)
    ordinary = _differences([1.0] * 1000, chi_square)
    assert _differences([scale] * 1000, chi_square) == pytest.approx(ordinary, rel=1e-12)
    assert ordinary < smooth_line(1000, guarantee.rho).risk < 1 / (2 * guarantee.rho)


def test_differences_prove_nothing_for_mean_errors(tmp_path):
    path = altered(saved(zcdp(), tmp_path), only_lines("differences"))
    rungs = json.loads(path.read_text())["rungs"]
    mean = lines_bound(Histogram(4), ZCDP(0.02), bounds.MeanL2())
    path = altered(saved(mean, tmp_path), lambda document: document.update(rungs=rungs))
    rejected(path, "differences bound a root mean squared error only")


@pytest.mark.parametrize(
    "argue",
    [partial(bounds.packing_search, rng=0), bounds.guessing_bound, bounds.query_lines_bound],
)
def test_packings_guesses_and_query_lines_prove_pure_bounds_only(argue, tmp_path):
    path = saved(argue(Histogram(16), epsilon=0.1, alpha=0.02), tmp_path)

    def other(document: Document) -> None:
        del document["epsilon"]
        document["privacy"] = {"definition": "ZCDP", "rho": 0.005}

    rejected(altered(path, other), "prove bounds for pure privacy only")


@pytest.mark.parametrize(("queries", "reason"), [
    ([0, 0], "not in increasing order"),
    ([1, 0], "not in increasing order"),
    ([-1], "queries are not numbers"),
    ([31], "queries are not numbers"),
    ([0.5], "not whole"),
    ([], "queries is empty"),
    ([1], "scale is|all differences are 0|first is"),
])  # fmt: skip
def test_wrong_sets_of_queries_are_rejected(tmp_path, queries, reason):
    matrix = np.array([[0.0, 1.0, 0.0], *([[0.0, 0.0, 0.1]] * 30)])
    bound = bounds.orthogonal_lines_bound(
        Explicit(matrix), epsilon=1.0, alpha=0.02, metric=bounds.WorstCase()
    )
    path = saved(bound, tmp_path)
    assert bounds.check_certificate(path).records == bound.value
    document = json.loads(path.read_text())
    assert document["rungs"][0]["family"]["queries"] == [0]
    rejected(altered(path, lambda d: d["rungs"][0]["family"].update(queries=queries)), reason)


@pytest.mark.parametrize("privacy", [PureDP(1e-13), ZCDP(1e13), ApproxDP(1e13, 1e-6)], ids=str)
def test_guarantees_outside_the_range_are_refused(privacy):
    with pytest.raises(ValueError, match=r"of a lower bound must be from 1e-12 to 1e\+12, got"):
        bounds.Problem(None, 0.01, privacy=privacy)
