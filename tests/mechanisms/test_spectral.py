"""Spectral noise, whose draws take too long for the tests of `test_contracts`."""

from __future__ import annotations

import numpy as np
import pytest

from geomdp._numerics.linalg import svec
from geomdp.mechanisms import Cone, PredictionKind, Spectral
from geomdp.mechanisms.additive_noise.cone import _on_matrices
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import Marginals, MarginalTables, Parities, explicit_answers
from geomdp.workloads.structure import sign_products
from tests.mechanisms.test_exact_table import moves
from tests.stats import mean_agrees

PURE = PureDP(1.0)
REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
WORKLOADS = [MarginalTables([2, 2, 2], 2), Marginals(3, 2), Parities(4, 2), Marginals(3, 1)]


def lifted(workload):
    """For every element, svec(s s^T) of its sign vector s, and its answers."""
    products = sign_products(workload)
    bits = workload.universe.elements()
    signs = 2.0 * bits - 1 if isinstance(workload, Marginals) else 1.0 - 2.0 * bits
    if products.order > signs.shape[1]:
        signs = np.column_stack([np.ones(len(signs)), signs])
    return svec(signs[:, :, None] * signs[:, None, :]), explicit_answers(workload)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("workload", WORKLOADS, ids=repr)
def test_differences_lie_in_the_body_and_map_to_those_of_the_answers(workload, adjacency):
    """These two facts and the density of K-norm noise prove the privacy claim (JL-L14)."""
    matrices, answers = lifted(workload)
    (part,) = Spectral(workload, n=1, privacy=PURE, adjacency=adjacency).noise.parts
    moved = moves(matrices, adjacency)
    gauges = part.noise.body.gauge(moved)
    assert gauges.max() <= 1 + 1e-12
    if adjacency is ADD:  # no smaller multiple of the body suffices
        assert gauges.min() >= 1 - 1e-12
    matrix = _on_matrices(sign_products(workload), adjacency)
    np.testing.assert_allclose((matrix @ moved.T).T, moves(answers, adjacency), atol=1e-12)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("workload", WORKLOADS, ids=repr)
def test_closed_energy_is_the_trace_of_the_covariance(workload, adjacency):
    noise = Spectral(workload, n=1, privacy=PureDP(0.7), adjacency=adjacency).noise
    trace = float(np.trace(noise.covariance()))
    assert noise.second_moment().value == pytest.approx(trace, rel=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("adjacency", Adjacency)
def test_errors_of_draws_are_as_predicted(adjacency):
    workload = WORKLOADS[0]
    mechanism = Spectral(workload, n=10, privacy=PURE, adjacency=adjacency)
    assert mechanism.predicted_rmse.kind is PredictionKind.EXACT
    draws = mechanism.noise.sample(np.random.default_rng(0), 1000) / 10
    mean_agrees((draws**2).mean(axis=1), mechanism.predicted_rmse.value**2)


def test_many_columns_err_less_than_the_cone():
    """The ratio of the errors is above 1 for 10 columns, and below 1 for 21 columns."""
    for d, ratio in ((10, 1.0557), (21, 0.9883)):
        workload = MarginalTables([2] * d, 2)
        errors = [
            kind(workload, n=9, privacy=PURE).predicted_rmse.value for kind in (Spectral, Cone)
        ]
        assert errors[0] / errors[1] == pytest.approx(ratio, abs=1e-4)


def test_releases_and_claims():
    workload = MarginalTables([2, 2, 2], 2)
    records = workload.universe.sample(30, 0)
    mechanism = Spectral(workload, n=30, privacy=PURE)
    assert str(mechanism.guarantee).startswith("1-DP, replace-one")
    answers = mechanism.release(records, rng=1).answers
    np.testing.assert_allclose(answers.reshape(3, 4).sum(axis=1), 1, rtol=1e-12)
