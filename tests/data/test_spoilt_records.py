"""No error about records holds a value: not its message, its arguments, its causes or a log."""

import csv
import datetime
import gzip
import logging
import os
import subprocess
import sys
import traceback
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import geomdp as gd
from geomdp.data import (
    BooleanColumn,
    CategoricalColumn,
    NumericColumn,
    Query,
    RealColumn,
    Schema,
    count_records,
    encode,
    frames,
    source_of,
)
from geomdp.workloads.universes import FiniteUniverse

#: The planted value: every spoilt record holds it, as a text or within a number.
SECRET = "7134"
TEXT = f"s3cret{SECRET}"


def ticks(value, kind):
    """A zero and `value`, which count units of time."""
    return pa.array([0, value], pa.int64() if kind.bit_width == 64 else pa.int32()).view(kind)


#: Columns of two records; the value of the second is private and fits no declaration.
SPOILT = {
    "text": pa.array(["0", TEXT]),
    "dictionary": pa.array(["0", TEXT]).dictionary_encode(),
    "whole number": pa.array([0, -int(SECRET)]),
    "large whole number": pa.array([0, 4_000_000_000_007_134_000]),
    "float": pa.array([0.0, -7134.7134]),
    "large float": pa.array([0.0, -7134e290]),
    "decimal": pa.array([Decimal("0.0000"), Decimal("-7134.7134")]),
    "time in nanoseconds": ticks(29_713_471_347_134, pa.time64("ns")),
    "time in microseconds": ticks(29_713_471_340, pa.time64("us")),
    "date of the far future": ticks(100_007_134, pa.date32()),
    "date in milliseconds": ticks(71_347_134 * 86_400_000, pa.date64()),
    "instant of the far future": ticks(10**14 + 7134, pa.timestamp("s")),
    "instant in a time zone": ticks(71_347_134, pa.timestamp("us", "Europe/Paris")),
    "duration": ticks(7134, pa.duration("s")),
    "list": pa.array([[0], [7134]]),
    "structure": pa.array([{"a": "0"}, {"a": TEXT}]),
    "bytes": pa.array([b"0", TEXT.encode() + b"\xff"]),
}
DECLARED = {
    "categories": CategoricalColumn("x", ("0",)),
    "truth values": BooleanColumn("x"),
    "bins": NumericColumn("x", (0, 1)),
    "bounds": RealColumn("x", (0, 1)),
}


def parquet(column, folder):
    path = folder / "r.parquet"
    pq.write_table(pa.table({"x": column}), path)
    return path


def objects(column, folder):
    try:
        values = column.to_pylist()
    except (ValueError, OverflowError):  # Python has no such time
        values = column.cast(pa.string()).to_pylist()
    return pd.DataFrame({"x": pd.Series(values, dtype=object)})


def comma_separated(column, folder):
    path = folder / "r.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        texts = column.cast(pa.string()).to_pylist()
        csv.writer(file).writerows([["x"], *([text] for text in texts)])
    return path


#: Columns without texts cannot be written as CSV. `FILES` has bytes that are not UTF-8.
NOT_IN_CSV = ("list", "structure", "bytes")
WAYS = {
    "csv": comma_separated,
    "arrow": lambda column, folder: pa.table({"x": column}),
    "parquet": parquet,
    "pandas": objects,
    "pandas with arrow types": lambda column, folder: pa.table({"x": column}).to_pandas(
        types_mapper=pd.ArrowDtype
    ),
    "polars": lambda column, folder: pl.from_arrow(pa.table({"x": column})),
    "query": lambda column, folder: Query(f"SELECT * FROM '{parquet(column, folder)}'"),
}
CASES = [(way, kind) for way in WAYS for kind in SPOILT if way != "csv" or kind not in NOT_IN_CSV]
#: Python objects, of which no two need to have the same type.
OBJECTS = {
    "year of the far future": np.datetime64(7_134_000_000_000_000_000, "Y"),
    "duration": datetime.timedelta(seconds=7134),
    "duration of NumPy": np.timedelta64(7134, "s"),
    "instant in a zone with seconds": datetime.datetime(
        2024, 2, 29, tzinfo=datetime.timezone(datetime.timedelta(seconds=7134))
    ),
    "number with too many digits": 7134 * 10**5000,
    "half of a character": f"{TEXT}\ud800",
    "bytes": TEXT.encode(),
    "complex number": 7134.7134 + 0j,
}


def parts_of(error):
    """Everything that an exception holds or leads to, as texts."""
    seen, found, left = set(), [], [error]
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        found.append(repr(value))
        if isinstance(value, BaseException):
            found += [str(value), "".join(traceback.format_exception(value))]
            left += [*value.args, value.__cause__, value.__context__, *vars(value).values()]
            left += [getattr(value, name, None) for name in ("object", "doc", "filename", "reason")]
    return "\n".join(found)


def refused(read, caplog, capfd):
    """The error of `read`, if it holds no planted value. What was logged or printed counts too."""
    caplog.set_level(logging.DEBUG)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the message is read below)
        read()
    said = parts_of(caught.value) + caplog.text + "".join(capfd.readouterr())
    assert SECRET not in said
    assert "7.134" not in said
    return str(caught.value)


def readers(records, declared):
    """All ways to read records of one column: as counts, and as codes."""
    schema = Schema((declared,))
    universe = gd.workloads.SymmetricCube(1)
    workload = gd.workloads.SecondMoment(1)
    if not isinstance(declared, RealColumn):
        universe = FiniteUniverse(len(declared.labels))
        workload = gd.workloads.Histogram(len(declared.labels))
    source = source_of(records)
    direct = records if isinstance(source, frames.Frame) else source.chunks(["x"])
    return [
        lambda: count_records(source, schema, workload),
        lambda: list(encode(direct, schema, universe)),
    ]


