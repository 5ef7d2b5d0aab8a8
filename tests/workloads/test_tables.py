"""Tables of categorical columns: cells, interaction blocks, and products of queries of columns."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp.workloads import (
    ChosenTables,
    Explicit,
    Histogram,
    MarginalTables,
    Parities,
    Prefixes,
    ProductQueries,
    Ranges,
    WorkloadSizeError,
    explicit_answers,
)
from tests.workloads.cases import reach_of

COLUMNS = {"a": 2, "b": 3, "c": 4}
levels_and_k = st.lists(st.integers(1, 4), min_size=1, max_size=4).flatmap(
    lambda levels: st.tuples(st.just(levels), st.integers(1, len(levels)))
)


@given(levels_and_k)
def test_cells_are_counts(case):
    levels, k = case
    workload = MarginalTables(levels, k)
    records = workload.universe.sample(20, rng=1)
    expected = [
        sum(tuple(x[list(table)]) == cell for x in records)
        for table in combinations(range(len(levels)), k)
        for cell in product(*(range(levels[i]) for i in table))
    ]
    totals = workload.totals(records)
    assert totals.count == 20
    np.testing.assert_array_equal(totals.sums, expected)
    np.testing.assert_array_equal(workload.evaluate(records).sum(axis=0), expected)


def test_answers_of_a_frame():
    frame = pd.DataFrame({"sex": [0, 1, 1], "note": list("abc"), "age": [2, 0, 2]})
    workload = MarginalTables({"age": 3, "sex": 2}, 2)
    np.testing.assert_allclose(workload.answers(frame), [0, 1 / 3, 0, 0, 1 / 3, 1 / 3])
    assert workload.columns == {"age": 3, "sex": 2}


def test_limits():
    many = MarginalTables([2] * 25, 2)
    with pytest.raises(ValueError, match=r"at most 2\^24 level combinations"):
        many.extreme_answers(np.zeros((1, many.n_queries)))
    assert many.affine_hull().dimension == 25 + 300
    with pytest.raises(ValueError, match=r"at most 2\^26 for a basis, got 43500 times 35505"):
        MarginalTables([10] * 30, 2).blocks()


def test_weights_multiply_answers():
    chosen = ChosenTables(COLUMNS, [["a"], ["b", "c"]], [1.0, 3.0])
    records = chosen.universe.sample(100, rng=1)
    plain = ChosenTables(COLUMNS, [["a"], ["b", "c"]])
    np.testing.assert_allclose(chosen.answers(records) / chosen.weights, plain.answers(records))
    assert chosen.whole_answers
    assert not ChosenTables(COLUMNS, [["a"]], [0.5]).whole_answers


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: MarginalTables({}, 1), "at least 1 column"),
        (lambda: MarginalTables({"a": 2}, 2), "k must be .* at most 1, got 2"),
        (lambda: Parities(3, 4), "k must be .* at most 3, got 4"),
        (lambda: MarginalTables({"a": 1.5}, 1), "number of levels of 'a'"),
        (lambda: ChosenTables(COLUMNS, []), "at least 1 table, got 0"),
        (lambda: ChosenTables(COLUMNS, [["a"], ["a"]]), r"the table \['a'\] occurs more"),
        (lambda: ChosenTables(COLUMNS, [["a", "b"], ["b", "a"]]), "tables must differ"),
        (lambda: ChosenTables(COLUMNS, [["a", "z"]]), "among a, b, c; got 'z'"),
        (lambda: ChosenTables(COLUMNS, [["a", "a"]]), "must not name a column twice"),
        (lambda: ChosenTables(COLUMNS, ["ab"]), "must be a list"),
        (lambda: ChosenTables(COLUMNS, [["a"]], [1, 2]), "1 entries, one per table, got 2"),
        (lambda: ChosenTables(COLUMNS, [["a"]], [0]), "weights must be a finite number above 0"),
    ],
)
def test_refusals(build, message):
    with pytest.raises(ValueError, match=message):
        build()


# --- products of queries of columns ---------------------------------------------------------------

THREE = {"a": 3, "b": 2, "c": 4}
CROSSED = [["c", "a"], ["b"], ["a", "b", "c"]]
ROWS = [[1.0, 1, 1, 1], [0, 0.5, 1, 4]]
WORKLOAD = ProductQueries(THREE, CROSSED, {"a": Ranges(3), "c": Explicit(ROWS)}, [1, 2.5, 0.5])


def test_answers_are_products_of_the_queries_of_the_columns():
    elements = WORKLOAD.universe.elements()
    ranges = explicit_answers(Ranges(3))
    expected = [
        [
            *(r * q for r in ranges[a] for q in np.array(ROWS)[:, c]),
            *(2.5 * (b == level) for level in (0, 1)),
            *(
                0.5 * r * (b == level) * q
                for r in ranges[a]
                for level in (0, 1)
                for q in np.array(ROWS)[:, c]
            ),
        ]
        for a, b, c in elements
    ]
    np.testing.assert_allclose(WORKLOAD.evaluate(elements), expected, rtol=1e-15)
    cells = explicit_answers(WORKLOAD.workload)
    np.testing.assert_allclose(WORKLOAD.of_cells(cells), expected, rtol=1e-15)
    np.testing.assert_allclose(cells @ WORKLOAD.matrix.T, expected, rtol=1e-15)


def test_without_queries_they_are_the_cells_of_tables():
    plain = ChosenTables(THREE, CROSSED, [1, 2.5, 0.5])
    product = ProductQueries(THREE, CROSSED, {}, [1, 2.5, 0.5])
    np.testing.assert_array_equal(explicit_answers(product), explicit_answers(plain))
    assert product.labels() == plain.labels()


def test_labels_name_the_queries_of_columns():
    workload = ProductQueries({"a": 2, "b": 2}, [["a", "b"]], {"b": Prefixes(2)})
    expected = ["a=0,b[x<=0]", "a=0,b[x<=1]", "a=1,b[x<=0]", "a=1,b[x<=1]"]
    assert workload.labels() == expected
    assert workload.whole_answers
    assert not WORKLOAD.whole_answers


@pytest.mark.parametrize("rows", [ROWS, [[1.0, 1, 1, 1], [-1, 2, 0, 1]]], ids=["positive", "mixed"])
def test_bounds_for_large_universes_hold(rows, monkeypatch):
    """If the answers of all elements cannot be listed, diameters and radii are upper bounds."""
    workload = ProductQueries(THREE, CROSSED, {"a": Ranges(3), "c": Explicit(rows)})
    truths = reach_of(explicit_answers(workload))
    monkeypatch.setattr("geomdp.workloads.tables.MAX_ENTRIES", 0)
    large = ProductQueries(THREE, CROSSED, {"a": Ranges(3), "c": Explicit(rows)})
    for name, truth in truths.items():
        assert truth <= getattr(large, name)() <= 3 * truth
    with pytest.raises(WorkloadSizeError, match="dense matrix"):
        _ = large.matrix


@pytest.mark.parametrize(
    ("queries", "words"),
    [
        ({"d": Prefixes(3)}, "among a, b, c; got 'd'"),
        ({"a": Prefixes(4)}, "levels 0 to 2"),
        ({"a": "prefixes"}, "queries of a must be"),
        ({"a": Explicit([[1, 0, 0], [0, 1, 0]])}, "1 at all levels"),
        ({"a": Explicit([[1, 1, 1], [2, 2, 2]])}, "not all be constant"),
        ([("a", Prefixes(3))], "queries must be"),
    ],
)
def test_queries_that_do_not_fit_are_refused(queries, words):
    with pytest.raises(ValueError, match=words):
        ProductQueries(THREE, CROSSED, queries)


def test_a_column_asked_by_queries_has_at_most_256_levels():
    ProductQueries({"a": 256}, [["a"]], {"a": Histogram(256)})
    with pytest.raises(ValueError, match="at most 256"):
        ProductQueries({"a": 257}, [["a"]], {"a": Prefixes(257)})
