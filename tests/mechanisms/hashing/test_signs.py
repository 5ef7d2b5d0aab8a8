"""Hashed sign matrices: exact r-wise independence, products, moments and bad input."""

from __future__ import annotations

from functools import reduce

import numpy as np
import numpy.typing as npt
import pytest

from geomdp.mechanisms.sparse_summary import (
    HashedSigns,
    inverse,
    multiply,
)
from tests.stats import mean_agrees

Words = npt.NDArray[np.uint64]


def times(a: int, b: int) -> int:
    return int(multiply(np.array([a], dtype=np.uint64), np.array([b], dtype=np.uint64))[0])


def rank_is_full(matrix: list[list[int]]) -> bool:
    """Whether a square matrix over GF(2^64) is invertible, by Gaussian elimination."""
    rows = [list(row) for row in matrix]
    for column in range(len(rows)):
        pivot = next((i for i in range(column, len(rows)) if rows[i][column]), None)
        if pivot is None:
            return False
        rows[column], rows[pivot] = rows[pivot], rows[column]
        scale = inverse(rows[column][column])
        for i in range(column + 1, len(rows)):
            factor = times(rows[i][column], scale)
            rows[i] = [x ^ times(factor, y) for x, y in zip(rows[i], rows[column], strict=True)]
    return True


@pytest.mark.parametrize("r", [2, 8, 16])
def test_words_are_r_wise_independent_in_the_full_field(r: int) -> None:
    """The map from a key to the words at any r (block, element) pairs is linear and invertible.

    So a uniform key gives r independent uniform words. The test takes 10 random choices of pairs.
    """
    rng = np.random.default_rng(r)
    units = np.eye(r, dtype=np.uint64)
    elements = np.array([0, 1, 5, 1 << 40])
    matrices = [HashedSigns(512, unit) for unit in units]
    table = np.stack([signs.words(elements) for signs in matrices])  # (r, 4, 8)
    flat = table.reshape(r, -1)
    for _ in range(10):
        pairs = rng.choice(flat.shape[1], size=r, replace=False)
        assert rank_is_full([[int(flat[i, pair]) for i in range(r)] for pair in pairs])
    key = rng.integers(0, 1 << 64, size=r, dtype=np.uint64)
    combined = np.zeros(flat.shape[1], dtype=np.uint64)
    for coefficient, row in zip(key, flat, strict=True):
        combined ^= multiply(np.full(len(row), coefficient), np.ascontiguousarray(row))
    np.testing.assert_array_equal(HashedSigns(512, key).words(elements).ravel(), combined)


def signs(rows: int = 512, r: int = 8, seed: int = 0) -> HashedSigns:
    return HashedSigns.draw(rows, r, np.random.default_rng(seed))


@pytest.mark.parametrize(("rows", "r"), [(64, 4), (64, 64), (1024, 4), (256, 16)])
def test_words_do_not_depend_on_the_batch(rows: int, r: int) -> None:
    """Each word is the same if it is computed alone, for keys longer or shorter than a column."""
    matrix = signs(rows, r)
    elements = np.array([0, 1, 2, 3, 77, 2**40 - 1])
    words = matrix.words(elements)
    assert words.shape == (6, rows // 64)
    for i, element in enumerate(elements):
        np.testing.assert_array_equal(matrix.words(np.array([element]))[0], words[i])
    assert len(np.unique(words)) == words.size


def vanishing(level: int, point: int) -> int:
    """The product of point - v over all words v below 2^level."""
    return reduce(times, [point ^ v for v in range(1 << level)])


@pytest.mark.parametrize("blocks", [1, 4, 8, 16])
@pytest.mark.parametrize(("r", "level"), [(2, 0), (8, 0), (4, 1), (8, 1), (16, 1), (8, 2), (16, 3)])
def test_words_are_values_of_the_polynomial_at_element_and_block(r, level, blocks) -> None:
    """With B blocks, the word of block b and element x is the value of the polynomial at B x + b.

    A key with a single 1, at 2^level, is the polynomial that is 0 below 2^level and 1 at 2^level.
    """
    key = np.zeros(r, dtype=np.uint64)
    key[1 << level] = 1
    elements = [0, 1, 5, 2**59]
    scale = inverse(vanishing(level, 1 << level))
    expected = [
        [times(vanishing(level, blocks * element + block), scale) for block in range(blocks)]
        for element in elements
    ]
    words = HashedSigns(64 * blocks, key).words(np.array(elements))
    assert words.tolist() == expected


def test_projections_are_products_with_the_columns() -> None:
    matrix, rng = signs(), np.random.default_rng(1)
    elements, weights = rng.integers(matrix.elements, size=30), rng.normal(size=30)
    columns = matrix.columns(elements)
    np.testing.assert_allclose(np.abs(columns), np.full((30, 512), 512**-0.5), rtol=1e-15)
    np.testing.assert_allclose(
        matrix.project(elements, weights), weights @ columns, rtol=0, atol=1e-13
    )


@pytest.mark.statistical
def test_inner_products_are_unbiased_with_the_variance_of_four_wise_independence() -> None:
    """For T rows, Var <Ax, Ay> = (|x|^2 |y|^2 + <x, y>^2 - 2 sum x_i^2 y_i^2) / T."""
    elements = np.array([3, 99, 2**33, 12345])
    x, y = np.array([1.0, 2.0, 0.5, 0.0]), np.array([0.3, -1.0, 0.0, 2.0])
    rows, keys = 64, 1000
    rng = np.random.default_rng(4)
    products = np.empty(keys)
    for i in range(keys):
        matrix = HashedSigns.draw(rows, 4, rng)
        products[i] = matrix.project(elements, x) @ matrix.project(elements, y)
    mean_agrees(products, x @ y)
    variance = ((x @ x) * (y @ y) + (x @ y) ** 2 - 2 * np.sum(x**2 * y**2)) / rows
    mean_agrees((products - x @ y) ** 2, variance)


def test_independence_is_rounded_up_to_a_power_of_two() -> None:
    assert [signs(r=r).independence for r in (2, 9)] == [2, 16]
    assert [signs(rows=rows).elements for rows in (64, 1 << 10)] == [2**64, 2**60]


def ones(count: int) -> Words:
    return np.ones(count, dtype=np.uint64)


@pytest.mark.parametrize(
    ("message", "calls"),
    [
        (
            "rows must",
            [lambda rows=rows: HashedSigns(rows, ones(4)) for rows in (0, 32, 96, 1 << 25)],
        ),
        (
            r"key must have shape \(2\^k,\)",
            [lambda count=count: HashedSigns(64, ones(count)) for count in (0, 1, 3, 12)],
        ),
        (
            r"elements must lie in 0\.\.",
            [lambda x=x: signs(rows=1024).words(np.array([x])) for x in (-1, 2**60)],
        ),
        (
            "must be whole numbers",
            [lambda x=x: signs().words(x) for x in (np.array([0.5]), np.zeros((2, 2), dtype=int))],
        ),
        (
            "independence must be a whole number, at least 2",
            [lambda r=r: HashedSigns.draw(64, r, np.random.default_rng(0)) for r in (0, 1, 2.0)],
        ),
    ],
)
def test_bad_arguments(message, calls) -> None:
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call()
