import gzip
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geomdp.data import files, read_chunks

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


def together(chunks):
    """The values of each column, from all chunks."""
    return {
        name: [value for chunk in chunks for value in chunk[name].to_pylist()]
        for name in chunks[0].schema.names
    }


def write(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 6, 10**12])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_chunks_are_the_file_in_order(kind, rows, request):
    path = request.getfixturevalue(kind)
    chunks = list(read_chunks(str(path), ["c", "b", "a"], rows))
    assert all(chunk.schema.names == ["c", "b", "a"] for chunk in chunks)
    assert all(0 < chunk.num_rows <= rows for chunk in chunks)
    expected = FRAME.astype(str) if kind == "csv" else FRAME
    assert together(chunks) == expected.to_dict("list")


def test_csv_values_are_texts_whatever_their_chunk(tmp_path):
    # Types found from the values would let one record change the others.
    path = write(tmp_path / "mixed.csv", "v\n7\n7.5\nx\n007\nTrue\n")
    for rows in (1, 2, 5):
        values = together(list(read_chunks(path, rows=rows)))["v"]
        assert values == ["7", "7.5", "x", "007", "True"]


def test_only_an_empty_field_is_missing(tmp_path):
    path = write(tmp_path / "missing.csv", 'a,b\nNA,nan\nNone,""\n,null\n\n')
    (chunk,) = read_chunks(path)
    assert chunk.to_pydict() == {"a": ["NA", "None", None, None], "b": ["nan", None, "null", None]}


def test_a_compressed_file_and_a_byte_order_mark(tmp_path):
    content = gzip.compress("\ufeffa,b\n1,\u00e9\n".encode())
    (chunk,) = read_chunks(write(tmp_path / "records.csv.gz", content))
    assert chunk.to_pydict() == {"a": ["1"], "b": ["\u00e9"]}


def test_a_header_without_rows_has_no_chunks(tmp_path):
    assert list(read_chunks(write(tmp_path / "none.csv", "a,b\n"))) == []
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "none.parquet")
    assert list(read_chunks(tmp_path / "none.parquet")) == []


def test_parquet_keeps_its_types_and_ignores_a_stored_index(tmp_path):
    values = {"kind": ["u", "v"], "flag": [True, False], "n": [2**60, 1]}
    frame = pd.DataFrame(values, index=pd.Index(["r", "s"], name="id"))
    frame.astype({"kind": "category"}).to_parquet(tmp_path / "typed.parquet")
    (chunk,) = read_chunks(tmp_path / "typed.parquet")
    assert chunk.to_pydict() == values | {"id": ["r", "s"]}


@pytest.mark.parametrize("name", ["no.csv", "no.parquet", "no.txt", "."])
def test_a_missing_file_is_named(tmp_path, name):
    with pytest.raises(FileNotFoundError, match="no such file of records") as error:
        read_chunks(tmp_path / name)
    assert error.value.filename == str(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("r.csv", "", "must start with a header line"),
        ("r.csv", "\na,b\n1,2\n", "must start with a header line"),
        ("r.csv", "a,,b\n1,2,3\n", r"columns number \[1\] \(from 0\) have no name"),
        ("r.csv", "a,b,a\n1,2,3\n", r"columns number \[0, 2\] \(from 0\) share a name"),
        ("r.csv", b"a,\xff\n1,2\n", "the header is not utf-8"),
        ("r.csv", 'a,"b\n1,2\n', "in the header has a quotation mark without its pair"),
        ("r.csv", 'a,b"c\n1,2\n', "in the header has a quotation mark that does not begin"),
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
        ("a,b\n1,2,3\n", "row 0 has 3 fields, the header has 2"),
        ("a,b\n1,2\n3,4,\n", "row 1 has 3 fields, the header has 2"),
        ("a,b\n1,2\n\n3\n", "row 2 has 1 fields, the header has 2"),
        ('a,b\n1,2\n"3,4\n', "row 1 has a quotation mark without its pair"),
        ('a,b\n1,2\n3,4"\n', "row 1 has a quotation mark that does not begin a field"),
        ('a,b\n1,2\n3, "4"\n', "row 1 has a quotation mark that does not begin a field"),
        ('a,b\n"1\n",2\n"3" ,4\n', "row 1 has a quotation mark that does not end the field"),
        ("a,b\n1,2\n3,4\r5,6\n", "row 1 has a carriage return without a line feed"),
        (b"a,b\n1,2\n1,\xff\n", 'row 1 is not utf-8; .* "latin-1"'),
    ],
)
def test_malformed_rows_are_refused_while_reading(tmp_path, content, message):
    path = write(tmp_path / "r.csv", content)
    chunks = read_chunks(path, None if b"\xff" in path.read_bytes() else ["a"])
    with pytest.raises(ValueError, match=message) as error:
        list(chunks)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("cut", [0, 3, 40, 2000])