@pytest.mark.parametrize(("way", "kind"), CASES)
def test_no_error_about_a_value_holds_the_value(tmp_path, caplog, capfd, way, kind):
    records = WAYS[way](SPOILT[kind], tmp_path)
    for declared in DECLARED.values():
        for read in readers(records, declared):
            said = refused(read, caplog, capfd)
            assert "'x'" in said or "query" in said


@pytest.mark.parametrize("kind", OBJECTS)
def test_no_error_about_an_object_holds_the_object(caplog, capfd, kind):
    levels, codes = pd.Index(["0", OBJECTS[kind]], dtype=object), [0, 0, 1]
    for values in (pd.Categorical.from_codes(codes, levels), levels.take(codes)):
        for declared in DECLARED.values():
            for read in readers(pd.DataFrame({"x": values}), declared):
                assert "row 2, column 'x'" in refused(read, caplog, capfd)


#: Files of a column x and a column y, of which the last record is malformed or does not fit.
FILES = {
    "a text": f"x,y\n0,0\n0,{TEXT}\n",
    "a number": f"x,y\n0,0\n0,{SECRET}\n",
    "too many fields": f"x,y\n0,0\n{TEXT},0,{TEXT}\n",
    "too few fields": f"x,y\n0,0\n{TEXT}\n",
    "a mark without its pair": f'x,y\n0,0\n0,"{TEXT}\n',
    "a mark inside": f'x,y\n0,0\n0,{TEXT}"\n',
    "a mark inside marks": f'x,y\n0,0\n0,"{TEXT}"{TEXT}\n',
    "a carriage return": f"x,y\n0,0\n0,{TEXT}\r{TEXT}\n",
    "bytes": f"x,y\n0,0\n0,{TEXT}".encode() + b"\xff\xfe\n",
    "bytes and too many fields": f"x,y\n0,0\n0,{TEXT},".encode() + b"\xff\n",
    "Latin letters": f"x,y\n0,0\n0,\u00e9{TEXT}\n".encode("latin-1"),
    "a zero byte": f"x,y\n0,0\n0,\0{TEXT}\n",
    "a header of values": f"{TEXT},{TEXT}\n0,0\n",
    "a header of bytes": f"{TEXT},".encode() + b"\xff\n0,0\n",
    "a header without a pair": f'x,"{TEXT}\n0,0\n',
    "digits of another script": "x,y\n0,0\n0,\u0667\u0661\u0663\u0664 7134\n",
    "a long number": f"x,y\n0,0\n0,{SECRET * 2000}\n",
    "not Parquet": f"PAR1{TEXT}PAR1",
}


TWO = Schema.from_dict({"x": ["0"], "y": {"edges": [0, 1]}})
#: A query of r.csv that declares all types.
OF_FILE = """
SELECT x, y::DOUBLE AS y FROM read_csv('r.csv', auto_detect = false, header = true,
    columns = {'x': 'VARCHAR', 'y': 'VARCHAR'})
"""


@pytest.mark.parametrize("name", FILES)
def test_no_error_about_a_file_holds_a_value(tmp_path, monkeypatch, caplog, capfd, name):
    """The file alone, compressed, as Parquet, in a folder, and read by a query."""
    monkeypatch.chdir(tmp_path)
    content = FILES[name] if isinstance(FILES[name], bytes) else FILES[name].encode()
    for path in ("r.csv", "r.parquet", "folder/r.csv", "folder/r.parquet"):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_bytes(content)
    Path("r.csv.gz").write_bytes(gzip.compress(content))
    Path("folder/a.csv").write_text("x,y\n0,0\n")
    sources = [source_of(where) for where in ("r.csv", "r.csv.gz", "r.parquet", "folder")]
    if "header" not in name and name != "not Parquet":  # DuckDB takes the declared header
        sources.append(Query(OF_FILE))
    for source in sources:
        refused(lambda s=source: count_records(s, TWO, TWO.workload("histogram")), caplog, capfd)


@pytest.mark.filterwarnings("ignore")
def test_a_worker_of_a_cluster_logs_no_record(client, caplog, capfd):
    import dask.dataframe as dd

    frame = pd.DataFrame({"x": ["0", "0", TEXT, "0"]})
    source = source_of(dd.from_pandas(frame, npartitions=2, sort=False))
    schema, one = Schema((DECLARED["categories"],)), gd.workloads.Histogram(1)
    said = refused(lambda: count_records(source, schema, one, client=client), caplog, capfd)
    assert "partition 1: records must be " in said


#: A program in which counting fails by an error of its own, while it holds a record.
FAULTY = """
import sys
from geomdp.cli import main
from geomdp.data import encoding

def faulty(batches, *columns):
    record = next(iter(batches)).to_pylist()
    raise TypeError("an error of the program")

encoding.column_codes = faulty
sys.argv = ["geomdp", "release", "r.csv", "--schema", "s.json", "--workload", "marginals:1"]
sys.argv += ["--epsilon", "1", "--out", "o.csv"]
main()
"""


def test_the_traceback_of_an_error_of_the_program_holds_no_record(tmp_path):
    (tmp_path / "r.csv").write_text(f"x\n{TEXT}\n")
    (tmp_path / "s.json").write_text(Schema((DECLARED["categories"],)).to_json())
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", FAULTY]
    ended = subprocess.run(command, cwd=tmp_path, env=paths, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "TypeError: an error of the program" in ended.stderr
    assert SECRET not in ended.stdout + ended.stderr
