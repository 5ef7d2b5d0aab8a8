"""Private choices follow their laws, are epsilon-DP, and keep the promised bound on the loss."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from geomdp.mechanisms import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, Selection
from geomdp.mechanisms.selection import MAX_QUERIES, ROUNDED_UP, spread
from geomdp.privacy import Adjacency, PureDP
from geomdp.privacy.guarantees import DECIDED_ARITHMETIC, FLOAT64_CAVEAT
from geomdp.workloads import Explicit, Histogram

KINDS = [ExponentialMechanism, ReportNoisyMax, PermuteAndFlip]
REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
#: Level of each statistical test.
LEVEL = 1e-6
DRAWS = 5_000

#: Queries over five elements. Some answers are negative, so a record can raise or lower a sum.
SIGNED = Explicit(
    np.array([[1.0, -1.0, 0.0, 2.0, 0.0], [0.0, 2.0, -1.0, -1.0, 0.0], [1.0, 1.0, 0.0, -1.0, 1.0]])
)
COUNTS = Explicit(np.array([[1.0, 0, 0, 1], [0, 1.0, 0, 1], [0, 0, 1.0, 0], [1, 1, 0, 0]]))


def choice(kind, workload, adjacency=REPLACE, n=4, epsilon=1.0) -> Selection:
    return kind(workload, n=n, privacy=PureDP(epsilon), adjacency=adjacency)


def largest_loss(mechanism: Selection, data) -> float:
    """The largest log-ratio of probabilities between a data set of `data` and a neighbour."""

    def probabilities(records: list[int]) -> np.ndarray:
        sums = mechanism.workload.evaluate(np.array(records)).sum(axis=0)
        return mechanism.probabilities(sums / mechanism.n)

    worst = 0.0
    for records in data:
        here = np.log(probabilities(records))
        kept = records if mechanism.adjacency is ADD else records[1:]
        for new in range(mechanism.workload.universe.size):
            there = np.log(probabilities([*kept, new]))
            worst = max(worst, float(np.abs(here - there).max()))
    return worst


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjacency", [REPLACE, ADD])
@pytest.mark.parametrize("workload", [SIGNED, COUNTS], ids=["signed", "counts"])
def test_no_neighbours_are_further_apart_than_epsilon(kind, adjacency, workload):
    mechanism = choice(kind, workload, adjacency, n=2)
    pairs = map(list, itertools.product(range(workload.universe.size), repeat=2))
    assert largest_loss(mechanism, pairs) <= 1.0 + 1e-7


@pytest.mark.parametrize("kind", KINDS)
def test_epsilon_is_reached(kind):
    # All records agree, so query 0 is far behind query 1. If a replaced record raises query 0 by 1
    # and lowers query 1 by 1, the probability of query 0 grows by nearly the factor e^epsilon.
    workload = Explicit(np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.0, 0.0, 0.0]]))
    mechanism = choice(kind, workload, REPLACE, n=100)
    far = [[1] * 100]
    reached = largest_loss(mechanism, far)
    assert 0.95 < reached <= 1.0 + 1e-7
    mechanism.spread *= 0.9
    assert largest_loss(mechanism, far) > 1.0 + 0.02


def test_spread_is_found_by_enumeration():
    answers = SIGNED.evaluate(np.arange(5))
    changes = [a - b for a in answers for b in answers]
    pairs = max(d.max() - d.min() for d in changes)
    assert spread(SIGNED, REPLACE) >= pairs
    assert spread(SIGNED, REPLACE) == 3.0 + 3.0
    assert spread(SIGNED, ADD) == 3.0
    assert max(a.max() - a.min() for a in answers) == 3.0
    assert spread(COUNTS, ADD) == 1.0
    assert spread(COUNTS, REPLACE) == 2.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [None, 5])
def test_choices_follow_the_law(kind, seed):
    mechanism = choice(kind, SIGNED, REPLACE, n=4, epsilon=3.0)
    records = np.array([0, 2, 4, 4])
    expected = mechanism.probabilities(SIGNED.answers(records)) * DRAWS
    assert expected.min() > 100
    # Without a seed, every run of the test draws new bits, and fails with probability `LEVEL`.
    rng = None if seed is None else np.random.default_rng(seed)
    found = np.bincount([mechanism.release(records, rng).index for _ in range(DRAWS)], minlength=3)
    assert chisquare(found, expected).pvalue > LEVEL
    # The law of noise that is a fifth smaller is rejected.
    mechanism.spread *= 0.8
    wrong = mechanism.probabilities(SIGNED.answers(records)) * DRAWS
    assert chisquare(found, wrong).pvalue < LEVEL


def test_laws_by_other_formulas():
    scores = np.array([0.3, -0.2, 1.1])
    unit = {"n": 1, "privacy": PureDP(1.0), "adjacency": ADD}
    counts = Explicit(np.eye(3))
    np.testing.assert_allclose(
        ExponentialMechanism(counts, **unit).probabilities(scores * ROUNDED_UP),
        np.exp(scores) / np.exp(scores).sum(),
        rtol=1e-12,
    )
    # Permute-and-flip goes through the candidates in random order. It takes a candidate of score s
    # with probability exp(s - max).
    law = np.zeros(3)
    for order in itertools.permutations(range(3)):
        left = 1.0
        for place in order:
            take = math.exp(scores[place] - scores.max())
            law[place] += left * take / 6
            left *= 1 - take
    np.testing.assert_allclose(PermuteAndFlip(counts, **unit).probabilities(scores), law, rtol=1e-8)
    two = Explicit(np.eye(2))
    # The lower of two candidates wins if a difference of two Laplace variables is above the gap.
    gap = 0.8
    behind = ReportNoisyMax(two, **unit).probabilities(np.array([0.0, gap]))[0]
    assert behind == pytest.approx((1 + gap / 2) * math.exp(-gap) / 2, rel=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gamma", [0.01, 0.3])
def test_loss_holds_and_is_nearly_reached(kind, gamma):
    mechanism = kind(Explicit(np.eye(6)), n=50, privacy=PureDP(0.7))
    bound = mechanism.loss(gamma)
    behind = np.zeros(6)
    behind[2] = bound * (1 + 1e-9)
    worst = 1 - mechanism.probabilities(behind)[2]
    # The other two are union bounds, and several rivals can be ahead together.
    reached = 1 - 1e-6 if kind is ExponentialMechanism else 0.5
    assert reached * gamma < worst <= gamma * (1 + 1e-6)
    random = np.random.default_rng(3)
    for _ in range(20):
        means = random.random(6) * 3 * bound
        bad = means < means.max() - bound
        assert mechanism.probabilities(means)[bad].sum() <= gamma


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gamma", [0.01, 0.3, 0.49, 0.5, 0.8])
def test_loss_of_two_queries_is_attained(kind, gamma):
    """A union bound over one rival is exact, and 0 for gamma of at least 1/2."""
    mechanism = kind(Explicit(np.eye(2)), n=50, privacy=PureDP(0.7))
    bound = mechanism.loss(gamma)
    if gamma >= 0.5:
        assert bound == 0.0
    else:
        worse = mechanism.probabilities(np.array([0.0, bound]))[0]
        assert worse == pytest.approx(gamma, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_record_says_how_it_was_decided(kind):
    records = np.array([0, 1, 2, 3])
    whole = choice(kind, COUNTS)
    assert whole.guarantee.arithmetic == DECIDED_ARITHMETIC
    released = whole.release(records)
    assert released.guarantee == whole.guarantee
    assert released.label == COUNTS.labels()[released.index]
    assert whole.release(records, 1).guarantee.seeded
    halves = Explicit(COUNTS.evaluate(np.arange(4)).T / 2)
    assert choice(kind, halves, REPLACE, n=4).guarantee.arithmetic == FLOAT64_CAVEAT
    assert choice(kind, COUNTS, REPLACE, n=2**53).guarantee.arithmetic == FLOAT64_CAVEAT


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (Histogram(MAX_QUERIES + 1), "at least 2 and at most 8192, got 8193"),
        (Explicit(np.array([[1.0, 0.0]])), "at least 2"),
        (Explicit(np.ones((2, 3))), "constant|vary"),
        # The scale of the noise would be rounded to a smaller number, or to infinity.
        (Explicit(1e-322 * np.eye(2)), "l1 norm from 1e-60"),
        (Explicit(1e300 * np.eye(2)), "l1 norm from 1e-60"),
    ],
)
def test_workloads_without_a_choice_or_with_too_many(workload, message):
    with pytest.raises(ValueError, match=message):
        ExponentialMechanism(workload, n=3, privacy=PureDP(1.0))
