"""Update rules lower their potentials as proved, and keep their bounds on adversarial streams."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp._typing import FloatArray
from geomdp.mechanisms.interactive.updates import (
    Median,
    MultiplicativeWeights,
    Perceptron,
    SparseMultiplicativeWeights,
    net,
    net_fineness,
    net_size,
)
from geomdp.workloads.base import DenseQuery, SparseQuery

SIZE = 40
ALPHA = 0.2


def adversary(rng: np.random.Generator, data: FloatArray, vector: FloatArray) -> DenseQuery:
    """A 0-1 query on which data and hypothesis differ much; a tenth of its values are random."""
    signs = (data > vector).astype(float)
    if rng.random() < 0.5:
        signs = 1 - signs
    flips = rng.random(SIZE) < 0.1
    return DenseQuery(np.where(flips, rng.random(SIZE), signs))


#: A rule, the vector of its hypothesis, its potential, the least drop in an update, and its bound.
DENSE = {
    "weights": (
        MultiplicativeWeights(SIZE),
        lambda hypothesis: hypothesis.distribution,
        lambda data, v: float(np.sum(data[data > 0] * np.log(data[data > 0] / v[data > 0]))),
        ALPHA**2 / 4,
        4 * math.log(SIZE) / ALPHA**2,
    ),
    "perceptron": (
        Perceptron(SIZE),
        lambda hypothesis: hypothesis.vector,
        lambda data, v: float(np.sum((data - v) ** 2)),
        ALPHA**2 / SIZE,
        SIZE / ALPHA**2,
    ),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", DENSE)
def test_potentials_fall_and_updates_keep_their_bound(name, seed):
    """An adversary finds gaps, and answers are as wrong as they may be."""
    rule, vector, potential, drop, bound = DENSE[name]
    assert rule.bound(ALPHA) == pytest.approx(bound, rel=1e-15)
    rng = np.random.default_rng(seed)
    data, hypothesis = rng.dirichlet(np.full(SIZE, 0.05)), rule.start(ALPHA)
    updates, idle = 0, 0
    while idle < 200:
        query = adversary(rng, data, vector(hypothesis))
        truth, estimate = float(query.values @ data), hypothesis.evaluate(query)
        if abs(truth - estimate) < ALPHA:
            idle += 1
            continue
        idle = 0
        before = potential(data, vector(hypothesis))
        # The worst allowed answer is off by nearly ALPHA, towards the estimate.
        hypothesis.update(query, truth - math.copysign(0.999 * ALPHA, truth - estimate))
        updates += 1
        assert potential(data, vector(hypothesis)) <= before - drop * (1 - 1e-9)
    assert 0 < updates <= rule.bound(ALPHA)


def test_weights_learn_at_half_the_accuracy():
    """A query that is 1 on one of M = 40 elements raises its weight by the factor e^(alpha / 2)."""
    hypothesis, grown = MultiplicativeWeights(SIZE).start(ALPHA), math.exp(ALPHA / 2)
    hypothesis.update(DenseQuery(np.arange(SIZE) == 3), 1.0)
    assert hypothesis.distribution[3] == pytest.approx(grown / (SIZE - 1 + grown), rel=1e-14)


@pytest.mark.parametrize(("queries", "alpha"), [(1, 0.3), (15, 0.2), (1000, 0.05)])
def test_net_size_is_the_least_for_which_random_records_serve(queries, alpha):
    """By Hoeffding's inequality, random records err by over alpha with chance at most `failure`."""

    def failure(records: int) -> float:
        return 2 * queries * math.exp(-2 * records * alpha**2)

    size = net_size(queries, alpha)
    assert failure(size) < 1
    # The formula adds one record to the least whole number that suffices.
    assert failure(size - 2) >= 1
    fineness = net_fineness(10**4, size, queries)  # the random records are the better bound
    assert 2 * queries * math.exp(-2 * size * fineness**2) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(("size", "records"), [(2, 1), (2, 5), (3, 4), (4, 6), (5, 3)])
