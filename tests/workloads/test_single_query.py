"""Single queries: ways to build them, conjunctions, totals; and workloads of sparse queries."""

import copy
import math
import pickle
from collections.abc import Hashable
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp import workloads as wl
from geomdp._numerics.linalg import AffineHull
from geomdp._typing import IntArray
from geomdp.workloads.base import DenseQuery, SparseQuery, conjunction, conjunctions
from geomdp.workloads.universes import OpenUniverse
from tests.workloads.cases import check_reach


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


# --- workloads of sparse queries, on an open universe ---------------------------------------------

QUERIES = [
    SparseQuery.from_mapping({"a": 1.0, "b": 0.5, ("pair", 3): 0.25}),
    SparseQuery.from_mapping({"b": 1.0, 17: 1.0}),
    SparseQuery.from_mapping({"a": 0.75}),
]
RECORDS = ["a", "b", ("pair", 3), 17, "nobody asks", "a", 2.5, None]


everywhere = pytest.mark.parametrize(
    "workload", [wl.SparseQueries(QUERIES), wl.SparseQueries(conjunctions(5, 2))], ids=repr
)


def by_definition(workload: wl.SparseQueries, records: list[object]) -> np.ndarray:
    return np.array([[q.by_element.get(x, 0.0) for q in workload.queries] for x in records])


def all_answers(workload: wl.SparseQueries) -> np.ndarray:
    """Answers on all elements of the supports, and on an element that no query mentions."""
    return by_definition(workload, [*workload.support, object()])


def test_answers_by_definition():
    workload = wl.SparseQueries(QUERIES)
    expected = by_definition(workload, RECORDS)
    np.testing.assert_array_equal(workload.evaluate(RECORDS), expected)
    np.testing.assert_allclose(workload.answers(RECORDS), expected.mean(axis=0), rtol=1e-15)
    assert workload.universe.size is None
    assert workload.n_queries == 3
    assert workload.labels() == ["q0", "q1", "q2"]


@pytest.mark.parametrize(
    "records",
    [
        ["b", "x", "a"],
        ("b", "x", "a"),
        pd.Series(["b", "x", "a"]),
        np.array(["b", "x", "a"]),
        [np.array(["b"]), np.array(["x", "a"])],
        [["b", "x"], ["a"]],
        iter(["b", "x", "a"]),
        (chunk for chunk in (pd.Series(["b"]), ["x", "a"])),
    ],
    ids=["list", "tuple", "series", "array", "arrays", "lists", "iterator", "chunks"],
)
def test_records_of_every_kind(records):
    totals = wl.SparseQueries(QUERIES).totals(records)
    assert totals.count == 3
    np.testing.assert_allclose(totals.sums, [1.5, 1.0, 0.75], rtol=1e-15)


def test_tuples_are_elements_not_chunks():
    workload = wl.SparseQueries([SparseQuery.counting([(0, 1), (1, 1)])])
    assert workload.answers([(0, 1), (1, 0), (1, 1), (0, 0)]) == pytest.approx([0.5])


def test_iterables_are_read_lazily():
    seen = []

    def stream():
        for i in range(200_000):
            seen.append(i)
            yield "a" if i != 100_000 else ["not an element", {}]

    chunks = OpenUniverse().chunks(stream(), 1000)
    next(chunks)
    assert len(seen) <= 1001
    with pytest.raises(ValueError, match="row 100001 is a dict"):
        for _ in chunks:
            pass


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ("abc", "iterable of elements, got str"),
        ({"a": 1}, "iterable of elements, got dict"),
        (3, "iterable of elements, got int"),
        (["a", {"x"}], "hashable: row 1 is a set"),
        (["a", math.nan], "missing values such as NaN: row 1"),
        (pd.Series(["a", None, pd.NA], dtype=object), "missing values such as NaN: row 2"),
        (["a", pd.NaT], "missing values such as NaN: row 1"),
        (np.zeros((2, 2)), "one-dimensional, got ndarray"),
        (pd.DataFrame({"a": [1]}), "one-dimensional, got DataFrame"),
        ([], "at least 1 record, got 0"),
        (iter([]), "at least 1 record, got 0"),
        # In Python, a tuple with NaN equals itself, because parts are compared by identity first.
        *(
            (["a", ("b", None), missing], "row 2 does not equal itself")
            for missing in [
                (1, math.nan),
                ("a", (2.0, math.nan)),
                (pd.NA,),
                (np.datetime64("NaT"), 1),
            ]
        ),
    ],
)
def test_bad_records_name_the_row(records, message):
    with pytest.raises(ValueError, match=message):
        wl.SparseQueries(QUERIES).answers(records)


@pytest.mark.parametrize(
    ("queries", "message"), [([], "at least 1 query"), ([{"a": 1.0}], "number 0 is a dict")]
)
def test_a_workload_of_other_queries_is_refused(queries, message):
    with pytest.raises(ValueError, match=message):
        wl.SparseQueries(queries)


@everywhere
def test_geometry_is_that_of_the_elements_that_matter(workload):
    """The elements of the supports and one other; `test_contracts.py` covers listed workloads."""
    answers, listed = all_answers(workload), workload.explicit
    np.testing.assert_array_equal(wl.explicit_answers(listed), answers)
    check_reach(workload, answers)
    directions = np.random.default_rng(1).normal(size=(50, workload.n_queries))
    directions[0] = -1.0  # the element that no query mentions is best
    extreme = workload.extreme_answers(directions)
    np.testing.assert_array_equal(extreme, listed.extreme_answers(directions))
    np.testing.assert_array_equal(extreme[0], 0.0)
    assert workload.affine_hull().dimension == AffineHull.of_points(answers).dimension
    diameters = [[block.diameter for block in of.blocks()] for of in (workload, listed)]
    assert diameters[0] == diameters[1]
    for twin in (pickle.loads(pickle.dumps(workload)), copy.deepcopy(workload)):
        assert repr(twin) == repr(workload)
        np.testing.assert_array_equal(twin.answers(RECORDS), workload.answers(RECORDS))


def test_what_an_open_universe_has_not():
    workload = wl.SparseQueries(QUERIES)
    with pytest.raises(ValueError, match="infinite and has no list"):
        workload.universe.elements(0, 1)
    with pytest.raises(ValueError, match="no uniform distribution"):
        workload.universe.sample(3, rng=0)
    with pytest.raises(ValueError, match="infinitely many"):
        wl.explicit_answers(workload)


def test_numpy_scalars_become_python_objects_in_every_container():
    scalars = [np.int64(3), np.float64(0.5), np.str_("a"), np.bool_(True)]
    for records in (
        scalars,
        [scalars],
        iter(scalars),
        (part for part in [scalars[:2], scalars[2:]]),
    ):
        found = OpenUniverse().validate(records).tolist()
        assert found == [3, 0.5, "a", True]
        assert [type(item) for item in found] == [int, float, str, bool]
