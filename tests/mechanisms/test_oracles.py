"""Errors of mechanisms: values of the formula sheet (JL, X-SIM, section 7), and targets."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from geomdp.bodies import LinearImage, sensitivity_polytope
from geomdp.geometry import GaussianMap, RademacherMap, SparseMap
from geomdp.geometry.jl import jl_map
from geomdp.geometry.projection import Projector
from geomdp.geometry.volumes import gaussian_width
from geomdp.mechanisms import (
    JL,
    AutoDimension,
    Ball,
    Ellipsoid,
    Gaussian,
    KNorm,
    Laplace,
    PredictionKind,
    Projected,
)
from geomdp.mechanisms.additive_noise import knorm
from geomdp.mechanisms.reduced_answers import distortion_bound
from geomdp.privacy import ZCDP, Adjacency, Exact, PureDP
from geomdp.workloads import (
    Explicit,
    Histogram,
    LinearMap,
    Marginals,
    MarginalTables,
    Parities,
    Prefixes,
    RandomSigns,
    SecondMoment,
    explicit_answers,
)
from tests.stats import mean_agrees

EPSILON, N = 0.5, 40
SETTING = {"n": N, "privacy": PureDP(EPSILON)}
ADD = {**SETTING, "adjacency": Adjacency.ADD_REMOVE}


@pytest.mark.parametrize("k", [1, 3, 8])
def test_one_way_marginals(k):
    """Section 7: the errors of four additive mechanisms on [0, 1]^k have closed forms."""
    workload = Marginals(k, 1)
    expected = {
        KNorm: math.sqrt((k + 1) * (k + 2) / 3),
        Ball: math.sqrt(k * (k + 1)),
        Laplace: math.sqrt(2) * k,
        # By symmetry the best ellipsoid of a cube is the ball.
        Ellipsoid: math.sqrt(k * (k + 1)),
    }
    for kind, value in expected.items():
        predicted = kind(workload, **SETTING).predicted_rmse
        assert predicted.kind is PredictionKind.EXACT
        assert predicted.stderr == 0
        rtol = 3e-3 if kind is Ellipsoid else 1e-12
        np.testing.assert_allclose(predicted.value, value / (EPSILON * N), rtol=rtol)


@pytest.mark.statistical
def test_ball_mean_norm():
    """JL-L15: noise Z has E||Z||_2 = k Delta / epsilon, where Delta = sqrt k is the diameter."""
    k = 6
    noise = Ball(Marginals(k, 1), **SETTING).noise
    draws = noise.sample(np.random.default_rng(0), 20_000)
    mean_agrees(np.linalg.norm(draws, axis=1), k * math.sqrt(k) / EPSILON)


@pytest.mark.parametrize("pairs_up_to", [16, 15])
def test_ellipsoid_is_optimal_on_axis_parallel_boxes(pairs_up_to, monkeypatch):
    """JL-ELL: the least trace of an ellipsoid around a box of half-widths a_i is (sum a_i)^2."""
    # Of more elements, the centred answers get an ellipsoid, which is doubled; here it is the same.
    monkeypatch.setattr(knorm, "MAX_PAIR_ELEMENTS", pairs_up_to)
    widths = np.array([1.0, 0.5, 0.25, 0.125])
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=4))) * widths
    workload = Explicit(corners.T)
    exactly_differences = knorm.is_around_differences_alone(workload, Adjacency.REPLACE_ONE)
    assert exactly_differences == (pairs_up_to == 16)
    noise = Ellipsoid(workload, **SETTING).noise
    expected = (4 + 1) * widths.sum() ** 2 / EPSILON**2
    np.testing.assert_allclose(noise.second_moment().value, expected, rtol=5e-3)
    # Under add/remove, the answers a_i e_i give S = diag(a_i^2).
    axes = Ellipsoid(Explicit(np.diag(widths)), **ADD).noise
    expected = (4 + 1) * (widths**2).sum() / EPSILON**2
    np.testing.assert_allclose(axes.second_moment().value, expected, rtol=5e-3)


@pytest.mark.parametrize("levels", [(2, 2, 2, 2), (2, 3, 4), (5, 1, 2, 3)])
def test_ellipsoid_of_tables_by_patterns_agrees_with_all_pairs(levels):
    """The search over patterns finds the same optimum as the search over pairs of elements."""
    tables = MarginalTables(levels, 2)
    by_patterns = Ellipsoid(tables, **SETTING).noise
    listed = Explicit(explicit_answers(tables).T)
    by_pairs = Ellipsoid(listed, **SETTING).noise
    np.testing.assert_allclose(
        by_patterns.second_moment().value, by_pairs.second_moment().value, rtol=6e-3
    )
    answers = explicit_answers(tables)
    moves = (answers[:, None] - answers).reshape(-1, tables.n_queries)
    assert by_patterns.body.gauge(moves).max() <= 1


@pytest.mark.parametrize("workload", [MarginalTables([2] * 13, 1), RandomSigns(3, 5000, 0)])
def test_ellipsoid_of_large_universes_holds_all_differences(workload):
    """If the pairs are too many to list, the ellipsoid still contains all differences."""
    noise = Ellipsoid(workload, **SETTING).noise
    ball = Ball(workload, **SETTING).noise
    assert noise.second_moment().value <= ball.second_moment().value * (1 + 1e-8)
    rng = np.random.default_rng(0)
    first, second = (workload.evaluate(workload.universe.sample(2000, rng)) for _ in range(2))
    assert noise.body.gauge(first - second).max() <= 1
    directions = rng.standard_normal((200, workload.n_queries))
    spread = workload.extreme_answers(directions) - workload.extreme_answers(-directions)
    assert noise.body.gauge(spread).max() <= 1


def test_second_moments():
    """JL-L14, JL-COV at d = 2: for noise Z of the ball, epsilon^2 E||Z||_F^2 = 3 * 4 * Delta^2."""
    workload = SecondMoment(2)
    # Under replace-one, Delta = ||xx^T - yy^T||_F = sqrt 2 for orthogonal unit vectors x and y. The
    # best ellipsoid then has the squared semi-axes 2, 2, 2/3. Under add/remove, Delta = 1.
    for setting, squared, trace in ((SETTING, 2, 14 / 3), (ADD, 1, 1.5 + math.sqrt(2))):
        noise = Ball(workload, **setting).noise
        np.testing.assert_allclose(
            noise.second_moment().value * EPSILON**2, 12 * squared, rtol=1e-12
        )
        ellipsoid = Ellipsoid(workload, **setting).noise
        np.testing.assert_allclose(
            ellipsoid.second_moment().value * EPSILON**2, 4 * trace, rtol=1e-8
        )


def test_simplices_have_exact_noise_of_the_neighbour_body():
    """X-SIM: noise of the difference of a simplex has an exact sampler and a known E||Z||^2."""
    two = KNorm(Histogram(2), **SETTING)
    # K - K is a segment of half-length sqrt 2 in R^2, so E||Z||^2 = 2 (sqrt 2 / epsilon)^2.
    np.testing.assert_allclose(two.noise.second_moment().value, 4 / EPSILON**2, rtol=1e-12)
    for workload in (Histogram(6), Prefixes(7)):
        mechanism = KNorm(workload, **SETTING)
        assert mechanism.guarantee.sampler == Exact()
        exact = KNorm(workload, **SETTING, exact=True)
        assert exact.predicted_rmse.value <= mechanism.predicted_rmse.value
    # Under add/remove, the body of a histogram is a cross-polytope, so the noise is Laplace noise.
    laplace, knorm = Laplace(Histogram(6), **ADD), KNorm(Histogram(6), **ADD)
    np.testing.assert_allclose(knorm.predicted_rmse.value, laplace.predicted_rmse.value, rtol=1e-12)


def test_gaussian_projection_bound():
    """JL-GAUSS: for queries with values in [-1, 1], rms <= (2 sqrt(ln N / rho) / n)^(1/2).

    This is 0.12193 for the N, n and rho of the test.
    """
    size, n, rho = 1000, 500, 0.5
    bound = math.sqrt(2 * math.sqrt(math.log(size) / rho) / n)
    assert round(bound, 5) == 0.12193
    workload = RandomSigns(200, size, 0)
    mechanism = Projected(Gaussian(workload, n=n, privacy=ZCDP(rho)))
    predicted = mechanism.predicted_rmse
    assert predicted.kind is PredictionKind.UPPER_BOUND
    assert predicted.value <= bound
    # sigma = Delta_2 / sqrt(2 rho).
    scale = workload.l2_diameter() / math.sqrt(2 * rho)
    np.testing.assert_allclose(mechanism.inner.noise.scale, scale, rtol=1e-12)


def test_projection_inequalities_hold_without_exception():
    """JL-L13 and JL-L13b hold on 50 random instances, with noise and maps of different sizes."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        m, size = rng.integers(3, 9), rng.integers(4, 30)
        workload = Explicit(rng.uniform(-1, 1, (m, size)))
        body = sensitivity_polytope(workload)
        matrix = jl_map(int(rng.integers(1, m)), m, rng) if rng.random() < 0.7 else np.eye(m)
        truth = explicit_answers(workload)[rng.integers(size, size=10)].mean(axis=0)
        noise = rng.standard_normal(len(matrix)) * 10 ** rng.uniform(-2, 1)
        found = Projector(body, matrix).nearest(matrix @ truth + noise, tol=1e-12)
        moved = matrix @ (found.point - truth)
        slack = 2 * found.gap + 1e-12
        assert moved @ moved <= noise @ noise + slack
        image = LinearImage(matrix, body)
        assert moved @ moved <= image.support(noise[None])[0] - noise @ (matrix @ truth) + slack


