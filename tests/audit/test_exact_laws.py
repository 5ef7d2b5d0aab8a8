"""Privacy losses agree with closed forms and dp-accounting, and sparse vector laws with runs."""

import itertools
import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from dp_accounting.pld import privacy_loss_distribution as peer

from geomdp.audit import Pair, audit_pairs, law_learner
from geomdp.audit.privacy_loss import PrivacyLoss, SparseVectorLaw
from geomdp.mechanisms import AboveThreshold, Sparse
from geomdp.mechanisms.interactive import budgets
from geomdp.privacy import ZCDP, ApproxDP, PureDP
from tests.stats import LEVEL

BELOW, ABOVE, UNASKED = 0, 1, -1


def responses(epsilon):
    truth = 1 / (1 + math.exp(-epsilon))
    return [truth, 1 - truth], [1 - truth, truth]


def test_randomised_response_loses_its_epsilon():
    loss = PrivacyLoss.of_laws(*responses(1.3))
    assert loss.epsilon() == pytest.approx(1.3, rel=1e-14)
    assert loss.delta(1.3) == pytest.approx(0, abs=1e-15)
    assert loss.delta(0.0) == pytest.approx(math.tanh(1.3 / 2), rel=1e-14)
    # The Renyi divergence of order 2 is ln(sum p^2 / q).
    p, q = map(np.array, responses(1.3))
    assert loss.renyi(2.0) == pytest.approx(math.log((p**2 / q).sum()), rel=1e-13)
    # epsilon(delta) is the inverse function of delta(epsilon).
    assert loss.epsilon(loss.delta(0.7)) == pytest.approx(0.7, rel=1e-12)
    assert loss.epsilon(0.6) == 0.0


def test_impossible_outcomes_lose_everything():
    loss = PrivacyLoss.of_laws([0.5, 0.4, 0.1], [0.5, 0.5, 0.0])
    assert loss.epsilon() == math.inf
    assert loss.renyi(2.0) == math.inf
    assert loss.delta(50.0) == 0.1
    assert loss.refutes(PureDP(100.0))
    assert loss.refutes(ZCDP(100.0))
    assert not loss.refutes(ApproxDP(0.5, 0.1))
    assert loss.refutes(ApproxDP(0.5, 0.0999))


@pytest.mark.parametrize("factor", [1 - 1e-6, 1 + 1e-6])
def test_claims_are_judged_to_a_millionth(factor):
    """A claim is refuted at 1 - 1e-6 times the least true value, and not at 1 + 1e-6 times."""
    p, q = scipy.stats.binom.pmf(np.arange(21), 20, [[0.4], [0.45]])
    loss = PrivacyLoss.of_laws(p, q)
    refuted = factor < 1
    assert loss.refutes(PureDP(factor * loss.epsilon())) is refuted
    assert loss.refutes(ApproxDP(0.5, factor * loss.delta(0.5))) is refuted
    rho = loss.excess(ZCDP(1.0)) + 1.0
    assert loss.refutes(ZCDP(factor * rho)) is refuted


def discretised(distribution, shift, edges):
    """For each cell between two edges, the probability that a draw plus `shift` falls in it."""
    return np.diff(distribution.cdf(np.concatenate([[-np.inf], edges, [np.inf]]) - shift))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.9, 1.5])
def test_losses_agree_with_dp_accounting(epsilon):
    """Draws are grouped into cells of width 1e-3. This can lower delta, by less than the width."""
    width = 1e-3
    edges = np.arange(-9, 10, width)
    gaussian = peer.from_gaussian_mechanism(1.0, value_discretization_interval=1e-4)
    laplace = peer.from_laplace_mechanism(1.0, value_discretization_interval=1e-4)
    for law, other in ((scipy.stats.norm(), gaussian), (scipy.stats.laplace(), laplace)):
        found = PrivacyLoss.of_laws(*(discretised(law, shift, edges) for shift in (0.0, 1.0)))
        expected = other.get_delta_for_epsilon(epsilon)
        assert expected - width <= found.delta(epsilon) <= expected + 1e-12


