"""Statistical assertions accept correct samples, reject wrong ones, and err at the stated rate."""

import numpy as np
import pytest

from tests import stats

RNG_SEEDS = range(100)


@pytest.mark.statistical
def test_correct_samples_pass_for_a_hundred_seeds():
    for seed in RNG_SEEDS:
        rng = np.random.default_rng(seed)
        stats.ks_uniform(rng.random(200))
        stats.ks_same(rng.standard_normal(300), rng.standard_normal(200))
        stats.mean_agrees(rng.standard_exponential((1000, 3)), np.ones(3))
        stats.mean_at_most(rng.random(1000), 0.5)
        stats.binomial_agrees(int(rng.binomial(500, 0.3)), 500, 0.3)


@pytest.mark.statistical
@pytest.mark.parametrize("check", [
    lambda rng: stats.ks_uniform(rng.random(2000) ** 1.3),
    lambda rng: stats.ks_uniform(rng.random(2000) + 0.1),
    lambda rng: stats.ks_same(rng.random(3000), rng.random(3000) ** 1.5),
    lambda rng: stats.mean_agrees(rng.standard_normal((4000, 2)) + np.array([0, 0.15]), 0.0),
    lambda rng: stats.mean_at_most(rng.random(4000), 0.45),
])  # fmt: skip
def test_wrong_samples_fail_for_a_hundred_seeds(check):
    for seed in RNG_SEEDS:
        with pytest.raises(AssertionError):
            check(np.random.default_rng(seed))


@pytest.mark.parametrize("check", [
    lambda: stats.ks_uniform(np.zeros(100)),
    lambda: stats.mean_agrees(np.ones(1000), 1.001),
    lambda: stats.mean_agrees(np.full(1000, np.nan), 0.0),
    lambda: stats.binomial_above(230, 1000, 0.3),
    lambda: stats.binomial_below(375, 1000, 0.3),
    lambda: stats.binomial_agrees(375, 1000, 0.3),
])  # fmt: skip
def test_given_wrong_numbers_fail(check):
    with pytest.raises(AssertionError):
        check()


@pytest.mark.statistical
def test_level_is_the_rate_of_false_alarms():
    """At level 0.2, the exact KS test of 30 uniforms fails about a fifth of the time."""
    failures = 0
    for seed in range(1000):
        try:
            stats.ks_uniform(np.random.default_rng(seed).random(30), level=0.2)
        except AssertionError:
            failures += 1
    stats.binomial_agrees(failures, 1000, 0.2)


def test_one_sided_tests_ignore_the_other_side():
    stats.mean_at_most(np.linspace(-1, 0, 1000), 5.0)
    stats.binomial_above(1000, 1000, 0.3)
    stats.binomial_below(0, 1000, 0.3)


def test_too_few_samples_are_an_error_of_the_test():
    with pytest.raises(ValueError, match="at least 1000"):
        stats.mean_agrees(np.zeros(10), 0.0)
    with pytest.raises(ValueError, match="at least 10"):
        stats.ks_uniform(np.zeros(3))
    with pytest.raises(ValueError, match="shape"):
        stats.mean_agrees(np.zeros((1000, 3)), np.zeros(2))
    with pytest.raises(ValueError, match="axes"):
        stats.ks_uniform(np.zeros((20, 2)))
