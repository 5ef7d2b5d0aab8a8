"""Conditions that the library's own certificates always meet; the checker rejects violations."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from geomdp.bounds import ReedSolomon
from geomdp.bounds.checker.check import _check_packing
from geomdp.bounds.checker.code_packings import (
    _check_orthogonal,
    _check_union_bound,
    _half_hadamard,
    _Sets,
    verify_blocks,
    verify_signs,
)
from geomdp.bounds.checker.listed import _largest_distance, answers_of
from geomdp.bounds.checker.reading import (
    CLOSE,
    MEASURES,
    MOST_LOSS,
    CertificateRejected,
    Guarantee,
    Part,
    Stated,
    VerifiedPacking,
    Work,
)
from geomdp.bounds.random_signs import (
    RandomSignSets,
    ReedSolomonSets,
    SetFamily,
    Singletons,
    log_whole,
)


@pytest.mark.parametrize("side", [2, 4, 16])
def test_blocks_that_are_not_orthogonal_are_rejected(side: int) -> None:
    columns = _half_hadamard(side)
    _check_orthogonal(columns)
    flipped = columns.copy()
    flipped[0, 0] = 1 - flipped[0, 0]  # a single wrong bit is the smallest error
    with pytest.raises(CertificateRejected, match="not orthogonal"):
        _check_orthogonal(flipped)
    if side > 2:
        with pytest.raises(CertificateRejected, match="not orthogonal"):
            _check_orthogonal(np.vstack([columns, columns[:1]]))


@pytest.mark.parametrize(
    ("metric", "lengths"),
    [
        ("mean l2 error per query", [math.sqrt(5.0), math.sqrt(2.5)]),
        ("root mean squared error per query", [math.sqrt(5.0), math.sqrt(2.5)]),
        ("worst-case error over the queries", [3.0, 2.0]),
    ],
)
def test_a_measure_is_that_of_each_row(metric: str, lengths: list[float]) -> None:
    """The error of largest modulus is negative in the first row and positive in the second row."""
    found = MEASURES[metric].norm(np.array([[-3.0, 1.0], [-1.0, 2.0]]))
    np.testing.assert_allclose(found, lengths, rtol=1e-15)


def test_the_distance_of_data_sets_is_the_largest() -> None:
    assert _largest_distance(np.array([[0, 0], [0, 1], [2, 3]])) == 2
    assert _largest_distance(np.array([[0, 0, 1], [0, 1, 1]])) == 1
    for single, distance in (([4], 0), ([4, 4], 0), ([4, 5], 1), ([4, 5, 6], 1)):
        assert _largest_distance(np.array(single)[:, None]) == distance


def test_there_are_at_least_as_many_words_as_symbols() -> None:
    """Two generators give four words, which can encode 3 different symbols, but not 5."""
    for prime, enough in ((3, True), (5, False)):
        values = {
            "attributes": 8,
            "width": 2,
            "part": 4,
            "generators": [[1, 0, 1, 0], [0, 1, 0, 1]],
            "symbols": prime,
            "length": 3,
            "degree": 2,
        }
        part = Part(values, Work(10**8))
        if enough:
            assert verify_blocks(part, MEASURES["root mean squared error per query"]).size == 3
        else:
            with pytest.raises(CertificateRejected, match="there are more symbols than words"):
                verify_blocks(part, MEASURES["root mean squared error per query"])


@pytest.mark.parametrize(("record", "inside"), [((1, 2), True), ((2, 0), False), ((-1, 0), False)])
def test_records_of_tables_hold_level_codes(record: tuple[int, int], inside: bool) -> None:
    """A column of 2 levels has the codes 0 and 1, and a column of 3 levels the codes 0, 1 and 2."""
    elements = np.array([[0, 0], record])
    values = {"name": "marginal tables", "columns": [2, 3], "k": 1}
    part = Part({"workload": values, "elements": elements.tolist()}, Work(10**6))
    if inside:
        answers = answers_of(part)[0]
        np.testing.assert_array_equal(answers.sum(axis=1), [2, 2])
    else:
        with pytest.raises(CertificateRejected, match="not level codes"):
            answers_of(part)


@pytest.mark.parametrize("changes", [1, 3])
def test_chi_square_is_computed_for_losses_up_to_the_limit(changes: int) -> None:
    rho = MOST_LOSS / (2 * changes**2)
    below = Guarantee(0.0, 0.0, rho * (1 - 1e-9)).chi_square(changes)
    assert math.log1p(below) == pytest.approx(MOST_LOSS, rel=1e-8)
    with pytest.raises(CertificateRejected, match="loses too much privacy"):
        Guarantee(0.0, 0.0, rho * (1 + 1e-9)).chi_square(changes)


@pytest.mark.parametrize("share", [-0.001, 0.9, 1.1])
def test_a_stated_failure_is_that_of_the_union_bound(share: float) -> None:
    """The stated probability may be slightly above the computed one, e^-100 here, but not below.

    The logarithm of the stated probability may be larger by about 101 `CLOSE`.
    """
    queries, tilt, deviation, log_failure = 500, 0.2, 0.5, -100.0
    rate = -tilt * (1 - deviation) - math.log(1 - tilt + tilt**2)
    log_count = (log_failure + math.log(2) + queries * rate) / 2
    sets = _Sets(Decimal(log_count), 1, 2, log_count, None)
    stated = math.exp(log_failure + share * CLOSE * (1 - log_failure))
    if 0 <= share <= 1:
        _check_union_bound(sets, queries, stated, tilt, deviation)
    else:
        with pytest.raises(CertificateRejected, match="the union bound gives a failure"):
            _check_union_bound(sets, queries, stated, tilt, deviation)


def rung_of(
    count: int, copies: int, epsilon: float = 1.0, factor: float = 4.0
) -> tuple[Part, VerifiedPacking, Stated]:
    """A rung for a packing of `count` single records; all constants fit `count` and `copies`."""
    measure = MEASURES["mean l2 error per query"]
    found = VerifiedPacking(
        subject=("records",),
        queries="queries",
        log_count=math.log(count),
        size=1,
        distance=1,
        separation=1.0,
        slack=1e-12,
        verified=(),
    )
    log_odds, required, stated = measure.log_odds(factor), 0.01 * factor, 1 - 1e-12
    problem = Stated(Guarantee(epsilon, 0.0, 0.0), 0.01, required, log_odds, 1, measure)
    log_others = math.log(max(1, count - 1))
    values = {
        "log_others": log_others,
        "size": 1,
        "distance": 1,
        "separation": stated,
        "largest_distance": (log_others + log_odds) / epsilon,
        "copies": copies,
        "first": 1,
        "last": math.floor(copies * stated / required),
    }
    return Part(values, Work(10**6)), found, problem


def test_copies_beyond_what_privacy_excludes_are_rejected() -> None:
    """At epsilon = 1, the distance must be below ln 7 = 1.95, but two copies have distance 2."""
    assert _check_packing(*rung_of(8, 1)) == (1, 24)
    with pytest.raises(CertificateRejected, match="not below"):
        _check_packing(*rung_of(8, 2))


def test_a_gap_below_the_rounding_error_of_the_separation_is_rejected() -> None:
    """In float64 rho - 1 is 2% too large, so the least number of copies seems 2% smaller."""
    separation, required = 0.05007953439896985, 0.050079534398969776
    rho = separation / required
    assert rho - 1 > 1.019 * (Fraction(separation) / Fraction(required) - 1)
    copies = math.ceil((1 + 1e-11) / (2 * (rho - 1)))
    log_others = 40.0
    epsilon = log_others / (2 * copies * (1 + 1e-12))
    measure = MEASURES["mean l2 error per query"]
    found = VerifiedPacking(
        subject=("records",),
        queries="queries",
        log_count=log_others,
        size=2,
        distance=2,
        separation=separation,
        slack=0.0,
        verified=(),
    )
    values = {
        "log_others": log_others,
        "size": 2,
        "distance": 2,
        "separation": separation,
        "largest_distance": log_others / epsilon,
        "copies": copies,
        "first": 2 * copies,
        "last": math.floor(2 * copies * rho),
    }
    problem = Stated(Guarantee(epsilon, 0.0, 0.0), required / 4, required, 0.0, 1, measure)
    with pytest.raises(CertificateRejected, match="times the required separation"):
        _check_packing(Part(values, Work(10**6)), found, problem)


def test_a_packing_has_two_data_sets_or_more() -> None:
    """Two data sets are enough. Their distance 1 is below the limit, which is ln 2 / 0.5 = 1.39."""
    assert _check_packing(*rung_of(2, 1, epsilon=0.5, factor=6.0)) == (1, 16)
    with pytest.raises(CertificateRejected, match="a packing needs at least two data sets"):
        _check_packing(*rung_of(1, 1, epsilon=0.5, factor=6.0))


@pytest.mark.parametrize("log_count", [math.log(3), 5.7, math.log(10**9 + 7), 29.0, 33.3, 36.0])
def test_random_signs_have_no_more_pairs_of_sets_than_the_union_bound_counts(
    log_count: float,
) -> None:
    """The union bound counts e^(2 L) / 2 pairs for L = `log_count`; M sets have M (M - 1) / 2.

    So M is at most the solution of M (M - 1) = e^(2 L), and the checker's ln M is at most the
    logarithm of this solution. The library's ln M may be larger by rounding errors: 2^-52 from the
    exponential, and a relative error of 2^-53 from the logarithm.
    """
    with localcontext() as context:
        context.prec = 60
        most = float(((1 + (1 + 4 * (2 * Decimal(log_count)).exp()).sqrt()) / 2).ln())
    assert _verified(Singletons(log_count)).log_count <= most
    assert log_whole(log_count) <= most + 2.0**-53 * (2 + most)


@pytest.mark.parametrize(("prime", "degree"), [(17, 2), (9973, 3), (99991, 3), (65537, 3)])
def test_random_signs_have_no_more_sets_than_words(prime: int, degree: int) -> None:
    sets = ReedSolomonSets(ReedSolomon(prime, 4, degree))
    assert _verified(sets).log_count == math.log(prime**degree)


def _verified(sets: SetFamily) -> VerifiedPacking:
    return verify_signs(Part(RandomSignSets(2000, sets).document(), Work(10**9)))
