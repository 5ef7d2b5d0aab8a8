"""Single checks of the certificate checker, with values at the limits of what it accepts."""

from __future__ import annotations

from math import comb, isqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geomdp.bounds import CertificateRejected
from geomdp.bounds.checker.check import _check_range
from geomdp.bounds.checker.code_packings import _is_prime, _marginals_subject, generators_of
from geomdp.bounds.checker.lines import _lengths, _risks
from geomdp.bounds.checker.listed import answers_of, verify_listed
from geomdp.bounds.checker.reading import MAX_DEPTH, MEASURES, Part, Work, _depth_is_limited, read


def part(work: int = 10**9, **values: Any) -> Part:
    return Part(values, Work(work))


# --- numbers of records -----------------------------------------------------------------------


@pytest.mark.parametrize(("rho", "first", "last"), [(1.0, 1, 5), (1.5, 1, 7)])
def test_one_record_excludes_all_numbers_from_one_on(rho: float, first: int, last: int) -> None:
    assert _check_range(part(first=first, last=last), rho, 1, 5) == (first, last)


def test_numbers_of_records_without_gap() -> None:
    """c copies of 2 records exclude 2 c to 2 c rho records. For rho = 1 odd numbers remain."""
    with pytest.raises(CertificateRejected, match="not all numbers of records from 2 on"):
        _check_range(part(first=2, last=10), 1.0, 2, 5)
    with pytest.raises(CertificateRejected, match="not all numbers of records from 2 on"):
        _check_range(part(first=2, last=15), 1.5, 2, 5)  # 2 rho = 3 has no margin for rounding
    assert _check_range(part(first=2, last=15), 1.5 * (1 + 1e-12), 2, 5) == (2, 15)


def test_the_first_number_of_records_is_the_least() -> None:
    """With rho = 1.26, one copy of 2 records excludes 2 only. Two copies exclude 4 and 5."""
    assert _check_range(part(first=4, last=12), 1.26, 2, 5) == (4, 12)
    for first, rho, size in ((6, 1.26, 2), (2, 1.0, 1)):
        with pytest.raises(CertificateRejected, match=f"first could be below {first}"):
            _check_range(part(first=first, last=12), rho, size, 5)


# --- codes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("begin", [0, (1 << 20) - 60, 1 << 20, (1 << 21) - 60])
def test_primes_are_those_of_trial_division(begin: int) -> None:
    for n in range(begin, begin + 120):
        divides = any(n % f == 0 for f in range(2, isqrt(n) + 1))
        assert _is_prime(n) is (n > 1 and not divides), n


@pytest.mark.parametrize("composite", [3215031751, 3825123056546413051, (1 << 61) + 2])
def test_numbers_that_pass_for_primes_to_small_bases(composite: int) -> None:
    assert not _is_prime(composite)


def test_large_primes() -> None:
    assert _is_prime((1 << 61) - 1)


def test_the_words_of_too_many_generators_are_not_formed() -> None:
    assert len(generators_of(part(generators=[[1, 0]] * 20))) == 20
    with pytest.raises(CertificateRejected, match="more than 20 generators"):
        generators_of(part(generators=[[1, 0]] * 21))


# --- lines ------------------------------------------------------------------------------------