def test_jl_prediction_is_the_stated_sum():
    workload = RandomSigns(30, 50, 0)
    mechanism = JL(Ball(workload, n=1000, privacy=PureDP(1.0)), 10, rng=0)
    assert mechanism.matrix.shape == (10, 30)
    assert isinstance(mechanism.inner.workload, LinearMap)
    # The noise is calibrated to the drawn A: to the diameter of the image A K, not of K.
    images = explicit_answers(workload) @ mechanism.matrix.T
    diameter = max(np.linalg.norm(a - b) for a, b in itertools.combinations(images, 2))
    np.testing.assert_allclose(mechanism.inner.noise.body.radius(), diameter, rtol=1e-12)
    width = gaussian_width(sensitivity_polytope(workload), rng=5)
    drift = (8**-0.5 + 1 / (4 * math.sqrt(10))) * workload.l2_diameter()
    low, high = ((2 * end + drift) / math.sqrt(10) for end in width.interval)
    # The bound uses the upper limit of another estimate of the width, which is within 5%.
    assert low <= mechanism.mean_distortion <= high * 1.05
    # For so many records, the sum is below the diameter, and E ||Z||^2 / n^2 gives the noise term.
    noise = math.sqrt(10 * 11) * diameter / 1000
    total = noise + mechanism.mean_distortion
    assert total < workload.l2_diameter()
    predicted = mechanism.predicted_rmse.value
    assert predicted == pytest.approx(total / math.sqrt(30), rel=1e-5)
    # The width is estimated from public draws, which every mechanism shares.
    assert JL(mechanism.inner.with_workload(workload), 10, rng=0).predicted_rmse.value == predicted


