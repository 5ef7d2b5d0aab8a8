"""Bounds from separated elements hold for all mechanisms, and the checker confirms their files."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import geomdp as gd
from geomdp import bounds
from geomdp.bounds.certificates import covering_bound, rungs_of_plans
from geomdp.bounds.guessing import (
    DistantElements,
    GuessedElements,
    SeparatedElements,
    distant_elements,
    guess_rungs,
    plans_of_elements,
    separated_elements,
)
from geomdp.bounds.problem import Problem
from geomdp.privacy import Adjacency
from geomdp.workloads import Explicit, Histogram, MarginalTables, Prefixes, RandomSigns, Workload
from tests.bounds.best_mechanism import least_error
from tests.bounds.test_checker import FORGED_RUNG, forged_rungs_are_rejected, saved

METRICS: tuple[bounds.Metric, ...] = (bounds.MeanL2(), bounds.RMS())
KINDS: tuple[type[GuessedElements], ...] = (SeparatedElements, DistantElements)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("loss", [0.1, 0.7, 2.0, 4.0])
def test_no_mechanism_is_better(count, loss, metric):
    """For histograms, the outputs are a grid of the simplex, because best estimates lie in it."""
    (packed,) = [
        p for p in separated_elements(Histogram(count), metric.moment) if len(p.elements) == count
    ]
    grid = 12
    corners = (part for part in itertools.product(range(grid + 1), repeat=count))
    estimates = np.array([part for part in corners if sum(part) == grid]) / grid
    away = np.eye(count)[:, None] - estimates
    losses = (np.linalg.norm(away, axis=2) / math.sqrt(count)) ** metric.moment
    best = least_error(losses, math.exp(loss)) ** (1 / metric.moment)
    assert 0.7 * best < packed.risk(loss) <= best * (1 + 1e-6)


def test_close_elements_limit_the_risk():
    """An estimate can be near several close elements, so separation / sqrt 2 limits the risk."""
    answers = np.array([[0.0, 0.01, 0.02, 0.03, 1.0]])
    for packed in separated_elements(Explicit(answers), 2):
        inside = answers[0][np.sort(packed.elements)]
        best = least_error((inside[:, None] - np.linspace(0, 1, 101)) ** 2, math.exp(1.0))
        assert packed.risk(1.0) ** 2 <= best * (1 + 1e-6)


def sets_of(workload: Workload, metric: bounds.Metric, count: int) -> DistantElements:
    """The set of `count` distant elements."""
    (found,) = [one for one in distant_elements(workload, metric) if len(one.elements) == count]
    return found


def best_of(answers: np.ndarray, metric: bounds.Metric, ratio: float, steps: int) -> float:
    """The least error of private estimates of `answers` (M, k); outputs are a grid of the cube."""
    points = np.linspace(0.0, 1.0, steps)
    outputs = np.array(list(itertools.product(points, repeat=answers.shape[1])))
    losses = np.array([metric.norm(outputs - answer) for answer in answers]) ** metric.moment
    return least_error(losses, ratio) ** (1 / metric.moment)


@pytest.mark.parametrize("metric", [*METRICS, bounds.WorstCase()])
@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("loss", [0.1, 0.7, 2.0, 4.0])
def test_no_mechanism_is_better_than_distances_say(count, loss, metric):
    """The bound holds for histograms. For `WorstCase` it is the error of the best mechanism."""
    packed = sets_of(Histogram(count), metric, count)
    best = best_of(np.eye(count), metric, math.exp(loss), 5 if count < 4 else 3)
    assert packed.risk(loss) <= best * (1 + 1e-6)
    if isinstance(metric, bounds.WorstCase):
        assert packed.risk(loss) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("metric", [*METRICS, bounds.WorstCase()])
def test_uneven_distances_exclude_no_mechanism(metric):
    """The bound holds for random answers; a grid of outputs can only increase the least error."""
    rng = np.random.default_rng(3)
    for loss in (0.3, 1.5, 4.0):
        workload = Explicit(rng.random((2, 4)))
        for packed in distant_elements(workload, metric):
            if len(packed.elements) < 4:
                answers = workload.evaluate(packed.elements)
                best = best_of(answers, metric, math.exp(loss), 11)
                assert packed.risk(loss) <= best * (1 + 1e-6)


def test_prefixes_need_records_for_the_largest_error():
    """4 copies of one of 64 elements prove an error of at least (4 / 2) / n, because e^4 < 63."""
    bound = bounds.guessing_bound(Prefixes(64), epsilon=1.0, alpha=0.03, metric=bounds.WorstCase())
    assert bound.value == math.floor(4 / 2 / 0.03)


def test_a_privacy_loss_beyond_float64_proves_nothing():
    """e^800 overflows. For e^500 the bound on the error is positive, but below alpha = 1e-6."""
    for epsilon in (500.0, 800.0):
        assert guess_rungs(Histogram(512), Problem(epsilon, 1e-6, bounds.MeanL2())) == []


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "histogram": lambda: Histogram(16),
    "tables": lambda: MarginalTables([2, 3, 4], 2),
    "prefixes": lambda: Prefixes(32),
    "signs": lambda: RandomSigns(20, 50, rng=0),
    "moments": lambda: gd.workloads.SecondMoment(3),
}


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("adjacency", Adjacency)
def test_no_exact_error_is_excluded(name, adjacency):
    """The excluded errors are below the errors of `Laplace` and `Ball`, which are known exactly."""
    W = WORKLOADS[name]()
    rungs = guess_rungs(W, Problem(0.5, 1e-4, bounds.RMS(), adjacency))
    assert {type(rung.family) for rung in rungs} <= set(KINDS)
    assert rungs
    for kind in (gd.mechanisms.Laplace, gd.mechanisms.Ball):
        mechanism = kind(W, n=1, privacy=gd.PureDP(0.5), adjacency=adjacency)
        for rung in rungs:
            error = mechanism.with_n(rung.first).predicted_rmse.value
            assert rung.constants["scale"] / rung.first < error


@pytest.mark.parametrize("prove", [bounds.guessing_bound, bounds.query_lines_bound])
def test_add_remove_counts_every_replacement_twice(prove):
    twice, once = (
        prove(Prefixes(16), epsilon=epsilon, alpha=0.02, adjacency=adjacency)
        for epsilon, adjacency in ((0.1, Adjacency.ADD_REMOVE), (0.2, Adjacency.REPLACE_ONE))
    )
    assert twice.value == once.value > 0


def bound_of(kind: type[GuessedElements], workload: Workload, problem: Problem) -> bounds.Bound:
    """The bound from one kind of elements alone."""
    sets: list[GuessedElements] = [*separated_elements(workload, problem.metric.moment)]
    if kind is DistantElements:
        sets = [*distant_elements(workload, problem.metric)]
    plans = (plan for packed in sets for plan in plans_of_elements(packed, problem))
    return covering_bound(rungs_of_plans(plans, problem.alpha), problem)


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("metric", [*METRICS, bounds.WorstCase()])
@pytest.mark.parametrize("kind", KINDS)
def test_certificates_are_confirmed(name, metric, kind, tmp_path):
    bound = bound_of(kind, WORKLOADS[name](), Problem(0.3, 0.02, metric))
    assert bounds.check_certificate(saved(bound, tmp_path)).records == bound.value > 0


def higher(name: str) -> Callable[[dict[str, Any]], None]:
    """A change that makes a distance and the scale 1% larger and derives `last` from the scale."""

    def change(rung: dict[str, Any]) -> None:
        rung[name] *= 1.01
        rung["scale"] *= 1.01
        rung["last"] = math.floor(rung["scale"] / 0.02)

    return change


FORGED: dict[str, Callable[[dict[str, Any]], object]] = FORGED_RUNG | {
    "separation": lambda rung: rung.update(separation=rung["separation"] * 1.001),
    "rounded up": lambda rung: rung.update(separation=rung["separation"] * (1 + 1e-11)),
    "no separation": lambda rung: rung.update(separation=0.0),
    "fewer copies": lambda rung: rung.update(copies=rung["copies"] - 1),
    "element twice": lambda rung: rung["family"].update(elements=[1, *range(1, 16)]),
    "one element": lambda rung: rung["family"].update(elements=[3]),
    "workload": lambda rung: rung["family"]["workload"].update(N=17),
    "unknown type": lambda rung: rung["family"].update(type="near elements"),
}
FORGED_SEPARATED: dict[str, Callable[[dict[str, Any]], None]] = {
    "1% more": higher("spread"),
    "spread": lambda rung: rung.update(spread=rung["spread"] * 1.001),
    "centre": lambda rung: rung["family"].update(centre=[2.0] * 16),
    "short centre": lambda rung: rung["family"]["centre"].pop(),
    "another centre": lambda rung: rung["family"]["centre"].__setitem__(0, 0.9),
    "the other type": lambda rung: rung["family"].update(type="distant elements"),
}
FORGED_DISTANT: dict[str, Callable[[dict[str, Any]], None]] = {
    "1% more": higher("distance"),
    "1% farther apart": higher("separation"),
    "distance": lambda rung: rung.update(distance=rung["distance"] * 1.001),
    "distance rounded up": lambda rung: rung.update(distance=rung["distance"] * (1 + 1e-11)),
    "the other type": lambda rung: rung["family"].update(type="separated elements"),
}


@pytest.mark.parametrize(
    ("kind", "changes"),
    [(SeparatedElements, FORGED | FORGED_SEPARATED), (DistantElements, FORGED | FORGED_DISTANT)],
)
def test_forged_elements_are_rejected(kind, changes, tmp_path):
    bound = bound_of(kind, Histogram(16), Problem(0.1, 0.02, bounds.MeanL2()))
    forged_rungs_are_rejected(bound, tmp_path, changes)
