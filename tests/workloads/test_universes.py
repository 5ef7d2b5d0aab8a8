"""Universes: valid and invalid records, error messages, chunks, elements and samples."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp.workloads import BooleanCube, CategoricalProduct, SymmetricCube, UnitBall
from geomdp.workloads.universes import FiniteUniverse
from tests.stats import ks_uniform

COLUMNS = CategoricalProduct({"age": 4, "sex": 2, "region": 3})
UNIVERSES = [FiniteUniverse(5), BooleanCube(3), COLUMNS, UnitBall(3), SymmetricCube(3)]
everywhere = pytest.mark.parametrize("universe", UNIVERSES, ids=repr)


def sizes(chunks) -> list[int]:
    return [len(chunk) for chunk in chunks]


@everywhere
def test_samples_are_records(universe):
    records = universe.sample(50, rng=0)
    assert records.shape == (50, *universe.record_shape)
    np.testing.assert_array_equal(universe.validate(records), records)
    np.testing.assert_array_equal(universe.sample(50, rng=0), records)
    assert universe.sample(0, rng=0).shape == (0, *universe.record_shape)


@everywhere
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float32, np.float64, bool])
def test_numeric_types(universe, dtype):
    records = np.zeros((4, *universe.record_shape), dtype=dtype)
    validated = universe.validate(records)
    assert validated.dtype == (np.float64 if universe.size is None else np.int64)
    assert validated.flags.c_contiguous


@given(
    universe=st.sampled_from(UNIVERSES),
    value=st.sampled_from([np.nan, np.inf, -np.inf, 7777.5, -7777.0, 7777.0, 1e300]),
    place=st.tuples(st.integers(0, 8), st.integers(0, 2)),
    rows=st.integers(1, 4),
    first_row=st.integers(0, 10**6),
)
def test_bad_values_are_placed_and_never_shown(universe, value, place, rows, first_row):
    dimension = math.prod(universe.record_shape)
    row, column = place[0], place[1] % dimension
    records = np.zeros((9, dimension))
    records[row, column] = value
    records = records.reshape(9, *universe.record_shape)
    name = (universe.column_names or {}) and repr(universe.column_names[column])
    for attempt, number in (
        (lambda: universe.validate(records, first_row), first_row + row),
        (lambda: list(universe.chunks(records, rows)), row),
        (lambda: list(universe.chunks(iter([records[:4], records[4:]]), rows)), row),
    ):
        with pytest.raises(ValueError, match=rf"row {number}\b") as caught:
            attempt()
        message = str(caught.value)
        # An error about a norm names only the row; all other errors name the column, too.
        assert f"column {name or column}" in message or "norm" in message
        assert not any(text in message for text in ("777", "e+300", " inf", "nan"))


FRAME = pd.DataFrame({"extra": ["x", "y"], "region": [2, 0], "age": [3, 1], "sex": [0, 1]})
MISSING = FRAME.astype({"age": "Int64"})
MISSING.loc[1, "age"] = pd.NA
BITS = pd.DataFrame({"p": [0, 1], "q": [True, False]})


@pytest.mark.parametrize(
    ("universe", "records", "message"),
    [
        (BooleanCube(3), np.zeros(3), r"shape \(n, 3\), got \(3,\)"),
        (FiniteUniverse(3), np.zeros((3, 1)), r"shape \(n,\), got \(3, 1\)"),
        (BooleanCube(3), BITS, r"shape \(n, 3\), got \(2, 2\)"),
        (FiniteUniverse(2), BITS, r"shape \(n,\), got \(2, 2\)"),
        (BooleanCube(3), BITS.iloc[:0], "shape"),
        (COLUMNS, FRAME.drop(columns="age"), r"must have the columns \['age'\]"),
        (COLUMNS, pd.concat([FRAME, FRAME[["age"]]], axis=1), "each column once"),
        (COLUMNS, MISSING, "row 1, column 'age' is not"),
        # The first bad entry is named.
        (COLUMNS, np.array([[0, 0, 0], [0, 0, 9], [0, 9, 0]]), "row 1, column 'region' is out"),
        (FiniteUniverse(3), np.array([-1]), "from 0 to 2: row 0"),
        (FiniteUniverse(3), np.array([3]), "from 0 to 2: row 0"),
        (FiniteUniverse(3), np.array([2**63 - 1]), "from 0 to 2: row 0"),
        (FiniteUniverse(3), np.array([2**64 - 1], dtype=np.uint64), "from 0 to 2"),
        (UnitBall(1), np.array([[1.0], [1 + 0.9e-9]]), "norm at most 1: row 1 is above"),
        (UnitBall(2), np.full((1, 2), 1e300), "row 0 is above"),
        (SymmetricCube(2), np.array([[0.0, np.nextafter(1, 2)]]), r"\[-1, 1\]: row 0, column 1"),
        # One record that is a float would change the codes of the others.
        (FiniteUniverse(2**60), [2**53 + 1, 1.0], "row 0, column .* may be rounded"),
        (FiniteUniverse(2**60), np.array([2.0**53, 1]), "row 0, column .* may be rounded"),
        (FiniteUniverse(2**60), np.array([2.0**24, 1], dtype=np.float32), "may be rounded"),
        (FiniteUniverse(2**60), pd.DataFrame({"x": [2.0**53, 0]}), "row 0, column .* may be"),
    ],
)
def test_records_outside_a_universe(universe, records, message):
    with pytest.raises(ValueError, match=message):
        universe.validate(records)
    with pytest.raises(ValueError, match=message):
        list(universe.chunks(records, 10))


def exact_square(row: np.ndarray) -> Fraction:
    """The squared Euclidean norm of a row of floats, in rational arithmetic."""
    return sum((Fraction(float(x)) ** 2 for x in row), Fraction(0))


@pytest.mark.parametrize("d", [1, 2, 7, 100])
def test_every_accepted_row_is_in_the_ball_exactly(d: int) -> None:
    rows = np.random.default_rng(d).normal(size=(min(200, 3000 // d), d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    read = np.concatenate([rows, rows * (1 + d / 2**53), rows * (1 - 2**-52)])
    kept = read.copy()
    valid = UnitBall(d).validate(read)
    np.testing.assert_array_equal(read, kept)
    assert all(exact_square(row) <= 1 for row in valid)
    np.testing.assert_allclose(valid, read, rtol=2 * (d + 9) * 2**-53, atol=0)
    np.testing.assert_array_equal(UnitBall(d).validate(valid), valid)
    # A row is returned unchanged if and only if it is in the ball already.
    same = [bool((a == b).all()) for a, b in zip(valid, read, strict=True)]
    assert same == [exact_square(row) <= 1 for row in read]


def test_frames():
    expected = [[3, 0, 2], [1, 1, 0]]
    np.testing.assert_array_equal(COLUMNS.validate(FRAME), expected)
    nullable = FRAME.astype({"age": "Int64", "sex": "boolean"})
    np.testing.assert_array_equal(COLUMNS.validate(nullable), expected)
    np.testing.assert_array_equal(np.concatenate(list(COLUMNS.chunks(FRAME, 1))), expected)
    np.testing.assert_array_equal(BooleanCube(2).validate(BITS), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(UnitBall(2).validate(BITS), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(FiniteUniverse(2).validate(BITS[["p"]]), [0, 1])
    chunks = FiniteUniverse(2).chunks(BITS["p"], 1)
    np.testing.assert_array_equal(np.concatenate(list(chunks)), [0, 1])


@given(n=st.integers(0, 40), rows=st.integers(1, 15))
def test_large_chunks_are_split(n, rows):
    records = np.arange(n) % 5
    chunks = list(FiniteUniverse(5).chunks(records, rows))
    assert all(0 < size <= rows for size in sizes(chunks))
    np.testing.assert_array_equal(np.concatenate([*chunks, np.empty(0)]), records)


def test_chunks_are_read_lazily_and_once():
    read = []

    def source():
        for number in range(3):
            read.append(number)
            yield np.full((2, 3), number % 2)

    chunks = BooleanCube(3).chunks(source(), 10)
    assert read == []
    next(chunks)
    assert read == [0]
    assert sizes(chunks) == [2, 2]
    assert read == [0, 1, 2]


def test_which_lists_are_one_array():
    cube, codes = BooleanCube(2), FiniteUniverse(4)
    rows, chunk = [[0, 1], [1, 1], [0, 0]], np.array([[0, 1], [1, 1]])
    assert sizes(cube.chunks(rows, 10)) == [3]
    assert sizes(cube.chunks(tuple(map(np.array, rows)), 10)) == [3]
    assert sizes(cube.chunks([chunk, chunk, chunk], 10)) == [2, 2, 2]
    assert sizes(cube.chunks([pd.DataFrame(chunk), chunk], 10)) == [2, 2]
    assert sizes(codes.chunks([0, 3, 2], 10)) == [3]
    assert sizes(codes.chunks([np.array([0, 3]), np.array([2])], 10)) == [2, 1]
    assert sizes(cube.chunks([], 10)) == []
    with pytest.raises(ValueError, match=r"shape \(n,\), got \(2, 2\)"):
        list(codes.chunks([[0, 3], [2, 1]], 10))
    with pytest.raises(ValueError, match="rectangular"):
        list(cube.chunks([chunk, [0, 1]], 10))


@pytest.mark.parametrize("universe", [FiniteUniverse(5), BooleanCube(4), COLUMNS], ids=repr)
def test_elements_are_enumerated_in_row_major_order(universe):
    elements = universe.elements()
    assert len(elements) == universe.size
    columns = elements.reshape(len(elements), -1)
    assert [tuple(row) for row in columns] == sorted({tuple(row) for row in columns})
    np.testing.assert_array_equal(universe.validate(elements), elements)
    np.testing.assert_array_equal(universe.elements(2, 4), elements[2:4])
    np.testing.assert_array_equal(universe.elements_at(np.array([3, 0])), elements[[3, 0]])
    np.testing.assert_array_equal(universe.numbers(elements), np.arange(len(elements)))
    for start, stop in ((-1, 2), (3, 2), (0, universe.size + 1), (0.0, 1)):
        with pytest.raises(ValueError, match="must be a whole number"):
            universe.elements(start, stop)
    for number in (-1, universe.size):
        with pytest.raises(ValueError, match="element numbers must be from 0 to"):
            universe.elements_at(np.array([number]))


def test_universes_beyond_64_bits():
    cube = BooleanCube(100)
    assert cube.size == 2**100
    np.testing.assert_array_equal(cube.elements(5, 6), [[0] * 97 + [1, 0, 1]])
    product = CategoricalProduct([10] * 30)
    assert product.size == 10**30
    np.testing.assert_array_equal(product.elements(123, 124), [[0] * 27 + [1, 2, 3]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FiniteUniverse(0), "size must be a whole number, at least 1, got 0"),
        (lambda: CategoricalProduct({}), "at least 1 column"),
        (lambda: CategoricalProduct([]), "at least 1 column"),
        (lambda: CategoricalProduct({"a": 0}), "number of levels of 'a' must be"),
        (lambda: CategoricalProduct("ab"), "number of levels of 'c0' must be"),
        (lambda: CategoricalProduct(3), "columns must be a sequence"),
        (lambda: BooleanCube(2).sample(-1), "n must be"),
        (lambda: UnitBall(2).elements(), "infinite"),
        (lambda: SymmetricCube(2).elements_at(np.array([0])), "infinite"),
        *(
            (lambda rows=rows: list(BooleanCube(2).chunks(np.zeros((1, 2)), rows)), "rows must be")
            for rows in (0, -1, 2.5, True)
        ),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_equality_hash_and_names():
    assert hash(BooleanCube(3)) == hash(BooleanCube(3))
    assert UnitBall(3) != SymmetricCube(3)
    assert CategoricalProduct([2, 3]) == CategoricalProduct({"c0": 2, "c1": 3})
    assert CategoricalProduct({"a": 2, "b": 2}) != CategoricalProduct({"b": 2, "a": 2})
    assert COLUMNS.columns == {"age": 4, "sex": 2, "region": 3}
    assert (COLUMNS.record_shape, FiniteUniverse(5).record_shape) == ((3,), ())
    assert repr(COLUMNS) == "CategoricalProduct({'age': 4, 'sex': 2, 'region': 3})"
    assert repr(CategoricalProduct([2] * 9)) == "CategoricalProduct(9 columns, 512 elements)"


@pytest.mark.statistical
def test_samples_are_uniform():
    n = 4000
    ball = UnitBall(3).sample(n, rng=1)
    ks_uniform(np.linalg.norm(ball, axis=1) ** 3)
    # In three dimensions a coordinate of a uniform direction is uniform (Archimedes).
    ks_uniform((ball[:, 0] / np.linalg.norm(ball, axis=1) + 1) / 2)
    ks_uniform((SymmetricCube(2).sample(n, rng=2)[:, 1] + 1) / 2)


@pytest.mark.parametrize("dtype", ["int64", "Int64", "int64[pyarrow]", "uint64[pyarrow]"])
def test_large_codes_are_exact_in_columns_of_every_integer_type(dtype):
    universe = FiniteUniverse(2**60)
    frame = pd.DataFrame({"code": pd.Series([2**53 + 1, 5], dtype=dtype)})
    assert universe.validate(frame).tolist() == [2**53 + 1, 5]
    assert universe.validate(np.array([2**53 + 1, 5])).tolist() == [2**53 + 1, 5]
