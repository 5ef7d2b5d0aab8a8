"""With all its draws, an audit refutes what the best event refutes with a third of them.

The noise is Laplace noise on one number, and the best event, {output < 0}, is known. Its
probabilities are known too. So the largest noise factor that this event refutes with a third of the
draws can be computed. An audit tests on one half of its draws. It would refute this factor too
rarely if it tested on a quarter of them, or if it had a weaker score.
"""

import math

import pytest

from geomdp.audit import Pair, audit, audit_noise, audit_pairs, lower_bound, upper_bound
from geomdp.noise import LaplaceNoise
from geomdp.privacy import Adjacency, Exact, Guarantee, PureDP
from geomdp.workloads import Explicit

CLAIM, LEVEL = PureDP(1.0), 1e-6
TRIALS = 12_000
#: Number of audits, and the least number that must refute. With half of the draws, each audit
#: refutes with probability 0.9 or more; with a quarter, with probability 0.3 or less.
AUDITS, LEAST = 40, 26


def best_event_refutes(factor, draws):
    """Whether {output < 0} refutes the claim, if its counts have their expected values."""
    hits_a, hits_b = draws / 2, draws * math.exp(-1 / factor) / 2
    low = lower_bound(math.floor(hits_a), draws, LEVEL / 4)
    return low > math.e * upper_bound(math.ceil(hits_b), draws, LEVEL / 4)


def factor_refuted(draws):
    """The largest noise factor that the best event refutes with this number of draws."""
    low, high = 0.1, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if best_event_refutes(middle, draws) else (low, middle)
    return low


def laplace(centre, scale):
    return lambda trials, rng: rng.laplace(centre, scale, trials)


def one_pair(factor, seed):
    return audit(laplace(0, factor), laplace(1, factor), CLAIM, trials=TRIALS, rng=seed)


def several_pairs(factor, seed):
    pairs = [Pair(f"0 and {end}", laplace(0, factor), laplace(end, factor)) for end in (0.5, 1)]
    return audit_pairs(pairs, CLAIM, trials=TRIALS, rng=seed)


def additive_noise(factor, seed):
    guarantee = Guarantee(CLAIM, Adjacency.REPLACE_ONE, Exact())
    workload, correct = Explicit([[0.0, 1.0]]), LaplaceNoise(1, 1.0)
    noise, density = LaplaceNoise(1, factor), correct.log_density_ratio
    settings = {"trials": TRIALS, "rng": seed}
    return audit_noise(noise, workload, guarantee, density=density, **settings)


AUDITED = (one_pair, several_pairs, additive_noise)


@pytest.mark.statistical
@pytest.mark.parametrize("audited", AUDITED)
def test_audits_refute_what_a_third_of_the_draws_refutes(audited):
    factor = factor_refuted(TRIALS // 3)
    refuted = sum(audited(factor, seed).refuted for seed in range(AUDITS))
    assert refuted >= LEAST, f"{refuted} of {AUDITS} at the factor {factor:.3f}"


@pytest.mark.statistical
@pytest.mark.parametrize("audited", AUDITED)
def test_no_audit_refutes_what_only_twice_the_draws_refute(audited):
    """An audit that often refuted this factor would use narrower bounds than its level allows."""
    factor = factor_refuted(2 * TRIALS)
    refuted = sum(audited(factor, seed).refuted for seed in range(AUDITS))
    assert refuted <= AUDITS - LEAST, f"{refuted} of {AUDITS} at the factor {factor:.3f}"
