"""Projections, fits and shrinkage of noisy answers: nearest points, relaxations, error bounds."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest
import scipy.stats

from geomdp.bodies import Ball as BallBody
from geomdp.bodies import Box, Elliptope, VPolytope, sensitivity_polytope
from geomdp.bodies.relaxations import MappedElliptope
from geomdp.bodies.sensitivity import WorkloadPolytope
from geomdp.geometry.projection import Projector
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.mechanisms import (
    JL,
    Ball,
    Cone,
    Fitted,
    Geometric,
    Hierarchical,
    KNorm,
    Laplace,
    Projected,
    Shrunk,
    TightCone,
    projected,
)
from geomdp.mechanisms.projected import (
    LEAST_SHARE,
    LEVEL,
    MAX_DRAWS,
    ExpectedSupport,
    SignNorm,
    _upper_limit,
    allowed_gap,
    centre_and_radius,
    expected_support_bound,
    is_relaxed,
    moved_towards,
    noise_norm,
    reachable_body,
    sign_norm,
    tried_projector,
    whitening,
)
from geomdp.noise import GaussianNoise, KNormNoise, LaplaceNoise
from geomdp.noise.few_queries import GeometricNoise
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import (
    ChosenTables,
    Explicit,
    Histogram,
    LinearMap,
    Marginals,
    MarginalTables,
    Parities,
    Prefixes,
    RandomSigns,
    explicit_answers,
)
from geomdp.workloads.base import MAX_SCORES, WorkloadSizeError
from geomdp.workloads.structure import sign_products
from tests.projection_gaps import recorded_gaps
from tests.stats import mean_agrees, mean_at_most

PRIVACY = PureDP(1.0)
TABLES, UNEVEN = MarginalTables([2, 3, 2], 2), MarginalTables([2, 3, 1], 2)
#: All 2-way tables of so many columns are projected on a relaxation.
MANY = MarginalTables([2] * 25, 2)


def cube(m: int) -> Box:
    """The box [-1, 1]^m, whose support function is the l1 norm."""
    return Box(-np.ones(m), np.ones(m))


def test_many_columns_are_projected_on_the_relaxation() -> None:
    """Tables of 25 columns use the relaxation, tables of 4 do not; projecting lowers the error."""
    few = Projected(Cone(MarginalTables([2] * 4, 2), n=10, privacy=PRIVACY))
    assert not isinstance(few.body, MappedElliptope)
    inner = Cone(MANY, n=50, privacy=PRIVACY)
    mechanism = Projected(inner)
    assert isinstance(mechanism.body, MappedElliptope)
    assert mechanism.predicted_rmse.value < inner.predicted_rmse.value
    records = MANY.universe.sample(50, np.random.default_rng(0))
    truth = MANY.answers(records)
    for seed in range(3):
        before = np.linalg.norm(inner.release(records, rng=seed).answers - truth)
        assert np.linalg.norm(mechanism.release(records, rng=seed).answers - truth) < before


@pytest.mark.parametrize(
    ("columns", "relaxed"), [(24, False), (25, True), (128, True), (129, False)]
)
def test_tables_of_25_to_128_columns_are_relaxed(columns: int, relaxed: bool) -> None:
    assert is_relaxed(MarginalTables([2] * columns, 2)) is relaxed
    assert not is_relaxed(MarginalTables([2] * columns, 1))


def test_diameter_of_a_relaxation_holds_all_records_and_is_less_than_twice_their_norm() -> None:
    mechanism = Projected(Cone(MANY, n=50, privacy=PRIVACY))
    answers = MANY.evaluate(MANY.universe.sample(20, np.random.default_rng(0)))
    apart = np.linalg.norm(answers[:, None] - answers[None], axis=2).max()
    # The answers of two records are at most sqrt(2 C(25, 2)) apart. The bound for the relaxation is
    # sqrt(3 C(25, 2)).
    assert apart <= MANY.l2_diameter() <= mechanism.diameter
    np.testing.assert_allclose(mechanism.diameter, 2 * np.sqrt(300 * 3 / 4), rtol=1e-12)


def test_tables_of_one_column_are_projected_by_column() -> None:
    body = reachable_body(MarginalTables([2, 3], 1))
    point = body.project(np.array([[2.0, 0.0, 1 / 3, 1 / 3, 1 / 3]]))[0]
    np.testing.assert_allclose(point, [1, 0, 1 / 3, 1 / 3, 1 / 3], atol=1e-12)


def test_another_workload_keeps_the_number_of_public_draws() -> None:
    inner, workload = Ball(UNEVEN, n=20, privacy=PRIVACY), RandomSigns(40, 20, 0)
    few, usual = (Projected(inner, **draws).with_workload(workload) for draws in ({"draws": 8}, {}))
    again = Projected(inner.with_workload(workload), draws=8)
    assert few.predicted_rmse.value == again.predicted_rmse.value > usual.predicted_rmse.value


def test_polytopes_are_searched_where_their_workload_can_be_and_refused_elsewhere() -> None:
    workload, noisy = Parities(4, 2), np.linspace(-3, 3, 6)
    listed, searched = sensitivity_polytope(workload), WorkloadPolytope(workload)
    found = tried_projector(searched, Adjacency.REPLACE_ONE).nearest(noisy).point
    np.testing.assert_allclose(found, Projector(listed).nearest(noisy).point, atol=1e-6)
    with pytest.raises(WorkloadSizeError, match="d must be at most 24"):
        tried_projector(WorkloadPolytope(Parities(40, 2)), Adjacency.REPLACE_ONE)


@pytest.mark.parametrize("energy", [1e-30, 0.01, 1e6])
def test_allowed_gaps_have_the_unit_of_squared_answers(energy: float) -> None:
    assert allowed_gap(64 * energy, 8 * 3.0) == pytest.approx(
        64 * allowed_gap(energy, 3.0), rel=1e-12, abs=0
    )


@pytest.mark.parametrize(
    "post_process", [Projected, Shrunk, lambda inner: JL(inner, 4, rng=0)], ids=["P", "S", "JL"]
)
def test_stated_bounds_hold_the_gap_at_which_the_search_stops(post_process, monkeypatch):
    """A search that stops at a duality gap eta allows a squared error of ||Z||^2 + 2 eta."""
    mechanism = post_process(Laplace(Prefixes(16), n=16, privacy=PureDP(1e6)))
    gaps = recorded_gaps(monkeypatch)
    mechanism.release(np.arange(16), rng=0)
    (gap,) = gaps
    shrinking = getattr(mechanism, "factor", 1.0)
    stated = mechanism.predicted_rmse.value * 4 - getattr(mechanism, "mean_distortion", 0.0)
    noise = mechanism.inner.predicted_rmse.value**2 * mechanism.inner.workload.n_queries
    assert stated**2 >= (shrinking * noise + 2 * gap) * (1 - 1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize(("draws", "level"), [(32, 6e-4), (105, 1.3e-4), (512, 1.7e-5)])
def test_the_levels_of_limits_for_skew_draws_are_those_stated(draws: int, level: float) -> None:
    """How often the limit for exponential variables is below their mean, by importance sampling."""
    tilt, sets = 4.6 / np.sqrt(draws), 4000
    values = np.random.default_rng(7).exponential(1 / (1 + tilt), (sets, draws))
    weights = np.exp(tilt * values.sum(axis=1) - draws * np.log1p(tilt))
    below = np.array([_upper_limit(row) < 1 for row in values])
    found = weights * below
    assert abs(found.mean() - level) < 0.1 * level + 6 * found.std() / np.sqrt(sets)


def test_support_bounds_are_the_closed_forms_where_these_are_known() -> None:
    """The support function h_K of K = [-1, 1]^m is the l1 norm, so E h_K(Z) = sum of E |Z_i|."""
    scale, q = 2.0, math.exp(-1 / 2)
    for noise, size in (
        (GaussianNoise(np.eye(3), scale), scale * math.sqrt(2 / math.pi)),
        (GeometricNoise(np.ones(3), scale), 2 * q / (1 - q**2)),
    ):
        found = expected_support_bound(noise, cube(3))
        assert found.value == pytest.approx(3 * size, rel=1e-12)
        assert "closed form" in found.source


def test_support_bounds_of_lattice_noise_are_infinite_for_many_coordinates() -> None:
    """The prediction for a projection of so many answers then uses its other bounds."""
    for m in (MAX_DRAWS, MAX_DRAWS + 1):
        found = expected_support_bound(GeometricNoise(np.ones(m), 1.0), cube(m))
        assert (found.value == math.inf) == (m > MAX_DRAWS)
    many = expected_support_bound(LaplaceNoise(1 << 17, 1.0), cube(1 << 17))
    assert "32 public draws" in many.source
    inner = Geometric(Histogram(MAX_DRAWS + 1), n=10, privacy=PRIVACY)
    assert 0 < Projected(inner).predicted_rmse.value <= inner.predicted_rmse.value * (1 + 1e-5)


@pytest.mark.statistical
@pytest.mark.parametrize("draws", [20, MAX_DRAWS])
def test_support_bounds_by_draws_exceed_the_mean_by_a_few_standard_errors(draws) -> None:
    """For K-norm noise of a ball K and for Laplace noise, against E h_K(Z) in closed form."""
    m, epsilon = 6, 0.5
    quantile = -scipy.stats.t.ppf(LEVEL, draws - 1)
    # K-norm noise is Z = R U with U uniform on the ball. The norm ||U||_2 has the density
    # m r^(m - 1), and E R = (m + 1) / epsilon.
    factor, mean = (m + 1) / epsilon, m / (m + 1)
    deviation = math.sqrt(m / ((m + 1) ** 2 * (m + 2)))
    ball = BallBody(m, 1.0)
    knorm = expected_support_bound(KNormNoise(ball, epsilon, ExactSampler(ball)), ball, draws)
    assert f"{draws} public draws" in knorm.source
    above = knorm.value / factor - mean
    assert 0 <= above <= 2 * quantile * deviation / math.sqrt(draws)
    # K is the segment [-1, 1], so h_K(Z) = |Z|. For Laplace noise of scale 3, |Z| has mean 3 and
    # standard deviation 3.
    laplace = expected_support_bound(LaplaceNoise(1, 3.0), cube(1), draws)
    assert 0 <= laplace.value - 3 <= 2 * quantile * 3 / math.sqrt(draws)


def test_widths_without_a_closed_form_are_upper_limits() -> None:
    """For a segment K from 0 to v and Gaussian noise, E h_K(Z) = sigma ||v|| / sqrt(2 pi).

    A thin triangle stands for the segment, because the width of a triangle has no closed form.
    """
    flat = VPolytope([[0.0, 0.0], [1.0, 0.0], [0.5, 1e-9]])
    found = expected_support_bound(GaussianNoise(np.eye(2), 5.0), flat)
    width = 5 / math.sqrt(2 * math.pi)
    assert width <= found.value <= 1.2 * width
    assert "upper limit" in found.source


def test_eight_draws_show_that_a_mean_is_far_above_a_limit() -> None:
    """E h_K(Z) is m; `least` is the mean of 8 draws minus 6 standard errors sqrt(m / 8)."""
    m = 400
    support = ExpectedSupport(LaplaceNoise(m, 1.0), cube(m), 64)
    assert m - 20 * math.sqrt(m / 8) < support.least < m - 0.5 * math.sqrt(m / 8)
    assert support.bound == expected_support_bound(support.noise, support.body, 64)


# Fits in the norm of the noise.


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
        found = norm(noisy).point
        np.testing.assert_allclose(found, best, atol=1e-4)
        # The Euclidean projection is another point, so the test fails for the wrong norm.
        assert np.linalg.norm(Projected(inner).nearest(noisy).point - found) > 1e-2


def test_white_noise_is_fitted_by_the_nearest_point() -> None:
    inner = Ball(UNEVEN, n=10, privacy=PRIVACY)
    assert whitening(inner) is None
    noisy = explicit_answers(UNEVEN)[0] + np.linspace(-1, 2, UNEVEN.n_queries)
    found, nearest = noise_norm(inner)(noisy).point, Projected(inner).nearest(noisy).point
    np.testing.assert_allclose(found, nearest, atol=1e-3)


def test_cone_noise_on_many_columns_is_fitted_by_the_nearest_correlation_matrix() -> None:
    """Noise of the cone over an elliptope is isotropic on products of signs."""
    inner = Cone(MANY, n=20, privacy=PRIVACY)
    signs = sign_products(MANY)
    assert signs is not None
    rng = np.random.default_rng(1)
    products = rng.standard_normal(25 * 26 // 2)
    nearest = Elliptope(26).project(products[None])[0]
    norm = noise_norm(inner)
    assert isinstance(norm, SignNorm)
    # The variances come from 8 draws on 25 single signs, so the ratio has an error near 10%.
    ratio = norm.body.weights[0]
    assert abs(ratio - 1) < 6 * math.sqrt(2 / (8 * 25))
    projection = norm(signs.constant + signs.matrix @ products)
    assert (projection.gap, projection.iterations, projection.converged) == (0, 0, True)
    found = projection.point
    exact = signs.constant + signs.matrix @ nearest
    assert np.linalg.norm(found - exact) < 0.15 * np.linalg.norm(exact - signs.constant)
    # The Euclidean projection of the same answers is more than twice as far from `exact`.
    euclidean = Projected(inner).body.project((signs.constant + signs.matrix @ products)[None])[0]
    assert np.linalg.norm(euclidean - exact) > 2 * np.linalg.norm(found - exact)


@pytest.mark.parametrize("kind", [Geometric, Laplace])
def test_weights_of_signs_are_the_inverse_variances_of_independent_noise(kind) -> None:
    """For independent noise, the variance on a sign product is a weighted sum over the answers."""
    inner = kind(MANY, n=50, privacy=PRIVACY)
    norm = sign_norm(inner)
    variances = np.linalg.pinv(norm.signs.matrix.toarray()) ** 2 @ inner.noise.variances()
    singles = norm.signs.order - 1
    expected = variances[singles:].mean() / variances[:singles].mean()
    # Those of `Laplace` are estimated from 8 draws on 25 single signs.
    margin = 1e-9 if kind is Geometric else 6 * math.sqrt(2 / (8 * 25))
    assert norm.body.weights[0] / expected == pytest.approx(1, abs=margin)
    np.testing.assert_array_equal(norm.body.weights[1:], 1)


@pytest.mark.parametrize("least", [0.01, 3e-5, 1e-7])
def test_whitened_noise_has_equal_variances_down_to_the_least_share(least) -> None:
    """For half-widths w of 1, 0.3, 0.1 and `least`, the noise has variances proportional to w^2."""
    widths = np.array([1.0, 0.3, 0.1, least])
    workload = LinearMap(Marginals(4, 1), np.diag(widths))
    inner = KNorm(workload, n=20, privacy=PRIVACY, exact=True)
    matrix = whitening(inner)
    raised = np.sort(1 / np.maximum(widths, math.sqrt(LEAST_SHARE)))[::-1]
    np.testing.assert_allclose(np.linalg.svd(matrix, compute_uv=False), raised, rtol=1e-6)
    variances = np.linalg.eigvalsh(matrix @ inner.noise.covariance() @ matrix.T)
    # Half-widths below the root of the least share are raised, so their noise stays smaller.
    share = min(1, least**2 / LEAST_SHARE)
    np.testing.assert_allclose(variances[0] / variances[-1], share, rtol=1e-6)


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
    if adjacency is Adjacency.REPLACE_ONE:
        assert fitted.predicted_rmse.value <= TABLES.l2_diameter() / math.sqrt(TABLES.n_queries)


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "apart"), [(Cone, 1), (Hierarchical, 2)])
def test_fits_err_less_than_projections_on_tables_at_a_vertex_and_on_an_edge(kind, apart) -> None:
    """All records are copies of one record, or of two records that differ in every column."""
    workload, n = MarginalTables([2] * 5, 2), 200
    inner = kind(workload, n=n, privacy=PRIVACY)
    elements = workload.universe.elements()[[0, -1]][:apart]
    sums = workload.totals(np.repeat(elements, n // apart, axis=0)).sums

    def error(mechanism, seed):
        answers = mechanism.privatise(sums, np.random.default_rng(seed))
        return np.mean((answers - sums / n) ** 2)

    fitted, projected = Fitted(inner), Projected(inner)
    gain = np.array([error(projected, seed) - error(fitted, seed) for seed in range(200)])
    # A paired test at level 1e-6: Student's t with 199 degrees of freedom has the quantile 4.9.
    assert gain.mean() > 4.9 * gain.std(ddof=1) / math.sqrt(len(gain))


# Shrinkage towards a centre.


@pytest.mark.parametrize(
    "workload", [UNEVEN, MarginalTables([2] * 4, 3), RandomSigns(5, 30, 1), Prefixes(9)], ids=repr
)
def test_centre_is_the_mean_of_all_answers_and_the_radius_is_attained(workload) -> None:
    answers = explicit_answers(workload)
    centre, radius = centre_and_radius(workload)
    np.testing.assert_allclose(centre, answers.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(radius, np.linalg.norm(answers - centre, axis=1).max(), rtol=1e-14)


@pytest.mark.parametrize(
    ("workload", "centre", "square"),
    [
        (Parities(40, 2), [0.0] * 780, 780),
        # Every table adds up to 1, so its point of least norm has equal cells.
        (ChosenTables([2] * 40, [("c0", "c1"), ("c2",)]), [1 / 4] * 4 + [1 / 2] * 2, 3 / 4 + 1 / 2),
    ],
    ids=repr,
)
def test_radii_of_too_many_elements_to_list(workload, centre, square) -> None:
    assert workload.universe.size * workload.n_queries > MAX_SCORES
    found, radius = centre_and_radius(workload)
    np.testing.assert_allclose(found, centre, rtol=1e-12, atol=1e-15)
    assert radius == pytest.approx(math.sqrt(square), rel=1e-12)


def test_answers_are_listed_up_to_a_number_of_scores(monkeypatch) -> None:
    """Beyond it, the centre is the point of the affine hull nearest to 0, which is (0, ..., 1)."""
    for limit, centre in ((16, [0.25, 0.5, 0.75, 1]), (15, [0, 0, 0, 1])):
        monkeypatch.setattr(projected, "MAX_SCORES", limit)
        np.testing.assert_allclose(centre_and_radius(Prefixes(4))[0], centre, atol=1e-15)


@pytest.mark.parametrize("n", [1, 30, 10_000])
def test_factor_is_the_best_for_the_bound(n) -> None:
    inner = Ball(UNEVEN, n=n, privacy=PRIVACY)
    mechanism = Shrunk(inner)
    m, square = UNEVEN.n_queries, centre_and_radius(UNEVEN)[1] ** 2
    noise = inner.predicted_rmse.value**2 * m
    worst = [(1 - s) ** 2 * square + s**2 * noise for s in np.linspace(0, 1, 2001)]
    assert mechanism.predicted_rmse.value**2 * m == pytest.approx(min(worst), rel=1e-5)
    assert mechanism.factor == pytest.approx(square / (square + noise))


@pytest.mark.parametrize(("kind", "estimated"), [(Cone, False), (TightCone, True)])
def test_source_says_where_the_noise_is_estimated(kind, estimated) -> None:
    mechanism = Shrunk(kind(UNEVEN, n=10, privacy=PRIVACY))
    assert ("public draws" in mechanism.predicted_rmse.source) == estimated


@pytest.mark.statistical
def test_bound_is_attained_at_a_vertex_without_a_projection() -> None:
    """Without the projection the squared error is the bound; with it the error is not larger."""
    n = 8
    mechanism = Shrunk(Laplace(Explicit([[-1.0, 1.0]]), n=n, privacy=PRIVACY))
    bound = mechanism.predicted_rmse.value**2
    factor = mechanism.factor
    assert factor == pytest.approx(1 / (1 + 2 * (2 / n) ** 2))
    rng = np.random.default_rng(3)
    sums = np.array([float(n)])
    noisy = 1 + mechanism.inner.noise.sample(rng, 20_000)[:, 0] / n
    mean_agrees((factor * noisy - 1) ** 2, bound / (1 + 2e-6))
    squares = np.array([(mechanism.privatise(sums, rng)[0] - 1) ** 2 for _ in range(1000)])
    mean_at_most(squares, bound)
    # With half the factor the squared error exceeds the bound, so the factor matters.
    worse = (factor / 2 * noisy - 1) ** 2
    assert worse.mean() > bound + 6 * worse.std() / math.sqrt(len(worse))


@pytest.mark.parametrize("workload", [UNEVEN, Prefixes(9)], ids=repr)
def test_answers_are_the_nearest_to_the_shrunk_ones(workload) -> None:
    """`Shrunk` maps y to what `Projected` gives for c + s (y - c), with centre c and factor s."""
    inner = Ball(workload, n=20, privacy=PRIVACY)
    mechanism, centre = Shrunk(inner), centre_and_radius(workload)[0]
    rng = np.random.default_rng(4)
    for noisy in centre + rng.standard_normal((3, workload.n_queries)):
        expected = Projected(inner).process(centre + mechanism.factor * (noisy - centre))
        np.testing.assert_allclose(mechanism.process(noisy), expected, atol=1e-4)
