"""Cone noise, also of the cut moment body: variances, special cases, privacy, and the cut."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from geomdp.bodies import Elliptope, Simplex, TableMoments
from geomdp.mechanisms import Cone, Hierarchical, Matrix, Spectral, TightCone
from geomdp.mechanisms.additive_noise.cone import KEPT, tight_table_moments
from geomdp.noise import PairedNoise, differences, half_widths
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
from geomdp.workloads.structure import table_contrasts
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
    three = MarginalTables([3, 2, 2], 2)
    contrasts = table_contrasts(three)
    uncut = PairedNoise(TableMoments(contrasts.levels), 1.0, contrasts.matrix)
    tables = (MarginalTables([2] * 3, 2), MarginalTables([3, 2], 2), MarginalTables([4, 3], 1))
    kinds = [(Cone, w) for w in (*tables, three, Histogram(4), SecondMoment(2))]
    kinds.append((TightCone, three))
    noises = [kind(w, n=1, privacy=PURE, adjacency=a).noise for kind, w in kinds for a in Adjacency]
    for noise in (*noises, uncut):
        draws = noise.sample(np.random.default_rng(3), 10_000)
        mean_agrees(draws, np.zeros(noise.dimension))
        moment = noise.second_moment()
        # The standard error of an estimated moment is below the deviation that is allowed.
        mean_agrees((draws**2).sum(axis=1), moment.value, level=1e-8)
        assert np.trace(noise.covariance()) == pytest.approx(moment.value, rel=1e-9)
        if moment.stderr == 0:
            products = draws[:, :, None] * draws[:, None, :]
            mean_agrees(products, noise.covariance(), level=1e-8)


@pytest.mark.statistical
def test_simplex_without_centring_is_laplace() -> None:
    """Under add/remove, each count of a histogram gets Laplace noise of scale 1 / eps (X-CONE)."""
    mechanism = Cone(Histogram(5), n=1, privacy=PURE, adjacency=Adjacency.ADD_REMOVE)
    draws = mechanism.noise.sample(np.random.default_rng(2), 20_000)
    for column in draws.T:
        ks_uniform(scipy.stats.laplace.cdf(column), level=1e-6 / 5)
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


# Noise of the cut moment body


@pytest.mark.statistical
def test_noise_on_one_column_of_two_levels_is_laplace_noise() -> None:
    """R (U_1 - U_2), with R ~ Gamma(3, 1 / epsilon), has density epsilon / 2 e^(-epsilon |z|)."""
    noise = TightCone(MarginalTables([2], 1), n=1, privacy=PureDP(0.7)).noise
    draws = noise.sample(np.random.default_rng(0), 10_000)
    ks_uniform(scipy.stats.laplace.cdf(draws[:, 0], scale=1 / 0.7))
    np.testing.assert_allclose(draws.sum(axis=1), 0, atol=1e-12)


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
    """The best strategy has the error 0.0059, see test_known_errors_of_ten_binary_columns."""
    workload = MarginalTables([2] * 10, 2)
    found = TightCone(workload, n=5000, privacy=PURE).predicted_rmse
    assert found.value == pytest.approx(0.003467, abs=6 * found.stderr)
    assert found.stderr < 0.005 * found.value


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