@pytest.mark.parametrize("bad", [([1.0], [0.5, 0.5]), ([0.5, 0.4], [0.5, 0.5]), ([-1.0, 2.0],) * 2])
def test_laws_are_checked(bad):
    with pytest.raises(ValueError, match="laws must be"):
        PrivacyLoss.of_laws(*bad)


TRUTHS = np.array([0.3, -1.0, 0.7])
SCALES = {
    "kept": budgets.kept(PureDP(2.0), 2, monotone=False),
    "redrawn": budgets.redrawn(PureDP(2.0), 2, monotone=False),
}


@pytest.mark.parametrize("name", SCALES)
def test_transcripts_and_their_probabilities(name):
    law = SparseVectorLaw(TRUTHS, SCALES[name], 2)
    rows = {tuple(row): p for row, p in zip(law.transcripts, law.probabilities, strict=True)}
    # All patterns of three outcomes. If the first two are above, the third query is not asked.
    expected = {
        (*pattern[:2], UNASKED) if pattern[:2] == (ABOVE, ABOVE) else pattern
        for pattern in itertools.product([BELOW, ABOVE], repeat=3)
    }
    assert set(rows) == expected
    assert law.probabilities.sum() == pytest.approx(1, abs=1e-13)
    # The probability that all queries are below, by adaptive integration. Without a query above,
    # both variants draw the threshold noise only once.
    threshold, query = (scipy.stats.laplace(scale=s) for s in (SCALES[name].threshold,
                                                               SCALES[name].query))  # fmt: skip
    value, _ = scipy.integrate.quad(
        lambda t: threshold.pdf(t) * np.prod(query.cdf(t - TRUTHS)),
        -60, 60, points=[0.0, *TRUTHS], limit=500, epsabs=1e-12,
    )  # fmt: skip
    assert rows[(BELOW,) * 3] == pytest.approx(value, abs=1e-10)


def test_redrawn_thresholds_are_independent():
    """After a query found above, outcomes do not depend on the first threshold noise."""
    law = SparseVectorLaw(TRUTHS, SCALES["redrawn"], 2)
    rows = {tuple(row): p for row, p in zip(law.transcripts, law.probabilities, strict=True)}
    first = sum(p for row, p in rows.items() if row[0] == ABOVE)
    second = SparseVectorLaw(TRUTHS[1:2], SCALES["redrawn"], 1).probabilities[1]
    assert rows[ABOVE, ABOVE, UNASKED] == pytest.approx(first * second, rel=1e-12)


def run(stream, truths):
    row = np.full(len(truths), UNASKED)
    answers = [answer.above for answer in stream.ask_many(truths)]
    row[: len(answers)] = answers
    return row


def sparse(truths, factor=1.0):
    """Sample 2-DP `Sparse`, which keeps its threshold noise, with all noise times `factor`."""

    def sample(trials, rng):
        return np.array(
            [
                run(Sparse(0.0, cutoff=2, privacy=PureDP(2.0), sensitivity=factor, rng=rng), truths)
                for _ in range(trials)
            ]
        )

    return sample


@pytest.mark.statistical
def test_runs_follow_the_law():
    trials = 6000
    law = SparseVectorLaw(TRUTHS, SCALES["kept"], 2)
    rows = sparse(TRUTHS)(trials, np.random.default_rng(2))
    counts = (rows[:, None] == law.transcripts).all(axis=2).sum(axis=0)
    assert counts.sum() == trials
    assert scipy.stats.chisquare(counts, trials * law.probabilities).pvalue > LEVEL


@pytest.mark.statistical
@pytest.mark.parametrize(("factor", "refuted"), [(1.0, False), (0.4, True)])
def test_runs_are_audited_by_their_exact_law(factor, refuted):
    first = np.array([0.0, 0.0, 1.0, 1.0])
    laws = [SparseVectorLaw(truths, SCALES["kept"], 2) for truths in (first, 1 - first)]
    pair = Pair(
        "four queries", sparse(first, factor), sparse(1 - first, factor), (law_learner(*laws),)
    )
    found = audit_pairs([pair], PureDP(2.0), trials=16_000, rng=3)
    assert found.refuted is refuted
    assert "exact probabilities" in found.event


