"""Audits refute false claims. They refute a true claim with probability at most 1e-6."""

import math

import numpy as np
import pytest

from geomdp.audit import (
    Pair,
    audit,
    audit_noise,
    audit_pairs,
    repeat,
)
from geomdp.audit.claims import smallest_violation
from geomdp.noise import LaplaceNoise
from geomdp.privacy import (
    ZCDP,
    Adjacency,
    ApproxDP,
    Approximate,
    Exact,
    Guarantee,
    Heuristic,
    PureDP,
    gaussian_delta,
    gaussian_scale,
    laplace_scale,
)
from geomdp.privacy.definitions import printed_down
from geomdp.workloads import Explicit
from tests.stats import audit_event, binomial_below

SEEDS = range(5)
TRIALS = 20_000


def laplace(centre, scale):
    return lambda trials, rng: rng.laplace(centre, scale, trials)


def gaussian(centre, scale):
    centre = np.asarray(centre, dtype=float)
    return lambda trials, rng: centre + scale * rng.standard_normal((trials, *centre.shape))


@pytest.mark.statistical
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_laplace_passes_and_half_the_noise_does_not(epsilon, seed):
    scale = laplace_scale(1.0, PureDP(epsilon))
    settings = {"trials": TRIALS, "rng": seed}
    honest = audit(laplace(0, scale), laplace(1, scale), PureDP(epsilon), **settings)
    assert not honest.refuted
    assert honest.epsilon_lower_bound <= epsilon
    halved = audit(laplace(0, scale / 2), laplace(1, scale / 2), PureDP(epsilon), **settings)
    assert halved.refuted
    assert epsilon < halved.epsilon_lower_bound <= 2 * epsilon


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("privacy", "trials"), [
    # With half the noise, the true delta of the first claim exceeds the claimed delta by only
    # 0.01, so the audit needs more outputs.
    (ApproxDP(1.0, 1e-5), 600_000),
    (ApproxDP(3.0, 1e-3), 60_000),
    (ZCDP(0.5), TRIALS),
    (ZCDP(2.0), TRIALS),
])  # fmt: skip
def test_gaussian_passes_and_half_the_noise_does_not(privacy, trials, seed):
    scale = gaussian_scale(1.0, privacy)
    neighbours = np.zeros(3), np.array([0.0, 0.6, 0.8])
    for factor, refuted in ((1.0, False), (0.5, True)):
        samples = (gaussian(centre, factor * scale) for centre in neighbours)
        result = audit(*samples, privacy, trials=trials, rng=seed)
        assert result.refuted is refuted
        # The lower bound on epsilon is true: at this epsilon, the noise has at least this delta.
        assert gaussian_delta(1.0, factor * scale, result.epsilon_lower_bound) >= result.delta


def randomised_response(bit, epsilon):
    truth = 1 / (1 + math.exp(-epsilon))
    return lambda trials, rng: np.where(rng.random(trials) < truth, bit, 1 - bit)


@pytest.mark.statistical
def test_false_alarms_stay_below_the_level_where_the_claim_is_tight():
    # For randomised response, the claim holds with equality: for the bit 1 in one order of the
    # inputs, and for the bit 0 in the other order.
    epsilon, level, audits = 1.0, 0.1, 600
    samples = randomised_response(1, epsilon), randomised_response(0, epsilon)
    alarms = sum(
        audit(*samples, PureDP(epsilon), trials=200, level=level, rng=seed).refuted
        for seed in range(audits)
    )
    binomial_below(alarms, audits, level)


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(5))
def test_order_and_complement_do_not_matter(seed):
    # Of the events {output > t}, only those with t >= 3 contradict the claim, and only in one order
    # of the inputs. The audit must find such an event in both orders, with both signs of the score.
    def truncated(trials, rng):
        return np.minimum(rng.laplace(0, 1, trials), 3.0)

    samples = laplace(0, 1.0), truncated
    for pair in (samples, samples[::-1]):
        for score in (np.positive, np.negative):
            assert audit(*pair, PureDP(0.1), trials=TRIALS, rng=seed, score=score).refuted


