"""Cone noise: variances, special cases of known distribution, privacy, and maps of workloads."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from geomdp.bodies import Elliptope
from geomdp.mechanisms import Cone
from geomdp.mechanisms.additive_noise import certify, sums
from geomdp.mechanisms.additive_noise.base import proved
from geomdp.mechanisms.additive_noise.sums import Change, RealRecords
from geomdp.noise import half_widths
from geomdp.noise.tails import simultaneous_half_widths
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import (
    BoxSecondMoment,
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
    explicit_answers,
)
from geomdp.workloads.structure import sign_products
from tests.stats import ks_uniform, mean_agrees

PURE = PureDP(1.0)


@pytest.mark.parametrize(("d", "variance"), [(10, 2128.0), (2, 40.0)])
def test_elliptope_variance(d: int, variance: float) -> None:
    """The noise on a product of signs has variance 8 (m + 1)(m + 2) / ((p + 1) eps^2) (X-LKJ)."""
    mechanism = Cone(MarginalTables([2] * d, 2), n=5000, privacy=PURE)
    # A cell is a constant plus three uncorrelated sign products with factors 1/4 or -1/4.
    expected = math.sqrt(3 * variance) / 4 / 5000
    assert mechanism.predicted_rmse.value == pytest.approx(expected, rel=1e-12)
    p = d + 1
    m = p * (p - 1) // 2
    assert 8 * (m + 1) * (m + 2) / (p + 1) == pytest.approx(variance, rel=1e-12)


def test_categorical_cell_error() -> None:
    """The error of 2-way tables of categorical columns, from the distribution of `TableMoments`.

    Column i has l_i levels and P is the sum of all l_i - 1. The shares m_i are Dirichlet with all
    parameters a_i = (P - l_i + 1) / 2 + 1, so f_i = E ||m_i||^2 = (a_i + 1) / (l_i a_i + 1). The
    table M_ij of columns i and j has E ||M_ij - 1 / (l_i l_j)||^2
    = f_i f_j - 1 / (l_i l_j) + (1 - f_i)(1 - f_j) / (P + 1).
    """
    levels = [2, 3, 4, 5, 6, 2, 3, 4]
    mechanism = Cone(MarginalTables(levels, 2), n=5000, privacy=PURE)
    P, r = 21, 207
    assert mechanism.noise.effective_dimension == r
    f = {
        count: ((P - count + 1) / 2 + 2) / (count * ((P - count + 1) / 2 + 1) + 1)
        for count in levels
    }
    pairs = list(itertools.combinations(levels, 2))
    energy = sum(f[a] * f[b] - 1 / (a * b) + (1 - f[a]) * (1 - f[b]) / (P + 1) for a, b in pairs)
    mean = 8 * (r + 1) * (r + 2) * energy / sum(a * b for a, b in pairs)
    assert mechanism.predicted_rmse.value == pytest.approx(math.sqrt(mean) / 5000, rel=1e-12)
    assert mechanism.predicted_rmse.value == pytest.approx(0.00591, abs=1e-5)


@pytest.mark.statistical
def test_covariance_of_draws() -> None:
    tables = (MarginalTables([2] * 3, 2), MarginalTables([3, 2], 2), MarginalTables([4, 3], 1))
    for workload in (*tables, Histogram(4), SecondMoment(2)):
        for adjacency in Adjacency:
            noise = Cone(workload, n=1, privacy=PURE, adjacency=adjacency).noise
            draws = noise.sample(np.random.default_rng(3), 40_000)
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


@pytest.mark.parametrize(
    "workload",
    [
        MarginalTables([2] * 4, 2),
        MarginalTables([2] * 4, 1),
        MarginalTables([2], 1),
        Marginals(4, 2),
        Marginals(4, 1),
        Parities(4, 2),
    ],
)
def test_answers_are_the_stated_function_of_sign_products(workload) -> None:
    products = sign_products(workload)
    assert products is not None
    bits = workload.universe.elements()
    signs = 2 * bits - 1 if isinstance(workload, Marginals) else 1 - 2 * bits
    if products.order > signs.shape[1]:
        signs = np.column_stack([np.ones(len(signs)), signs])
    i, j = np.triu_indices(products.order, 1)
    mapped = (products.matrix @ (signs[:, i] * signs[:, j]).T).T
    rest = explicit_answers(workload) - mapped
    np.testing.assert_allclose(rest, np.broadcast_to(rest[0], rest.shape), atol=1e-15)
    gauges = Elliptope(products.order).gauge((signs[:, i] * signs[:, j]).astype(float))
    assert (gauges <= 1 + 1e-12).all()


@pytest.mark.parametrize(
    "workload", [MarginalTables([2, 3, 2, 2], 3), MarginalTables([2] * 4, 3), Parities(4, 3)]
)
def test_other_workloads_are_refused(workload) -> None:
    with pytest.raises(ValueError, match="products of two signs"):
        Cone(workload, n=5, privacy=PURE)


@pytest.mark.parametrize("radius", [0.0, 0.01, 1.0, 30.0])
def test_shifts_by_answers_stay_in_the_cone_over_the_elliptope(radius: float) -> None:
    """A shift by (q, 1), where q are the sign products of a record, does not leave the cone.

    The vector r (U, 1) has density rate^(m+1) e^(-rate t) / (m! vol) at points (t u, t) of the
    cone. So a shift that stays in the cone lowers the log density by exactly the rate, because it
    raises t by 1.
    """
    rng = np.random.default_rng(0)
    body = Elliptope(4)
    signs = np.sign(rng.standard_normal((200, 4)))
    i, j = np.triu_indices(4, 1)
    answers = signs[:, i] * signs[:, j]
    moved = (radius * body.sample_uniform(200, rng) + answers) / (radius + 1)
    assert body.gauge(moved).max() <= 1 + 1e-12
    if radius == 0:  # the answers touch the boundary, so the body is not larger than necessary
        assert body.gauge(moved).min() >= 1 - 1e-12


@pytest.mark.statistical
def test_many_attributes() -> None:
    """For d = 200, the 2^200 elements are not listed, and the error is as predicted."""
    d, n = 200, 1000
    workload = MarginalTables([2] * d, 2)
    mechanism = Cone(workload, n=n, privacy=PURE)
    records = np.random.default_rng(1).integers(2, size=(n, d))
    release = mechanism.release(records, rng=4)
    measured = float(np.sqrt(np.mean((release.answers - workload.answers(records)) ** 2)))
    # A radius is Gamma(m + 1) with m = 20100, so three of its standard deviations are 2%. For given
    # radii, the mean over all pairs of columns varies less.
    assert measured == pytest.approx(release.predicted_rmse.value, rel=0.1)


@pytest.mark.statistical
def test_add_remove_hides_the_number_of_records() -> None:
    """The totals of all tables get the same noise, which is the noise on the number of records."""
    workload = MarginalTables([2, 2, 2], 2)
    setting = {"n": 20, "privacy": PureDP(1.0), "adjacency": Adjacency.ADD_REMOVE}
    noise = Cone(workload, **setting).noise
    draws = noise.sample(np.random.default_rng(0), 20_000)
    totals = draws.reshape(len(draws), -1, 4).sum(axis=2)
    # The total of a table changes by 1 per record. Its noise is r_1 - r_2 with r_i ~ Gamma(7, 1),
    # because the elliptope has dimension 6.
    np.testing.assert_allclose(totals, totals[:, :1] * np.ones(3), rtol=1e-9)
    mean_agrees(totals[:, 0] ** 2, 2 * (6 + 1))
    mean_agrees(draws[:, :, None] * draws[:, None, :], noise.covariance())
    np.testing.assert_allclose(np.trace(noise.covariance()), noise.second_moment().value)
    # Under replace-one the number of records is public, and the noise on every table adds up to 0.
    public = Cone(workload, n=20, privacy=PureDP(1.0)).noise.sample(np.random.default_rng(0), 5)
    np.testing.assert_allclose(public.reshape(5, -1, 4).sum(axis=2), 0, atol=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("adjacency", Adjacency)
def test_exact_noise_of_second_moments_has_the_rate_and_centre_of_the_mechanism(
    adjacency: Adjacency, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The centroid of {M psd, tr M <= 1} is c I, with c = r / (d (r + 1)) = 2 / 7 for r = 6."""
    mechanism = Cone(SecondMoment(3), n=10, privacy=PureDP(epsilon), adjacency=adjacency)
    given: list[tuple[int, float, float]] = []
    made: list[Any] = []
    entries = certify.wishart_difference

    def recorded(d: int, rate: float, centre: float) -> Any:
        given.append((d, rate, centre))
        made.append(entries(d, rate, centre))
        return made[-1]

    monkeypatch.setattr(certify, "wishart_difference", recorded)
    vars(mechanism).pop("exact_path")
    path = mechanism.exact_path
    assert path is not None
    rate, centre = (epsilon / 2, 2 / 7) if adjacency is Adjacency.REPLACE_ONE else (epsilon, 0.0)
    assert given == [(3, rate, pytest.approx(centre, rel=1e-15))]
    assert path.slack == 0
    assert [part.balls for part in path.rounded.parts] == made