def losses(scales, first, moves):
    """Losses of a run that halts at the first answer above, in both orders of the two inputs."""
    first = scales.query * np.array(first)
    laws = [SparseVectorLaw(truths, scales, 1).probabilities for truths in (first, first + moves)]
    return [PrivacyLoss.of_laws(*pair) for pair in (laws, laws[::-1])]


def test_above_threshold_is_exactly_tight():
    """DISC-12: Lap(4 / eps) on queries is tight. A stream of four queries loses nearly eps."""
    claim, stream = PureDP(1.0), ((16.0, 16.0, 16.0, -16.0), (-1.0, -1.0, -1.0, 1.0))
    found = losses(budgets.above_threshold(1.0, monotone=False), *stream)
    assert not any(loss.refutes(claim) for loss in found)
    assert max(loss.epsilon() for loss in found) == pytest.approx(1.0, abs=0.02)
    # With 3% less noise on the queries, the exact loss exceeds the claim.
    less = budgets.Scales(threshold=2.0, query=3.88, answer=None, redraw=True)
    assert any(loss.refutes(claim) for loss in losses(less, *stream))


#: Distances of true answers from the threshold, in units of the scale of the noise on queries.
DISTANCES = (-16.0, -4.0, -1.0, 0.0, 1.0, 4.0, 16.0)


def test_monotone_noise_does_not_serve_general_queries():
    claim, noise = PureDP(1.0), budgets.above_threshold(1.0, monotone=True)
    for first in itertools.combinations_with_replacement(DISTANCES, 3):
        assert not any(loss.refutes(claim) for loss in losses(noise, first, np.ones(3)))
    found = losses(noise, (16.0, 16.0, -16.0), (-1.0, -1.0, 1.0))
    # The largest loss over general streams tends to 1.5 as the number of queries grows.
    assert any(loss.refutes(claim) for loss in found)
    assert 1.4 < max(loss.epsilon() for loss in found) <= 1.5 + 1e-9


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 1e-3), ZCDP(0.5)])
def test_sparse_runs_keep_every_kind_of_claim(claim):
    noise = budgets.above_threshold(1.0, monotone=False)
    signs = itertools.product((-1.0, 1.0), repeat=2)
    for first, moves in itertools.product(itertools.product(DISTANCES, repeat=2), signs):
        assert max(loss.excess(claim) for loss in losses(noise, first, moves)) < 0
    tiny = budgets.Scales(threshold=0.2, query=0.4, answer=None, redraw=True)
    assert any(loss.refutes(claim) for loss in losses(tiny, (-1.0, 1.0), (1.0, -1.0)))


def test_streams_are_checked():
    noise = SCALES["kept"]
    with pytest.raises(ValueError, match="truths must be finite"):
        SparseVectorLaw(np.array([np.nan]), noise, 1)
    with pytest.raises(ValueError, match="number of queries must be a whole number"):
        SparseVectorLaw(np.zeros(13), noise, 1)


def test_the_scales_of_a_mechanism_fit():
    stream = AboveThreshold(0.0, privacy=PureDP(1.0), rng=0)
    law = SparseVectorLaw(TRUTHS, stream.scales, stream.cutoff)
    assert law.transcripts.shape == (4, 3)


@pytest.mark.parametrize(("truths", "cutoff"), [([0.0], 1), ([0.0, 1.0], 1)])
def test_laws_of_other_streams_are_not_compared(truths, cutoff):
    scales = AboveThreshold(threshold=0.0, privacy=PureDP(1.0)).scales
    law = SparseVectorLaw([0.0, 1.0], scales, cutoff=2)
    with pytest.raises(ValueError, match="the same number of queries and the same cutoff"):
        law_learner(law, SparseVectorLaw(truths, scales, cutoff=cutoff))


def test_a_claim_must_be_a_definition_of_privacy():
    stream = AboveThreshold(0.0, privacy=PureDP(1.0), rng=0)
    loss = PrivacyLoss.of_laws(*responses(1.0))
    for judge in (loss.excess, loss.refutes):
        with pytest.raises(ValueError, match="claim must be PureDP, ApproxDP or ZCDP, got"):
            judge(stream.guarantee)
