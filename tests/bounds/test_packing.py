"""Packings and their certificates agree with lemmas JL-L6 and JL-L7, and bad input is refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from geomdp.bounds import (
    RMS,
    Bound,
    Certificate,
    MeanL2,
    Metric,
    Packing,
    Side,
    SideConditionError,
    WorstCase,
    certify,
    single_elements,
)
from geomdp.bounds.certificates import CopiedPacking, Rung, cover, packing_rung
from geomdp.bounds.problem import Problem
from geomdp.privacy import Adjacency
from geomdp.workloads import Explicit, Histogram, Marginals, Prefixes

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
METRICS = (MeanL2(), RMS(), WorstCase())


def hamming() -> Packing:
    return single_elements(Marginals(8, 1), HAMMING, np.arange(16), "Hamming code")


def certificate_of(bound: Bound) -> Certificate:
    assert isinstance(bound.certificate, Certificate)
    return bound.certificate


def packing_of(rung: Rung) -> CopiedPacking:
    assert isinstance(rung.witness, CopiedPacking)
    return rung.witness


# --- bounds and metrics ----------------------------------------------------------------------


def test_a_bound_says_how_it_rounds() -> None:
    lower, upper = Bound(3.5, Side.LOWER, "lower"), Bound(3.5, Side.UPPER, "upper")
    assert (lower.records, upper.records) == (3.0, 4.0)
    assert str(lower) == "sc > 3: lower"
    assert Bound(math.inf, Side.UPPER, "none").records == math.inf
    assert repr(lower) == "Bound(sc > 3, 0 assumptions)"
    for value, side in ((-1.0, Side.UPPER), (math.nan, Side.LOWER), (math.inf, Side.LOWER)):
        with pytest.raises(ValueError, match="must be at least 0"):
            Bound(value, side, "wrong")


@pytest.mark.parametrize(
    ("value", "side", "text"),
    [
        # With six digits, rounded to nearest, this lower bound would read "sc > 1e+11". This would
        # claim too much.
        (99_999_999_999.5, Side.LOWER, "> 99999999999"),
        (12_345_678_901.0, Side.UPPER, "<= 12345678901"),
        (999_999_999_999_999.0, Side.LOWER, "> 999999999999999"),
        # From 10^15 on, bounds have six digits, rounded in the direction that keeps them true.
        (1_234_567_800_000_001.0, Side.LOWER, "> 1.23456e+15"),
        (1_234_567_800_000_001.0, Side.UPPER, "<= 1.23457e+15"),
        (9.999999e300, Side.LOWER, "> 9.99999e+300"),
        (9.999999e300, Side.UPPER, "<= 1e+301"),
        (math.inf, Side.UPPER, "<= inf"),
    ],
)
def test_a_printed_bound_is_true(value: float, side: Side, text: str) -> None:
    bound = Bound(value, side, "why")
    assert str(bound) == f"sc {text}: why"
    assert repr(bound) == f"Bound(sc {text}, 0 assumptions)"
    assert text.endswith(bound.records_text)


def test_separation_factors_of_the_sheet_have_even_odds() -> None:
    assert [metric.separation for metric in METRICS] == [4, 2 * math.sqrt(2), 4]
    assert [metric.log_odds for metric in METRICS] == [0, 0, 0]
    # Let c be the separation factor, here 3. By Markov's inequality, the error is below c alpha / 2
    # with probability at least 1 - 2 / c. For RMS this probability is at least 1 - 4 / c^2.
    assert MeanL2(3.0).log_odds == pytest.approx(math.log((1 / 3) / (2 / 3)))
    assert RMS(3.0).log_odds == pytest.approx(math.log((5 / 9) / (4 / 9)))
    for factor in (2.0, math.nan, math.inf):
        for kind in (MeanL2, RMS, WorstCase):
            with pytest.raises(ValueError, match="above 2"):
                kind(factor)


def test_norms_are_per_query() -> None:
    differences = np.array([[3.0, -4.0, 0.0, 0.0]])
    assert [metric.norm(differences)[0] for metric in METRICS] == [2.5, 2.5, 4.0]


# --- the packing lemmas JL-L6 and JL-L7 ------------------------------------------------------


def test_the_hamming_code_excludes_three_records() -> None:
    bound = certify([hamming()], epsilon=1.0, alpha=0.1)
    found = certificate_of(bound).rungs[0]
    packing = packing_of(found)
    assert packing.separation == pytest.approx(math.sqrt(4 / 8), rel=1e-12)
    assert packing.log_others == pytest.approx(2.70805, abs=5e-6)
    assert (packing.copies, found.first, found.last) == (2, 1, 3)
    assert (bound.value, bound.side, bound.assumptions) == (3.0, Side.LOWER, ())


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: type(metric).__name__)
@pytest.mark.parametrize("adjacency", Adjacency, ids=lambda relation: relation.name)
def test_every_number_of_records_up_to_the_bound_is_excluded(
    metric: Metric, adjacency: Adjacency
) -> None:
    # Let c be the separation factor, gamma the separation, and M = 16 the number of code words.
    # JL-L7 excludes n if r = ceil(c alpha n / gamma) copies of a word fit into n records, and
    # fewer than ln(M - 1) / epsilon changes turn the copies of one word into those of another.
    packing, epsilon, alpha = hamming(), 0.21, 0.03
    bound = certify([packing], epsilon=epsilon, alpha=alpha, metric=metric, adjacency=adjacency)
    changes = 2 if adjacency is Adjacency.ADD_REMOVE else 1
    separation = packing.separation(metric)

    def excluded(n: int) -> bool:
        copies = math.ceil(metric.separation * alpha * n / separation)
        return copies <= n and copies * changes * epsilon < math.log(15)

    numbers = range(1, 2 * int(bound.value) + 2)
    assert [n for n in numbers if excluded(n)] == list(range(1, int(bound.value) + 1))


def test_two_packings_together_exclude_every_number_of_records() -> None:
    # Three elements have six multisets of two elements. So the packing of pairs excludes larger
    # numbers of records than the packing of single elements, but it does not exclude 1 record.
    W = Histogram(3)
    multisets = list(itertools.combinations_with_replacement(range(3), 2))
    pairs = Packing(W, np.arange(3), np.array(multisets), "pairs")
    single = single_elements(W, np.arange(3), np.arange(3), "elements")
    epsilon, alpha = 0.05, 0.05
    bound = certify([single, pairs], epsilon=epsilon, alpha=alpha)
    first, second = certificate_of(bound).rungs
    copied = [packing_of(rung) for rung in (first, second)]
    assert [packing.family for packing in copied] == [single, pairs]
    assert first.last < second.last == bound.value
    problem = Problem(epsilon, alpha)
    for n in range(1, int(bound.value) + 1):
        fits = [
            any(
                t * r.size <= n
                and r.separation * t * r.size / n >= problem.required_separation
                and t * r.distance * epsilon < r.log_others
                for t in range(1, n + 1)
            )
            for r in copied
        ]
        assert any(fits), n
    # The pairs alone do not exclude 1 record, so they prove no lower bound.
    with pytest.raises(SideConditionError, match="starts at 2 records"):
        certify([pairs], epsilon=epsilon, alpha=alpha)


def test_a_gap_between_numbers_of_copies_is_not_jumped() -> None:
    # Here t copies of data sets of 4 records exclude n from 4 t to 4 t * 1.26: first 4 and 5, then
    # 8 to 10, then 12 to 15. Only from t = 3 on do the ranges leave no gap, so 4 to 10 are dropped.
    matrix = np.eye(12)
    sets = np.array([row for row in itertools.combinations(range(12), 4) if sum(row) % 4 == 0])
    packing = Packing(Explicit(matrix), np.arange(12), sets, "four of twelve")
    separation = packing.separation(MeanL2())
    found = packing_rung(packing, Problem(0.01, separation / (4 * 1.26)))
    assert found.first == 12
    assert cover([found]) == ()


def test_distances_count_replacements() -> None:
    W = Prefixes(5)
    multisets = np.array([[0, 0, 1], [0, 1, 1], [4, 4, 4], [0, 4, 1]])
    packing = Packing(W, np.arange(5), multisets)
    assert packing.distance == 3
    assert Packing(W, np.arange(5), multisets[[0, 1, 3]]).distance == 1
    np.testing.assert_allclose(packing.means, [W.answers(row) for row in multisets], rtol=1e-15)


# --- monotonicity ----------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: type(metric).__name__)
def test_bounds_fall_with_epsilon_and_alpha(metric: Metric) -> None:
    packing = hamming()
    for epsilons, alphas in (
        (np.geomspace(0.05, 1, 12), [0.03]),
        ([0.1], np.geomspace(0.003, 0.1, 12)),
    ):
        values = [
            certify([packing], epsilon=float(epsilon), alpha=float(alpha), metric=metric).value
            for epsilon in epsilons
            for alpha in alphas
        ]
        assert values == sorted(values, reverse=True)
        assert values[0] > values[-1]


def test_bounds_grow_with_queries() -> None:
    # `WorstCase` takes the largest error of a query, so alpha stays fixed as k grows. `MeanL2`
    # divides the Euclidean error by sqrt(k), so alpha sqrt(k) stays fixed.
    rng = np.random.default_rng(0)
    matrix = rng.uniform(-1, 1, (12, 10))
    worst, mean = [], []
    for k in range(2, 13):
        W = Explicit(matrix[:k])
        packing = single_elements(W, np.arange(10), np.arange(10), "all")
        alpha = 0.002 * math.sqrt(12 / k)
        worst.append(certify([packing], epsilon=0.3, alpha=0.002, metric=WorstCase()).value)
        mean.append(certify([packing], epsilon=0.3, alpha=alpha).value)
    assert worst == sorted(worst)
    assert mean == sorted(mean)


# --- side conditions -------------------------------------------------------------------------


def test_failing_conditions_are_named() -> None:
    packing = hamming()
    with pytest.raises(SideConditionError, match=r"separation must be at least 4 alpha = 0.8"):
        certify([packing], epsilon=1.0, alpha=0.2)
    with pytest.raises(SideConditionError, match="data sets are 1 replacements apart"):
        certify([packing], epsilon=3.0, alpha=0.1)
    two = single_elements(Marginals(8, 1), HAMMING, np.array([0, 15]), "two")
    with pytest.raises(SideConditionError, match="at least 3 data sets"):
        certify([two], epsilon=1.0, alpha=0.1)
    # A larger separation factor raises the odds, and then two data sets are enough.
    assert certify([two], epsilon=0.5, alpha=0.01, metric=MeanL2(8.0)).value > 0
    # With the separation factor 2.2, the odds are 1 / 10 up to rounding. For M = 11 data sets,
    # ln(M - 1) plus the logarithm of the odds is then 0, and must be above 0.
    eleven = single_elements(Marginals(8, 1), HAMMING, np.arange(11), "eleven")
    with pytest.raises(SideConditionError, match="above 0"):
        certify([eleven], epsilon=1e-12, alpha=0.01, metric=MeanL2(2.2))
    with pytest.raises(SideConditionError, match="no packing given"):
        certify([], epsilon=1.0, alpha=0.1)


def test_bad_input_is_refused() -> None:
    W = Marginals(8, 1)
    with pytest.raises(ValueError, match="0 to 15, got 0 to 16"):
        Packing(W, HAMMING, np.array([[0], [16]]))
    with pytest.raises(ValueError, match="shape"):
        Packing(W, HAMMING, np.arange(3))
    for epsilon, alpha in ((0.0, 0.1), (1.0, -1.0), (math.nan, 0.1)):
        with pytest.raises(ValueError, match="above 0"):
            certify([hamming()], epsilon=epsilon, alpha=alpha)
    other = single_elements(Marginals(8, 2), HAMMING, np.arange(16), "another workload")
    with pytest.raises(ValueError, match="of one workload"):
        certify([hamming(), other], epsilon=1.0, alpha=0.1)


def test_separation_is_that_of_the_nearest_data_sets():
    # In the maximum norm, the means e_0, (e_0 + e_1) / 2 and e_2 have distances 1/2, 1 and 1.
    packing = Packing(Explicit(np.eye(3)), np.arange(3), np.array([[0, 0], [0, 1], [2, 2]]))
    assert packing.separation(WorstCase()) == pytest.approx(0.5, abs=1e-12)
