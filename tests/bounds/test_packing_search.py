"""The search over multisets does at least as well as textbook packings on named instances."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from scipy.linalg import hadamard

from geomdp._typing import IntArray
from geomdp.bounds import (
    Effort,
    MeanL2,
    Metric,
    Packing,
    ReedSolomon,
    SideConditionError,
    WorstCase,
    certify,
    check_certificate,
    marginal_bound,
    packing_search,
    single_elements,
)
from geomdp.bounds.packings import means_of, spread_out
from geomdp.bounds.problem import MEAN_L2
from geomdp.bounds.random_signs import reed_solomon_sets
from geomdp.workloads import (
    Explicit,
    Histogram,
    Marginals,
    MarginalTables,
    Parities,
    Prefixes,
    RandomSigns,
    Ranges,
    SecondMoment,
    Workload,
)
from tests.bounds.test_packing import HAMMING

#: Words of the first-order Reed-Muller code of length 16: Hadamard rows and their negatives.
REED_MULLER = (1 + np.vstack([hadamard(16), -hadamard(16)])) // 2

Textbook = Callable[[Workload], list[Packing]]


def single(records: IntArray) -> Textbook:
    return lambda W: [single_elements(W, records, np.arange(len(records)), "by hand")]


def levels(sizes: list[int]) -> IntArray:
    """`min(sizes)` records, any two of which differ in every column."""
    return np.repeat(np.arange(min(sizes))[:, None], len(sizes), axis=1)


def sign_sets(W: Workload) -> list[Packing]:
    """All elements, and the sets of the Reed-Solomon code of prime 11, length 6 and degree 3."""
    code = ReedSolomon(11, 6, 3)
    sets = reed_solomon_sets(code).elements(code.words())
    return [*single(np.arange(66))(W), Packing(W, np.arange(66), sets, "Reed-Solomon")]


def all_pairs(W: Workload) -> list[Packing]:
    """The three elements, and all multisets of two of them."""
    pairs = np.array(list(itertools.combinations_with_replacement(range(3), 2)))
    return [*single(np.arange(3))(W), Packing(W, np.arange(3), pairs, "pairs")]


SIMPLEX = (1 - hadamard(8)) // 2
CUBE = np.array(list(itertools.product((0, 1), repeat=10)))
#: A workload, epsilon and alpha, and the packing that a textbook would use.
INSTANCES: dict[str, tuple[Workload, float, float, Textbook]] = {
    "1-way d=8, Hamming": (Marginals(8, 1), 1.0, 0.1, single(HAMMING)),
    "1-way d=16, Reed-Muller": (Marginals(16, 1), 0.1, 0.05, single(REED_MULLER)),
    "1-way d=10, cube": (Marginals(10, 1), 0.3, 0.02, single(CUBE)),
    "histogram N=50": (Histogram(50), 0.1, 0.01, single(np.arange(50))),
    "histogram N=3, pairs": (Histogram(3), 0.05, 0.05, all_pairs),
    "prefixes N=64": (Prefixes(64), 0.2, 0.02, single(np.arange(0, 64, 4))),
    "ranges N=16": (Ranges(16), 0.2, 0.02, single(np.arange(0, 16, 2))),
    "parities d=8 k=2": (Parities(8, 2), 0.1, 0.05, single(SIMPLEX)),
    "tables 3x4x5": (MarginalTables([3, 4, 5], 2), 0.1, 0.02, single(levels([3, 4, 5]))),
    "random signs 64x66": (RandomSigns(64, 66, 0), 0.05, 0.02, sign_sets),
    "second moments d=6": (SecondMoment(6), 0.1, 0.02, single(np.eye(6))),
    "Walsh N=32": (Explicit(hadamard(32)), 0.05, 0.05, single(np.arange(32))),
}


@pytest.mark.parametrize("name", INSTANCES)
def test_the_search_ties_the_textbook(name):
    workload, epsilon, alpha, textbook = INSTANCES[name]
    metric: Metric = WorstCase() if "cube" in name else MEAN_L2
    found = packing_search(workload, epsilon=epsilon, alpha=alpha, metric=metric, rng=0)
    by_hand = certify(textbook(workload), epsilon=epsilon, alpha=alpha, metric=metric)
    assert found.value >= by_hand.value > 0
    assert found.assumptions == ()


@pytest.mark.slow
@pytest.mark.parametrize(("attributes", "width"), [(14, 2), (12, 3)])
def test_the_search_ties_hadamard_blocks(attributes, width):
    W = Marginals(attributes, width)
    for alpha in (0.02, 0.002):
        textbook = marginal_bound(attributes, width, epsilon=0.05, alpha=alpha)
        assert packing_search(W, epsilon=0.05, alpha=alpha, rng=0).value >= textbook.value


def test_what_is_found_is_confirmed(tmp_path):
    small = Effort(elements=64, pool=128, datasets=64, exchanges=16)
    for W in (Prefixes(64), Histogram(4), SecondMoment(3), RandomSigns(20, 16, 1)):
        bound = packing_search(W, epsilon=0.05, alpha=0.01, effort=small, rng=1)
        path = tmp_path / "bound.json"
        bound.certificate.save(path)  # type: ignore[union-attr]
        assert check_certificate(path).records == bound.value


def test_exchanges_never_bring_data_sets_together():
    rng = np.random.default_rng(3)
    W = RandomSigns(12, 30, 3)
    answers = W.evaluate(np.arange(30))
    start = rng.integers(30, size=(24, 3))
    metric = MeanL2()

    def separation(datasets: IntArray) -> float:
        means = means_of(answers, datasets)
        return min(metric.norm(means[i + 1 :] - means[i]).min() for i in range(23))

    values = [
        separation(spread_out(answers, start, metric, n, np.random.default_rng(0)))
        for n in (0, 10, 40, 160)
    ]
    assert values == sorted(values)
    assert values[-1] > 1.2 * values[0]


def test_a_hopeless_search_says_why():
    with pytest.raises(SideConditionError, match="at least 3 data sets"):
        packing_search(Histogram(10), epsilon=1.0, alpha=0.9, rng=0)
    with pytest.raises(ValueError, match="pool"):
        Effort(pool=1)
