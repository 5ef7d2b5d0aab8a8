"""Distributions of the noise in interactive mechanisms: scales, and which draws are independent.

The scales are written out here from the theorems. So the tests fail if a mechanism draws clearly
less noise than its proof needs, even if an audit would not notice this.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

import geomdp.mechanisms.interactive.iterative as iterative_module
import geomdp.mechanisms.interactive.sparse_vector as sparse_vector_module
from geomdp.mechanisms.interactive.iterative import EnumeratedQueries, IterativeConstruction
from geomdp.mechanisms.interactive.online import OnlineConstruction
from geomdp.mechanisms.interactive.sparse_vector import (
    AboveThreshold,
    NumericSparse,
    PrintedNumericSparse,
    Sparse,
)
from geomdp.mechanisms.interactive.updates import MultiplicativeWeights, Perceptron
from geomdp.noise.scalar import ExactNoise, GeneratorNoise
from geomdp.privacy import ApproxDP, PureDP
from geomdp.workloads.base import DenseQuery
from tests.laws.laplace_comparisons import all_reach, outcomes
from tests.noise.exact.reference import seeded
from tests.stats import binomial_agrees, ks_uniform, mean_agrees

pytestmark = pytest.mark.statistical

TRIALS = 2500
EPSILON, SENSITIVITY, CUTOFF = 1.0, 3.0, 3
DELTA = 1e-6
PURE, APPROXIMATE = PureDP(EPSILON), ApproxDP(EPSILON, DELTA)


def composed(delta: float) -> float:
    """1 / epsilon_0 of each of `CUTOFF` steps that together are (1, delta)-DP (GEN-2b)."""
    return math.sqrt(8 * CUTOFF * math.log(1 / delta))


#: The printed scale of one step.
SPREAD = math.sqrt(32 * CUTOFF * math.log(2e6))
#: (class, options, Laplace scales of threshold, query and value divided by the sensitivity, whether
#: the threshold is redrawn after each query found above).
STREAMS = {
    "above threshold": (AboveThreshold, {"privacy": PURE}, 2.0, 4.0, None, True),
    "sparse, kept": (Sparse, {"privacy": PURE, "cutoff": CUTOFF},
                     1 + 6 ** (2 / 3), 6 / (1 - 1 / (1 + 6 ** (2 / 3))), None, False),
    "sparse, redrawn": (Sparse, {"privacy": PURE, "cutoff": CUTOFF, "redraw": True},
                        2.0 * CUTOFF, 4.0 * CUTOFF, None, True),
    "sparse, approximate": (Sparse, {"privacy": APPROXIMATE, "cutoff": CUTOFF},
                            2 * composed(DELTA), 4 * composed(DELTA), None, True),
    "numeric": (NumericSparse, {"privacy": PURE, "cutoff": CUTOFF},
                2 * CUTOFF * 9 / 8, 4 * CUTOFF * 9 / 8, 9.0 * CUTOFF, True),
    # Comparisons get 8/9 of epsilon, values get 1/9, and both get half of delta.
    "numeric, approximate": (NumericSparse, {"privacy": APPROXIMATE, "cutoff": CUTOFF},
                             2 * composed(DELTA / 2) * 9 / 8, 4 * composed(DELTA / 2) * 9 / 8,
                             9 * composed(DELTA / 2), True),
    "numeric, printed": (PrintedNumericSparse, {"privacy": APPROXIMATE, "cutoff": CUTOFF},
                         SPREAD * (1 + 512**-0.5), 2 * SPREAD * (1 + 512**-0.5),
                         SPREAD * (512**0.5 + 1) / 2, True),
}  # fmt: skip


# Exact noise takes minutes here, so it is a slow case. `test_single_numbers.py` tests it, too.
@pytest.fixture(params=["seeded", pytest.param("exact", marks=pytest.mark.slow)])
def source(request, monkeypatch):
    """What is given as `rng`: a generator, or None with the operating system's bits fixed."""
    if request.param == "seeded":
        return np.random.default_rng(2)
    monkeypatch.setattr(os, "urandom", seeded(2))
    return None


