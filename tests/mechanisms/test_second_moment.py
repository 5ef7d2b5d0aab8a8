"""Second moments of records in the unit ball: noise, errors, privacy, releases."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import geomdp as gd
from geomdp._numerics.linalg import svec, unsvec
from geomdp.geometry.ellipsoids import PairDifferences, Rows, least_trace_ellipsoid
from geomdp.mechanisms import Covariance, Gaussian, Matrix, PredictionKind, SecondMoment
from geomdp.mechanisms import second_moment as second_moment_module
from geomdp.mechanisms.additive_noise.knorm import least_trace_root
from geomdp.mechanisms.second_moment import (
    IsotropicShrinkage,
    clipped_to_ball,
    nearest_moments,
    noise_size,
    wishart_energy,
)
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, PureDP
from geomdp.workloads import Marginals
from geomdp.workloads import SecondMoment as Workload
from tests.stats import binomial_above, mean_agrees, mean_at_most

PURE, CONCENTRATED, APPROXIMATE = PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-6)
REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
N = 20
KINDS = [SecondMoment, Covariance]
both = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize(
    ("d", "energy"), [(1, 1.18343), (2, 5.32544), (3, 14.20118), (5, 53.25444)]
)
def test_wishart_energy(d, energy):
    """E ||Z||^2 at rate 1.3 (JL-WIS). For d = 2 at rate 1, centring lowers it from 9 to 6.75."""
    assert wishart_energy(d, 1.3, centred=False) == pytest.approx(energy, rel=1e-5)
    assert wishart_energy(2, 1.0, centred=True) == pytest.approx(6.75, rel=1e-14)


@pytest.mark.parametrize("d", [1, 2, 5, 10])
def test_prediction_is_the_least_of_the_explicit_bounds(d):
    """Under replace-one, the predicted error is the least of three bounds (JL-WIS)."""
    m, scaled = d * (d + 1) // 2, []
    assert SecondMoment(Workload(d), n=1, privacy=PURE, adjacency=ADD).inner.noise.rate == 1.0
    for n in (1, 30, 1000, 10**6):
        predicted = SecondMoment(Workload(d), n=n, privacy=PURE).predicted_rmse
        assert predicted.kind is PredictionKind.UPPER_BOUND
        assert predicted.stderr == 0
        frobenius = predicted.value * math.sqrt(m)
        # Half of E (tr Z)^2 = 2 m / (m + 1) / rate^2 at the rate 1/2 (X-TRACE).
        trace = 4 * m / (m + 1)
        energy = wishart_energy(d, 0.5, centred=True)
        additive = math.sqrt(energy + (1 - 1 / d) * trace) / n
        diameter = math.sqrt(2) if d > 1 else 1
        drift = math.sqrt(trace) / (2 * n)
        spectral = drift + math.sqrt((4 * d + 3) / n + drift**2)
        assert frobenius == pytest.approx(min(additive, spectral, diameter), rel=1e-12)
        # The bounds of JL-WIS, for projection without a limit from the released trace.
        assert additive <= (d + 1) * math.sqrt(2 * d) / n * (1 + 1e-12)
        assert spectral <= math.sqrt((4 * d + 3) / n) + 2 / n
        scaled.append(predicted.source)
    assert scaled[0] == "diameter of the body"
    assert "JL-L13)" in scaled[-1]


def datasets(d, n):
    """Data sets of only the first axis, a mix of directions, all axes in turn, or only zeros."""
    rng = np.random.default_rng(0)
    mix = rng.standard_normal((n, d)) * 2.0 ** -np.arange(d)
    return {
        "vertex": np.tile(np.eye(d)[0], (n, 1)),
        "mix": mix / np.linalg.norm(mix, axis=1, keepdims=True),
        "axes": np.eye(d)[np.arange(n) % d],
        "zero": np.zeros((n, d)),
    }


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("data", "privacy"),
    [(data, PURE) for data in ("vertex", "axes", "zero")]
    + [("mix", CONCENTRATED), ("vertex", APPROXIMATE)],
    ids=str,
)
def test_bounds_hold_for_every_data_set(data, privacy):
    d = 4
    for n in (N, 50 * N):
        mechanism = SecondMoment(Workload(d), n=n, privacy=privacy)
        records = datasets(d, n)[data]
        total = svec(records.T @ records)
        rng = np.random.default_rng([n, *map(ord, data)])
        answers = np.array([mechanism.privatise(total, rng) for _ in range(1000)])
        squares = np.mean((answers - total / n) ** 2, axis=1)
        mean_at_most(squares, mechanism.predicted_rmse.value**2)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("d", [1, 2, 5])
def test_bounds_on_the_projection_onto_the_released_trace(d, seed):
    """Both bounds of X-TRACE hold for every noise; without the trace, the first would not hold."""
    rng = np.random.default_rng([d, seed])
    farther = 0
    for _ in range(400):
        spectrum = rng.dirichlet(np.full(d, rng.choice([0.1, 1.0]))) * rng.choice([1.0, 0.3])
        frame = np.linalg.qr(rng.standard_normal((d, d)))[0]
        truth = (frame * spectrum) @ frame.T
        noise = rng.standard_normal((d, d)) * 10.0 ** rng.uniform(-2, 0)
        noise += noise.T + rng.normal(0, 1) * np.eye(d) * rng.choice([0.0, 0.3])
        found = unsvec(nearest_moments(svec(truth + noise), 1.0))
        values = np.linalg.eigvalsh(found)
        assert values.min() >= -1e-12
        assert values.sum() <= min(1.0, max(0.0, np.trace(truth + noise))) + 1e-12
        error, square = np.linalg.norm(found - truth), np.linalg.norm(noise) ** 2
        drift = max(0.0, -np.trace(noise))
        assert error**2 <= square + (1 - 1 / d) * drift**2 + 1e-12
        top = max(0.0, np.linalg.eigvalsh(noise)[-1])
        assert error**2 <= top - np.sum(noise * truth) + drift * error + 1e-12
        farther += error**2 > square + 1e-12
    if d > 1:
        assert farther > 0


@pytest.mark.parametrize("diagonal", [[-0.5, -0.5], [0.5, -0.5], [1.0, -1.0, 1e-300]])
def test_a_released_trace_of_almost_nothing(diagonal):
    found = unsvec(nearest_moments(svec(np.diag(diagonal)), 1.0))
    np.testing.assert_allclose(found, 0, atol=1e-16)


@pytest.mark.statistical
@pytest.mark.parametrize("privacy", [PURE, CONCENTRATED])
def test_size_of_the_noise(privacy):
    """E ||Z||^2, E (tr Z)^2 and a bound on E max(lambda_max(Z), 0), for all noise and a block."""
    for d, block, adjacency in itertools.product((1, 2, 5), (False, True), Adjacency):
        if block and (d == 1 or adjacency is REPLACE):
            continue  # `test_covariance.py` tests blocks of centred noise.
        noise = SecondMoment(Workload(d), n=N, privacy=privacy, adjacency=adjacency).inner.noise
        draws = 3 * unsvec(noise.sample(np.random.default_rng(d), 4000))[:, block:, block:]
        size = noise_size(noise, d - block, 3.0)
        mean_agrees((draws**2).sum(axis=(1, 2)), size.energy)
        mean_agrees(draws.trace(axis1=1, axis2=2) ** 2, size.trace)
        mean_at_most(np.maximum(np.linalg.eigvalsh(draws)[:, -1], 0), size.support)


@pytest.mark.parametrize(
    ("kind", "adjacency"), [(SecondMoment, REPLACE), (SecondMoment, ADD), (Covariance, REPLACE)]
)
class TestReleases:
    def test_matrices_are_attainable_however_large_the_noise(self, kind, adjacency):
        """For one record, noise is far larger than the body, and answers are moved into it."""
        setting = {"n": 1, "privacy": PureDP(0.1), "adjacency": adjacency}
        built = [kind(Workload(3), **setting)]
        if kind is SecondMoment:
            built.append(kind(Workload(3), shrink=True, **setting))
        for mechanism, seed in itertools.product(built, range(5)):
            answers = mechanism.release(np.eye(3)[:1], rng=seed).answers
            matrix = mechanism.workload.matrix(answers)
            np.testing.assert_allclose(svec(matrix), answers, rtol=1e-15)
            values = np.linalg.eigvalsh(matrix)
            assert values.min() >= -1e-9
            if adjacency is REPLACE:
                assert values.sum() <= 1 + 1e-9


@both
def test_clipping_is_explicit_and_scales_rows_to_the_sphere(kind):
    rng = np.random.default_rng(5)
    records = rng.standard_normal((N, 3))
    records[0] = [3e200, -4e200, 0.0]
    records[1] = 0.0
    records[2] = [0.1, 0.2, 0.3]
    norms = np.linalg.norm(records[1:], axis=1, keepdims=True)
    inside = np.vstack([[0.6, -0.8, 0.0], records[1:] / np.maximum(norms, 1)])
    setting = {"n": N, "privacy": PURE}
    with pytest.raises(ValueError, match="norm at most 1: row 0") as caught:
        kind(Workload(3), **setting).release(records)
    assert "e200" not in str(caught.value)
    clipped = kind(Workload(3), clip=True, **setting).release(records, rng=6).answers
    expected = kind(Workload(3), **setting).release(inside, rng=6).answers
    np.testing.assert_allclose(clipped, expected, atol=1e-14)
    for bad in (np.nan, np.inf):
        broken = records.copy()
        broken[7, 1] = bad
        with pytest.raises(ValueError, match="row 7, column 1"):
            kind(Workload(3), clip=True, **setting).release([broken[:5], broken[5:]])


@pytest.mark.parametrize("d", [1, 2, 3, 20, 300])
def test_clipped_norms_are_at_most_1_in_exact_arithmetic(d):
    """Rows normalised in float64 can have a norm above 1 by rounding, and are clipped, too."""
    rng = np.random.default_rng(d)
    normal = rng.standard_normal((150, d))
    far = normal * 10.0 ** rng.integers(4, 300, (150, 1))
    near = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    inside = 0.5 * near
    clipped = np.vstack(list(clipped_to_ball(np.vstack([far, near, inside]), d)))
    squares = np.array([sum(Fraction(x) ** 2 for x in row) for row in clipped.tolist()])
    assert max(squares) <= 1
    # Norms of float32 are computed in float64.
    (short,) = clipped_to_ball(near.astype(np.float32), d)
    assert short.dtype == np.float64
    assert max(sum(Fraction(x) ** 2 for x in row) for row in short.tolist()) <= 1
    # Clipped rows have norm 1 up to rounding, and rows well inside the ball do not change.
    assert min(squares[:300]) >= 1 - 4 * (d + 8) * 2.0**-53
    np.testing.assert_array_equal(clipped[300:], inside)


@both
def test_bad_workloads(kind):
    with pytest.raises(ValueError, match="SecondMoment"):
        kind(Marginals(3, 1), n=N, privacy=PURE)
    with pytest.raises(ValueError, match="SecondMoment"):
        SecondMoment(Workload(3), n=N, privacy=PURE).with_workload(Marginals(3, 1))


def test_another_dimension_is_the_same_family():
    options = {"n": N, "privacy": CONCENTRATED, "adjacency": ADD, "clip": True, "shrink": True}
    other = SecondMoment(Workload(3), **options).with_workload(Workload(2))
    assert (other.n, other.clip, other.shrink) == (N, True, True)
    assert other.guarantee == SecondMoment(Workload(3), **options).guarantee
    assert other.release(np.ones((N, 2)), rng=0).answers.shape == (3,)


def test_shrinkage_keeps_its_distance_from_the_noise():
    """For any limit, the error is at most ||noise|| + sqrt(0.5), where 0.5 is the `energy`."""
    rng = np.random.default_rng(2)
    m = 10
    for limit in (0.0, 0.4, math.inf):
        shrinkage = IsotropicShrinkage(4, 0.5, limit)
        assert shrinkage(np.zeros(m)) == pytest.approx(np.zeros(m), abs=0)
        for _ in range(200):
            vectors = rng.standard_normal((4, rng.integers(1, 5)))
            truth = svec(vectors @ vectors.T) / np.sum(vectors**2)
            noise = rng.normal(scale=rng.uniform(0.01, 0.6), size=m)
            found = shrinkage(truth + noise)
            assert np.linalg.norm(found - truth) <= np.linalg.norm(noise) + math.sqrt(0.5) + 1e-12


def test_shrinkage_is_for_matrices_without_an_eigenvalue_above_the_limit():
    """The traceless part of diag(1, 0, 0, 0) has largest eigenvalue 3/4 and squared norm 3/4."""
    spiked = svec(np.diag([1.0, 0, 0, 0]))
    assert (IsotropicShrinkage(4, 0.5, 0.74)(spiked) == spiked).all()
    shrunk = svec(np.diag([0.5, 1 / 6, 1 / 6, 1 / 6]))
    assert IsotropicShrinkage(4, 0.5, 0.76)(spiked) == pytest.approx(shrunk, rel=1e-14, abs=1e-15)
    assert (IsotropicShrinkage(4, 0.5, 0.75)(2 * spiked) != 2 * spiked).any()


@pytest.mark.statistical
@pytest.mark.parametrize("privacy", [PURE, CONCENTRATED])
def test_shrinkage_leaves_one_repeated_record_alone(privacy):
    """In most releases one eigenvalue exceeds the limit, although the noise has the larger norm."""
    d, n = 20, 120 if privacy is PURE else 20
    plain = SecondMoment(Workload(d), n=n, privacy=privacy)
    shrunk = SecondMoment(Workload(d), n=n, privacy=privacy, shrink=True)
    assert shrunk._traceless_energy > n**2 * (1 - 1 / d)
    records = np.tile(np.eye(d)[:1], (n, 1))
    both = [[M.release(records, rng=i).answers for M in (plain, shrunk)] for i in range(100)]
    binomial_above(sum(np.array_equal(*pair) for pair in both), 100, 0.9)


@pytest.mark.statistical
@pytest.mark.parametrize("privacy", [PURE, CONCENTRATED])
def test_shrinkage_errs_less_on_isotropic_data_and_stays_below_its_bound(privacy):
    """On 100 isotropic records, the error is below that of the answer 0."""
    workload, d, rng = Workload(20), 20, np.random.default_rng(3)
    shrunk = SecondMoment(workload, n=100, privacy=privacy, shrink=True)
    for records in (np.tile(np.eye(d), (5, 1)), np.eye(d)[[0] * 100], np.tile(np.eye(d), (100, 1))):
        M, truth = shrunk.with_n(len(records)), workload.answers(records)
        sums = truth * M.n
        squares = [np.sum((M.privatise(sums, rng) - truth) ** 2) for _ in range(1000)]
        few = M.n == 100 and records[1].argmax() == 1
        bound = workload.n_queries * M.predicted_rmse.value**2
        mean_at_most(np.array(squares), truth @ truth if few else bound)


def moments_of(records):
    return Workload(records.shape[1]).evaluate(records)


def symmetric_records(d):
    """0, and up to sign the vertices of an octagon for d = 2, and of the 24-cell for d = 4.

    By Schur's lemma, the ellipsoid of least trace is a ball among traceless symmetric matrices.
    """
    if d == 2:
        angles = np.arange(4) * np.pi / 4
        units = np.column_stack([np.cos(angles), np.sin(angles)])
    else:
        signs = np.array(list(itertools.product([0.5, -0.5], repeat=4)))
        units = np.vstack([np.eye(4), signs])
    return np.vstack([np.zeros(d), units])


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("d", [2, 4])
def test_no_ellipsoid_around_the_changes_has_less_trace(d, adjacency):
    """A search for the best ellipsoid around finitely many changes finds the closed-form trace."""
    points = moments_of(symmetric_records(d))
    alone = adjacency is Adjacency.ADD_REMOVE
    changes = Rows(points[1:]) if alone else PairDifferences(points)
    root = least_trace_root(Workload(d), adjacency)
    found = least_trace_ellipsoid(changes, tolerance=1e-5)
    np.testing.assert_allclose((root**2).sum(), found.trace, rtol=2e-5)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("d", [1, 2, 3, 4, 7])
def test_every_change_of_second_moments_is_in_the_ellipsoid(d, adjacency):
    rng = np.random.default_rng(d)
    frames = np.linalg.qr(rng.standard_normal((1000, d, d)))[0]
    first, second = frames[:, :, 0], frames[:, :, -1]
    lengths = rng.random((2, 1000, 1))
    # Orthogonal records of length 0 or 1 have the extreme changes. All other records are random.
    lengths[:, :500] = np.round(lengths[:, :500])
    second[500:] = (second[500:] + rng.random((500, 1)) * first[500:]) / 2
    changes = moments_of(lengths[0] * first)
    if adjacency is Adjacency.REPLACE_ONE:
        changes = changes - moments_of(lengths[1] * second)
    root = least_trace_root(Workload(d), adjacency)
    sizes = np.linalg.norm(np.linalg.solve(root, changes.T), axis=0)
    assert sizes.max() == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("adjacency", Adjacency)
def test_gaussian_noise_of_the_ellipsoid_beats_isotropic_noise_and_is_advised(adjacency):
    setting = {"n": 1000, "privacy": ZCDP(0.5), "adjacency": adjacency}
    matrix, isotropic = Matrix(Workload(4), **setting), Gaussian(Workload(4), **setting)
    expected = 18.4 if adjacency is Adjacency.REPLACE_ONE else (0.5 + math.sqrt(6.75)) ** 2
    assert matrix.noise.second_moment().value == pytest.approx(expected, rel=1e-9)
    assert matrix.noise.second_moment().value < isotropic.noise.second_moment().value
    assert matrix.grid == isotropic.grid
    best = gd.advise(Workload(4), **setting).best
    assert isinstance(getattr(best, "inner", best), Matrix)


@pytest.mark.parametrize("other", [0.0, 0.3])
def test_the_bound_by_the_support_function_solves_its_equation(other):
    support, trace = 2.0, 0.5
    x = second_moment_module.bound_by_support(support, trace, other)
    assert x > 0
    assert x**2 == pytest.approx(support + trace * other + (trace + other) * x, rel=1e-12)


def test_the_limit_comes_from_public_draws():
    noise = Gaussian(Workload(2), n=N, privacy=CONCENTRATED).noise
    first, again = (second_moment_module.top_eigenvalue_limit(noise, 2) for _ in range(2))
    assert first == again


@pytest.mark.parametrize("block", [300, 1000, 2000])
def test_the_limit_is_the_fifth_largest_of_a_thousand_draws(block, monkeypatch):
    """Draw number i is the diagonal matrix (i, -i), whose largest eigenvalue is i."""
    numbers = itertools.count()

    class Numbered:
        def sample(self, rng, size):
            return np.array([svec(np.diag([i, -i])) for i in itertools.islice(numbers, size)])

    monkeypatch.setattr(second_moment_module, "BLOCK_ENTRIES", 4 * block)
    assert second_moment_module.top_eigenvalue_limit(Numbered(), 2) == pytest.approx(995, rel=1e-12)
    assert next(numbers) == 1000
