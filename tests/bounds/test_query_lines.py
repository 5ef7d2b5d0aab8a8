"""Bounds from lines along single queries: the bound on one line, choice of lines, certificates."""

import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from geomdp.advice.bracket import lower_bounds
from geomdp.bounds import (
    CertificateRejected,
    MeanL2,
    Problem,
    SideConditionError,
    WorstCase,
    check_certificate,
    query_lines_bound,
)
from geomdp.bounds.checker.lines import _least_tail, _length
from geomdp.bounds.checker.reading import Part, Work
from geomdp.bounds.lines import (
    _query_plans,
    found_lines,
    least_tails,
    smooth_priors,
)
from geomdp.workloads import (
    Explicit,
    Histogram,
    Marginals,
    Parities,
    Prefixes,
    RandomSigns,
    Ranges,
    Workload,
)
from tests.bounds.test_checker import FORGED_RUNG, forged_rungs_are_rejected, rejected, saved


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_the_least_tail_is_that_over_all_densities(epsilon):
    """`least_tails` agrees with brute force over the 2^7 extreme families of output densities.

    In these families, each of 7 steps changes the density by a factor of e^epsilon or e^-epsilon.
    """
    rng, steps = np.random.default_rng(0), 7
    for prior in (*rng.dirichlet(np.ones(steps + 1), 3), *smooth_priors(steps)):
        least = np.ones(steps)
        for signs in itertools.product((-1, 1), repeat=steps):
            masses = prior * np.exp(epsilon * np.concatenate([[0], np.cumsum(signs)]))
            masses /= masses.sum()
            for width in range(1, steps + 1):
                inside = np.convolve(masses, np.ones(width), mode="valid").max()
                least[width - 1] = min(least[width - 1], 1 - inside)
        found = least_tails(prior, epsilon)
        np.testing.assert_allclose(found, least, rtol=1e-9, atol=1e-12)
        checked = [_least_tail(prior, epsilon, width) for width in range(1, steps + 1)]
        np.testing.assert_allclose(checked, found, rtol=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.25, 1.0])
def test_no_independent_noise_is_better_and_none_is_needed(epsilon):
    """The bound C is below the mean largest error of discrete Laplace noise on 63 counts.

    It is above 0.7 times this mean.
    """
    plans = _query_plans(Prefixes(64), epsilon)
    rng, shape = np.random.default_rng(1), (20_000, 63)
    parts = rng.geometric(-math.expm1(-epsilon), (2, *shape))
    largest = np.abs(parts[0] - parts[1]).max(axis=1)
    assert plans[-1].scale < largest.mean() - 6 * largest.std() / math.sqrt(len(largest))
    assert plans[-1].scale > 0.7 * largest.mean()


WORKLOADS: dict[str, tuple[Callable[[], Workload], int]] = {
    "histogram": (lambda: Histogram(20), 19),
    "prefixes": (lambda: Prefixes(20), 19),
    "ranges": (lambda: Ranges(8), 7),
    "marginals": (lambda: Marginals(6, 2), 15),
    "parities": (lambda: Parities(6, 2), 5),
    "signs": (lambda: RandomSigns(12, 60, rng=0), 4),
    "real answers": (lambda: Explicit(np.random.default_rng(0).random((5, 9))), 1),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_lines_are_found(name):
    """Each pair differs in its own query and agrees in the queries of earlier pairs."""
    make, least = WORKLOADS[name]
    lines = found_lines(make())
    assert lines is not None
    assert len(lines.pairs) >= least
    for found in (lines, lines.last(1)):
        changes = found.differences[:, found.queries]
        assert (np.diag(changes) != 0).all()
        assert not np.tril(changes, -1).any()
    assert len(lines.last(1).pairs) == 1


def test_queries_with_a_tiny_range_have_no_lines():
    """Half of the range 5e-324 is rounded to 0.

    So even a pair of elements with equal answers would differ by half of the range or more.
    """
    tiny, whole = np.array([0.0, 5e-324, 0.0]), np.array([0.0, 1.0, 0.0])
    assert found_lines(Explicit(np.array([tiny]))) is None
    lines = found_lines(Explicit(np.array([tiny, whole])))
    assert lines is not None
    assert lines.queries.tolist() == [1]
    assert query_lines_bound(Explicit(np.array([tiny, whole])), epsilon=1.0, alpha=0.01).value > 0


def test_lines_take_part_in_brackets():
    (best, *_), _ = lower_bounds(Prefixes(32), Problem(1.0, 0.002, WorstCase()), 0)
    assert best.certificate.rungs[-1].kind == "query lines"
    _, refused = lower_bounds(Prefixes(8), Problem(1.0, 0.01, MeanL2()), 0)
    assert "largest error" in refused["lines along single queries"]


def test_a_large_error_is_not_excluded():
    with pytest.raises(SideConditionError, match="single queries"):
        query_lines_bound(Prefixes(16), epsilon=1.0, alpha=0.5)


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0])
def test_certificates_are_confirmed(name, epsilon, tmp_path):
    workload = WORKLOADS[name][0]()
    bound = query_lines_bound(workload, epsilon=epsilon, alpha=0.002)
    assert check_certificate(saved(bound, tmp_path)).records == bound.value > 0