@pytest.mark.parametrize("law", [GaussianMap(), RademacherMap(), SparseMap(0.2)], ids=str)
def test_jl_noise_fits_the_mapped_body_of_every_law(law):
    """JL-A1: for every map A, the noise is calibrated to A (K - K), here by the l2 diameter."""
    workload = RandomSigns(30, 50, 0)
    answers = explicit_answers(workload)
    mechanism = JL(Ball(workload, n=100, privacy=PureDP(1.0)), 6, rng=2, law=law)
    np.testing.assert_array_equal(mechanism.matrix, law.draw(6, 30, np.random.default_rng(2)))
    images = answers @ mechanism.matrix.T
    diameter = max(np.linalg.norm(a - b) for a, b in itertools.combinations(images, 2))
    np.testing.assert_allclose(mechanism.inner.noise.body.radius(), diameter, rtol=1e-12)
    assert mechanism.with_workload(RandomSigns(20, 50, 0)).law == law


@pytest.mark.parametrize("rows", [1, 2, 5, 30, 1000])
def test_the_bound_on_distortion_holds_what_gordon_leaves(rows):
    """JL-T9: sqrt(k) times the bound is 2 w + c diam with c >= E max(0, sqrt(k) - ||g||)."""
    root = math.sqrt(rows)
    short = stats.chi(rows).expect(lambda r: root - r, lb=0, ub=root)
    factor = root * distortion_bound(0.0, 1.0, rows)
    assert short <= factor <= 2.1 * short
    assert factor == pytest.approx(8**-0.5 + 1 / (4 * root), rel=1e-12)
    assert root * distortion_bound(1.0, 0.0, rows) == pytest.approx(2, rel=1e-12)


