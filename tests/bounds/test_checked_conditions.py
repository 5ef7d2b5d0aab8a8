"""Single checks of the certificate checker, with values at the limits of what it accepts.

The library's own certificates always meet these conditions.
"""

import json
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from geomdp import bounds
from geomdp.bounds.checker.check import _check_packing, _check_range
from geomdp.bounds.checker.code_packings import (
    _check_orthogonal,
    _check_union_bound,
    _half_hadamard,
    _is_prime,
    _Sets,
    generators_of,
    verify_blocks,
    verify_signs,
)
from geomdp.bounds.checker.lines import _known_risks, _lengths
from geomdp.bounds.checker.listed import _largest_distance, answers_of
from geomdp.bounds.checker.reading import (
    CLOSE,
    MEASURES,
    Guarantee,
    Part,
    Stated,
    VerifiedPacking,
    Work,
)
from geomdp.bounds.random_signs import (
    RandomSignSets,
    Sets,
    log_whole,
    reed_solomon_sets,
    singletons,
)
from geomdp.workloads import Histogram
from tests.bounds.test_checker import rejected, saved

MEAN, ROOT, LARGEST = MEASURES.values()


def part(work: int = 10**9, **values: Any) -> Part:
    return Part(values, Work(work))


def test_primes():
    for begin in (0, (1 << 20) - 60, 1 << 20):
        for n in range(begin, begin + 120):
            divides = any(n % f == 0 for f in range(2, math.isqrt(n) + 1))
            assert _is_prime(n) is (n > 1 and not divides), n
    assert _is_prime((1 << 61) - 1)
    for composite in (3215031751, 3825123056546413051, (1 << 61) + 2):
        assert not _is_prime(composite)


@pytest.mark.parametrize("side", [2, 4, 16])
def test_blocks_that_are_not_orthogonal_are_rejected(side):
    columns = _half_hadamard(side)
    _check_orthogonal(columns)
    flipped = columns.copy()
    flipped[0, 0] = 1 - flipped[0, 0]  # a single wrong bit is the smallest error
    for wrong in (flipped, np.vstack([columns, columns[:1]]))[: 1 + (side > 2)]:
        with pytest.raises(bounds.CertificateRejected, match="not orthogonal"):
            _check_orthogonal(wrong)


def blocks_of(prime: int, side: int = 4) -> Part:
    """A packing from blocks: two generators give four words, enough for 3 symbols, but not 5."""
    codes = {"symbols": prime, "length": 3, "degree": 2}
    generators = [[1, 0, 1, 0], [0, 1, 0, 1]]
    return part(attributes=side + 4, width=2, part=side, generators=generators, **codes)


@pytest.mark.parametrize("side", [4, 8, 16])
def test_blocks_are_as_far_apart_as_the_sheet_says(side):
    """JL-T25 for l = 2 and s = 3: two words of weight 2 differ between data sets."""
    found = verify_blocks(blocks_of(3, side), ROOT).separation
    expected = math.sqrt(2 * 2 * side / 4 / math.comb(side + 4, 2)) / 3
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_distance_of_data_sets_is_the_largest():
    assert _largest_distance(np.array([[0, 0], [0, 1], [2, 3]])) == 2
    assert _largest_distance(np.array([[0, 0, 1], [0, 1, 1]])) == 1
    for single, distance in (([4], 0), ([4, 4], 0), ([4, 5], 1), ([4, 5, 6], 1)):
        assert _largest_distance(np.array(single)[:, None]) == distance


def tables_of(record: list[int], columns: object = (2, 3)) -> Part:
    workload = {"name": "marginal tables", "columns": columns, "k": 1}
    return part(workload=workload, elements=[[0, 0], record])


TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


def lines_of(pairs: list[list[int]]) -> Part:
    return part(pairs=pairs, weights=[1.0])


def known_of(points: int, spacing: float) -> Part:
    """A line with one risk, for a prior on some `points`."""
    same = [1 / points] * points
    known = {"prior": same, "allowances": [0.1 / points] * points, "risk": 0.1, "spacing": spacing}
    return part(known=[known])


MARGINALS = {"name": "marginals", "d": 3, "k": 1}
REJECTED: dict[str, tuple[Callable[[], object], str]] = {
    "21 generators": (lambda: generators_of(part(generators=[[1, 0]] * 21)),
                      "more than 20 generators"),
    "5 symbols": (lambda: verify_blocks(blocks_of(5), ROOT), "there are more symbols than words"),
    "a level too high": (lambda: answers_of(tables_of([2, 0])), "not level codes"),
    "a level too low": (lambda: answers_of(tables_of([-1, 0])), "not level codes"),
    "columns: a number": (lambda: answers_of(tables_of([0, 0], 2)), "columns does not have 1 axes"),
    "columns: a matrix": (lambda: answers_of(tables_of([0, 0], [[2], [3]])), "not have 1 axes"),
    "two attributes": (lambda: answers_of(part(workload=MARGINALS, elements=[[0, 1]])),
                       "elements do not have 3 attributes"),
    **{
        f"pair {pair}": (
            lambda pair=pair: _lengths(lines_of([pair]), TRIANGLE),  # type: ignore[misc]
            "pairs name elements that are not listed",
        )
        for pair in ([0, 3], [-1, 1], [0, 1, 2], [0])
    },
    **{
        f"spacing {spacing}, moment {moment}": (
            lambda spacing=spacing, moment=moment: _known_risks(  # type: ignore[misc]
                known_of(2, spacing), Guarantee(1.0, 0.0, 0.0), 1, moment
            ),
            "spacing is out of range",
        )
        for spacing, moment in ((0.0, 2), (1.1, 2), (2.0, 2), (0.5, 1))
    },
    "one point": (lambda: _known_risks(known_of(1, 1.0), Guarantee(1.0, 0.0, 0.0), 1, 2),
                  "a prior has one point only"),
}  # fmt: skip


