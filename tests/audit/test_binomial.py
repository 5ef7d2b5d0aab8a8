import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from geomdp.audit import lower_bound, upper_bound

TRIALS = 25
COUNTS = np.arange(TRIALS + 1)


@pytest.mark.parametrize("level", [1e-6, 0.01, 0.3])
def test_the_bounds_miss_with_at_most_the_stated_probability(level):
    lower, upper = lower_bound(COUNTS, TRIALS, level), upper_bound(COUNTS, TRIALS, level)
    rounding = 1e-12  # bound on the float64 error of the sums of probabilities
    for p in np.linspace(0, 1, 401):
        mass = scipy.stats.binom.pmf(COUNTS, TRIALS, p)
        assert mass[lower > p].sum() <= level + rounding
        assert mass[upper < p].sum() <= level + rounding


@given(st.integers(1, 10**6), st.data(), st.floats(1e-9, 0.5))
def test_the_bounds_solve_the_binomial_tail(trials, data, level):
    k = data.draw(st.integers(0, trials))
    lower, upper = float(lower_bound(k, trials, level)), float(upper_bound(k, trials, level))
    assert 0 <= lower <= k / trials <= upper <= 1
    if k > 0:
        assert scipy.stats.binom.sf(k - 1, trials, lower) == pytest.approx(level, rel=1e-6, abs=0)
    if k < trials:
        assert scipy.stats.binom.cdf(k, trials, upper) == pytest.approx(level, rel=1e-6, abs=0)
