"""Noise of the cut moment body: its law in one dimension, its errors, and the limit of the cut."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from geomdp.bodies import Simplex, TableMoments
from geomdp.mechanisms import Hierarchical, Matrix, TightCone
from geomdp.mechanisms.additive_noise.cone import KEPT, tight_table_moments
from geomdp.noise import ConeNoise, PairedNoise, differences
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import Marginals, MarginalTables
from geomdp.workloads.structure import table_contrasts
from tests.stats import ks_uniform, mean_agrees

PURE = PureDP(1.0)


@pytest.mark.statistical
def test_noise_on_one_column_of_two_levels_is_laplace_noise() -> None:
    """R (U_1 - U_2), with R ~ Gamma(3, 1 / epsilon), has density epsilon / 2 e^(-epsilon |z|)."""
    noise = TightCone(MarginalTables([2], 1), n=1, privacy=PureDP(0.7)).noise
    draws = noise.sample(np.random.default_rng(0), 10_000)
    ks_uniform(scipy.stats.laplace.cdf(draws[:, 0], scale=1 / 0.7))
    np.testing.assert_allclose(draws.sum(axis=1), 0, atol=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("cut", [False, True])
def test_covariance_of_draws(adjacency: Adjacency, cut: bool) -> None:
    workload = MarginalTables([3, 2, 2], 2)
    noise = TightCone(workload, n=1, privacy=PURE, adjacency=adjacency).noise
    if not cut:
        contrasts = table_contrasts(workload)
        body = TableMoments(contrasts.levels)
        noise = (
            PairedNoise(body, 1.0, contrasts.matrix)
            if adjacency is Adjacency.REPLACE_ONE
            else ConeNoise(body, 1.0, np.zeros(9), contrasts.matrix, contrasts.constant)
        )
    draws = noise.sample(np.random.default_rng(1), 10_000)
    mean_agrees(draws, np.zeros(noise.dimension))
    moment = noise.second_moment()
    assert (moment.stderr > 0) == cut
    # `moment` is an estimate if `cut`. Its standard error is below the deviation that is allowed.
    mean_agrees((draws**2).sum(axis=1), moment.value, level=1e-8)
    np.testing.assert_allclose(np.trace(noise.covariance()), moment.value, rtol=1e-9)
    if not cut:
        mean_agrees(draws[:, :, None] * draws[:, None, :], noise.covariance(), level=1e-8)


def test_fewer_draws_than_dimensions_leave_no_direction_without_noise(monkeypatch) -> None:
    """A fit would trust answers in a direction of estimated variance 0, and have large errors."""
    monkeypatch.setattr(differences, "DRAWS", 32)
    monkeypatch.setattr(differences, "_uniform_tables", differences._uniform)
    contrasts = table_contrasts(MarginalTables([8, 8], 2))
    body = tight_table_moments(contrasts.levels)
    assert body.cut
    assert body.dimension == 63
    noise = PairedNoise(body, 1.0, contrasts.matrix)
    values = np.linalg.eigvalsh(noise._scatter())
    assert values[0] > values[-1] / 20


@pytest.mark.parametrize("kind", [TightCone, Hierarchical, Matrix])
def test_another_n_and_epsilon_draw_and_descend_no_more(kind, monkeypatch) -> None:
    workload = MarginalTables([3, 2, 3, 2], 2)
    first = kind(workload, n=500, privacy=PURE).predicted_rmse

    def fail(*_, **__):
        raise AssertionError("computed again")

    monkeypatch.setattr(TableMoments, "sample_uniform", fail)
    monkeypatch.setattr("scipy.optimize.minimize", fail)
    other = kind(workload, n=700, privacy=PureDP(0.3)).predicted_rmse
    np.testing.assert_allclose(other.value * 700 * 0.3, first.value * 500, rtol=1e-12)


@pytest.mark.parametrize("levels", [(21, 21, 21), (33, 33), (2,) * 60])
def test_no_cut_where_a_draw_would_take_long(levels) -> None:
    assert not tight_table_moments(levels).cut


@pytest.mark.parametrize("levels", [(2, 2, 2, 2), (3, 2, 4), (2, 5)])
def test_every_pair_of_records_is_covered(levels) -> None:
    """The cut body K contains the points of all records, so K x K contains all pairs of points.

    The privacy proof also needs a convex K: (r u + q) / (r + 1) must be in K for all u, q in K.
    """
    workload = MarginalTables(levels, 2)
    contrasts = table_contrasts(workload)
    body = tight_table_moments(contrasts.levels)
    assert body.cut
    # The map from points to answers is injective, so the answers determine the points of records.
    answers = workload.evaluate(workload.universe.elements()) - contrasts.constant
    records = np.linalg.lstsq(contrasts.matrix.toarray(), answers.T, rcond=None)[0].T
    assert body.contains(records, tolerance=1e-12).all()
    # Every point of a record is on the boundary of the body.
    assert not body.contains(1.001 * records).any()
    rng = np.random.default_rng(2)
    points = body.sample_uniform(300, rng)
    for radius in (0.01, 1.0, 30.0):
        shifted = (radius * points + records[rng.integers(len(records), size=300)]) / (radius + 1)
        assert body.contains(shifted, tolerance=1e-12).all()


def test_error_of_the_accuracy_table() -> None:
    """The optimised strategy has the error 0.005904 there."""
    workload = MarginalTables([2] * 10, 2)
    found = TightCone(workload, n=5000, privacy=PURE).predicted_rmse
    assert found.value == pytest.approx(0.003467, abs=6 * found.stderr)
    assert found.stderr < 0.005 * found.value
    strategy = Matrix(workload, n=5000, privacy=PURE).predicted_rmse.value
    assert strategy == pytest.approx(0.005904, rel=0.01)


@pytest.mark.statistical
def test_share_that_is_kept() -> None:
    """The limit leaves about `KEPT` of the volume, or is 0 if more of it violates no inequality."""
    body = tight_table_moments((2, 3, 4, 5))
    assert 0 < body.violation < 1
    points = TableMoments(body.levels).sample_uniform(20_000, np.random.default_rng(9))
    kept = (body.violations(points) <= body.violation).mean()
    # About 20 of 2048 pilot draws lie below the limit, so `kept` has a relative standard error of
    # 0.22.
    assert KEPT / 3 < kept < 3 * KEPT
    assert tight_table_moments((2, 2, 2)).violation == 0


def test_maps_of_another_body_are_refused() -> None:
    matrix = table_contrasts(Marginals(2, 2)).matrix
    with pytest.raises(ValueError, match="full-dimensional"):
        PairedNoise(Simplex(np.eye(2)), 1.0, matrix)
    with pytest.raises(ValueError, match="must have 1 columns"):
        PairedNoise(TableMoments([2]), 1.0, matrix)
