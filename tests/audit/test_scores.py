"""Scores learned from outputs find violations of privacy and do not refute correct noise."""

import itertools
import math

import numpy as np
import pytest

from geomdp.audit import CLASSIFIER, DEFAULT_LEARNERS, Learner, Pair, audit, audit_pairs
from geomdp.audit.scores import classifier_score, fisher_score, null_space_score, outcome_score
from geomdp.privacy import ZCDP, PureDP
from tests.stats import binomial_below

ONE = PureDP(1.0)
TRIALS = 4000


def shifted(draws, centre):
    """A sampler that adds the noise of `draws` to `centre`."""
    centre = np.asarray(centre, dtype=float)
    return lambda trials, rng: centre + draws(trials, rng)


def laplace(scale, m=3):
    return lambda trials, rng: rng.laplace(0, scale, (trials, m))


def dead(trials, rng):
    return laplace(3.0)(trials, rng) * [1, 1, 0]


def shared(trials, rng):
    return rng.laplace(0, 3.0, (trials, 2))[:, [0, 1, 1]]


def wrong_plane(trials, rng):
    return rng.laplace(0, 3.0, (trials, 2)) @ [[0.0, 0.6, 0.8], [1.0, 0.0, 0.0]]


def silent(trials, rng):
    return np.zeros((trials, 3))


CENTRES = np.zeros(3), np.array([0.0, 0.0, 1.0])


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("draws", [dead, shared, wrong_plane, silent])
def test_noise_that_misses_a_direction_is_refuted(draws, seed):
    samples = [shifted(draws, centre) for centre in CENTRES]
    found = audit(*samples, ONE, trials=TRIALS, rng=seed)
    assert found.refuted
    # All n outputs on one input are in the event, and none on the other input are. The bounds on
    # the two probabilities are then (level / 4)^(1/n) and 1 - (level / 4)^(1/n), at level 1e-6.
    n = found.trials
    assert {found.hits_a, found.hits_b} == {0, n}
    tail = (1e-6 / 4) ** (1 / n)
    assert found.epsilon_lower_bound == pytest.approx(math.log(tail / (1 - tail)), rel=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("draws", [laplace(1.0), wrong_plane])
def test_correct_noise_is_not(draws, seed):
    # The inputs differ by (0, 0.6, 0.8). Along this axis, `wrong_plane` has Laplace noise of scale
    # 3, so it is 1/3-private. `laplace(1.0)` is 1.4-private, because 0.6 + 0.8 = 1.4.
    samples = [shifted(draws, centre) for centre in (CENTRES[0], [0.0, 0.6, 0.8])]
    assert not audit(*samples, PureDP(1.4), trials=TRIALS, rng=seed).refuted


def test_rounding_is_no_evidence():
    """In directions without noise, outputs on the two inputs differ by rounding errors only."""
    basis = np.linalg.qr(np.random.default_rng(1).standard_normal((6, 3)))[0]
    change = basis @ [0.3, -0.2, 0.1]
    centre = basis @ np.array([1e6, 2e6, -1e6])

    def outputs(point):
        def sample(trials, rng):
            return (point @ basis + rng.laplace(0, 1.0, (trials, 3))) @ basis.T

        return sample

    a, b = (outputs(point)(1000, np.random.default_rng(i)) for i, point in enumerate(
        (centre, centre + change)
    ))  # fmt: skip
    # Outside the space of the noise, the means differ by a rounding error of sums of about 1e6.
    assert null_space_score(a, b) is None
    # In a direction without noise, a gap counts if it is above 2^-30 times the largest output, in
    # units of the largest output of each coordinate.
    largest = np.maximum(np.abs(a).max(axis=0), np.abs(b).max(axis=0))
    normal = largest * np.linalg.svd(basis.T / largest)[2][-1]
    assert null_space_score(a, b + 1.01 * 2.0**-30 * normal) is not None
    assert null_space_score(a, b + 0.9 * 2.0**-30 * normal) is None


@pytest.mark.statistical
@pytest.mark.parametrize("public", [1e10, 1e14, -3e12 / 7])
@pytest.mark.parametrize("leak", [1.0, 0.7])
def test_a_large_public_coordinate_hides_no_leak_in_another(public, leak):
    def outputs(value):
        return lambda trials, rng: np.column_stack(
            [np.full(trials, public), rng.laplace(0, 3.0, trials), np.full(trials, value)]
        )

    assert audit(outputs(0.25), outputs(0.25 + leak), ONE, trials=400, rng=0).refuted
    assert not audit(outputs(0.25), outputs(0.25), ONE, trials=400, rng=0).refuted


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "public"), [
    *itertools.product([np.int64, np.uint64, np.float64], [0, 10**10, 2**53 - 2]),
    (np.int64, 2**63 - 2),
    (np.uint64, 2**64 - 2),
])  # fmt: skip
def test_whole_numbers_have_no_rounding_errors(kind, public):
    """One coordinate holds a large public number plus a bit of the input."""

    def outputs(bit):
        return lambda trials, rng: np.column_stack(
            [np.full(trials, public + bit, dtype=kind), rng.integers(0, 9, trials).astype(kind)]
        )

    assert audit(outputs(0), outputs(1), ONE, trials=400, rng=0).refuted
    assert not audit(outputs(1), outputs(1), ONE, trials=400, rng=0).refuted