def test_net_fineness_is_that_of_rounding(size, records):
    """The net is farthest where all shares, times `records`, have the same fractional part."""
    candidates = net(size, records)
    fineness = net_fineness(size, records, n_queries=10**9)
    rng = np.random.default_rng(size)
    spread = np.full(size, 1 / size)
    for data in (spread, *rng.dirichlet(np.full(size, 0.5), 200)):
        assert 0.5 * np.abs(candidates - data).sum(axis=1).min() <= fineness + 1e-12
    remainder = np.full(size, (size // 2) / size)
    remainder[0] += records - size // 2
    worst = remainder / records
    assert 0.5 * np.abs(candidates - worst).sum(axis=1).min() == pytest.approx(fineness, rel=1e-12)


def test_median_has_no_bound_at_or_below_its_fineness():
    rule = Median(net(2, 4), fineness=1 / 8)
    assert rule.bound(1 / 8) == rule.bound(0.1) == math.inf
    assert rule.bound(math.nextafter(1 / 8, 1)) == math.log2(5)


def test_median_halves_and_stays_within_its_bound():
    size, alpha = 4, 0.4
    queries = [DenseQuery(np.array(bits, dtype=float)) for bits in np.ndindex(2, 2, 2, 2)][1:]
    records = net_size(len(queries), alpha / 2)
    rule = Median(net(size, records), net_fineness(size, records, len(queries)))
    assert len(rule.candidates) == math.comb(size + records - 1, records)
    rng = np.random.default_rng(2)
    for _ in range(5):
        data = rng.dirichlet(np.full(size, 0.3))
        hypothesis, updates = rule.start(alpha), 0
        while True:
            gaps = [float(q.values @ data) - hypothesis.evaluate(q) for q in queries]
            worst = int(np.argmax(np.abs(gaps)))
            if abs(gaps[worst]) < alpha:
                break
            before = hypothesis.remaining
            truth = float(queries[worst].values @ data)
            hypothesis.update(queries[worst], truth - math.copysign(0.99 * alpha, gaps[worst]))
            updates += 1
            assert 1 <= hypothesis.remaining <= before / 2
        assert updates <= rule.bound(alpha)


@pytest.mark.parametrize(
    ("sparsity", "alpha", "slots", "bound"),
    [(1, 0.5, 88, 87.637), (10, 0.5, 1309, 130.832), (10, 0.1, 47035, 4703.459),
     (100, 0.1, 570146, 5701.459)],
)  # fmt: skip
def test_sparse_weights_slots_and_bound(sparsity, alpha, slots, bound):
    rule = SparseMultiplicativeWeights(sparsity)
    assert rule.slots(alpha) == slots
    assert rule.bound(alpha) == pytest.approx(bound, abs=5e-4)


@given(st.integers(1, 500), st.floats(0.02, 1.0))
def test_sparse_weights_slots_are_the_smallest_that_suffice(sparsity, alpha):
    rule = SparseMultiplicativeWeights(sparsity)
    slots, target = rule.slots(alpha), 4 * sparsity / alpha**2
    assert slots / (math.log(slots) + 1) >= target
    assert slots == 1 or (slots - 1) / (math.log(slots - 1) + 1) < target
    assert sparsity * math.floor(rule.bound(alpha)) <= slots  # so updates never run out of slots


@pytest.mark.parametrize("universe", [60, 10**12])
def test_sparse_weights_agree_with_a_dense_reference(universe):
    """The reference is the printed algorithm: s weights in an array, normalised each time."""
    rng = np.random.default_rng(4)
    rule = SparseMultiplicativeWeights(5)
    hypothesis, eta = rule.start(0.3), 0.15
    weights, slot = np.full(rule.slots(0.3), 1 / rule.slots(0.3)), {}
    for _ in range(math.floor(rule.bound(0.3))):
        support = np.unique(rng.integers(universe, size=5)).tolist()
        query = SparseQuery(tuple(support), rng.random(len(support)))
        common = weights[len(slot)] if len(slot) < len(weights) else 0.0
        expected = sum(
            v * (weights[slot[x]] if x in slot else common)
            for x, v in zip(support, query.values, strict=True)
        )
        assert hypothesis.evaluate(query) == pytest.approx(expected, rel=1e-10)
        answer = rng.random()
        hypothesis.update(query, answer)
        for x in support:
            slot.setdefault(x, len(slot))
        sign = -1 if answer < expected else 1
        for x, v in zip(support, query.values, strict=True):
            weights[slot[x]] *= math.exp(sign * eta * v)
        weights /= weights.sum()


def test_sparse_weights_survive_extreme_drift():
    """After thousands of equal updates, weights would overflow, but their logarithms do not."""
    hypothesis = SparseMultiplicativeWeights(1).start(0.9)
    up, down = SparseQuery.counting(["up"]), SparseQuery.counting(["down"])
    for _ in range(3000):
        hypothesis.update(up, 2.0)
    assert hypothesis.evaluate(up) == pytest.approx(1.0, abs=1e-12)
    hypothesis.update(down, 1.0)
    assert 0 <= hypothesis.evaluate(down) < 1e-300
    for _ in range(3050):
        hypothesis.update(up, -1.0)
    # After 3000 steps up and 3050 down at the rate 0.45, the weight is e^-22.5 of a free slot's.
    ratio = hypothesis.weight("up") / hypothesis.weight("fresh")
    assert ratio == pytest.approx(math.exp(-22.5), rel=1e-6)


def test_weights_come_back_to_where_they_started():
    """The sum of weights is a running sum. Far above its start, it would lose small weights."""
    hypothesis, query = SparseMultiplicativeWeights(1).start(0.9), SparseQuery.counting("a")
    for answer in (2.0, -1.0):
        for _ in range(400):
            hypothesis.update(query, answer)
    for element in ("a", "fresh"):
        assert hypothesis.weight(element) * hypothesis.slots == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("seed", range(2))
def test_sparse_weights_potential_drops_with_the_final_table(seed):
    """The potential sums over all elements that have a slot at the end (BR-SMW, DISC-9)."""
    rng = np.random.default_rng(seed)
    elements = [f"item {i}" for i in range(300)]
    data = dict(zip(elements, rng.dirichlet(np.full(300, 0.02)), strict=True))
    rule = SparseMultiplicativeWeights(4)
    hypothesis = rule.start(ALPHA)
    heavy = sorted(data, key=lambda x: -data[x])
    history: list[tuple[SparseQuery, dict[str, float], float]] = []
    for _ in range(8000):
        share = heavy if rng.random() < 0.7 else elements
        support = list(dict.fromkeys(share[i] for i in rng.geometric(0.2, 4) - 1 if i < 300))
        query = SparseQuery.counting(support)
        truth, estimate = query.total(data), hypothesis.evaluate(query)
        if abs(truth - estimate) >= ALPHA:
            before = {x: hypothesis.weight(x) for x in elements}
            hypothesis.update(query, truth - math.copysign(0.99 * ALPHA, truth - estimate))
            history.append((query, before, truth))
    assert 0 < len(history) <= rule.bound(ALPHA)
    table = {x for query, _, _ in history for x in query.support}
    weights = [before for _, before, _ in history]
    weights.append({x: hypothesis.weight(x) for x in elements})
    potentials = [
        sum(data[x] * math.log(data[x] / w[x]) for x in table if data[x] > 0) for w in weights
    ]
    drops = -np.diff(potentials)
    assert (drops >= ALPHA**2 / 4 * (1 - 1e-9)).all()
    assert potentials[0] <= math.log(rule.slots(ALPHA))
    assert potentials[-1] >= -1 / math.e


def test_sparse_weights_fail_loudly_beyond_their_slots():
    hypothesis = SparseMultiplicativeWeights(1).start(0.9)
    for i in range(hypothesis.slots):
        hypothesis.update(SparseQuery.counting([i]), 1.0)
    assert hypothesis.weight("one more") == 0.0
    with pytest.raises(RuntimeError, match="slots are used up"):
        hypothesis.update(SparseQuery.counting(["one more"]), 1.0)


@pytest.mark.parametrize("rule", [MultiplicativeWeights(4), Perceptron(4)])
def test_bounds_beyond_float64_are_infinite(rule):
    """alpha^2 is 0 in float64 for the first accuracy, and infinite for the last one."""
    assert rule.bound(1e-200) == math.inf
    assert 1e200 < rule.bound(1e-101) < math.inf
    assert rule.bound(1e200) == 0
    assert SparseMultiplicativeWeights(3).slots(1e-100) > 10**200


RULES = [
    MultiplicativeWeights(4),
    Perceptron(4),
    Median(np.eye(2), fineness=0.1),
    SparseMultiplicativeWeights(3),
]
THREE, SLOTS = SparseQuery.counting("abc"), SparseMultiplicativeWeights(2).start(0.5)
REFUSED = {
    "no size": (lambda: MultiplicativeWeights(1), "size must be a whole number, at least 2"),
    **{
        f"fineness {bad}": (lambda bad=bad: Median(net(2, 4), fineness=bad), "fineness must be")
        for bad in (-0.1, math.nan, math.inf)
    },
    **{
        f"row {row}": (
            lambda row=row: Median(np.array([[0.5, 0.5], row]), fineness=0.1),
            "at least 0 and sum to 1, got row 1",
        )
        for row in ([0.5, 0.6], [0.3, 0.3], [1e308, 1e308], [-0.5, 1.5])
    },
    "too coarse": (
        lambda: Median(np.full((1, 2), 0.5), 0.01).start(0.1).update(DenseQuery([1.0, 0.0]), 0.9),
        "strictly finer",
    ),
    **{
        f"undeclared {use}": (
            lambda use=use, more=more: getattr(SLOTS, use)(THREE, *more),
            "sparsity at most 2, got 3",
        )
        for use, more in (("evaluate", []), ("update", [0.5]))
    },
    **{
        f"too many slots: {use}": (
            lambda use=use: getattr(SparseMultiplicativeWeights(3), use)(1e-200),
            "alpha must be at least 1e-100, got 1e-200",
        )
        for use in ("slots", "bound", "start")
    },
    **{
        f"{type(rule).__name__}, {bad}": (lambda rule=rule, bad=bad: rule.bound(bad), "alpha")
        for rule in RULES
        for bad in (0.0, -1.0, math.nan, math.inf)
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        call()