def stream(name, source, **options):
    kind, own, *_ = STREAMS[name]
    return kind(0.0, sensitivity=SENSITIVITY, rng=source, **(own | options))


def scales(name):
    return [None if s is None else SENSITIVITY * s for s in STREAMS[name][2:5]]


@pytest.mark.parametrize("name", STREAMS)
def test_comparisons_have_the_stated_noise(name, source):
    """One query below the threshold is asked alone, and two such queries are asked in one call."""
    threshold, query, _ = scales(name)
    gap = query  # near this gap, halved noise would change the probabilities most
    alone = array = below = 0
    for _ in range(TRIALS):
        alone += stream(name, source).ask(-gap).above
        answers = stream(name, source).ask_many(np.full(2, -gap))
        array += answers[0].above
        below += not any(answer.above for answer in answers)
    chance = all_reach(1, gap, threshold, query)
    binomial_agrees(alone, TRIALS, chance)
    binomial_agrees(array, TRIALS, chance)
    binomial_agrees(below, TRIALS, outcomes(0, 2, gap, threshold, query))


@pytest.mark.parametrize("name", [name for name in STREAMS if name != "above threshold"])
def test_the_threshold_is_redrawn_where_that_is_claimed(name, source):
    """If all noise is fresh, six queries at the threshold are all above with probability 2^-6.

    If one draw of the threshold noise serves for all six, the probability is about 4 * 2^-6.
    """
    runs = (stream(name, source, cutoff=6) for _ in range(TRIALS))
    found = sum(all(run.ask(0.0).above for _ in range(6)) for run in runs)
    if STREAMS[name][5]:
        chance = 0.5**6
    else:
        threshold = 1 + 12 ** (2 / 3)  # 1 / epsilon_1 of SV-LSL, for c = 6
        chance = all_reach(6, 0.0, threshold, 12 / (1 - 1 / threshold))
    binomial_agrees(found, TRIALS, chance)