def test_a_damaged_gzip_file_is_named_and_not_quoted(tmp_path, cut):
    whole = gzip.compress(b"a,b\n" + np.random.default_rng(0).bytes(4000).hex().encode())
    path = tmp_path / "r.csv.gz"
    path.write_bytes(b"not gzip" if cut == 0 else whole[:cut])
    with pytest.raises(ValueError, match=r"cannot be read \((BadGzipFile|EOFError)\)") as error:
        list(read_chunks(path))
    assert str(path) in str(error.value)
    assert "not gzip" not in str(error.value)


@pytest.mark.parametrize(
    ("columns", "rows", "message"),
    [
        (["a", "z"], 1, "the header has no column 'z'; it has 'a', "),
        ([], 1, "columns must list at least one name, each once"),
        (["a", "a"], 1, "columns must list at least one name, each once"),
        ("a", 1, "columns must be a list of names, got 'a'"),
        (["a"], 0, "rows must be a whole number"),
    ],
)
def test_arguments_are_checked(csv, columns, rows, message):
    with pytest.raises(ValueError, match=message):
        read_chunks(csv, columns, rows)


def test_the_whole_file_is_never_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK", 1 << 17)
    path, count, line = tmp_path / "large.csv", 50_000, ",".join(["some text"] * 10) + "\n"
    path.write_text("a,b,c,d,e,f,g,h,i,j\n" + line * count)
    tracemalloc.start()
    try:
        seen = sum(chunk.num_rows for chunk in read_chunks(path, ["c"], rows=1000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert seen == count
    assert peak < path.stat().st_size / 4


@settings(max_examples=25)
@given(
    st.lists(st.text("aé北\U0001f600 ,;\"'\n\r\t\ufeff\u2028", min_size=1, max_size=5), min_size=1),
    st.integers(1, 13),
)
def test_any_texts_come_back(tmp_path_factory, texts, rows):
    frame = pd.DataFrame({"text": texts, "number": range(len(texts))})
    path = tmp_path_factory.mktemp("tables") / "t.csv"
    frame.to_csv(path, index=False, lineterminator="\n", quoting=2)  # quote all but numbers
    read = together(list(read_chunks(path, ["number", "text"], rows)))
    assert read == {"number": [*map(str, frame["number"])], "text": texts}


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_blocks_make_no_difference(tmp_path, monkeypatch, block, ending):
    lines = ['a,"b ""c""",d', '1,"x, y",3', '"line\nbreak",,', "", '"",""" """,z']
    path = write(tmp_path / "r.csv", ending.join(lines))
    expected = {
        "a": ["1", "line\nbreak", None, None],
        'b "c"': ["x, y", None, None, '" "'],
        "d": ["3", None, None, "z"],
    }
    assert together(list(read_chunks(path))) == expected
    monkeypatch.setattr(files, "BLOCK", block)
    assert together(list(read_chunks(path))) == expected


def test_a_record_longer_than_a_block_of_the_parser_is_read(tmp_path):
    long = "x" * (3 << 20)
    path = write(tmp_path / "r.csv", f'a,b\n1,{long}\n2,"{long}\n"\n')
    assert together(list(read_chunks(path))) == {"a": ["1", "2"], "b": [long, long + "\n"]}


def test_a_record_without_an_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK", 100)
    monkeypatch.setattr(files, "LONGEST_RECORD", 1000)
    path = write(tmp_path / "r.csv", 'a,b\n1,2\n3,"4\n' + "1,2\n" * 500)
    with pytest.raises(ValueError, match="a record is longer than 1000 bytes"):
        list(read_chunks(path))
