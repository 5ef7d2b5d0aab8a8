import gzip
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geomdp.data import numeric_chunks, read_chunks, readers
from geomdp.workloads import Histogram

FRAME = pd.DataFrame({"a": [1, 2, 3, 4, 5], "b": ["x", "y", "NA", "01", "x"], "c": [0.5] * 5})


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "records.csv"
    FRAME.to_csv(path, index=False)
    return path


@pytest.fixture
def parquet(tmp_path):
    path = tmp_path / "records.parquet"
    pq.write_table(pa.Table.from_pandas(FRAME), path, row_group_size=2)
    return path


def write(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 6, 10**12])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_chunks_are_the_file_in_order(kind, rows, request):
    path = request.getfixturevalue(kind)
    chunks = list(read_chunks(path, rows=rows))
    assert all(0 < len(chunk) <= rows for chunk in chunks)
    together = pd.concat(chunks)
    assert list(together.index) == [0, 1, 2, 3, 4]
    expected = FRAME.astype(str) if kind == "csv" else FRAME
    for name in FRAME:
        assert together[name].tolist() == expected[name].tolist()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_come_in_the_order_asked_for(kind, request):
    chunks = list(read_chunks(str(request.getfixturevalue(kind)), ["c", "a"], rows=2))
    assert all(list(chunk.columns) == ["c", "a"] for chunk in chunks)
    assert sum(map(len, chunks)) == 5


def test_csv_values_are_texts_whatever_their_chunk(tmp_path):
    # pandas would guess a type for each chunk, so the values would depend on where chunks end.
    path = write(tmp_path / "mixed.csv", "v\n7\n7.5\nx\n007\nTrue\n")
    for rows in (1, 2, 5):
        values = pd.concat(list(read_chunks(path, rows=rows)))["v"].tolist()
        assert values == ["7", "7.5", "x", "007", "True"]


def test_only_an_empty_field_is_missing(tmp_path):
    path = write(tmp_path / "missing.csv", 'a,b\nNA,nan\nNone,""\n,null\nshort\n\n')
    (chunk,) = read_chunks(path)
    assert chunk.isna().to_numpy().tolist() == [
        [False, False],
        [False, True],
        [True, False],
        [False, True],
        [True, True],
    ]


def test_a_compressed_file_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "records.csv.gz"
    path.write_bytes(gzip.compress("\ufeffa,b\n1,\u00e9\n".encode()))
    (chunk,) = read_chunks(path)
    assert list(chunk.columns) == ["a", "b"]
    assert chunk["b"].tolist() == ["\u00e9"]


def test_a_header_without_rows_has_no_chunks(tmp_path):
    assert list(read_chunks(write(tmp_path / "none.csv", "a,b\n"))) == []
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "none.parquet")
    assert list(read_chunks(tmp_path / "none.parquet")) == []


def test_parquet_keeps_its_types_and_ignores_a_stored_index(tmp_path):
    frame = pd.DataFrame(
        {"kind": pd.Categorical(["u", "v"]), "flag": [True, False], "n": [2**60, 1]},
        index=pd.Index(["r", "s"], name="id"),
    )
    path = tmp_path / "typed.parquet"
    frame.to_parquet(path)
    (chunk,) = read_chunks(path)
    assert list(chunk.columns) == ["kind", "flag", "n", "id"]
    assert chunk["n"].tolist() == [2**60, 1]
    assert chunk["flag"].dtype == bool
    assert chunk["kind"].tolist() == ["u", "v"]


@pytest.mark.parametrize("name", ["no.csv", "no.parquet", "no.txt", "."])
def test_a_missing_file_is_named(tmp_path, name):
    with pytest.raises(FileNotFoundError, match="no such file of records") as error:
        read_chunks(tmp_path / name)
    assert error.value.filename == str(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("r.csv", "", "must start with a header line"),
        ("r.csv", "\n", "must start with a header line"),
        ("r.csv", "\na,b\n1,2\n", "must start with a header line"),
        ("r.csv", "a,,b\n1,2,3\n", r"columns number \[1\] \(from 0\) have no name"),
        ("r.csv", "a,b,a\n1,2,3\n", r"columns number \[0, 2\] \(from 0\) share a name"),
        ("r.csv", b"a,\xff\n1,2\n", "the header cannot be read"),
        ("r.csv", 'a,"b\n1,2\n', "the header cannot be read"),
        ("r.parquet", "", "not a Parquet file"),
        ("r.parquet", "a,b\n1,2\n", "not a Parquet file"),
        ("r.txt", "a,b\n1,2\n", r"must end in one of .csv, .csv.gz, .parquet"),
    ],
)
def test_a_bad_header_is_refused_at_once(tmp_path, name, content, message):
    path = write(tmp_path / name, content)
    with pytest.raises(ValueError, match=message) as error:
        read_chunks(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2,3\n", "the first row has more fields than the header"),
        ("a,b\n1,2\n3,4,5\n", "Expected 2 fields in line 3, saw 3"),
        ('a,b\n1,2\n"3,4\n', "EOF inside string"),
        (b"a,b\n1,\xff\n", "utf-8"),
    ],
)
def test_malformed_rows_are_refused_while_reading(tmp_path, content, message):
    path = write(tmp_path / "r.csv", content)
    chunks = read_chunks(path)
    with pytest.raises(ValueError, match=message) as error:
        list(chunks)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("cut", [0, 3, 40, 2000])
