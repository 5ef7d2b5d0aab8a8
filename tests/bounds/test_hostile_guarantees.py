"""The checker rejects false claims about zCDP, (epsilon, delta)-DP and sets of queries."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geomdp.bounds import (
    RMS,
    MeanL2,
    WorstCase,
    check_certificate,
    guessing_bound,
    orthogonal_lines_bound,
    packing_search,
    query_lines_bound,
)
from geomdp.bounds.checker.lines import _differences
from geomdp.bounds.count_risks import smooth_line
from geomdp.privacy import ZCDP, ApproxDP
from geomdp.workloads import Explicit, Histogram
from tests.bounds.test_checker import Document, saved, seal
from tests.bounds.test_hostile_certificates import rejected

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


def set_privacy(**parameters: Any) -> Change:
    return lambda document: document.update(privacy=parameters)


def scaled(key: str, factor: float) -> Change:
    def change(document: Document) -> None:
        for rung in document["rungs"]:
            for line in rung["known"]:
                line[key] *= factor

    return change


@pytest.fixture
def zcdp(tmp_path: Path) -> Path:
    bound = orthogonal_lines_bound(Histogram(4), privacy=ZCDP(0.02), alpha=0.02, metric=RMS())
    return saved(bound, tmp_path)


@pytest.fixture
def approximate(tmp_path: Path) -> Path:
    bound = orthogonal_lines_bound(Histogram(4), privacy=ApproxDP(0.2, 1e-4), alpha=0.02)
    return saved(bound, tmp_path)


@pytest.mark.parametrize(
    ("rho", "reason"),
    [
        (math.nan, "NaN is not a finite number"),
        (math.inf, "Infinity is not a finite number"),
        (0, "rho is not above 0"),
        (-0.02, "rho is not above 0"),
        (True, "rho is not a finite number"),
        ("0.02", "rho is not a finite number"),
        (1e-200, "rho is too small"),
        (0.04, "risk is"),
        (0.02 * (1 + 1e-8), "risk is"),
        (1e99, "one step of a line loses too much|risk is"),
    ],
)
def test_a_wrong_rho_is_rejected(zcdp, rho, reason):
    rejected(altered(zcdp, set_privacy(definition="ZCDP", rho=rho)), reason)


@pytest.mark.parametrize(
    ("epsilon", "delta", "reason"),
    [
        (0.2, 0, "delta is not above 0"),
        (0.2, 1, "delta is not above 0 and below 1/2"),
        (0.2, 0.5, "delta is not above 0 and below 1/2"),
        (0.2, math.nan, "NaN is not a finite number"),
        (0.2, 2e-4, "risk is"),
        (0.0, 1e-4, "epsilon is not above 0"),
        (0.21, 1e-4, "risk is"),
        (1e50, 1e-4, "cannot be evaluated|risk is"),
    ],
)
def test_a_wrong_delta_or_epsilon_is_rejected(approximate, epsilon, delta, reason):
    stated = set_privacy(definition="ApproxDP", epsilon=epsilon, delta=delta)
    rejected(altered(approximate, stated), reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (set_privacy(definition="ZCDP"), "zCDP has the parameter rho only"),
        (set_privacy(definition="ZCDP", rho=0.02, delta=0.1), "zCDP has the parameter rho only"),
        (set_privacy(definition="RenyiDP", rho=0.02), "'RenyiDP' is unknown"),
        (lambda d: d.update(privacy=0.02), "privacy is missing"),
        (lambda d: d.update(epsilon=0.2), "both epsilon and privacy"),
        (lambda d: (d.pop("privacy"), d.update(epsilon=0.2)), "prior is not an array"),
        (lambda d: d.pop("privacy"), "epsilon is not a finite number"),
        (scaled("risk", 1 + 1e-8), "risk is"),
        (scaled("risk", 1 + 1.5e-12), "risk is"),
        (scaled("risk", 0.5), "risk is"),
        (lambda d: d["rungs"][0].update(copies=10**70), "loses too much|cannot be|scale is|risk"),
        (lambda d: d["rungs"][0]["known"][0].update(argument="none"), "'none' for a line"),
        (lambda d: d["rungs"][0]["known"][0].update(weights=[0.0]), "a weight is below"),
        (lambda d: d["rungs"][0]["known"][0].update(weights=[5e-324] * 24), "a weight is below"),
        (lambda d: d["rungs"][0]["known"][0].update(weights=[1.0] * 1001), "more than 1000 steps"),
        (lambda d: d["rungs"][0]["known"].append(d["rungs"][0]["known"][0]), "two risks"),
        (lambda d: d["rungs"][0]["family"].update(queries=[0]), "only the largest error"),
        (lambda d: d.update(adjacency="add/remove"), "risk is|loses too much"),
    ],
)
def test_false_lines_are_rejected(zcdp, change, reason):
    assert check_certificate(zcdp).records > 0
    rejected(altered(zcdp, change), reason)


@pytest.mark.parametrize("scale", [1e-300, 5e-324])
def test_the_scale_of_weights_proves_nothing(scale):
    """Products of subnormal weights underflow. This must not give T weights the risk T^2 / 4."""
    guarantee = ZCDP(0.1)
    chi_square = math.expm1(2 * guarantee.rho)
    ordinary = _differences([1.0] * 1000, chi_square)
    assert _differences([scale] * 1000, chi_square) == pytest.approx(ordinary, rel=1e-12)
    assert ordinary < smooth_line(1000, guarantee.rho).risk < 1 / (2 * guarantee.rho)


def test_differences_prove_nothing_for_approximate_privacy_or_mean_errors(zcdp, tmp_path):
    rungs = json.loads(altered(zcdp, only_lines("differences")).read_text())["rungs"]
    approximate = set_privacy(definition="ApproxDP", epsilon=0.2, delta=1e-6)
    rejected(altered(zcdp, approximate), "bounded under zCDP only")
    mean = orthogonal_lines_bound(Histogram(4), privacy=ZCDP(0.02), alpha=0.02, metric=MeanL2())
    path = altered(saved(mean, tmp_path), lambda document: document.update(rungs=rungs))
    rejected(path, "differences bound a root mean squared error only")


def test_too_many_steps_in_pairs_are_rejected(approximate):
    def many(document: Document) -> None:
        document["rungs"][0]["known"][0]["steps"] = 10**6

    rejected(altered(approximate, many), "steps must be at least 1 and at most 1000")


@pytest.mark.parametrize("key", ["allowances", "prior"])
def test_changed_allowances_are_rejected(approximate, key):
    def raised(document: Document) -> None:
        line = longest(document)
        line[key] = [value * (1 + 1e-7) for value in line[key]]

    rejected(altered(approximate, raised), "risk is|allowances are too large|the sum of a prior is")


def test_allowances_that_ignore_delta_are_rejected(approximate):
    def ignore(document: Document) -> None:
        line = longest(document)
        line["risk"] = math.fsum(line["allowances"]) * (1 - 1e-12)

    rejected(altered(approximate, ignore), "risk is")


def test_allowances_prove_nothing_under_zcdp(approximate):
    path = altered(approximate, only_lines("allowances"))
    rejected(
        altered(path, set_privacy(definition="ZCDP", rho=0.02)),
        "allowances prove nothing under zCDP",
    )


@pytest.mark.parametrize(
    "argue", [partial(packing_search, rng=0), guessing_bound, query_lines_bound]
)
def test_packings_guesses_and_query_lines_prove_pure_bounds_only(argue, tmp_path):
    path = saved(argue(Histogram(16), epsilon=0.1, alpha=0.02), tmp_path)

    def other(document: Document) -> None:
        del document["epsilon"]
        document["privacy"] = {"definition": "ZCDP", "rho": 0.005}

    rejected(altered(path, other), "prove bounds for pure privacy only")


@pytest.mark.parametrize(
    ("queries", "reason"),
    [
        ([0, 0], "not in increasing order"),
        ([1, 0], "not in increasing order"),
        ([-1], "queries are not numbers"),
        ([31], "queries are not numbers"),
        ([0.5], "not whole"),
        ([], "queries is empty"),
        ([1], "scale is|all differences are 0|first is"),
    ],
)
def test_wrong_sets_of_queries_are_rejected(tmp_path, queries, reason):
    matrix = np.array([[0.0, 1.0, 0.0], *([[0.0, 0.0, 0.1]] * 30)])
    bound = orthogonal_lines_bound(Explicit(matrix), epsilon=1.0, alpha=0.02, metric=WorstCase())
    path = saved(bound, tmp_path)
    assert check_certificate(path).records == bound.value
    document = json.loads(path.read_text())
    assert document["rungs"][0]["family"]["queries"] == [0]
    rejected(altered(path, lambda d: d["rungs"][0]["family"].update(queries=queries)), reason)
