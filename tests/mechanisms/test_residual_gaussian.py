"""Tests of Gaussian noise on residuals of tables: law, audits, consistent tables, 100 columns."""

from __future__ import annotations

import itertools
import math
import os

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp.audit import audit
from geomdp.mechanisms import Fitted, PredictionKind, Projected, ResidualGaussian
from geomdp.noise import half_widths
from geomdp.noise.gaussian import ResidualNoise, proved_gaussian_scale
from geomdp.noise.tails import simultaneous_half_widths
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, PureDP
from geomdp.privacy.guarantees import FLOAT64_CAVEAT, rounded_arithmetic
from geomdp.workloads import (
    ChosenTables,
    MarginalTables,
    Prefixes,
    explicit_answers,
)
from tests.noise.exact.reference import seeded
from tests.stats import LEVEL, binomial_above, mean_agrees
from tests.workloads.test_residuals import answers_of_residual, centred, sets_of, tensor

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


def covariance_by_formula(mechanism):
    """The covariance of the noise on sums, from a dense matrix for each set A of columns."""
    residuals, workload = mechanism.noise.residuals, mechanism.workload
    total = np.zeros((workload.n_queries, workload.n_queries))
    for A, scale in zip(sets_of(residuals), mechanism.noise.scales, strict=True):
        variance = scale**2 / 2 ** sum(workload.levels[i] == 2 for i in A)
        root = answers_of_residual(workload, A) @ tensor(map(centred, workload.shape(A)))
        total += variance * root @ root.T
    return total


