"""At most K rows of each person are counted, by a rule that looks at this person's rows only."""

import functools
import hashlib
import itertools
import math
from collections import Counter

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.stats

import geomdp as gd
from geomdp.data import Query, Schema, count_records, source_of
from geomdp.data.frames import Frame, Source
from geomdp.data.tallies import MAX_WHOLE

SCHEMA = Schema.from_dict({"a": ["x", "y", "z"], "b": bool})
WORKLOAD = gd.workloads.MarginalTables(SCHEMA.levels, 2)
#: The six records, as codes.
RECORDS = list(itertools.product(range(3), range(2)))
LEVEL = 1e-6


def table(persons):
    """A data frame from the rows of each person, as codes."""
    rows = [(who, "xyz"[a], bool(b)) for who, own in persons.items() for a, b in own]
    return pd.DataFrame(rows, columns=["id", "a", "b"])


def counts(records, k, schema=SCHEMA, workload=WORKLOAD):
    """Counts of the joint table when at most `k` rows of each person are counted."""
    source = source_of(records)
    return count_records(source, schema, workload, person="id", max_rows_per_person=k).histogram()


def kept(who, rows, k):
    """The rule, written a second time: the rows of one person that are counted."""
    copies, numbered = Counter(), []
    for row in sorted(rows):
        copies[row] += 1
        code = np.array(row, dtype=np.uint16).tobytes().hex().upper()
        text = f"{who} {code} {copies[row]}"
        numbered.append((hashlib.sha256(text.encode()).hexdigest(), row))
    return [row for _, row in sorted(numbered)[:k]]


def multisets(most):
    """All multisets of at most `most` rows of two records."""
    return [
        own
        for size in range(most + 1)
        for own in itertools.combinations_with_replacement(RECORDS[:2], size)
    ]


@functools.cache
def alone(who, own, k):
    """The counts of one person."""
    return counts(table({who: own}), k)


@pytest.mark.parametrize("k", [1, 2])
def test_a_person_changes_at_most_k_rows_whatever_others_have(k):
    """The sensitivity, by all tables of a person with up to k + 1 and one with at most one row."""
    largest = 0
    for first, second in itertools.product(multisets(k + 1), multisets(1)):
        together = counts(table({"q": second, "p": first}), k)
        change = together - alone("q", second, k)
        # The rows that are kept of a person do not depend on those of another.
        np.testing.assert_array_equal(change, alone("p", first, k))
        assert change.min() >= 0
        largest = max(largest, change.sum())
        assert change.sum() == min(k, len(first))
    assert largest == k


@functools.cache
def shared():
    """Records of 300 persons, and the counts of at most 3 of each, by the rule."""
    rng = np.random.default_rng(0)
    owners, a, b = (rng.integers(count, size=2000) for count in (300, 3, 2))
    frame = pd.DataFrame({"id": owners, "a": np.array(list("xyz"))[a], "b": b.astype(bool)})
    own = {}
    for who, *row in zip(owners, a, b, strict=True):
        own.setdefault(str(who), []).append(tuple(map(int, row)))
    counted = Counter(row for who, rows in own.items() for row in kept(who, rows, 3))
    return frame, [counted[record] for record in RECORDS]


def test_every_way_in_and_every_order_gives_the_same_counts(tmp_path):
    frame, expected = shared()
    texts = frame.astype({"id": str})
    texts.to_csv(tmp_path / "one.csv", index=False)
    texts.to_csv(tmp_path / "one.csv.gz", index=False)
    frame.to_parquet(tmp_path / "one.parquet")
    (tmp_path / "parts").mkdir()
    for start in range(0, len(frame), 300):  # persons have rows in several files
        frame[start : start + 300].to_parquet(tmp_path / "parts" / f"{start:04}.parquet")
    frame[:0].to_csv(tmp_path / "parts" / "none.csv", index=False)
    ways = {
        "pandas": frame,
        "texts": texts,
        "floats": frame.astype({"id": float}),
        "categories": texts.astype({"id": "category"}),
        "objects": frame.astype({"id": object}),
        "other order": frame.sample(frac=1, random_state=1),
        "backwards": frame[::-1],
        "polars": pl.from_pandas(frame),
        "arrow": pa.Table.from_pandas(frame),
        "chunked arrow": pa.concat_tables([pa.Table.from_pandas(frame[i::7]) for i in range(7)]),
        "csv": tmp_path / "one.csv",
        "csv.gz": tmp_path / "one.csv.gz",
        "parquet": tmp_path / "one.parquet",
        "folder": tmp_path / "parts",
        "query": Query(f"SELECT * FROM '{tmp_path}/one.parquet' ORDER BY a, id DESC"),
        "dask": dd.from_pandas(frame, npartitions=4),
    }
    for name, way in ways.items():
        assert counts(way, 3).tolist() == expected, name


