"""Privacy of noise on Chebyshev moments, by losses computed for pairs of records and by audits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from geomdp.mechanisms import UniformLaplace, WeightedLaplace
from geomdp.mechanisms.smooth_summary import ScaledLaplace, UniformGaussian
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, PureDP
from geomdp.workloads import SmoothQueries
from tests.stats import audit_event

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
PURE = PureDP(1.0)
LAPLACE = [UniformLaplace(), WeightedLaplace(1), WeightedLaplace(4)]
SHAPES = [(1, 12), (2, 5), (3, 3)]


def moves(workload: SmoothQueries, adjacency: Adjacency) -> np.ndarray:
    """Changes of sums by one point of a grid, added or replaced by a corner or another point."""
    d = workload.d
    axis = np.cos(np.linspace(0, np.pi, {1: 400, 2: 40, 3: 15}[d]))
    answers = workload.evaluate(np.array(list(itertools.product(axis, repeat=d))))
    corner = answers[0]
    if adjacency is ADD:
        return answers
    shuffled = np.random.default_rng(0).permutation(answers)
    return np.vstack([corner - answers, shuffled - answers])


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(("d", "size"), SHAPES)
@pytest.mark.parametrize("noise", LAPLACE, ids=repr)
def test_no_pair_of_records_loses_more_than_epsilon_and_some_pair_nearly_all(
    noise, d, size, adjacency
):
    """With Laplace scales b_m, the largest loss of a move is the sum over m of |move_m| / b_m."""
    workload = SmoothQueries(d, size)
    scales = noise.calibrate(workload, PureDP(0.7), adjacency).scales
    losses = np.abs(moves(workload, adjacency)) @ (1 / scales)
    assert losses.max() <= 0.7 * (1 + 1e-12)
    # The grid of records is coarse, most of all in 3 variables, so it misses the largest loss.
    assert losses.max() >= 0.7 * (0.99 if d < 3 else 0.93)


def test_weighted_scales_follow_the_formula_sheet_and_are_below_its_constant():
    workload = SmoothQueries(2, 6)
    scales = WeightedLaplace(3).calibrate(workload, PURE, REPLACE).scales
    orders = workload.orders()
    np.testing.assert_allclose(scales / scales[0], orders**2 / orders[0] ** 2, rtol=1e-14)
    printed = 2 * orders**2 * (orders**-2).sum()
    assert (scales < printed).all()
    added = WeightedLaplace(3).calibrate(workload, PURE, ADD).scales
    np.testing.assert_allclose(added, printed / 2, rtol=1e-14)


@pytest.mark.parametrize(("d", "size", "smoothness"), [(1, 30, 2), (2, 12, 4), (3, 6, 3)])
def test_weighted_noise_is_the_best_for_its_class(d, size, smoothness):
    """The sum over moments m of ||m||^(-2K) variance_m is least for smoothness K (SM-X1)."""
    workload = SmoothQueries(d, size)
    decay = workload.orders() ** (-2.0 * smoothness)

    def energy(noise):
        return decay @ noise.calibrate(workload, PURE, ADD).deviations ** 2

    best = energy(WeightedLaplace(smoothness))
    assert best < energy(UniformLaplace()) / 2
    for other in (0.5, 0.9, 1.1, 2.0):
        assert best < energy(WeightedLaplace(other * smoothness))


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(("d", "size"), SHAPES)
def test_gaussian_noise_covers_every_move(d, size, adjacency):
    workload = SmoothQueries(d, size)
    deviation = UniformGaussian().calibrate(workload, ZCDP(0.5), adjacency).deviations[0]
    lengths = np.linalg.norm(moves(workload, adjacency), axis=1)
    # Since rho = D^2 / (2 sigma^2) = 1/2, the deviation sigma is the sensitivity D.
    assert lengths.max() <= deviation * (1 + 1e-12)
    approximate = UniformGaussian().calibrate(workload, ApproxDP(1.0, 1e-6), adjacency)
    assert approximate.deviations[0] > 2 * deviation


@pytest.mark.parametrize("noise", [*LAPLACE, UniformGaussian()], ids=repr)
def test_slack_enlarges_the_noise_as_if_every_moment_moved_more(noise):
    workload = SmoothQueries(1, 6)
    privacy = ZCDP(0.5) if isinstance(noise, UniformGaussian) else PURE
    plain = noise.calibrate(workload, privacy, REPLACE).deviations
    wider = noise.calibrate(workload, privacy, REPLACE, slack=0.5).deviations
    if isinstance(noise, UniformGaussian):
        expected = plain + 0.5 * np.sqrt(5)
    else:
        shape = plain / plain[0]
        expected = plain + np.sqrt(2) * 0.5 * (1 / shape).sum() * shape
    np.testing.assert_allclose(wider, expected, rtol=1e-12)


def worst_pair(workload: SmoothQueries, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Moments of the record 1, and of the record with the largest loss against it, for d = 1."""
    fine = workload.evaluate(np.cos(np.linspace(0, np.pi, 20_001))[:, None])
    return fine[0], fine[np.argmax(np.abs(fine[0] - fine) @ (1 / scales))]


def audited(scales: np.ndarray, size: int):
    """Audit Laplace noise on the moments of one record by its likelihood-ratio event.

    All moments of the corner are 1, the largest possible value. Where every output is at least 1,
    the ratio of densities is e^loss, where the loss of the pair is the sum of moves / scales.
    """
    noise = ScaledLaplace(scales)
    first, second = worst_pair(SmoothQueries(1, size), scales)
    return audit_event(
        lambda trials, rng: first + noise.sample(rng, trials),
        lambda trials, rng: second + noise.sample(rng, trials),
        PURE,
        # With this many trials, bounds on the two probabilities at level 2.5e-7 lower the audited
        # loss by less than half of 0.079, its excess over epsilon.
        trials=1_000_000,
        event=lambda outputs: (outputs >= 1).all(axis=1),
        rng=5,
    )


@pytest.mark.statistical
def test_audit_refutes_the_printed_scale_and_not_the_corrected_one():
    """With the printed scale t / epsilon for t = 4, the privacy loss is 1.079 epsilon (DISC-15)."""
    printed = np.full(3, 4.0)
    corner, partner = worst_pair(SmoothQueries(1, 4), printed)
    assert np.abs(corner - partner) @ (1 / printed) == pytest.approx(1.07889, rel=1e-5)
    assert audited(printed, 4).refuted
    corrected = UniformLaplace().calibrate(SmoothQueries(1, 4), PURE, REPLACE).scales
    assert not audited(corrected, 4).refuted
    # The corrected scale is not too large either, because 7% less noise is refuted.
    assert audited(0.93 * corrected, 4).refuted


ONE = SmoothQueries(1, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *(
            (lambda noise=noise: noise.calibrate(ONE, ZCDP(1.0), REPLACE), "must be PureDP for")
            for noise in LAPLACE
        ),
        (lambda: UniformGaussian().calibrate(ONE, PURE, REPLACE), "must be ZCDP or ApproxDP"),
        (
            lambda: WeightedLaplace(1000).calibrate(SmoothQueries(1, 64), PURE, REPLACE),
            "smoothness must be smaller for degree 64",
        ),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
