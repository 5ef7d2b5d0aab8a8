"""Local search and the bounds on widths it gives with a relaxation."""

from __future__ import annotations

import numpy as np
import pytest

from geomdp.bodies import Ball, moment_relaxation, sensitivity_polytope
from geomdp.geometry import gaussian_width, gaussian_width_bounds
from geomdp.geometry.width.coordinate_ascent import local_maxima
from geomdp.workloads import Marginals, MarginalTables, Parities, Prefixes
from tests.stats import LEVEL

WORKLOADS = [Marginals(6, 2), Parities(7, 3), MarginalTables([2, 3, 4], 2)]


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_found_answers_are_locally_best_answers(workload):
    rng, K = np.random.default_rng(0), sensitivity_polytope(workload)
    directions = rng.standard_normal((12, workload.n_queries))
    found = local_maxima(workload, directions, rng)
    values, best = np.einsum("bm,bm->b", directions, found), K.support(directions)
    assert (values <= best * (1 + 1e-12)).all()
    # Small universes: eight starts find the optimum of most directions.
    assert np.isclose(values, best).mean() >= 0.5
    elements = workload.universe.elements_at(np.arange(workload.universe.size))
    answers = workload.evaluate(elements)
    for value, direction, answer in zip(values, directions, found, strict=True):
        mine = elements[np.flatnonzero(np.abs(answers - answer).max(axis=1) == 0)]
        assert len(mine) > 0
        for element in mine[:1]:
            near = elements[(elements != element).sum(axis=1) == 1]
            assert (workload.evaluate(near) @ direction <= value + 1e-9).all()


def test_ties_end():
    workload = Parities(5, 2)
    found = local_maxima(workload, np.zeros((1, 10)), np.random.default_rng(0))
    assert set(np.unique(found)) <= {-1.0, 1.0}


@pytest.mark.statistical
@pytest.mark.parametrize("workload", [Marginals(7, 2), Parities(6, 2)], ids=str)
def test_bounds_enclose_the_width(workload):
    bounds = gaussian_width_bounds(
        workload, moment_relaxation(workload), rng=1, samples=64, level=LEVEL
    )
    exact = gaussian_width(sensitivity_polytope(workload), rng=2, samples=20_000, level=LEVEL)
    low, high = bounds.interval
    assert low <= exact.interval[1]
    assert exact.interval[0] <= high
    # Means: found at most the width, relaxed at least, up to five standard errors.
    spread = 5 * np.hypot(bounds.found.stderr, exact.stderr)
    assert bounds.found.value <= exact.value + spread
    assert bounds.found.value >= 0.9 * exact.value - spread
    assert bounds.relaxed.value >= exact.value - 5 * np.hypot(bounds.relaxed.stderr, exact.stderr)


def test_universe_too_large_to_list():
    workload = Marginals(40, 2)
    bounds = gaussian_width_bounds(workload, moment_relaxation(workload), rng=3, samples=4)
    assert bounds.found.value < bounds.relaxed.value < 1.4 * bounds.found.value


def test_bad_input():
    with pytest.raises(ValueError, match="BooleanCube"):
        gaussian_width_bounds(Prefixes(4), Ball(4), rng=0)
    with pytest.raises(ValueError, match="dimension 10"):
        gaussian_width_bounds(Parities(5, 2), Ball(4), rng=0)
    with pytest.raises(ValueError, match="samples"):
        gaussian_width_bounds(Parities(5, 2), Ball(10), rng=0, samples=1)