@pytest.mark.statistical
@pytest.mark.parametrize("learner", [*DEFAULT_LEARNERS, CLASSIFIER], ids=str)
@pytest.mark.parametrize("share", [0.0, 0.02, 1.0])
def test_infinite_and_missing_entries_are_no_error(learner, share):
    """Each learner accepts them, and refutes no claim if both inputs have as many."""

    def outputs(trials, rng):
        rows = rng.laplace(0, 3.0, (trials, 3))
        for column, value in enumerate((np.nan, np.inf, -np.inf)):
            rows[rng.random(trials) < share, column] = value
        return rows

    pair = Pair("same", outputs, outputs, (learner,))
    assert not audit_pairs([pair], PureDP(0.1), trials=4000, rng=0).refuted


@pytest.mark.statistical
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_an_entry_that_is_not_finite_on_one_input_only_is_a_refutation(value):
    """If it is less likely on the other input, the claim is refuted that the ratio exceeds."""

    def outputs(share):
        def sample(trials, rng):
            rows = rng.laplace(0, 10.0, (trials, 2))
            rows[rng.random(trials) < share, 1] = value
            return rows

        return sample

    only = audit(outputs(0.05), outputs(0.0), PureDP(3.0), trials=20_000, rng=0)
    assert only.refuted
    assert "NaN and infinite" in only.event
    often = outputs(0.2), outputs(0.2 * math.exp(-1.5))
    assert audit(*often, ONE, trials=20_000, rng=0).refuted
    assert not audit(*often, PureDP(1.5), trials=20_000, rng=0).refuted


def test_what_a_far_larger_coordinate_hides_is_said():
    """Units in the last place of a public 1e18 are 128, so a leak of 0.4 may be their rounding."""

    def outputs(value):
        return lambda trials, rng: np.column_stack([np.full(trials, 1e18), np.full(trials, value)])

    found = audit(outputs(0.3), outputs(0.7), ONE, trials=400, rng=0)
    assert (found.refuted, found.unseen) == (False, pytest.approx(0.4, rel=1e-12))
    assert "Differences up to 0.4 were taken for rounding errors" in str(found)


@pytest.mark.parametrize("claim", [ONE, ZCDP(0.5)], ids=str)
def test_the_largest_numbers_are_audited_without_a_warning(claim):
    def outputs(trials, rng):
        return np.where(rng.random((trials, 2)) < 0.5, 1.7e308, [-1.7e308, 0.5])

    found = audit(outputs, outputs, claim, trials=400, rng=0)
    assert (found.refuted, found.unseen) == (False, 0)


@pytest.mark.parametrize("learn", [outcome_score, classifier_score])
def test_rounding_of_atoms_is_no_evidence(learn):
    """Rounding turns the outcome 1 into 1 - 2^-53 on one input; both get the same score."""
    rng = np.random.default_rng(0)
    a, b = (np.where(rng.random(1000) < 0.5, atom, 0.5) for atom in (1.0, 1 - 2.0**-53))
    score = learn(a, b)
    np.testing.assert_array_equal(score(np.array([1.0])), score(np.array([1 - 2.0**-53])))
    # Outcomes that are 1/1000 apart are different.
    score = learn(a, b - 1e-3)
    assert score(np.array([1.0])) > score(np.array([1 - 1e-3]))


def test_few_outputs_span_no_space():
    assert null_space_score(*np.random.default_rng(0).laplace(size=(2, 5, 10))) is None


def test_the_linear_score_is_not_blinded_by_scales():
    """One direction has 1e-7 times the noise of the other, so 1e-14 times the variance."""
    rng = np.random.default_rng(0)
    spreads = np.array([1.0, 1e-7])
    a, b = (centre + spreads * rng.standard_normal((4000, 2)) for centre in ([0, 0], [0, 1e-7]))
    weights = fisher_score(a, b)(np.diag(spreads))
    # The score is half the log-density ratio. Per standard deviation its slopes are 0 and -1/2, up
    # to a few sampling errors of size 1 / sqrt(4000).
    np.testing.assert_allclose(weights, [0.0, -0.5], atol=6 / math.sqrt(4000))


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(2))
def test_atoms_are_seen_in_continuous_laws(seed):
    """A chain that stays at its start with probability 0.2 has an atom at the true answer."""

    def stuck(centre):
        def sample(trials, rng):
            noise = rng.laplace(0, 1.0, trials)
            return centre + np.where(rng.random(trials) < 0.2, 0.0, noise)

        return sample

    found = audit(stuck(0.0), stuck(1.0), ONE, trials=TRIALS, rng=seed)
    assert found.refuted
    assert "frequency" in found.event