def test_a_damaged_gzip_file_is_named_and_not_quoted(tmp_path, cut):
    whole = gzip.compress(b"a,b\n" + np.random.default_rng(0).bytes(4000).hex().encode())
    path = tmp_path / "r.csv.gz"
    path.write_bytes(b"not gzip" if cut == 0 else whole[:cut])
    with pytest.raises(ValueError, match="the gzip data are damaged") as error:
        list(read_chunks(path))
    assert str(path) in str(error.value)
    assert "not gzip" not in str(error.value)


def test_surplus_fields_are_seen_even_outside_the_chosen_columns(tmp_path):
    path = write(tmp_path / "r.csv", "a,b\n1,2\n3,4,5\n")
    with pytest.raises(ValueError, match="Expected 2 fields"):
        list(read_chunks(path, ["a"]))


def test_a_damaged_parquet_file_is_named(tmp_path):
    path = tmp_path / "r.parquet"
    pq.write_table(pa.table({"a": list(range(1000))}), path, compression="snappy")
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)  # the first page, after the four bytes of the format's name
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="the Parquet file cannot be read") as error:
        list(read_chunks(path))
    assert str(path) in str(error.value)


def test_repeated_names_in_parquet_are_refused(tmp_path):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, tmp_path / "r.parquet")
    with pytest.raises(ValueError, match=r"share a name in the header"):
        read_chunks(tmp_path / "r.parquet")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["a", "z"], r"columns \['z'\] are not among the 3 names in the header"),
        ([], "columns must list at least one name, each once"),
        (["a", "a"], "columns must list at least one name, each once"),
        ("a", "columns must be a list of names, got 'a'"),
    ],
)
def test_chosen_columns_are_checked(csv, columns, message):
    with pytest.raises(ValueError, match=message):
        read_chunks(csv, columns)


@pytest.mark.parametrize("rows", [0, -1, 2.0, True])
def test_rows_are_checked(csv, rows):
    with pytest.raises(ValueError, match="rows must be a whole number"):
        read_chunks(csv, rows=rows)


def test_the_whole_file_is_never_in_memory(tmp_path):
    path, count = tmp_path / "large.csv", 200_000
    line = ",".join(["some text"] * 10) + "\n"
    with path.open("w") as file:
        file.write(",".join(f"c{i}" for i in range(10)) + "\n")
        file.writelines(line for _ in range(count))
    size = path.stat().st_size
    tracemalloc.start()
    try:
        seen = sum(len(chunk) for chunk in read_chunks(path, ["c3"], rows=1000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert seen == count
    assert peak < size / 4


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=5),
            st.integers(-(10**6), 10**6),
        ),
        min_size=1,
        max_size=12,
    ),
    st.integers(1, 13),
)
def test_any_table_comes_back(tmp_path_factory, table, rows):
    frame = pd.DataFrame(table, columns=["text", "number"])
    path = tmp_path_factory.mktemp("tables") / "t.csv"
    frame.to_csv(path, index=False, lineterminator="\n", quoting=2)  # quote all but numbers
    together = pd.concat(list(read_chunks(path, rows=rows)))
    assert together["text"].tolist() == frame["text"].tolist()
    assert together["number"].tolist() == [str(number) for number in frame["number"]]


def test_numeric_chunks_make_a_file_of_codes_readable_without_a_schema(tmp_path):
    path = write(tmp_path / "codes.csv", "x\n0\n2\n2\n1\n")
    answers = Histogram(3).answers(numeric_chunks(read_chunks(path, rows=3)))
    np.testing.assert_array_equal(answers, [0.25, 0.25, 0.5])


@pytest.mark.parametrize(
    ("text", "wanted"), [("x", "a number"), ("1_0", "a number"), ("", "present"), ("nan", "number")]
)
def test_numeric_chunks_name_row_and_column(tmp_path, text, wanted):
    path = write(tmp_path / "codes.csv", f"x,y\n0,1\n2,1\n1,{text}\n")
    with pytest.raises(ValueError, match=f"{wanted}: row 2, column 'y' is not"):
        list(numeric_chunks(read_chunks(path, rows=2)))


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n",
        "a,b\r\n1,2\r\n",
        " a ,b b\n1,2\n",
        '"a",b\n1,2\n',
        '"a b","c"\n1,2\n',
        '"a,b",c\n1,2\n',
        '"",c\n1,2\n',
        '"a""b",c\n1,2\n',
        'a"b,c\n1,2\n',
        "a,é\n1,2\n",
        "a,,b\n1,2,3\n",
        "a,b",
        "NA,1.50\n1,2\n",
        "\ufeffa,b\n1,2\n",
    ],
)
def test_a_header_is_the_same_with_and_without_pandas(tmp_path, monkeypatch, text):
    path = tmp_path / "records.csv"
    path.write_text(text, encoding="utf-8", newline="")
    found = readers.header(path)
    monkeypatch.setattr(readers, "_plain_header", lambda path: None)
    assert found == readers.header(path)
