"""Packings agree with lemmas JL-L6 and JL-L7; the search finds no worse ones than textbooks."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.linalg import hadamard

from geomdp import bounds
from geomdp._typing import IntArray
from geomdp.bounds.certificates import cover, packing_rung
from geomdp.bounds.problem import Problem
from geomdp.privacy import Adjacency
from geomdp.workloads import (
    Explicit,
    Histogram,
    Marginals,
    MarginalTables,
    Parities,
    Prefixes,
    RandomSigns,
    SecondMoment,
    Workload,
)

#: Words of the extended Hamming [8, 4, 4] code.
HAMMING = (
    np.array(list(itertools.product((0, 1), repeat=4)))
    @ np.array(
        [
            [1, 0, 0, 0, 0, 1, 1, 1],
            [0, 1, 0, 0, 1, 0, 1, 1],
            [0, 0, 1, 0, 1, 1, 0, 1],
            [0, 0, 0, 1, 1, 1, 1, 0],
        ]
    )
    % 2
)
METRICS = (bounds.MeanL2(), bounds.RMS(), bounds.WorstCase())


def hamming() -> bounds.Packing:
    return bounds.single_elements(Marginals(8, 1), HAMMING, np.arange(16), "Hamming code")


def certificate_of(bound: bounds.Bound) -> bounds.Certificate:
    assert isinstance(bound.certificate, bounds.Certificate)
    return bound.certificate


@pytest.mark.parametrize(("value", "side", "text"), [
    (3.5, bounds.Side.LOWER, "> 3"),
    (3.5, bounds.Side.UPPER, "<= 4"),
    # With six digits, rounded to nearest, this lower bound would read "sc > 1e+11". This would
    # claim too much.
    (99_999_999_999.5, bounds.Side.LOWER, "> 99999999999"),
    (12_345_678_901.0, bounds.Side.UPPER, "<= 12345678901"),
    (999_999_999_999_999.0, bounds.Side.LOWER, "> 999999999999999"),
    # From 10^15 on, bounds have six digits, rounded in the direction that keeps them true.
    (1_234_567_800_000_001.0, bounds.Side.LOWER, "> 1.23456e+15"),
    (1_234_567_800_000_001.0, bounds.Side.UPPER, "<= 1.23457e+15"),
    (9.999999e300, bounds.Side.LOWER, "> 9.99999e+300"),
    (9.999999e300, bounds.Side.UPPER, "<= 1e+301"),
    (math.inf, bounds.Side.UPPER, "<= inf"),
])  # fmt: skip
def test_a_printed_bound_is_true(value, side, text):
    bound = bounds.Bound(value, side, "why")
    rounded = math.floor if side is bounds.Side.LOWER else math.ceil
    assert bound.records == (value if math.isinf(value) else rounded(value))
    assert str(bound) == f"sc {text}: why"
    assert repr(bound) == f"Bound(sc {text}, 0 assumptions)"
    assert text.endswith(bound.records_text)


@pytest.mark.parametrize(
    ("value", "side"),
    [(-1.0, bounds.Side.UPPER), (math.nan, bounds.Side.LOWER), (math.inf, bounds.Side.LOWER)],
)
def test_a_bound_out_of_range_is_refused(value, side):
    with pytest.raises(ValueError, match="must be at least 0"):
        bounds.Bound(value, side, "wrong")


def test_separation_factors_of_the_sheet_have_even_odds():
    assert [metric.separation for metric in METRICS] == [4, 2 * math.sqrt(2), 4]
    assert [metric.log_odds for metric in METRICS] == [0, 0, 0]
    # Let c be the separation factor, here 3. By Markov's inequality, the error is below c alpha / 2
    # with probability at least 1 - 2 / c. For RMS this probability is at least 1 - 4 / c^2.
    assert bounds.MeanL2(3.0).log_odds == pytest.approx(math.log((1 / 3) / (2 / 3)))
    assert bounds.RMS(3.0).log_odds == pytest.approx(math.log((5 / 9) / (4 / 9)))
    for factor in (2.0, math.nan, math.inf):
        for kind in (bounds.MeanL2, bounds.RMS, bounds.WorstCase):
            with pytest.raises(ValueError, match="above 2"):
                kind(factor)


def test_the_hamming_code_excludes_three_records():
    bound = bounds.certify([hamming()], epsilon=1.0, alpha=0.1)
    found = certificate_of(bound).rungs[0]
    assert found.constants["separation"] == pytest.approx(math.sqrt(4 / 8), rel=1e-12)
    assert found.constants["log_others"] == pytest.approx(2.70805, abs=5e-6)
    assert (found.constants["copies"], found.first, found.last) == (2, 1, 3)
    assert (bound.value, bound.side, bound.assumptions) == (3.0, bounds.Side.LOWER, ())


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: type(metric).__name__)
@pytest.mark.parametrize("adjacency", Adjacency, ids=lambda relation: relation.name)
def test_every_number_of_records_up_to_the_bound_is_excluded(metric, adjacency):
    # Let c be the separation factor, gamma the separation, and M = 16 the number of code words.
    # JL-L7 excludes n if r = ceil(c alpha n / gamma) copies of a word fit into n records, and
    # fewer than ln(M - 1) / epsilon changes turn the copies of one word into those of another.
    packing, epsilon, alpha = hamming(), 0.21, 0.03
    bound = bounds.certify(
        [packing], epsilon=epsilon, alpha=alpha, metric=metric, adjacency=adjacency
    )
    changes = 2 if adjacency is Adjacency.ADD_REMOVE else 1
    separation = packing.separation(metric)

    def excluded(n: int) -> bool:
        copies = math.ceil(metric.separation * alpha * n / separation)
        return copies <= n and copies * changes * epsilon < math.log(15)

    numbers = range(1, 2 * int(bound.value) + 2)
    assert [n for n in numbers if excluded(n)] == list(range(1, int(bound.value) + 1))


def test_two_packings_together_exclude_every_number_of_records():
    # Three elements have six multisets of two elements. So the packing of pairs excludes larger
    # numbers of records than the packing of single elements, but it does not exclude 1 record.
    W = Histogram(3)
    multisets = list(itertools.combinations_with_replacement(range(3), 2))
    pairs = bounds.Packing(W, np.arange(3), np.array(multisets), "pairs")
    single = bounds.single_elements(W, np.arange(3), np.arange(3), "elements")
    epsilon, alpha = 0.05, 0.05
    bound = bounds.certify([single, pairs], epsilon=epsilon, alpha=alpha)
    rungs = first, second = certificate_of(bound).rungs
    assert [rung.family for rung in rungs] == [single, pairs]
    assert first.last < second.last == bound.value
    required = Problem(epsilon, alpha).required_separation

    def fits(r: dict[str, Any], t: int, n: int) -> bool:
        """Whether t copies of each data set exclude n records."""
        apart = r["separation"] * t * r["size"] / n
        close = t * r["distance"] * epsilon < r["log_others"]
        return bool(t * r["size"] <= n and apart >= required and close)

    for n in range(1, int(bound.value) + 1):
        assert any(fits(rung.constants, t, n) for rung in rungs for t in range(1, n + 1)), n
    # The pairs alone do not exclude 1 record, so they prove no lower bound.
    with pytest.raises(bounds.SideConditionError, match="starts at 2 records"):
        bounds.certify([pairs], epsilon=epsilon, alpha=alpha)


def test_a_gap_between_numbers_of_copies_is_not_jumped():
    # Here t copies of data sets of 4 records exclude n from 4 t to 4 t * 1.26: first 4 and 5, then
    # 8 to 10, then 12 to 15. Only from t = 3 on do the ranges leave no gap, so 4 to 10 are dropped.
    matrix = np.eye(12)
    sets = np.array([row for row in itertools.combinations(range(12), 4) if sum(row) % 4 == 0])
    packing = bounds.Packing(Explicit(matrix), np.arange(12), sets, "four of twelve")
    separation = packing.separation(bounds.MeanL2())
    found = packing_rung(packing, Problem(0.01, separation / (4 * 1.26)))
    assert found.first == 12
    assert cover([found]) == ()


def test_distances_count_replacements():
    W = Prefixes(5)
    multisets = np.array([[0, 0, 1], [0, 1, 1], [4, 4, 4], [0, 4, 1]])
    packing = bounds.Packing(W, np.arange(5), multisets)
    assert packing.distance == 3
    assert bounds.Packing(W, np.arange(5), multisets[[0, 1, 3]]).distance == 1
    np.testing.assert_allclose(packing.means, [W.answers(row) for row in multisets], rtol=1e-15)


def test_failing_conditions_are_named():
    packing = hamming()
    with pytest.raises(
        bounds.SideConditionError, match=r"separation must be at least 4 alpha = 0.8"
    ):
        bounds.certify([packing], epsilon=1.0, alpha=0.2)
    with pytest.raises(
        bounds.SideConditionError,
        match="data sets are 1 replacement apart, so 1 copy of each is 1 apart",
    ):
        bounds.certify([packing], epsilon=3.0, alpha=0.1)
    two = bounds.single_elements(Marginals(8, 1), HAMMING, np.array([0, 15]), "two")
    with pytest.raises(bounds.SideConditionError, match="at least 3 data sets"):
        bounds.certify([two], epsilon=1.0, alpha=0.1)
    # A larger separation factor raises the odds, and then two data sets are enough.
    assert bounds.certify([two], epsilon=0.5, alpha=0.01, metric=bounds.MeanL2(8.0)).value > 0
    # With the separation factor 2.2, the odds are 1 / 10 up to rounding. For M = 11 data sets,
    # ln(M - 1) plus the logarithm of the odds is then 0, and must be above 0.
    eleven = bounds.single_elements(Marginals(8, 1), HAMMING, np.arange(11), "eleven")
    with pytest.raises(bounds.SideConditionError, match="above 0"):
        bounds.certify([eleven], epsilon=1e-12, alpha=0.01, metric=bounds.MeanL2(2.2))
    with pytest.raises(bounds.SideConditionError, match="no packing given"):
        bounds.certify([], epsilon=1.0, alpha=0.1)


def test_bad_input_is_refused():
    W = Marginals(8, 1)
    with pytest.raises(ValueError, match="0 to 15, got 0 to 16"):
        bounds.Packing(W, HAMMING, np.array([[0], [16]]))
    with pytest.raises(ValueError, match="shape"):
        bounds.Packing(W, HAMMING, np.arange(3))
    for epsilon, alpha in ((0.0, 0.1), (1.0, -1.0), (math.nan, 0.1)):
        with pytest.raises(ValueError, match="above 0"):
            bounds.certify([hamming()], epsilon=epsilon, alpha=alpha)
    other = bounds.single_elements(Marginals(8, 2), HAMMING, np.arange(16), "another workload")
    with pytest.raises(ValueError, match="of one workload"):
        bounds.certify([hamming(), other], epsilon=1.0, alpha=0.1)


def test_separation_is_that_of_the_nearest_data_sets():
    # In the maximum norm, the means e_0, (e_0 + e_1) / 2 and e_2 have distances 1/2, 1 and 1.
    packing = bounds.Packing(Explicit(np.eye(3)), np.arange(3), np.array([[0, 0], [0, 1], [2, 2]]))
    assert packing.separation(bounds.WorstCase()) == pytest.approx(0.5, abs=1e-12)


def textbook(workload: Workload, records: IntArray) -> list[bounds.Packing]:
    return [bounds.single_elements(workload, records, np.arange(len(records)), "by hand")]


#: A workload, epsilon and alpha, and the records of the packing that a textbook would use.
INSTANCES: dict[str, tuple[Workload, float, float, IntArray]] = {
    "Hamming code": (Marginals(8, 1), 1.0, 0.1, HAMMING),
    "prefixes": (Prefixes(64), 0.2, 0.02, np.arange(0, 64, 4)),
    "parities": (Parities(8, 2), 0.1, 0.05, (1 - hadamard(8)) // 2),
    "tables": (MarginalTables([3, 4, 5], 2), 0.1, 0.02, np.repeat(np.arange(3)[:, None], 3, 1)),
    "second moments": (SecondMoment(6), 0.1, 0.02, np.eye(6)),
}


@pytest.mark.parametrize("name", INSTANCES)
def test_the_search_ties_the_textbook(name):
    workload, epsilon, alpha, records = INSTANCES[name]
    found = bounds.packing_search(workload, epsilon=epsilon, alpha=alpha, rng=0)
    by_hand = bounds.certify(textbook(workload, records), epsilon=epsilon, alpha=alpha)
    assert found.value >= by_hand.value > 0
    assert found.assumptions == ()


def test_the_search_ties_sets_of_several_records():
    """Multisets of two elements; and the sets of a Reed-Solomon code, moved apart by exchanges."""
    pairs = np.array(list(itertools.combinations_with_replacement(range(3), 2)))
    code = bounds.ReedSolomon(11, 6, 3)
    signs, sets = RandomSigns(64, 66, 0), code.words() + 11 * np.arange(6)
    for W, alpha, datasets in ((Histogram(3), 0.05, pairs), (signs, 0.02, sets)):
        elements = np.arange(W.universe.size)
        families = [*textbook(W, elements), bounds.Packing(W, elements, datasets, "by hand")]
        by_hand = bounds.certify(families, epsilon=0.05, alpha=alpha)
        found = bounds.packing_search(W, epsilon=0.05, alpha=alpha, rng=0)
        assert found.value >= by_hand.value > 0


def test_a_hopeless_search_says_why():
    with pytest.raises(bounds.SideConditionError, match="at least 3 data sets"):
        bounds.packing_search(Histogram(10), epsilon=1.0, alpha=0.9, rng=0)
    with pytest.raises(ValueError, match="pool"):
        bounds.Effort(pool=1)
