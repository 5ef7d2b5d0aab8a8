"""Products of queries of columns: dense matrices, bounds for large universes, and refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp.data.tallies import CountedRecords
from geomdp.workloads import (
    ChosenTables,
    Explicit,
    Histogram,
    Prefixes,
    ProductQueries,
    Ranges,
    WorkloadSizeError,
    explicit_answers,
)

COLUMNS = {"a": 3, "b": 2, "c": 4}
TABLES = [["c", "a"], ["b"], ["a", "b", "c"]]
ROWS = [[1.0, 1, 1, 1], [0, 0.5, 1, 4]]
WORKLOAD = ProductQueries(COLUMNS, TABLES, {"a": Ranges(3), "c": Explicit(ROWS)}, [1, 2.5, 0.5])


def test_answers_are_products_of_the_queries_of_the_columns():
    elements = WORKLOAD.universe.elements()
    ranges = explicit_answers(Ranges(3))
    expected = [
        [
            *(w * r * q for w in [1.0] for r in ranges[a] for q in np.array(ROWS)[:, c]),
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
    plain = ChosenTables(COLUMNS, TABLES, [1, 2.5, 0.5])
    product = ProductQueries(COLUMNS, TABLES, {}, [1, 2.5, 0.5])
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
    workload = ProductQueries(COLUMNS, TABLES, {"a": Ranges(3), "c": Explicit(rows)})
    answers = explicit_answers(workload)
    apart = answers[:, None] - answers[None]
    truths = {
        "l1_diameter": np.abs(apart).sum(axis=2).max(),
        "l2_diameter": np.linalg.norm(apart, axis=2).max(),
        "l1_radius": np.abs(answers).sum(axis=1).max(),
        "l2_radius": np.linalg.norm(answers, axis=1).max(),
    }
    monkeypatch.setattr("geomdp.workloads.tables.MAX_ENTRIES", 0)
    large = ProductQueries(COLUMNS, TABLES, {"a": Ranges(3), "c": Explicit(rows)})
    for name, truth in truths.items():
        assert truth <= getattr(large, name)() <= 3 * truth
    with pytest.raises(WorkloadSizeError, match="dense matrix"):
        _ = large.matrix


def test_counts_of_records_give_the_same_totals():
    schema = gd.data.Schema.from_dict({"a": ["x", "y", "z"], "b": bool, "c": [1, 2, 3, 4]})
    codes = WORKLOAD.universe.sample(50, 4)
    labels = [["x", "y", "z"], [False, True], [1, 2, 3, 4]]
    frame = pd.DataFrame(
        {
            name: np.array(own)[codes[:, i]]
            for i, (name, own) in enumerate(zip("abc", labels, strict=True))
        }
    )
    counted = gd.data.count_records(gd.data.source_of(frame), schema, WORKLOAD)
    assert isinstance(counted, CountedRecords)
    np.testing.assert_allclose(counted.totals(WORKLOAD).sums, WORKLOAD.totals(codes).sums)
    np.testing.assert_allclose(WORKLOAD.totals(codes).sums, WORKLOAD.evaluate(codes).sum(axis=0))


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
        ProductQueries(COLUMNS, TABLES, queries)


def test_a_column_asked_by_queries_has_at_most_256_levels():
    ProductQueries({"a": 256}, [["a"]], {"a": Histogram(256)})
    with pytest.raises(ValueError, match="at most 256"):
        ProductQueries({"a": 257}, [["a"]], {"a": Prefixes(257)})
