"""Cone noise: variances, special cases of known distribution, privacy, and maps of workloads."""

from __future__ import annotations

import math

import numpy as np
import pytest

from geomdp.bodies import Elliptope
from geomdp.mechanisms import Cone, Spectral, TightCone
from geomdp.noise import half_widths
from geomdp.noise.tails import simultaneous_half_widths
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import (
    Explicit,
    Histogram,
    LinearMap,
    Marginals,
    MarginalTables,
    Means,
    Parities,
    Prefixes,
    SecondMoment,
    Workload,
)
from tests.stats import ks_uniform, mean_agrees

PURE = PureDP(1.0)


@pytest.mark.parametrize(("d", "variance"), [(10, 2128.0), (2, 40.0), (100, 204_141_216 / 102)])
def test_elliptope_variance(d: int, variance: float) -> None:
    """The noise on a product of signs has variance 8 (m + 1)(m + 2) / ((p + 1) eps^2) (X-LKJ).

    For d = 100, the 2^100 elements are not listed.
    """
    mechanism = Cone(MarginalTables([2] * d, 2), n=5000, privacy=PURE)
    # A cell is a constant plus three uncorrelated sign products with factors 1/4 or -1/4.
    expected = math.sqrt(3 * variance) / 4 / 5000
    assert mechanism.predicted_rmse.value == pytest.approx(expected, rel=1e-12)
    p = d + 1
    m = p * (p - 1) // 2
    assert 8 * (m + 1) * (m + 2) / (p + 1) == pytest.approx(variance, rel=1e-12)


@pytest.mark.statistical
def test_covariance_of_draws() -> None:
    tables = (MarginalTables([2] * 3, 2), MarginalTables([3, 2], 2), MarginalTables([4, 3], 1))
    for workload in (*tables, Histogram(4), SecondMoment(2)):
        for adjacency in Adjacency:
            noise = Cone(workload, n=1, privacy=PURE, adjacency=adjacency).noise
            draws = noise.sample(np.random.default_rng(3), 10_000)
            mean_agrees(draws, np.zeros(noise.dimension))
            products = draws[:, :, None] * draws[:, None, :]
            mean_agrees(products, noise.covariance(), level=1e-8)
            assert noise.second_moment().value == pytest.approx(
                float(np.trace(noise.covariance())), rel=1e-12
            )


@pytest.mark.statistical
def test_simplex_without_centring_is_laplace() -> None:
    """Under add/remove, each count of a histogram gets Laplace noise of scale 1 / eps (X-CONE)."""
    mechanism = Cone(Histogram(5), n=1, privacy=PURE, adjacency=Adjacency.ADD_REMOVE)
    draws = mechanism.noise.sample(np.random.default_rng(2), 20_000)
    for column in draws.T:
        values = np.where(column < 0, np.exp(column) / 2, 1 - np.exp(-column) / 2)
        ks_uniform(values, level=1e-6 / 5)
    assert mechanism.noise.second_moment().value == pytest.approx(5 * 2.0, rel=1e-12)


@pytest.mark.parametrize("radius", [0.0, 0.01, 1.0, 30.0])
def test_shifts_by_answers_stay_in_the_cone_over_the_elliptope(radius: float) -> None:
    """A shift by (q, 1), where q are the sign products of a record, does not leave the cone."""
    rng = np.random.default_rng(0)
    body = Elliptope(4)
    signs = np.sign(rng.standard_normal((200, 4)))
    i, j = np.triu_indices(4, 1)
    answers = signs[:, i] * signs[:, j]
    moved = (radius * body.sample_uniform(200, rng) + answers) / (radius + 1)
    assert body.gauge(moved).max() <= 1 + 1e-12
    if radius == 0:  # the answers touch the boundary, so the body is not larger than necessary
        assert body.gauge(moved).min() >= 1 - 1e-12


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Cone, "products of two signs"),
        (TightCone, "linear in tables of two columns"),
        (Spectral, "pairwise sign products"),
    ],
)
@pytest.mark.parametrize("workload", [MarginalTables([2, 3, 2, 2], 3), Parities(4, 3)])
def test_tables_of_three_columns_are_refused(kind: type, words: str, workload: Workload) -> None:
    with pytest.raises(ValueError, match=words):
        kind(workload, n=5, privacy=PURE)


def with_constant(count: int, constant: float) -> Explicit:
    """The counts of `count` elements, and a query with the same answer for all records."""
    return Explicit(np.vstack([np.eye(count), np.full(count, constant)]))


TABLES = MarginalTables([2, 3], 1)


@pytest.mark.parametrize(
    ("workload", "query", "constant"),
    [
        *((with_constant(3, each), 3, each) for each in (1 / 3, -0.1, 1e3)),
        (Prefixes(4), 3, 1.0),
        (MarginalTables([1, 3], 1), 0, 1.0),
        (LinearMap(Means(2), np.vstack([np.eye(2), np.zeros(2)])), 2, 0.0),
        (LinearMap(Marginals(2, 1), np.vstack([np.eye(2), np.zeros(2)])), 2, 0.0),
        (LinearMap(TABLES, np.vstack([np.eye(5), [0.7, 0.7, 0, 0, 0]])), 5, 0.7),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_each_body_gives_a_constant_answer_within_its_interval(
    workload: Workload, query: int, constant: float
) -> None:
    mechanism = Cone(workload, n=777, privacy=PURE)
    records = workload.universe.sample(777, 0)
    for widths in (half_widths, simultaneous_half_widths):
        reach = widths(mechanism.noise) / 777 + mechanism.answer_rounding
        assert (reach >= 0).all()  # and not NaN
        assert reach[query] == 0
        for rng in (*range(9), *[None] * 3):
            assert mechanism.release(records, rng=rng).answers[query] == constant


def test_a_public_mean_is_not_public_under_add_remove() -> None:
    """The answer of every record is the same, but the number of records is not public."""
    mechanism = Cone(with_constant(3, 0.7), n=1000, privacy=PURE, adjacency=Adjacency.ADD_REMOVE)
    assert mechanism.noise.variances()[-1] > 0
    records = np.zeros(990, dtype=int)
    found = {mechanism.release(records, rng=seed).answers[-1] for seed in range(20)}
    assert len(found) == 20