def higher(rung: dict[str, Any]) -> None:
    """Raise the scale by 1%, and `last` to the number of records that follows from this scale."""
    rung["scale"] *= 1.01
    rung["last"] = math.floor(rung["scale"] / ALPHA)


def doubled(rung: dict[str, Any]) -> None:
    """List each line twice, as if its query had two independent errors."""
    for name in ("pairs", "queries"):
        rung["family"][name] = rung["family"][name] * 2
    rung["first"] *= 2


def fewer_steps(rung: dict[str, Any]) -> None:
    rung["prior"] = rung["prior"][:-1]
    rung["steps"] -= 1
    rung["first"] = rung["copies"] * rung["steps"] * len(rung["family"]["pairs"])


ALPHA = 0.004
FORGED: dict[str, Callable[[dict[str, Any]], object]] = FORGED_RUNG | {
    "1% more": higher,
    "every line twice": doubled,
    "fewer steps": fewer_steps,
    "scale rounded up": lambda rung: rung.update(scale=rung["scale"] * (1 + 2e-10)),
    "negative scale": lambda rung: rung.update(scale=-rung["scale"]),
    "steps": lambda rung: rung.update(steps=rung["steps"] + 1),
    "negative prior": lambda rung: rung["prior"].__setitem__(0, -0.1),
    "another prior": lambda rung: rung["prior"].__setitem__(0, 0.9),
    "pair of one element": lambda rung: rung["family"]["pairs"].__setitem__(0, [0, 0]),
    "row": lambda rung: rung["family"]["pairs"].__setitem__(0, [0, 99]),
    "query": lambda rung: rung["family"]["queries"].__setitem__(0, 16),
    "query of no pair": lambda rung: rung["family"]["queries"].pop(),
    "workload": lambda rung: rung["family"]["workload"].update(N=17),
}


def test_forged_lines_are_rejected(tmp_path):
    bound = query_lines_bound(Ranges(16), epsilon=1.0, alpha=ALPHA)
    forged_rungs_are_rejected(bound, tmp_path, FORGED)


def test_priors_below_the_normal_numbers_prove_nothing(tmp_path):
    """In float64, e^-0.6931 times the least number is the least number, as if epsilon were 0.

    With this prior, the scale of one step would be computed as 0.25. The true scale is
    1 / (2 (1 + e^0.6931)) = 0.167.
    """
    bound = query_lines_bound(Explicit(np.array([[0.0, 1.0]])), epsilon=0.6931, alpha=0.01)
    path = saved(bound, tmp_path)
    document = json.loads(path.read_text())
    (rung, *_) = document["rungs"]
    assert (rung["steps"], rung["copies"], rung["first"]) == (1, 1, 1)
    assert rung["scale"] < 0.167
    rung.update(prior=[5e-324, 5e-324], scale=0.25 * (1 - 2e-11), last=24)
    document.update(rungs=[rung], lower_bound=24)
    rejected(path, document, "the sum of the prior is")


def test_the_checker_knows_the_order_of_the_lines():
    """The pair (0, 2) changes the queries 0 and 1, so its line cannot follow a line for query 1."""
    answers = Prefixes(4).evaluate(np.arange(4))
    pairs, queries = np.array([[0, 2], [1, 2]]), np.array([0, 1])
    part = Part({"pairs": pairs, "queries": queries}, Work(1 << 20))
    assert _length(part, answers) == (1.0, 2)
    part = Part({"pairs": pairs[::-1], "queries": queries[::-1]}, Work(1 << 20))
    with pytest.raises(CertificateRejected, match="line 1 changes the query of an earlier line"):
        _length(part, answers)


def test_lines_of_queries_bound_no_other_error(tmp_path):
    bound = query_lines_bound(Prefixes(16), epsilon=1.0, alpha=ALPHA)
    path = saved(bound, tmp_path)
    document = json.loads(path.read_text())
    document["metric"] = MeanL2.name
    rejected(path, document)