@pytest.mark.parametrize("name", REJECTED)
def test_what_proves_nothing_is_rejected(name):
    call, message = REJECTED[name]
    with pytest.raises(bounds.CertificateRejected, match=message):
        call()


@pytest.mark.parametrize("share", [-0.001, 0.9, 1.1])
def test_a_stated_failure_is_that_of_the_union_bound(share):
    """The stated probability may be slightly above the computed one, e^-100 here, but not below.

    The logarithm of the stated probability may be larger by about 101 `CLOSE`.
    """
    queries, tilt, deviation, log_failure = 500, 0.2, 0.5, -100.0
    rate = -tilt * (1 - deviation) - math.log(1 - tilt + tilt**2)
    log_count = (log_failure + math.log(2) + queries * rate) / 2
    sets = _Sets(Decimal(log_count), 1, 2, log_count)
    stated = math.exp(log_failure + share * CLOSE * (1 - log_failure))
    if 0 <= share <= 1:
        _check_union_bound(sets, queries, stated, tilt, deviation)
    else:
        with pytest.raises(bounds.CertificateRejected, match="the union bound gives a failure"):
            _check_union_bound(sets, queries, stated, tilt, deviation)


def verified_signs(sets: Sets) -> VerifiedPacking:
    return verify_signs(Part(RandomSignSets(2000, sets).document(), Work(10**9)))


@pytest.mark.parametrize("log_count", [math.log(3), 5.7, math.log(10**9 + 7), 29.0, 33.3, 36.0])
def test_random_signs_have_no_more_pairs_of_sets_than_the_union_bound_counts(log_count):
    """The union bound counts e^(2 L) / 2 pairs for L = `log_count`; M sets have M (M - 1) / 2.

    So M is at most the solution of M (M - 1) = e^(2 L), and the checker's ln M is at most the
    logarithm of this solution. The library's ln M may be larger by rounding errors: 2^-52 from the
    exponential, and a relative error of 2^-53 from the logarithm.
    """
    with localcontext() as context:
        context.prec = 60
        most = float(((1 + (1 + 4 * (2 * Decimal(log_count)).exp()).sqrt()) / 2).ln())
    assert verified_signs(singletons(log_count)).log_count <= most
    assert log_whole(log_count) <= most + 2.0**-53 * (2 + most)


def test_answers_of_sets_of_several_elements_are_as_far_apart_as_verified():
    """Sets of 4 of 68 elements, one for each polynomial a + b i over the field of 17 elements."""
    a, b = np.divmod(np.arange(17**2), 17)
    words = (a[:, None] + b[:, None] * np.arange(4)) % 17
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (2000, 4, 17))
    answers = signs[:, np.arange(4), words].mean(axis=-1)
    closest = pdist(answers.T).min() / math.sqrt(2000)
    separation = verified_signs(reed_solomon_sets(bounds.ReedSolomon(17, 4, 2))).separation
    assert 0.8 * closest < separation < closest


#: A bound on rho - 1 above which 2 copies of 3 records leave no gap; the margin is 1e-14 of it.
NO_GAP = 2 / (2 * 3)


@pytest.mark.parametrize(("rho", "size", "first", "last", "message"), [
    (1.0, 1, 1, 5, None),
    (1.5, 1, 1, 7, None),
    # c copies of 2 records exclude 2 c to 2 c rho records. For rho = 1 odd numbers remain.
    (1.0, 2, 2, 10, "not all numbers of records from 2 on"),
    (1.5, 2, 2, 15, "not all numbers of records from 2 on"),  # 2 rho = 3 has no margin
    (1.5 * (1 + 1e-12), 2, 2, 15, None),
    # With rho = 1.26, one copy of 2 records excludes 2 only. Two copies exclude 4 and 5.
    (1.26, 2, 4, 12, None),
    (1.26, 2, 6, 12, "first could be below 6"),
    (1.0, 1, 2, 12, "first could be below 2"),
    (1 + (1 + 1e-12) * NO_GAP, 3, 6, 20, None),
    (1 + (1 - 5e-15) * NO_GAP, 3, 6, 19, "not all numbers of records"),
])  # fmt: skip
def test_the_excluded_numbers_of_records(rho, size, first, last, message):
    written = part(first=first, last=last)
    if message is None:
        assert _check_range(written, rho, size, 5) == (first, last)
    else:
        with pytest.raises(bounds.CertificateRejected, match=message):
            _check_range(written, rho, size, 5)