def test_a_second_scan_keeps_the_same_rows():
    """Mechanisms can ask for more tables than the queries need; these must fit to each other."""
    frame, expected = shared()
    levels = {"a": 3, "b": 2, **{f"c{i}": 2 for i in range(20)}}  # no joint table is counted
    assert math.prod(levels.values()) > MAX_WHOLE
    schema = Schema((*SCHEMA.columns, *(gd.data.BooleanColumn(f"c{i}") for i in range(20))))
    wide = frame.assign(**{f"c{i}": frame["b"] for i in range(20)})
    single = gd.workloads.MarginalTables(levels, 1)
    asked = {"person": "id", "max_rows_per_person": 3}
    counted = count_records(source_of(wide), schema, single, **asked)
    more = counted.with_tables([(0, 1), (1, 5)])
    assert (more.count, more.max_rows_per_person) == (counted.count, 3)
    assert more.table((0, 1)).sum(axis=0).tolist() == counted.table((1,)).tolist()
    same = more.table((1, 5))
    assert (same[0, 1], same[1, 0]) == (0, 0)
    assert more.count == sum(expected)


def test_every_row_is_kept_equally_often():
    """Of three equal rows and another, the other is kept by a quarter of the persons."""
    persons = 4000
    found = counts(table({f"p{i}": [(0, 0)] * 3 + [(2, 1)] for i in range(persons)}), 1)
    assert found.sum() == persons
    assert scipy.stats.binomtest(int(found[5]), persons, 0.25).pvalue > LEVEL


def test_persons_are_told_apart_by_their_whole_names():
    names = ["p", "P", "p ", " p", "é", "e\u0301", "p\x00", "p\x00q", "00", "0", "NA", "p" * 10_000]
    assert counts(table({name: [(0, 0)] * 2 for name in names}), 1).sum() == len(names)


@pytest.mark.parametrize("missing", [None, "", float("nan")])
def test_a_row_without_a_person_is_refused_by_number_and_row(missing):
    frame = table({"secret-id": [(0, 0)] * 5})
    frame.loc[[1, 3], "id"] = missing
    said = r"present: row 1, column 'id' is not, nor is row 3 \(rows are counted from 0"
    with pytest.raises(ValueError, match=said) as refusal:
        counts(frame, 1)
    assert "secret" not in str(refusal.value)


def test_a_rounded_name_is_refused_because_it_may_be_that_of_two_persons():
    frame = table({1.0: [(0, 0)], 2.0**53: [(0, 0)]})
    with pytest.raises(ValueError, match=r"float cannot have rounded .*row 1, column 'id'"):
        counts(frame, 1)


class Failing(Source):
    """Records that cannot be read to their end, with a private text in the error."""

    name = "broken records"

    def _batches(self, columns):
        yield from Frame(table({"p": [(0, 0)]}))._batches(columns)
        raise RuntimeError("secret-id")


def test_an_error_while_rows_are_bounded_shows_no_name():
    said = r"broken records cannot be read \(RuntimeError\)"
    with pytest.raises(ValueError, match=said) as error:
        counts(Failing(), 1)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("person", "most", "client", "message"),
    [
        ("id", None, None, "person and max_rows_per_person belong together"),
        (None, 2, None, "person and max_rows_per_person belong together"),
        ("id", 0, None, "max_rows_per_person must be a whole number"),
        ("id", 1.5, None, "max_rows_per_person must be a whole"),
        ("a", 1, None, "person must be no column of the queries"),
        ("who", 1, None, "must have the column 'who' once"),
        ("id", 1, object(), "needs all rows in one place: leave out the cluster"),
    ],
)
def test_wrong_arguments_are_refused(person, most, client, message):
    asked = {"person": person, "max_rows_per_person": most, "client": client}
    with pytest.raises(ValueError, match=message):
        count_records(source_of(table({"p": [(0, 0)]})), SCHEMA, WORKLOAD, **asked)


def test_reals_of_a_person_cannot_be_bounded():
    asked = {"person": "id", "max_rows_per_person": 1}
    frame = table({"p": [(0, 0)]})
    reals = Schema.from_dict({"x": {"bounds": [0, 1]}})
    with pytest.raises(ValueError, match="person is for tables only"):
        count_records(source_of(frame.assign(x=0.5)), reals, gd.workloads.SecondMoment(1), **asked)