@pytest.mark.parametrize("pairs", [[[0, 3]], [[-1, 1]], [[0, 1, 2]], [[0]]])
def test_pairs_name_two_listed_elements(pairs: list[list[int]]) -> None:
    answers = part(a=[[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]).array("a")
    with pytest.raises(CertificateRejected, match="pairs name elements that are not listed"):
        _lengths(part(pairs=pairs, weights=[1.0]), answers)
    assert _lengths(part(pairs=[[0, 1]], weights=[1.0]), answers) == pytest.approx([1.0])


@pytest.mark.parametrize(("spacing", "moment"), [(0.0, 2), (1.1, 2), (2.0, 2), (0.5, 1)])
def test_a_spacing_is_at_most_one_step(spacing: float, moment: int) -> None:
    known = part(prior=[0.5, 0.5], allowances=[0.05, 0.05], risk=0.1, spacing=spacing)
    with pytest.raises(CertificateRejected, match="spacing is out of range"):
        _risks(part(known=[known.values]), 1.0, moment)


@pytest.mark.parametrize("lines", [1, 3])
def test_a_frame_is_paid_for_by_its_lines(lines: int) -> None:
    """For l lines and 4 queries, a matrix and its eigenvectors cost l^2 (4 + 10 l) operations.

    The differences of the answers cost 20 operations each.
    """
    answers = np.vstack([np.zeros(4), np.eye(4)])
    pairs = [[0, i + 1] for i in range(lines)]
    cost = lines**2 * (4 + 10 * lines) + 20 * 4 * lines
    _lengths(part(cost, pairs=pairs, weights=[1.0] * lines), answers)
    with pytest.raises(CertificateRejected, match="takes too long"):
        _lengths(part(cost - 1, pairs=pairs, weights=[1.0] * lines), answers)


def test_a_prior_has_two_points() -> None:
    known = part(prior=[1.0], allowances=[0.1], risk=0.1, spacing=1.0)
    with pytest.raises(CertificateRejected, match="a prior has one point only"):
        _risks(part(known=[known.values]), 1.0, 2)


# --- answers ----------------------------------------------------------------------------------


def test_answers_are_paid_for_by_elements_times_queries() -> None:
    """28 pairs of bits hold 2 * 28 = 56 bits; 16 elements cost (20 * 16 + 300) * 56 operations."""
    elements = [[i >> b & 1 for b in range(8)] for i in range(16)]
    workload = {"name": "marginals", "d": 8, "k": 2}
    cost = (20 * 16 + 300) * 56
    answers_of(part(cost, workload=workload, elements=elements))
    with pytest.raises(CertificateRejected, match="takes too long"):
        answers_of(part(cost - 1, workload=workload, elements=elements))


@pytest.mark.parametrize(
    ("k", "cells"), [(1, 2 + 3 + 4), (2, 2 * 3 + 2 * 4 + 3 * 4), (3, 2 * 3 * 4)]
)
def test_tables_are_paid_for_by_their_cells(k: int, cells: int) -> None:
    """Each cell compares k columns, so 5 elements cost (20 * 5 + 300) * k * cells operations.

    Counting the cells costs 300 operations for each column and each k, and each table has a price.
    """
    workload = {"name": "marginal tables", "columns": [2, 3, 4], "k": k}
    cost = 300 * 3 * k + (20 * 5 + 300) * k * cells + 20_000 * k * comb(3, k)
    answers, *_ = answers_of(part(cost, workload=workload, elements=[[1, 2, 3]] * 5))
    assert answers.shape == (5, cells)
    with pytest.raises(CertificateRejected, match="takes too long"):
        answers_of(part(cost - 1, workload=workload, elements=[[1, 2, 3]] * 5))


@pytest.mark.parametrize("columns", [2, [[2], [3]]])
def test_columns_are_one_list(columns: object) -> None:
    workload = {"name": "marginal tables", "columns": columns, "k": 1}
    with pytest.raises(CertificateRejected, match="columns does not have 1 axes"):
        answers_of(part(workload=workload, elements=[[0, 0]]))


def test_data_sets_are_paid_for_by_their_pairs() -> None:
    """With 4 queries, each pair of 3 data sets of 2 records costs 4 + 500 + 100 * 2 operations."""
    values = {"answers": np.eye(4), "datasets": [[0, 1], [2, 3], [0, 2]]}
    cost = 3 * (20_000 + 200 * 2 + 2 * 4) + 2 * 9 * (4 + 500 + 100 * 2)
    norm = MEASURES["mean l2 error per query"].norm
    assert verify_listed(part(cost, **values), norm).distance == 2
    with pytest.raises(CertificateRejected, match="takes too long"):
        verify_listed(part(cost - 1, **values), norm)


def test_elements_have_the_attributes_of_their_workload() -> None:
    workload = {"name": "marginals", "d": 3, "k": 1}
    with pytest.raises(CertificateRejected, match="elements do not have 3 attributes"):
        answers_of(part(workload=workload, elements=[[0, 1]]))


@pytest.mark.parametrize("k", [1, 2])
def test_listed_and_constructed_packings_of_marginals_are_of_one_workload(k: int) -> None:
    workload = {"name": "marginals", "d": 3, "k": k}
    _, subject, _, _ = answers_of(part(workload=workload, elements=[[0, 1, 1]]))
    assert subject == _marginals_subject(3, k)


# --- reading ----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, True, False, "1", [1.0], {}])
def test_what_is_no_number_is_not_read_as_one(value: object) -> None:
    with pytest.raises(CertificateRejected, match="x is not a finite number"):
        part(x=value).number("x")
    with pytest.raises(CertificateRejected, match="x is not a whole number"):
        part(x=value).whole("x", 0)


@pytest.mark.parametrize("value", [None, [], {}, {"a": {}}, "text", 1])
def test_what_is_no_list_is_not_read_as_one(value: object) -> None:
    with pytest.raises(CertificateRejected, match="x is not a list of objects"):
        part(x=value).parts("x")


def test_values_are_nested_up_to_a_limit() -> None:
    value: Any = 1.0
    for _ in range(MAX_DEPTH + 1):
        value = [value]
    assert _depth_is_limited({"a": value[0]})
    assert not _depth_is_limited({"a": value})


def test_a_file_without_digest_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "bound.json"
    path.write_text('{"format": "geomdp packing certificate", "version": 1, "arrays": []}')
    with pytest.raises(CertificateRejected, match="the digest does not match"):
        read(path)