def test_outcomes_score_their_log_ratio():
    a, b = np.array([[1, 2], [1, 2], [0, 0], [7, 7]]), np.array([[0, 0], [0, 0], [1, 2], [8, 8]])
    score = outcome_score(a, b)
    expected = [math.log(2.5 / 1.5), math.log(1.5 / 2.5), 0, 0, 0]
    found = score(np.array([[1, 2], [0, 0], [7, 7], [8, 8], [2, 1]]))
    np.testing.assert_allclose(found, expected)
    # Floats: 0.0 and -0.0 are one outcome, seen once on each input, so its score is 0. NaN was seen
    # only once, so its score is 0, too.
    score = outcome_score(np.array([np.nan, 0.0]), np.array([1.0, -0.0]))
    np.testing.assert_allclose(score(np.array([-0.0, np.nan])), [0.0, 0.0])
    assert outcome_score(np.array([1.0, 2.0]), np.array([3.0, 4.0])) is None


def cells(heavy):
    """A sampler of 8 cells. Inner cells have mass 1.8 / 8 if of parity `heavy`, else 0.2 / 8."""
    masses = np.array([1.0, *[1.8 if i % 2 == heavy else 0.2 for i in range(1, 7)], 1.0]) / 8
    return lambda trials, rng: rng.choice(8, trials, p=masses) + rng.random(trials)


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(2))
def test_a_classifier_sees_what_no_threshold_does(seed):
    # The probabilities of an inner cell on the two inputs have the ratio 9. For half-lines, the
    # ratio is at most 2.8 / 1.2, whose logarithm is below 1.
    samples = cells(0), cells(1)
    assert not audit(*samples, ONE, trials=2 * TRIALS, rng=seed).refuted
    pair = Pair("cells", *samples, learners=(*DEFAULT_LEARNERS, CLASSIFIER))
    found = audit_pairs([pair], ONE, trials=2 * TRIALS, rng=seed)
    assert found.refuted
    assert found.pair == "cells"
    assert "classifier" in found.event


def test_a_classifier_needs_enough_outputs():
    few = np.random.default_rng(0).laplace(size=(2, 100, 2))
    assert classifier_score(*few) is None
    # If no learner finds a score, the event contains all outputs, so nothing is refuted.
    samples = [shifted(laplace(1e-3), centre) for centre in CENTRES]
    found = audit_pairs([Pair("few", *samples, learners=(CLASSIFIER,))], ONE, trials=100, rng=0)
    assert (found.refuted, found.hits_a, found.hits_b) == (False, 50, 50)


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(2))
def test_the_worst_of_many_pairs_is_found(seed):
    harmless = Pair("equal inputs", *[shifted(laplace(1.0, 1), [0.0])] * 2)
    near = Pair("too close", *[shifted(laplace(1.0, 1), [x]) for x in (0.0, 0.5)])
    far = Pair("too far", *[shifted(laplace(1.0, 1), [x]) for x in (0.0, 2.0)])
    found = audit_pairs([harmless, near, far, harmless], ONE, trials=20_000, rng=seed)
    assert (found.refuted, found.pair) == (True, "too far")
    assert not audit_pairs([harmless, near], ONE, trials=20_000, rng=seed).refuted
    with pytest.raises(ValueError, match="pairs must hold at least 1"):
        audit_pairs([], ONE, trials=100)
    with pytest.raises(ValueError, match="trials must be a whole number, at least 32"):
        audit_pairs([near, far], ONE, trials=31)


@pytest.mark.statistical
def test_a_search_does_not_believe_what_it_memorised():
    def forget(_a, _b):
        memory = []

        def score(outputs):
            if not memory:  # the first call gets outputs that choose the event
                memory.append(outputs.copy())
            return np.isin(outputs, memory[0]).astype(float)

        return score

    same = [lambda trials, rng: rng.laplace(size=trials)] * 2
    pair = Pair("same", *same, (Learner("memory", forget),))
    one = audit(*same, PureDP(0.1), trials=2000, score=forget(None, None), rng=0)
    for found in (one, audit_pairs([pair], PureDP(0.1), trials=2000, rng=0)):
        assert (found.refuted, found.hits_a, found.hits_b) == (False, 0, 0)


@pytest.mark.statistical
def test_false_alarms_of_a_search_stay_below_the_level():
    """Randomised response attains epsilon, so an audit has no slack.

    If the outputs that choose the event also tested it, there would be too many alarms.
    """
    truth = 1 / (1 + math.exp(-1.0))

    def respond(bit):
        return lambda trials, rng: np.where(rng.random(trials) < truth, bit, 1 - bit)

    pairs = [Pair(f"copy {i}", respond(1), respond(0)) for i in range(4)]
    level, audits = 0.1, 200
    alarms = sum(
        audit_pairs(pairs, ONE, trials=256, level=level, rng=seed).refuted for seed in range(audits)
    )
    binomial_below(alarms, audits, level)
