"""Exact sums of reals and of their products, compared with sums of Python integers."""

import numpy as np
import pytest

from geomdp.mechanisms.additive_noise import sums as wide_sums
from geomdp.mechanisms.additive_noise.sums import (
    DIGIT_BITS,
    DIGITS,
    EXACT_ROWS,
    REAL_BITS,
    WideSums,
    add_numbers,
    add_products,
    fixed_point,
    whole_numbers,
)
from geomdp.workloads.universes import UnitBall


def rows_of(n, d, seed=0):
    """Random fixed-point rows with all bits in use; the first two are at the ends of the range."""
    reals = np.random.default_rng(seed).uniform(-1, 1, (n, d))
    reals[0], reals[1] = 1.0, -1.0
    return fixed_point(reals)


def check_products_are_exact(add):
    for n, d in ((2, 1), (EXACT_ROWS + 7, 3), (3 * EXACT_ROWS, 2)):
        rows = rows_of(n, d)
        sums = WideSums(d * (d + 1) // 2)
        add(sums, rows)
        whole = [[int(x) for x in row] for row in rows.tolist()]
        expected = [sum(r[i] * r[j] for r in whole) for i in range(d) for j in range(i, d)]
        assert whole_numbers(sums.digits()) == expected


def float_products(sums, rows):
    """The planted defect: products added up in float64."""
    total = (rows.T @ rows)[np.triu_indices(rows.shape[1])]
    for place in reversed(range(5)):
        part = np.trunc(total / 2.0 ** (20 * place))
        total = total - part * 2.0 ** (20 * place)
        sums.add(part, place)


def test_sums_of_products_are_exact_and_float64_is_caught():
    check_products_are_exact(add_products)
    with pytest.raises(AssertionError):
        check_products_are_exact(float_products)


def test_blocks_that_are_too_long_are_caught(monkeypatch):
    """Products of digits are at most 2^40. A sum of 2^17 of them can exceed 2^53 and be rounded."""
    numbers = np.random.default_rng(0).integers(1 << 39, 1 << 40, 1 << 17)
    expected = [sum(int(x) ** 2 for x in numbers)]

    def found():
        sums = WideSums(1)
        add_products(sums, numbers[:, None].astype(float))
        return whole_numbers(sums.digits())

    assert found() == expected
    monkeypatch.setattr(wide_sums, "EXACT_ROWS", 1 << 17)
    assert found() != expected


def test_sums_of_numbers_are_exact():
    rows = rows_of(3 * EXACT_ROWS, 2, seed=1)
    sums = WideSums(2)
    add_numbers(sums, rows)
    expected = [sum(int(x) for x in column) << REAL_BITS for column in rows.T.tolist()]
    assert whole_numbers(sums.digits()) == expected
    # Only the last digit can be below 0 or large, so that sums of many files fit.
    lower = sums.digits().reshape(DIGITS, 2)[:-1]
    assert ((lower >= 0) & (lower < 2.0**DIGIT_BITS)).all()


def check_rounded_records_stay_in_the_ball(rounded):
    """Check in whole numbers that the rounded unit vectors have norm at most 1."""
    for d in (1, 2, 3, 17):
        rows = np.random.default_rng(d).standard_normal((300, d))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        for row in rounded(UnitBall(d).validate(rows)).tolist():
            assert sum(int(x) ** 2 for x in row) <= 1 << 2 * REAL_BITS


def test_rounding_to_nearest_would_leave_the_ball():
    check_rounded_records_stay_in_the_ball(fixed_point)
    with pytest.raises(AssertionError):
        check_rounded_records_stay_in_the_ball(lambda rows: np.rint(rows * 2.0**REAL_BITS))


def test_digits_must_be_whole():
    with pytest.raises(ArithmeticError, match="whole numbers"):
        whole_numbers(np.full(5, 0.5))