@pytest.mark.parametrize("law", [RademacherMap(), SparseMap()], ids=str)
def test_jl_maps_without_constants_predict_the_diameter(law):
    """JL-T9 has explicit constants for Gaussian maps only. No error is above the diameter."""
    workload = RandomSigns(30, 50, 0)
    inner = Ball(workload, n=10**9, privacy=PureDP(1.0))
    predicted = JL(inner, 6, rng=2, law=law).predicted_rmse
    assert predicted.value == pytest.approx(workload.l2_diameter() / math.sqrt(30), rel=1e-12)
    assert predicted.kind is PredictionKind.UPPER_BOUND
    with pytest.raises(ValueError, match="dimension must be a number"):
        JL(inner, AutoDimension(), law=law)
    with pytest.raises(ValueError, match="law must be a JLLaw"):
        JL(inner, 6, law=3)


@pytest.mark.statistical
def test_jl_measurements_have_the_noise_of_the_mapped_mechanism():
    """JL-A1: if all sums are 0, measurements are the noise of the mechanism for A Q."""
    workload = RandomSigns(20, 12, 0)
    mechanism = JL(Ball(workload, n=100, privacy=PureDP(1.0)), 8, rng=0)
    rng, zero = np.random.default_rng(0), np.zeros(workload.n_queries)
    squares = np.array([np.mean(mechanism.draw(rng)(zero) ** 2) for _ in range(2000)])
    mean_agrees(squares, mechanism.inner.predicted_rmse.value**2)


def test_exact_boxes_of_ten_columns():
    target = {"n": 5000, "privacy": PureDP(1.0), "exact": True}
    mechanism = KNorm(MarginalTables([2] * 10, 2), **target)
    assert mechanism.guarantee.sampler == Exact()
    # In the parity basis the body is the box [-2, 2]^55. Noise on a coordinate has the variance
    # 56 * 57 * 4 / 3. A cell is (1 +- a +- b +- c) / 4 for three coordinates a, b and c.
    expected = math.sqrt(3 / 16 * 56 * 57 * 4 / 3) / 5000
    np.testing.assert_allclose(mechanism.predicted_rmse.value, expected, rtol=2e-3)
    # The body of parities of two columns is a box of 45 coordinates of half-width 2.
    parities = KNorm(Parities(10, 2), **target).predicted_rmse
    np.testing.assert_allclose(parities.value, math.sqrt(46 * 47 * 4 / 3) / 5000, rtol=1e-8)


def test_auto_dimension_takes_the_number_of_rows_with_the_least_prediction(monkeypatch):
    """Each number of rows is tried with its own public map, and the final map is new."""
    draw, drawn = GaussianMap.draw, []
    monkeypatch.setattr(GaussianMap, "draw", lambda *given: drawn.append(draw(*given)) or drawn[-1])
    workload = RandomSigns(30, 60, 0)
    assert AutoDimension().tried(30) == [1, 2, 4, 8, 16, 29]
    assert AutoDimension().tried(2) == [1]
    # With so many records, predictions are below the diameter and depend on the map.
    inner = Ball(workload, n=4000, privacy=PureDP(1.0))
    chosen = JL(inner, AutoDimension(), rng=3)
    rng = np.random.default_rng(3)
    fixed = [JL(inner, rows, rng.spawn(1)[0]) for rows in AutoDimension().tried(30)]
    for tried, trial in zip(drawn[:6], fixed, strict=True):
        np.testing.assert_array_equal(tried, trial.matrix)
    assert len({trial.predicted_rmse.value for trial in fixed}) > 1
    best = min(fixed, key=lambda trial: trial.predicted_rmse.value)
    assert chosen.matrix.shape == best.matrix.shape
    assert not any(np.isin(chosen.matrix, trial.matrix).any() for trial in fixed)
    # For another workload, the number of rows is chosen again.
    assert len(chosen.with_workload(RandomSigns(5, 60, 0)).matrix) in AutoDimension().tried(5)
    with pytest.raises(ValueError, match="effective dimension 1"):
        JL(Ball(Prefixes(2), n=40, privacy=PureDP(1.0)), AutoDimension())