def test_infinite_scores_are_the_strongest_evidence():
    samples = (lambda trials, rng: np.zeros(trials)), (lambda trials, rng: np.ones(trials))
    result = audit(
        *samples,
        PureDP(5.0),
        trials=10_000,
        rng=0,
        score=lambda y: np.where(y == 0, np.inf, -np.inf),
    )
    assert result.refuted
    assert (result.hits_a, result.hits_b) == (5000, 0)
    assert str(result).startswith("The claim of 5-DP is refuted at level 1e-06. The event (")
    assert "held for 5000 of 5000 outputs on the first input and for 0 on" in str(result)
    shown = printed_down(result.epsilon_lower_bound, 4)
    assert f"an epsilon of at least {shown}. The smallest" in str(result)


def test_a_guarantee_is_audited_for_what_it_proves():
    pair = randomised_response(1, 1.0), randomised_response(0, 1.0)
    adjacency = Adjacency.REPLACE_ONE
    settings = {"trials": 100, "event": lambda bits: bits == 1, "rng": 0}
    exact = audit_event(*pair, Guarantee(PureDP(2.0), adjacency, Exact()), **settings)
    assert (exact.claimed_epsilon, exact.delta) == (2.0, 0.0)
    sampler = Approximate(1e-3, "a proof")
    approximate = audit_event(*pair, Guarantee(PureDP(2.0), adjacency, sampler), **settings)
    assert approximate.delta == (1 + math.exp(2)) * 1e-3
    heuristic = Guarantee(PureDP(2.0), adjacency, Heuristic("ten steps"))
    assert audit_event(*pair, heuristic, **settings).claimed_epsilon == 2.0


PAIR = laplace(0, 1.0), laplace(1, 1.0)


def drawn(outputs):
    """An audit whose first sampler is `outputs`."""
    return {"sample_a": outputs}


@pytest.mark.parametrize(("changed", "message"), [
    *(({"level": level}, "level must be above 0 and below 1") for level in (0.0, 1.0, -1e-6)),
    ({"level": math.nan}, "level must be above 0 and below 1"),
    ({"level": 5e-324}, "level must be at least 1e-300, got"),
    ({"level": 1e-301}, "level must be at least 1e-300, got"),
    *(({"trials": t}, "trials must be a whole number, at least 4") for t in (3, 0, 10.0)),
    ({"score": lambda y: y[:-1]}, "a score must have shape"),
    ({"score": lambda y: y[:, None]}, "a score must have shape"),
    ({"score": lambda y: np.full(len(y), np.nan)}, "must not be NaN, got 50 of 50"),
    (drawn(lambda trials, rng: np.zeros(trials - 1)), "a sampler must return 50 outputs"),
    (drawn(lambda trials, rng: 0.0), "a sampler must return 50 outputs"),
    (drawn(lambda trials, rng: [[1.0, 2.0]] * (trials - 1) + [[1.0]]), "must have one shape"),
    (drawn(repeat(lambda data, rng: np.ones(rng.integers(1, 3)), None)), "must have one shape"),
    (drawn(lambda trials, rng: np.ones((trials, 0))), "must hold at least 1 number"),
    (drawn(lambda trials, rng: np.full(trials, "above")), "outputs must be numeric unless"),
])  # fmt: skip
def test_what_is_no_audit_is_refused(changed, message):
    settings = {"sample_a": PAIR[0], "sample_b": PAIR[1], "trials": 100, "rng": 0, **changed}
    with pytest.raises(ValueError, match=message):
        audit(guarantee=PureDP(1.0), **settings)


def halves_of_width(first, second):
    """A sampler whose outputs have `first` entries on the first call, and then `second`."""
    widths = iter([first] + [second] * 9)
    return lambda trials, rng: rng.laplace(size=(trials, next(widths)))


@pytest.mark.parametrize("score", [None, lambda y: y[:, 0]])
@pytest.mark.parametrize("widths", [((3, 2), (3, 2)), ((3, 3), (3, 2)), ((3, 3), (2, 2))])
def test_a_change_of_shape_is_noticed(score, widths):
    samples = [halves_of_width(*each) for each in widths]
    with pytest.raises(ValueError, match="outputs must have one shape, got \\(3,\\) and then"):
        audit(*samples, PureDP(1.0), trials=100, rng=0, score=score)


