"""Generalised least squares over the body of all answers agrees with closed forms and CVXPY."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest

from geomdp.bodies import Elliptope
from geomdp.mechanisms import Cone, Fitted, Geometric, Hierarchical, KNorm, Laplace, Projected
from geomdp.mechanisms.fitted import LEAST_SHARE, moved_towards, noise_norm
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import LinearMap, Marginals, MarginalTables, explicit_answers
from geomdp.workloads.structure import sign_products

PRIVACY = PureDP(1.0)
TABLES = MarginalTables([2, 3, 2], 2)


def test_fit_is_the_nearest_point_in_the_norm_of_the_noise() -> None:
    """CVXPY, given the pseudo-inverse of the covariance of the noise, finds the same point."""
    inner = Cone(TABLES, n=10, privacy=PRIVACY)
    inverse = np.linalg.pinv(inner.noise.covariance(), rcond=1e-9, hermitian=True)
    scale = 1 / np.linalg.norm(inverse, 2)
    factor = np.linalg.cholesky(inverse * scale + 1e-12 * np.eye(len(inverse)))
    vertices, rng = explicit_answers(TABLES), np.random.default_rng(0)
    norm = noise_norm(inner)
    for noisy in vertices.mean(axis=0) + inner.noise.sample(rng, 3) / 10:
        shares = cp.Variable(len(vertices), nonneg=True)
        distance = cp.sum_squares(factor.T @ (vertices.T @ shares - noisy))
        cp.Problem(cp.Minimize(distance), [cp.sum(shares) == 1]).solve(solver=cp.CLARABEL)
        best = vertices.T @ shares.value
        found = norm.nearest(noisy).point
        np.testing.assert_allclose(found, best, atol=1e-4)
        # The Euclidean projection is another point, so the test fails for the wrong norm.
        assert np.linalg.norm(Projected(inner).nearest(noisy).point - found) > 1e-2


def test_cone_noise_on_many_columns_is_fitted_by_the_nearest_correlation_matrix() -> None:
    """Noise of the cone over an elliptope is isotropic on products of signs."""
    workload = MarginalTables([2] * 25, 2)
    inner = Cone(workload, n=20, privacy=PRIVACY)
    signs = sign_products(workload)
    assert signs is not None
    rng = np.random.default_rng(1)
    products = rng.standard_normal(25 * 26 // 2)
    nearest = Elliptope(26).project(products[None])[0]
    norm = noise_norm(inner)
    # The variances come from 8 draws on 25 single signs, so the ratio has an error near 10%.
    ratio = norm.body.weights[0]
    assert abs(ratio - 1) < 6 * math.sqrt(2 / (8 * 25))
    projection = norm.nearest(signs.constant + signs.matrix @ products)
    assert (projection.gap, projection.converged) == (0, True)
    found = projection.point
    exact = signs.constant + signs.matrix @ nearest
    assert np.linalg.norm(found - exact) < 0.15 * np.linalg.norm(exact - signs.constant)
    # The Euclidean projection of the same answers is more than twice as far from `exact`.
    euclidean = Projected(inner).body.project((signs.constant + signs.matrix @ products)[None])[0]
    assert np.linalg.norm(euclidean - exact) > 2 * np.linalg.norm(found - exact)


@pytest.mark.parametrize("kind", [Geometric, Laplace])
def test_weights_of_signs_are_the_inverse_variances_of_independent_noise(kind) -> None:
    """For independent noise, the variance on a sign product is a weighted sum over the answers."""
    inner = kind(MarginalTables([2] * 25, 2), n=50, privacy=PRIVACY)
    norm = noise_norm(inner)
    variances = np.linalg.pinv(norm.signs.matrix.toarray()) ** 2 @ inner.noise.variances()
    singles = norm.signs.order - 1
    expected = variances[singles:].mean() / variances[:singles].mean()
    # The variances of `Geometric` have a closed form. For `Laplace` they are estimated from 8 draws
    # on 25 single signs.
    margin = 1e-9 if kind is Geometric else 6 * math.sqrt(2 / (8 * 25))
    assert norm.body.weights[0] / expected == pytest.approx(1, abs=margin)
    np.testing.assert_array_equal(norm.body.weights[1:], 1)


def test_whitened_noise_has_equal_variances_down_to_the_least_share() -> None:
    """For half-widths w of 1, 0.3, 0.1 and `least`, the noise has variances proportional to w^2."""
    for least in (0.01, 1e-3, 3e-5, 1e-7):
        widths = np.array([1.0, 0.3, 0.1, least])
        workload = LinearMap(Marginals(4, 1), np.diag(widths))
        inner = KNorm(workload, n=20, privacy=PRIVACY, exact=True)
        whitening = noise_norm(inner).whitening
        found = np.linalg.svd(whitening, compute_uv=False)
        raised = np.sort(1 / np.maximum(widths, math.sqrt(LEAST_SHARE)))[::-1]
        np.testing.assert_allclose(found, raised, rtol=1e-6)
        noise = whitening @ inner.noise.covariance() @ whitening.T
        variances = np.linalg.eigvalsh(noise)
        # Half-widths below the root of the least share are raised, so their noise stays smaller.
        np.testing.assert_allclose(
            variances[0] / variances[-1], min(1, least**2 / LEAST_SHARE), rtol=1e-6
        )


def test_isotropic_noise_gives_the_euclidean_projection() -> None:
    inner = Laplace(TABLES, n=5, privacy=PRIVACY)
    fitted, projected = Fitted(inner), Projected(inner)
    records = TABLES.universe.sample(5, 0)
    np.testing.assert_allclose(
        fitted.release(records, rng=1).answers, projected.release(records, rng=1).answers, atol=1e-6
    )


def test_steps_are_cut_at_the_reach() -> None:
    start, end = np.zeros(2), np.array([3.0, 4.0])
    np.testing.assert_array_equal(moved_towards(start, end, 5.0), end)
    np.testing.assert_allclose(moved_towards(start, end, 1.0), [0.6, 0.8], rtol=1e-15)
    np.testing.assert_array_equal(moved_towards(end, end, 0.0), end)


@pytest.mark.parametrize("adjacency", Adjacency)
def test_answers_stay_within_the_bound_of_the_nearest_point_and_in_the_body(adjacency) -> None:
    inner = Hierarchical(TABLES, n=4, privacy=PRIVACY, adjacency=adjacency)
    fitted, projected = Fitted(inner), Projected(inner)
    reach = projected.predicted_rmse.value * math.sqrt(TABLES.n_queries)
    sums = TABLES.totals(TABLES.universe.sample(4, 0)).sums
    for seed in range(20):
        found = fitted.privatise(sums, np.random.default_rng(seed))
        nearest = projected.privatise(sums, np.random.default_rng(seed))
        assert np.linalg.norm(found - nearest) <= reach * (1 + 1e-6)
        assert fitted._projected.nearest(found).gap <= 1e-7
        assert np.linalg.norm(fitted._projected.nearest(found).point - found) < 1e-4
    assert fitted.predicted_rmse.value <= 2 * projected.predicted_rmse.value
    # Under add/remove, attainable answers can be arbitrarily far from each other.
    if adjacency is Adjacency.REPLACE_ONE:
        diameter = TABLES.l2_diameter() / math.sqrt(TABLES.n_queries)
        assert fitted.predicted_rmse.value <= diameter


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [Cone, Hierarchical])
@pytest.mark.parametrize("apart", [1, 2])
def test_fits_err_less_than_projections_on_tables_at_a_vertex_and_on_an_edge(kind, apart) -> None:
    """All records are copies of one record, or of two records that differ in every column."""
    workload, n = MarginalTables([2] * 5, 2), 200
    inner = kind(workload, n=n, privacy=PRIVACY)
    elements = workload.universe.elements()[[0, -1]][:apart]
    sums = workload.totals(np.repeat(elements, n // apart, axis=0)).sums
    fitted, projected = Fitted(inner), Projected(inner)
    errors = np.array(
        [
            [
                np.mean((mechanism.privatise(sums, np.random.default_rng(seed)) - sums / n) ** 2)
                for mechanism in (fitted, projected)
            ]
            for seed in range(200)
        ]
    )
    gain = errors[:, 1] - errors[:, 0]
    # A paired test at level 1e-6: Student's t with 199 degrees of freedom has the quantile 4.9.
    assert gain.mean() > 4.9 * gain.std(ddof=1) / math.sqrt(len(gain))
