"""Exact laws of sparse vector agree with runs, and lose what their claims allow."""

import itertools
import math

import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

from geomdp.audit import Pair, SparseVectorLaw, audit_pairs, law_learner
from geomdp.mechanisms import Sparse
from geomdp.mechanisms.interactive import sparse_vector
from geomdp.privacy import ZCDP, ApproxDP, PureDP
from tests.stats import LEVEL

BELOW, ABOVE, UNASKED = 0, 1, -1
#: An excess up to this size may be a rounding error: probabilities are sums of a few thousand
#: products of a few dozen factors, so they contain at most 2^17 rounding errors of 2^-53 each.
SLACK = 2.0**-36
#: A zCDP claim is tested at these orders. (order - 1) D_order is convex in the order, so between
#: two of them a claim is exceeded by less than 1 percent if it holds at both.
ORDERS = 1 + np.geomspace(1e-3, 1e3, 145)


def excess(laws, claim):
    """The least true epsilon, delta or rho of two laws (k,), minus the claimed one (GEN-2)."""
    p, q = laws
    match claim:
        case PureDP(epsilon=epsilon):
            return np.log(p / q).max() - epsilon
        case ApproxDP(epsilon=epsilon, delta=delta):
            return np.maximum(p - math.exp(epsilon) * q, 0).sum() - delta
        case ZCDP(rho=rho):
            exponents = (ORDERS - 1)[:, None] * np.log(p / q) + np.log(p)
            divergences = scipy.special.logsumexp(exponents, axis=1) / (ORDERS - 1)
            return (divergences / ORDERS).max() - rho


TRUTHS = np.array([0.3, -1.0, 0.7])
SCALES = {
    "kept": sparse_vector.kept(PureDP(2.0), 2, monotone=False),
    "redrawn": sparse_vector.redrawn(PureDP(2.0), 2, monotone=False),
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


def both_laws(scales, first, moves):
    """Laws of a run that halts at the first answer above, in both orders of the two inputs."""
    first = scales.query * np.array(first)
    laws = [SparseVectorLaw(truths, scales, 1).probabilities for truths in (first, first + moves)]
    return laws, laws[::-1]


def largest_excess(scales, first, moves, claim):
    return max(excess(laws, claim) for laws in both_laws(scales, first, moves))


def test_above_threshold_is_exactly_tight():
    """DISC-12: Lap(4 / eps) on queries is tight. A stream of four queries loses nearly eps."""
    claim, stream = PureDP(1.0), ((16.0, 16.0, 16.0, -16.0), (-1.0, -1.0, -1.0, 1.0))
    noise = sparse_vector.above_threshold(1.0, monotone=False)
    assert -0.02 < largest_excess(noise, *stream, claim) <= SLACK
    # With 3% less noise on the queries, the exact loss exceeds the claim.
    less = sparse_vector.Scales(threshold=2.0, query=3.88, answer=None, redraw=True)
    assert largest_excess(less, *stream, claim) > SLACK


#: Distances of true answers from the threshold, in units of the scale of the noise on queries.
DISTANCES = (-16.0, -4.0, -1.0, 0.0, 1.0, 4.0, 16.0)


def test_monotone_noise_does_not_serve_general_queries():
    claim, noise = PureDP(1.0), sparse_vector.above_threshold(1.0, monotone=True)
    for first in itertools.combinations_with_replacement(DISTANCES, 3):
        assert largest_excess(noise, first, np.ones(3), claim) <= SLACK
    # The largest loss over general streams tends to 1.5 as the number of queries grows.
    found = largest_excess(noise, (16.0, 16.0, -16.0), (-1.0, -1.0, 1.0), claim)
    assert 0.4 < found <= 0.5 + 1e-9


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 1e-3), ZCDP(0.5)])
def test_sparse_runs_keep_every_kind_of_claim(claim):
    noise = sparse_vector.above_threshold(1.0, monotone=False)
    signs = itertools.product((-1.0, 1.0), repeat=2)
    for first, moves in itertools.product(itertools.product(DISTANCES, repeat=2), signs):
        assert largest_excess(noise, first, moves, claim) < 0
    tiny = sparse_vector.Scales(threshold=0.2, query=0.4, answer=None, redraw=True)
    assert largest_excess(tiny, (-1.0, 1.0), (1.0, -1.0), claim) > SLACK


@pytest.mark.parametrize(("truths", "cutoff", "message"), [
    ([math.nan], 1, "truths must be finite"),
    ([0.0] * 13, 1, "number of queries must be a whole number"),
    ([0.0], 2, "the same number of queries and the same cutoff"),
    ([0.0, 1.0], 1, "the same number of queries and the same cutoff"),
])  # fmt: skip
def test_streams_are_checked(truths, cutoff, message):
    law = SparseVectorLaw([0.0, 1.0], SCALES["kept"], cutoff=2)
    with pytest.raises(ValueError, match=message):
        law_learner(law, SparseVectorLaw(truths, SCALES["kept"], cutoff=cutoff))
