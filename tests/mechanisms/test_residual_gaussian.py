"""Tests of Gaussian noise on residuals of tables: law, audits, consistent tables, 100 columns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import geomdp as gd
from geomdp.audit import audit
from geomdp.mechanisms import ResidualGaussian
from geomdp.noise.gaussian import proved_gaussian_scale
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, PureDP
from geomdp.workloads import ChosenTables, MarginalTables, Prefixes, explicit_answers
from tests.stats import LEVEL, mean_agrees

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
N = 40
RHO = ZCDP(0.5)
CHOSEN = ChosenTables(
    {"a": 2, "b": 3, "c": 1, "d": 4}, [list("ab"), list("bcd"), ["d"]], [1.0, 2.5, 0.5]
)
WORKLOADS = [MarginalTables([2, 3, 2], 2), MarginalTables([2] * 4, 3), CHOSEN]
PRIVACIES = [RHO, ApproxDP(1.0, 1e-6)]


@pytest.fixture(params=WORKLOADS, ids=repr)
def workload(request):
    return request.param


@pytest.fixture(params=Adjacency)
def adjacency(request):
    return request.param


def built(workload, adjacency=REPLACE, privacy=RHO, n=N):
    return ResidualGaussian(workload, n=n, privacy=privacy, adjacency=adjacency)


def exact_answers(mechanism, records, trials):
    sums = mechanism.measured(records).sums
    return np.array([mechanism.private(None)(sums) for _ in range(trials)])


def check_law(mechanism, draws):
    """Assert that `draws` (trials, m) of noise on means have mean 0 and the stated covariance."""
    mean_agrees(draws, 0.0, level=LEVEL / 2)
    products = draws[:, :, None] * draws[:, None, :]
    mean_agrees(products, mechanism.noise.covariance() / N**2, level=LEVEL / 2)


@pytest.mark.statistical
def test_releases_have_the_covariance_of_the_formula(workload, adjacency):
    mechanism = built(workload, adjacency)
    records = workload.universe.sample(N, 3)
    truth = workload.answers(records)
    rng = np.random.default_rng(1)
    check_law(mechanism, mechanism.noise.sample(rng, 10_000) / N)
    sums = workload.totals(records).sums
    if workload is CHOSEN:
        seeded_draws = np.array([mechanism.privatise(sums, rng) for _ in range(1000)]) - truth
        check_law(mechanism, seeded_draws)


@pytest.mark.statistical
def test_exact_releases_have_the_covariance_of_the_formula(adjacency):
    mechanism = built(CHOSEN, adjacency)
    records = CHOSEN.universe.sample(N, 3)
    check_law(mechanism, exact_answers(mechanism, records, 1000) - CHOSEN.answers(records))


def worst_neighbours(mechanism):
    """The neighbours that are farthest apart in units of the noise, and the squared distance."""
    workload, noise = mechanism.workload, mechanism.noise
    answers = explicit_answers(workload)
    if mechanism.guarantee.adjacency is ADD:
        moves, pairs = answers, [(i,) for i in range(len(answers))]
    else:
        pairs = list(itertools.permutations(range(len(answers)), 2))
        moves = np.array([answers[i] - answers[j] for i, j in pairs])
    # For the density f of the noise and a change v of the sums, log f(0) - log f(-v) is half the
    # squared length of v in units of the noise.
    losses = 2 * noise.log_density_ratio(np.zeros_like(moves), moves)
    worst = pairs[int(np.argmax(losses))]
    elements = workload.universe.elements()
    rest = elements[np.arange(N - 1) % len(elements)]
    first, *second = (np.vstack([rest, elements[i][None]]) for i in worst)
    return (second[0] if second else rest), first, float(losses.max())


def test_no_neighbours_are_farther_apart_than_the_guarantee_allows(workload, adjacency):
    """The largest distance is as large as the guarantee allows, also by the dense covariance."""
    for privacy in PRIVACIES:
        mechanism = built(workload, adjacency, privacy)
        unit = proved_gaussian_scale(1, privacy)
        *data, distance = worst_neighbours(mechanism)
        assert distance <= (1 + 1e-9) / unit**2
        assert distance >= (1 - 1e-6) / unit**2
        move = np.subtract(*(workload.totals(records).sums for records in data))
        inverse = np.linalg.pinv(mechanism.noise.covariance(), rcond=1e-10, hermitian=True)
        np.testing.assert_allclose(move @ inverse @ move, distance, rtol=1e-6)


def audited(mechanism, weaker):
    """Whether an audit of `weaker` on the worst neighbours of `mechanism` refutes `RHO`."""
    data_sets = worst_neighbours(mechanism)[:2]
    truths = [mechanism.workload.totals(records).sums / N for records in data_sets]
    inverse = np.linalg.pinv(weaker.noise.covariance(), rcond=1e-10, hermitian=True)
    direction = inverse @ (truths[1] - truths[0])
    samplers = [
        lambda trials, rng, truth=truth: truth + weaker.noise.sample(rng, trials) / N
        for truth in truths
    ]
    return audit(
        *samplers, RHO, trials=20_000, score=lambda outputs: outputs @ direction, rng=11
    ).refuted


@pytest.mark.parametrize(
    ("workload", "options", "words"),
    [
        (WORKLOADS[0], {"privacy": PureDP(1.0)}, "ZCDP or ApproxDP for ResidualGaussian"),
        (Prefixes(4), {}, "MarginalTables, ChosenTables or ProductQueries"),
        (MarginalTables([1, 1], 2), {}, "constant"),
        (MarginalTables([400] * 3, 3), {}, r"2\^25 queries"),
    ],
    ids=repr,
)
def test_bad_arguments_are_refused(workload, options, words):
    with pytest.raises(ValueError, match=words):
        built(workload, **options)


def test_the_advisor_takes_it_for_tables():
    """The least exact prediction is for `ResidualGaussian`; for 100 columns there is no other."""
    advice = gd.advise(CHOSEN, n=1000, privacy=RHO, effort=0.05)
    assert advice.table[advice.table.kind == "exact"].iloc[0].mechanism == "ResidualGaussian"
    hundred, privacy = MarginalTables([2] * 100, 2), ApproxDP(1.0, 1e-6)
    advice = gd.advise(hundred, n=1000, privacy=privacy, effort=0.05)
    assert advice.flag.endswith("residual-gaussian")
    alone = advice.table[advice.table.kind == "exact"].mechanism
    assert list(alone) == ["ResidualGaussian"]


@pytest.mark.parametrize(
    ("levels", "k", "within"),
    [
        # The noise has more than 10,000 independent coordinates. So 10% of the error is more than
        # ten standard deviations of the error.
        ([2, 3, 2, 5] * 25, 2, 0.1),
        pytest.param([2] * 100, 3, 0.03, marks=pytest.mark.slow),
        pytest.param([2, 3, 4, 5, 6] * 20, 3, 0.03, marks=pytest.mark.slow),
    ],
    ids=["two-way", "three-way binary", "three-way mixed"],
)
def test_tables_of_a_hundred_columns(levels, k, within, adjacency):
    workload = MarginalTables(levels, k)
    mechanism = built(workload, adjacency, n=2000)
    records = workload.universe.sample(2000, 0)
    errors = mechanism.release(records).answers - workload.totals(records).sums / 2000
    found = np.sqrt(np.mean(errors**2)) / mechanism.predicted_rmse.value
    assert found == pytest.approx(1, abs=within)