@pytest.mark.parametrize("name", [name for name, row in STREAMS.items() if row[4] is not None])
def test_released_values_have_noise_of_their_own(name, source):
    """The released values have independent Laplace noise of the stated scale."""
    _, _, scale = scales(name)
    truths = 1e7 * np.arange(1, CUTOFF + 1)
    found = []
    for _ in range(TRIALS // 2):
        run = stream(name, source)
        one = [run.ask(truths[0]), *run.ask_many(truths[1:])]
        found.append([answer.value for answer in one])
    noise = np.array(found) - truths
    for column in noise.T:
        ks_uniform(scipy.stats.laplace(scale=scale).cdf(column), level=1e-6 / CUTOFF)
    check_independent(noise, scale)


def check_independent(noise, scale):
    """Check that the columns of `noise` (n, k) are uncorrelated, and their absolute values, too."""
    first, second = np.triu_indices(noise.shape[1], 1)
    mean_agrees(noise[:, first] * noise[:, second], 0.0)
    sizes = np.abs(noise) - scale
    mean_agrees(sizes[:, first] * sizes[:, second], 0.0)


class Recording(GeneratorNoise):
    """Noise that notes the scales it is asked for."""

    def __init__(self) -> None:
        super().__init__(0)
        self.scales: dict[str, set[float]] = {}

    def _note(self, kind: str, scale: float) -> None:
        self.scales.setdefault(kind, set()).add(scale)

    def threshold(self, value, scale):
        self._note("threshold", scale)
        return super().threshold(value, scale)

    def reaches(self, value, scale, threshold):
        self._note("query", scale)
        return super().reaches(value, scale, threshold)

    def values(self, values, scale):
        self._note("query", scale)
        return super().values(values, scale)


@pytest.mark.parametrize("name", STREAMS)
def test_scales_are_those_of_the_theorems(name):
    """The measured laws above miss a scale that is off by a few percent, and this test does not."""
    used = stream(name, 0).scales
    for found, stated in zip(
        (used.threshold, used.query, used.answer), STREAMS[name][2:5], strict=True
    ):
        assert found == (None if stated is None else pytest.approx(stated, rel=1e-13))


@pytest.mark.parametrize("name", STREAMS)
def test_scales_are_rounded_up_and_the_same_for_every_comparison(name, monkeypatch):
    noise = Recording()
    monkeypatch.setattr(sparse_vector_module, "scalar_noise", lambda rng: noise)
    run = stream(name, 0)
    run.ask(-1e9)
    run.ask_many(np.full(3, -1e9))
    for kind in ("threshold", "query"):
        (used,) = noise.scales[kind]
        exact = Fraction(SENSITIVITY) * Fraction(getattr(run.scales, kind))
        # `run.scales` has a relative rounding error below 2^-46, so the mechanism multiplies it by
        # ROUNDED_UP.
        assert (
            exact * (1 + Fraction(1, 2**47)) <= Fraction(used) <= exact * (1 + Fraction(1, 2**45))
        )


# Online release: all noise comes from one NumericSparse for queries of sensitivity 1/n.

RECORDS = 10**5


def online(source, queries=4):
    # The rule allows 1 / alpha^2 updates. The tests below need several of these updates.
    return OnlineConstruction(Perceptron(1), n=RECORDS, queries=queries, privacy=PURE, rng=source)


def test_online_answers_have_the_noise_of_sensitivity_one_over_n(source):
    run = online(source)
    scale = 9 * run.updates_allowed / (EPSILON * RECORDS)
    query, found = DenseQuery(np.ones(1)), []
    for _ in range(TRIALS // 2):
        run = online(source)
        # The truths are so far from the hypothesis that most are found above the threshold.
        row = []
        for truth in (1.0, 1.0):
            assert abs(run.hypothesis.evaluate(query) - truth) >= 2 * run.alpha
            answer = run.ask_truth(query, truth)
            row.append(answer.value - truth if answer.above else math.nan)
        found.append(row)
    noise = np.array(found)
    noise = noise[np.isfinite(noise).all(axis=1)]
    assert len(noise) >= 1000
    for column in noise.T:
        ks_uniform(scipy.stats.laplace(scale=scale).cdf(column), level=5e-7)
    check_independent(noise, scale)


def test_online_comparisons_have_the_noise_of_sensitivity_one_over_n(source):
    """The truth minus the hypothesis is one query scale below the threshold 2 alpha."""
    run = online(source)
    share = 9 * run.updates_allowed / (8 * EPSILON * RECORDS)
    threshold, scale = 2 * share, 4 * share
    query = DenseQuery(np.ones(1))
    truth = run.hypothesis.evaluate(query) + 2 * run.alpha - scale
    assert 0 <= truth <= 1
    found = sum(online(source).ask_truth(query, truth).above for _ in range(TRIALS))
    # The opposite difference is 4 alpha - scale below the threshold, and is hardly ever above.
    other = all_reach(1, 4 * run.alpha - scale, threshold, scale)
    assert other < 1e-4
    binomial_agrees(found, TRIALS, all_reach(1, scale, threshold, scale) + other / 2)


class Noted:
    """A hypothesis that records the answers of its updates."""

    def __init__(self, inner):
        self.inner, self.answers = inner, []

    def evaluate(self, query):
        return self.inner.evaluate(query)

    def update(self, query, answer):
        self.answers.append(answer)
        self.inner.update(query, answer)


class Noting(Perceptron):
    """The perceptron rule with hypotheses that record the answers of their updates."""

    def start(self, alpha):
        return Noted(super().start(alpha))


def test_hypotheses_are_updated_with_noisy_answers_alone(source):
    """Updates with exact answers would make the public hypothesis depend on data without noise."""
    run = OnlineConstruction(Noting(1), n=RECORDS, queries=4, privacy=PURE, rng=source)
    query = DenseQuery(np.ones(1))
    answers = [run.ask_truth(query, 1.0) for _ in range(4)]
    noisy = [answer.value for answer in answers if answer.above]
    assert len(noisy) >= 2
    assert run.hypothesis.answers == noisy
    assert 1.0 not in noisy


# Iterative construction: at most B rounds have two private steps each, with budget eps / (2 B).

ELEMENTS = 4
QUERIES = [DenseQuery(np.arange(ELEMENTS) == element) for element in range(ELEMENTS)]


def iterative():
    return IterativeConstruction(
        MultiplicativeWeights(ELEMENTS), EnumeratedQueries(QUERIES), n=60_000, privacy=PURE
    )


def test_iterative_answers_have_the_noise_of_their_step(source):
    construction = iterative()
    step = EPSILON / (2 * construction.updates_allowed)
    scale = 1 / (step * construction.n)
    records = np.repeat(np.arange(ELEMENTS), [construction.n, 0, 0, 0])
    rows = []
    for _ in range(1200):
        exchanges = construction.release(records, rng=source).exchanges
        # All records are element 0, so the true answer to a query is its value at element 0.
        rows.append([answer.value - query.values[0] for query, answer in exchanges[:2]])
    noise = np.array([row for row in rows if len(row) == 2])
    assert len(noise) >= 1000
    for column in noise.T:
        ks_uniform(scipy.stats.laplace(scale=scale).cdf(column), level=5e-7)
    check_independent(noise, scale)


def test_iterative_choices_have_the_noise_of_their_step(source):
    """The first choice is the exponential mechanism at the epsilon of one step."""
    construction = iterative()
    step, n = EPSILON / (2 * construction.updates_allowed), construction.n
    # Gaps differ by about 2 / (step n). Such gaps make the probabilities depend on the scale.
    moved = round(2 / step)
    counts = [n // 4 + moved, n // 4, n // 4, n - 3 * (n // 4) - moved]
    records = np.repeat(np.arange(ELEMENTS), counts)
    gaps = np.abs(np.array(counts) / n - 1 / 4)
    weights = np.exp(step * n * gaps / 2)
    picks = [0] * ELEMENTS
    for _ in range(TRIALS):
        query = construction.release(records, rng=source).exchanges[0][0]
        picks[int(np.argmax(query.values))] += 1
    for count, chance in zip(picks, weights / weights.sum(), strict=True):
        binomial_agrees(count, TRIALS, float(chance), level=1e-6 / ELEMENTS)


class Asked(ExactNoise):
    """Exact noise that notes the scales it is asked for."""

    def __init__(self):
        super().__init__()
        self.choice_scales, self.answer_scales = set(), set()

    def exact_argmax(self, near, errors, exact, scale):
        self.choice_scales.add(scale)
        return super().exact_argmax(near, errors, exact, scale)

    def laplace(self, value, scale):
        self.answer_scales.add(scale)
        return super().laplace(value, scale)


def test_unseeded_steps_ask_for_the_noise_of_their_step_rounded_up(monkeypatch):
    made = []

    class Kept(Asked):
        def __init__(self):
            super().__init__()
            made.append(self)

    monkeypatch.setattr(iterative_module, "ExactNoise", Kept)
    construction = iterative()
    construction.release(np.zeros(construction.n, dtype=int))
    (noise,) = made
    step = Fraction(1, 2 * construction.updates_allowed)
    for used, moved in ((noise.choice_scales, 2), (noise.answer_scales, 1)):
        (scale,) = used
        least = moved / (step * construction.n)
        assert least <= Fraction(scale) <= least * (1 + Fraction(1, 2**44))