def packing_of(
    log_count: float, size: int, separation: float, slack: float = 0.0
) -> VerifiedPacking:
    return VerifiedPacking(
        subject=("records",),
        queries="queries",
        log_count=log_count,
        size=size,
        distance=size,
        separation=separation,
        slack=slack,
        verified=(),
    )


def rung_of(
    count: int, copies: int, epsilon: float = 1.0, factor: float = 4.0
) -> tuple[Part, VerifiedPacking, Stated]:
    """A rung for a packing of `count` single records; all constants fit `count` and `copies`."""
    log_odds, required, stated = MEAN.log_odds(factor), 0.01 * factor, 1 - 1e-12
    problem = Stated(Guarantee(epsilon, 0.0, 0.0), 0.01, required, log_odds, 1, MEAN)
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
    return Part(values, Work(10**6)), packing_of(math.log(count), 1, 1.0, 1e-12), problem


def test_copies_beyond_what_privacy_excludes_are_rejected():
    """At epsilon = 1, the distance must be below ln 7 = 1.95, but two copies have distance 2.

    For two data sets, the distance 1 is below the limit ln 2 / 0.5 = 1.39.
    """
    assert _check_packing(*rung_of(8, 1)) == (1, 24)
    assert _check_packing(*rung_of(2, 1, epsilon=0.5, factor=6.0)) == (1, 16)
    for rung, message in (
        (rung_of(8, 2), "not below"),
        (rung_of(1, 1, epsilon=0.5, factor=6.0), "a packing needs at least two data sets"),
    ):
        with pytest.raises(bounds.CertificateRejected, match=message):
            _check_packing(*rung)


def test_a_gap_below_the_rounding_error_of_the_separation_is_rejected():
    """In float64 rho - 1 is 2% too large, so the least number of copies seems 2% smaller."""
    separation, required = 0.05007953439896985, 0.050079534398969776
    rho = separation / required
    assert rho - 1 > 1.019 * (Fraction(separation) / Fraction(required) - 1)
    copies = math.ceil((1 + 1e-11) / (2 * (rho - 1)))
    log_others = 40.0
    epsilon = log_others / (2 * copies * (1 + 1e-12))
    rung = part(
        log_others=log_others,
        size=2,
        distance=2,
        separation=separation,
        largest_distance=log_others / epsilon,
        copies=copies,
        first=2 * copies,
        last=math.floor(2 * copies * rho),
    )
    problem = Stated(Guarantee(epsilon, 0.0, 0.0), required / 4, required, 0.0, 1, MEAN)
    with pytest.raises(bounds.CertificateRejected, match="times the required separation"):
        _check_packing(rung, packing_of(log_others, 2, separation), problem)


def nearly_cancelled(factor: float, epsilon: float) -> bounds.Bound:
    """The bound from 100 elements whose answers are 1 apart, for a separation factor near 2.02.

    At 2 + 2 / 99 the log odds are -ln 99. They then cancel ln(M - 1) for M = 100 data sets.
    """
    packing = bounds.single_elements(Histogram(100), np.arange(100), np.arange(100), "all")
    return bounds.certify([packing], epsilon=epsilon, alpha=0.01, metric=bounds.WorstCase(factor))


@pytest.mark.parametrize("factor", [2.0202020202057906, 2.0202020202057924, 2.020202020205794])
def test_rounding_errors_of_nearly_equal_terms_prove_nothing(factor, tmp_path):
    """ln(M - 1) and the log odds are about 4.6, and their sum is 1.9e-10.

    In float64 the sum is 6e-6 of itself too large. An epsilon between the exact sum and the
    computed sum therefore seems to exclude one copy of each data set. In fact it excludes none.
    """
    with localcontext() as context:
        context.prec = 50
        exact = float((99 * (Decimal(factor) / 2 - 1)).ln())
    others = math.log(100) + math.log1p(-math.exp(-math.log(100)))  # as the checker computes it
    total = others + math.log(factor / 2 - 1)
    epsilon = exact * (1 + 1e-6)
    assert total > epsilon * (1 + 1e-6)
    path = saved(nearly_cancelled(2.03, 0.3), tmp_path)
    assert bounds.check_certificate(path).records == math.floor(1 / (0.01 * 2.03))
    last = math.floor(1 / (0.01 * factor))
    document = json.loads(path.read_text()) | {
        "epsilon": epsilon,
        "separation_factor": factor,
        "log_odds": math.log(factor / 2 - 1),
        "required_separation": 0.01 * factor,
        "lower_bound": last,
    }
    document["rungs"][0] |= {"largest_distance": total / epsilon, "last": last}
    rejected(path, document, "1 copies are 1 replacements, not below")
    with pytest.raises(bounds.SideConditionError, match="data sets are 1 replacement apart"):
        nearly_cancelled(factor, epsilon)
    # The margin of the library is above that of the checker, so an honest bound is confirmed.
    bound = nearly_cancelled(2 + 2 / 99 * (1 + 1e-6), 1e-9)
    assert bounds.check_certificate(saved(bound, tmp_path)).records == bound.value
