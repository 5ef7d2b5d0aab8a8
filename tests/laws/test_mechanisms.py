"""Properties of the offline mechanisms in the catalogue."""

from __future__ import annotations

import math

import numpy as np
import pytest

from geomdp.mechanisms import AdditiveMechanism, Laplace
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import Marginals
from tests.mechanisms.catalogue import (
    ADDITIVE,
    MECHANISMS,
    OWN,
    SETTINGS,
    WORKLOADS,
    N,
    build,
    home,
)
from tests.stats import mean_at_most

#: Names of the additive mechanisms with pure privacy.
PURE = [name for name in ADDITIVE if isinstance(ADDITIVE[name].privacy, PureDP)]


@pytest.mark.parametrize("name", MECHANISMS | OWN)
def test_answers_are_computed_from_the_noisy_ones_alone(name):
    """The answers of a release are computed from its noisy answers, without the exact sums."""
    mechanism = build(name, home(name))
    records = mechanism.workload.universe.sample(N, 1)
    unseeded, release = mechanism.release(records), mechanism.release(records, rng=3)
    for found in (unseeded, release):
        np.testing.assert_array_equal(found.answers, mechanism.process(found.noisy.copy()))
    assert (unseeded.noisy != release.noisy).any()
    # The noisy answers are what the same seed draws for the exact sums.
    drawn = mechanism.draw(np.random.default_rng(3))(mechanism.totals(records).sums)
    np.testing.assert_array_equal(release.noisy, drawn)


@pytest.mark.parametrize(
    ("name", "adjacency"), [each for each in SETTINGS if not each[0].startswith("JL")]
)
def test_a_mechanism_for_another_workload_is_the_one_built_for_it(name, adjacency):
    """JL mechanisms are left out, because for another workload they draw a new random map."""
    workload = WORKLOADS["parities"]
    moved = build(name, home(name), adjacency).with_workload(workload)
    built = build(name, workload, adjacency)
    assert moved.guarantee == built.guarantee
    assert repr(moved) == repr(built)  # which says more once the guarantee is known
    assert moved.predicted_rmse == built.predicted_rmse


@pytest.mark.parametrize(
    # Laplace noise is left out, because it spans the whole space of answers.
    "name",
    [name for name, entry in ADDITIVE.items() if entry.density and entry.kind is not Laplace],
)
def test_nothing_outside_the_noise_is_released(name):
    """A change of the sums that is orthogonal to all noise does not change the answers."""
    mechanism = build(name, WORKLOADS["flat"])
    assert isinstance(mechanism, AdditiveMechanism)
    assert mechanism._hull is not None
    moves = mechanism._hull.basis
    outside = np.linalg.svd(moves, full_matrices=True)[0][:, moves.shape[1] :]
    sums = mechanism.totals(mechanism.workload.universe.sample(N, 1)).sums
    answers = mechanism.privatise(sums, np.random.default_rng(3))
    moved = mechanism.privatise(sums + 7 * outside.sum(axis=1), np.random.default_rng(3))
    np.testing.assert_allclose(moved, answers, rtol=0, atol=1e-12 * np.abs(sums).max())


@pytest.mark.statistical
@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("name", PURE)
def test_no_pure_noise_varies_less_than_the_best_for_one_count(name, adjacency):
    """For one counting query no additive epsilon-DP noise has less variance than geometric noise.

    This variance is 2 b / (1 - b)^2 with b = e^-epsilon (Ghosh-Roughgarden-Sundararajan 2009). At
    epsilon = 1 it is only 8% below the variance of Laplace noise. So the test fails if Laplace
    noise is too small by a fifth.
    """
    entry, one = ADDITIVE[name], Marginals(1, 1)
    noise = entry.build(one, N, entry.privacy, adjacency).noise
    b = math.exp(-entry.privacy.epsilon)
    draws = noise.sample(np.random.default_rng(5), 40_000)
    mean_at_most(2 * b / (1 - b) ** 2 - draws**2, 0.0)
    assert noise.variances()[0] >= 2 * b / (1 - b) ** 2