@pytest.mark.statistical
@pytest.mark.parametrize(("rho", "factor"), [(0.05, 1.35), (0.5, 1.2), (2.0, 1.25)])
def test_gaussian_noise_that_understates_rho_a_little_is_refuted(rho, factor):
    """With so many outputs, events alone need rho understated by a factor of 1.5 or more."""
    neighbours = [np.zeros(2), np.array([0.6, 0.8])]
    for true, refuted in ((rho, False), (factor * rho, True)):
        scale = gaussian_scale(1.0, ZCDP(true))
        samples = (gaussian(centre, scale) for centre in neighbours)
        found = audit(*samples, ZCDP(rho), trials=500_000, rng=0)
        assert found.refuted is refuted
        assert found.rho_lower_bound <= true
        assert found.epsilon_lower_bound < found.claimed_epsilon
        # What could have been shown is between the claim and what was shown.
        assert rho < found.smallest_violation < factor * rho
        assert f"a rho of at least {printed_down(found.rho_lower_bound, 4)}" in str(found)


@pytest.mark.statistical
def test_false_alarms_of_renyi_tests_stay_below_the_level():
    """Gaussian noise attains its rho at every order. The first third of audits learns a score."""
    level, audits, rho = 0.1, 200, 0.5
    samples = gaussian(0.0, 1.0), gaussian(1.0, 1.0)
    results = [
        audit(*samples, ZCDP(rho), trials=400, level=level, rng=seed,
              score=None if seed % 3 == 0 else lambda y: 0.5 - y)
        for seed in range(audits)
    ]  # fmt: skip
    binomial_below(sum(found.refuted for found in results), audits, level)
    binomial_below(sum(found.rho_lower_bound > rho for found in results), audits, level / 2)


@pytest.mark.parametrize(("claim", "law"), [
    (PureDP(1.0), lambda epsilon: [randomised_response(bit, epsilon) for bit in (1, 0)]),
    (ZCDP(0.5), lambda rho: [gaussian(x, 1.0) for x in (0.0, math.sqrt(2 * rho))]),
], ids=["pure", "zcdp"])  # fmt: skip
@pytest.mark.statistical
def test_the_smallest_violation_is_where_audits_begin_to_refute(claim, law):
    """At 0.8 of the excess nearly no audit refutes, at 1.5 times nearly each does."""
    trials, level, audits = 8000, 1e-6, 20
    stated = claim.epsilon if isinstance(claim, PureDP) else claim.rho
    least = smallest_violation(claim, trials=trials // 2, level=level)
    assert stated < least < 2.2 * stated
    score = (lambda bits: bits) if isinstance(claim, PureDP) else (lambda y: 0.5 - y)
    refuted = [
        sum(
            audit(*law(stated + share * (least - stated)), claim, trials=trials, level=level,
                  rng=seed, score=score).refuted
            for seed in range(audits)
        )
        for share in (0.5, 1.5)
    ]  # fmt: skip
    assert refuted[0] <= 2
    assert refuted[1] >= audits - 2
    assert smallest_violation(claim, trials=1) == math.inf


#: The noise is Laplace noise on one number, and the best event, {output < 0}, is known with its
#: probabilities. FACTOR is the largest noise factor that this event, at expected counts, refutes
#: with a third of the draws. An audit that tested on a quarter of them would refute it too rarely.
CLAIM, DRAWN, FACTOR = PureDP(1.0), 12_000, 0.7855
#: Number of audits, and the least number that must refute. With half of the draws, each audit
#: refutes with probability 0.9 or more; with a quarter, with probability 0.3 or less.
AUDITS, LEAST = 40, 26


def one_pair(factor, seed):
    return audit(laplace(0, factor), laplace(1, factor), CLAIM, trials=DRAWN, rng=seed)


def several_pairs(factor, seed):
    pairs = [Pair(f"0 and {end}", laplace(0, factor), laplace(end, factor)) for end in (0.5, 1)]
    return audit_pairs(pairs, CLAIM, trials=DRAWN, rng=seed)


def additive_noise(factor, seed):
    guarantee = Guarantee(CLAIM, Adjacency.REPLACE_ONE, Exact())
    workload, correct = Explicit([[0.0, 1.0]]), LaplaceNoise(1, 1.0)
    noise, density = LaplaceNoise(1, factor), correct.log_density_ratio
    settings = {"trials": DRAWN, "rng": seed}
    return audit_noise(noise, workload, guarantee, density=density, **settings)


@pytest.mark.statistical
@pytest.mark.parametrize("audited", [one_pair, several_pairs, additive_noise])
def test_audits_refute_what_a_third_of_the_draws_refutes(audited):
    refuted = sum(audited(FACTOR, seed).refuted for seed in range(AUDITS))
    assert refuted >= LEAST, f"{refuted} of {AUDITS}"