@pytest.mark.parametrize("adjacency", Adjacency)
def test_exact_noise_of_second_moments_in_a_cube_is_the_noise_of_the_mechanism(
    adjacency: Adjacency, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = Cone(BoxSecondMoment(2), n=10, privacy=PURE, adjacency=adjacency)
    given: list[object] = []
    vector = sums.exact_numbers
    monkeypatch.setattr(sums, "exact_numbers", lambda noise: given.append(noise) or vector(noise))
    vars(mechanism).pop("exact_path")
    path = mechanism.exact_path
    assert path is not None
    assert given == [mechanism.noise]
    assert path.slack == 0


def test_cones_over_other_bodies_have_no_noise_on_real_records() -> None:
    """The map of an elliptope or a box to the answers would have to be exact, too."""
    for workload in (Marginals(3, 2), Histogram(3), Prefixes(4)):
        cone = Cone(workload, n=10, privacy=PURE)
        change = Change(SecondMoment(3), Adjacency.REPLACE_ONE)
        assert (
            proved(cone.noise, RealRecords(SecondMoment(3)), change, cone.law, cone.origin) is None
        )


def with_constant(count: int, constant: float) -> Explicit:
    """The counts of `count` elements, and a query with the same answer for all records."""
    return Explicit(np.vstack([np.eye(count), np.full(count, constant)]))


TABLES = MarginalTables([2, 3], 1)


@pytest.mark.parametrize(
    ("workload", "query", "constant"),
    [
        *((with_constant(3, each), 3, each) for each in (1.0, 0.7, 1 / 3, -0.1, 1e3)),
        (Prefixes(4), 3, 1.0),
        (MarginalTables([1, 3], 1), 0, 1.0),
        (LinearMap(Means(2), np.vstack([np.eye(2), np.zeros(2)])), 2, 0.0),
        (LinearMap(SecondMoment(2), np.vstack([np.eye(3), np.zeros(3)])), 3, 0.0),
        (LinearMap(Marginals(2, 1), np.vstack([np.eye(2), np.zeros(2)])), 2, 0.0),
        (LinearMap(TABLES, np.vstack([np.eye(5), [0.7, 0.7, 0, 0, 0]])), 5, 0.7),
        (LinearMap(TABLES, np.vstack([np.eye(5), [0.7, 0.7, -0.7, -0.7, -0.7]])), 5, 0.0),
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
        for rng in (*range(20), *[None] * 5):
            assert mechanism.release(records, rng=rng).answers[query] == constant


def test_a_public_mean_is_not_public_under_add_remove() -> None:
    """The answer of every record is the same, but the number of records is not public."""
    mechanism = Cone(with_constant(3, 0.7), n=1000, privacy=PURE, adjacency=Adjacency.ADD_REMOVE)
    assert mechanism.noise.variances()[-1] > 0
    records = np.zeros(990, dtype=int)
    found = {mechanism.release(records, rng=seed).answers[-1] for seed in range(20)}
    assert len(found) == 20
