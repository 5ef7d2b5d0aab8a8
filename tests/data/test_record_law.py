"""The code of a record is a function of that record and of the schema alone, on every way in.

Each test makes one column of a few values, in one of the ways in which records come. It compares
the codes with those of each record alone, in another order and in other chunks. Where a record
alone is refused, all records together must be refused. Then it replaces one record by another and
compares the counts: at most 1 a cell and 2 in all may differ.
"""

import contextlib
import csv
import datetime
import gzip
import itertools
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import geomdp as gd
from geomdp.data import (
    BooleanColumn,
    CategoricalColumn,
    DateColumn,
    NumericColumn,
    Query,
    RealColumn,
    Schema,
    count_records,
    encode,
    frames,
    source_of,
)
from geomdp.data.columns import DayOrder, is_shown

#: Texts that readers of numbers, CSV files and data frames treat in different ways.
TEXTS = (
    *["3", "3.0", "03", "+3", "-3", "-0", "-0.0", "1e0", "1_0", "0x1", "30", "٣٠", "²"],
    *("\u00a030", "30\v", " 30", "30\t", "nan", "NaN", "NA", "null", "None", "inf", "-Infinity"),
    *("true", "True", "TRUE", "yes", "0", "1", "1.0", "9007199254740993", "9007199254740992.0"),
    *("", " ", "a", "A", "\u00e9", "e\u0301", "\ufb01", "\u1e9b\u0323", 'x"y', '"', ","),
    *("a,b", "a\nb", "a\r", "=1", "a\0b", "\U0001f600", "\ufeff"),
    *("2024-02-29", "2024-02-29 00:00:00", "08:15:30.5"),
)
WHOLE = (0, 1, -1, 3, 30, 127, 255, 2**24 + 1, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1)
FLOATS = (
    *(0.0, -0.0, 1.0, 3.0, 30.5, 0.1, 1e-7, 5e-324, 1e22, 2.0**24, 2.0**53, -(2.0**53), 1e308),
    *(float("nan"), float("inf"), float("-inf"), 2048.0, 2.0**53 - 1, 2.0**53 + 2),
)
DECIMALS = tuple(map(Decimal, ("0", "3", "3.0", "-3.50", "1E+2", "0.00000001", "99999999999.99")))
TICKS = (0, 1, -1, 86_399, 86_400, 1_709_164_800, 29_730_123, 253_402_300_799)
OBJECTS = (
    *TEXTS[:20],
    *(None, True, False, 1, 1.0, 3, 2**53 + 1, 2.0**53, 10**30, float("nan"), np.int8(3)),
    *(np.float32(0.1), np.bool_(True), Decimal("3.0"), Decimal("NaN"), pd.NA, pd.NaT, b"3"),
    *([3], (3,), {"a": 3}, datetime.date(2024, 2, 29), datetime.time(8, 15, 30), 3 + 0j, "\ud800"),
    *(datetime.datetime(2024, 2, 29, 8), pd.Timestamp("2024-02-29 08:15:30.5"), object),
    *(np.datetime64(2**62, "Y"), np.datetime64("NaT"), np.datetime64("2024-02-29")),
    datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone(datetime.timedelta(seconds=7134))),
)


def exact(kind):
    """Values of an Arrow type of numbers, from those that it can hold."""
    values = WHOLE if pa.types.is_integer(kind) else FLOATS
    fitting = []
    for value in values:
        try:
            fitting.append(pa.array([value]).cast(kind).to_pylist()[0])
        except pa.ArrowInvalid:
            continue
    return fitting


