"""Hashed sign matrices: exact r-wise independence, products, moments and bad input."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from geomdp.mechanisms.sparse_summary import HashedSigns, inverse, multiply

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
    """The map from a key to the words at any r (block, element) pairs is linear and invertible."""
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


def test_projections_are_products_with_the_columns() -> None:
    matrix, rng = signs(), np.random.default_rng(1)
    elements, weights = rng.integers(matrix.elements, size=30), rng.normal(size=30)
    columns = matrix.columns(elements)
    np.testing.assert_allclose(np.abs(columns), np.full((30, 512), 512**-0.5), rtol=1e-15)
    np.testing.assert_allclose(
        matrix.project(elements, weights), weights @ columns, rtol=0, atol=1e-13
    )


def test_independence_is_rounded_up_to_a_power_of_two() -> None:
    assert [signs(r=r).independence for r in (2, 9)] == [2, 16]
    assert [signs(rows=rows).elements for rows in (64, 1 << 10)] == [2**64, 2**60]
    assert HashedSigns(64, [3, 4]).key.dtype == np.uint64


def ones(count: int) -> Words:
    return np.ones(count, dtype=np.uint64)


@pytest.mark.parametrize(
    ("message", "call", "wrong"),
    [
        ("rows must", lambda rows: HashedSigns(rows, ones(4)), (0, 32, 96, 1 << 25)),
        (r"shape \(2\^k,\)", lambda count: HashedSigns(64, ones(count)), (0, 1, 3, 12)),
        (r"lie in 0\.\.", lambda x: signs(rows=1024).words(np.array([x])), (-1, 2**60)),
        ("whole numbers", lambda x: signs().words(np.array(x)), ([0.5], [[0, 0], [0, 0]])),
        ("independence must be a whole number, at least 2", lambda r: signs(r=r), (0, 1, 2.0)),
    ],
)
def test_bad_arguments(message, call, wrong) -> None:
    for value in wrong:
        with pytest.raises(ValueError, match=message):
            call(value)
