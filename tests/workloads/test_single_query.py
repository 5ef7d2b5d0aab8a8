"""Single queries: ways to build them, conjunctions, totals, bad input."""

from __future__ import annotations

import math
from collections.abc import Hashable
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp._typing import IntArray
from geomdp.workloads.base import DenseQuery, SparseQuery, conjunction, conjunctions


def test_one_query_from_every_source() -> None:
    mapping = {"a": 0.5, "b": 1.0, ("c", 1): 0.25}
    plain = SparseQuery(tuple(mapping), np.array(list(mapping.values())))
    for query in (SparseQuery.from_mapping(mapping), plain):
        assert query.by_element == mapping
        assert query.sparsity == 3
    series = SparseQuery.from_mapping(pd.Series([1, 0], index=[7, 9]).to_dict())
    assert series.by_element == {7: 1.0, 9: 0.0}
    assert SparseQuery.counting("ab").by_element == {"a": 1.0, "b": 1.0}


@pytest.mark.parametrize(
    "records",
    [
        ["a", "b", "a", "z"],
        ("a", "b", "a", "z"),
        np.array(["a", "b", "a", "z"]),
        np.array(["a", "b", "a", "z"], dtype=object),
        pd.Series(["a", "b", "a", "z"]),
        [pd.Series(["a", "b"]), pd.Series(["a", "z"])],
    ],
    ids=["list", "tuple", "strings", "objects", "series", "chunks"],
)
def test_totals_of_every_kind_of_records(records: object) -> None:
    query = SparseQuery.from_mapping({"a": 0.5, "b": 0.25, "absent": 1.0})
    assert query.total(query.tally(records)) == 1.25  # type: ignore[arg-type]


def test_totals_of_generators_numpy_integers_and_codes() -> None:
    query = SparseQuery.counting([3, 5])
    assert query.total(query.tally(i % 7 for i in range(70))) == 20.0
    assert query.total(query.tally(np.array([3, 3, 4], dtype=np.int32))) == 2.0
    assert query.total(query.tally([np.int64(3), np.int32(3)])) == 2.0
    dense = DenseQuery(np.array([0.0, 0.5, 1.0]))
    assert dense.total(dense.tally(np.array([1, 2, 2, 0]))) == 2.5


def test_a_tally_of_another_kind_is_refused_without_counting_its_elements() -> None:
    """The number of distinct elements is private; the length of a query is not."""
    sparse, dense = SparseQuery.counting(["a"]), DenseQuery(np.ones(3))
    with pytest.raises(ValueError, match="a query with 3 values") as refusal:
        dense.total(sparse.tally(["a", "b", "c", "d", "e", "e"]))
    assert "5" not in str(refusal.value)
    with pytest.raises(ValueError, match="counts by element"):
        sparse.total(dense.tally(np.array([0, 1])))


@given(d=st.integers(1, 7), data=st.data())
def test_conjunctions_are_products_of_their_literals(d: int, data: st.DataObject) -> None:
    """The support lists exactly the elements on which all literals hold (BR-CONJ)."""
    literals = data.draw(st.sets(st.integers(0, d - 1)))
    query = conjunction(d, sorted(literals))
    values = {
        sum(bit << i for i, bit in enumerate(x)): math.prod(x[i] for i in literals)
        for x in product((0, 1), repeat=d)
    }
    assert query.by_element == {x: 1.0 for x, value in values.items() if value == 1}
    assert query.sparsity == 2 ** (d - len(literals))


@pytest.mark.parametrize(("d", "k"), [(5, 0), (5, 1), (6, 2), (4, 4)])
def test_all_conjunctions(d: int, k: int) -> None:
    """There are C(d, k) different conjunctions, each of sparsity 2^k (BR-CONJ)."""
    queries = conjunctions(d, k)
    assert len(queries) == math.comb(d, k) <= d**k
    assert {query.sparsity for query in queries} == {2**k}
    assert len({frozenset(query.support) for query in queries}) == len(queries)


def test_conjunctions_of_many_bits() -> None:
    """Elements are Python integers, so they can have 200 bits."""
    query = conjunction(200, range(198))
    everything = (1 << 200) - 1
    assert set(query.support) == {everything ^ x for x in (0, 1 << 198, 1 << 199, 3 << 198)}


@pytest.mark.parametrize(
    ("d", "literals", "message"),
    [
        (3, [0, 0], "distinct"),
        (3, [3], "literal must"),
        (3, [-1], "literal must"),
        (3, [0.5], "literal must"),
        (31, [0], "at most 20 bits free, got 30"),
    ],
)
def test_bad_literals(d: int, literals: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        conjunction(d, literals)


@pytest.mark.parametrize(
    ("support", "values", "message"),
    [
        ((), [], "at least 1 value"),
        (("a",), [1.5], r"must lie in \[0, 1\], got 1.5 at index 0"),
        (("a", "b"), [0.5, -0.1], r"must lie in \[0, 1\]"),
        (("a",), [math.nan], "must be finite"),
        (("a",), [math.inf], "must be finite"),
        (("a", "b"), [1.0], "must have equal length, got 2 and 1"),
        (("a", "a"), [1.0, 1.0], "each element once, got 'a'"),
        ((("a", ["b"]),), [1.0], "must list hashable elements"),
    ],
)
def test_bad_queries(support: tuple[Hashable, ...], values: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SparseQuery(support, np.array(values))


def test_a_support_that_is_no_sequence_is_refused() -> None:
    with pytest.raises(ValueError, match="support must be a sequence, got int"):
        SparseQuery.counting(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("tally", [np.array(3), np.array([1, 2]), np.ones((3, 2), dtype=int)])
def test_a_tally_must_be_an_array_of_one_dimension(tally: IntArray) -> None:
    query = DenseQuery(np.ones(3))
    for total in (query.total, query.exact_total):
        with pytest.raises(ValueError, match="histogram with one count for each value"):
            total(tally)


def test_values_do_not_follow_the_caller_s_array_and_cannot_be_changed() -> None:
    values = np.array([0.5, 0.25])
    queries = [SparseQuery(("a", "b"), values), DenseQuery(values)]
    values[0] = 9.0
    for query in queries:
        assert query.values[0] == 0.5
        with pytest.raises(ValueError, match="read-only"):
            query.values[0] = 0.5