SIZES = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float double"
POOLS = {
    **{kind: exact(kind) for kind in map(pa.type_for_alias, SIZES.split())},
    pa.float16(): [np.float16(v) for v in (0.0, -0.0, 3.0, 2048.0, 30.5, float("nan"))],
    pa.bool_(): [True, False],
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), TEXTS),
    pa.dictionary(pa.int8(), pa.string()): TEXTS,
    pa.decimal128(20, 8): DECIMALS,
    pa.decimal256(60, 8): DECIMALS,
    pa.date32(): [t // 86_400 for t in TICKS],
    pa.date64(): [t // 86_400 * 86_400_000 for t in TICKS],
    pa.time32("s"): [t % 86_400 for t in TICKS],
    pa.time64("us"): [t % 86_400 * 10**6 + 123_400 for t in TICKS],
    pa.time64("ns"): [29_730_123_456_789, 0, 5],
    **{pa.timestamp(unit): TICKS for unit in ("s", "ms", "us", "ns")},
    pa.timestamp("us", "UTC"): TICKS,
    pa.timestamp("ns", "Europe/Paris"): TICKS,
    pa.null(): [None],
}


def array(values, kind):
    """An Arrow array of `values`, which are ticks for the types of time."""
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(values, width).view(kind)
    if pa.types.is_dictionary(kind):
        return pa.array(values, pa.string()).dictionary_encode().cast(kind)
    if pa.types.is_float16(kind):
        return pa.array(values, kind)
    return pa.array(values).cast(kind) if kind == pa.string_view() else pa.array(values, kind)


@st.composite
def arrow_columns(draw):
    # Readers change whole numbers and texts more often than other values.
    often = [pa.int64(), pa.uint64(), pa.string(), pa.float64()] * 8
    kind = draw(st.sampled_from([*POOLS, *often]))
    pool = list(POOLS[kind])
    extra = st.nothing()
    if kind in (pa.string(), pa.large_string()):
        extra = st.text(st.characters(codec="utf-8"), max_size=3)
    elif kind == pa.float64():
        extra = st.floats()
    elif kind == pa.int64():
        extra = st.integers(-(2**63), 2**63 - 1)
    few = draw(st.lists(st.sampled_from(pool) | extra, min_size=1, max_size=3, unique_by=repr))
    return array(draw(st.lists(st.none() | st.sampled_from(few), min_size=1, max_size=5)), kind)


def spellings(values):
    """Texts under which a category could mean one of the values."""
    found = dict.fromkeys(["9007199254740992", "9007199254740994", "1", "True", "3.0"])
    for value in values.to_pylist() if isinstance(values, pa.Array) else values:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        found[str(value).encode("utf-8", "replace").decode()] = None
    return [text for text in found if is_shown(text)]


@st.composite
def declarations(draw, column):
    """A declared column whose categories can mean values of `column`, which refuses few records."""
    often = st.sampled_from([True, True, True, True, False])
    missing, other = draw(often), draw(often)
    marks = draw(st.sampled_from([{}, {"decimal": ","}, {"decimal": ",", "thousands": "."}]))
    absent = {"missing_texts": draw(st.sampled_from([(), ("NA", "2024-02-29"), ("1",)]))}
    match draw(st.sampled_from(["categorical"] * 7 + ["boolean", "numeric", "date", "real"])):
        case "categorical":
            if isinstance(column, pa.Array) and pa.types.is_temporal(column.type):
                column = column.cast(pa.string())
            chosen = st.lists(st.sampled_from(spellings(column)), min_size=1, unique=True)
            categories, loose = tuple(draw(chosen)), draw(st.booleans())
            with contextlib.suppress(ValueError):  # alike but for blanks and case, or missing texts
                return CategoricalColumn("x", categories, other, missing, **absent, loose=loose)
            return CategoricalColumn("x", categories, other=other, missing=missing)
        case "boolean":
            return BooleanColumn("x", missing=missing, **absent)
        case "date":
            order = draw(st.sampled_from([*DayOrder]))
            return DateColumn("x", ("1900-01-01", "2100-12-31"), "year", order, missing, **absent)
        case "real":
            bounds = draw(st.sampled_from([(-1e300, 1e300), (0, 30)]))
            return RealColumn("x", bounds, clip=other, **marks)
    edges = (-1e300, -3, 0, 1, 30, 2.0**53, 1e300)
    return NumericColumn("x", edges, missing=missing, **absent, **marks)


# --- the ways in --------------------------------------------------------------------------------


@dataclass
class Way:
    """A way in: `make` gives records from a column; rows of a `frame` are taken from it."""

    make: object
    columns: st.SearchStrategy = arrow_columns()  # noqa: RUF009
    frame: bool = False
    on_cluster: bool = False


def table(column):
    return pa.table({"x": column})


def parquet(column, folder):
    path = folder / f"{next(NUMBERS):06}.parquet"
    pq.write_table(table(column), path)
    return path


def comma_separated(column, folder, ending=".csv"):
    path = folder / f"{next(NUMBERS):06}{ending}"
    opened = gzip.open if ending == ".csv.gz" else open
    with opened(path, "wt", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerows([["x"], *([text] for text in column.to_pylist())])
    return path


def divided(column, folder, write):
    """A folder of files of one or two records."""
    inner = folder / f"{next(NUMBERS):06}"
    inner.mkdir()
    for start in range(0, len(column), 2):
        write(column.slice(start, 2), inner)
    return inner


def duckdb_file(column, folder):
    import duckdb

    path = str(folder / f"{next(NUMBERS)}.duckdb")
    with duckdb.connect(path) as connection:
        connection.register("records", table(column))
        connection.execute("CREATE TABLE t AS SELECT * FROM records")
    return Query("FROM t", path)


def partitions(column, folder):
    import dask.dataframe as dd

    frame = table(column).to_pandas(types_mapper=pd.ArrowDtype)
    return dd.from_pandas(frame, npartitions=min(2, len(frame)), sort=False)


NUMBERS = itertools.count()
#: pandas refuses to hold these times.
IN_PANDAS = arrow_columns().filter(lambda c: c.type != pa.time64("ns"))
#: pandas cannot take rows of these texts, if it holds them as Arrow does.
ARROW_IN_PANDAS = IN_PANDAS.filter(lambda c: c.type != pa.string_view())
TEXT_COLUMNS = st.lists(st.none() | st.sampled_from(TEXTS), min_size=1, max_size=5).map(
    lambda values: pa.array(values, pa.string())
)
OBJECT_COLUMNS = st.lists(st.sampled_from(OBJECTS), min_size=1, max_size=5)
#: Types that polars or DuckDB hold as other types, each value by itself; Parquet lacks the others.
PLAIN = arrow_columns().filter(lambda c: c.type not in (pa.float16(), pa.date64(), pa.null()))
PLAIN_IN_PANDAS = PLAIN.filter(lambda c: c.type not in (pa.time64("ns"), pa.string_view()))
NO_DECIMAL256 = PLAIN.filter(lambda c: c.type != pa.decimal256(60, 8))
WAYS = {
    "arrow": Way(lambda c, f: table(c)),
    "arrow batches": Way(lambda c, f: [b for b in table(c).to_batches(2) if b.num_rows]),
    "parquet": Way(parquet, PLAIN),
    "folder of parquet files": Way(lambda c, f: divided(c, f, parquet), PLAIN),
    "csv": Way(comma_separated, TEXT_COLUMNS),
    "csv.gz": Way(lambda c, f: comma_separated(c, f, ".csv.gz"), TEXT_COLUMNS),
    "csv files in a folder": Way(lambda c, f: divided(c, f, comma_separated), TEXT_COLUMNS),
    "pandas, numpy types": Way(lambda c, f: table(c).to_pandas(), IN_PANDAS, frame=True),
    "pandas, arrow types": Way(
        lambda c, f: table(c).to_pandas(types_mapper=pd.ArrowDtype), ARROW_IN_PANDAS, frame=True
    ),
    "pandas, nullable types": Way(
        lambda c, f: pd.DataFrame({"x": table(c).to_pandas()["x"].convert_dtypes()}),
        IN_PANDAS,
        frame=True,
    ),
    "pandas, categories": Way(
        lambda c, f: table(c).to_pandas().astype({"x": "category"}),
        IN_PANDAS.filter(lambda c: c.type != pa.float16()),
        frame=True,
    ),
    "pandas, objects": Way(
        lambda c, f: pd.DataFrame({"x": pd.Series(c, dtype=object)}), OBJECT_COLUMNS, frame=True
    ),
    "polars": Way(lambda c, f: pl.from_arrow(table(c)), NO_DECIMAL256, frame=True),
    "dask": Way(partitions, PLAIN_IN_PANDAS),
    "dask, on a cluster": Way(partitions, PLAIN_IN_PANDAS, on_cluster=True),
    "query": Way(lambda c, f: Query(f"SELECT * FROM '{parquet(c, f)}'"), PLAIN),
    "duckdb file": Way(duckdb_file, NO_DECIMAL256),
}


def part_of(records, column, way, rows, folder):
    """The records of `rows`: rows of a frame, or the same way with a part of the column."""
    if way.frame:
        return records[rows] if isinstance(records, pl.DataFrame) else records.iloc[rows]
    return way.make(pa.concat_arrays([column.slice(row, 1) for row in rows]), folder)


def codes_of(records, declared):
    """The codes of records, or None if they are refused."""
    schema = Schema((declared,))
    read = records if isinstance(records, list) else source_of(records).chunks(["x"])
    try:
        chunks = list(encode(read, schema, schema.universe()))
    except ValueError:
        return None
    return [code for chunk in chunks for code in chunk[:, 0].tolist()]


def check_law(way, column, declared, folder, client=None):
    """Check the law for one column; return whether the records were accepted.

    Records are counted on the cluster of `client`, if one is given.
    """
    whole = way.make(column, folder)
    rows = list(range(len(column)))
    alone = [codes_of(part_of(whole, column, way, [row], folder), declared) for row in rows]
    expected = None if None in alone else [code for codes in alone for code in codes]
    assert codes_of(whole, declared) == expected
    backwards = part_of(whole, column, way, rows[::-1], folder)
    assert codes_of(backwards, declared) == (expected and expected[::-1])
    if isinstance(declared, RealColumn) or isinstance(whole, list):
        return expected is not None
    if expected is None:
        with pytest.raises(ValueError, match=r"'x'|query"):
            counts_of(whole, declared, client)
        return False
    together = counts_of(whole, declared, client)
    assert together.tolist() == np.bincount(expected, minlength=len(declared.labels)).tolist()
    neighbour = part_of(whole, column, way, [rows[-1], *rows[1:]], folder)
    change = np.abs(together - counts_of(neighbour, declared, client))
    assert change.max() <= 1
    assert change.sum() <= 2
    return True


def counts_of(records, declared, client):
    """The number of records of each code."""
    workload = gd.workloads.Histogram(len(declared.labels))
    counted = count_records(source_of(records), Schema((declared,)), workload, client=client)
    return counted.histogram()


BIG = ("9007199254740992", "9007199254740993", "9007199254740994")
#: Cases that once went wrong, as values and categories: one missing value rounded the others, one
#: text sent all others to another reader, and one value gave a column of objects its type.
FOUND = {
    "a missing value beside large numbers": (pa.array([2**53 + 1, None, 2**53 + 1]), BIG),
    "a missing value beside small numbers": (pa.array([3, None]), ("3", "3.0")),
    "unsigned numbers": (pa.array([2**64 - 1, None], pa.uint64()), (str(2**64 - 1), str(2**64))),
    "a blank that does not break": (pa.array(["30", "\u00a030", "30.0"]), ("30", "31")),
    "a vertical tab": (pa.array(["30", "30\v", None]), ("30", "31")),
    "digits of another script": (pa.array(["30", "\u0663\u0660"]), ("30", "31")),
    "a fraction among whole texts": (pa.array(["007", "7", "7.5"]), ("7", "007")),
    "both signs of zero": (pa.array([0.0, -0.0, None]), ("0", "-0")),
}


def ways_in(*values):
    """The ways in, each with the values of its own. Dask warns about ports of the cluster."""
    quiet = [pytest.mark.filterwarnings("ignore")]
    return [
        pytest.param(name, *(value[name] for value in values), marks=quiet * way.on_cluster)
        for name, way in WAYS.items()
    ]


@pytest.fixture
def counter(request, name):
    """The client of a cluster that counts, if the way in `name` needs one."""
    return request.getfixturevalue("client") if WAYS[name].on_cluster else None


#: Ways in whose reader is that of another way.
SAME_READER = ("csv.gz", "csv files in a folder", "folder of parquet files", "dask, on a cluster")


@pytest.mark.parametrize("name", [name for name in WAYS if name not in SAME_READER])
@pytest.mark.parametrize("case", FOUND)
def test_cases_that_once_went_wrong(tmp_path, name, case):
    column, categories = FOUND[case]
    if name == "pandas, objects":
        column = column.to_pylist()
    elif name.startswith("csv"):
        column = pa.array([None if v is None else str(v) for v in column.to_pylist()])
    for declared in (
        CategoricalColumn("x", categories, other=True, missing=True),
        NumericColumn("x", (-1, 0, 30, 2.0**53, 2.0**63, 2.0**64), missing=True),
    ):
        check_law(WAYS[name], column, declared, tmp_path)


CHEAP = ("arrow", "arrow batches", "pandas, numpy types", "pandas, objects")
#: The numbers of generated columns of each way in.
FEW = {name: 60 if name in CHEAP else 8 for name in WAYS}
MANY = {name: 700 if name in CHEAP else 200 for name in WAYS}


def accepted(way, count, folder, client=None):
    """Check the law for `count` generated columns, of which most must be accepted."""
    seen = []

    @settings(max_examples=count, database=None, suppress_health_check=list(HealthCheck))
    @given(way.columns.flatmap(lambda column: st.tuples(st.just(column), declarations(column))))
    def law(case):
        seen.append(check_law(way, *case, folder, client))

    law()
    assert len(seen) == count
    assert sum(seen) > count / 3


@pytest.mark.parametrize(("name", "count"), ways_in(FEW))
def test_the_code_of_a_record_is_its_own(tmp_path, counter, name, count):
    accepted(WAYS[name], count, tmp_path, counter)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), ways_in(MANY))
def test_the_code_of_a_record_is_its_own_in_5000_columns(
    tmp_path, counter, name, count, monkeypatch
):
    monkeypatch.setattr(frames, "CHUNK_ROWS", 2)
    accepted(WAYS[name], count, tmp_path, counter)
