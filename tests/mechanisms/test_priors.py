"""Predictions on public priors: simulation, its standard error, and bad priors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from geomdp.mechanisms import Ball, Coarse, Geometric, Laplace, PairMarginals, Projected
from geomdp.mechanisms.base import FixedDataset, predict_on_prior
from geomdp.privacy import PureDP
from geomdp.workloads import Marginals, Parities

WORKLOAD = Marginals(3, 2)
SETTING = {"n": 30, "privacy": PureDP(1.0)}
PRIOR = FixedDataset(WORKLOAD.universe.sample(30, 0))


@pytest.mark.statistical
def test_projection_does_better_at_a_vertex_than_its_bound():
    mechanism = Projected(Laplace(WORKLOAD, **SETTING))
    vertex = FixedDataset(np.zeros((30, 3), dtype=int))
    predicted = predict_on_prior(mechanism, vertex, 300, rng=1)
    assert predicted.value + 6 * predicted.stderr < mechanism.predicted_rmse.value
    assert "FixedDataset" in predicted.source


def test_predictions_are_the_root_of_the_mean_square_of_the_same_releases():
    """The standard error of a root is the standard error of the mean, divided by twice the root."""
    mechanism = Ball(WORKLOAD, **SETTING)
    predicted = predict_on_prior(mechanism, PRIOR, 5, rng=3)
    assert predicted == predict_on_prior(mechanism, PRIOR, 5, rng=3)
    rng, sums = np.random.default_rng(3), PRIOR.sums(WORKLOAD, 30)
    errors = [mechanism.privatise(sums, rng) - sums / 30 for _ in range(5)]
    squares = np.mean(np.square(errors), axis=1)
    assert predicted.value == pytest.approx(np.sqrt(squares.mean()), rel=1e-12)
    expected = scipy.stats.sem(squares) / (2 * predicted.value)
    assert predicted.stderr == pytest.approx(expected, rel=1e-12)


def test_a_mechanism_without_errors_is_predicted_to_have_none():
    """At this epsilon, geometric noise is 0 except with a negligible probability."""
    mechanism = Geometric(Marginals(3, 1), n=30, privacy=PureDP(1e4))
    predicted = predict_on_prior(mechanism, PRIOR, 5, rng=3)
    assert (predicted.value, predicted.stderr) == (0, 0)


class Watched(Marginals):
    """A workload that counts how often records are summed."""

    reads = 0

    def totals(self, records):
        self.reads += 1
        return super().totals(records)


def test_a_data_set_is_read_once_for_all_mechanisms_of_a_workload():
    workload = Watched(3, 2)
    noise = Laplace(workload, **SETTING)
    prior = FixedDataset(workload.universe.sample(30, 0))
    other = Ball(Parities(3, 1), **SETTING)
    for mechanism in (noise, Ball(workload, **SETTING), Projected(noise), other):
        assert predict_on_prior(mechanism, prior, 2, rng=0).value > 0
    assert workload.reads == 1


def test_noise_is_added_to_the_sums_of_the_mechanism():
    noise = Laplace(WORKLOAD, **SETTING)
    records = WORKLOAD.universe.sample(30, 0)
    pairs, coarse = PairMarginals(WORKLOAD, **SETTING), Coarse(Projected(noise), radius=0.5)
    for mechanism in (noise, Projected(noise), coarse, pairs):
        expected = mechanism.totals(records).sums
        np.testing.assert_array_equal(FixedDataset(records).inputs(mechanism), expected)


def test_bad_arguments():
    mechanism = Ball(WORKLOAD, **SETTING)
    for trials in (1, -2, 2.5):
        with pytest.raises(ValueError, match="trials"):
            predict_on_prior(mechanism, PRIOR, trials)
    with pytest.raises(ValueError, match="must number n = 30, got 31"):
        predict_on_prior(mechanism, FixedDataset(WORKLOAD.universe.sample(31, 0)), 5)