def test_covariance_and_variances_are_those_of_the_formula(workload, adjacency):
    mechanism = built(workload, adjacency)
    expected = covariance_by_formula(mechanism)
    np.testing.assert_allclose(mechanism.noise.covariance(), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(mechanism.noise.variances(), np.diag(expected), rtol=1e-9)
    energy = mechanism.noise.second_moment()
    assert (energy.stderr, energy.samples) == (0.0, 0)
    assert energy.value == pytest.approx(np.trace(expected), rel=1e-9)
    predicted = mechanism.predicted_rmse
    assert predicted.kind is PredictionKind.EXACT
    rmse = math.sqrt(np.trace(expected) / workload.n_queries) / N
    assert predicted.value == pytest.approx(rmse, rel=1e-9)


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
    check_law(mechanism, mechanism.noise.sample(rng, 20_000) / N)
    sums = workload.totals(records).sums
    seeded_draws = np.array([mechanism.privatise(sums, rng) for _ in range(1000)]) - truth
    check_law(mechanism, seeded_draws)


@pytest.mark.statistical
def test_exact_releases_have_the_covariance_of_the_formula(adjacency):
    mechanism = built(CHOSEN, adjacency)
    records = CHOSEN.universe.sample(N, 3)
    check_law(mechanism, exact_answers(mechanism, records, 1000) - CHOSEN.answers(records))


@pytest.mark.statistical
@pytest.mark.parametrize("place", range(1, 7))
def test_the_law_sees_half_the_noise_on_one_residual(place):
    mechanism = built(WORKLOADS[0])
    scales = mechanism.noise.scales.copy()
    scales[place] /= 2
    weaker = ResidualNoise(mechanism.noise.residuals, scales)
    draws = weaker.sample(np.random.default_rng(1), 20_000) / N
    with pytest.raises(AssertionError):
        check_law(mechanism, draws)


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


def audited(mechanism, weaker, draw, trials):
    """Whether an audit of `weaker` on the worst neighbours of `mechanism` refutes `RHO`."""
    first, second, _ = worst_neighbours(mechanism)
    truths = [mechanism.workload.totals(records).sums / N for records in (first, second)]
    inverse = np.linalg.pinv(weaker.noise.covariance(), rcond=1e-10, hermitian=True)
    direction = inverse @ (truths[1] - truths[0])
    samplers = [
        lambda trials, rng, records=records: draw(weaker, records, trials, rng)
        for records in (first, second)
    ]
    return audit(
        *samplers, RHO, trials=trials, score=lambda outputs: outputs @ direction, rng=11
    ).refuted


def float_draws(mechanism, records, trials, rng):
    return (mechanism.workload.totals(records).sums + mechanism.noise.sample(rng, trials)) / N


def exact_draws(mechanism, records, trials, rng):
    return exact_answers(mechanism, records, trials)


@pytest.mark.statistical
def test_audit_does_not_refute_the_claim_and_refutes_half_the_noise(adjacency):
    mechanism = built(WORKLOADS[0], adjacency)
    weaker = built(WORKLOADS[0], adjacency, ZCDP(2.0))
    assert not audited(mechanism, mechanism, float_draws, 20_000)
    assert audited(mechanism, weaker, float_draws, 20_000)


@pytest.mark.ci
@pytest.mark.statistical
def test_audit_of_exact_releases(adjacency):
    """An exact draw takes a millisecond, so there are fewer draws, and the defect is larger."""
    mechanism = built(WORKLOADS[0], adjacency)
    weaker = built(WORKLOADS[0], adjacency, ZCDP(8.0))
    assert not audited(mechanism, mechanism, exact_draws, 1000)
    assert audited(mechanism, weaker, exact_draws, 1000)


@pytest.mark.statistical
def test_audit_refutes_a_quarter_of_the_noise_on_one_residual(adjacency):
    """The residual has one column or two columns. The other residuals keep their noise."""
    mechanism = built(WORKLOADS[0], adjacency)
    for place in (2, 4):
        weaker = built(WORKLOADS[0], adjacency)
        scales = weaker.noise.scales.copy()
        scales[place] /= 4
        vars(weaker)["noise"] = ResidualNoise(weaker.noise.residuals, scales)
        assert audited(mechanism, weaker, float_draws, 20_000)


@pytest.mark.statistical
def test_audit_refutes_the_noise_of_the_other_relation():
    """Noise for add/remove is too small for replace-one: the squared distance is 2.19, not 1."""
    mechanism, other = built(WORKLOADS[0]), built(WORKLOADS[0], ADD)
    assert audited(mechanism, other, float_draws, 20_000)


def test_unseeded_releases_are_rounded_and_seeded_ones_are_not(workload, adjacency):
    mechanism = built(workload, adjacency)
    records = workload.universe.sample(N, 2)
    release = mechanism.release(records)
    assert release.guarantee.arithmetic == rounded_arithmetic(mechanism.grid)
    assert str(release.guarantee).startswith(f"0.5-zCDP, {adjacency.value}")
    assert mechanism.release(records, rng=1).guarantee.arithmetic == FLOAT64_CAVEAT
    assert built(workload, n=2**53).grid is None
    # If rho is huge, the noise is negligible.
    exact = built(workload, adjacency, ZCDP(1e12))
    for released in (exact.release(records), exact.release(records, rng=1)):
        np.testing.assert_allclose(released.answers, workload.answers(records), atol=1e-4)


def test_draws_are_multiples_that_do_not_depend_on_records(monkeypatch):
    """If the difference of the noise cancels the difference of the records, releases are equal."""
    mechanism = built(WORKLOADS[0])
    records = mechanism.workload.universe.sample(N, 2)
    other = records.copy()
    other[0] = (other[0] + 1) % np.array([2, 3, 2])
    sums = [mechanism.measured(data).sums for data in (records, other)]
    unit = 1 << mechanism.grid
    monkeypatch.setattr(os, "urandom", seeded(5))
    path = mechanism.exact_path
    multiples = path.rounded.draw()
    moved = [j + int(a - b) * unit for j, a, b in zip(multiples, *sums, strict=True)]
    np.testing.assert_array_equal(
        path.means(sums[0], multiples, N),
        path.means(sums[1], moved, N),
    )


def shared_sums_agree(workload, answers):
    """Assert that tables, divided by their weights, have equal sums for the columns they share."""
    tables = [
        answers[cells].reshape(workload.shape(table)) / weight
        for table, cells, weight in zip(
            workload.tables, workload.slices, workload.table_weights, strict=True
        )
    ]
    for (s, first), (t, second) in itertools.combinations(enumerate(workload.tables), 2):
        shared = set(first) & set(second)
        own = tables[s].sum(axis=tuple(i for i, c in enumerate(first) if c not in shared))
        other = tables[t].sum(axis=tuple(i for i, c in enumerate(second) if c not in shared))
        np.testing.assert_allclose(own, other, atol=1e-9)


def test_tables_agree_on_the_columns_they_share(workload, adjacency):
    mechanism = built(workload, adjacency)
    records = workload.universe.sample(N, 2)
    for released in (mechanism.release(records), mechanism.release(records, rng=3)):
        shared_sums_agree(workload, released.answers)
        totals = [
            released.answers[cells].sum() / weight
            for cells, weight in zip(workload.slices, workload.table_weights, strict=True)
        ]
        np.testing.assert_allclose(totals, totals[0], rtol=1e-9)
        if adjacency is REPLACE:
            np.testing.assert_allclose(totals, 1.0, rtol=1e-9)
        else:
            assert abs(totals[0] - 1) > 1e-6


@pytest.mark.statistical
def test_intervals_cover(workload):
    noise = built(workload).noise
    draws = noise.sample(np.random.default_rng(2), 20_000)
    covered = np.abs(draws) <= half_widths(noise, 0.9)
    mean_agrees(covered, 0.9)
    together = (np.abs(draws) <= simultaneous_half_widths(noise, 0.9)).all(axis=1)
    binomial_above(int(together.sum()), len(draws), 0.9)


@pytest.mark.parametrize(
    ("workload", "options", "words"),
    [
        (WORKLOADS[0], {"privacy": PureDP(1.0)}, "ZCDP or ApproxDP for ResidualGaussian"),
        (WORKLOADS[0], {"n": 0}, "n must be"),
        (Prefixes(4), {}, "MarginalTables, ChosenTables or ProductQueries"),
        ("tables", {}, "MarginalTables, ChosenTables or ProductQueries"),
        (MarginalTables([1, 1], 2), {}, "constant"),
        (MarginalTables([400] * 3, 3), {}, r"2\^25 queries"),
    ],
    ids=repr,
)
def test_bad_arguments_are_refused(workload, options, words):
    with pytest.raises(ValueError, match=words):
        built(workload, **options)


def test_another_workload_and_post_processing():
    mechanism = built(WORKLOADS[0])
    assert mechanism.with_workload(WORKLOADS[1]).workload is WORKLOADS[1]
    records = WORKLOADS[0].universe.sample(N, 0)
    for kind in (Projected, Fitted):
        after = kind(mechanism)
        released = after.release(records)
        assert released.guarantee == mechanism.guarantee
        assert released.answers.min() >= -1e-9
        assert after.predicted_rmse.kind is PredictionKind.UPPER_BOUND


def test_counts_of_records_give_the_same_measurements():
    schema = gd.data.Schema.from_dict({"a": ["x", "y", "z"], "b": bool, "c": ["u", "v"]})
    workload = schema.workload("marginals", k=2)
    codes = workload.universe.sample(N, 4)
    labels = [["x", "y", "z"], [False, True], ["u", "v"]]
    frame = pd.DataFrame(
        {
            name: np.array(own)[codes[:, i]]
            for i, (name, own) in enumerate(zip("abc", labels, strict=True))
        }
    )
    counted = gd.data.count_records(gd.data.source_of(frame), schema, workload)
    mechanism = built(workload)
    np.testing.assert_array_equal(mechanism.measured(counted).sums, mechanism.measured(codes).sums)


def test_the_advisor_takes_it_for_tables():
    """The least exact prediction is for `ResidualGaussian`; for 100 columns there is no other."""
    for workload in WORKLOADS:
        advice = gd.advise(workload, n=1000, privacy=RHO)
        additive = advice.table[advice.table.kind == "exact"]
        assert additive.iloc[0].mechanism == "ResidualGaussian"
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
