"""Projections of answers whose sensitivity polytope is out of reach."""

from __future__ import annotations

import numpy as np
import pytest

from geomdp.bodies import MappedElliptope
from geomdp.geometry.projection.projector import Projector
from geomdp.mechanisms import JL, Cone, Laplace, Projected, Shrunk
from geomdp.mechanisms.post_processed.support_bound import _upper_limit
from geomdp.privacy import PureDP
from geomdp.workloads import MarginalTables, Prefixes


def test_many_columns_are_projected_on_the_relaxation() -> None:
    """Beyond 24 columns only: projecting never increases the distance to the true answers."""
    few = Projected(Cone(MarginalTables([2] * 4, 2), n=10, privacy=PureDP(1.0)))
    assert not isinstance(few.body, MappedElliptope)
    workload = MarginalTables([2] * 25, 2)
    inner = Cone(workload, n=50, privacy=PureDP(1.0))
    mechanism = Projected(inner)
    assert isinstance(mechanism.body, MappedElliptope)
    assert mechanism.predicted_rmse.value < inner.predicted_rmse.value
    records = workload.universe.sample(50, np.random.default_rng(0))
    truth = workload.answers(records)
    for seed in range(3):
        before = np.linalg.norm(inner.release(records, rng=seed).answers - truth)
        assert np.linalg.norm(mechanism.release(records, rng=seed).answers - truth) < before


def test_diameter_of_a_relaxation_holds_all_records_and_is_less_than_twice_their_norm() -> None:
    workload = MarginalTables([2] * 25, 2)
    mechanism = Projected(Cone(workload, n=50, privacy=PureDP(1.0)))
    answers = workload.evaluate(workload.universe.sample(20, np.random.default_rng(0)))
    apart = np.linalg.norm(answers[:, None] - answers[None], axis=2).max()
    # The largest distance of two records is sqrt(2 C(25, 2)); of the relaxation at most sqrt(3).
    assert apart <= workload.l2_diameter() <= mechanism.diameter
    np.testing.assert_allclose(mechanism.diameter, 2 * np.sqrt(300 * 3 / 4), rtol=1e-12)


@pytest.mark.parametrize(
    "post_process", [Projected, Shrunk, lambda inner: JL(inner, 4, rng=0)], ids=["P", "S", "JL"]
)
def test_stated_bounds_hold_the_gap_at_which_the_search_stops(post_process, monkeypatch):
    """A gap of eta allows ||p - Q(X)||^2 = ||Z||^2 + 2 eta, so the bound must be at least this.

    The noise is so small that the bound by ||Z||^2 is below the bound by E h_K(Z).
    """
    mechanism = post_process(Laplace(Prefixes(16), n=16, privacy=PureDP(1e6)))
    stops = []
    search = Projector._searched

    def recorded(self, columns, known, target, tol, warm_start):
        stops.append(tol * columns.scale**2)
        return search(self, columns, known, target, tol, warm_start)

    monkeypatch.setattr(Projector, "_searched", recorded)
    mechanism.release(np.arange(16), rng=0)
    (gap,) = stops
    shrinking = getattr(mechanism, "factor", 1.0)
    stated = mechanism.predicted_rmse.value * 4 - getattr(mechanism, "mean_distortion", 0.0)
    noise = mechanism.inner.predicted_rmse.value**2 * mechanism.inner.workload.n_queries
    assert stated**2 >= (shrinking * noise + 2 * gap) * (1 - 1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("draws", "level"), [(32, 6e-4), (105, 1.3e-4), (512, 1.7e-5), (2048, 4.7e-6)]
)
def test_the_levels_of_limits_for_skew_draws_are_those_stated(draws: int, level: float) -> None:
    """How often the limit for exponential variables of mean 1 is below 1, by importance sampling.

    Variables of rate 1 + tilt have a small mean, so most of their limits are below 1.
    """
    tilt, sets = 4.6 / np.sqrt(draws), 4000
    values = np.random.default_rng(7).exponential(1 / (1 + tilt), (sets, draws))
    weights = np.exp(tilt * values.sum(axis=1) - draws * np.log1p(tilt))
    below = np.array([_upper_limit(row) < 1 for row in values])
    found = weights * below
    assert abs(found.mean() - level) < 0.1 * level + 6 * found.std() / np.sqrt(sets)
    assert found.mean() > 2e-6
